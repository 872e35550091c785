"""Whether operations are recorded for backward: switches that work as a `with` block and as a decorator.

A decorated function enters a fresh switch per call, so it may be recursive and may run on several threads. A decorated
generator is switched only while its own code runs: its caller's mode is restored at every `yield`.
"""

from .. import _C


def _wrap_generator(switch, function):
    def run(*args, **kwargs):
        generator = function(*args, **kwargs)
        step, value = generator.send, None
        try:
            while True:
                with switch():
                    answer = step(value)
                try:
                    step, value = generator.send, (yield answer)
                except GeneratorExit:
                    with switch():
                        generator.close()
                    raise
                except BaseException as error:
                    step, value = generator.throw, error
        except StopIteration as stop:
            return stop.value

    return run


def _wrap_function(switch, function):
    def run(*args, **kwargs):
        with switch():
            return function(*args, **kwargs)

    return run


def _constructor(cls):
    import warnings

    warnings.warn(
        "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or "
        "methods. To preserve the current behavior of class decoration, you can directly decorate the `__init__` method and "
        "nothing else.",
        FutureWarning,
        stacklevel=3,
    )
    return lambda *args, **kwargs: cls(*args, **kwargs)


_GENERATOR = 0x20  # inspect.CO_GENERATOR, without the cost of importing inspect


class _Switch:
    """A context manager that decorates; subclasses enter and exit."""

    __slots__ = ("_before",)

    def __call__(self, function):
        import functools

        if isinstance(function, type):
            function = _constructor(function)
        flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
        wrap = _wrap_generator if flags & _GENERATOR else _wrap_function
        return functools.wraps(function)(wrap(self.clone, function))

    def clone(self):
        """A fresh switch of the same setting."""
        return type(self)()


class _PlainSwitch(_Switch):
    """One without arguments, so `@no_grad` works like `@no_grad()`."""

    __slots__ = ()

    def __new__(cls, function=None):
        switch = super().__new__(cls)
        return switch if function is None else switch(function)

    def __exit__(self, *error):
        _C._set_grad_enabled(self._before)


class no_grad(_PlainSwitch):
    """Record nothing: results do not require grad.

    >>> x = lucid.tensor([1.0], requires_grad=True)
    >>> with lucid.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    >>> @lucid.no_grad
    ... def double(x):
    ...     return x * 2
    >>> double(x).requires_grad
    False
    """

    __slots__ = ()

    def __enter__(self):
        self._before = _C._set_grad_enabled(False)


class enable_grad(_PlainSwitch):
    """Record again, inside `no_grad`.

    >>> x = lucid.tensor([1.0], requires_grad=True)
    >>> with lucid.no_grad(), lucid.enable_grad():
    ...     y = x * 2
    >>> y.requires_grad
    True
    """

    __slots__ = ()

    def __enter__(self):
        self._before = _C._set_grad_enabled(True)


class set_grad_enabled(_Switch):
    """Record or not, by a flag. Takes effect at once, and until the end of the block if used in `with`.

    >>> x = lucid.tensor([1.0], requires_grad=True)
    >>> training = False
    >>> with lucid.set_grad_enabled(training):
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    __slots__ = ("mode",)

    def __init__(self, mode):
        self.mode = mode
        self._before = _C._set_grad_enabled(mode)

    def __call__(self, function):
        _C._set_grad_enabled(self._before)  # as a decorator it is only for the function
        return super().__call__(function)

    def __enter__(self):
        _C._set_grad_enabled(self.mode)

    def __exit__(self, *error):
        _C._set_grad_enabled(self._before)

    def __repr__(self):
        return f"{type(self).__module__}.{type(self).__name__}(mode={self.mode})"

    def clone(self):
        return type(self)(self.mode)


class inference_mode(_Switch):
    """Record nothing and keep no version counters either. Results are inference tensors: they can never be used in a
    recorded computation.

    >>> x = lucid.tensor([1.0], requires_grad=True)
    >>> with lucid.inference_mode():
    ...     y = x * 2
    >>> y.requires_grad, y.is_inference()
    (False, True)
    """

    __slots__ = ("mode",)

    def __new__(cls, mode=True):
        if isinstance(mode, bool):
            return super().__new__(cls)
        return cls()(mode)

    def __init__(self, mode=True):
        self.mode = mode

    def __enter__(self):
        self._before = _C._set_grad_enabled(not self.mode), _C._set_inference_mode(self.mode)

    def __exit__(self, *error):
        grad, inference = self._before
        _C._set_inference_mode(inference)
        _C._set_grad_enabled(grad)

    def clone(self):
        return type(self)(self.mode)


class set_multithreading_enabled(_Switch):
    """Whether backward may run on threads of devices, as a function or a block: Lucid's runs on the thread that calls it, so
    that either mode is what there is.

    >>> with lucid.autograd.set_multithreading_enabled(False):
    ...     lucid.ones(1, requires_grad=True).sum().backward()
    """

    __slots__ = ("mode",)

    def __init__(self, mode):
        self.mode = mode

    def __enter__(self):
        pass

    def __exit__(self, *error):
        pass

    def clone(self):
        return type(self)(self.mode)


def is_grad_enabled():
    """Whether operations on this thread are recorded.

    >>> lucid.is_grad_enabled()
    True
    """
    return _C._grad_enabled()


def is_inference_mode_enabled():
    """Whether this thread is in inference mode.

    >>> with lucid.inference_mode():
    ...     lucid.is_inference_mode_enabled()
    True
    """
    return _C._inference_mode()
