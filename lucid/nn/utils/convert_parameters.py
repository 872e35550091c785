"""All parameters of a model as one vector, and back."""

from ... import _C


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
    """Let parameters look at the parts of a vector."""
    if not isinstance(vec, _C.Tensor):
        raise TypeError(f"expected a Tensor, but got: {type(vec).__name__}")
    at = 0
    for p in parameters:
        n = p.numel()
        p.data = vec[at : at + n].view_as(p).data
        at += n


__all__ = ["parameters_to_vector", "vector_to_parameters"]
