"""How pytest-xdist hands out tests (`--dist loadgroup`), with costs that do not grow with the number of tests.

xdist's own scheduler looks at everything that a worker has done after each of its tests, and searches the list of all tests for
each one that it sends. With sixty thousand tests the workers wait for it half of the time.
"""

from xdist.scheduler import LoadGroupScheduling


class Indexed(list):
    """Names in order; index() is a look-up."""

    def __init__(self, names):
        super().__init__(names)
        self.places = {name: place for place, name in enumerate(self)}

    def index(self, name):
        return self.places[name]


class Scheduling(LoadGroupScheduling):
    def add_node_collection(self, node, collection):
        super().add_node_collection(node, collection)
        self.registered_collections[node] = Indexed(self.registered_collections[node])

    def mark_test_complete(self, node, item_index, duration=0):
        name = self.registered_collections[node][item_index]
        scope, work = self._split_scope(name), self.assigned_work[node]
        work[scope][name] = True
        if all(work[scope].values()):
            del work[scope]
        self._reschedule(node)
