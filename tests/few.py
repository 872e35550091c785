"""What `pytest --few` leaves of the tests: a part that a person waits for (`make test`); `make test-all` runs everything.

Every test function still runs. A function with many cases keeps few of them:

    @pytest.mark.few(per=key)    one case for each value of key(**parameters); a case whose key is None goes
    a parameter called name      one case for each name: that is what tests call the key of a table's row
    (neither)                    at most CASES cases, evenly distributed over the list
    @pytest.mark.full("reason")  none: the reason says what covers the same ground with --few

So a new op, layer or optimizer that is a row of a table is part of `make test` from its first day, and no list names it here.
Property tests draw fewer examples (tests/properties.py), and processes that tests start see LUCID_FEW=1.
"""

import os
import zlib

CASES = 12


def wanted():
    """Whether this run, or the run that started this process, has --few."""
    return os.environ.get("LUCID_FEW") == "1"


def evenly(items, count):
    """`count` of the items, the first and the last among them."""
    if len(items) <= count:
        return items
    return [items[i * (len(items) - 1) // (count - 1)] for i in range(count)]


def per_key(items, key):
    """The first item of each key, in order."""
    chosen = {}
    for item in items:
        value = key(**item.callspec.params)
        if value is not None:
            chosen.setdefault(value, item)
    return list(chosen.values())


def of_function(items):
    """What stays of the cases of one test function."""
    first = items[0]
    if first.get_closest_marker("full"):
        return []
    if not hasattr(first, "callspec"):
        return items
    mark = first.get_closest_marker("few")
    if mark:
        return per_key(items, mark.kwargs["per"])
    return per_key(items, lambda name, **_: name) if "name" in first.callspec.params else evenly(items, CASES)


def one_in(count):
    """A key for `few(per=...)`: about one name in `count`, whatever the others are."""
    return lambda name: None if zlib.crc32(name.encode()) % count else name


def choose(items):
    """What stays of all tests, in order."""
    functions = {}
    for item in items:
        functions.setdefault((item.parent.nodeid, getattr(item, "originalname", item.name)), []).append(item)
    chosen = {id(item) for cases in functions.values() for item in of_function(cases)}
    return [item for item in items if id(item) in chosen]
