"""lightning_core beside NumPy and PyTorch: what a call costs, and what the kernels take.

usage: runtime.py [--threads=2] [--markdown]

All three alternate in one process; each figure is the best of many short runs. Device "metal" is the tuned path: the choices
are made, in a folder of their own, before anything is timed. Targets are shares of what the original took on one machine.
"""

import os
import sys
import tempfile

import numpy as np
import torch
from compare import best_times, nothing, shown, timer

import lightning_core as lc
import lucid

HEAD = ["case", "lightning_core", "NumPy", "PyTorch", "target", ""]


def arrays(*shapes):
    draw = np.random.default_rng(0)
    return [draw.standard_normal(shape).astype(np.float32) for shape in shapes]


def softmax(scores):
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def numpy_attention(q, k, v):
    return softmax(q @ k.T / np.float32(np.sqrt(q.shape[1]))) @ v


def calls():
    """(title, target in seconds, ours, NumPy's or None, PyTorch's or None), each a statement and its names."""
    attend = torch.nn.functional.scaled_dot_product_attention
    base = {"lc": lc, "np": np, "attend": attend, "numpy_attention": numpy_attention, "torch": torch}
    one, vector = arrays((1, 1))[0], arrays(1)[0]
    q, k, v = arrays(*[(8, 16)] * 3)
    out, summed, mixed = np.empty_like(one), np.empty_like(vector), np.empty_like(q)
    small = base | {"a": one, "x": vector, "q": q, "k": k, "v": v, "out": out, "summed": summed, "mixed": mixed}
    small |= {f"t{n}": torch.from_numpy(small[n]) for n in "axqkv"} | {"tout": torch.empty(1, 1), "tsum": torch.empty(1)}
    small |= {"add": lc.VectorAddMetalResidentSession(1), "product": lc.MatMulMetalResidentSession(1, 1, 1)}
    small |= {"session": lc.AttentionSession(8, 16), "attend": attend}
    heads = "attend(tq[None], tk[None], tv[None])"
    yield "`matmul2d` 1 x 1", 0.5e-6, small, "lc.matmul2d(a, a)", "a @ a", "ta @ ta"
    yield "`vector_add` n = 1", 0.45e-6, small, "lc.vector_add(x, x)", "x + x", "tx + tx"
    yield "`attention2d` 8 x 16", 0.9e-6, small, "lc.attention2d(q, k, v)", "numpy_attention(q, k, v)", heads
    yield (
        "`matmul2d_into` 1 x 1",
        0.35e-6,
        small,
        "lc.matmul2d_into(a, a, out)",
        "np.matmul(a, a, out)",
        "torch.mm(ta, ta, out=tout)",
    )
    yield "`attention2d_into` 8 x 16", 0.35e-6, small, "lc.attention2d_into(q, k, v, mixed)", None, None
    yield "product session, `run_into` 1 x 1", 0.35e-6, small, "product.run_into(a, a, out)", None, None
    yield "vector session, `finish_into` n = 1", 0.35e-6, small, "add.finish_into(x, x, summed)", "np.add(x, x, summed)", None
    yield "attention session, `forward_into` 8 x 16", 0.35e-6, small, "session.forward_into(q, k, v, mixed)", None, None
    for size, elsewhere in ((256, 1.2e-3), (512, 9.9e-3), (1024, 78e-3)):
        (a,) = arrays((size, size))
        names = base | {"a": a, "t": torch.from_numpy(a)}
        yield f"`matmul2d` {size}", 0.15 * elsewhere, names, "lc.matmul2d(a, a)", "a @ a", "t @ t"
    for seq, dim, elsewhere in ((128, 64, 190e-6), (512, 64, 3057e-6)):
        (q,) = arrays((seq, dim))
        names = base | {"q": q, "t": torch.from_numpy(q)[None]}
        theirs = "attend(t, t, t)"
        yield (
            f"`attention2d` {seq} x {dim}",
            0.15 * elsewhere,
            names,
            "lc.attention2d(q, q, q)",
            "numpy_attention(q, q, q)",
            theirs,
        )
    x, w = arrays((1, 3, 32, 32), (16, 3, 3, 3))
    names = base | {"x": x, "w": w, "tx": torch.from_numpy(x), "tw": torch.from_numpy(w), "conv": torch.nn.functional.conv2d}
    theirs = "conv(tx, tw, padding=1)"
    yield "`conv2d_nchw` 3 x 32 x 32 to 16", 0.15 * 148e-6, names, "lc.conv2d_nchw(x, w, None, 1, 1, 1, 1)", None, theirs
    x, w, b = arrays((1, 3, 8, 8), (16, 3, 3, 3), 16)
    names = base | {
        "x": x,
        "w": w,
        "b": b,
        "run": lc.lightning_conv_attention_torchstrong_nchw,
        "theirs": torch_pipeline(x, w, b),
    }
    yield "pipeline 8 x 8, 48 x 48, eager", 12e-6, names, "run(x, w, b, 48, 48, 1, 1, 1, 1)", None, "theirs()"
    graph = "run(x, w, b, 48, 48, 1, 1, 1, 1, 'metal', 'graph')"
    yield "pipeline 8 x 8, 48 x 48, graph", None, names, graph, None, None


def torch_pipeline(*arrays):
    x, w, b = map(torch.from_numpy, arrays)

    def run():
        flat = torch.nn.functional.conv2d(x, w, b, padding=1).relu().reshape(-1)
        q, k, v = flat.repeat(-(-3 * 48 * 48 // flat.numel()))[: 3 * 48 * 48].reshape(3, 1, 48, 48)
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    return run


def measured():
    """Rows of cells."""
    for title, target, names, *statements in calls():
        for statement in filter(None, statements):
            timer(statement, names).timeit(3)
        times = iter(best_times([(nothing, timer(s, names)) for s in statements if s], seconds=0.6))
        ours, *others = (next(times) if s else None for s in statements)
        verdict = "" if target is None else "pass" if ours <= target else "MISS"
        cells = [shown(t, "s") if t is not None else "" for t in (ours, *others, target)]
        yield [title, *cells[:3], f"≤ {cells[3]}" if target else "", verdict]


def main(argv):
    options = dict(a[2:].split("=", 1) for a in argv if a.startswith("--") and "=" in a)
    threads = int(options.get("threads", 2))
    lucid.set_num_threads(threads)
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        rows = list(measured())
        os.chdir("/")
    if "--markdown" in argv:
        table = [HEAD[:4], ["---", "---:", "---:", "---:"], *(row[:4] for row in rows)]
        print("\n".join("| " + " | ".join(cells) + " |" for cells in table))
        return
    print(f"{threads} threads")
    widths = [max(len(row[i]) for row in [HEAD, *rows]) for i in range(len(HEAD))]
    for row in [HEAD, *rows]:
        print("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))))


if __name__ == "__main__":
    with torch.no_grad():
        main(sys.argv[1:])
