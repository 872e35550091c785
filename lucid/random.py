"""The default random stream: `default_generator`, PyTorch's CPU stream for the same seed."""

from ._C import _cuda_generator, default_generator

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]

_GPUS = 16  # generators, whether there are devices or not: a seed set before the first use counts


def manual_seed(seed):
    """Start the random stream anew from `seed`; returns the generator.

    >>> a = lucid.manual_seed(7) and lucid.rand(3)
    >>> b = lucid.manual_seed(7) and lucid.rand(3)
    >>> (a == b).all()
    tensor(True)
    """
    for index in range(_GPUS):
        _cuda_generator(index).manual_seed(int(seed))
    return default_generator.manual_seed(int(seed))


def seed():
    """Seed the random streams, those of GPUs as well, from the system's entropy; returns the seed.

    >>> lucid.seed() == lucid.initial_seed()
    True
    """
    drawn = default_generator.seed()
    for index in range(_GPUS):
        _cuda_generator(index).manual_seed(drawn)
    return drawn


def initial_seed():
    """The seed the random stream started from.

    >>> lucid.manual_seed(7).initial_seed(), lucid.initial_seed()
    (7, 7)
    """
    return default_generator.initial_seed()


def get_rng_state():
    """The state of the random stream, for `set_rng_state`.

    >>> state = lucid.get_rng_state()
    >>> a = lucid.rand(3)
    >>> lucid.set_rng_state(state)
    >>> (lucid.rand(3) == a).all()
    tensor(True)
    """
    return default_generator.get_state()


def set_rng_state(new_state):
    """Continue the random stream from a state `get_rng_state` returned.

    >>> lucid.set_rng_state(lucid.get_rng_state())
    """
    default_generator.set_state(new_state)


class fork_rng:
    """What is drawn in the `with` block leaves the random stream as it was.

    >>> _ = lucid.manual_seed(7)
    >>> with lucid.random.fork_rng():
    ...     a = lucid.rand(3)
    >>> (lucid.rand(3) == a).all()
    tensor(True)
    """

    def __init__(self, devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type=None):
        if device_type not in (None, "cuda"):
            raise NotImplementedError(f"fork_rng: there are no random streams of type {device_type}")
        self.enabled, self.devices = enabled, devices

    def __call__(self, function):
        """As a decorator: every call in a stream of its own."""
        from functools import wraps

        @wraps(function)
        def forked(*args, **kwargs):
            with fork_rng(self.devices, self.enabled):
                return function(*args, **kwargs)

        return forked

    def __enter__(self):
        if not self.enabled:
            return
        from . import cuda

        devices = range(_GPUS) if self.devices is None else self.devices
        self._on_devices = [(device, cuda.get_rng_state(device)) for device in devices]
        self._state = get_rng_state()

    def __exit__(self, *error):
        if self.enabled:
            from . import cuda

            set_rng_state(self._state)
            for device, state in self._on_devices:
                cuda.set_rng_state(state, device)
