"""Layers that learn the size of their input from the first call."""

from ... import _C
from ..parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from . import conv, linear, normalization


class LazyModuleMixin:
    """For modules with uninitialized parameters: the first call makes them, by `initialize_parameters(*args)`.

    Afterwards the module is of the class `cls_to_become`.

    >>> from lucid.nn.modules.lazy import LazyModuleMixin
    >>> layer = lucid.nn.LazyLinear(3)
    >>> isinstance(layer, LazyModuleMixin), layer.has_uninitialized_params()
    (True, True)
    """

    cls_to_become = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, value in (*self._parameters.items(), *self._buffers.items()):
            if value is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = value if is_lazy(value) or keep_vars else value.detach()

    def _lazy_load_hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        """Take the shapes of parameters from the loaded state dict."""
        from ...autograd import no_grad

        for name, value in (*self._parameters.items(), *self._buffers.items()):
            given = state_dict.get(prefix + name)
            if value is not None and given is not None and is_lazy(value) and not is_lazy(given):
                with no_grad():
                    value.materialize(given.shape)

    def initialize_parameters(self, *args, **kwargs):
        """Make the parameters from the first call's arguments; to be defined."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self):
        """Whether the first call did not happen yet."""
        return any(is_lazy(v) for v in (*self._parameters.values(), *self._buffers.values()))

    def _infer_parameters(self, module, args, kwargs=None):
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {type(self).__name__} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become


class LazyLinear(LazyModuleMixin, linear.Linear):
    """A Linear whose in_features is the size of the first input's last dimension.

    >>> layer = lucid.nn.LazyLinear(3)
    >>> _ = layer(lucid.ones(2, 5)); layer
    Linear(in_features=5, out_features=3, bias=True)
    """

    cls_to_become = linear.Linear

    def __init__(self, out_features, bias=True, device=None, dtype=None):
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self):
        """Draw weight and bias anew, once they have a size."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):  # noqa: A002
        """Take in_features from the input."""
        from ...autograd import no_grad

        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()


class _LazyConv(LazyModuleMixin):
    """in_channels from the first input."""

    def _prepare(self, out_channels, bias, device, dtype):
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self):
        """Draw weight and bias anew, once they have a size."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input, *args, **kwargs):  # noqa: A002
        """Take in_channels from the input."""
        from ...autograd import no_grad

        if not self.has_uninitialized_params():
            return
        n = self._n
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {type(self).__name__}, "
                f"but got input of size: {input.shape}"
            )
        self.in_channels = input.shape[-n - 1]
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        channels = (self.in_channels, self.out_channels // self.groups)
        if not self.transposed:
            channels = (self.out_channels, self.in_channels // self.groups)
        with no_grad():
            self.weight.materialize((*channels, *self.kernel_size))
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()


def _lazy_conv(base):
    transposed = base._transposed

    if transposed:

        def __init__(
            self, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1,
            padding_mode="zeros", device=None, dtype=None,
        ):  # fmt: skip
            LazyModuleMixin.__init__(
                self, 0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype
            )
            self._prepare(out_channels, bias, device, dtype)

    else:

        def __init__(
            self, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros",
            device=None, dtype=None,
        ):  # fmt: skip
            LazyModuleMixin.__init__(
                self, 0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype
            )
            self._prepare(out_channels, bias, device, dtype)

    doc = (
        f"A {base.__name__} whose in_channels is that of the first input."
        f"\n\n>>> layer = lucid.nn.Lazy{base.__name__}(3, 1)"
        f"\n>>> _ = layer(lucid.ones{(1, 2, *[4] * base._n)}); layer.in_channels\n2"
    )
    members = {"__init__": __init__, "cls_to_become": base, "__doc__": doc, "__module__": __name__}
    return type(f"Lazy{base.__name__}", (_LazyConv, base), members)


class _LazyNorm(LazyModuleMixin):
    """num_features from the first input."""

    def _prepare(self, affine, track_running_stats, device, dtype, bias):
        self.affine, self.track_running_stats = affine, track_running_stats
        options = {"device": device, "dtype": dtype}
        if affine:
            self.weight = UninitializedParameter(**options)
            if bias:
                self.bias = UninitializedParameter(**options)
        if track_running_stats:
            self.running_mean, self.running_var = UninitializedBuffer(**options), UninitializedBuffer(**options)
            self.num_batches_tracked = _C.tensor(0, dtype=_C.int64, device=device)

    def reset_parameters(self):
        """Start anew, once there is a size."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):  # noqa: A002
        """Take num_features from the input."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[-self._unbatched] if hasattr(self, "_unbatched") else input.shape[1]
        for value in (self.weight, self.bias, self.running_mean, self.running_var):
            if value is not None:
                value.materialize((self.num_features,))
        self.reset_parameters()


def _lazy_norm(base):
    def __init__(self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *, bias=True):
        LazyModuleMixin.__init__(self, 0, eps, momentum, False, False, device, dtype)
        self._prepare(affine, track_running_stats, device, dtype, bias)

    doc = (
        f"A {base.__name__} whose num_features is that of the first input."
        f"\n\n>>> layer = lucid.nn.Lazy{base.__name__}()"
        f"\n>>> _ = layer(lucid.randn{(3, 2, *[4] * int(base.__name__[-2]))}); layer.num_features\n2"
    )
    members = {"__init__": __init__, "cls_to_become": base, "__doc__": doc, "__module__": __name__}
    return type(f"Lazy{base.__name__}", (_LazyNorm, base), members)


_CONVS = [getattr(conv, f"{kind}{n}d") for kind in ("Conv", "ConvTranspose") for n in (1, 2, 3)]
globals().update({f"Lazy{base.__name__}": _lazy_conv(base) for base in _CONVS})
_BATCH = [getattr(normalization, f"BatchNorm{n}d") for n in (1, 2, 3)]
_INSTANCE = [getattr(normalization, f"InstanceNorm{n}d") for n in (1, 2, 3)]
globals().update({f"Lazy{base.__name__}": _lazy_norm(base) for base in (*_BATCH, *_INSTANCE)})

__all__ = ["LazyModuleMixin", "LazyLinear", *(f"Lazy{base.__name__}" for base in (*_CONVS, *_BATCH, *_INSTANCE))]
