"""nn.init beside PyTorch's: the same numbers from the same seed, the same refusals."""

import pytest
import torch

import lucid
from tests.nn.programs import assert_close, attempt

PROGRAMS = {}


def filled(name, shape, *args, **kwargs):
    def run(m):
        m.manual_seed(12)
        x = m.full(shape, 7.0)
        y = getattr(m.nn.init, name)(x, *args, **kwargs)
        w = getattr(m.nn.init, name)(m.nn.Parameter(m.full(shape, 7.0)), *args, **kwargs)
        return [y is x, x, w, m.rand(2)]

    return run


def case(name, shape, *args, **kwargs):
    given = ", ".join([*map(str, args), *(f"{k}={v}" for k, v in kwargs.items())])
    PROGRAMS[f"{name}({tuple(shape)}{', ' if given else ''}{given})"] = filled(name, shape, *args, **kwargs)


for _shape in ((5, 3), (3, 5), (4, 3, 2, 2), (2, 3, 4), (1, 1), (3, 3, 2, 1, 2)):
    for _mode in ("fan_in", "fan_out"):
        for _kind in ("relu", "leaky_relu", "tanh", "linear", "selu", "sigmoid"):
            case("kaiming_uniform_", _shape, mode=_mode, nonlinearity=_kind)
            case("kaiming_normal_", _shape, 0.3, mode=_mode, nonlinearity=_kind)
    for _gain in (1.0, 2.5):
        case("xavier_uniform_", _shape, _gain)
        case("xavier_normal_", _shape, _gain)
    case("orthogonal_", _shape, gain=1.5)
for _shape in ((5,), (20, 20), (0, 3)):
    case("uniform_", _shape, -2.0, 3.0)
    case("normal_", _shape, 1.0, 2.0)
    case("constant_", _shape, 0.25)
    case("ones_", _shape)
    case("zeros_", _shape)
    case("trunc_normal_", _shape)
    case("trunc_normal_", _shape, 0.5, 2.0, 0.0, 0.6)
    case("trunc_normal_", _shape, 5.0, 1.0, -1.0, 1.0)
for _shape in ((4, 4), (3, 5)):
    case("eye_", _shape)
    case("sparse_", _shape, 0.4, 0.1)
for _shape, _groups in (((4, 3, 3), 1), ((4, 4, 2, 2), 2), ((2, 5, 1, 2, 3), 1), ((6, 2, 3), 3)):
    case("dirac_", _shape, _groups)
# refusals
case("xavier_uniform_", (3,))
case("kaiming_uniform_", (3,))
case("kaiming_uniform_", (3, 3), mode="other")
case("kaiming_uniform_", (3, 3), nonlinearity="other")
case("orthogonal_", (3,))
case("eye_", (3,))
case("sparse_", (3,), 0.5)
case("dirac_", (3, 3))
case("dirac_", (3, 3, 3), 2)
GAINS = [("linear",), ("conv2d",), ("sigmoid",), ("tanh",), ("relu",), ("leaky_relu",), ("leaky_relu", 0.2), ("selu",)]
for _given in [*GAINS, ("leaky_relu", "a"), ("leaky_relu", True), ("other",)]:
    PROGRAMS[f"calculate_gain{_given}"] = lambda m, given=_given: m.nn.init.calculate_gain(*given)


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    assert_close(attempt(PROGRAMS[name], lucid), attempt(PROGRAMS[name], torch))


def test_generators():
    for name in ("uniform_", "normal_", "kaiming_uniform_", "xavier_normal_", "trunc_normal_", "orthogonal_"):
        sides = []
        for m in (lucid, torch):
            generator = m.Generator()
            generator.manual_seed(4)
            sides.append(getattr(m.nn.init, name)(m.empty(3, 4), generator=generator).tolist())
        assert_close(*sides)


@pytest.mark.parametrize("name", ["constant", "normal", "xavier_uniform", "kaiming_normal", "orthogonal", "eye", "uniform"])
def test_old_names(name):
    given = (1.0,) if name == "constant" else ()
    with pytest.warns(FutureWarning, match=name):
        getattr(lucid.nn.init, name)(lucid.empty(2, 2), *given)


def test_names():
    assert [n for n in dir(torch.nn.init) if n.endswith("_") and not n.startswith("_") and not hasattr(lucid.nn.init, n)] == []
