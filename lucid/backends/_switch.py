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
