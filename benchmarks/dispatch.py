"""Call overhead: small tensors, one thread, beside PyTorch.   usage: python benchmarks/dispatch.py [--markdown] [FILTER]"""

import pathlib
import sys
import time

import torch
from compare import Row, alternate, show, start_up

import lucid

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import check_size  # noqa: E402
import count_instructions  # noqa: E402

VALUES = [i / 64 for i in range(64)]
SIXTH, EIGHTH, TENTH = 1 / 6, 1 / 8, 1 / 10
# title, statement, ratio at most, seconds at most. x, y: 64 floats; m: 8 x 8; w: requires grad; p: a Parameter; s: 0-d
CASES = [
    ("`x + y`, 64 floats", "x + y", TENTH, 130e-9),
    ("the same, recorded for grad", "w + y", EIGHTH, 220e-9),
    ("`x * 2.0`", "x * 2.0", SIXTH, None),
    ("`x + row`", "m + row", SIXTH, None),
    ("`x + parameter`", "x + p", SIXTH, None),
    ("`x.sum(dim=1, keepdim=True)`", "m.sum(dim=1, keepdim=True)", SIXTH, None),
    ("`x.mul_(y)`", "x.mul_(one)", SIXTH, None),
    ("`add(x, y, out=z)`", "add(x, y, out=z)", SIXTH, None),
    ("`x[3]`", "m[3]", SIXTH, None),
    ("`x[3:7]`", "m[3:7]", SIXTH, None),
    ("`x.view(64)`", "m.view(64)", SIXTH, None),
    ("`x.t()`", "m.t()", SIXTH, None),
    ("`x.shape`", "m.shape", SIXTH, None),
    ("`x.item()`", "s.item()", SIXTH, None),
    ("`tensor([1., 2., 3.])`", "tensor([1.0, 2.0, 3.0])", SIXTH, None),
    ("`(x*y).sum().backward()`", "(w * y).sum().backward()", TENTH, 1.5e-6),
]


def names(library):
    x, y, z, one = (library.tensor(v) for v in (VALUES, VALUES, VALUES, [1.0] * 64))
    w = library.tensor(VALUES, requires_grad=True)
    p = library.nn.Parameter(library.tensor(VALUES))
    m, row, s = x.view(8, 8).clone(), y[:8].clone(), library.tensor(1.5)
    functions = {"add": library.add, "tensor": library.tensor}
    return {"x": x, "y": y, "z": z, "one": one, "w": w, "p": p, "m": m, "row": row, "s": s} | functions


def calls(wanted):
    ours, theirs = names(lucid), names(torch)
    for title, statement, ratio, limit in CASES:
        if wanted in title:
            mine, other = alternate(statement, ours, theirs)
            yield Row(title, mine, other, ratio, limit, "s")


def chain():
    """Backward through a million nodes, and freeing them: time per node."""
    y = lucid.tensor([1.0], requires_grad=True)
    for _ in range(1_000_000):
        y = y + 1.0
    start = time.perf_counter()
    y.sum().backward()
    yield Row("a node of a 1,000,000-node backward", (time.perf_counter() - start) / 1e6, unit="s")
    y = lucid.tensor([1.0], requires_grad=True)
    for _ in range(1_000_000):
        y = y + 1.0
    start = time.perf_counter()
    del y
    yield Row("a node of a 1,000,000-node graph dropped", (time.perf_counter() - start) / 1e6, unit="s")


def whole():
    bare = start_up("pass", 15)
    yield Row(
        "import, over bare Python", start_up("import lucid", 15) - bare, start_up("import torch", 2) - bare, None, 30e-3, "s"
    )
    sizes = check_size.sizes(ROOT / "build/release")
    ours = sizes["_C"] + sizes["liblucid"]
    theirs = sum(p.stat().st_size for p in pathlib.Path(torch.__file__).parent.rglob("*") if p.is_file())
    yield Row("libraries, stripped; all of PyTorch", ours / 1e6, theirs / 1e6, None, 8, "MB")
    if count_instructions.available():
        _, inside = count_instructions.per_round("x + y")
        yield Row("instructions in the call of `x + y`", inside, None, None, 850, "")
    else:
        print("valgrind is not installed: instructions were not counted")


def main(*arguments):
    wanted = [a for a in arguments if not a.startswith("--")]
    torch.set_num_threads(1)
    lucid.set_num_threads(1)
    rows = list(calls(wanted[0] if wanted else ""))
    if not wanted:
        rows += [*chain(), *whole()]
    show(rows, "--markdown" in arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
