"""The older spectral_norm, which computes the weight before every call of the module."""

from ... import _C
from ...autograd import no_grad
from .. import functional as F
from ..modules.conv import _ConvTranspose
from ..parameter import Parameter, is_lazy


def output_dim(module):
    """The dimension of a weight that counts outputs: the second one in transposed convolutions.

    >>> from lucid.nn.utils.spectral_norm import output_dim
    >>> output_dim(lucid.nn.Linear(2, 2)), output_dim(lucid.nn.ConvTranspose1d(2, 2, 1))
    (0, 1)
    """
    return int(isinstance(module, _ConvTranspose))


class SpectralNorm:
    """A hook that divides a weight (`weight_orig`) by its largest singular value before each call.

    >>> layer = lucid.nn.utils.spectral_norm(lucid.nn.Linear(2, 3))
    >>> [type(hook).__name__ for hook in layer._forward_pre_hooks.values()]
    ['SpectralNorm']
    """

    _version = 1

    def __init__(self, name="weight", n_power_iterations=1, dim=0, eps=1e-12):
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.name, self.dim, self.n_power_iterations, self.eps = name, dim, n_power_iterations, eps

    def reshape_weight_to_matrix(self, weight):
        return weight.movedim(self.dim, 0).reshape(weight.size(self.dim), -1)

    def compute_weight(self, module, do_power_iteration):
        weight, u, v = (getattr(module, self.name + end) for end in ("_orig", "_u", "_v"))
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():  # in place, so that the buffers keep the progress
                for _ in range(self.n_power_iterations):
                    F.normalize(_C.mv(matrix.t(), u), dim=0, eps=self.eps, out=v)
                    F.normalize(_C.mv(matrix, v), dim=0, eps=self.eps, out=u)
                u, v = u.clone(), v.clone()  # the next call changes them, the gradient of this one needs them
        return weight / _C.dot(u, _C.mv(matrix, v))

    def remove(self, module):
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for end in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + end)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    @staticmethod
    def apply(module, name, n_power_iterations, dim, eps):
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy forward "
                "before applying spectral normalization"
            )
        with no_grad():
            sizes = hook.reshape_weight_to_matrix(weight).shape
            u, v = (F.normalize(weight.new_empty(n).normal_(0, 1), dim=0, eps=eps) for n in sizes)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)  # a plain attribute: computed again before each call, not saved
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook


class SpectralNormLoadStateDictPreHook:
    """Completes state dicts of PyTorch 0.4, which hold the weight instead of `weight_v`.

    >>> from lucid.nn.utils.spectral_norm import SpectralNormLoadStateDictPreHook
    >>> layer = lucid.nn.utils.spectral_norm(lucid.nn.Linear(2, 3))
    >>> layer.load_state_dict(layer.state_dict())
    <All keys matched successfully>
    """

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        key = prefix + self.fn.name
        version = local_metadata.get("spectral_norm", {}).get(self.fn.name + ".version")
        if version is not None and version >= 1:
            return
        if version is None and all(key + end in state_dict for end in ("_orig", "_u", "_v")) and key not in state_dict:
            return
        missing = [key + end for end in ("_orig", "", "_u") if key + end not in state_dict]
        if missing:
            if strict:
                missing_keys.extend(missing)
            return
        orig, u = state_dict[key + "_orig"], state_dict[key + "_u"]
        with no_grad():
            sigma = (orig / state_dict.pop(key)).mean()
            matrix = self.fn.reshape_weight_to_matrix(orig)
            state_dict[key + "_v"] = self._v_for(matrix, u, sigma)

    @staticmethod
    def _v_for(matrix, u, sigma):
        """The v with least |u - matrix v|, scaled so that u^T matrix v is sigma."""
        from ...linalg import lstsq

        v = lstsq(matrix, u).solution
        return v * (sigma / _C.dot(u, _C.mv(matrix, v)))


class SpectralNormStateDictHook:
    """Notes in the metadata of a state dict which version wrote it.

    >>> layer = lucid.nn.utils.spectral_norm(lucid.nn.Linear(2, 3))
    >>> layer.state_dict()._metadata[""]["spectral_norm"]
    {'weight.version': 1}
    """

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, module, state_dict, prefix, local_metadata):
        versions, key = local_metadata.setdefault("spectral_norm", {}), self.fn.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divide a weight by its largest singular value, which the power method estimates. Returns the module.

    In training mode every call makes n_power_iterations more steps. `lucid.nn.utils.parametrizations.spectral_norm` is the
    newer form.

    >>> layer = lucid.nn.utils.spectral_norm(lucid.nn.Linear(20, 40))
    >>> tuple(layer.weight_u.shape), sorted(layer.state_dict())
    ((40,), ['bias', 'weight_orig', 'weight_u', 'weight_v'])
    """
    SpectralNorm.apply(module, name, n_power_iterations, output_dim(module) if dim is None else dim, eps)
    return module


def remove_spectral_norm(module, name="weight"):
    """Make the weight a plain parameter again. Returns the module.

    >>> lucid.nn.utils.remove_spectral_norm(lucid.nn.utils.spectral_norm(lucid.nn.Linear(20, 40)))
    Linear(in_features=20, out_features=40, bias=True)
    """

    def take(hooks, kind, of):
        for key, hook in hooks.items():
            if isinstance(hook, kind) and of(hook).name == name:
                del hooks[key]
                return hook
        return None

    hook = take(module._forward_pre_hooks, SpectralNorm, lambda h: h)
    if hook is None:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    hook.remove(module)
    take(module._state_dict_hooks, SpectralNormStateDictHook, lambda h: h.fn)
    take(module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook, lambda h: h.fn)
    return module


__all__ = [
    "SpectralNorm",
    "SpectralNormLoadStateDictPreHook",
    "SpectralNormStateDictHook",
    "remove_spectral_norm",
    "spectral_norm",
]
