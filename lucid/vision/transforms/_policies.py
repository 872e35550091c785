"""Policies: each picture gets a few changes drawn from a list, with strengths on a scale of bins."""

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
    return {"AutoContrast": TF.autocontrast, "Equalize": TF.equalize, "Identity": lambda i: i}[name](img)


_FACTORS = {
    "Brightness": TF.adjust_brightness,
    "Color": TF.adjust_saturation,
    "Contrast": TF.adjust_contrast,
    "Sharpness": TF.adjust_sharpness,
}


def _strengths(bins, width, height, shear, shift, angle, factor, fewest_bits):
    """Name: the amounts of the bins (None: it has none), and whether the sign is drawn."""
    return {
        "Identity": (None, False),
        "ShearX": (_C.linspace(0.0, shear, bins), True),
        "ShearY": (_C.linspace(0.0, shear, bins), True),
        "TranslateX": (_C.linspace(0.0, shift(width), bins), True),
        "TranslateY": (_C.linspace(0.0, shift(height), bins), True),
        "Rotate": (_C.linspace(0.0, angle, bins), True),
        "Brightness": (_C.linspace(0.0, factor, bins), True),
        "Color": (_C.linspace(0.0, factor, bins), True),
        "Contrast": (_C.linspace(0.0, factor, bins), True),
        "Sharpness": (_C.linspace(0.0, factor, bins), True),
        "Posterize": (8 - (_C.arange(bins) / ((bins - 1) / (8 - fewest_bits))).round().int(), False),
        "Solarize": (_C.linspace(255.0, 0.0, bins), False),
        "AutoContrast": (None, False),
        "Equalize": (None, False),
    }


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
        _, height, width = TF.get_dimensions(img)
        for _ in range(self.num_ops):
            table = _strengths(self.num_magnitude_bins, width, height, 0.3, lambda n: 150.0 / 331.0 * n, 30.0, 0.9, 4)
            name = list(table)[int(_C.randint(len(table), (1,)))]
            amounts, signed = table[name]
            amount = 0.0 if amounts is None else float(amounts[self.magnitude])
            if signed and _C.randint(2, (1,)):
                amount = -amount
            img = _changed(img, name, amount, self.interpolation, self.fill)
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
        table = _strengths(self.num_magnitude_bins, 0, 0, 0.99, lambda n: 32.0, 135.0, 0.99, 2)
        name = list(table)[int(_C.randint(len(table), (1,)))]
        amounts, signed = table[name]
        amount = 0.0 if amounts is None else float(amounts[int(_C.randint(len(amounts), (1,)))])
        if signed and _C.randint(2, (1,)):
            amount = -amount
        return _changed(img, name, amount, self.interpolation, self.fill)

    def extra_repr(self):
        return f"num_magnitude_bins={self.num_magnitude_bins}"
