#!/usr/bin/env python3
"""Build the documentation site: guides, tutorials, notebooks and a reference of every public name, with search.

usage: docsite.py BUILD_DIR [--text]      --text stops before mkdocs: pages alone, for tests

The pages are those of the repository at the places they have there, so that links work in both. The reference is made from the op
table (tools/gendocs.py) and from the docstrings of the running package, grouped by subject. Tutorials become notebooks as well.
mkdocs builds strictly: a link to nowhere fails. It needs `pip install -r requirements-docs.txt`.
"""

import importlib
import importlib.util
import inspect
import json
import pathlib
import re
import shutil
import subprocess
import sys
import types
import warnings

import gendocs
import genops

import lucid
from lucid import _docs

ROOT = pathlib.Path(__file__).resolve().parent.parent
OP, OVERRIDABLE = type(lucid.add), lucid._C.overridable

# page: title, then folders or files of engine/ops whose ops of the main namespace it shows, in the order of the navigation
OPS = {
    "creating": ("Creating tensors", "create/create create/triangular create/combinations"),
    "random": ("Random numbers", "create/random create/random_discrete create/random_gamma create/random_ints"),
    "pointwise": ("Elementwise functions", "elementwise"),
    "comparison": ("Comparisons", "elementwise/compare"),
    "reductions": ("Reductions and scans", "reduce"),
    "sorting": ("Sorting and searching", "sort"),
    "indexing": ("Indexing, gathering, scattering", "index"),
    "shapes": ("Shapes, views, joining, splitting", "view move"),
    "products": ("Products of matrices and tensors", "matmul"),
    "linear-algebra": ("Linear algebra (main namespace)", "linalg"),
    "spectra": ("Spectra and windows", "fft"),
    "neural": ("Building blocks of networks", "attention conv embedding image loss norm rnn"),
    "sparse-ops": ("Sparse tensors", "sparse"),
    "other-ops": ("Optimizer steps and others", "optim autograd_ops"),
}
# page: title, module, and other modules whose names the page shows too
MODULES = {
    "lucid": ("lucid: functions that are no ops", "lucid"),
    "nn": ("nn: layers", "lucid.nn", *(f"lucid.nn.modules.{m}" for m in (
        "container", "linear", "conv", "pooling", "activation", "normalization", "batchnorm", "instancenorm", "dropout", "sparse", "rnn",
        "attention", "transformer", "loss", "padding", "shape", "upsampling", "adaptive", "positional", "linear_cross_entropy"))),
    "nn-functional": ("nn.functional", "lucid.nn.functional"),
    "nn-init": ("nn.init", "lucid.nn.init"),
    "nn-utils": ("nn.utils", "lucid.nn.utils", "lucid.nn.utils.parametrize", "lucid.nn.utils.parametrizations", "lucid.nn.utils.rnn",
                 "lucid.nn.utils.prune", "lucid.nn.utils.stateless"),
    "optim": ("optim: optimizers", "lucid.optim", "lucid.optim.swa_utils"),
    "lr-scheduler": ("optim.lr_scheduler", "lucid.optim.lr_scheduler"),
    "data": ("utils.data: datasets and loaders", "lucid.utils.data"),
    "autograd": ("autograd", "lucid.autograd", "lucid.autograd.functional", "lucid.autograd.forward_ad", "lucid.autograd.graph"),
    "func": ("func: vmap, grad, jacobians", "lucid.func"),
    "linalg": ("linalg", "lucid.linalg"),
    "fft": ("fft", "lucid.fft", "lucid.signal.windows"),
    "special": ("special", "lucid.special"),
    "distributions": ("distributions", "lucid.distributions", "lucid.distributions.transforms", "lucid.distributions.kl"),
    "sparse": ("sparse", "lucid.sparse"),
    "amp": ("amp: mixed precision", "lucid.amp"),
    "cuda": ("cuda", "lucid.cuda"),
    "compile": ("compile", "lucid._compile"),
    "models": ("models", "lucid.models"),
    "generation": ("generation", "lucid.generation"),
    "lora": ("lora", "lucid.lora"),
    "vision": ("vision", "lucid.vision", "lucid.vision.transforms", "lucid.vision.datasets", "lucid.vision.utils"),
    "serialization": ("save and load", "lucid.serialization"),
    "einops": ("einops", "lucid.einops"),
    "masked": ("masked", "lucid.masked"),
    "profiler": ("profiler", "lucid.profiler"),
    "utils": ("utils", "lucid.utils", "lucid.utils.checkpoint"),
    "testing": ("testing", "lucid.testing"),
    "config": ("config, library, hub, overrides", "lucid.config", "lucid.library", "lucid.hub", "lucid.overrides"),
}  # fmt: skip
GUIDES = {
    "Start": ["README.md", "docs/from-pytorch.md", "docs/run-pytorch-programs.md", "docs/packages.md"],
    "Guides": [
        "data", "checkpoints", "compile", "gpu", "models", "vision", "generation", "lora", "lightning-core", "linalg", "fft", "special",
        "distributions", "sparse", "random", "profiler", "subclasses", "typing", "array-api",
    ],
    "Speed": ["performance", "kernels", "ops-speed"],
    "Inside": ["tour", "add-an-op", "decisions", "conformance", "lab-notes"],
}  # fmt: skip
TUTORIALS = [
    "tensors",
    "cnn",
    "gpt",
    "saving-and-serving",
    "custom-ops",
    "data-loading",
    "mixed-precision",
    "gpu",
    "compile",
    "c",
]


def is_there(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def fenced(doc):
    """A docstring as Markdown: its examples in fences."""
    lines, inside = [], False
    for line in doc.splitlines():
        if line.startswith(">>>") and not inside:
            lines += ["", "```python"]
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line if inside else line.replace("<", "&lt;").replace("[", "\\[") if "](" not in line else line)
    return "\n".join(lines + ["```"] * inside)


def signature(value, name):
    try:
        return f"{name}{inspect.signature(value)}"
    except (TypeError, ValueError):
        return f"{name}(...)"


def plain(text):
    """Default values that are objects have addresses in their text."""
    return re.sub(r"<(?:function|class|module|object|built-in)?\s*'?([\w.]+)[^>]*>", r"\1", text)


def class_entry(shown, cls):
    head = ("class " if not issubclass(cls, BaseException) else "exception ") + plain(signature(cls, shown.rsplit(".", 1)[-1]))
    lines = [f"## {shown}", "", "```python", head, "```", "", fenced(inspect.getdoc(cls) or "")]
    rows = []
    for name, member in vars(cls).items():
        function = getattr(member, "__func__", member)
        doc = inspect.getdoc(member if isinstance(member, property) else function)
        if name.startswith("_") or not doc or not (isinstance(function, types.FunctionType) or isinstance(member, property)):
            continue
        told = (
            name
            if isinstance(member, property)
            else plain(signature(function, name)).replace("(self, ", "(").replace("(self)", "()")
        )
        first = fenced(doc.split("\n\n")[0]).replace("\n", " ").replace("|", "&#124;")
        rows.append(f"| `{told.replace('|', '&#124;')}` | {first} |")
    if rows:
        lines += ["", "| member | |", "|---|---|", *rows]
    return "\n".join(lines) + "\n"


def function_entry(shown, value):
    return "\n".join([f"## {shown}", "", "```python", plain(signature(value, shown.rsplit(".", 1)[-1])), "```", "",
                      fenced(inspect.getdoc(value) or "")]) + "\n"  # fmt: skip


class Reference:
    """The pages of the reference, and where each name stands."""

    def __init__(self):
        self.table = lucid._C._op_table()
        self.files = self.op_files()
        self.places = {}  # name: page

    @staticmethod
    def op_files():
        """Op: the file below engine/ops it is written in, without its ending."""
        files = {}
        for path, name, _ in genops.blocks([ROOT / "engine/ops", ROOT / "engine/autograd"], ["cc"]):
            parts = path.parts
            place = parts[parts.index("ops") + 1 :] if "ops" in parts else ("autograd_ops",)
            files[name] = "/".join(place).removesuffix(".c")
        return files

    def op_rows(self, space):
        """{public name: its overloads} of a namespace, without in-place forms."""
        found = {}
        for row in self.table:
            if row["space"] == space and not row["inplace_of"] and not row["public"].startswith("_"):
                found.setdefault(row["public"], []).append(row)
        return found

    def file_of(self, rows):
        for row in rows:
            name = row["name"]
            while name:
                if name in self.files:
                    return self.files[name]
                name = name[:-1]  # a derived form: permute_copy
        return ""

    def op_entry(self, shown, rows, page):
        self.places[shown] = page
        return re.sub(r"^### .*", f"## {shown}", gendocs.entry(rows[0]["space"], rows[0]["public"]))

    def op_pages(self):
        chosen = {page: [] for page in OPS}
        places = sorted(
            ((place, page) for page, (_, names) in OPS.items() for place in names.split()), key=lambda p: -len(p[0])
        )
        for public, rows in sorted(self.op_rows("").items()):
            file = self.file_of(rows)
            page = next(
                (page for place, page in places if file == place or file.startswith(place + "/") or file.startswith(place)),
                "other-ops",
            )
            if any(r["function"] for r in rows):
                chosen[page].append((f"lucid.{public}", rows))
            else:
                chosen[page].append((f"Tensor.{public}", rows))
        for page, entries in chosen.items():
            body = "\n".join(self.op_entry(shown, rows, page) for shown, rows in entries)
            yield page, OPS[page][0], f"# {OPS[page][0]}\n\n{body}"

    def module_names(self, module):
        names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
        for name in dict.fromkeys(names):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    value = getattr(module, name)
                except (AttributeError, ImportError, NotImplementedError):
                    continue
            if not isinstance(value, types.ModuleType) and callable(value):
                yield name, value

    def module_page(self, page, title, *modules):
        parts, seen = [f"# {title}\n"], set()
        first, main = modules[0], self.op_rows("")
        for place in modules:
            module = importlib.import_module(place)
            doc = fenced(module.__doc__ or "")
            entries = []
            space = place.removeprefix("lucid.").removeprefix("lucid")
            rows = self.op_rows(space) if space else {}
            for name, value in self.module_names(module):
                shown = f"{'lucid.nn' if place.startswith('lucid.nn.modules') else 'lucid' if place == 'lucid._compile' else place}.{name}"
                home = str(getattr(value, "__module__", ""))
                ours = home.startswith("lucid")
                if shown in seen or not ours and not isinstance(value, OP) or place == "lucid" and isinstance(value, OP):
                    continue
                if home == "lucid" and value is lucid.Tensor:
                    continue
                if place == first == "lucid.nn" and home.startswith("lucid.nn.modules"):
                    continue  # by the module that has it, below
                if name in rows and isinstance(value, OP):
                    entries.append(self.op_entry(shown, rows[name], page))
                elif isinstance(value, OP):  # of the main namespace
                    if name in main:
                        entries.append(self.op_entry(shown, main[name], page))
                elif isinstance(value, type):
                    entries.append(class_entry(shown, value))
                else:
                    entries.append(function_entry(shown, value))
                seen.add(shown)
                self.places.setdefault(shown, page)
            parts.append((f"\n{doc}\n\n" if place == first or doc else "") + "\n".join(entries))
        return "\n".join(parts)

    def write(self, folder):
        """All pages into folder; [(title, file)] of the navigation."""
        folder.mkdir(parents=True, exist_ok=True)
        navigation = []
        for page, title, text in self.op_pages():
            (folder / f"{page}.md").write_text(text)
            navigation.append((title, f"api/{page}.md"))
        for page, (title, *modules) in MODULES.items():
            modules = [m for m in modules if is_there(m)]
            if modules:
                (folder / f"{page}.md").write_text(self.module_page(page, title, *modules))
                navigation.append((title, f"api/{page}.md"))
        (folder / "tensor.md").write_text(self.tensor_page())
        (folder / "README.md").write_text(self.index())
        return [("All names", "api/README.md"), ("Tensor", "api/tensor.md"), *navigation]

    def tensor_page(self):
        rows = []
        for name in sorted(n for n in dir(lucid.Tensor) if not n.startswith("_")):
            member = inspect.getattr_static(lucid.Tensor, name)
            doc = inspect.getdoc(member) or ""
            if isinstance(member, OP):
                entry = _docs.entry("", name)
                doc = entry.summary[0] if entry else doc.split("\n\n", 1)[-1]
            first = doc.split("\n\n")[0].replace("\n", " ").replace("|", "&#124;").replace("[", "\\[").replace("<", "&lt;")
            place = self.places.get(f"lucid.{name}") or self.places.get(f"Tensor.{name}")
            anchor = f"lucid{name}" if f"lucid.{name}" in self.places else f"tensor{name}"
            rows.append(f"| {f'[`{name}`]({place}.md#{anchor.lower()})' if place else f'`{name}`'} | {first} |")
        head = "# Tensor\n\nMethods and attributes. A method that is also a function is described there.\n\n| | |\n|---|---|\n"
        return head + "\n".join(rows) + "\n"

    def index(self):
        lines = ["# All names\n", "Every public name, in alphabetical order; the search finds them as well.\n"]
        for name, page in sorted(self.places.items(), key=lambda p: p[0].lower()):
            lines.append(f"[`{name}`]({page}.md#{anchor_of(name)}) · ")
        return "\n".join(lines) + "\n"


def anchor_of(heading):
    """The anchor that Markdown's table of contents gives a heading."""
    return re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-")


def notebook(text):
    """A tutorial as a Jupyter notebook: its examples are cells, the text between them too."""
    cells = []

    def cell(kind, source):
        if source.strip():
            extra = {"execution_count": None, "outputs": []} if kind == "code" else {}
            cells.append({"cell_type": kind, "metadata": {}, "source": source.strip().splitlines(keepends=True), **extra})

    for part in re.split(r"(^```python\n.*?^```$)", text, flags=re.MULTILINE | re.DOTALL):
        if not part.startswith("```python"):
            cell("markdown", part)
            continue
        lines = part.splitlines()[1:-1]
        examples = any(line.startswith(">>>") for line in lines)
        kept = (
            [line[4:] for line in lines if line.startswith((">>> ", "... ")) or line in (">>>", "...")] if examples else lines
        )
        cell("code", "\n".join(kept))
    meta = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return json.dumps({"cells": cells, "metadata": meta, "nbformat": 4, "nbformat_minor": 4}, indent=1) + "\n"


def copy_pages(folder):
    """The repository's pages where they are there; a link to a source file becomes plain text."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/tutorials/*.md")]
    for path in pages:
        to = folder / path.relative_to(ROOT)
        to.parent.mkdir(parents=True, exist_ok=True)

        text = re.sub(
            r"\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[\w-]*)?\)",
            lambda m, p=path: m[0] if inside(p, m[2]) else m[1],
            path.read_text(),
        )
        to.write_text(text)
    shutil.copytree(ROOT / "docs/images", folder / "docs/images", dirs_exist_ok=True)
    for path in ROOT.glob("docs/tutorials/*.md"):
        (folder / "docs/tutorials" / f"{path.stem}.ipynb").write_text(notebook(path.read_text()))


def inside(page, link):
    target = (page.parent / link).resolve()
    return target.exists() and target.suffix in (".md", ".png", ".svg")


def titled(path):
    found = re.search(r"^# (.*)", (ROOT / path).read_text(), re.MULTILINE)
    return found[1] if found else path


def settings(reference):
    def pages(names):
        paths = [n if n.endswith(".md") else f"docs/{n}.md" for n in names]
        return [{titled(p): p} for p in paths if (ROOT / p).exists()]

    tutorials = [{titled(p): p} for p in (f"docs/tutorials/{t}.md" for t in TUTORIALS) if (ROOT / p).exists()]
    listed = {n for names in GUIDES.values() for n in names} | {"tutorials"}
    rest = [p.stem for p in sorted(ROOT.glob("docs/*.md")) if p.stem not in listed and f"docs/{p.name}" not in listed]
    navigation = [
        {"Start": pages(GUIDES["Start"])},
        {"Tutorials": tutorials},
        {"Guides": pages(GUIDES["Guides"]) + pages(rest)},
        {"Reference": [{title: file} for title, file in reference]},
        {"Speed": pages(GUIDES["Speed"])},
        {"Inside": pages(GUIDES["Inside"]) + [{"Contributing": "CONTRIBUTING.md"}, {"Changelog": "CHANGELOG.md"}]},
    ]
    return {
        "site_name": "Lucid",
        "site_description": "PyTorch's Python API on an engine written in C",
        "docs_dir": "pages",
        "site_dir": "html",
        "use_directory_urls": False,
        "theme": {
            "name": "material",
            "font": False,  # no fetches from other hosts
            "features": ["navigation.tabs", "navigation.top", "search.suggest", "search.highlight", "content.code.copy", "toc.follow"],
            "palette": [
                {"media": "(prefers-color-scheme: light)", "scheme": "default", "primary": "indigo",
                 "toggle": {"icon": "material/weather-night", "name": "dark"}},
                {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "primary": "indigo",
                 "toggle": {"icon": "material/weather-sunny", "name": "light"}},
            ],
        },
        "markdown_extensions": ["tables", "fenced_code", {"toc": {"permalink": True, "toc_depth": 3}}, "pymdownx.highlight", "pymdownx.superfences"],
        "plugins": [{"search": {"separator": r"[\s\-._()]+"}}],
        "validation": {"nav": {"omitted_files": "warn", "not_found": "warn"}, "links": {"not_found": "warn", "anchors": "warn"}},
        "nav": navigation,
    }  # fmt: skip


def main(build, *options):
    site = ROOT / build / "site"
    pages = site / "pages"
    shutil.rmtree(site, ignore_errors=True)
    copy_pages(pages)
    reference = Reference().write(pages / "api")
    (site / "mkdocs.yml").write_text(json.dumps(settings(reference), indent=1))  # JSON is YAML
    count = len(list(pages.rglob("*.md")))
    if "--text" in options:
        print(f"{count} pages in {pages}")
        return 0
    if not importlib.util.find_spec("material"):
        sys.exit("mkdocs-material is not installed: pip install -r requirements-docs.txt")
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", str(site / "mkdocs.yml")])
    if done.returncode == 0:
        print(f"{count} pages: open {site / 'html/index.html'}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
