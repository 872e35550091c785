"""Every module's and every name's examples run, and every name has one."""

import doctest
import importlib
import pathlib
import pkgutil
import runpy
import xml.etree.ElementTree

import pytest

import lc_run
import lightning_core as lc
import lightning_core_api
import lightning_core_integrated_api as helper

PACKAGES = (lc, helper, lightning_core_api, lc_run)
MODULES = [
    name
    for package in PACKAGES
    for name in (package.__name__, *(m.name for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")))
    if not name.endswith("__main__")
]


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_modules(module):
    found = importlib.import_module(module)
    assert found.__doc__
    names = {"lightning_core": lc}  # functions of the extension that are loaded belong to lightning_core
    assert doctest.testmod(found, extraglobs=names, optionflags=doctest.IGNORE_EXCEPTION_DETAIL).failed == 0


@pytest.mark.parametrize("module", [lc, lc.api, helper], ids=lambda m: m.__name__)
def test_every_name_has_an_example(module):
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    without, names = [], [n for n in module.__all__ if n != "api"]
    for name in names:
        value = getattr(module, name)
        own = vars(value).values() if isinstance(value, type) else ()
        text = "".join(getattr(v, "__doc__", None) or "" for v in (value, *own))
        if ">>>" not in text and value.__module__ != "lightning_core._integrated.routes":
            without.append(name)
        if "built-in" in repr(value) or getattr(value, "__module__", "") == "lightning_core":
            for test in finder.find(value, name, globs={"lightning_core": lc}):
                runner.run(test)
    bare = {"TensorRequestError", "RoutePolicyValidationError"}
    assert set(without) - bare == set()
    assert runner.failures == 0


def test_the_picture_of_a_timeline(tmp_path, capsys):
    example = pathlib.Path(__file__).resolve().parents[2] / "examples/lightning/trace_timeline.py"
    picture = tmp_path / "timeline.svg"
    runpy.run_path(str(example))["main"]([str(picture)])
    drawn = xml.etree.ElementTree.parse(picture).getroot()
    bars = [e for e in drawn.iter("{http://www.w3.org/2000/svg}rect") if e.get("rx")]
    assert len(bars) == 12 and "attention_forward" in capsys.readouterr().out
