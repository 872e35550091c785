"""Modules with uninitialised parameters."""

from ..modules.module import Module


def skip_init(module_cls, *args, **kwargs):
    """A module with uninitialised parameters: for weights that are loaded afterwards.

    >>> layer = lucid.nn.utils.skip_init(lucid.nn.Linear, 5, 1)
    >>> tuple(layer.weight.shape), layer.weight.device.type
    ((1, 5), 'cpu')
    """
    from inspect import signature

    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)


__all__ = ["skip_init"]
