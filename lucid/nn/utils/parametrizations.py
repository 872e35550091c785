"""Common parametrizations: weight normalisation, spectral norm one, orthogonal weights."""

from ... import _C, linalg
from ...autograd import no_grad
from .. import functional as F
from ..modules.module import Module
from .parametrize import register_parametrization
from .spectral_norm import output_dim
from .weight_norm import norm_except_dim, scaled_to

_MAPS = ("matrix_exp", "cayley", "householder")


def _weight_of(module, name):
    weight = getattr(module, name, None)
    if not isinstance(weight, _C.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


# --- orthogonal -------------------------------------------------------------------------------------------------------
def _is_orthogonal(q):
    from ..._info import finfo

    n, k = q.shape[-2:]
    one = _C.eye(k, dtype=q.dtype, device=q.device)
    return bool(_C.allclose(q.mH @ q, one, atol=10.0 * n * finfo(q.dtype).eps))


def _make_orthogonal(a):
    q, r = linalg.qr(a)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    def __init__(self, weight, orthogonal_map, *, use_trivialization=True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def _of_skew(self, x, n, k):
        """A map from skew-symmetric matrices, which are made of the part of x below the diagonal."""
        x = x.tril()
        if n != k:
            x = _C.cat([x, x.new_zeros(n, n - k).expand(*x.shape[:-2], -1, -1)], -1)
        a = x - x.mH
        if self.orthogonal_map == "matrix_exp":
            q = linalg.matrix_exp(a)
        else:
            one = _C.eye(n, dtype=a.dtype, device=a.device)
            q = linalg.solve(one - a * 0.5, one + a * 0.5)
        return q if n == k else q[..., :k]

    def forward(self, x):
        n, k = x.shape[-2:]
        transposed = n < k
        if transposed:
            x, n, k = x.mT, k, n
        if self.orthogonal_map == "householder":
            a = x.tril(-1)
            q = linalg.householder_product(a, 2.0 / (1.0 + (a * a).sum(-2)))
            q = q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)  # signs
        else:
            q = self._of_skew(x, n, k)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if transposed else q

    def right_inverse(self, q):
        if q.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {q.shape}.")
        given, (n, k) = q, q.shape[-2:]
        transposed = n < k
        with no_grad():
            if transposed:
                q, n, k = q.mT, k, n
            if not hasattr(self, "base"):
                if self.orthogonal_map != "householder":
                    raise NotImplementedError(
                        "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                        "use_trivialization=False."
                    )
                a, tau = _C.geqrf(q)
                signs = a.diagonal(dim1=-2, dim2=-1)
                signs.copy_(_C.where(tau == 0, -signs.sign(), signs.sign()))
                return a.mT if transposed else a
            if n != k:
                more = _C.randn(*q.shape[:-2], n, n - k, dtype=q.dtype, device=q.device)
                q = _make_orthogonal(_C.cat([q, more], -1))
            else:
                q = q.clone() if _is_orthogonal(q) else _make_orthogonal(q)
            self.base = q
            start = _C.zeros_like(given)
            start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            return start


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Keep a weight orthogonal (unitary, if it is complex): its rows, or columns if there are fewer. Returns the module.

    orthogonal_map: "matrix_exp", "cayley" or "householder"; by default the first for square matrices, the last for others.
    use_trivialization: start from the weight's own orthogonal part and stay near it, at the cost of one more product.

    >>> layer = lucid.nn.utils.parametrizations.orthogonal(lucid.nn.Linear(2, 4))
    >>> w = layer.weight
    >>> bool(((w.t() @ w - lucid.eye(2)).abs() < 1e-5).all())
    True
    """
    weight = _weight_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.size(-2) == weight.size(-1) or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}')
    parametrization = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return register_parametrization(module, name, parametrization, unsafe=True)


# --- norm and direction -----------------------------------------------------------------------------------------------
class _WeightNorm(Module):
    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return scaled_to(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """Train the norm of a weight (`original0`) and its direction (`original1`) apart. Returns the module.

    dim: the dimension along which there is a norm for each index; None: one norm. State dicts of the older
    `lucid.nn.utils.weight_norm` can be loaded.

    >>> layer = lucid.nn.utils.parametrizations.weight_norm(lucid.nn.Linear(20, 40))
    >>> tuple(layer.parametrizations.weight.original0.shape)
    (40, 1)
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        keys = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if all(key in state_dict for key in keys):
            for i, key in enumerate(keys):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


# --- spectral norm ----------------------------------------------------------------------------------------------------
class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.dim, self.eps = dim % ndim, eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight)
            with no_grad():
                u, v = (matrix.new_empty(n).normal_(0, 1) for n in matrix.shape)
                self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
                self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _matrix(self, weight):
        return weight.movedim(self.dim, 0).flatten(1)

    def _iterate(self, matrix, n):
        """The power method: u and v come nearer to the first singular vectors, in place."""
        with no_grad():
            for _ in range(n):
                F.normalize(_C.mv(matrix, self._v), dim=0, eps=self.eps, out=self._u)
                F.normalize(_C.mv(matrix.mH, self._u), dim=0, eps=self.eps, out=self._v)

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # the next call changes them, the gradient of this one needs them
        return weight / _C.vdot(u, _C.mv(matrix, v))

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divide a weight by its largest singular value, which the power method estimates. Returns the module.

    In training mode every reading of the weight makes n_power_iterations more steps.

    >>> layer = lucid.nn.utils.parametrizations.spectral_norm(lucid.nn.Linear(20, 40))
    >>> bool((layer(lucid.ones(20)) - layer.bias).norm() <= lucid.ones(20).norm() * 1.1)
    True
    """
    weight = _weight_of(module, name)
    dim = output_dim(module) if dim is None else dim
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
