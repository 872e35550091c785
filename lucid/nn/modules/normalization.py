"""Normalisation layers."""

from ... import _C
from .. import functional as F
from .. import init
from ..parameter import Parameter, is_lazy
from ._base.layer import layer
from .module import Module

LocalResponseNorm = layer(
    "LocalResponseNorm",
    "local_response_norm",
    "size, alpha=1e-4, beta=0.75, k=1.0",
    "{size}, alpha={alpha}, beta={beta}, k={k}",
    "Divides by the strength of neighbouring channels."
    "\n\n>>> tuple(lucid.nn.LocalResponseNorm(2)(lucid.ones(1, 4, 3)).shape)\n(1, 4, 3)",
)


class _NormBase(Module):
    """Statistics per channel, shared by batch and instance norms."""

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    def __init__(self, num_features, eps, momentum, affine, track_running_stats, device, dtype, bias):
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        options = {"device": device, "dtype": dtype}
        for name, there in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, Parameter(_C.empty(num_features, **options)) if there else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", _C.zeros(num_features, **options) if tracked else None)
        self.register_buffer("running_var", _C.ones(num_features, **options) if tracked else None)
        self.register_buffer("num_batches_tracked", _C.tensor(0, dtype=_C.int64, device=device) if tracked else None)
        self.reset_parameters()

    def reset_running_stats(self):
        """Start the running statistics anew: mean 0, variance 1."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        """Start anew: weight 1, bias 0."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input):  # noqa: A002
        raise NotImplementedError

    def _expect(self, input, *dims):  # noqa: A002
        if input.dim() not in dims:
            raise ValueError(f"expected {' or '.join(f'{d}D' for d in dims)} input (got {input.dim()}D input)")

    def extra_repr(self):
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        version = local_metadata.get("version", None)
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            own = self.num_batches_tracked
            state_dict[key] = own if own is not None and own.device.type != "meta" else _C.tensor(0, dtype=_C.int64)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)


class _BatchNorm(_NormBase):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *, bias=True
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input):  # noqa: A002
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean of all batches so far
                factor = 1.0 / float(self.num_batches_tracked)
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        running = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if running else None,
            self.running_var if running else None,
            self.weight,
            self.bias,
            by_batch,
            factor,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Mean 0 and variance 1 per channel over a batch of vectors or sequences; running statistics in eval mode.

    >>> tuple(lucid.nn.BatchNorm1d(3)(lucid.randn(4, 3)).shape)
    (4, 3)
    """

    def _check_input_dim(self, input):  # noqa: A002
        self._expect(input, 2, 3)


class BatchNorm2d(_BatchNorm):
    """Mean 0 and variance 1 per channel over a batch of images; running statistics in eval mode.

    >>> norm = lucid.nn.BatchNorm2d(3)
    >>> y = norm(lucid.randn(4, 3, 5, 5))
    >>> int(norm.num_batches_tracked)
    1
    """

    def _check_input_dim(self, input):  # noqa: A002
        self._expect(input, 4)


class BatchNorm3d(_BatchNorm):
    """Mean 0 and variance 1 per channel over a batch of volumes; running statistics in eval mode.

    >>> tuple(lucid.nn.BatchNorm3d(3)(lucid.randn(4, 3, 2, 2, 2)).shape)
    (4, 3, 2, 2, 2)
    """

    def _check_input_dim(self, input):  # noqa: A002
        self._expect(input, 5)


class SyncBatchNorm(_BatchNorm):
    """Mean 0 and variance 1 per channel over the batches of all processes. Here there is one process, and this is a batch norm
    for any number of dimensions.

    >>> norm = lucid.nn.SyncBatchNorm(3)
    >>> tuple(norm(lucid.randn(4, 3, 5)).shape)
    (4, 3, 5)
    """

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        process_group=None,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input):  # noqa: A002
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """The module with its batch norms, at any depth, made into these; parameters and statistics stay the same tensors.

        >>> lucid.nn.SyncBatchNorm.convert_sync_batchnorm(lucid.nn.Sequential(lucid.nn.BatchNorm1d(2)))[0]
        SyncBatchNorm(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
        """
        made = module
        if isinstance(module, _BatchNorm):
            settings = module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats
            made = cls(*settings, process_group, bias=module.bias is not None)
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked", "training"):
                setattr(made, name, getattr(module, name))
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            stale = [k for k in ("running_mean", "running_var") if prefix + k in state_dict]
            if stale:
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {' and '.join(repr(prefix + k) for k in stale)} for "
                    f"{type(self).__name__} with "
                    "track_running_stats=False. If state_dict is a checkpoint saved before 0.4.0, this may be expected because "
                    f"{type(self).__name__} does not track running stats by default since 0.4.0."
                )
                for k in stale:
                    state_dict.pop(prefix + k)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def forward(self, input):  # noqa: A002
        self._check_input_dim(input)
        at = input.dim() - self._unbatched
        if not is_lazy(self.weight) and input.size(at) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={at} to match num_features ({self.num_features}), but got: {input.size(at)}."
                )
            import warnings

            warnings.warn(
                f"input's size at dim={at} does not match num_features. You can silence this warning by not passing in "
                "num_features, which is not used because affine=False",
                stacklevel=2,
            )
        if input.dim() == self._unbatched:
            return self._normalised(input.unsqueeze(0)).squeeze(0)
        return self._normalised(input)

    def _normalised(self, input):  # noqa: A002
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )

    def _check_input_dim(self, input):  # noqa: A002
        self._expect(input, self._unbatched, self._unbatched + 1)


class InstanceNorm1d(_InstanceNorm):
    """Mean 0 and variance 1 for each channel of each sequence.

    >>> tuple(lucid.nn.InstanceNorm1d(3)(lucid.randn(4, 3, 5)).shape)
    (4, 3, 5)
    """

    _unbatched = 2


class InstanceNorm2d(_InstanceNorm):
    """Mean 0 and variance 1 for each channel of each image.

    >>> tuple(lucid.nn.InstanceNorm2d(3)(lucid.randn(4, 3, 5, 5)).shape)
    (4, 3, 5, 5)
    """

    _unbatched = 3


class InstanceNorm3d(_InstanceNorm):
    """Mean 0 and variance 1 for each channel of each volume.

    >>> tuple(lucid.nn.InstanceNorm3d(3)(lucid.randn(4, 3, 2, 2, 2)).shape)
    (4, 3, 2, 2, 2)
    """

    _unbatched = 4


def _shape(normalized_shape):
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


class LayerNorm(Module):
    """Mean 0 and variance 1 over the last dimensions of each example.

    >>> lucid.nn.LayerNorm(3)(lucid.tensor([[1.0, 2.0, 3.0]])).detach()
    tensor([[-1.2247,  0.0000,  1.2247]])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape, self.eps, self.elementwise_affine = _shape(normalized_shape), eps, elementwise_affine
        for name, there in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            value = Parameter(_C.empty(self.normalized_shape, device=device, dtype=dtype)) if there else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self):
        """Start anew: weight 1, bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input):  # noqa: A002
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Mean square 1 over the last dimensions of each example.

    >>> lucid.nn.RMSNorm(2)(lucid.tensor([[3.0, 3.0]])).detach()
    tensor([[1., 1.]])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape, self.eps, self.elementwise_affine = _shape(normalized_shape), eps, elementwise_affine
        there = elementwise_affine
        self.register_parameter(
            "weight", Parameter(_C.empty(self.normalized_shape, device=device, dtype=dtype)) if there else None
        )
        self.reset_parameters()

    def reset_parameters(self):
        """Start anew: weight 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x):
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Mean 0 and variance 1 over groups of channels of each example.

    >>> tuple(lucid.nn.GroupNorm(3, 6)(lucid.randn(20, 6, 10)).shape)
    (20, 6, 10)
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, *, bias=True):
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        for name, there in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, Parameter(_C.empty(num_channels, device=device, dtype=dtype)) if there else None)
        self.reset_parameters()

    reset_parameters = LayerNorm.reset_parameters

    def forward(self, input):  # noqa: A002
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LocalResponseNorm",
    "RMSNorm",
    "SyncBatchNorm",
]
