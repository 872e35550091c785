"""Transforms with settings: modules, so that they can be listed, printed and put into `nn.Sequential`.

Random ones draw from the default generator in torchvision's order: from the same seed they do the same. `RandomChoice` and
`RandomOrder` draw from Python's `random`, as there.
"""

import math
import random

from ... import _C
from ...nn import Module
from . import functional as TF


class Compose:
    """Several transforms, one after the other.

    >>> from lucid.vision import transforms as T
    >>> T.Compose([T.CenterCrop(2), T.Grayscale()])(lucid.rand(3, 4, 4)).shape
    lucid.Size([1, 2, 2])
    """

    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, img):
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self):
        return "Compose(\n" + "".join(f"    {t}\n" for t in self.transforms) + ")"


def _plain(name, function, parameters="", doc=""):
    """A class whose call is a function of pictures with settings by position: `parameters` is the text of its `__init__`'s."""
    names = [p.split("=")[0].strip() for p in parameters.split(",") if p.strip()]
    lines = [f"def __init__(self{', ' if parameters else ''}{parameters}):", "    super(cls, self).__init__()"]
    lines += [f"    self.{n} = {n}" for n in names]
    lines += ["def forward(self, img):", f"    return function({', '.join(['img', *(f'self.{n}' for n in names)])})"]
    scope = {"function": function}
    exec("\n".join(lines), scope)  # noqa: S102 (text of this file's calls only)
    members = {k: scope[k] for k in ("__init__", "forward")}
    members["extra_repr"] = lambda self: ", ".join(f"{n}={getattr(self, n)}" for n in names)
    cls = scope["cls"] = type(name, (Module,), {"__doc__": doc, "__module__": __name__, **members})
    return cls


_EXAMPLE = "\n\n>>> from lucid.vision import transforms as T\n>>> T."
ToTensor = _plain(
    "ToTensor",
    TF.to_tensor,
    doc=f"{TF.to_tensor.__doc__.split(chr(10))[0]}{_EXAMPLE}ToTensor()(lucid.ones(1, 1, 1)).item()\n1.0\n",
)
PILToTensor = _plain(
    "PILToTensor", TF.pil_to_tensor, doc=f"A PIL image as a tensor of its type.{_EXAMPLE}PILToTensor()\nPILToTensor()\n"
)
ToPILImage = _plain(
    "ToPILImage",
    TF.to_pil_image,
    "mode=None",
    f"A tensor or array as a PIL image.{_EXAMPLE}ToPILImage()\nToPILImage(mode=None)\n",
)
ConvertImageDtype = _plain(
    "ConvertImageDtype",
    TF.convert_image_dtype,
    "dtype",
    f"Another type, values scaled to its range.{_EXAMPLE}ConvertImageDtype(lucid.uint8)(lucid.ones(1, 1, 1)).item()\n255\n",
)
Normalize = _plain(
    "Normalize",
    TF.normalize,
    "mean, std, inplace=False",
    f"(picture - mean) / std, per channel.{_EXAMPLE}Normalize([0.5], [0.25])(lucid.ones(1, 1, 1)).item()\n2.0\n",
)
Resize = _plain(
    "Resize",
    TF.resize,
    "size, interpolation='bilinear', max_size=None, antialias=True",
    f"Another size: (height, width), or the shorter side's length.{_EXAMPLE}Resize(4)(lucid.rand(3, 8, 16)).shape\nlucid.Size([3, 4, 8])\n",
)
CenterCrop = _plain(
    "CenterCrop",
    TF.center_crop,
    "size",
    f"The middle.{_EXAMPLE}CenterCrop(4)(lucid.rand(3, 8, 16)).shape\nlucid.Size([3, 4, 4])\n",
)
FiveCrop = _plain("FiveCrop", TF.five_crop, "size", f"The corners and the middle.{_EXAMPLE}FiveCrop(2)\nFiveCrop(size=2)\n")
TenCrop = _plain(
    "TenCrop",
    TF.ten_crop,
    "size, vertical_flip=False",
    f"The corners and the middle, of the flipped picture too.{_EXAMPLE}TenCrop(2)\nTenCrop(size=2, vertical_flip=False)\n",
)
Pad = _plain(
    "Pad",
    TF.pad,
    "padding, fill=0, padding_mode='constant'",
    f"More pixels at the sides.{_EXAMPLE}Pad(1)(lucid.ones(1, 2, 2)).shape\nlucid.Size([1, 4, 4])\n",
)
Grayscale = _plain(
    "Grayscale",
    TF.rgb_to_grayscale,
    "num_output_channels=1",
    f"Grey values.{_EXAMPLE}Grayscale(3)(lucid.rand(3, 2, 2)).shape\nlucid.Size([3, 2, 2])\n",
)


class Lambda:
    """A function of your own as a transform.

    >>> from lucid.vision import transforms as T
    >>> T.Lambda(lambda x: 2 * x)(lucid.ones(1)).item()
    2.0
    """

    def __init__(self, lambd):
        if not callable(lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(lambd).__name__!r}")
        self.lambd = lambd

    def __call__(self, img):
        return self.lambd(img)

    def __repr__(self):
        return "Lambda()"


def _uniform(low, high):
    """One number, drawn as torchvision draws it."""
    return float(_C.empty(1).uniform_(float(low), float(high)))


def _chance(p):
    return bool(_C.rand(1) < p)


def _sometimes(name, function, parameters="", doc=""):
    """A class that applies a function with probability p, its last setting."""
    base = _plain(name, function, parameters)
    names = [n.split("=")[0].strip() for n in parameters.split(",") if n.strip()]
    text = f"def __init__(self, {parameters + ', ' if parameters else ''}p=0.5):\n    start(self{''.join(', ' + n for n in names)})\n    self.p = p"
    scope = {"start": base.__init__}
    exec(text, scope)  # noqa: S102
    apply = base.forward
    members = {
        "__doc__": doc,
        "__init__": scope["__init__"],
        "forward": lambda self, img: apply(self, img) if _chance(self.p) else img,
        "extra_repr": lambda self: ", ".join(f"{n}={getattr(self, n)}" for n in [*names, "p"]),
    }
    return type(name, (base,), {"__module__": __name__, **members})


def _one(shape, text):
    return f"{_EXAMPLE}{text}.shape\nlucid.Size({shape})\n"


RandomHorizontalFlip = _sometimes(
    "RandomHorizontalFlip",
    TF.hflip,
    doc="Flipped left to right." + _one([1, 2, 2], "RandomHorizontalFlip()(lucid.ones(1, 2, 2))"),
)
RandomVerticalFlip = _sometimes(
    "RandomVerticalFlip", TF.vflip, doc="Flipped upside down." + _one([1, 2, 2], "RandomVerticalFlip()(lucid.ones(1, 2, 2))")
)
RandomInvert = _sometimes(
    "RandomInvert", TF.invert, doc="Bright and dark exchanged." + _one([1, 2, 2], "RandomInvert()(lucid.ones(1, 2, 2))")
)
RandomPosterize = _sometimes(
    "RandomPosterize",
    TF.posterize,
    "bits",
    f"The upper bits of each value.{_EXAMPLE}RandomPosterize(4)\nRandomPosterize(bits=4, p=0.5)\n",
)
RandomSolarize = _sometimes(
    "RandomSolarize",
    TF.solarize,
    "threshold",
    "Values from the threshold on inverted." + _one([1, 2, 2], "RandomSolarize(0.5)(lucid.ones(1, 2, 2))"),
)
RandomAdjustSharpness = _sometimes(
    "RandomAdjustSharpness",
    TF.adjust_sharpness,
    "sharpness_factor",
    "Sharper or blurred." + _one([1, 4, 4], "RandomAdjustSharpness(2)(lucid.ones(1, 4, 4))"),
)
RandomAutocontrast = _sometimes(
    "RandomAutocontrast",
    TF.autocontrast,
    doc="Stretched contrast." + _one([1, 2, 2], "RandomAutocontrast()(lucid.ones(1, 2, 2))"),
)
RandomEqualize = _sometimes(
    "RandomEqualize", TF.equalize, doc=f"Values used alike often.{_EXAMPLE}RandomEqualize()\nRandomEqualize(p=0.5)\n"
)


class RandomGrayscale(Module):
    """Grey with probability p, in as many channels as before.

    >>> from lucid.vision import transforms as T
    >>> T.RandomGrayscale(1.0)(lucid.rand(3, 2, 2)).shape
    lucid.Size([3, 2, 2])
    """

    def __init__(self, p=0.1):
        super().__init__()
        self.p = p

    def forward(self, img):
        channels = TF.get_dimensions(img)[0]
        return TF.rgb_to_grayscale(img, channels) if _chance(self.p) else img

    def extra_repr(self):
        return f"p={self.p}"


class RandomApply(Module):
    """Several transforms, all or none of them.

    >>> from lucid.vision import transforms as T
    >>> T.RandomApply([T.Pad(1)], p=1.0)(lucid.ones(1, 1, 1)).shape
    lucid.Size([1, 3, 3])
    """

    def __init__(self, transforms, p=0.5):
        super().__init__()
        self.transforms, self.p = transforms, p

    def forward(self, img):
        if self.p < _C.rand(1):
            return img
        for transform in self.transforms:
            img = transform(img)
        return img


class RandomChoice:
    """One of several transforms; p: a weight for each.

    >>> from lucid.vision import transforms as T
    >>> T.RandomChoice([T.Pad(1), T.Pad(2)], p=[1, 0])(lucid.ones(1, 1, 1)).shape
    lucid.Size([1, 3, 3])
    """

    def __init__(self, transforms, p=None):
        if p is not None and len(p) != len(transforms):
            raise ValueError(f"p has {len(p)} weights for {len(transforms)} transforms")
        self.transforms, self.p = transforms, p

    def __call__(self, img):
        return random.choices(self.transforms, weights=self.p)[0](img)


class RandomOrder:
    """Several transforms in an order that is drawn.

    >>> from lucid.vision import transforms as T
    >>> T.RandomOrder([T.Pad(1), T.Pad(2)])(lucid.ones(1, 1, 1)).shape
    lucid.Size([1, 7, 7])
    """

    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, img):
        order = list(range(len(self.transforms)))
        random.shuffle(order)
        for i in order:
            img = self.transforms[i](img)
        return img


class RandomCrop(Module):
    """A part of a size at a random place, after padding.

    >>> from lucid.vision import transforms as T
    >>> T.RandomCrop(4, padding=1)(lucid.rand(3, 4, 4)).shape
    lucid.Size([3, 4, 4])
    """

    def __init__(self, size, padding=None, pad_if_needed=False, fill=0, padding_mode="constant"):
        super().__init__()
        self.size, self.padding, self.pad_if_needed = TF._pair(size), padding, pad_if_needed
        self.fill, self.padding_mode = fill, padding_mode

    @staticmethod
    def get_params(img, output_size):
        _, h, w = TF.get_dimensions(img)
        th, tw = output_size
        if h < th or w < tw:
            raise ValueError(f"Required crop size {(th, tw)} is larger than input image size {(h, w)}")
        if (w, h) == (tw, th):
            return 0, 0, h, w
        return int(_C.randint(0, h - th + 1, (1,))), int(_C.randint(0, w - tw + 1, (1,))), th, tw

    def forward(self, img):
        if self.padding is not None:
            img = TF.pad(img, self.padding, self.fill, self.padding_mode)
        _, h, w = TF.get_dimensions(img)
        if self.pad_if_needed and w < self.size[1]:
            img = TF.pad(img, [self.size[1] - w, 0], self.fill, self.padding_mode)
        if self.pad_if_needed and h < self.size[0]:
            img = TF.pad(img, [0, self.size[0] - h], self.fill, self.padding_mode)
        return TF.crop(img, *self.get_params(img, self.size))

    def extra_repr(self):
        return f"size={self.size}, padding={self.padding}"


class RandomResizedCrop(Module):
    """A part of random area and shape, in one size: how networks on photographs are trained.

    >>> from lucid.vision import transforms as T
    >>> T.RandomResizedCrop(8)(lucid.rand(3, 20, 30)).shape
    lucid.Size([3, 8, 8])
    """

    def __init__(self, size, scale=(0.08, 1.0), ratio=(3 / 4, 4 / 3), interpolation="bilinear", antialias=True):
        super().__init__()
        self.size, self.scale, self.ratio = TF._pair(size), scale, ratio
        self.interpolation, self.antialias = interpolation, antialias

    @staticmethod
    def get_params(img, scale, ratio):
        _, height, width = TF.get_dimensions(img)
        low, high = _C.log(_C.tensor(ratio)).tolist()
        for _ in range(10):
            area = height * width * _uniform(*scale)
            aspect = float(_C.exp(_C.empty(1).uniform_(low, high)))
            w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if 0 < w <= width and 0 < h <= height:
                return int(_C.randint(0, height - h + 1, (1,))), int(_C.randint(0, width - w + 1, (1,))), h, w
        shape, (w, h) = width / height, (width, height)  # the middle, of a shape as near as possible
        if shape < min(ratio):
            h = round(w / min(ratio))
        elif shape > max(ratio):
            w = round(h * max(ratio))
        return (height - h) // 2, (width - w) // 2, h, w

    def forward(self, img):
        place = self.get_params(img, self.scale, self.ratio)
        return TF.resized_crop(img, *place, self.size, self.interpolation, antialias=self.antialias)

    def extra_repr(self):
        return f"size={self.size}, scale={self.scale}, ratio={self.ratio}, interpolation={self.interpolation}"


def _range(value, name, center=1.0, bound=(0.0, float("inf"))):
    if isinstance(value, (int, float)):
        if value < 0:
            raise ValueError(f"If {name} is a single number, it must be non negative.")
        value = [center - float(value), center + float(value)]
        if bound[0] == 0.0:
            value[0] = max(value[0], 0.0)
    low, high = value
    if not bound[0] <= low <= high <= bound[1]:
        raise ValueError(f"{name} values should be between {bound[0]} and {bound[1]}, but got {value}.")
    return None if low == high == center else (float(low), float(high))


class ColorJitter(Module):
    """Brightness, contrast, saturation and hue changed at random, in a random order.

    >>> from lucid.vision import transforms as T
    >>> T.ColorJitter(brightness=0.2, hue=0.1)(lucid.rand(3, 4, 4)).shape
    lucid.Size([3, 4, 4])
    """

    def __init__(self, brightness=0, contrast=0, saturation=0, hue=0):
        super().__init__()
        self.brightness, self.contrast = _range(brightness, "brightness"), _range(contrast, "contrast")
        self.saturation, self.hue = _range(saturation, "saturation"), _range(hue, "hue", 0.0, (-0.5, 0.5))

    @staticmethod
    def get_params(brightness, contrast, saturation, hue):
        """The order of the four changes, and their factors (None: as it is)."""
        order = _C.randperm(4)
        return order, *(None if r is None else _uniform(*r) for r in (brightness, contrast, saturation, hue))

    def forward(self, img):
        order, *amounts = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        steps = (TF.adjust_brightness, TF.adjust_contrast, TF.adjust_saturation, TF.adjust_hue)
        for i in order.tolist():
            if amounts[i] is not None:
                img = steps[i](img, amounts[i])
        return img

    def extra_repr(self):
        return f"brightness={self.brightness}, contrast={self.contrast}, saturation={self.saturation}, hue={self.hue}"


def _angles(value, name):
    if isinstance(value, (int, float)):
        if value < 0:
            raise ValueError(f"If {name} is a single number, it must be positive.")
        return [-float(value), float(value)]
    return [float(v) for v in value]


class RandomRotation(Module):
    """Turned by a random angle, at most `degrees` or between two numbers.

    >>> from lucid.vision import transforms as T
    >>> T.RandomRotation(10)(lucid.rand(3, 4, 4)).shape
    lucid.Size([3, 4, 4])
    """

    def __init__(self, degrees, interpolation="nearest", expand=False, center=None, fill=0):
        super().__init__()
        self.degrees, self.interpolation, self.expand = _angles(degrees, "degrees"), interpolation, expand
        self.center, self.fill = center, fill

    @staticmethod
    def get_params(degrees):
        """The angle."""
        return _uniform(*degrees)

    def forward(self, img):
        return TF.rotate(img, self.get_params(self.degrees), self.interpolation, self.expand, self.center, self.fill)

    def extra_repr(self):
        return f"degrees={self.degrees}, interpolation={self.interpolation}, expand={self.expand}"


class RandomAffine(Module):
    """Turned, moved (parts of the size), scaled and sheared at random.

    >>> from lucid.vision import transforms as T
    >>> T.RandomAffine(10, translate=(0.1, 0.1), scale=(0.9, 1.1), shear=5)(lucid.rand(3, 8, 8)).shape
    lucid.Size([3, 8, 8])
    """

    def __init__(self, degrees, translate=None, scale=None, shear=None, interpolation="nearest", fill=0, center=None):
        super().__init__()
        self.degrees, self.translate, self.scale = _angles(degrees, "degrees"), translate, scale
        self.shear = None if shear is None else _angles(shear, "shear")
        self.interpolation, self.fill, self.center = interpolation, fill, center

    @staticmethod
    def get_params(degrees, translate, scale_ranges, shears, img_size):
        """(angle, translation in pixels, scale, shear angles) for a picture of size (width, height)."""
        angle, moved = _uniform(*degrees), (0, 0)
        if translate is not None:
            moved = tuple(round(_uniform(-n * part, n * part)) for n, part in zip(img_size, translate))
        scale = 1.0 if scale_ranges is None else _uniform(*scale_ranges)
        pairs = [] if shears is None else [shears[:2], shears[2:]]
        return angle, moved, scale, tuple(_uniform(*p) if len(p) else 0.0 for p in pairs) or (0.0, 0.0)

    def forward(self, img):
        drawn = self.get_params(self.degrees, self.translate, self.scale, self.shear, TF.get_image_size(img))
        return TF.affine(img, *drawn, self.interpolation, self.fill, self.center)

    def extra_repr(self):
        return f"degrees={self.degrees}, translate={self.translate}, scale={self.scale}, shear={self.shear}"


class GaussianBlur(Module):
    """Blurred with a random width.

    >>> from lucid.vision import transforms as T
    >>> T.GaussianBlur(3)(lucid.rand(3, 8, 8)).shape
    lucid.Size([3, 8, 8])
    """

    def __init__(self, kernel_size, sigma=(0.1, 2.0)):
        super().__init__()
        self.kernel_size = TF._pair(kernel_size)
        self.sigma = (sigma, sigma) if isinstance(sigma, (int, float)) else sigma

    @staticmethod
    def get_params(sigma_min, sigma_max):
        """The width."""
        return _uniform(sigma_min, sigma_max)

    def forward(self, img):
        width = self.get_params(*self.sigma)
        return TF.gaussian_blur(img, self.kernel_size, [width, width])

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, sigma={self.sigma}"


class RandomErasing(Module):
    """A random part overwritten with a value, a value per channel, or noise ("random"): for tensors.

    >>> from lucid.vision import transforms as T
    >>> bool((T.RandomErasing(1.0)(lucid.ones(3, 8, 8)) == 0).any())
    True
    """

    def __init__(self, p=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0, inplace=False):
        super().__init__()
        if isinstance(value, str) and value != "random":
            raise ValueError("If value is str, it should be 'random'")
        self.p, self.scale, self.ratio, self.value, self.inplace = p, scale, ratio, value, inplace

    @staticmethod
    def get_params(img, scale, ratio, value=None):
        """(top, left, height, width, what is written there); value: a list of numbers, or None for noise."""
        channels, height, width = TF.get_dimensions(img)
        low, high = _C.log(_C.tensor(ratio)).tolist()
        for _ in range(10):
            area = height * width * _uniform(*scale)
            aspect = float(_C.exp(_C.empty(1).uniform_(low, high)))
            h, w = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if h < height and w < width:
                noise = _C.empty([channels, h, w], dtype=_C.float32).normal_() if value is None else None
                written = noise if value is None else _C.tensor(value, dtype=img.dtype).view(-1, 1, 1)
                i, j = int(_C.randint(0, height - h + 1, size=(1,))), int(_C.randint(0, width - w + 1, size=(1,)))
                return i, j, h, w, written
        return 0, 0, height, width, img

    def forward(self, img):
        if not _chance(self.p):
            return img
        value = None if self.value == "random" else self.value
        value = [value] if isinstance(value, (int, float)) else value if value is None else list(value)
        if value is not None and len(value) not in (1, img.shape[-3]):
            raise ValueError(
                f"value has {len(value)} numbers, a picture of {img.shape[-3]} channels takes 1 or {img.shape[-3]}"
            )
        return TF.erase(img, *self.get_params(img, self.scale, self.ratio, value), self.inplace)

    def extra_repr(self):
        return f"p={self.p}, scale={self.scale}, ratio={self.ratio}, value={self.value}, inplace={self.inplace}"


class RandomPerspective(Module):
    """Seen from another side, with probability p: the corners move inwards by up to `distortion_scale` of half the size.

    >>> from lucid.vision import transforms as T
    >>> T.RandomPerspective(p=1.0)(lucid.rand(3, 8, 8)).shape
    lucid.Size([3, 8, 8])
    """

    def __init__(self, distortion_scale=0.5, p=0.5, interpolation="bilinear", fill=0):
        super().__init__()
        self.distortion_scale, self.p, self.interpolation, self.fill = distortion_scale, p, interpolation, fill

    @staticmethod
    def get_params(width, height, distortion_scale):
        """The corners of the picture, and where they go: clockwise from the upper left one."""
        inward = [int(distortion_scale * (n // 2)) for n in (width, height)]

        def drawn(axis, far):
            size = (width, height)[axis]
            low, high = (size - inward[axis] - 1, size) if far else (0, inward[axis] + 1)
            return int(_C.randint(low, high, size=(1,)))

        sides = [(False, False), (True, False), (True, True), (False, True)]  # right, below
        starts = [[(width - 1) * right, (height - 1) * below] for right, below in sides]
        return starts, [[drawn(0, right), drawn(1, below)] for right, below in sides]

    def forward(self, img):
        if not _chance(self.p):
            return img
        _, height, width = TF.get_dimensions(img)
        return TF.perspective(img, *self.get_params(width, height, self.distortion_scale), self.interpolation, self.fill)

    def extra_repr(self):
        return f"distortion_scale={self.distortion_scale}, p={self.p}, interpolation={self.interpolation}, fill={self.fill}"


def _two_floats(value, name):
    if isinstance(value, (int, float)):
        return [float(value)] * 2
    if len(value) != 2:
        raise ValueError(f"If {name} is a sequence its length should be 2. Got {len(value)}")
    return [float(v) for v in value]


class ElasticTransform(Module):
    """Bent as if seen through moving water: alpha is how far (pixels), sigma how smoothly; a number, or one for x and one for y.

    >>> from lucid.vision import transforms as T
    >>> T.ElasticTransform(alpha=20.0, sigma=0.5)(lucid.rand(3, 8, 8)).shape
    lucid.Size([3, 8, 8])
    """

    def __init__(self, alpha=50.0, sigma=5.0, interpolation="bilinear", fill=0):
        super().__init__()
        self.alpha, self.sigma = _two_floats(alpha, "alpha"), _two_floats(sigma, "sigma")
        self.interpolation, self.fill = interpolation, fill

    @staticmethod
    def get_params(alpha, sigma, size):
        """The displacement (1, height, width, 2) of a picture of size (height, width)."""
        moves = []
        for axis in range(2):  # x, y
            moved = _C.rand([1, 1, *size]) * 2 - 1
            if sigma[axis] > 0.0:
                width = int(8 * sigma[axis] + 1) | 1
                moved = TF.gaussian_blur(moved, [width, width], sigma)
            moves.append(moved * alpha[axis] / size[1 - axis])
        return _C.cat(moves, 1).permute(0, 2, 3, 1)

    def forward(self, img):
        displacement = self.get_params(self.alpha, self.sigma, TF.get_dimensions(img)[1:])
        return TF.elastic_transform(img, displacement, self.interpolation, self.fill)

    def extra_repr(self):
        return f"alpha={self.alpha}, sigma={self.sigma}, interpolation={self.interpolation}, fill={self.fill}"


class LinearTransformation(Module):
    """(flattened picture - mean_vector) @ transformation_matrix, in the picture's shape: whitening. For tensors.

    >>> from lucid.vision import transforms as T
    >>> T.LinearTransformation(2 * lucid.eye(4), lucid.ones(4))(lucid.full((1, 2, 2), 3.0))
    tensor([[[4., 4.],
             [4., 4.]]])
    """

    def __init__(self, transformation_matrix, mean_vector):
        super().__init__()
        rows, columns = transformation_matrix.shape
        if rows != columns:
            raise ValueError(f"transformation_matrix should be square. Got {(rows, columns)} rectangular matrix.")
        if len(mean_vector) != rows:
            raise ValueError(
                f"mean_vector has {len(mean_vector)} numbers, the transformation_matrix {(rows, columns)} needs {rows}"
            )
        if transformation_matrix.device != mean_vector.device or transformation_matrix.dtype != mean_vector.dtype:
            kinds = [f"{t.dtype} on {t.device}" for t in (transformation_matrix, mean_vector)]
            raise ValueError(f"matrix and mean_vector should have one dtype and device. Got {' and '.join(kinds)}")
        self.transformation_matrix, self.mean_vector = transformation_matrix, mean_vector

    def forward(self, img):
        shape = TF._check(img).shape
        n = math.prod(shape[-3:])
        if n != len(self.mean_vector):
            raise ValueError(
                f"a picture of shape {tuple(shape[-3:])} has {n} numbers, the transformation_matrix is for {len(self.mean_vector)}"
            )
        if img.device != self.mean_vector.device:
            raise ValueError(f"the picture is on {img.device}, the transformation_matrix on {self.mean_vector.device}")
        return ((img.reshape(-1, n) - self.mean_vector) @ self.transformation_matrix).view(shape)

    def extra_repr(self):
        return f"transformation_matrix={tuple(self.transformation_matrix.shape)}, mean_vector={tuple(self.mean_vector.shape)}"
