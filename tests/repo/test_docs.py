"""The documents name files that exist, their examples run, and their tables of figures agree."""

import doctest
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import lucid

from . import follow_add_an_op

ROOT = pathlib.Path(__file__).resolve().parents[2]
TUTORIALS = sorted(ROOT.glob("docs/tutorials/*.md"))
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md")), *TUTORIALS]
SUFFIX = r"\.(?:c|cuh|h|py|pyi|def|md|json|map|txt|toml|build|svg|png|zip)"
PATH = re.compile(r"`([\w.*-]+(?:/[\w.*-]+)*/?)`")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
OUTPUTS = ("build/", ".venv/", ".lucid/")  # what a build makes, and the name of a record inside a checkpoint
SKIPPED = {"build", ".venv", ".git", "__pycache__"}


def looks_like_a_path(word):
    """A file by its suffix (`.inc.c` alone is a suffix, `x.shape` no file), a folder by its slash at the end."""
    if word.startswith((".", *OUTPUTS)) or ".gen." in word:
        return False
    return bool(re.search(rf"{SUFFIX}$", word)) or ("/" in word and (word.endswith("/") or top(word)))


def top(word):
    return (ROOT / word.split("/")[0]).is_dir()


@functools.cache
def names():
    """The names of all files of the tree."""
    return {p.name for p in ROOT.rglob("*") if not SKIPPED & set(p.relative_to(ROOT).parts)}


def missing_paths(text):
    """Paths in backquotes that do not exist. A line may name a folder once: `engine/ops/elementwise/unary.c`, `binary.c`."""
    for line in FENCE.sub("", text).splitlines():
        folder = ROOT
        for word in filter(looks_like_a_path, PATH.findall(line)):
            if "/" in word:
                folder = (ROOT / word).parent
                if not list(ROOT.glob(word.rstrip("/"))):
                    yield word
            elif not list(folder.glob(word)) and not (ROOT / word).exists() and (folder != ROOT or word not in names()):
                yield f"{folder.relative_to(ROOT)}/{word}"


@pytest.mark.parametrize("name", [str(d.relative_to(ROOT)) for d in DOCUMENTS])
def test_named_files_exist(name):
    document = ROOT / name
    text = document.read_text()
    assert list(missing_paths(text)) == []
    links = re.findall(r"\]\(([\w./-]+)(?:#[\w-]*)?\)", text) + re.findall(r'src="([\w./-]+)"', text)
    assert [link for link in links if not (document.parent / link).exists()] == []


def test_a_wrong_path_is_found():
    text = (
        "`engine/ops/elementwise/unary.c`, `binary.c`, `nowhere.c`; `tests/nowhere/`, `docs/nothing.md`, `gone.py`, `x.shape`"
    )
    expected = ["engine/ops/elementwise/nowhere.c", "tests/nowhere/", "docs/nothing.md", "docs/gone.py"]
    assert list(missing_paths(text)) == expected
    assert list(missing_paths("```\n`engine/nowhere.c`\n```\n`test_docs.py`, `.inc.c`, `build/release/pkg`")) == []


def mapped():
    """The folders and files that the tour's map shows: the words at the start of a line, below the lines above it."""
    lines = re.search(r"^## Map\n+```\n(.*?)^```", (ROOT / "docs/tour.md").read_text(), re.MULTILINE | re.DOTALL)[
        1
    ].splitlines()
    parents = {}
    for line in lines:
        depth = len(line) - len(line.lstrip())
        words = re.match(r"(?:[\w./]+(?:/|\.py) ?)+", line.lstrip())[0].split()
        above = parents[max(d for d in parents if d < depth)] if depth else ROOT
        parents = {d: p for d, p in parents.items() if d < depth} | {depth: above / words[0]}
        yield from (above / w for w in words)
    assert len(lines) <= 40, "the map is to fit one screen"


def test_the_map_is_true():
    shown = list(mapped())
    assert [str(p.relative_to(ROOT)) for p in shown if not p.exists()] == []
    for folder in ("", "engine", "engine/backend", "engine/backend/cpu"):
        there = {p for p in (ROOT / folder).iterdir() if p.is_dir() and p.name[0] not in "._" and list(p.rglob("*.[chpm]*"))}
        there -= {ROOT / "build", ROOT / "docs", ROOT / "dist", ROOT / "engine/include"}
        assert sorted(str(p) for p in there - set(shown)) == [], f"folders of {folder or 'the root'} that the map does not show"


@pytest.mark.parametrize(
    "name",
    [
        "random.md",
        "from-pytorch.md",
        "sparse.md",
        "special.md",
        "models.md",
        "generation.md",
        "lora.md",
        "vision.md",
        "lightning-core.md",
    ],
)
def test_examples_run(name):
    text = (ROOT / "docs" / name).read_text().replace("```", "")
    test = doctest.DocTestParser().get_doctest(text, {"lucid": lucid}, name, name, 0)
    results = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL).run(test)
    assert results.attempted and not results.failed


@pytest.mark.parametrize("name", [p.stem for p in TUTORIALS if p.stem != "c"])
def test_tutorials_run(name, monkeypatch):
    """From the root of the tree, with names of their own, as the notebooks that are made of them."""
    monkeypatch.chdir(ROOT)
    text = (ROOT / "docs/tutorials" / f"{name}.md").read_text().replace("```", "")
    test = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    with lucid.random.fork_rng():
        results = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL).run(test)
    assert results.attempted > 5 and not results.failed


def test_the_c_tutorial_runs(tmp_path):
    from lucid import config

    text = (ROOT / "docs/tutorials/c.md").read_text()
    flags = ["-Wall", "-Wextra", "-Werror", *config.cflags(), *config.libs()]
    told = []
    for kind, program in re.findall(r"```(c|cpp)\n(.*?)```", text, re.DOTALL):
        (tmp_path / f"program.{kind}").write_text(program)
        compiler = ["cc", "-std=gnu11"] if kind == "c" else ["c++", "-std=c++17"]
        if not shutil.which(compiler[0]):
            continue
        subprocess.run([*compiler, f"program.{kind}", "-o", "program", *flags], cwd=tmp_path, check=True)
        told.append(subprocess.run(["./program"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout)
    assert f"prints `{told[0].strip()}`" in text
    assert f"```text\n{told[1]}```" in text
    assert told[2:] in ([], ["tensor([[3., 3.],\n        [3., 3.]])\n"])


def test_the_site_has_every_page(tmp_path):
    """Pages, notebooks and the reference; `make docs` builds them strictly and checks links."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(pathlib.Path(lucid.__file__).parent.parent), *sys.path])}
    command = [sys.executable, str(ROOT / "tools/docsite.py"), str(tmp_path), "--text"]
    subprocess.run(command, check=True, env=environment)
    pages = tmp_path / "site/pages"
    settings = json.loads((tmp_path / "site/mkdocs.yml").read_text())
    listed = json.dumps(settings["nav"])
    assert [p.name for p in pages.rglob("*.md") if f'"{p.relative_to(pages)}"' not in listed] == []
    names = (pages / "api/README.md").read_text()
    for name in (
        "lucid.add",
        "lucid.nn.Conv2d",
        "lucid.nn.functional.conv2d",
        "lucid.optim.AdamW",
        "lucid.linalg.svd",
        "lucid.fft.rfft",
    ):
        assert f"[`{name}`](" in names
    assert len(names.splitlines()) > 1500
    for path in TUTORIALS:
        cells = json.loads((pages / "docs/tutorials" / f"{path.stem}.ipynb").read_text())["cells"]
        code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
        assert path.stem == "c" or len(code) >= 2 and not any(">>>" in c for c in code)
        for c in code:
            compile(c, path.stem, "exec")


def test_the_readme_has_the_recorded_figures(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import summary

    times = summary.recorded()
    assert summary.table(times) in (ROOT / "README.md").read_text()
    titled = {summary.ROWS[title]: pair for title, pair in times.items()}
    assert summary.picture(titled) == summary.PICTURE.read_text()


def test_the_page_about_adding_an_op_says_where():
    """`make contributor-test` follows the page; here only its places are looked for."""
    steps = list(follow_add_an_op.steps(follow_add_an_op.PAGE.read_text()))
    assert len(steps) == 3
    for name, start, code in steps:
        before = (ROOT / name).read_text()
        after = follow_add_an_op.insert(before, start, code)
        assert len(after) == len(before) + len(code) and code in after
    with pytest.raises(ValueError, match="0 lines start"):
        follow_add_an_op.insert("UNARY (a, b)\n", "UNARY (c", "code")
