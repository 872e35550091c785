"""Scattering, gathering and calling over a list of devices: there is one."""


def is_namedtuple(obj):
    """Whether an object is a named tuple.

    >>> lucid.nn.parallel._one_device.is_namedtuple((1, 2))
    False
    """
    return isinstance(obj, tuple) and hasattr(obj, "_asdict") and hasattr(obj, "_fields")


def _one(targets, what):
    if len(targets) != 1:
        raise NotImplementedError(f"{what}: {len(targets)} devices; Lucid runs on one")


def scatter(inputs, target_gpus, dim=0):
    """Inputs in parts, one for each device: one part.

    >>> lucid.nn.parallel._one_device.scatter((1,), [0])
    [(1,)]
    """
    _one(target_gpus, "scatter")
    return [inputs]


def scatter_kwargs(inputs, kwargs, target_gpus, dim=0):
    """Arguments in parts.

    >>> lucid.nn.parallel._one_device.scatter_kwargs((1,), {"a": 2}, [0])
    (((1,),), ({'a': 2},))
    """
    _one(target_gpus, "scatter_kwargs")
    return (tuple(inputs),), (dict(kwargs or {}),)


def gather(outputs, target_device, dim=0):
    """The parts of the devices put together: the one part.

    >>> lucid.nn.parallel._one_device.gather([lucid.ones(1)], "cpu")
    tensor([1.])
    """
    _one(outputs, "gather")
    return outputs[0]


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """Call modules on inputs of their own.

    >>> lucid.nn.parallel._one_device.parallel_apply([abs], [(-1,)])
    [1]
    """
    kwargs_tup = kwargs_tup or ({},) * len(modules)
    return [m(*(i if isinstance(i, (tuple, list)) else (i,)), **k) for m, i, k in zip(modules, inputs, kwargs_tup)]
