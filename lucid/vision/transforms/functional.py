"""Functions on pictures. A picture is a tensor (..., channels, height, width) or a PIL image; the result is of the same kind.

PIL images go through tensors, except where PIL does the same: sizes, crops and flips. Results are torchvision's.
"""

import math

from ... import _C
from ...nn import functional as F
from ._colours import (
    adjust_brightness,
    adjust_contrast,
    adjust_gamma,
    adjust_hue,
    adjust_saturation,
    adjust_sharpness,
    autocontrast,
    equalize,
    invert,
    posterize,
    rgb_to_grayscale,
    solarize,
    to_grayscale,
)
from ._geometry import identity_grid, inverse_matrix, look, perspective_coefficients, perspective_warp, turned_size, warp
from ._pictures import (
    _MODES,
    _OF_TENSORS,
    InterpolationMode,
    _as_floats,
    _check,
    _mode_of,
    _on_tensors,
    convert_image_dtype,
    get_dimensions,
    get_image_num_channels,
    get_image_size,
    is_pil,
    normalize,
    pil_to_tensor,
    to_pil_image,
    to_tensor,
)

__all__ = [
    "adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue", "adjust_saturation", "adjust_sharpness",
    "affine", "autocontrast", "center_crop", "convert_image_dtype", "crop", "elastic_transform", "equalize", "erase",
    "five_crop", "gaussian_blur", "get_dimensions", "get_image_num_channels", "get_image_size", "hflip", "invert",
    "is_pil", "normalize", "pad", "perspective", "pil_to_tensor", "posterize", "resize", "resized_crop",
    "rgb_to_grayscale", "rotate", "solarize", "ten_crop", "to_grayscale", "to_pil_image", "to_tensor", "vflip",
    "InterpolationMode",
]  # fmt: skip


def _output_size(height, width, size, max_size):
    size = [size] if isinstance(size, int) else list(size)
    if len(size) == 2:
        if max_size is not None:
            raise ValueError("max_size should only be passed if size specifies the length of the smaller edge, i.e. is an int")
        return size
    if len(size) != 1:
        raise ValueError(f"size is one number or (height, width), not {size}")
    short, long = sorted((height, width))
    new_short, new_long = size[0], int(size[0] * long / short)
    if max_size is not None:
        if max_size <= size[0]:
            raise ValueError(f"max_size = {max_size} must be greater than the requested size for the smaller edge, {size[0]}")
        if new_long > max_size:
            new_short, new_long = int(max_size * new_short / new_long), max_size
    return [new_long, new_short] if height > width else [new_short, new_long]


def resize(img, size, interpolation="bilinear", max_size=None, antialias=True):
    """Another size: (height, width), or the length of the shorter side. antialias: pixels that fall together are averaged.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.resize(lucid.rand(3, 20, 40), 10).shape
    lucid.Size([3, 10, 20])
    """
    _, h, w = get_dimensions(img)
    oh, ow = _output_size(h, w, size, max_size)
    mode = _mode_of(interpolation)
    if is_pil(img):
        return img.resize((ow, oh), _MODES[mode])
    if mode not in _OF_TENSORS:
        raise ValueError(f"tensors are resized with {', '.join(_OF_TENSORS)}; {mode} is for PIL images")
    if (oh, ow) == (h, w):
        return img
    flat, back = _as_floats(img)
    smooth = mode in ("bilinear", "bicubic")
    options = {"align_corners": False, "antialias": bool(antialias)} if smooth else {}
    return back(F.interpolate(flat, size=(oh, ow), mode=mode, **options))


def _four(padding):
    padding = [padding] if isinstance(padding, int) else list(padding)
    if len(padding) not in (1, 2, 4):
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(padding)} element tuple")
    left, top, right, bottom = padding * (4 // len(padding)) if len(padding) < 4 else padding
    return left, top, right, bottom


@_on_tensors
def pad(img, padding, fill=0, padding_mode="constant"):
    """More pixels at the sides: a number, (sides, top and bottom) or (left, top, right, bottom).

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.pad(lucid.ones(1, 1, 1), 1).tolist()
    [[[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]]
    """
    left, top, right, bottom = _four(padding)
    if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
    if padding_mode == "constant":
        fill = list(fill) if isinstance(fill, (list, tuple)) else [fill]
        if len(fill) == 1:
            return F.pad(img, (left, right, top, bottom), value=fill[0])
        planes = [F.pad(p, (left, right, top, bottom), value=v) for p, v in zip(img.unbind(-3), fill)]
        return _C.stack(planes, -3)
    rows = _source_places(img.shape[-2], top, bottom, padding_mode)
    columns = _source_places(img.shape[-1], left, right, padding_mode)
    return img.index_select(-2, rows.to(img.device)).index_select(-1, columns.to(img.device))


def _source_places(n, before, after, mode):
    """Which row (or column) of the picture each row of a padded one repeats."""
    places = []
    for i in range(-before, n + after):
        if mode == "edge":
            i = min(max(i, 0), n - 1)
        elif mode == "reflect":
            if not -n < i < 2 * n - 1:
                raise ValueError(f"padding {max(before, after)} is too large to reflect a side of {n}")
            i = -i if i < 0 else 2 * n - 2 - i if i >= n else i
        else:
            i %= 2 * n
            i = 2 * n - 1 - i if i >= n else i
        places.append(i)
    return _C.tensor(places, dtype=_C.int64)


def crop(img, top, left, height, width):
    """A part; what lies outside of the picture is 0.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.crop(lucid.arange(9).view(1, 3, 3), 1, 1, 2, 2).tolist()
    [[[4, 5], [7, 8]]]
    """
    if is_pil(img):
        return img.crop((left, top, left + width, top + height))
    _check(img)
    h, w = img.shape[-2:]
    part = img[..., max(top, 0) : max(top + height, 0), max(left, 0) : max(left + width, 0)]
    if left < 0 or top < 0 or left + width > w or top + height > h:
        sides = [max(-left, 0), max(-top, 0), max(left + width - max(w, left), 0), max(top + height - max(h, top), 0)]
        sides = [min(s, n) for s, n in zip(sides, (width, height, width, height))]
        part = pad(part, [sides[0], sides[1], width - part.shape[-1] - sides[0], height - part.shape[-2] - sides[1]])
    return part


def _pair(size):
    if isinstance(size, int):
        return size, size
    size = list(size)
    if len(size) not in (1, 2):
        raise ValueError(f"size is one number or (height, width), not {size}")
    return (size * 2)[:2]


def center_crop(img, output_size):
    """The middle of the picture; smaller pictures are padded with 0.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.center_crop(lucid.arange(9).view(1, 3, 3), 1).tolist()
    [[[4]]]
    """
    height, width = _pair(output_size)
    _, h, w = get_dimensions(img)
    if width > w or height > h:
        left, top = max((width - w) // 2, 0), max((height - h) // 2, 0)
        img = pad(img, [left, top, max((width - w + 1) // 2, 0), max((height - h + 1) // 2, 0)])
        _, h, w = get_dimensions(img)
        if (width, height) == (w, h):
            return img
    return crop(img, int(round((h - height) / 2.0)), int(round((w - width) / 2.0)), height, width)


def resized_crop(img, top, left, height, width, size, interpolation="bilinear", antialias=True):
    """A part in another size.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.resized_crop(lucid.rand(3, 9, 9), 0, 0, 4, 4, [8, 8]).shape
    lucid.Size([3, 8, 8])
    """
    return resize(crop(img, top, left, height, width), size, interpolation, antialias=antialias)


def hflip(img):
    """Left and right exchanged.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.hflip(lucid.arange(3).view(1, 1, 3)).tolist()
    [[[2, 1, 0]]]
    """
    return img.transpose(0) if is_pil(img) else _check(img).flip(-1)


def vflip(img):
    """Up and down exchanged.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.vflip(lucid.arange(3).view(1, 3, 1)).flatten().tolist()
    [2, 1, 0]
    """
    return img.transpose(1) if is_pil(img) else _check(img).flip(-2)


def five_crop(img, size):
    """The four corners and the middle.

    >>> from lucid.vision.transforms import functional as TF
    >>> [int(part) for part in TF.five_crop(lucid.arange(9).view(1, 3, 3), 1)]
    [0, 2, 6, 8, 4]
    """
    height, width = _pair(size)
    _, h, w = get_dimensions(img)
    if width > w or height > h:
        raise ValueError(f"Requested crop size {(height, width)} is bigger than input size {(h, w)}")
    places = [(0, 0), (0, w - width), (h - height, 0), (h - height, w - width)]
    return (*(crop(img, t, left, height, width) for t, left in places), center_crop(img, [height, width]))


def ten_crop(img, size, vertical_flip=False):
    """`five_crop` of the picture and of the flipped one.

    >>> from lucid.vision.transforms import functional as TF
    >>> len(TF.ten_crop(lucid.rand(3, 8, 8), 4))
    10
    """
    return five_crop(img, size) + five_crop(vflip(img) if vertical_flip else hflip(img), size)


def _fill_of(fill, channels):
    if fill is None:
        return None
    fill = [float(fill)] if isinstance(fill, (int, float)) else [float(f) for f in fill]
    if len(fill) not in (1, channels):
        raise ValueError(f"The number of elements in 'fill' does not match the number of channels: {len(fill)} != {channels}")
    return fill * (channels // len(fill))


def _warp_mode(interpolation):
    mode = _mode_of(interpolation)
    if mode not in ("nearest", "bilinear"):
        raise ValueError(f"turned pictures are seen with nearest or bilinear, not {mode}")
    return mode


@_on_tensors
def rotate(img, angle, interpolation="nearest", expand=False, center=None, fill=None):
    """Turned counter-clockwise by an angle in degrees. expand: the whole picture is kept, in a larger one.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.rotate(lucid.arange(4.0).view(1, 2, 2), 90).tolist()
    [[[1.0, 3.0], [0.0, 2.0]]]
    """
    channels, h, w = get_dimensions(img)
    middle = [0.0, 0.0] if center is None else [center[0] - w * 0.5, center[1] - h * 0.5]
    matrix = inverse_matrix(middle, -angle, [0.0, 0.0], 1.0, [0.0, 0.0])
    size = turned_size(matrix, w, h)[::-1] if expand else None
    flat, back = _as_floats(img)
    return back(warp(flat, matrix, _warp_mode(interpolation), _fill_of(fill, channels), size))


@_on_tensors
def affine(img, angle, translate, scale, shear, interpolation="nearest", fill=None, center=None):
    """Turned, moved (in pixels), scaled and sheared (degrees) around the middle or `center`.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.affine(lucid.arange(4.0).view(1, 2, 2), 0, [1, 0], 1.0, [0.0, 0.0]).tolist()
    [[[0.0, 0.0], [0.0, 2.0]]]
    """
    if scale <= 0:
        raise ValueError("Argument scale should be positive")
    shear = [shear, 0.0] if isinstance(shear, (int, float)) else list(shear)
    shear = shear * 2 if len(shear) == 1 else shear
    channels, h, w = get_dimensions(img)
    middle = [0.0, 0.0] if center is None else [center[0] - w * 0.5, center[1] - h * 0.5]
    matrix = inverse_matrix(middle, angle, [1.0 * t for t in translate], scale, shear)
    flat, back = _as_floats(img)
    return back(warp(flat, matrix, _warp_mode(interpolation), _fill_of(fill, channels)))


@_on_tensors
def perspective(img, startpoints, endpoints, interpolation="bilinear", fill=None):
    """Seen from another side: the four startpoints (x, y) of the picture come to lie on the endpoints.

    >>> from lucid.vision.transforms import functional as TF
    >>> corners = [[0, 0], [3, 0], [3, 3], [0, 3]]
    >>> TF.perspective(lucid.ones(1, 4, 4), corners, [[1, 1], [3, 0], [3, 3], [0, 3]], "nearest")[0, 0].tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    if len(startpoints) != 4 or len(endpoints) != 4:
        raise ValueError(
            f"Please provide exactly four corners, got {len(startpoints)} startpoints and {len(endpoints)} endpoints."
        )
    flat, back = _as_floats(img)
    fill = _fill_of(fill, get_dimensions(img)[0])
    return back(perspective_warp(flat, perspective_coefficients(startpoints, endpoints), _warp_mode(interpolation), fill))


@_on_tensors
def elastic_transform(img, displacement, interpolation="bilinear", fill=None):
    """Every pixel looks up a place beside its own: displacement (1, height, width, 2) says where, the picture being 2 wide.

    >>> from lucid.vision.transforms import functional as TF
    >>> right = lucid.tensor([1.0, 0.0]).expand(1, 1, 2, 2)
    >>> TF.elastic_transform(lucid.tensor([[[3.0, 5.0]]]), right).tolist()
    [[[5.0, 0.0]]]
    """
    if not isinstance(displacement, _C.Tensor):
        raise TypeError("Argument displacement should be a Tensor")
    channels, h, w = get_dimensions(img)
    if tuple(displacement.shape) != (1, h, w, 2):
        raise ValueError(f"Argument displacement shape should be {(1, h, w, 2)}, but given {tuple(displacement.shape)}")
    flat, back = _as_floats(img)
    grid = (identity_grid(h, w).to(flat.device) + displacement.to(flat.device)).to(flat.dtype)
    return back(look(flat, grid, _warp_mode(interpolation), _fill_of(fill, channels)))


@_on_tensors
def gaussian_blur(img, kernel_size, sigma=None):
    """Blurred by a Gaussian of kernel_size (odd numbers, one or (x, y)) and width sigma.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.gaussian_blur(lucid.ones(1, 5, 5), 3)[0, 2].round(decimals=4).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    sizes = _pair(kernel_size)
    if any(k <= 0 or k % 2 == 0 for k in sizes):
        raise ValueError(f"kernel_size should have odd and positive integers. Got {sizes}")
    if sigma is None:
        sigma = [k * 0.15 + 0.35 for k in sizes]
    sigma = [float(sigma)] * 2 if isinstance(sigma, (int, float)) else [float(s) for s in sigma] * (2 // len(sigma))
    if any(s <= 0 for s in sigma):
        raise ValueError(f"sigma should have positive values. Got {sigma}")
    flat, back = _as_floats(img)
    kernels = []
    for k, s in zip(sizes, sigma):
        x = _C.linspace(-(k - 1) * 0.5, (k - 1) * 0.5, k, dtype=flat.dtype, device=flat.device)
        weights = _C.exp(-0.5 * (x / s) ** 2)
        kernels.append(weights / weights.sum())
    c = flat.shape[1]
    kernel = (kernels[1][:, None] @ kernels[0][None]).expand(c, 1, sizes[1], sizes[0])
    padded = F.pad(flat, (sizes[0] // 2, sizes[0] // 2, sizes[1] // 2, sizes[1] // 2), mode="reflect")
    return back(F.conv2d(padded, kernel, groups=c))


def erase(img, i, j, h, w, v, inplace=False):
    """A part overwritten with v.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.erase(lucid.ones(1, 2, 2), 0, 0, 1, 1, 0.0).tolist()
    [[[0.0, 1.0], [1.0, 1.0]]]
    """
    if is_pil(img):
        raise TypeError("erase takes tensors: use it after ToTensor")
    img = _check(img) if inplace else _check(img).clone()
    img[..., i : i + h, j : j + w] = v
    return img


def degrees_of_shear(amount):
    """The angle of a shear that moves a line by `amount` of its distance.

    >>> from lucid.vision.transforms import functional as TF
    >>> round(TF.degrees_of_shear(1.0))
    45
    """
    return math.degrees(math.atan(amount))
