"""What pictures are: PIL images and tensors, made of each other; their size, type and values.

Tensors of integers hold 0 ... 255 (of their type's range), floats 0 ... 1.
"""

import enum

from ... import _C
from ..._info import iinfo


class InterpolationMode(enum.Enum):
    """How a picture is seen between its pixels; the words and Pillow's numbers are accepted, too.

    The last three are for PIL images.

    >>> from lucid.vision import transforms as T
    >>> T.InterpolationMode.BILINEAR.value
    'bilinear'
    """

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


# name: Pillow's number
_MODES = {"nearest": 0, "nearest-exact": 0, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5, "lanczos": 1}
_OF_TENSORS = tuple(_MODES)[:4]
_BY_NUMBER = {number: name for name, number in _MODES.items() if name != "nearest-exact"}


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


def get_image_num_channels(img):
    """The number of channels.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.get_image_num_channels(lucid.ones(3, 4, 5))
    3
    """
    return get_dimensions(img)[0]


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
    name = _BY_NUMBER.get(name, name) if isinstance(name, int) else name
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
