"""Stores: dictionaries that the processes of a group share. With one process they are in its memory, or in a file."""

import datetime
import os
import pickle
import threading

_FIVE_MINUTES = datetime.timedelta(minutes=5)


def _bytes(value):
    return value if isinstance(value, bytes) else str(value).encode()


class Store:
    """A dictionary from strings to bytes.

    >>> store = lucid.distributed.HashStore()
    >>> store.set("key", "value")
    >>> store.get("key"), store.add("count", 2)
    (b'value', 2)
    """

    def __init__(self):
        self._values, self._changed, self._timeout = {}, threading.Condition(), _FIVE_MINUTES

    def _load(self):
        return self._values

    def _keep(self, values):
        self._values = values

    def _change(self, change):
        with self._changed:
            values = self._load()
            result = change(values)
            self._keep(values)
            self._changed.notify_all()
        return result

    def set(self, key, value):
        """Set a value."""
        self._change(lambda values: values.__setitem__(key, _bytes(value)))

    def get(self, key):
        """A value; waits until it is set."""
        self.wait([key])
        return self._load()[key]

    def add(self, key, amount):
        """Add to a number and return it."""

        def change(values):
            values[key] = str(int(values.get(key, b"0")) + amount).encode()
            return int(values[key])

        return self._change(change)

    def compare_set(self, key, expected_value, desired_value):
        """Set a value if it is what is expected; returns what is there then."""

        def change(values):
            if values.get(key, b"") == _bytes(expected_value):
                values[key] = _bytes(desired_value)
            return values.get(key, _bytes(expected_value))

        return self._change(change)

    def wait(self, keys, timeout=None):
        """Wait until keys are there."""
        seconds = (self._timeout if timeout is None else timeout).total_seconds()
        with self._changed:
            if not self._changed.wait_for(lambda: all(key in self._load() for key in keys), seconds):
                from ._group import DistStoreError

                raise DistStoreError(f"wait timeout after {seconds:.0f}s, keys: {', '.join(keys)}")

    def check(self, keys):
        """Whether keys are there."""
        return all(key in self._load() for key in keys)

    def delete_key(self, key):
        """Remove a key; whether it was there."""
        return self._change(lambda values: values.pop(key, None) is not None)

    def num_keys(self):
        """How many keys there are."""
        return len(self._load())

    def set_timeout(self, timeout):
        """How long `get` and `wait` wait."""
        self._timeout = timeout

    @property
    def timeout(self):
        return self._timeout


class HashStore(Store):
    """A store in this process's memory.

    >>> lucid.distributed.HashStore().num_keys()
    0
    """


class FileStore(Store):
    """A store in a file.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = lucid.distributed.FileStore(os.path.join(folder, "store"), 1)
    ...     store.set("key", "value")
    ...     store.get("key")
    b'value'
    """

    def __init__(self, file_name, world_size=-1):
        super().__init__()
        self.path = os.fspath(file_name)

    def _load(self):
        if not os.path.exists(self.path) or not os.path.getsize(self.path):
            return {}
        with open(self.path, "rb") as file:
            return pickle.load(file)

    def _keep(self, values):
        part = f"{self.path}.{os.getpid()}"
        with open(part, "wb") as file:
            pickle.dump(values, file)
        os.replace(part, self.path)


class TCPStore(Store):
    """A store that other processes would reach by TCP. With one process no connection is opened.

    >>> lucid.distributed.TCPStore("localhost", 29500, 1, True).host
    'localhost'
    """

    def __init__(self, host_name, port, world_size=None, is_master=False, timeout=_FIVE_MINUTES, **settings):
        super().__init__()
        if world_size is not None and world_size > 1:
            raise NotImplementedError(f"TCPStore: a world of {world_size} processes is not there yet; Lucid has one")
        self.host, self.port, self._timeout = host_name, port, timeout


class PrefixStore(Store):
    """A part of another store: every key has a prefix there.

    >>> store = lucid.distributed.HashStore()
    >>> lucid.distributed.PrefixStore("a", store).set("key", "value")
    >>> store.get("a/key")
    b'value'
    """

    def __init__(self, prefix, store):
        self.prefix, self.underlying_store = prefix, store
        self._timeout = store.timeout

    def _named(self, key):
        return f"{self.prefix}/{key}"

    def set(self, key, value):
        self.underlying_store.set(self._named(key), value)

    def get(self, key):
        return self.underlying_store.get(self._named(key))

    def add(self, key, amount):
        return self.underlying_store.add(self._named(key), amount)

    def compare_set(self, key, expected_value, desired_value):
        return self.underlying_store.compare_set(self._named(key), expected_value, desired_value)

    def wait(self, keys, timeout=None):
        self.underlying_store.wait([self._named(key) for key in keys], timeout)

    def check(self, keys):
        return self.underlying_store.check([self._named(key) for key in keys])

    def delete_key(self, key):
        return self.underlying_store.delete_key(self._named(key))

    def num_keys(self):
        return self.underlying_store.num_keys()
