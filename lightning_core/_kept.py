"""What calls of one shape share: made at the first, kept for the last shapes. And the lock that the package uses."""

import os
import threading
import weakref
from collections import OrderedDict

_locks = weakref.WeakSet()


class Lock:
    """A lock for `with` that its thread may take again, and that a forked process finds free: the thread that held it is not
    there.

    >>> lock = Lock()
    >>> with lock, lock:
    ...     pass
    """

    def __init__(self):
        self._renew()
        _locks.add(self)

    def _renew(self):
        self._lock = threading.RLock()

    def __enter__(self):
        self._lock.acquire()

    def __exit__(self, *error):
        self._lock.release()


os.register_at_fork(after_in_child=lambda: [lock._renew() for lock in _locks])


class Kept:
    """The last 32 things by key.

    >>> lists = Kept(lambda n: [0] * n)
    >>> lists.get(2) is lists.get(2)
    True
    """

    def __init__(self, make):
        self._make, self._found, self._lock = make, OrderedDict(), Lock()

    def get(self, *key):
        """What was made of these arguments."""
        with self._lock:
            if key not in self._found:
                self._found[key] = self._make(*key)
                if len(self._found) > 32:
                    self._found.popitem(last=False)
            self._found.move_to_end(key)
            return self._found[key]

    def clear(self):
        """Drop all."""
        with self._lock:
            self._found.clear()
