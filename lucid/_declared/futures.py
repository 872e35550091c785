"""`torch.futures`: a value that comes later, set by whoever has it."""

import threading

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """A value that is set once, by `set_result` or `set_exception`, and waited for.

    >>> future = lucid.futures.Future()
    >>> later = future.then(lambda f: f.value() + 1)
    >>> future.set_result(1)
    >>> later.wait()
    2
    """

    def __class_getitem__(cls, item):
        return cls

    def __init__(self, *, devices=None):
        self._ready, self._lock = threading.Event(), threading.Lock()
        self._value = self._error = None
        self._callbacks = []

    def done(self):
        return self._ready.is_set()

    def wait(self):
        self._ready.wait()
        return self.value()

    def value(self):
        if not self.done():
            raise RuntimeError("Future: value() before the value is set; wait() waits for it")
        if self._error is not None:
            raise self._error
        return self._value

    def _finish(self, value, error):
        with self._lock:
            if self.done():
                raise RuntimeError("Future: the value is set already")
            self._value, self._error = value, error
            self._ready.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def set_result(self, result):
        self._finish(result, None)

    def set_exception(self, result):
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def add_done_callback(self, callback):
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback):
        following = Future()

        def run(_):
            try:
                following.set_result(callback(self))
            except Exception as error:
                following.set_exception(error)

        self.add_done_callback(run)
        return following


def collect_all(futures):
    """A future of the list of futures, done when all are.

    >>> one = lucid.futures.Future()
    >>> one.set_result(1)
    >>> [f.value() for f in lucid.futures.collect_all([one]).wait()]
    [1]
    """
    futures = list(futures)
    together, left, lock = Future(), [len(futures)], threading.Lock()

    def one_done(_):
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            together.set_result(futures)

    if not futures:
        together.set_result(futures)
    for future in futures:
        future.add_done_callback(one_done)
    return together


def wait_all(futures):
    """The values of all futures.

    >>> one = lucid.futures.Future()
    >>> one.set_result(1)
    >>> lucid.futures.wait_all([one])
    [1]
    """
    return [future.wait() for future in collect_all(futures).wait()]
