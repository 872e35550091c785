"""Every public Python name has a docstring with an example, and every example runs."""

import doctest
import importlib
import inspect
import pathlib
import pkgutil

import pytest

import lucid

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
