"""Networks that YOLO stands on, with the layers of Darknet's configurations; keys are Lucid's own.

A chain of layers is a table: (outputs, kernel, stride) is a convolution with normalisation and activation, "M" a maximum
over 2x2 places with stride 2, "m" with stride 1. `maps` of a network gives its results of increasing stride.
"""

import functools

from .... import _C, nn
from ....nn import functional as F
from ..blocks import ConvNormAct

leaky = functools.partial(nn.LeakyReLU, 0.1)


def conv(inputs, outputs, kernel=1, stride=1, act=leaky):
    """A convolution with normalisation and activation.

    >>> from lucid.models.vision.detection.darknet import conv
    >>> tuple(conv(2, 4, 3, 2)(lucid.zeros(1, 2, 8, 8)).shape)
    (1, 4, 4, 4)
    """
    return ConvNormAct(inputs, outputs, kernel, stride, act=act)


class _MaxSame(nn.Module):  # a maximum over 2x2 places that keeps the size
    def forward(self, x):
        return F.max_pool2d(F.pad(x, (0, 1, 0, 1), value=float("-inf")), 2, 1)


def chain(inputs, rows, act=leaky):
    """Layers by a table, one after another.

    >>> from lucid.models.vision.detection.darknet import chain
    >>> tuple(chain(3, ((4, 3), "M", (8, 1)))(lucid.zeros(1, 3, 8, 8)).shape)
    (1, 8, 4, 4)
    """
    layers = []
    for row in rows:
        if isinstance(row, str):
            layers.append(nn.MaxPool2d(2, 2) if row == "M" else _MaxSame())
        else:
            layers.append(conv(inputs, *row, act=act))
            inputs = row[0]
    return nn.Sequential(*layers)


def _pairs(outputs, count):
    """Wide 3x3 convolutions with narrow 1x1 ones between them."""
    return [(outputs, 3), (outputs // 2, 1)] * count + [(outputs, 3)]


class Darknet19(nn.Module):
    """The maps of strides 16 and 32 of YOLO v2.

    >>> from lucid.models.vision.detection.darknet import Darknet19
    >>> [tuple(x.shape[1:]) for x in Darknet19(3)(lucid.zeros(2, 3, 32, 32))]
    [(512, 2, 2), (1024, 1, 1)]
    """

    def __init__(self, inputs):
        super().__init__()
        rows = [(32, 3), "M", (64, 3), "M", *_pairs(128, 1), "M", *_pairs(256, 1), "M", *_pairs(512, 2)]
        self.first, self.second = chain(inputs, rows), chain(512, ["M", *_pairs(1024, 2)])

    def forward(self, x):
        x = self.first(x)
        return [x, self.second(x)]


class TinyDarknet(nn.Module):
    """The maps of strides 16 and 32 of the tiny YOLO v2 and v3.

    >>> from lucid.models.vision.detection.darknet import TinyDarknet
    >>> [tuple(x.shape[1:]) for x in TinyDarknet(3)(lucid.zeros(2, 3, 32, 32))]
    [(256, 2, 2), (1024, 1, 1)]
    """

    def __init__(self, inputs):
        super().__init__()
        rows = [row for width in (16, 32, 64, 128) for row in ((width, 3), "M")]
        self.first, self.second = chain(inputs, [*rows, (256, 3)]), chain(256, ["M", (512, 3), "m", (1024, 3)])

    def forward(self, x):
        x = self.first(x)
        return [x, self.second(x)]


class _Residual(nn.Module):
    def __init__(self, width, inner, act=leaky):
        super().__init__()
        self.layers = chain(width, [(inner, 1), (width, 3)], act)

    def forward(self, x):
        return x + self.layers(x)


class Darknet53(nn.Module):
    """The maps of strides 8, 16 and 32 of YOLO v3.

    >>> from lucid.models.vision.detection.darknet import Darknet53
    >>> [x.shape[1] for x in Darknet53(3, (1, 1, 1, 1, 1))(lucid.zeros(2, 3, 32, 32))]
    [256, 512, 1024]
    """

    def __init__(self, inputs, depths=(1, 2, 8, 8, 4)):
        super().__init__()
        self.stem, stages = conv(inputs, 32, 3), []
        for i, depth in enumerate(depths):
            width = 64 << i
            blocks = [_Residual(width, width // 2) for _ in range(depth)]
            stages.append(nn.Sequential(conv(width // 2, width, 3, 2), *blocks))
        self.stages = nn.ModuleList(stages)

    def forward(self, x):
        x, found = self.stem(x), []
        for stage in self.stages:
            x = stage(x)
            found.append(x)
        return found[-3:]


class _CSPStage(nn.Module):  # half of the channels go through the blocks, half around them
    def __init__(self, inputs, width, depth, whole=False):
        super().__init__()
        part = width if whole else width // 2
        act = nn.Mish
        self.down = conv(inputs, width, 3, 2, act)
        self.around, self.through = conv(width, part, act=act), conv(width, part, act=act)
        self.blocks = nn.Sequential(*(_Residual(part, part // 2 if whole else part, act) for _ in range(depth)))
        self.after, self.out = conv(part, part, act=act), conv(2 * part, width, act=act)

    def forward(self, x):
        x = self.down(x)
        return self.out(_C.cat([self.after(self.blocks(self.through(x))), self.around(x)], 1))


class CSPDarknet53(nn.Module):
    """The maps of strides 8, 16 and 32 of YOLO v4.

    >>> from lucid.models.vision.detection.darknet import CSPDarknet53
    >>> [x.shape[1] for x in CSPDarknet53(3, (1, 1, 1, 1, 1))(lucid.zeros(2, 3, 32, 32))]
    [256, 512, 1024]
    """

    def __init__(self, inputs, depths=(1, 2, 8, 8, 4)):
        super().__init__()
        self.stem = conv(inputs, 32, 3, act=nn.Mish)
        self.stages = nn.ModuleList(_CSPStage(32 << i, 64 << i, depth, not i) for i, depth in enumerate(depths))

    forward = Darknet53.forward


class Passthrough(nn.Module):
    """YOLO v2's neck: the finer map, four places as channels of one, beside the coarser one.

    >>> from lucid.models.vision.detection.darknet import Passthrough
    >>> [tuple(x.shape) for x in Passthrough(5)([lucid.zeros(2, 512, 2, 2), lucid.zeros(2, 1024, 1, 1)])]
    [(2, 5, 1, 1)]
    """

    def __init__(self, outputs):
        super().__init__()
        self.deep, self.side = chain(1024, [(1024, 3), (1024, 3)]), conv(512, 64)
        self.head = nn.Sequential(conv(1280, 1024, 3), nn.Conv2d(1024, outputs, 1))

    def forward(self, maps):
        side = F.pixel_unshuffle(self.side(maps[0]), 2)
        return [self.head(_C.cat([side, self.deep(maps[1])], 1))]


class Plain(nn.Module):
    """The neck of the tiny YOLO v2: the coarser map alone.

    >>> from lucid.models.vision.detection.darknet import Plain
    >>> [tuple(x.shape) for x in Plain(5)([None, lucid.zeros(2, 1024, 1, 1)])]
    [(2, 5, 1, 1)]
    """

    def __init__(self, outputs):
        super().__init__()
        self.head = nn.Sequential(conv(1024, 512, 3), nn.Conv2d(512, outputs, 1))

    def forward(self, maps):
        return [self.head(maps[1])]


def _enlarged(x):
    return F.interpolate(x, scale_factor=2, mode="nearest")


class TinyPyramid(nn.Module):
    """The neck of the tiny YOLO v3: results of strides 16 and 32.

    >>> from lucid.models.vision.detection.darknet import TinyPyramid
    >>> [tuple(x.shape[1:]) for x in TinyPyramid(5)([lucid.zeros(2, 256, 2, 2), lucid.zeros(2, 1024, 1, 1)])]
    [(5, 2, 2), (5, 1, 1)]
    """

    def __init__(self, outputs):
        super().__init__()
        self.narrow, self.up = conv(1024, 256), conv(256, 128)
        self.coarse = nn.Sequential(conv(256, 512, 3), nn.Conv2d(512, outputs, 1))
        self.fine = nn.Sequential(conv(384, 256, 3), nn.Conv2d(256, outputs, 1))

    def forward(self, maps):
        x = self.narrow(maps[1])
        return [self.fine(_C.cat([_enlarged(self.up(x)), maps[0]], 1)), self.coarse(x)]


def _five(inputs, width):
    return chain(inputs, [(width, 1), (2 * width, 3), (width, 1), (2 * width, 3), (width, 1)])


def _head(width, outputs):
    return nn.Sequential(conv(width, 2 * width, 3), nn.Conv2d(2 * width, outputs, 1))


class TopDown(nn.Module):
    """YOLO v3's neck: results of strides 8, 16 and 32, the coarser maps told to the finer ones.

    >>> from lucid.models.vision.detection.darknet import TopDown
    >>> maps = [lucid.zeros(2, 256 << i, 4 >> i, 4 >> i) for i in range(3)]
    >>> [tuple(x.shape[1:]) for x in TopDown(5)(maps)]
    [(5, 4, 4), (5, 2, 2), (5, 1, 1)]
    """

    def __init__(self, outputs):
        super().__init__()
        self.fives = nn.ModuleList([_five(1024, 512), _five(768, 256), _five(384, 128)])
        self.ups = nn.ModuleList([conv(512, 256), conv(256, 128)])
        self.heads = nn.ModuleList([_head(512, outputs), _head(256, outputs), _head(128, outputs)])

    def forward(self, maps):
        found, x = [], maps[2]
        for i, (five, head) in enumerate(zip(self.fives, self.heads)):
            if i:
                x = _C.cat([_enlarged(self.ups[i - 1](x)), maps[2 - i]], 1)
            x = five(x)
            found.insert(0, head(x))
        return found


class PathAggregation(nn.Module):
    """YOLO v4's neck: maxima over several distances, then down to the finest map and up again.

    >>> from lucid.models.vision.detection.darknet import PathAggregation
    >>> maps = [lucid.zeros(2, 256 << i, 4 >> i, 4 >> i) for i in range(3)]
    >>> [tuple(x.shape[1:]) for x in PathAggregation(5)(maps)]
    [(5, 4, 4), (5, 2, 2), (5, 1, 1)]
    """

    def __init__(self, outputs):
        super().__init__()
        self.before = chain(1024, [(512, 1), (1024, 3), (512, 1)])
        self.after = chain(2048, [(512, 1), (1024, 3), (512, 1)])
        self.ups = nn.ModuleList([conv(512, 256), conv(256, 128)])
        self.sides = nn.ModuleList([conv(512, 256), conv(256, 128)])
        self.down_fives = nn.ModuleList([_five(512, 256), _five(256, 128)])
        self.downs = nn.ModuleList([conv(128, 256, 3, 2), conv(256, 512, 3, 2)])
        self.up_fives = nn.ModuleList([_five(512, 256), _five(1024, 512)])
        self.heads = nn.ModuleList([_head(128, outputs), _head(256, outputs), _head(512, outputs)])

    def forward(self, maps):
        x = self.before(maps[2])
        x = self.after(_C.cat([F.max_pool2d(x, k, 1, k // 2) for k in (13, 9, 5)] + [x], 1))
        kept = [x]
        for up, side, five, finer in zip(self.ups, self.sides, self.down_fives, maps[1::-1]):
            x = five(_C.cat([side(finer), _enlarged(up(x))], 1))
            kept.append(x)
        found = [self.heads[0](x)]
        for down, five, coarser, head in zip(self.downs, self.up_fives, kept[1::-1], list(self.heads)[1:]):
            x = five(_C.cat([down(x), coarser], 1))
            found.append(head(x))
        return found
