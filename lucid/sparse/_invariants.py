"""The switch that PyTorch has for checks of sparse tensors."""

_enabled = False


class check_sparse_tensor_invariants:  # noqa: N801 (PyTorch's name)
    """PyTorch's switch for checks of indices: a class with `enable`, `disable` and `is_enabled`, a context and a decorator.

    Lucid always checks what constructors are given, so the switch only remembers what it was told.

    >>> with lucid.sparse.check_sparse_tensor_invariants():
    ...     lucid.sparse.check_sparse_tensor_invariants.is_enabled()
    True
    """

    def __init__(self, enable=True):
        self._wanted, self._before = enable, None

    @staticmethod
    def is_enabled():
        """What the switch was told last.

        >>> lucid.sparse.check_sparse_tensor_invariants.is_enabled()
        False
        """
        return _enabled

    @staticmethod
    def enable():
        """Ask for checks, which are made anyway."""
        global _enabled
        _enabled = True

    @staticmethod
    def disable():
        """Ask for no checks; they are made all the same."""
        global _enabled
        _enabled = False

    def __enter__(self):
        global _enabled
        if self._before is not None:
            raise RuntimeError("This context manager instance is already activated. Use a different instance.")
        self._before, _enabled = _enabled, self._wanted

    def __exit__(self, *error):
        global _enabled
        _enabled, self._before = self._before, None

    def __call__(self, function):
        def checked(*args, **kwargs):
            with type(self)(self._wanted):
                return function(*args, **kwargs)

        return checked
