"""All parameters of a model as one vector, and back."""

from ... import _C
from ...autograd import no_grad


def parameters_to_vector(parameters):
    """The values of several parameters, one after the other.

    >>> lucid.nn.utils.parameters_to_vector([lucid.ones(2), lucid.zeros(1, 1)])
    tensor([1., 1., 0.])
    """
    parameters = list(parameters)
    devices = {p.device for p in parameters}
    if len(devices) > 1:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return _C.cat([p.view(-1) for p in parameters])


def vector_to_parameters(vec, parameters):
    """Make parameters views of the parts of a vector.

    >>> layer = lucid.nn.Linear(1, 2)
    >>> lucid.nn.utils.vector_to_parameters(lucid.tensor([1.0, 2.0, 3.0, 4.0]), layer.parameters())
    >>> layer.bias.detach()
    tensor([3., 4.])
    """
    if not isinstance(vec, _C.Tensor):
        raise TypeError(f"expected a Tensor, but got: {type(vec).__name__}")
    at = 0
    for p in parameters:
        n = p.numel()
        p.data = vec[at : at + n].view_as(p).data
        at += n


def copy_parameters_and_buffers(source, dest):
    """Copy the values of all parameters and buffers of a module into another one, which must have them all.

    >>> a, b = lucid.nn.BatchNorm1d(2), lucid.nn.BatchNorm1d(2)
    >>> a.running_mean.fill_(3.0); lucid.nn.utils.copy_parameters_and_buffers(a, b); b.running_mean
    tensor([3., 3.])
    tensor([3., 3.])
    """
    pairs = []
    for kind, walk in (("parameter", "named_parameters"), ("buffer", "named_buffers")):
        there = dict(getattr(dest, walk)(remove_duplicate=False))
        for name, value in getattr(source, walk)(remove_duplicate=False):
            if name not in there:
                raise KeyError(f"copy_parameters_and_buffers: the destination has no {kind} {name!r}")
            if there[name].shape != value.shape:
                raise RuntimeError(
                    f"copy_parameters_and_buffers: {kind} {name!r} has shape {value.shape} in the source and "
                    f"{there[name].shape} in the destination"
                )
            pairs.append((there[name], value))
    with no_grad():  # only now, so that nothing is written if something does not fit
        for to, value in pairs:
            to.copy_(value)


__all__ = ["copy_parameters_and_buffers", "parameters_to_vector", "vector_to_parameters"]
