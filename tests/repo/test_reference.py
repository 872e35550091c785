"""The op reference is made from the op table and covers every public op."""

import os
import pathlib
import subprocess
import sys

import lucid

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_reference_covers_every_op(tmp_path):
    package = str(pathlib.Path(lucid.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([package, *sys.path])}
    subprocess.run([sys.executable, str(ROOT / "tools/gendocs.py"), str(tmp_path)], check=True, env=environment)
    pages = "\n".join(p.read_text() for p in sorted(tmp_path.glob("*.md")))
    headings = {line[4:] for line in pages.splitlines() if line.startswith("### ")}
    names = {n.split(".")[-1] for n in lucid._C._op_names()}
    forms = {f"{n}_" for n in headings if f"`{n}_`" in pages}
    assert sorted(names - headings - forms) == []
    index = (tmp_path / "README.md").read_text()
    assert all(f"[{n}](" in index for n in headings)
    assert all(f"| `{n}` |" in index for n in ("result_type", "manual_seed", "is_tensor"))


def test_table_says_what_an_op_is():
    rows = {r["name"]: r for r in lucid._C._op_table()}
    assert rows["sin"]["dtypes"] and "int64" in rows["sin"]["dtypes"], "integers become floats"
    assert rows["exponential_"]["dtypes"] == ["float16", "bfloat16", "float32", "float64"]
    kinds = {
        "view": ("transpose", "view_dtype"),
        "composite": ("flatten", "permute_copy"),
        "elementwise": ("mul", "add_alpha", "square", "square_", "clamp", "gelu", "clone", "eq"),
        "reduction": ("sum", "amax", "var", "argmax"),
        "move": ("cat", "gather", "flip"),
        "product": ("mm", "dot"),
        "opaque": ("sort", "softmax"),
    }
    assert {name: rows[name]["kind"] for names in kinds.values() for name in names} == {
        name: kind for kind, names in kinds.items() for name in names
    }
    assert rows["sin_"]["inplace_of"] == "sin" and rows["sin"]["gradient"] and not rows["argmax"]["gradient"]
    assert rows["uniform_"]["random"] and rows["nonzero"]["reads_values"] and rows["zeros"]["factory"]
