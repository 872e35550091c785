"""Intel's GPUs: this build has no backend for them. Queries and seeding work.

>>> lucid.xpu.is_available()
False
"""

__all__ = ["device_count", "is_available", "manual_seed"]


def is_available():
    """Whether there is one to use: no.

    >>> lucid.xpu.is_available()
    False
    """
    return False


def device_count():
    """How many there are to use: none.

    >>> lucid.xpu.device_count()
    0
    """
    return 0


def manual_seed(seed):
    """Seed a device's random stream: there is none. The CPU's stream is `lucid.manual_seed`'s.

    >>> lucid.xpu.manual_seed(0)
    """
    int(seed)


def __getattr__(name):
    from . import _declared

    return _declared.look("xpu", name)
