"""Functions that change the colours of pictures."""

from ... import _C
from ...nn import functional as F
from ._pictures import _as_floats, _bound, _on_tensors, convert_image_dtype, get_dimensions, is_pil


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


def to_grayscale(img, num_output_channels=1):
    """A PIL image of any mode in grey; `rgb_to_grayscale` takes tensors.

    >>> from lucid.vision.transforms import functional as TF
    >>> TF.to_grayscale(lucid.ones(3, 1, 1))
    Traceback (most recent call last):
    TypeError: Input should be PIL Image
    """
    if not is_pil(img):
        raise TypeError("Input should be PIL Image")
    if num_output_channels not in (1, 3):
        raise ValueError("num_output_channels should be either 1 or 3")
    grey = img.convert("L")
    return grey if num_output_channels == 1 else grey.convert("RGB")


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
