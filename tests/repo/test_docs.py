"""The documents name files that exist, and their examples run."""

import doctest
import pathlib
import re

import pytest

import lucid

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
PATH = re.compile(r"`([\w./*-]+\.(?:c|h|py|def|md|json|map)|[a-z]+/[\w/]*/)`")
PLACES = ("engine", "bindings", "lucid", "tests", "tools", "docs", "examples", "benchmarks")


def named_files(text):
    """Paths in backquotes; a row of a table may name the folder once: `engine/ops/elementwise/unary.c`, `binary.c`."""
    folder = ""
    for name in PATH.findall(text):
        if "/" in name:
            folder = str(pathlib.PurePosixPath(name).parent)
            yield name
        else:
            yield f"{folder}/{name}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_named_files_exist(document):
    lines = document.read_text().splitlines()
    missing = [f for line in lines for f in named_files(line) if f.startswith(PLACES) and not list(ROOT.glob(f.rstrip("/")))]
    assert missing == []
    links = re.findall(r"\]\(([\w./-]+)\)", document.read_text())
    assert [link for link in links if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("name", ["random.md", "from-pytorch.md"])
def test_examples_run(name):
    text = (ROOT / "docs" / name).read_text().replace("```", "")
    test = doctest.DocTestParser().get_doctest(text, {"lucid": lucid}, name, name, 0)
    results = doctest.DocTestRunner().run(test)
    assert results.attempted and not results.failed
