#!/usr/bin/env python3
"""Write the op reference from the op table of a build: signature, description, dtypes, gradient, forms.

usage: gendocs.py OUT_DIR      with PYTHONPATH at the build's package; families are the files of engine/ops
"""

import inspect
import pathlib
import sys

import genops

import lucid

ROOT = pathlib.Path(__file__).resolve().parent.parent
GROUPS = {
    "bool": ("bool",),
    "integers": ("uint8", "int8", "int16", "int32", "int64"),
    "wide unsigned": ("uint16", "uint32", "uint64"),
    "halves": ("float16", "bfloat16"),
    "floats": ("float32", "float64"),
    "complex32": ("complex32",),
    "complex": ("complex64", "complex128"),
}
NOTED = {"view": "a view of its input", "elementwise": "elementwise", "reduction": "a reduction", "move": "moves values"}
HEAD = """# Op reference

Made by `make docs` from the op table of a build; PyTorch's documentation of the same name says more. Families are files of
`engine/ops`.

- dtypes: what an input may have on the CPU. integers are {integers}; halves {halves}; floats {floats}; complex {complex}. An op
  made of other ops takes what they take.
- gradient: *formula* is the op's own, *through its parts* that of the ops it is made of. Every one can be differentiated again.
- forms: as `lucid.name`, as a method, in place (`name_`), with `out=`.
"""


def dtype_names(dtypes):
    if not dtypes:
        return "those of the ops it is made of"
    whole = [g for g, members in GROUPS.items() if set(members) <= set(dtypes)]
    if len(whole) == len(GROUPS):
        return "all"
    inside = {m for g in whole for m in GROUPS[g]}
    return ", ".join(whole + [d for d in dtypes if d not in inside])


def forms(rows, inplace):
    shown = [f"`lucid.{rows[0]['space'] + '.' if rows[0]['space'] else ''}{rows[0]['public']}`"] if rows[0]["function"] else []
    shown += ["method"] * any(r["method"] for r in rows)
    shown += [f"`{rows[0]['public']}_`"] * inplace
    return ", ".join(shown + ["`out=`"] * any(r["out"] for r in rows))


def gradient(rows):
    if any(r["gradient"] for r in rows):
        return "formula"
    return "through its parts" if any(r["kind"] == "composite" for r in rows) else "no"


def notes(rows):
    kinds = {r["kind"] for r in rows}
    words = [NOTED[kinds.pop()]] if len(kinds) == 1 and kinds <= NOTED.keys() else []
    words += ["random"] * any(r["random"] for r in rows)
    return words + ["reads values"] * any(r["reads_values"] for r in rows)


def entry(rows, inplace):
    """One public name with its overloads."""
    lines = [f"### {rows[0]['public']}", "```python"]
    for r in rows:
        lines.append(r["public"] + r["signature"][len(r["name"]) :])
    lines.append("```")
    for doc in dict.fromkeys(r["doc"] for r in rows):
        text, _, example = doc.partition("\n\n>>>")
        lines += [text, *(["", "```python", ">>>" + example.rstrip(), "```"] if example else [])]
    dtypes = max((r["dtypes"] for r in rows), key=len)
    lines.append("")
    lines.append(
        " · ".join([f"dtypes: {dtype_names(dtypes)}", f"gradient: {gradient(rows)}", forms(rows, inplace), *notes(rows)])
    )
    return "\n".join(lines) + "\n"


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
    inplace = {r["inplace_of"] for r in table if r["inplace_of"]}
    by_family = {}
    for r in table:
        if not r["inplace_of"]:
            key = (r["space"], r["public"], r["function"])
            by_family.setdefault(family[r["name"]], {}).setdefault(key, []).append(r)
    for name, entries in sorted(by_family.items()):
        texts = [entry(rows, any(r["name"] in inplace for r in rows)) for _, rows in sorted(entries.items())]
        yield name, sorted({key[1] for key in entries}), f"# {name}\n\n" + "\n".join(texts)


def main(out):
    folder = pathlib.Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    index = HEAD.format(**{g: ", ".join(members) for g, members in GROUPS.items()})
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
