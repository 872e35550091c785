"""Turning, shearing, moving and bending pictures: every pixel of the result looks up its place in the picture.

Coordinates are those of PIL and torchvision: pixels from the middle of the picture, angles in degrees and counter-clockwise.
"""

import math

from ... import _C, linalg
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
    h, w = images.shape[-2:]
    oh, ow = size or (h, w)
    xs, ys = _middles(ow, -ow / 2, images), _middles(oh, -oh / 2, images)
    places = _C.stack([xs.expand(oh, ow), ys[:, None].expand(oh, ow), _C.ones_like(xs).expand(oh, ow)], -1).view(-1, 3)
    theta = _C.tensor(matrix, dtype=images.dtype, device=images.device).view(2, 3).t()
    theta = theta / _C.tensor([w / 2, h / 2], dtype=images.dtype, device=images.device)
    return look(images, (places @ theta).view(1, oh, ow, 2), mode, fill)


def _middles(n, start, images):
    """The places of the middles of n pixels of which the first begins at `start`."""
    return _C.linspace(start + 0.5, start + n - 0.5, n, dtype=images.dtype, device=images.device)


def look(images, grid, mode, fill):
    """Floats (n, c, h, w) at the places of a grid (1, oh, ow, 2), in which the picture goes from -1 to 1.

    >>> from lucid.vision.transforms._geometry import look
    >>> look(lucid.arange(4.0).view(1, 1, 2, 2), lucid.tensor([[[[0.5, -0.5], [3.0, 0.0]]]]), "nearest", [7.0]).tolist()
    [[[[1.0, 7.0]]]]
    """
    grid = grid.expand(images.shape[0], -1, -1, -1)
    if fill is None:
        return F.grid_sample(images, grid, mode=mode, padding_mode="zeros", align_corners=False)
    seen = F.grid_sample(_C.cat([images, _C.ones_like(images[:, :1])], 1), grid, mode=mode, align_corners=False)
    images, mask = seen[:, :-1], seen[:, -1:]
    fill = _C.tensor(fill, dtype=images.dtype, device=images.device).view(1, -1, 1, 1)
    if mode == "nearest":
        return _C.where(mask < 0.5, fill.expand_as(images), images)
    return images * mask + (1 - mask) * fill


def perspective_coefficients(startpoints, endpoints):
    """The eight numbers a ... h of the map that takes each of four places of the result to its place in the picture:
    ((a x + b y + c) / (g x + h y + 1), (d x + e y + f) / (g x + h y + 1)).

    >>> from lucid.vision.transforms._geometry import perspective_coefficients
    >>> square = [[0, 0], [4, 0], [4, 4], [0, 4]]
    >>> [round(c, 6) + 0.0 for c in perspective_coefficients(square, square)]
    [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    """
    rows, values = [], []
    for (x, y), (u, v) in zip(endpoints, startpoints):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    a, b = _C.tensor(rows, dtype=_C.float64), _C.tensor(values, dtype=_C.float64)
    return linalg.solve(a, b).to(_C.float32).tolist()


def perspective_warp(images, coefficients, mode, fill):
    """Floats (n, c, h, w) seen through the map of `perspective_coefficients`.

    >>> from lucid.vision.transforms._geometry import perspective_warp
    >>> perspective_warp(lucid.arange(4.0).view(1, 1, 2, 2), [1, 0, 1, 0, 1, 0, 0, 0], "nearest", None).tolist()
    [[[[1.0, 0.0], [3.0, 0.0]]]]
    """
    h, w = images.shape[-2:]
    a, b, c, d, e, f, g, k = coefficients
    x, y = _middles(w, 0, images), _middles(h, 0, images)[:, None]
    below = g * x + k * y + 1.0
    grid = _C.stack([(a * x + b * y + c) / (0.5 * w), (d * x + e * y + f) / (0.5 * h)], -1) / below[..., None] - 1.0
    return look(images, grid[None], mode, fill)


def identity_grid(height, width):
    """The grid (1, height, width, 2) that shows a picture as it is.

    >>> from lucid.vision.transforms._geometry import identity_grid
    >>> identity_grid(1, 2).tolist()
    [[[[-0.5, 0.0], [0.5, 0.0]]]]
    """
    x = _C.linspace((1 - width) / width, (width - 1) / width, width).expand(height, width)
    y = _C.linspace((1 - height) / height, (height - 1) / height, height)[:, None].expand(height, width)
    return _C.stack([x, y], -1)[None]
