"""Settings that hold within a `with` block."""

from contextlib import contextmanager


@contextmanager
def kept(module, **values):
    """Set names of a module, and set them back afterwards.

    >>> from lucid.backends import cudnn
    >>> with lucid.backends._switch.kept(cudnn, benchmark=True):
    ...     cudnn.benchmark
    True
    >>> cudnn.benchmark
    False
    """
    before = {name: getattr(module, name) for name in values}
    try:
        for name, value in values.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


class Precision:
    """`fp32_precision` of a kind of op: "ieee" or "tf32"; "none" is "ieee".

    >>> lucid.backends.cuda.matmul.fp32_precision
    'ieee'
    """

    __slots__ = ("_allow", "_allowed")

    def __init__(self, allowed, allow):
        self._allowed, self._allow = allowed, allow

    @property
    def fp32_precision(self):
        """What float32 is rounded to before products."""
        return "tf32" if self._allowed() else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, value):
        if value not in ("ieee", "tf32", "none"):
            raise RuntimeError(f"Invalid precision: {value!r}: 'ieee', 'tf32' or 'none'")
        self._allow(value == "tf32")
