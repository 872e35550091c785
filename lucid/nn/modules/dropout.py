"""Dropout layers."""

from .. import functional as F
from .module import Module


class _Dropout(Module):
    """Sets values to zero with probability p while training."""

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def extra_repr(self):
        return f"p={self.p}, inplace={self.inplace}"

    def forward(self, input):  # noqa: A002
        return getattr(F, self._function)(input, self.p, self.training, self.inplace)


def _dropout(name, function, doc):
    example = f">>> lucid.nn.{name}(0.5).eval()(lucid.ones(1, 2, 1))\ntensor([[[1.],\n         [1.]]])"
    return type(name, (_Dropout,), {"__doc__": f"{doc}\n\n{example}", "_function": function, "__module__": __name__})


Dropout = _dropout("Dropout", "dropout", "Sets single values to zero with probability p while training; scales the rest up.")
Dropout1d = _dropout("Dropout1d", "dropout1d", "Sets whole channels of sequences to zero with probability p while training.")
Dropout2d = _dropout("Dropout2d", "dropout2d", "Sets whole channels of images to zero with probability p while training.")
Dropout3d = _dropout("Dropout3d", "dropout3d", "Sets whole channels of volumes to zero with probability p while training.")
AlphaDropout = _dropout("AlphaDropout", "alpha_dropout", "Dropout that keeps mean and variance: for SELU networks.")
FeatureAlphaDropout = _dropout(
    "FeatureAlphaDropout", "feature_alpha_dropout", "Dropout of whole channels that keeps mean and variance."
)

_DropoutNd = _Dropout  # PyTorch's name

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]
