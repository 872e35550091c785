"""Families of the zoo on `cuda` against the CPU, which tests/models compares with other zoos: outputs, losses, every gradient,
and compiled forwards. On a GPU all families run; test_emulated.py runs a few on the emulation."""

import inspect
import warnings

import pytest

import lucid
from lucid import models
from tests.models import cases as texts
from tests.models import test_text, test_vision
from tests.models import vision_cases as cases

if not lucid.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

VISION = {**cases.CASES, **test_vision.REST}
WITH_CHANCE = ("vae", "hvae")  # a forward draws random numbers
PARTLY_SINGLE = ("ddpm", "ncsn", "transformer")  # float32 inside: the angles of time steps and positions


def near(found, expected, tolerance, what):
    assert found.device.type == "cuda" and found.dtype == expected.dtype, what
    found, expected = found.detach().cpu(), expected.detach()
    finite = expected[expected.isfinite()].abs()
    scale = max(finite.max().item(), 1e-6) if finite.numel() else 1.0
    lucid.testing.assert_close(
        found, expected, rtol=0, atol=tolerance * scale, equal_nan=True, msg=lambda text: f"{what}: {text}"
    )


def on(device, value):
    if isinstance(value, (list, tuple)):
        return type(value)(on(device, v) for v in value)
    if isinstance(value, dict):
        return {key: on(device, v) for key, v in value.items()}
    return value.to(device) if isinstance(value, lucid.Tensor) else value


def same_gradients(here, there, tolerance):
    """Gradients of small norm are compared with the largest one: they are sums that cancel."""
    gradients = {key: p.grad for key, p in there.named_parameters() if p.grad is not None}
    largest = max(float(g.abs().max()) for g in gradients.values())
    found = {key: p.grad for key, p in here.named_parameters() if p.grad is not None}
    assert found.keys() == gradients.keys()
    for key, g in found.items():
        off = (g.cpu() - gradients[key]).abs().max().item()
        assert off <= tolerance * largest, f"gradient of {key}: off by {off}, the largest gradient is {largest}"


def pair(name):
    made, fields, given = VISION[name]
    sides = []
    for device in ("cpu", "cuda"):
        model = models.create_model(made, **fields)
        cases.fill(lucid, model)
        sides.append(model.to(device))
    return sides, given


@pytest.mark.parametrize("name", VISION)
def test_images(name):
    (there, here), given = pair(name)
    if name in WITH_CHANCE:
        pytest.skip("draws random numbers")
    x = cases.inputs(lucid, given)
    with lucid.no_grad():
        expected = cases.values_of(cases.call(there.eval(), x))
        found = cases.values_of(cases.call(here.eval(), on("cuda", x)))
        near(found, expected, 5e-4, "outputs")
    results, x = [], cases.inputs(lucid, given, lucid.float64)
    for model, device in ((there, "cpu"), (here, "cuda")):
        result = cases.values_of(cases.call(model.train().double(), on(device, x)))
        weights = cases.numbers(lucid, "weights", result.numel())
        (result * weights.to(device)).sum().backward()
        results.append(result)
    digits = 1e-6 if name in PARTLY_SINGLE else 1e-8
    near(results[1], results[0], digits, "outputs in training")
    same_gradients(here, there, 10 * digits)


@pytest.mark.parametrize("name", VISION)
def test_images_compiled(name):
    """A compiled model gives the same bits as eager."""
    model, given = pair(name)[0][1].eval(), VISION[name][2]
    given = on("cuda", cases.inputs(lucid, given))
    with lucid.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = cases.values_of(cases.call(model, given))
        model.compile(fullgraph=True)
        for _ in range(2):
            assert (cases.values_of(cases.call(model, given)) == expected).all()


@pytest.mark.parametrize("family", test_vision.PARTS)
def test_detectors(family):
    made, fields, _ = test_vision.PARTS[family]
    sides = []
    for device in ("cpu", "cuda"):
        model = models.create_model(made, **fields).eval()
        cases.fill(lucid, model)
        model.to(device)
        x = cases.one_input(lucid, "images", (1, 3, 64, 64), lucid.float32).to(device)
        takes = inspect.signature(model.forward).parameters
        given = [[lucid.tensor([[4.0, 4.0, 30.0, 40.0]], device=device)]] if "proposals" in takes else []
        with lucid.no_grad():
            sides.append(model(x, *given))
    for expected, found in zip(*sides):
        assert expected.keys() == found.keys()
        for key, value in expected.items():
            near(found[key], value, 1e-3, key)


@pytest.mark.parametrize("name", cases.DETECTORS)
def test_losses_of_detectors(name):
    masks, losses, sides = name == "mask rcnn", [], []
    pictures, targets = cases.detection_inputs(lucid, masks)
    for device in ("cpu", "cuda"):
        model = models.create_model(cases.DETECTORS[name], **cases.RCNN, **cases.NO_CHANCE)
        cases.fill(lucid, model)
        model.to(device).double().train()
        losses.append(model(on(device, [p.double() for p in pictures]), on(device, targets)))
        sum(losses[-1].values()).backward()
        sides.append(model)
    assert losses[0].keys() == losses[1].keys()
    for key, value in losses[0].items():
        near(losses[1][key], value, 1e-7, key)
    same_gradients(sides[1], sides[0], 1e-6)


@pytest.mark.parametrize("name", texts.CASES)
def test_texts(name):
    outputs, sides = [], []
    for device in ("cpu", "cuda"):
        model, extra = test_text.build(name)
        model.double().to(device)
        given = on(device, {"attention_mask": lucid.tensor(texts.MASK), **extra})
        out = model(lucid.tensor(texts.IDS, device=device), **given)
        outputs.append(out)
        sides.append(model)
        if extra:
            loss = out.loss if getattr(out, "mc_loss", None) is None else out.loss + out.mc_loss
            loss.backward()
    for field in (*texts.FIELDS, "loss"):
        value = getattr(outputs[0], field, None)
        if value is not None:
            near(getattr(outputs[1], field), value, 1e-8 if value.dtype == lucid.float64 else 1e-6, field)
    if extra:
        same_gradients(sides[1], sides[0], 1e-7)


@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral", "qwen3", "gemma", "bert", "bert masked words"])
def test_texts_compiled(name):
    model, ids = test_text.build(name)[0].to("cuda"), lucid.tensor(texts.IDS, device="cuda")
    with lucid.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = lucid.compile(lambda ids: model(ids)[0])
        for _ in range(2):
            assert (compiled(ids) == model(ids)[0]).all()
