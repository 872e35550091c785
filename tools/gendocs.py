#!/usr/bin/env python3
"""Write the op reference from the op table of a build: signature, description, dtypes, gradient, forms.

usage: gendocs.py OUT_DIR      with PYTHONPATH at the build's package; families are the files of engine/ops
"""

import inspect
import pathlib
import re
import sys

import genops

import lucid
from lucid import _docs

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEAD = """# Op reference

Made by `make docs` from the op table of a build; PyTorch's documentation of the same name says more. Families are files of
`engine/ops`.

- dtypes: what an input may have on the CPU. integers are {integers}; halves {halves}; floats {floats}; complex {complex}. An op
  made of other ops takes what they take.
- gradient: *formula* is the op's own, *through its parts* that of the ops it is made of. Every one can be differentiated again.
- forms: as `lucid.name`, as a method, in place (`name_`), with `out=`.
"""


def plain(text):
    """Text that Markdown leaves as it is."""
    return re.sub(r"([\\\[\]<>*_|])", r"\\\1", text)


def coded(words):
    """Names of functions and keywords in backquotes."""
    return re.sub(r"(?<!\w)(lucid\.[\w.]+|\w+_|out=)(?!\w)", r"`\1`", words)


def entry(space, public):
    """One public name with its overloads, arguments and example: the docstring (lucid/_docs) as Markdown."""
    e = _docs.entry(space, public)
    lines = [f"### {public}", "```python", *e.signatures, "```", "", *(plain(told) + "\n" for told in e.told())]
    if e.arguments:
        lines += ["| argument | type | | default |", "|---|---|---|---|"]
        lines += [
            f"| `{a.name}` | {plain(a.types)} | {plain(a.words)} | {f'`{a.default}`' if a.default else ''} |"
            for a in e.arguments
        ]
    lines += ["", f"Returns: {plain(e.returns)}.", *(f"\nDiffers from PyTorch: {plain(note)}" for note in e.notes)]
    lines += ["", " · ".join(f"{title.lower()}: {coded(words)}" for title, words in e.facts), ""]
    return "\n".join([*lines, *(["```python", e.example, "```", ""] if e.example else [])])


def python_functions():
    """Public functions that are not ops: name, signature, first line."""
    ops = set(lucid._C._op_names())
    for name in sorted(dir(lucid)):
        value = getattr(lucid, name)
        if name.startswith("_") or name in ops or inspect.ismodule(value) or not callable(value) or not inspect.getdoc(value):
            continue
        try:
            signature = str(inspect.signature(value))
        except (TypeError, ValueError):
            signature = "(...)"
        yield f"| `{name}` | `{signature.replace('|', chr(92) + '|')}` | {inspect.getdoc(value).splitlines()[0]} |\n"


def families():
    """C name of an op: its family, which is the file it is written in."""
    return {name: op.family for name, op in genops.read_ops([ROOT / "engine/ops", ROOT / "engine/autograd"]).items()}


def pages():
    family, table = families(), lucid._C._op_table()
    by_family = {}
    for r in table:
        if not r["inplace_of"]:
            key = (r["space"], r["public"], r["function"])
            by_family.setdefault(family[r["name"]], {}).setdefault(key, []).append(r)
    for name, entries in sorted(by_family.items()):
        texts = [entry(space, public) for space, public in sorted({key[:2] for key in entries})]
        yield name, sorted({key[1] for key in entries}), f"# {name}\n\n" + "\n".join(texts)


def main(out):
    folder = pathlib.Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    index = HEAD.format(**{g: ", ".join(members) for g, members in _docs.GROUPS.items()})
    count = 0
    for name, publics, text in pages():
        (folder / f"{name}.md").write_text(text)
        index += f"\n## [{name}]({name}.md)\n" + ", ".join(f"[{p}]({name}.md#{p})" for p in publics) + "\n"
        count += len(publics)
    rows = "".join(python_functions())
    index += f"\n## Besides ops\n| name | signature | |\n|---|---|---|\n{rows}"
    (folder / "README.md").write_text(index)  # a family may be called index
    print(f"{count} ops in {folder}")


if __name__ == "__main__":
    main(*sys.argv[1:])
