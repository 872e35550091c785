"""Policies: each picture gets a few changes drawn from a list, with strengths on a scale of bins."""

import enum

from ... import _C
from ...nn import Module
from . import functional as TF


def _changed(img, name, amount, interpolation, fill):
    """One change of a picture; amounts are those of the policies' tables."""
    if name in ("ShearX", "ShearY"):
        angle = TF.degrees_of_shear(amount)
        shear = [angle, 0.0] if name == "ShearX" else [0.0, angle]
        _, h, w = TF.get_dimensions(img)
        return TF.affine(img, 0.0, [0, 0], 1.0, shear, interpolation, fill, [0, 0])
    if name in ("TranslateX", "TranslateY"):
        moved = [int(amount), 0] if name == "TranslateX" else [0, int(amount)]
        return TF.affine(img, 0.0, moved, 1.0, [0.0, 0.0], interpolation, fill)
    if name == "Rotate":
        return TF.rotate(img, amount, interpolation, fill=fill)
    if name in _FACTORS:
        return _FACTORS[name](img, 1.0 + amount)
    if name == "Posterize":
        return TF.posterize(img, int(amount))
    if name == "Solarize":
        return TF.solarize(img, amount)
    return {"AutoContrast": TF.autocontrast, "Equalize": TF.equalize, "Invert": TF.invert, "Identity": lambda i: i}[name](img)


_FACTORS = {
    "Brightness": TF.adjust_brightness,
    "Color": TF.adjust_saturation,
    "Contrast": TF.adjust_contrast,
    "Sharpness": TF.adjust_sharpness,
}


_SHAPES = "ShearX ShearY TranslateX TranslateY Rotate"
_COLOURS = "Brightness Color Contrast Sharpness"
_VALUES = "Posterize Solarize AutoContrast Equalize"


def _strengths(names, bins, size, shear=0.3, shift=lambda n: 150.0 / 331.0 * n, angle=30.0, factor=0.9, bits=(8, 4)):
    """{name: the amounts of its bins (None: it has none), and whether the sign is drawn}, in the order of names."""
    largest = {"Shear": shear, "Rotate": angle, **dict.fromkeys(_FACTORS, factor)}
    width, height = size
    table = {}
    for name in names.split():
        if name.startswith("Translate"):
            table[name] = _C.linspace(0.0, shift(width if name[-1] == "X" else height), bins), True
        elif name == "Posterize":
            table[name] = bits[0] - (_C.arange(bins) / ((bins - 1) / (8 - bits[1]))).round().int(), False
        elif name == "Solarize":
            table[name] = _C.linspace(255.0, 0.0, bins), False
        elif name.rstrip("XY") in largest:
            table[name] = _C.linspace(0.0, largest[name.rstrip("XY")], bins), True
        else:
            table[name] = None, False
    return table


def _drawn(table, choose):
    """A change and its amount: `choose` gives the bin, the sign is drawn where it matters."""
    name = list(table)[int(_C.randint(len(table), (1,)))]
    amounts, signed = table[name]
    amount = 0.0 if amounts is None else float(amounts[choose(len(amounts))])
    return name, -amount if signed and _C.randint(2, (1,)) else amount


class RandAugment(Module):
    """num_ops changes of one strength, drawn for each picture (uint8 tensors or PIL images).

    >>> from lucid.vision import transforms as T
    >>> T.RandAugment()(lucid.randint(0, 256, (3, 16, 16), dtype=lucid.uint8)).dtype
    lucid.uint8
    """

    def __init__(self, num_ops=2, magnitude=9, num_magnitude_bins=31, interpolation="nearest", fill=None):
        super().__init__()
        if not 0 <= magnitude < num_magnitude_bins:
            raise ValueError(f"magnitude is at least 0 and less than num_magnitude_bins, {num_magnitude_bins}; not {magnitude}")
        self.num_ops, self.magnitude, self.num_magnitude_bins = num_ops, magnitude, num_magnitude_bins
        self.interpolation, self.fill = interpolation, fill

    def forward(self, img):
        table = _strengths(f"Identity {_SHAPES} {_COLOURS} {_VALUES}", self.num_magnitude_bins, TF.get_image_size(img))
        for _ in range(self.num_ops):
            img = _changed(img, *_drawn(table, lambda bins: self.magnitude), self.interpolation, self.fill)
        return img

    def extra_repr(self):
        return f"num_ops={self.num_ops}, magnitude={self.magnitude}, num_magnitude_bins={self.num_magnitude_bins}"


class TrivialAugmentWide(Module):
    """One change of random strength for each picture (uint8 tensors or PIL images).

    >>> from lucid.vision import transforms as T
    >>> T.TrivialAugmentWide()(lucid.randint(0, 256, (3, 16, 16), dtype=lucid.uint8)).shape
    lucid.Size([3, 16, 16])
    """

    def __init__(self, num_magnitude_bins=31, interpolation="nearest", fill=None):
        super().__init__()
        self.num_magnitude_bins, self.interpolation, self.fill = num_magnitude_bins, interpolation, fill

    def forward(self, img):
        names = f"Identity {_SHAPES} {_COLOURS} {_VALUES}"
        table = _strengths(names, self.num_magnitude_bins, (0, 0), 0.99, lambda n: 32.0, 135.0, 0.99, (8, 2))
        chosen = _drawn(table, lambda bins: int(_C.randint(bins, (1,))))
        return _changed(img, *chosen, self.interpolation, self.fill)

    def extra_repr(self):
        return f"num_magnitude_bins={self.num_magnitude_bins}"


class AutoAugmentPolicy(enum.Enum):
    """The data set that a policy of `AutoAugment` was found for.

    >>> from lucid.vision import transforms as T
    >>> T.AutoAugmentPolicy("svhn")
    <AutoAugmentPolicy.SVHN: 'svhn'>
    """

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


# Cubuk et al., AutoAugment (2019): policies of two changes, each with its probability in tenths and the bin of its amount
_POLICIES = {
    AutoAugmentPolicy.IMAGENET: """
        Posterize 4 8  Rotate 6 9; Solarize 6 5  AutoContrast 6 -; Equalize 8 -  Equalize 6 -
        Posterize 6 7  Posterize 6 6; Equalize 4 -  Solarize 2 4; Equalize 4 -  Rotate 8 8
        Solarize 6 3  Equalize 6 -; Posterize 8 5  Equalize 10 -; Rotate 2 3  Solarize 6 8
        Equalize 6 -  Posterize 4 6; Rotate 8 8  Color 4 0; Rotate 4 9  Equalize 6 -
        Equalize 0 -  Equalize 8 -; Invert 6 -  Equalize 10 -; Color 6 4  Contrast 10 8
        Rotate 8 8  Color 10 2; Color 8 8  Solarize 8 7; Sharpness 4 7  Invert 6 -
        ShearX 6 5  Equalize 10 -; Color 4 0  Equalize 6 -; Equalize 4 -  Solarize 2 4
        Solarize 6 5  AutoContrast 6 -; Invert 6 -  Equalize 10 -; Color 6 4  Contrast 10 8
        Equalize 8 -  Equalize 6 -""",
    AutoAugmentPolicy.CIFAR10: """
        Invert 1 -  Contrast 2 6; Rotate 7 2  TranslateX 3 9; Sharpness 8 1  Sharpness 9 3
        ShearY 5 8  TranslateY 7 9; AutoContrast 5 -  Equalize 9 -; ShearY 2 7  Posterize 3 7
        Color 4 3  Brightness 6 7; Sharpness 3 9  Brightness 7 9; Equalize 6 -  Equalize 5 -
        Contrast 6 7  Sharpness 6 5; Color 7 7  TranslateX 5 8; Equalize 3 -  AutoContrast 4 -
        TranslateY 4 3  Sharpness 2 6; Brightness 9 6  Color 2 8; Solarize 5 2  Invert 0 -
        Equalize 2 -  AutoContrast 6 -; Equalize 2 -  Equalize 6 -; Color 9 9  Equalize 6 -
        AutoContrast 8 -  Solarize 2 8; Brightness 1 3  Color 7 0; Solarize 4 5  AutoContrast 9 -
        TranslateY 9 9  TranslateY 7 9; AutoContrast 9 -  Solarize 8 3; Equalize 8 -  Invert 1 -
        TranslateY 7 9  AutoContrast 9 -""",
    AutoAugmentPolicy.SVHN: """
        ShearX 9 4  Invert 2 -; ShearY 9 8  Invert 7 -; Equalize 6 -  Solarize 6 6
        Invert 9 -  Equalize 6 -; Equalize 6 -  Rotate 9 3; ShearX 9 4  AutoContrast 8 -
        ShearY 9 8  Invert 4 -; ShearY 9 5  Solarize 2 6; Invert 9 -  AutoContrast 8 -
        Equalize 6 -  Rotate 9 3; ShearX 9 4  Solarize 3 3; ShearY 8 8  Invert 7 -
        Equalize 9 -  TranslateY 6 6; Invert 9 -  Equalize 6 -; Contrast 3 3  Rotate 8 4
        Invert 8 -  TranslateY 0 2; ShearY 7 6  Solarize 4 8; Invert 6 -  Rotate 8 4
        ShearY 3 7  TranslateX 9 3; ShearX 1 6  Invert 6 -; Solarize 7 2  TranslateY 6 7
        ShearY 8 4  Invert 8 -; ShearX 7 9  TranslateY 8 3; ShearY 8 5  AutoContrast 7 -
        ShearX 7 2  Invert 1 -""",
}  # fmt: skip


def _policies(text):
    """[((name, probability, bin or None), the second change)] of a table above."""
    found = []
    for policy in text.replace("\n", ";").split(";"):
        words = policy.split()
        if words:
            threes = (words[:3], words[3:])
            found.append(tuple((name, int(tenths) / 10, None if bin == "-" else int(bin)) for name, tenths, bin in threes))
    return found


class AutoAugment(Module):
    """One of 25 pairs of changes, found by search for a data set (uint8 tensors or PIL images).

    >>> from lucid.vision import transforms as T
    >>> T.AutoAugment(T.AutoAugmentPolicy.CIFAR10)(lucid.randint(0, 256, (3, 16, 16), dtype=lucid.uint8)).shape
    lucid.Size([3, 16, 16])
    """

    def __init__(self, policy=AutoAugmentPolicy.IMAGENET, interpolation="nearest", fill=None):
        super().__init__()
        if policy not in _POLICIES:
            raise ValueError(f"The provided policy {policy} is not recognized.")
        self.policy, self.policies = policy, _policies(_POLICIES[policy])
        self.interpolation, self.fill = interpolation, fill

    @staticmethod
    def get_params(transform_num):
        """(number of a policy, two numbers to compare with probabilities, two signs)."""
        return int(_C.randint(transform_num, (1,))), _C.rand((2,)), _C.randint(2, (2,))

    def forward(self, img):
        number, chances, signs = self.get_params(len(self.policies))
        table = _strengths(f"{_SHAPES} {_COLOURS} {_VALUES} Invert", 10, TF.get_image_size(img))
        for (name, p, bin), chance, sign in zip(self.policies[number], chances, signs.tolist()):
            if chance <= p:
                amounts, signed = table[name]
                amount = 0.0 if bin is None else float(amounts[bin])
                img = _changed(img, name, -amount if signed and not sign else amount, self.interpolation, self.fill)
        return img

    def extra_repr(self):
        return f"policy={self.policy}, fill={self.fill}"


class AugMix(Module):
    """The picture mixed with several changed ones, each of a chain of changes (uint8 tensors or PIL images).

    severity: the largest strength, 1 ... 10. mixture_width: the number of chains; chain_depth: their length, negative: 1 ... 3.
    alpha: how evenly they are mixed. all_ops: brightness, contrast, colour and sharpness, too.

    >>> from lucid.vision import transforms as T
    >>> T.AugMix()(lucid.randint(0, 256, (3, 16, 16), dtype=lucid.uint8)).dtype
    lucid.uint8
    """

    def __init__(
        self, severity=3, mixture_width=3, chain_depth=-1, alpha=1.0, all_ops=True, interpolation="bilinear", fill=None
    ):
        super().__init__()
        if not 1 <= severity <= 10:
            raise ValueError(f"The severity must be between [1, 10]. Got {severity} instead.")
        self.severity, self.mixture_width, self.chain_depth, self.alpha = severity, mixture_width, chain_depth, alpha
        self.all_ops, self.interpolation, self.fill = all_ops, interpolation, fill

    def forward(self, img):
        if TF.is_pil(img):
            return TF.to_pil_image(self.forward(TF.pil_to_tensor(img)), img.mode)
        names = f"{_SHAPES} {_VALUES}{' ' + _COLOURS if self.all_ops else ''}"
        table = _strengths(names, 10, TF.get_image_size(img), shift=lambda n: n / 3.0, bits=(4, 4))
        batch = img[(None,) * max(4 - img.ndim, 0)]
        each = (len(batch),) + (1,) * (batch.ndim - 1)
        alpha = _C.tensor([float(self.alpha)], device=img.device)
        own, mixed = _C._sample_dirichlet(alpha.expand(len(batch), 2)).unbind(1)
        weights = _C._sample_dirichlet(alpha.expand(len(batch), self.mixture_width)) * mixed[:, None]
        result = own.view(each) * batch
        for i in range(self.mixture_width):
            changed = batch
            depth = self.chain_depth if self.chain_depth > 0 else int(_C.randint(1, 4, (1,)))
            for _ in range(depth):
                chosen = _drawn(table, lambda bins: int(_C.randint(self.severity, (1,))))
                changed = _changed(changed, *chosen, self.interpolation, self.fill)
            result = result + weights[:, i].view(each) * changed
        return result.view(img.shape).to(img.dtype)

    def extra_repr(self):
        names = ("severity", "mixture_width", "chain_depth", "alpha", "all_ops", "interpolation", "fill")
        return ", ".join(f"{n}={getattr(self, n)}" for n in names)
