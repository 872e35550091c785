"""Layers that rearrange values: flatten, shuffle, fold, resize; and distances."""

from .. import functional as F
from ._base.layer import layer
from .module import Module

PixelShuffle = layer(
    "PixelShuffle",
    "pixel_shuffle",
    "upscale_factor",
    "upscale_factor={upscale_factor}",
    "Channels as pixels: (C r², H, W) becomes (C, H r, W r)."
    "\n\n>>> tuple(lucid.nn.PixelShuffle(2)(lucid.ones(1, 4, 3, 3)).shape)\n(1, 1, 6, 6)",
)
PixelUnshuffle = layer(
    "PixelUnshuffle",
    "pixel_unshuffle",
    "downscale_factor",
    "downscale_factor={downscale_factor}",
    "Pixels as channels: (C, H r, W r) becomes (C r², H, W)."
    "\n\n>>> tuple(lucid.nn.PixelUnshuffle(2)(lucid.ones(1, 1, 6, 6)).shape)\n(1, 4, 3, 3)",
)
ChannelShuffle = layer(
    "ChannelShuffle",
    "channel_shuffle",
    "groups",
    "groups={groups}",
    "Channels dealt out anew among groups."
    "\n\n>>> lucid.nn.ChannelShuffle(2)(lucid.arange(4.0).reshape(1, 4, 1)).flatten()\ntensor([0., 2., 1., 3.])",
)
CosineSimilarity = layer(
    "CosineSimilarity",
    "cosine_similarity",
    "dim=1, eps=1e-8",
    "",
    "The cosine of the angle between vectors."
    "\n\n>>> lucid.nn.CosineSimilarity()(lucid.tensor([[1.0, 0.0]]), lucid.tensor([[1.0, 1.0]]))\ntensor([0.7071])",
    inputs="x1, x2",
)
Fold = layer(
    "Fold",
    "fold",
    "output_size, kernel_size, dilation=1, padding=0, stride=1",
    "output_size={output_size}, kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}",
    "Windows summed into an image.\n\n>>> tuple(lucid.nn.Fold((4, 4), 2, stride=2)(lucid.ones(1, 12, 4)).shape)\n(1, 3, 4, 4)",
)
Unfold = layer(
    "Unfold",
    "unfold",
    "kernel_size, dilation=1, padding=0, stride=1",
    "kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}",
    "All windows of an image as columns.\n\n>>> tuple(lucid.nn.Unfold(2)(lucid.ones(1, 3, 4, 4)).shape)\n(1, 12, 9)",
)


class Flatten(Module):
    """Several dimensions as one; the batch stays.

    >>> tuple(lucid.nn.Flatten()(lucid.ones(3, 2, 5)).shape)
    (3, 10)
    """

    __constants__ = ["start_dim", "end_dim"]

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input):  # noqa: A002
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self):
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class PairwiseDistance(Module):
    """The distance of vectors, pair by pair.

    >>> lucid.nn.PairwiseDistance()(lucid.zeros(1, 2), lucid.tensor([[3.0, 4.0]]))
    tensor([5.0000])
    """

    __constants__ = ["norm", "eps", "keepdim"]

    def __init__(self, p=2.0, eps=1e-6, keepdim=False):
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1, x2):
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class Unflatten(Module):
    """One dimension as several.

    >>> tuple(lucid.nn.Unflatten(1, (2, 5, 5))(lucid.ones(3, 50)).shape)
    (3, 2, 5, 5)
    """

    def __init__(self, dim, unflattened_size):
        super().__init__()
        if isinstance(dim, int):
            if not isinstance(unflattened_size, (tuple, list)):
                raise TypeError(f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}")
            for at, n in enumerate(unflattened_size):
                if not isinstance(n, int):
                    raise TypeError(
                        f"unflattened_size must be tuple of ints, but found element of type {type(n).__name__} at pos {at}"
                    )
        elif isinstance(dim, str):
            raise NotImplementedError("Unflatten: named dimensions are not supported")
        else:
            raise TypeError("invalid argument combination for Unflatten")
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input):  # noqa: A002
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self):
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Upsample(Module):
    """An image made larger (or smaller), by size or by factor.

    >>> lucid.nn.Upsample(scale_factor=2)(lucid.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    __constants__ = ["size", "scale_factor", "mode", "align_corners", "name", "recompute_scale_factor"]

    def __init__(self, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None):
        super().__init__()
        self.name = type(self).__name__
        self.size, self.mode, self.align_corners = size, mode, align_corners
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple(float(f) for f in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input):  # noqa: A002
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self):
        what = f"scale_factor={self.scale_factor!r}" if self.scale_factor is not None else f"size={self.size!r}"
        return f"{what}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Nearest-neighbour upsampling of an image.

    >>> tuple(lucid.nn.UpsamplingNearest2d(scale_factor=2)(lucid.ones(1, 1, 2, 2)).shape)
    (1, 1, 4, 4)
    """

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Bilinear upsampling of an image.

    >>> tuple(lucid.nn.UpsamplingBilinear2d(scale_factor=2)(lucid.ones(1, 1, 2, 2)).shape)
    (1, 1, 4, 4)
    """

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


__all__ = [
    "ChannelShuffle",
    "CosineSimilarity",
    "Flatten",
    "Fold",
    "PairwiseDistance",
    "PixelShuffle",
    "PixelUnshuffle",
    "Unflatten",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]
