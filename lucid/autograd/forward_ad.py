"""Forward-mode derivatives by the names of `torch.autograd.forward_ad`: dual tensors carry a value and a tangent.

>>> import lucid
>>> from lucid.autograd import forward_ad
>>> with forward_ad.dual_level():
...     x = forward_ad.make_dual(lucid.tensor([1.0, 2.0]), lucid.tensor([1.0, 10.0]))
...     value, tangent = forward_ad.unpack_dual(x * x)
>>> value, tangent
(tensor([1., 4.]), tensor([ 2., 40.]))

The engine differentiates in reverse. A dual tensor is recorded as any tensor that requires a gradient, and its tangent is kept
by the level; `unpack_dual` computes the Jacobian times the tangents as the vector-Jacobian product of a vector-Jacobian product
(`lucid.func.jvp` does the same). So inside a level grad mode must be on, and a dual tensor says `requires_grad`. Each
`unpack_dual` costs two backward passes: unpack results, not every step. There is one level at a time, as in PyTorch.
"""

from collections import namedtuple

from .. import _C
from ._run import grad
from .grad_mode import enable_grad

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

_duals = None  # of the level that is open: (dual, leaf or None, tangent); None: there is no level

UnpackedDualTensor = namedtuple("UnpackedDualTensor", ["primal", "tangent"])
UnpackedDualTensor.__doc__ = """What `unpack_dual` returns: `primal`, and `tangent` or None.

>>> lucid.autograd.forward_ad.unpack_dual(lucid.ones(1))
UnpackedDualTensor(primal=tensor([1.]), tangent=None)
"""


def enter_dual_level():
    """Open a level and return its number, 0. `dual_level` is the context manager that also closes it.

    >>> lucid.autograd.forward_ad.enter_dual_level()
    0
    >>> lucid.autograd.forward_ad.exit_dual_level()
    """
    global _duals
    if _duals is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _duals = []
    return 0


def exit_dual_level(*, level=None):
    """Close the level: its tangents are forgotten.

    >>> level = lucid.autograd.forward_ad.enter_dual_level()
    >>> lucid.autograd.forward_ad.exit_dual_level(level=level)
    """
    global _duals
    if _duals is None or level not in (None, 0):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    _duals = None


class dual_level:
    """The context in which dual tensors live.

    >>> with lucid.autograd.forward_ad.dual_level() as level:
    ...     level
    0
    """

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, kind, value, traceback):
        exit_dual_level()

    def __call__(self, function):
        from functools import wraps

        @wraps(function)
        def inside(*args, **kwargs):
            with type(self)():
                return function(*args, **kwargs)

        return inside


def _recording():
    if not _C._grad_enabled():
        raise RuntimeError("forward_ad: grad mode is off, so nothing is recorded; tangents are computed from what is recorded")


def _checked_level(level):
    if level not in (None, 0):
        raise RuntimeError(f"forward_ad: there is no level {level}")


def make_dual(tensor, tangent, *, level=None):
    """A tensor that looks at the memory of `tensor` and has a tangent.

    >>> with lucid.autograd.forward_ad.dual_level():
    ...     x = lucid.autograd.forward_ad.make_dual(lucid.tensor(3.0), lucid.tensor(1.0))
    ...     lucid.autograd.forward_ad.unpack_dual(x**3).tangent
    tensor(27.)
    """
    _checked_level(level)
    if _duals is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for what, x in (("primal", tensor), ("tangent", tangent)):
        if not (x.dtype.is_floating_point or x.dtype.is_complex):
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {x.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            f"Expected tangent to have the same size as the primal: {tuple(tangent.shape)} and {tuple(tensor.shape)}"
        )
    if tensor.dtype != tangent.dtype:
        raise RuntimeError(f"Expected tangent to have the same dtype as the primal: {tangent.dtype} and {tensor.dtype}")
    _recording()
    if unpack_dual(tensor).tangent is not None:
        raise RuntimeError("Making a dual Tensor based on a Tensor that already has a forward gradient at the same level.")
    leaf = None if tensor.requires_grad else tensor.detach().requires_grad_()
    dual = tensor.view_as(tensor) if leaf is None else leaf
    _duals.append((dual, leaf, tangent))
    return dual


def _pushed(tensor):
    """The tangent of a tensor, or None if it depends on no dual tensor."""
    duals = [dual for dual, _, _ in _duals]
    with enable_grad():
        u = _C.zeros_like(tensor).requires_grad_()
        pulled = grad([tensor], duals, [u], retain_graph=True, create_graph=True, allow_unused=True)
        pairs = [(g, t) for g, (_, _, t) in zip(pulled, _duals) if g is not None]
        if not pairs:
            return None
        differentiable = [(g, t) for g, t in pairs if g.requires_grad]
        found = None
        if differentiable:
            gs, ts = zip(*differentiable)
            (found,) = grad(gs, [u], ts, retain_graph=True, create_graph=True, allow_unused=True)
    return _C.zeros_like(tensor).detach() if found is None else found


def unpack_dual(tensor, *, level=None):
    """(primal, tangent) of a tensor that was computed from dual ones; the tangent is None if it was not.

    >>> with lucid.autograd.forward_ad.dual_level():
    ...     x = lucid.autograd.forward_ad.make_dual(lucid.tensor(0.0), lucid.tensor(2.0))
    ...     lucid.autograd.forward_ad.unpack_dual(lucid.sin(x))
    UnpackedDualTensor(primal=tensor(0.), tangent=tensor(2.))
    """
    from ..func._derivatives import _leads_on

    _checked_level(level)
    if not _duals or not tensor.requires_grad:
        return UnpackedDualTensor(tensor, None)
    _recording()
    tangent = _pushed(tensor)
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    own = [leaf for _, leaf, _ in _duals if leaf is not None]
    leads_on = _leads_on([tensor], own) or any(t.requires_grad for _, _, t in _duals)
    if leads_on:  # a leaf of the user's: the results can be differentiated
        return UnpackedDualTensor(tensor.view_as(tensor), tangent)
    return UnpackedDualTensor(tensor.detach(), tangent.detach())
