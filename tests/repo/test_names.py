"""Every name that programs written for Lucid use is there: names.json lists them, names_later.txt what later work brings."""

import importlib
import json
import pathlib

import pytest

import lucid

HERE = pathlib.Path(__file__).parent
NAMES = json.loads((HERE / "names.json").read_text())
LATER = dict(line.split(maxsplit=1) for line in (HERE / "names_later.txt").read_text().splitlines())
# spectral_norm and others are a module and a function of it: the module is what names are looked for in
SPACES = {name: lucid.Tensor if name == "lucid.Tensor" else importlib.import_module(name) for name in NAMES}


@pytest.mark.parametrize("space", SPACES)
def test_names_are_there(space):
    missing = [n for n in NAMES[space] if not hasattr(SPACES[space], n) and f"{space}.{n}" not in LATER]
    assert missing == []


UTILS = (
    "clip_grad",
    "fusion",
    "memory_format",
    "parametrizations",
    "parametrize",
    "rnn",
    "spectral_norm",
    "stateless",
    "weight_norm",
)


@pytest.mark.parametrize("space", ["nn.init", "nn.utils", *(f"nn.utils.{name}" for name in UTILS), "optim.lr_scheduler"])
def test_pytorchs_names_are_there(space):
    theirs, ours = (importlib.import_module(f"{library}.{space}") for library in ("torch", "lucid"))
    assert [n for n in theirs.__all__ if not hasattr(ours, n)] == []


def test_what_is_there_is_not_awaited():
    known = {f"{space}.{n}": hasattr(SPACES[space], n) for space, names in NAMES.items() for n in names}
    assert sorted(set(LATER) - set(known)) == []
    assert [n for n in LATER if known[n]] == []


def test_result_type_and_friends():
    import torch

    names = sorted({str(d).split(".")[1] for d in vars(torch).values() if isinstance(d, torch.dtype)} & set(dir(lucid)))
    assert len(names) >= 21

    def answers(m):
        def attempt(f, *args):
            try:
                return str(f(*args)).split(".")[-1]
            except (RuntimeError, TypeError) as error:
                return "TypeError" if isinstance(error, TypeError) else "RuntimeError"

        dtypes = [getattr(m, n) for n in names]
        operands = [True, 2, 2.5, 1j]
        for d in dtypes:
            operands += [m.zeros(2, dtype=d), m.zeros((), dtype=d)]
        pairs = [(attempt(m.promote_types, a, b), attempt(m.can_cast, a, b)) for a in dtypes for b in dtypes]
        results = [attempt(m.result_type, a, b) for a in operands for b in operands]
        odd = [attempt(m.promote_types, 1, dtypes[0]), attempt(m.can_cast, None, None), attempt(m.result_type, "a", 1)]
        return pairs, results, odd

    ours, theirs = answers(lucid), answers(torch)
    assert ours[0] == theirs[0]
    assert ours[1] == theirs[1]
    assert ours[2] == theirs[2]
    assert lucid.promote_types(type1=lucid.int8, type2=lucid.uint8) is lucid.int16
    assert lucid.can_cast(from_=lucid.int8, to=lucid.float16)


def errors(m):
    """Classes of what goes wrong with arguments that are no tensors and no numbers of threads."""
    calls = [
        lambda: m.is_floating_point(3),
        lambda: m.is_complex("a"),
        lambda: m.is_signed(None),
        lambda: m.numel([1]),
        lambda: m.is_nonzero(2.0),
        lambda: m.is_same_size(m.ones(2), 3),
        lambda: m.set_num_threads(0),
        lambda: m.set_num_threads("a"),
        lambda: m.from_dlpack(3),
        lambda: m.iinfo(),
        lambda: m.set_rng_state(m.zeros(3)),
        lambda: m.manual_seed("a"),
    ]
    seen = []
    for call in calls:
        with pytest.raises(Exception) as info:
            call()
        seen.append(next(k for k in (TypeError, ValueError, RuntimeError, AttributeError) if isinstance(info.value, k)))
    return seen


def test_errors_are_pytorchs():
    import torch

    assert errors(lucid) == errors(torch)


def test_interop_threads():
    before = lucid.get_num_interop_threads()
    lucid.set_num_interop_threads(3)
    assert lucid.get_num_interop_threads() == 3
    for bad in (0, -1, "two", 1.5):
        with pytest.raises(RuntimeError):
            lucid.set_num_interop_threads(bad)
    lucid.set_num_interop_threads(before)


def test_to_dlpack():
    import torch

    x = lucid.arange(6).reshape(2, 3)
    assert torch.from_dlpack(lucid.to_dlpack(x)).tolist() == x.tolist()
    assert lucid.from_dlpack(torch.to_dlpack(torch.ones(2, 3))).tolist() == [[1.0] * 3] * 2
    with pytest.raises(TypeError):
        lucid.to_dlpack([1.0])


def test_metal_is_not_here():
    x = lucid.ones(2)
    assert not lucid.metal.is_available() and not x.is_metal and not lucid.metal.is_shared(x)
    calls = [x.metal, lambda: x.to("metal"), lambda: lucid.device("metal"), lucid.metal.synchronize, lucid.metal.MetalStream]
    for call in calls:
        with pytest.raises(lucid.GpuNotAvailable, match="metal"):
            call()
    assert all(hasattr(lucid.metal, n) for n in lucid.metal.__all__)


def test_self_check(capsys):
    with lucid.random.fork_rng():
        assert lucid.test(verbose=True)
    assert "0 failed" in capsys.readouterr().out
