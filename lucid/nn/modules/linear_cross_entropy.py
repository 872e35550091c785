"""A linear layer and cross entropy in one."""

import math

from .. import functional as F
from .linear import Linear
from .loss import _WeightedLoss


class LinearCrossEntropyLoss(_WeightedLoss):
    """Cross entropy of a linear layer's output, which is computed chunk by chunk and never stored whole.

    >>> loss = lucid.nn.LinearCrossEntropyLoss(5, 3)
    >>> loss(lucid.ones(4, 5), lucid.tensor([0, 1, 2, 0])).shape
    lucid.Size([])
    """

    def __init__(
        self,
        in_features,
        num_classes,
        *,
        out_features=(),
        bias=False,
        device=None,
        dtype=None,
        reduction="mean",
        weight=None,
        ignore_index=None,
        label_smoothing=0.0,
        options=None,
    ):
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1.0:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, None, None, reduction)
        self.num_classes, self.out_features = num_classes, out_features
        self.ignore_index, self.label_smoothing, self.options = ignore_index, label_smoothing, options
        self.linear = Linear(in_features, math.prod(out_features, start=num_classes), bias, device, dtype)

    def forward(self, input, target):  # noqa: A002
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape((*shape, self.linear.in_features)),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self):
        names = ("num_classes", "out_features", "reduction", "ignore_index", "label_smoothing", "options")
        said = {n: getattr(self, n) for n in names}
        return (
            "in_features={}, num_classes={num_classes}, out_features={out_features}, bias={}, reduction={reduction}, "
            "ignore_index={ignore_index}, label_smoothing={label_smoothing}, options={options}"
        ).format(self.linear.in_features, self.linear.bias is not None, **said)


__all__ = ["LinearCrossEntropyLoss"]
