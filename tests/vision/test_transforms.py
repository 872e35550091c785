"""Transforms against torchvision where it is installed, and against PyTorch's functions and Python's colours everywhere."""

import colorsys
import sys
import types

import pytest
import torch

import lucid
from lucid.vision import transforms as T
from lucid.vision.transforms import functional as TF

lucid.manual_seed(1)
BYTES, FLOATS = lucid.randint(0, 256, (3, 13, 17), dtype=lucid.uint8), lucid.rand(2, 3, 13, 17)


def theirs(x):
    return torch.from_numpy(x.numpy().copy())


@pytest.fixture(scope="module")
def vision():
    """torchvision's transforms. Its compiled ops, which need a matching build of PyTorch, are not used here."""
    sys.modules.setdefault("torchvision._meta_registrations", types.ModuleType("torchvision._meta_registrations"))
    return pytest.importorskip("torchvision.transforms")


CALLS = [
    ("resize", 8), ("resize", [7, 9]), ("resize", [20, 9], "bicubic"), ("resize", 20, "nearest"), ("pad", 2), ("pad", [1, 2, 3, 4], 0, "reflect"),
    ("pad", [1, 2], 0, "symmetric"), ("pad", 3, 0, "edge"), ("crop", 2, 3, 5, 6), ("crop", -2, -3, 9, 9), ("crop", 8, 9, 9, 19), ("center_crop", 8),
    ("center_crop", [20, 8]), ("hflip",), ("vflip",), ("rotate", 30), ("rotate", 30, "bilinear", True), ("rotate", 90, "nearest", True),
    ("rotate", -75, "nearest", False, [2, 3], [5, 6, 7]), ("affine", 20, [2, 3], 1.3, [10, 5]), ("gaussian_blur", 3), ("gaussian_blur", [5, 3], [0.7, 1.1]),
    ("rgb_to_grayscale",), ("rgb_to_grayscale", 3), ("adjust_brightness", 1.4), ("adjust_contrast", 0.6), ("adjust_saturation", 1.7),
    ("adjust_hue", 0.2), ("adjust_hue", -0.37), ("adjust_gamma", 0.8), ("adjust_sharpness", 1.8), ("invert",), ("autocontrast",),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_functions_are_torchvisions(vision, call):
    name, *arguments = call
    modes = {m.value: m for m in vision.InterpolationMode}
    converted = [modes.get(a, a) if isinstance(a, str) and name in ("resize", "rotate") else a for a in arguments]
    for x in (BYTES, FLOATS):
        ours, want = getattr(TF, name)(x, *arguments), getattr(vision.functional, name)(theirs(x), *converted)
        assert tuple(ours.shape) == tuple(want.shape) and str(ours.dtype).split(".")[1] == str(want.dtype).split(".")[1]
        near = 1 if x is BYTES and name in ("resize", "adjust_hue") else 0 if x is BYTES else 1e-5
        assert (theirs(ours).double() - want.double()).abs().max() <= near


RANDOM = [
    "RandomCrop(8, padding=2)", "RandomResizedCrop(9)", "RandomHorizontalFlip()", "RandomVerticalFlip()", "ColorJitter(.3, .4, .5, .1)",
    "RandomRotation(30)", "RandomAffine(20, (.1, .2), (.8, 1.2), (-5, 5, -8, 8))", "GaussianBlur(3)", "RandomErasing(.8)", "RandomGrayscale(.5)",
    "RandAugment()", "RandAugment(3, 15)", "TrivialAugmentWide()", "RandomEqualize()", "RandomPosterize(3)", "RandomAdjustSharpness(2)",
]  # fmt: skip


@pytest.mark.parametrize("text", RANDOM)
def test_random_transforms_draw_as_torchvision(vision, text):
    ours, other = eval(f"T.{text}"), eval(f"T.{text}", {"T": vision})
    for seed in range(8):
        with lucid.random.fork_rng():
            lucid.manual_seed(seed)
            torch.manual_seed(seed)
            got, want = ours(BYTES), other(theirs(BYTES))
        assert (theirs(got).double() - want.double()).abs().max() <= 1


def test_pil_images_go_through(vision):
    Image = pytest.importorskip("PIL.Image")
    image = Image.fromarray(BYTES.permute(1, 2, 0).numpy())
    for text in (
        "RandomCrop(8)",
        "Resize(8)",
        "CenterCrop(5)",
        "ColorJitter(.3)",
        "RandomRotation(20)",
        "Pad(2)",
        "RandAugment()",
        "Grayscale()",
    ):
        with lucid.random.fork_rng():
            lucid.manual_seed(3)
            torch.manual_seed(3)
            got, want = eval(f"T.{text}")(image), eval(f"T.{text}", {"T": vision})(image)
        assert got.size == want.size and got.mode == want.mode
        pairs = zip(got.tobytes(), want.tobytes())
        assert max(abs(a - b) for a, b in pairs) <= 1
    assert T.ToTensor()(image).shape == (3, 13, 17) and lucid.equal(T.PILToTensor()(image), BYTES)


def test_sizes_and_turns():
    small = TF.resize(FLOATS, [6, 8])
    want = torch.nn.functional.interpolate(theirs(FLOATS), (6, 8), mode="bilinear", antialias=True, align_corners=False)
    torch.testing.assert_close(theirs(small), want)
    assert TF.resize(lucid.rand(1, 10, 30), 6, max_size=9).shape == (1, 3, 9)
    square = FLOATS[0, :, :13, :13]
    for turns in range(1, 4):
        assert lucid.allclose(TF.rotate(square, 90.0 * turns), lucid.rot90(square, turns, (1, 2)))
    assert TF.rotate(BYTES, 90, expand=True).shape == (3, 17, 13)
    assert lucid.equal(TF.affine(BYTES, 0, [2, 1], 1.0, [0.0, 0.0])[:, 1:, 2:], BYTES[:, :-1, :-2])
    assert lucid.equal(TF.pad(BYTES, [1, 0, 0, 0], padding_mode="symmetric")[:, :, 0], BYTES[:, :, 0])


@pytest.mark.parametrize("shift", [-0.4, -0.1, 0.25, 0.5])
def test_hue_is_that_of_colorsys(shift):
    pixels = lucid.rand(3, 1, 20)
    got = TF.adjust_hue(pixels, shift)
    for k in range(20):
        h, s, v = colorsys.rgb_to_hsv(*pixels[:, 0, k].tolist())
        assert got[:, 0, k].tolist() == pytest.approx(colorsys.hsv_to_rgb((h + shift) % 1, s, v), abs=1e-5)


def test_colours():
    assert lucid.equal(TF.invert(TF.invert(BYTES)), BYTES) and lucid.equal(TF.posterize(BYTES, 8), BYTES)
    assert (TF.posterize(BYTES, 3) % 32).max() == 0 and TF.posterize(BYTES, 0).max() == 0
    assert lucid.equal(TF.solarize(BYTES, 100), lucid.where(BYTES >= 100, 255 - BYTES, BYTES))
    stretched = TF.autocontrast(FLOATS)
    assert lucid.allclose(stretched.amin((-2, -1)), lucid.zeros(2, 3)) and lucid.allclose(
        stretched.amax((-2, -1)), lucid.ones(2, 3)
    )
    flat = lucid.full((3, 4, 4), 7, dtype=lucid.uint8)
    assert lucid.equal(TF.autocontrast(flat), flat) and lucid.equal(TF.equalize(flat), flat)
    dark = (lucid.rand(1, 64, 64) ** 3 * 255).to(lucid.uint8)
    assert abs(TF.equalize(dark).float().mean() - 127) < 15 < abs(dark.float().mean() - 127)
    whole = TF.convert_image_dtype(TF.convert_image_dtype(BYTES, lucid.float32), lucid.uint8)
    assert lucid.equal(whole, BYTES)


def test_a_pipeline_is_repeatable_and_prints():
    steps = T.Compose(
        [T.RandomResizedCrop(8), T.RandomHorizontalFlip(), T.ColorJitter(0.2, 0.2), T.Normalize([0.5] * 3, [0.5] * 3)]
    )
    results = []
    for _ in range(2):
        with lucid.random.fork_rng():
            lucid.manual_seed(5)
            results.append(steps(FLOATS[0]))
    assert lucid.equal(*results) and results[0].shape == (3, 8, 8)
    assert "RandomHorizontalFlip(p=0.5)" in repr(steps) and "Normalize(mean=" in repr(steps)
    model = lucid.nn.Sequential(T.Resize(6), T.CenterCrop(6))
    assert model(FLOATS).shape == (2, 3, 6, 6)


def test_errors():
    cases = [
        (lambda: TF.hflip("a"), TypeError, "tensor or a PIL image"),
        (lambda: TF.resize(FLOATS, 4, "cubic"), ValueError, "interpolation is one of"),
        (lambda: TF.resize(FLOATS, [4, 4], max_size=9), ValueError, "max_size"),
        (lambda: T.RandomCrop(50)(FLOATS), ValueError, "larger than input"),
        (lambda: TF.normalize(BYTES, [0.5], [0.5]), TypeError, "float tensor"),
        (lambda: TF.normalize(FLOATS, [0.5], [0.0]), ValueError, "zero"),
        (lambda: TF.posterize(FLOATS, 3), TypeError, "uint8"),
        (lambda: TF.adjust_hue(FLOATS, 0.7), ValueError, "hue_factor"),
        (lambda: TF.adjust_contrast(lucid.rand(2, 4, 4), 0.5), TypeError, "channel values"),
        (lambda: TF.gaussian_blur(FLOATS, 4), ValueError, "odd"),
        (lambda: TF.pad(FLOATS, 40, padding_mode="reflect"), ValueError, "too large"),
        (lambda: TF.rotate(FLOATS, 3, fill=[1, 2]), ValueError, "number of channels"),
        (lambda: T.ColorJitter(hue=0.6), ValueError, "hue"),
        (lambda: T.RandAugment(magnitude=31), ValueError, "magnitude"),
        (lambda: T.RandomErasing(1.0, value=[1, 2])(FLOATS[0]), ValueError, "channels"),
        (lambda: T.Lambda(3), TypeError, "callable"),
    ]
    for call, error, text in cases:
        with pytest.raises(error, match=text):
            call()
