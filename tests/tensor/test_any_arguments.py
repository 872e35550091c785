"""Every op called with arguments of every kind, most of them wrong: an exception or a result, never anything worse."""

import random

import numpy
import pytest

import lucid

OPS = sorted(n for n, value in vars(lucid._C).items() if type(value) is type(lucid.add))
METHODS = sorted(n for n, value in vars(lucid.Tensor).items() if type(value) is type(lucid.add))
KEYWORDS = ["dim", "input", "other", "out", "dtype", "keepdim", "axis", "size", "device", "requires_grad", "generator", "x"]


def values():
    x = lucid.arange(6.0).reshape(2, 3)
    return [
        *(x, x.t(), x[0], x[0, 0], x[:0], x.long(), x > 2, x.to(lucid.complex64), x.half(), x[:1].expand(4, 3)),
        *(lucid.ones(3, requires_grad=True), lucid.zeros(2, 3, device="meta"), lucid.nn.Parameter(lucid.ones(2, 2))),
        *(0, 1, -1, 2, 5, 2**62, -(2**63), 2**70, 0.5, -1.5, float("nan"), float("inf"), 1j, True, False, None),
        *(
            "",
            "cpu",
            "none",
            "meta",
            [],
            [0],
            [1, 0],
            (2, 3),
            [-1],
            [2**62, 2**62],
            [1.5],
            [None],
            ["a"],
            [x],
            [x, x[0]],
            (x, None),
        ),
        *(
            lucid.float64,
            lucid.int8,
            lucid.device("cpu"),
            lucid.strided,
            lucid.channels_last,
            lucid.Generator(),
            lucid.Size([1]),
        ),
        *(numpy.float32(1), numpy.int64(1), numpy.ones(2), object(), {}, len, float, Ellipsis, slice(1)),
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["function", "method"])
def test_any_arguments(kind):
    rng = random.Random(7)
    for name in OPS if kind == "function" else METHODS:
        op = getattr(lucid._C if kind == "function" else lucid.Tensor, name)
        for _ in range(60):
            pool = values()
            args = [rng.choice(pool[:13] if i == 0 and kind == "method" else pool) for i in range(rng.randint(0, 4))]
            kwargs = {k: rng.choice(pool) for k in rng.sample(KEYWORDS, rng.choice([0, 0, 1, 2]))}
            try:
                op(*args, **kwargs)
            except SystemError:
                raise
            except Exception as error:  # noqa: BLE001 (any exception of Python's or Lucid's own is an answer)
                assert str(error), (name, args, kwargs)
