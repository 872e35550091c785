"""Transforms against torchvision where it is installed, and against PyTorch's functions and Python's colours everywhere."""

import colorsys
import random
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


CORNERS = [[0, 0], [16, 0], [16, 12], [0, 12]]
MOVES = 0.3 * lucid.rand(1, 13, 17, 2) - 0.15
CALLS = [
    ("resize", 8), ("resize", [7, 9]), ("resize", [20, 9], "bicubic"), ("resize", 20, "nearest"), ("pad", 2), ("pad", [1, 2, 3, 4], 0, "reflect"),
    ("pad", [1, 2], 0, "symmetric"), ("pad", 3, 0, "edge"), ("crop", 2, 3, 5, 6), ("crop", -2, -3, 9, 9), ("crop", 8, 9, 9, 19), ("center_crop", 8),
    ("center_crop", [20, 8]), ("hflip",), ("vflip",), ("rotate", 30), ("rotate", 30, "bilinear", True), ("rotate", 90, "nearest", True),
    ("rotate", -75, "nearest", False, [2, 3], [5, 6, 7]), ("affine", 20, [2, 3], 1.3, [10, 5]), ("gaussian_blur", 3), ("gaussian_blur", [5, 3], [0.7, 1.1]),
    ("rgb_to_grayscale",), ("rgb_to_grayscale", 3), ("adjust_brightness", 1.4), ("adjust_contrast", 0.6), ("adjust_saturation", 1.7),
    ("perspective", CORNERS, [[1, 2], [14, 0], [16, 11], [0, 10]]), ("perspective", CORNERS, [[1, 1], [9, 3], [15, 11], [2, 12]], "nearest", [5, 6, 7]),
    ("elastic_transform", MOVES), ("elastic_transform", MOVES, "nearest", [9]), ("adjust_hue", 0.2), ("adjust_hue", -0.37), ("adjust_gamma", 0.8), ("adjust_sharpness", 1.8), ("invert",), ("autocontrast",),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=lambda call: " ".join(str(a) for a in call if not isinstance(a, lucid.Tensor)))
def test_functions_are_torchvisions(vision, call):
    name, *arguments = call
    modes = {m.value: m for m in vision.InterpolationMode}
    converted = [modes.get(a, a) if isinstance(a, str) and name != "pad" else a for a in arguments]
    converted = [theirs(a) if isinstance(a, lucid.Tensor) else a for a in converted]
    for x in (BYTES, FLOATS):
        ours, want = getattr(TF, name)(x, *arguments), getattr(vision.functional, name)(theirs(x), *converted)
        assert tuple(ours.shape) == tuple(want.shape) and str(ours.dtype).split(".")[1] == str(want.dtype).split(".")[1]
        near = (
            1
            if x is BYTES and name in ("resize", "adjust_hue", "perspective", "elastic_transform")
            else 0
            if x is BYTES
            else 1e-5
        )
        assert (theirs(ours).double() - want.double()).abs().max() <= near


RANDOM = [
    "RandomCrop(8, padding=2)", "RandomResizedCrop(9)", "RandomHorizontalFlip()", "RandomVerticalFlip()", "ColorJitter(.3, .4, .5, .1)",
    "RandomRotation(30)", "RandomAffine(20, (.1, .2), (.8, 1.2), (-5, 5, -8, 8))", "GaussianBlur(3)", "RandomErasing(.8)", "RandomGrayscale(.5)",
    "RandAugment()", "RandAugment(3, 15)", "TrivialAugmentWide()", "AutoAugment()", "AutoAugment(T.AutoAugmentPolicy.CIFAR10)",
    "AutoAugment(T.AutoAugmentPolicy.SVHN, fill=7)", "AugMix()", "AugMix(5, 2, 2, 0.5, False)", "RandomPerspective(p=.8)", "RandomPerspective(.3, 1., fill=[1, 2, 3])",
    "ElasticTransform(30., .8)", "ElasticTransform([20., 5.], [.3, .5], fill=9)",
    "RandomEqualize()", "RandomPosterize(3)", "RandomAdjustSharpness(2)", "RandomAffine(20, interpolation=T.InterpolationMode.BILINEAR)",
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


def test_parameters_are_torchvisions(vision):
    cases = [
        ("ColorJitter", (0.8, 1.2), None, (0.5, 1.5), (-0.1, 0.1)), ("RandomRotation", [-10.0, 10.0]), ("GaussianBlur", 0.1, 2.0),
        ("RandomAffine", [-9.0, 9.0], (0.2, 0.1), (0.8, 1.2), [-5.0, 5.0], [40, 30]), ("RandomAffine", [0.0, 9.0], None, None, None, [4, 3]),
        ("RandomPerspective", 40, 30, 0.5), ("ElasticTransform", [9.0, 4.0], [0.7, 0.5], [8, 9]), ("AutoAugment", 25),
    ]  # fmt: skip
    for name, *arguments in cases:
        lucid.manual_seed(3)
        torch.manual_seed(3)
        ours, other = getattr(T, name).get_params(*arguments), getattr(vision, name).get_params(*arguments)
        flat = [[float(x) for p in (got if isinstance(got, tuple) else [got]) for x in numbers(p)] for got in (ours, other)]
        assert flat[0] == pytest.approx(flat[1], abs=1e-5), name
    for module in (lucid, torch):
        module.manual_seed(3)
    ours = T.RandomErasing.get_params(FLOATS[0], (0.1, 0.3), (0.5, 2.0), [0.5])
    other = vision.RandomErasing.get_params(theirs(FLOATS[0]), (0.1, 0.3), (0.5, 2.0), [0.5])
    assert ours[:4] == other[:4] and ours[4].tolist() == other[4].tolist()


def numbers(value):
    """All numbers in tensors and nested lists, None as -1."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, (list, tuple)):
        return [n for v in value for n in numbers(v)]
    return [-1 if value is None else value]


def test_choices_and_orders_are_torchvisions(vision):
    for text in (
        "RandomChoice([T.Pad(1), T.Pad(2), T.Pad(3)], p=[1, 2, 3])",
        "RandomOrder([T.Pad(1), T.Resize(9), T.CenterCrop(7)])",
    ):
        ours, other = eval(f"T.{text}"), eval(f"T.{text}", {"T": vision})
        for seed in range(5):
            random.seed(seed)
            got = ours(FLOATS)
            random.seed(seed)
            assert got.shape == other(theirs(FLOATS)).shape


def test_whitening(vision):
    matrix, mean = lucid.rand(12, 12), lucid.rand(12)
    x = lucid.rand(2, 3, 2, 2)
    want = vision.LinearTransformation(theirs(matrix), theirs(mean))(theirs(x))
    torch.testing.assert_close(theirs(T.LinearTransformation(matrix, mean)(x)), want)


def test_nothing_of_torchvisions_transforms_is_missing(vision):
    from torchvision.transforms import autoaugment, functional, transforms

    theirs = {n for m in (autoaugment, transforms) for n in m.__all__}
    assert sorted(theirs - set(dir(T))) == []
    public = {n for n, f in vars(functional).items() if n[0] != "_" and getattr(f, "__module__", "") == functional.__name__}
    assert sorted(public - set(dir(TF))) == []


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
        "Resize(8, T.InterpolationMode.LANCZOS)",
        "Resize(8, T.InterpolationMode.BOX)",
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
        (lambda: TF.resize(FLOATS, 4, "lanczos"), ValueError, "for PIL images"),
        (lambda: TF.perspective(FLOATS, [[0, 0]], [[0, 0]]), ValueError, "four corners"),
        (lambda: TF.elastic_transform(FLOATS, lucid.zeros(1, 2, 2, 2)), ValueError, "displacement shape should be"),
        (lambda: T.AugMix(severity=11), ValueError, "severity must be between"),
        (lambda: T.AutoAugment("cifar"), ValueError, "not recognized"),
        (lambda: T.LinearTransformation(lucid.eye(3), lucid.ones(4)), ValueError, "needs 3"),
        (lambda: T.LinearTransformation(lucid.eye(3), lucid.ones(3))(FLOATS), ValueError, "has 663 numbers"),
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
