"""Blocks of networks that make images, under diffusers' keys: residual blocks that hear the time, attention over places,
changes of size.
"""

import math

from .... import _C, nn
from ....nn import functional as F


def time_vector(t, width, cosines_first=True, shift=0.0):
    """Sines and cosines of times: (batch,) numbers to (batch, width).

    >>> from lucid.models.vision.generative.blocks import time_vector
    >>> time_vector(lucid.tensor([0]), 4)
    tensor([[1., 1., 0., 0.]])
    """
    half = width // 2
    rates = _C.exp(-math.log(10000) / (half - shift) * _C.arange(half, dtype=_C.float32, device=t.device))
    angles = t[:, None].to(_C.float32) * rates[None, :]
    parts = [angles.cos(), angles.sin()] if cosines_first else [angles.sin(), angles.cos()]
    vector = _C.cat(parts, -1)
    return F.pad(vector, (0, 1)) if width % 2 else vector


class ResBlock(nn.Module):
    """Two convolutions with group normalisation before them; a projected time is added between.

    >>> from lucid.models.vision.generative.blocks import ResBlock
    >>> tuple(ResBlock(8, 16, groups=4)(lucid.zeros(1, 8, 4, 4)).shape)
    (1, 16, 4, 4)
    """

    def __init__(self, inputs, outputs, time=None, groups=32, eps=1e-6, dropout=0.0, act=F.silu):
        super().__init__()
        self.act = act
        self.norm1, self.conv1 = nn.GroupNorm(groups, inputs, eps), nn.Conv2d(inputs, outputs, 3, padding=1)
        if time is not None:
            self.time_emb_proj = nn.Linear(time, outputs)
        self.norm2, self.dropout = nn.GroupNorm(groups, outputs, eps), nn.Dropout(dropout)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.conv_shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else None

    def forward(self, x, time=None):
        y = self.conv1(self.act(self.norm1(x)))
        if time is not None:
            y = y + self.time_emb_proj(self.act(time))[:, :, None, None]
        y = self.conv2(self.dropout(self.act(self.norm2(y))))
        return y + (x if self.conv_shortcut is None else self.conv_shortcut(x))


class PlaceAttention(nn.Module):
    """Attention of all places of a map over all others, added to the map.

    >>> from lucid.models.vision.generative.blocks import PlaceAttention
    >>> tuple(PlaceAttention(8, 2, groups=4)(lucid.zeros(1, 8, 4, 4)).shape)
    (1, 8, 4, 4)
    """

    def __init__(self, width, heads=1, groups=32, eps=1e-6):
        super().__init__()
        if width % heads:
            raise ValueError(f"{width} channels are not a multiple of {heads} heads")
        self.heads, self.group_norm = heads, nn.GroupNorm(groups, width, eps)
        self.to_q, self.to_k, self.to_v = (nn.Linear(width, width) for _ in range(3))
        self.to_out = nn.ModuleList([nn.Linear(width, width), nn.Dropout(0.0)])

    def forward(self, x):
        batch, channels, height, width = x.shape
        y = self.group_norm(x).flatten(2).transpose(1, 2)
        q, k, v = (
            layer(y).view(batch, -1, self.heads, channels // self.heads).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        y = self.to_out[0](F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + y.transpose(1, 2).reshape(batch, channels, height, width)


class Halve(nn.Module):
    """A map of half the size, by a convolution; padding 0: one row and column are added below and to the right.

    >>> from lucid.models.vision.generative.blocks import Halve
    >>> tuple(Halve(8)(lucid.zeros(1, 8, 4, 4)).shape)
    (1, 8, 2, 2)
    """

    def __init__(self, width, padding=1):
        super().__init__()
        self.conv, self.padding = nn.Conv2d(width, width, 3, 2, padding), padding

    def forward(self, x):
        return self.conv(x if self.padding else F.pad(x, (0, 1, 0, 1)))


class Double(nn.Module):
    """A map of twice the size: every place four times, then a convolution.

    >>> from lucid.models.vision.generative.blocks import Double
    >>> tuple(Double(8)(lucid.zeros(1, 8, 2, 2)).shape)
    (1, 8, 4, 4)
    """

    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return self.conv(F.interpolate(x, scale_factor=2.0, mode="nearest"))


class Stage(nn.Module):
    """Residual blocks of one size, with attention after each if there are heads, and a change of size at the end.

    >>> from lucid.models.vision.generative.blocks import ResBlock, Stage
    >>> list(Stage([ResBlock(8, 8, groups=4)], [], downsamplers=None)._modules)
    ['resnets']
    """

    def __init__(self, resnets, attentions, **resizers):
        super().__init__()
        if attentions:
            self.attentions = nn.ModuleList(attentions)
        self.resnets, self.attends, self.resizer = nn.ModuleList(resnets), bool(attentions), None
        for name, layer in resizers.items():
            if layer is not None:
                setattr(self, name, nn.ModuleList([layer]))
                self.resizer = name

    def steps(self, x, time=None, joined=None):
        """The map after every block, and after the change of size; joined: maps to put beside the inputs, last first."""
        found = []
        for i, resnet in enumerate(self.resnets):
            x = resnet(x if joined is None else _C.cat([x, joined.pop()], 1), time)
            if self.attends:
                x = self.attentions[i](x)
            found.append(x)
        if self.resizer is not None:
            found.append(getattr(self, self.resizer)[0](x))
        return found


class Middle(nn.Module):
    """A residual block, attention, a residual block.

    >>> from lucid.models.vision.generative.blocks import Middle
    >>> tuple(Middle(8, groups=4)(lucid.zeros(1, 8, 2, 2)).shape)
    (1, 8, 2, 2)
    """

    def __init__(self, width, time=None, heads=1, groups=32, eps=1e-6, dropout=0.0):
        super().__init__()
        self.attentions = nn.ModuleList([PlaceAttention(width, heads, groups, eps)])
        self.resnets = nn.ModuleList([ResBlock(width, width, time, groups, eps, dropout) for _ in range(2)])

    def forward(self, x, time=None):
        return self.resnets[1](self.attentions[0](self.resnets[0](x, time)), time)
