"""The gates must be able to fail: each is shown something it has to refuse."""

import pathlib
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_cuda_text  # noqa: E402
import check_duplication  # noqa: E402
import check_layers  # noqa: E402
import check_ops  # noqa: E402
import check_rooms  # noqa: E402
import check_site  # noqa: E402
import check_text  # noqa: E402
import embed  # noqa: E402
import genops  # noqa: E402
import list_sources  # noqa: E402
import make_wheel  # noqa: E402


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """An empty source tree that the gates look at instead of this one."""
    for module in (check_layers, check_ops, check_rooms, check_text, check_duplication, list_sources):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        subprocess.run(["git", "add", "--", name], cwd=tmp_path, check=True)
        return path

    return write


@pytest.mark.parametrize(
    ("file", "line", "wanted"),
    [
        ("engine/core/a.c", '#include "../tensor/t.h"', "core includes tensor"),
        ("engine/backend/cpu/a.c", '#include "../cuda/c.h"', "backend/cpu includes backend/cuda"),
        ("engine/backend/a.c", '#include "op_calls.gen.h"', "backend includes op"),
        ("engine/ops/a.c", '#include "autograd/g.h"', "ops includes autograd"),
        ("engine/op/a.c", "#include <Python.h>", "Python.h"),
        ("engine/elsewhere/a.c", "", "no place"),
    ],
)
def test_layers_refuse(tree, file, line, wanted):
    for name in ("tensor/t.h", "backend/cuda/c.h", "autograd/g.h"):
        tree(f"engine/{name}", "")
    tree(file, line + "\n")
    (problem,) = check_layers.problems()
    assert wanted in problem


def test_layers_accept_what_is_left(tree):
    tree("engine/core/core.h", "#include <stdint.h>\n")
    tree("engine/op/op.h", '#include "../core/core.h"\n#include "op_ids.gen.h"\n')
    tree("bindings/py.h", '#include <Python.h>\n#include "../engine/op/op.h"\n')
    assert list(check_layers.problems()) == []


@pytest.mark.parametrize(
    "line",
    [
        "if (x->device.kind == LC_CPU) return 0;",
        "bool there = call->device.kind != LC_META;",
        "if (LC_CUDA == t->device.kind) return 0;",
        "switch (x->device.kind) {",
    ],
)
def test_rooms_refuse_a_device_in_an_op(tree, line):
    tree("engine/ops/sort/a.c", line + "\n")
    (problem,) = check_rooms.problems()
    assert problem.startswith("engine/ops/sort/a.c:1: compares a kind of device")


def test_rooms_refuse_a_crowd(tree):
    for i in range(26):
        tree(f"bindings/op/py_{i}.c", "")
        tree(f"lucid/nn/{i}.py", "")
        if i < 25:
            tree(f"engine/ops/view/{i}.c", "if (lc_can(x)->values) return lc_device_names[x->device.kind];\n")
    problems = list(check_rooms.problems())
    assert [p.split(";")[0] for p in problems] == ["bindings/op: 26 source files", "lucid/nn: 26 source files"]


@pytest.mark.parametrize(
    ("file", "text", "wanted"),
    [
        ("a.c", "int x;\n" * 801, "801 lines"),
        ("b.py", "PATH = '/" + "home/someone/x'\n", "machine"),
        ("c.c", "int x; \n", "trailing"),
        ("ids.gen.h", "\n", "generated"),
    ],
)
def test_text_refuses(tree, file, text, wanted):
    tree(file, text)
    assert any(wanted in p for p in check_text.problems())


@pytest.mark.parametrize(
    "text, wanted",
    [
        ('int f(call c)\n{\n    return !strcmp(c->op->name, "index_copy");\n}\n', "x.c:3: an op's name is compared as text"),
        ('int f(op *o)\n{\n    const char *n = py_public_name(o);\n    return strcmp("glu", n) == 0;\n}\n', "x.c:4"),
        (
            "int f(op *op)\n{\n    return op->run == elementwise;\n}\n",
            "x.c:3: an op's function pointer is compared with elementwise",
        ),
        ("int f(call c)\n{\n    return c.op->shape != broadcast;\n}\n", "compared with broadcast"),
    ],
)
def test_ops_refuses(tree, text, wanted):
    tree("engine/transform/x.c", text)
    assert any(wanted in p for p in check_ops.problems())


def test_ops_allows(tree):
    tree(
        "engine/ops/x.c",
        "/* op->run == elementwise, strcmp(op->name, x) */\n"
        'int f(op *op)\n{\n    return op->run != NULL && op == &lc_op_add && !strcmp(args[1].s, "mean") && op->run(op);\n}\n'
        'int g(op *op, const char *mode)\n{\n    return lc_fail("%s", op->name) && !strcmp(mode, "sum");\n}\n'
        "int h(tensor *t, tensor *u)\n{\n    return t->shape == u->shape;\n}\n",
    )
    assert list(check_ops.problems()) == []


def test_duplication_sees_a_copy(tree):
    body = "\n".join(f"int f{i}(int a) {{ return a * {i} + g(a, {i}); }}" for i in range(20))
    tree("engine/core/a.c", body)
    _, covered, _ = check_duplication.measure()
    assert sum(map(len, covered.values())) == 0
    tree("engine/core/b.c", "/* another place */\n" + body)
    streams, covered, _ = check_duplication.measure()
    assert sum(map(len, covered.values())) == sum(map(len, streams.values()))


def test_public_headers_are_followed(tree, monkeypatch):
    top = tree("engine/include/lucid.h", '#include "../a/x.h"\n#include "op_ids.gen.h"\n')
    tree("engine/a/x.h", '#include "y.def"\n')
    tree("engine/a/y.def", "")
    tree("engine/a/private.h", "")
    assert list_sources.included(top) == ["engine/a/x.h", "engine/a/y.def", "engine/include/lucid.h"]


@pytest.mark.parametrize(
    "block",
    [
        'LC_OP(f, .sig = "g(input: Tensor) -> Tensor");',
        'LC_OP(f, .sig = "f(input: Tensor) -> Tensor");\nLC_OP(f, .sig = "f(input: Tensor) -> Tensor");',
        'LC_OP(f, .sig = "f(input: Quaternion) -> Tensor");',
        '#define ROW(op) LC_OP(op, .sig = "f(input: Tensor) -> Tensor");\nROW(f)\nROW(g)',
        'LC_OP(f, .aliases = "g", .sig = "f(input: Tensor) -> Tensor");\nLC_OP(g, .sig = "g(input: Tensor) -> Tensor");',
        '#include "no_such_header.h"\n',
    ],
)
def test_genops_refuses(tmp_path, block):
    (tmp_path / "ops").mkdir()
    (tmp_path / "ops/f.c").write_text(block + "\n")
    with pytest.raises(SystemExit):
        genops.main(tmp_path / "ops", tmp_path / "out")


def test_genops_reads_rows_of_a_macro(tmp_path):
    (tmp_path / "f.c").write_text(
        '#define ARGS "(input: Tensor, n: int = 1"\n#define FIELDS .ns = "nn.functional"\n'
        '#define ROW(op, about, ...) \\\n    LC_OP(op, .sig = #op ARGS ") -> Tensor", .doc = "The " about ".", FIELDS); \\\n'
        '    LC_OP(op##_both, .sig = #op "_both" ARGS ") -> Tensor", .py = #op, ##__VA_ARGS__);\n'
        'ROW(f, "first (of, two)")\nROW(g, "second", .method = true)\n'
    )
    ops = genops.read_ops([tmp_path])
    assert [(op.name, op.py, op.doc, op.method) for op in ops.values()] == [
        ("f", "f", "The first (of, two).", False),
        ("f_both", "f", "", False),
        ("g", "g", "The second.", False),
        ("g_both", "g", "", True),
    ]
    assert ops["g_both"].sig == "g_both(input: Tensor, n: int = 1) -> Tensor" and ops["f"].ns == "nn.functional"


def test_genops_derives_aliases_and_classes(tmp_path):
    (tmp_path / "f.c").write_text(
        "#define FORMS .inplace = true, .method = true\n"
        'LC_OP(f, .aliases = "g h", .sig = "f(input: Tensor) -> Tensor", .doc = "A function.", FORMS, .run = elementwise);\n'
        'LC_OP(f_more, .py = "f", .aliases = "g", .sig = "f_more(input: Tensor, n: int) -> Tensor", .lower = rows, '
        ".run = lowered);\n"
        'LC_OP(v, .sig = "v(input: Tensor) -> Tensor", .view_of = IN(0), .call = v_call, .copies = true);\n'
        'LC_OP(c, .sig = "c(input: Tensor) -> Tensor", .call = c_call);\n'
        'LC_OP(k, .sig = "k(input: Tensor) -> Tensor", .run = k_run);\n'
    )
    ops = genops.read_ops([tmp_path])
    assert {name: (op.py, op.base, op.derived) for name, op in ops.items() if op.derived} == {
        "f_": ("f_", "f", "inplace"),
        "g": ("g", "f", "alias"),
        "g_": ("g_", "g", "inplace"),
        "g_more": ("g", "f_more", "alias"),
        "h": ("h", "f", "alias"),
        "h_": ("h_", "h", "inplace"),
        "v_copy": ("v_copy", "v", "copy"),
    }
    assert ops["g_more"].sig == "g_more(input: Tensor, n: int) -> Tensor" and ops["h"].doc == "Another name of f."
    assert ops["h_"].method and ops["h_"].family == "f"
    kinds = {name: op.kind.removeprefix("LC_KIND_") for name, op in ops.items() if not op.derived}
    assert kinds == {"f": "ELEMENTWISE", "f_more": "ELEMENTWISE", "v": "VIEW", "c": "COMPOSITE", "k": "OPAQUE"}


def test_embedded_texts_hold_what_they_include(tmp_path):
    (tmp_path / "shared.h").write_text('/* said "once" */\nFN T twice(T x) { return x + x; } // both\n')
    (tmp_path / "kernel.cuh").write_text('#define T float\n#include "shared.h"\n#undef T\nasm("h \\n // no comment");\n')
    text = embed.embedded("texts", tmp_path / "kernel.cuh")
    assert text.startswith("extern const char texts_kernel[];")
    assert r'"#define T float\n"' in text
    assert r'"FN T twice(T x) { return x + x; }\n"' in text
    assert "once" not in text and "both" not in text
    assert r"asm(\"h \\n // no comment\");" in text
    (tmp_path / "kernel.cuh").write_text('#include "kernel.cuh"\n')
    with pytest.raises(ValueError, match="includes itself"):
        embed.embedded("texts", tmp_path / "kernel.cuh")


def test_kernels_with_too_many_registers_for_their_blocks():
    text = b"BLOCK_KERNEL(a, args, p)\nBLOCK_KERNEL_OF(2 * N, b, args, p)\nKERNEL(c, args, p)\nBLOCK_KERNEL(d, args, p)"
    used = {"a": 129, "b": 250, "c": 250, "d": 128}
    log = "".join(f"Compiling entry function '{name}'\nptxas info : Used {n} registers\n" for name, n in used.items())
    conditions = [line.split(",")[0] for line in check_cuda_text.too_wide(text, log)]
    assert conditions == ["static_assert((512) * 136 <= 65536", "static_assert((2 * N) * 256 <= 65536"]


PAGE = """<!DOCTYPE html><html><head><link rel="icon" href="data:,"></head><body><article><h1>Title</h1><p>{text}</p></article>
<script>{script}</script></body></html>"""


@pytest.mark.skipif(not check_site.find_browser(), reason="Chromium is not installed")
def test_the_site_is_refused_for_what_a_reader_would_see(tmp_path):
    long = "words " * 100
    pages = {
        "fine": PAGE.format(text=long, script=""),
        "empty": PAGE.format(text="", script=""),
        "raises": PAGE.format(text=long, script="undefined.name"),
        "complains": PAGE.format(text=long, script="console.error('no data')"),
        "lacks": PAGE.format(text=long + "<img src='nothing.png'>", script=""),
        "index": PAGE.format(text="<a class='md-search-result__link' href='conv2d.html'>found</a>", script=""),
    }
    for name, text in pages.items():
        (tmp_path / f"{name}.html").write_text(text)
    looks = pages.keys() - {"index"}
    found = check_site.problems(
        check_site.find_browser(), tmp_path, sorted(looks), {"conv2d": "conv2d", "adam": "adam"}, patience=3
    )
    told = {line.split(":")[0]: line for line in found}
    assert told.keys() == looks - {"fine"} | {"search adam"}
    assert "TypeError" in told["raises"] and "no data" in told["complains"] and "nothing.png" in told["lacks"]


def test_a_wheel_is_renamed_with_what_it_says(tmp_path):
    wheel = tmp_path / "lucid_dl-1-cp311-cp311-linux_x86_64.whl"
    old, new, about = (
        "lucid/_C.cpython-311-x86_64-linux-gnu.so",
        "lucid/_C.cpython-312-x86_64-linux-gnu.so",
        "lucid_dl-1.dist-info",
    )
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr(old, b"old")
        made.writestr(f"{about}/RECORD", f"{old},sha256=x,3\n{about}/WHEEL,sha256=y,4\nRECORD,,\n")
        made.writestr(f"{about}/WHEEL", "Tag: cp311-cp311-linux_x86_64\n")
    renamed = make_wheel.rewrite(wheel, ["cp312", "cp312", "manylinux_2_35_x86_64"], tmp_path, (new, b"newer"))
    assert renamed.name == "lucid_dl-1-cp312-cp312-manylinux_2_35_x86_64.whl"
    with zipfile.ZipFile(renamed) as made:
        assert made.testzip() is None and made.read(new) == b"newer" and len(made.namelist()) == 3
        assert made.read(f"{about}/WHEEL") == b"Tag: cp312-cp312-manylinux_2_35_x86_64\n"
        rows = made.read(f"{about}/RECORD").decode().splitlines()
    assert rows[0] == f"{new},{make_wheel.digest(b'newer')},5" and rows[2] == "RECORD,," and "sha256=y" not in rows[1]
