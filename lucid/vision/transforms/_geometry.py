"""Turning, shearing and moving pictures: every pixel of the result looks up its place in the picture by an inverse matrix.

Coordinates are those of PIL and torchvision: pixels from the middle of the picture, angles in degrees and counter-clockwise.
"""

import math

from ... import _C
from ...nn import functional as F


def inverse_matrix(center, angle, translate, scale, shear):
    """The six numbers of the matrix that takes a place of the result to its place in the picture.

    >>> from lucid.vision.transforms._geometry import inverse_matrix
    >>> inverse_matrix([0.0, 0.0], 0.0, [2.0, 0.0], 1.0, [0.0, 0.0])
    [1.0, 0.0, -2.0, 0.0, 1.0, 0.0]
    """
    turn, sx, sy = math.radians(angle), math.radians(shear[0]), math.radians(shear[1])
    a = math.cos(turn - sy) / math.cos(sy)
    b = -math.cos(turn - sy) * math.tan(sx) / math.cos(sy) - math.sin(turn)
    c = math.sin(turn - sy) / math.cos(sy)
    d = -math.sin(turn - sy) * math.tan(sx) / math.cos(sy) + math.cos(turn)
    matrix = [d / scale, -b / scale, 0.0, -c / scale, a / scale, 0.0]
    x, y = -center[0] - translate[0], -center[1] - translate[1]
    matrix[2] = matrix[0] * x + matrix[1] * y + center[0]
    matrix[5] = matrix[3] * x + matrix[4] * y + center[1]
    return [v + 0.0 for v in matrix]  # no -0.0


def turned_size(matrix, width, height):
    """The size of the box around a picture after an inverse matrix was applied.

    >>> from lucid.vision.transforms._geometry import inverse_matrix, turned_size
    >>> turned_size(inverse_matrix([0.0, 0.0], 90.0, [0.0, 0.0], 1.0, [0.0, 0.0]), 4, 2)
    (2, 4)
    """
    corners = [(x * width / 2, y * height / 2) for x in (-1, 1) for y in (-1, 1)]
    xs = [matrix[0] * x + matrix[1] * y + matrix[2] for x, y in corners]
    ys = [matrix[3] * x + matrix[4] * y + matrix[5] for x, y in corners]

    def span(values, side):
        low, high = (math.trunc(round(v + side / 2, 5) * 1e4) / 1e4 for v in (min(values), max(values)))
        return math.ceil(high) - math.floor(low)

    return span(xs, width), span(ys, height)


def warp(images, matrix, mode, fill, size=None):
    """Floats (n, c, h, w) seen through an inverse matrix; places outside of the picture get fill, a number per channel or None.

    >>> from lucid.vision.transforms._geometry import warp
    >>> warp(lucid.arange(4.0).view(1, 1, 2, 2), [1.0, 0.0, 1.0, 0.0, 1.0, 0.0], "nearest", None).tolist()
    [[[[1.0, 0.0], [3.0, 0.0]]]]
    """
    n, c, h, w = images.shape
    oh, ow = size or (h, w)
    xs = _C.linspace(-ow / 2 + 0.5, ow / 2 - 0.5, ow, dtype=images.dtype, device=images.device)
    ys = _C.linspace(-oh / 2 + 0.5, oh / 2 - 0.5, oh, dtype=images.dtype, device=images.device)
    places = _C.stack([xs.expand(oh, ow), ys[:, None].expand(oh, ow), _C.ones_like(xs).expand(oh, ow)], -1).view(-1, 3)
    theta = _C.tensor(matrix, dtype=images.dtype, device=images.device).view(2, 3).t()
    theta = theta / _C.tensor([w / 2, h / 2], dtype=images.dtype, device=images.device)
    grid = (places @ theta).view(1, oh, ow, 2).expand(n, oh, ow, 2)
    if fill is None:
        return F.grid_sample(images, grid, mode=mode, padding_mode="zeros", align_corners=False)
    seen = F.grid_sample(_C.cat([images, _C.ones_like(images[:, :1])], 1), grid, mode=mode, align_corners=False)
    images, mask = seen[:, :-1], seen[:, -1:]
    fill = _C.tensor(fill, dtype=images.dtype, device=images.device).view(1, -1, 1, 1)
    if mode == "nearest":
        return _C.where(mask < 0.5, fill.expand_as(images), images)
    return images * mask + (1 - mask) * fill
