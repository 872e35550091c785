"""Modules on several devices called one after the other: their kernels run side by side, since calls do not wait."""

from ... import cuda


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """Call modules on inputs of their own, each on its device.

    >>> lucid.nn.parallel.parallel_apply([abs], [(-1,)])
    [1]
    """
    kwargs_tup, devices = kwargs_tup or ({},) * len(modules), devices or (None,) * len(modules)
    if not len(modules) == len(inputs) == len(kwargs_tup) == len(devices):
        raise AssertionError(f"parallel_apply: {len(modules)} modules, {len(inputs)} inputs, {len(devices)} devices")
    results = []
    for module, args, kwargs, device in zip(modules, inputs, kwargs_tup, devices):
        with cuda.device(device):
            results.append(module(*(args if isinstance(args, (tuple, list)) else (args,)), **kwargs))
    return results
