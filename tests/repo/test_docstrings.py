"""Every public name has a docstring with an example, ops say what every argument means, and every example runs."""

import doctest
import importlib
import inspect
import pathlib
import pkgutil
import warnings

import pytest

import lucid
from lucid import _docs

WALKED = sorted(m.name for m in pkgutil.walk_packages(lucid.__path__, "lucid."))
# Names whose docstring has no example yet; may only shrink.
WAITING = set(pathlib.Path(__file__).with_name("without_examples.txt").read_text().split())
MODULES = ["lucid", *(name for name in WALKED if name not in ("lucid._C", "lucid.liblucid"))]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module, extraglobs={"lucid": lucid}, optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    assert result.failed == 0


def public(module):
    for name, value in vars(module).items():
        ours = getattr(value, "__module__", None) == module.__name__ and getattr(lucid._C, name, None) is not value
        if ours and not name.startswith("_") and name != "main" and (inspect.isfunction(value) or inspect.isclass(value)):
            yield name, value


@pytest.mark.parametrize("name", MODULES)
def test_public_names_have_examples(name):
    module = importlib.import_module(name)
    assert module.__doc__
    without = {f"{name}.{n}" for n, value in public(module) if ">>>" not in (value.__doc__ or "")}
    assert without == {w for w in WAITING if w.rpartition(".")[0] == name}


OPS = {
    (space, public): rows
    for (space, public), rows in _docs.overloads().items()
    if not public.startswith("_") and any(r["function"] or r["method"] for r in rows)
}
SPACES = sorted({space for space, _ in OPS})
LUCIDS = {  # examples of names that PyTorch does not have, by the last part of the name
    "hard_sigmoid", "hard_swish", "native_dropout_backward", "fused_linear", "fused_linear_relu", "fused_linear_gelu",
    "lora_linear", "dequantize_weight", "quantized_linear", "max_pool2d_with_indices_backward", "slice", "squeeze_all", "eval",
}  # fmt: skip


def shown(space, public):
    return f"{space}.{public}" if space else public


def test_ops_say_what_arguments_mean():
    silent = {shown(*op): [a.name for a in _docs.entry(*op).arguments if not a.words] for op in OPS}
    assert {op: names for op, names in silent.items() if names} == {}


def test_words_of_arguments_are_used():
    known = {a.name.lstrip("*") for op in OPS for a in _docs.entry(*op).arguments}
    per_op = {f"{op[1]}.{a.name.lstrip('*')}" for op in OPS for a in _docs.entry(*op).arguments}
    texts = {f"{public}.{kind}" for _, public in OPS for kind in ("return", "note")}
    assert {w for w in _docs.words() if w.removesuffix("[]") not in known | per_op | texts} == set()


@pytest.mark.parametrize("space", SPACES)
def test_ops_have_examples_that_run(space):
    """In-place forms have that of their op."""
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    for (place, public), rows in OPS.items():
        if place == space and not rows[0]["inplace_of"]:
            text = _docs.entry(place, public).example
            assert ">>> " in text, shown(place, public)
            with lucid.random.fork_rng():
                runner.run(parser.get_doctest(text, {"lucid": lucid}, shown(place, public), None, 0))
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("space", SPACES)
def test_examples_print_what_pytorch_prints(space, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
    import record_examples

    different = {}
    for name, program in _docs.examples().items():
        if name.rpartition(".")[0] != space or name.rpartition(".")[2] in LUCIDS:
            continue
        with torch.random.fork_rng(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what PyTorch calls deprecated or beta
            theirs = record_examples.recorded(f"{name}\n{program}", record_examples.run(f"{name}\n{program}", torch))
        if theirs != f"{name}\n{program}":
            different[name] = theirs
    assert different == {}


def test_help_of_an_op():
    """All overloads, all arguments with types and defaults, out=, keywords of factories, an example."""
    text = lucid.max.__doc__
    assert text.count("max(input: Tensor") == 3 and "named tuple of Tensors (values, indices)" in text
    for part in ("dim (int, optional): the dimension", "keepdim (bool): whether", "out (Tensor, optional)", ">>> lucid.max(x)"):
        assert part in text
    assert str(inspect.signature(lucid.sum)) == "(input, dim=None, keepdim=False, *, dtype=None, out=None)"
    keywords = inspect.signature(lucid.zeros).parameters
    assert {"out", "dtype", "device", "layout", "requires_grad", "pin_memory"} < set(keywords)
    assert "requires_grad (bool): whether" in lucid.zeros.__doc__
    assert "the input itself, changed" in lucid.Tensor.add_.__doc__
    assert inspect.signature(lucid.max).bind(lucid.ones(2), other=lucid.ones(2))


@pytest.mark.parametrize("op", OPS, ids=lambda op: shown(*op))
def test_signatures_take_every_overload(op):
    """`inspect.signature` binds the arguments of each overload by name."""
    found = _docs.signature(*op)
    for row in OPS[op]:
        names = [p[0] for p in _docs.parameters(row) if not p[0].startswith("*")]
        found.bind_partial(**dict.fromkeys(names))
