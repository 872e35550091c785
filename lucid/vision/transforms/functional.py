"""Functions on pictures. A picture is a tensor (..., channels, height, width) or a PIL image; the result is of the same kind.

Tensors of integers hold 0 ... 255 (of their type's range), floats 0 ... 1. PIL images go through tensors, except where PIL does
the same: sizes, crops and flips. Results are torchvision's.
"""

import math

from ... import _C
from ..._info import iinfo
from ...nn import functional as F
from ._geometry import inverse_matrix, turned_size, warp

_MODES = ("nearest", "nearest-exact", "bilinear", "bicubic")


def is_pil(image):
    """Whether a picture is a PIL image; does not import PIL.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.is_pil(lucid.ones(3, 2, 2))
    False
    """
    return type(image).__module__.partition(".")[0] == "PIL"


def _check(image):
    if not isinstance(image, _C.Tensor):
        raise TypeError(f"a picture is a tensor or a PIL image, not {type(image).__name__}")
    if image.ndim < 2:
        raise TypeError(f"a picture has at least two dimensions, (..., height, width), not shape {tuple(image.shape)}")
    return image


def _on_tensors(function):
    """Let a function of tensors take PIL images, too."""
    import functools

    @functools.wraps(function)
    def either(img, *args, **kwargs):
        if is_pil(img):
            result = function(pil_to_tensor(img), *args, **kwargs)
            return to_pil_image(result, img.mode if len(result) == len(img.getbands()) else None)
        return function(_check(img), *args, **kwargs)

    return either


def _pillow():
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("pictures of this kind need Pillow: pip install pillow") from error
    return Image


def get_dimensions(img):
    """[channels, height, width].

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.get_dimensions(lucid.ones(3, 4, 5))
    [3, 4, 5]
    """
    if is_pil(img):
        return [len(img.getbands()), img.height, img.width]
    _check(img)
    return [img.shape[-3] if img.ndim > 2 else 1, *img.shape[-2:]]


def get_image_size(img):
    """[width, height].

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.get_image_size(lucid.ones(3, 4, 5))
    [5, 4]
    """
    return get_dimensions(img)[:0:-1]


def pil_to_tensor(pic):
    """A PIL image as a tensor (channels, height, width) of its own type, uint8 for most modes.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.pil_to_tensor("a path")
    Traceback (most recent call last):
    TypeError: pic should be PIL Image. Got <class 'str'>
    """
    if not is_pil(pic):
        raise TypeError(f"pic should be PIL Image. Got {type(pic)}")
    dtype = {"I": _C.int32, "F": _C.float32, "I;16": _C.uint16}.get(pic.mode, _C.uint8)
    if pic.mode == "1":
        pic = pic.convert("L")
    flat = _C.frombuffer(bytearray(pic.tobytes()), dtype=dtype)
    return flat.view(pic.height, pic.width, len(pic.getbands())).permute(2, 0, 1).contiguous()


def to_tensor(pic):
    """A PIL image or an array (height, width, channels) as a tensor (channels, height, width); bytes become floats of 0 ... 1.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.to_tensor(lucid.full((1, 1, 2), 255, dtype=lucid.uint8))
    tensor([[[1., 1.]]])
    """
    if is_pil(pic):
        image = pil_to_tensor(pic)
    elif isinstance(pic, _C.Tensor):
        image = pic
    elif type(pic).__module__ == "numpy" and getattr(pic, "ndim", 0) in (2, 3):
        array = _C.from_numpy(pic)
        image = (array[:, :, None] if array.ndim == 2 else array).permute(2, 0, 1).contiguous()
    else:
        raise TypeError(f"pic should be PIL Image, ndarray or Tensor. Got {type(pic)}")
    return image.to(_C.get_default_dtype()) / 255 if image.dtype == _C.uint8 else image


def to_pil_image(pic, mode=None):
    """A tensor (channels, height, width) or (height, width), or an array (height, width, channels), as a PIL image.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.to_pil_image(lucid.ones(7, 4, 5))
    Traceback (most recent call last):
    ValueError: pic should be 2/3 dimensional with at most 4 channels. Got shape (7, 4, 5)
    """
    if type(pic).__module__ == "numpy":
        pic = _C.from_numpy(pic)
        pic = pic if pic.ndim == 2 else pic.permute(2, 0, 1)
    if not isinstance(pic, _C.Tensor):
        raise TypeError(f"pic should be Tensor or ndarray. Got {type(pic)}")
    if pic.ndim == 2:
        pic = pic[None]
    if pic.ndim != 3 or pic.shape[0] > 4:
        raise ValueError(f"pic should be 2/3 dimensional with at most 4 channels. Got shape {tuple(pic.shape)}")
    if pic.dtype.is_floating_point and mode != "F":
        pic = (pic * 255).to(_C.uint8)
    kinds = {
        _C.uint8: (None, "L", "LA", "RGB", "RGBA"),
        _C.int32: (None, "I"),
        _C.float32: (None, "F"),
        _C.int16: (None, "I;16"),
    }
    allowed = kinds.get(pic.dtype, ())
    channels = pic.shape[0]
    if channels >= len(allowed):
        raise TypeError(f"Input type {pic.dtype} with {channels} channels is not supported")
    own = mode if mode and (mode in ("YCbCr", "HSV", "CMYK", "RGBX", "P") and pic.dtype == _C.uint8) else allowed[channels]
    height, width = pic.shape[1:]
    data = bytes(memoryview(pic.detach().cpu().permute(1, 2, 0).contiguous().reshape(-1)))
    image = _pillow().frombytes(own, (width, height), data)
    return image if mode in (None, own) else image.convert(mode)


def _bound(dtype):
    return 1.0 if dtype.is_floating_point else float(iinfo(dtype).max)


def convert_image_dtype(image, dtype=_C.float32):
    """Another type, values scaled to its range.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.convert_image_dtype(lucid.full((1, 1, 2), 51, dtype=lucid.uint8))
    tensor([[[0.2000, 0.2000]]])
    """
    _check(image)
    if image.dtype == dtype:
        return image
    if image.dtype.is_floating_point:
        if dtype.is_floating_point:
            return image.to(dtype)
        return (image * (_bound(dtype) + 1.0 - 1e-3)).to(dtype)
    if dtype.is_floating_point:
        return image.to(dtype) / _bound(image.dtype)
    ours, theirs = int(_bound(image.dtype)), int(_bound(dtype))
    if ours > theirs:
        return _C.div(image, (ours + 1) // (theirs + 1), rounding_mode="floor").to(dtype)
    return image.to(dtype) * ((theirs + 1) // (ours + 1))


def normalize(tensor, mean, std, inplace=False):
    """(tensor - mean) / std, with a number per channel.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.normalize(lucid.ones(1, 1, 2), [0.5], [0.25])
    tensor([[[2., 2.]]])
    """
    _check(tensor)
    if not tensor.dtype.is_floating_point:
        raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
    mean = _C.as_tensor(mean, dtype=tensor.dtype, device=tensor.device)
    std = _C.as_tensor(std, dtype=tensor.dtype, device=tensor.device)
    if (std == 0).any():
        raise ValueError(f"std evaluated to zero after conversion to {tensor.dtype}, leading to division by zero.")
    shape = (-1, 1, 1)
    mean, std = (v.view(shape) if v.ndim == 1 else v for v in (mean, std))
    return (tensor if inplace else tensor.clone()).sub_(mean).div_(std)


def _mode_of(interpolation):
    name = getattr(interpolation, "value", interpolation)
    if name not in _MODES:
        raise ValueError(f"interpolation is one of {', '.join(_MODES)}, not {interpolation!r}")
    return name


def _as_floats(img):
    """(n, c, h, w) of floats, and what makes a result of the picture's type and number of dimensions of it."""
    dtype, shape = img.dtype, img.shape
    lead = shape[:-3]
    flat = img.reshape(-1, *shape[-3:]) if img.ndim > 3 else img[(None,) * (4 - img.ndim)]
    flat = flat if dtype in (_C.float32, _C.float64) else flat.to(_C.float32)

    def back(out):
        if not dtype.is_floating_point:
            out = out.round().clamp(iinfo(dtype).min, iinfo(dtype).max)
        out = out.to(dtype)
        return out.reshape(*lead, *out.shape[1:]) if len(shape) > 3 else out.reshape(*shape[:-2], *out.shape[-2:])

    return flat, back


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
        chosen = {"nearest": 0, "nearest-exact": 0, "bilinear": 2, "bicubic": 3}[mode]
        return img.resize((ow, oh), chosen)
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
    return None if not any(fill) else fill * (channels // len(fill))


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


# --- colours ------------------------------------------------------------------------------------------------------------
def _blend(one, other, ratio):
    bound = _bound(one.dtype)
    return (float(ratio) * one + (1.0 - float(ratio)) * other).clamp(0, bound).to(one.dtype)


def _factor(name, value):
    if value < 0:
        raise ValueError(f"{name} ({value}) is not non-negative.")


def _colours(img, *counts):
    c = get_dimensions(img)[0]
    if c not in counts:
        raise TypeError(f"Input image tensor permitted channel values are {list(counts)}, but found {c}")
    return c


@_on_tensors
def rgb_to_grayscale(img, num_output_channels=1):
    """Grey values of a picture with three channels.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.rgb_to_grayscale(lucid.ones(3, 1, 1)).shape
    lucid.Size([1, 1, 1])
    """
    if num_output_channels not in (1, 3):
        raise ValueError("num_output_channels should be either 1 or 3")
    if _colours(img, 1, 3) == 3:
        r, g, b = img.unbind(-3)
        img = (0.2989 * r + 0.587 * g + 0.114 * b).to(img.dtype).unsqueeze(-3)
    return img.expand(*img.shape[:-3], 3, *img.shape[-2:]) if num_output_channels == 3 else img.clone()


@_on_tensors
def adjust_brightness(img, brightness_factor):
    """0: black, 1: as it is, 2: twice as bright.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.adjust_brightness(lucid.full((1, 1, 1), 0.25), 2.0).item()
    0.5
    """
    _factor("brightness_factor", brightness_factor)
    return _blend(img, _C.zeros_like(img), brightness_factor)


@_on_tensors
def adjust_contrast(img, contrast_factor):
    """0: grey, 1: as it is.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.adjust_contrast(lucid.tensor([[[0.0, 1.0]]]), 0.5).flatten().tolist()
    [0.25, 0.75]
    """
    _factor("contrast_factor", contrast_factor)
    grey = rgb_to_grayscale(img) if _colours(img, 1, 3) == 3 else img
    dtype = img.dtype if img.dtype.is_floating_point else _C.float32
    return _blend(img, grey.to(dtype).mean(dim=(-3, -2, -1), keepdim=True), contrast_factor)


@_on_tensors
def adjust_saturation(img, saturation_factor):
    """0: without colour, 1: as it is.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.adjust_saturation(lucid.tensor([1.0, 0.0, 0.0]).view(3, 1, 1), 1.0).flatten().tolist()
    [1.0, 0.0, 0.0]
    """
    _factor("saturation_factor", saturation_factor)
    return img if _colours(img, 1, 3) == 1 else _blend(img, rgb_to_grayscale(img), saturation_factor)


@_on_tensors
def adjust_hue(img, hue_factor):
    """Colours moved around the wheel; 0.5 and -0.5 are the opposite colour.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.adjust_hue(lucid.tensor([1.0, 0.0, 0.0]).view(3, 1, 1), 1 / 3).flatten().round(decimals=4).tolist()
    [0.0, 1.0, 0.0]
    """
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    if _colours(img, 1, 3) == 1:
        return img
    colours = convert_image_dtype(img, img.dtype if img.dtype.is_floating_point else _C.float32)
    h, s, v = _to_hsv(colours)
    return convert_image_dtype(_from_hsv((h + hue_factor) % 1.0, s, v), img.dtype)


def _to_hsv(img):
    r, g, b = img.unbind(-3)
    most, least = img.amax(-3), img.amin(-3)
    span = most - least
    flat = most == least
    s = span / _C.where(flat, _C.ones_like(most), most)
    divisor = _C.where(flat, _C.ones_like(most), span)
    rc, gc, bc = (most - r) / divisor, (most - g) / divisor, (most - b) / divisor
    h = (most == r) * (bc - gc) + ((most == g) & (most != r)) * (2.0 + rc - bc)
    h = h + ((most != g) & (most != r)) * (4.0 + gc - rc)
    return _C.fmod(h / 6.0 + 1.0, 1.0), s, most


def _from_hsv(h, s, v):
    sector = _C.floor(h * 6.0)
    f = h * 6.0 - sector
    p, q, t = ((v * (1.0 - k)).clamp(0.0, 1.0) for k in (s, s * f, s * (1.0 - f)))
    sector = sector.to(_C.int64) % 6
    table = [(v, t, p), (q, v, p), (p, v, t), (p, q, v), (t, p, v), (v, p, q)]
    channels = [_C.stack([row[c] for row in table]).gather(0, sector[None])[0] for c in range(3)]
    return _C.stack(channels, -3)


@_on_tensors
def adjust_gamma(img, gamma, gain=1):
    """gain * img ** gamma.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.adjust_gamma(lucid.full((1, 1, 1), 0.5), 2.0).item()
    0.25
    """
    _factor("Gamma", gamma)
    result = img if img.dtype.is_floating_point else convert_image_dtype(img, _C.float32)
    return convert_image_dtype((gain * result**gamma).clamp(0, 1), img.dtype)


@_on_tensors
def adjust_sharpness(img, sharpness_factor):
    """0: blurred, 1: as it is, 2: sharper.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.adjust_sharpness(lucid.ones(1, 4, 4), 2.0)[0, 1, 1].item()
    1.0
    """
    _factor("sharpness_factor", sharpness_factor)
    if min(img.shape[-2:]) <= 2:
        return img
    flat, back = _as_floats(img)
    kernel = _C.ones(3, 3, dtype=flat.dtype, device=flat.device)
    kernel[1, 1] = 5.0
    c = flat.shape[1]
    blurred = flat.clone()
    blurred[..., 1:-1, 1:-1] = F.conv2d(flat, (kernel / kernel.sum()).expand(c, 1, 3, 3), groups=c)
    return _blend(img, back(blurred), sharpness_factor)


@_on_tensors
def invert(img):
    """Bright and dark exchanged.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.invert(lucid.full((1, 1, 1), 55, dtype=lucid.uint8)).item()
    200
    """
    return (_bound(img.dtype) if img.dtype.is_floating_point else int(_bound(img.dtype))) - img


@_on_tensors
def posterize(img, bits):
    """The upper bits of each value.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.posterize(lucid.full((1, 1, 1), 255, dtype=lucid.uint8), 2).item()
    192
    """
    if img.dtype != _C.uint8:
        raise TypeError(f"Only torch.uint8 image tensors are supported, but found {img.dtype}")
    return img & (256 - 2 ** (8 - bits)) if bits else _C.zeros_like(img)


@_on_tensors
def solarize(img, threshold):
    """Values from the threshold on are inverted.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.solarize(lucid.tensor([[[10, 200]]], dtype=lucid.uint8), 128).flatten().tolist()
    [10, 55]
    """
    if threshold > _bound(img.dtype):
        raise TypeError("Threshold should be less than bound of img.")
    return _C.where(img >= threshold, invert(img), img)


@_on_tensors
def autocontrast(img):
    """Each channel stretched over the whole range.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.autocontrast(lucid.tensor([[[0.25, 0.75]]])).flatten().tolist()
    [0.0, 1.0]
    """
    _colours(img, 1, 3)
    bound = _bound(img.dtype)
    values = img if img.dtype.is_floating_point else img.to(_C.float32)
    low, high = values.amin(dim=(-2, -1), keepdim=True), values.amax(dim=(-2, -1), keepdim=True)
    flat = low == high
    scale = _C.where(flat, _C.ones_like(low), bound / (high - low))
    return ((values - _C.where(flat, _C.zeros_like(low), low)) * scale).clamp(0, bound).to(img.dtype)


def _equalized(plane):
    counts = _C.bincount(plane.reshape(-1).to(_C.int64), minlength=256)
    used = counts[counts != 0]
    step = int(used[:-1].sum()) // 255
    if step == 0:
        return plane
    table = _C.div(counts.cumsum(0) + step // 2, step, rounding_mode="floor")
    table = F.pad(table, (1, 0))[:-1].clamp(0, 255)
    return table[plane.to(_C.int64)].to(_C.uint8)


@_on_tensors
def equalize(img):
    """Values spread so that all are used alike often, in each channel.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.equalize(lucid.arange(0, 64, dtype=lucid.uint8).view(1, 8, 8)).shape
    lucid.Size([1, 8, 8])
    """
    if img.dtype != _C.uint8:
        raise TypeError(f"Only torch.uint8 image tensors are supported, but found {img.dtype}")
    _colours(img, 1, 3)
    planes = img.reshape(-1, *img.shape[-2:])
    return _C.stack([_equalized(p) for p in planes]).view(img.shape)


def degrees_of_shear(amount):
    """The angle of a shear that moves a line by `amount` of its distance.

    >>> from lucid.vision.transforms import functional as TF
    >>> round(TF.degrees_of_shear(1.0))
    45
    """
    return math.degrees(math.atan(amount))
