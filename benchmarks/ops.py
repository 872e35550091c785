"""Every family of ops beside PyTorch, at 64, 16k and 4M elements.

usage: ops.py [--markdown] [--size=64|16k|4M] [--seconds=S] [FILTER...]      a filter is a family, or a part of a statement

Each library runs with 1 and with 2 threads; a ratio is Lucid's time with 2 threads over PyTorch's better time. The targets are
the project's: a geometric mean per size, no op slower than 1.1 at 4M, some ops by name. Workspace is what a call allocates
besides its result, measured with one thread. Missing ops are listed at the end.
"""

import math
import sys

import torch
from compare import best_times, shown, timer

import lucid

SIDES = {"64": 8, "16k": 128, "4M": 2048}  # square matrices
FASTER = {"64": 5.0, "16k": 1.5, "4M": 1.15}  # geometric means
SLOWEST = 1.1  # at 4M
WORKSPACE, PER_ROW = 64 << 10, 64  # bytes
# x y: randn; p: positive; i j: int64; k: int32; h: float16; b: bfloat16; d: float64; c: complex64; u: uint8; m: bool; t: 3-d
# at: indices, as wide as x; pick: some rows, some: those of y; q: positive; row, column: of x; n: elements
# w: recorded for gradients; z: is written
FAMILIES = {
    "elementwise": """
        x + y | x + row | x + column | x * 2.0 | x / y | x.neg() | x.abs() | x.exp() | x.tanh() | x.sigmoid() | x.sin()
        p.log() | p.sqrt() | x ** 2 | p ** 1.5 | x.maximum(y) | x > y | x > 0.5 | x.clamp(-1.0, 1.0) | x.relu()
        x.isnan() | z.add_(y) | x.round() | x.t() + y | x.erf() | x.log1p() | x.atan2(y) | x.lerp(y, 0.3)
        x.addcmul(y, p) | x.hypot(y) | x.fmod(y) | x.sign() | i + j | i * 3 | i == j | i // q | k + k | m & m
        m.logical_not() | d + d | d.exp() | d * 2.0 | c + c | c * c | c.abs()""",
    "half-precision": """
        h + h | h * 2.0 | h.exp() | h.tanh() | h > 0.5 | h.sum() | h.sum(1) | h.relu() | h.neg() | b + b | b * 2.0
        b.exp() | b.tanh() | b.sum() | b.sum(0) | b.relu() | b.maximum(b)""",
    "conversions": """
        x.half() | x.bfloat16() | x.double() | x.long() | h.float() | b.float() | i.float() | m.float() | x.bool()
        i.int() | d.float()""",
    "reductions": """
        x.sum() | x.sum(0) | x.sum(1) | t.sum(1) | x.mean(0) | x.amax() | x.amax(0) | x.amax(1) | x.max(1) | x.max(0)
        x.argmax(1) | x.argmax() | x.var() | x.var(0) | x.var(1) | x.std(1) | x.prod() | x.logsumexp(1) | x.logsumexp(0)
        i.sum() | i.amax(1) | m.any() | m.sum() | m.all(1) | d.sum() | d.sum(1) | x.norm() | x.norm(dim=1)
        x.t().sum(1) | x.aminmax() | x.count_nonzero() | x.nansum(1) | x.median() | x.median(1) | x.kthvalue(3, 1)
        i.mode(1) | x.quantile(0.3, 1)""",
    "scans": """
        x.cumsum(0) | x.cumsum(1) | i.cumsum(1) | d.cumsum(1) | x.cumprod(1) | x.cummax(1) | x.cummin(0)
        x.logcumsumexp(1) | x.diff()""",
    "sorting": """
        x.sort() | x.sort(0) | i.sort() | x.argsort() | x.sort(descending=True) | x.sort(stable=True) | wide.sort()
        x.topk(5) | x.topk(5, 0) | wide.topk(100) | x.msort() | i.unique() | x.unique() | i.unique(return_inverse=True)
        i.unique_consecutive() | searchsorted(edges, x) | bucketize(x, edges) | flat_i.bincount() | x.histc()
        isin(i, pick) | order.topk(n // 4)""",
    "indexing": """
        x[pick] | x[:, pick] | x[m] | x[2] | x[1:5] | x.index_select(0, pick) | x.index_select(1, pick)
        x.gather(0, at) | x.gather(1, at) | x.scatter(1, at, y) | x.scatter(0, at, y) | x.scatter_add(1, at, y)
        x.scatter_add(0, at, y) | x.index_add(0, pick, some) | x.index_fill(1, pick, 0.0) | x.take(flat_at)
        x.masked_select(m) | m.nonzero() | x.masked_fill(m, 0.0) | z.masked_fill_(m, 0.0) | where(m, x, y)
        where(m, x, 0.0) | z.index_put_((pick,), some) | x.take_along_dim(at, 1) | x.masked_scatter(m, y)""",
    "moves": """
        x.clone() | z.copy_(x) | x.t().contiguous() | h.t().contiguous() | d.t().contiguous() | u.t().contiguous()
        t.permute(2, 0, 1).contiguous() | t.transpose(0, 1).contiguous() | cat((x, y)) | cat((x, y), 1) | stack((x, y))
        stack((x, y), -1) | x.roll(3, 0) | x.roll(3, 1) | x.flip(0) | x.flip(1) | x.tril() | x.triu() | x.repeat(1, 2)
        x[::2].contiguous() | x[:, ::2].contiguous() | x[:, 1:].contiguous() | x.chunk(4) | x.rot90()
        x.repeat_interleave(2, 1) | x.expand(2, -1, -1).contiguous() | z.fill_(1.0) | z.zero_()""",
    "creation": """
        zeros(n) | ones(n) | full((n,), 2.5) | arange(n) | arange(n, dtype=float32) | arange(0.0, 1.0, 1.0 / n)
        linspace(0.0, 1.0, n) | eye(side) | zeros_like(x) | rand(n) | randn(n) | randint(9, (n,)) | randperm(n)
        bernoulli(half) | dropout(x, 0.5, True) | tril_indices(side, side)""",
    "rows": """
        x.softmax(0) | x.softmax(1) | x.log_softmax(1) | x.log_softmax(0) | h.softmax(1) | d.softmax(1) | t.softmax(1)
        x.mv(row) | flat.dot(flat) | row.outer(row)""",
    "gradients": "(w * y).sum().backward() | w.softmax(1).sum().backward() | (w + row).tanh().sum().backward()",
}
# by name, at 4M (the sort of 64 rows of 16384 has one size)
NAMED = {"wide.sort()": 0.35, "x.cumsum(0)": 0.7, "x.cumsum(1)": 0.7, "x.t().contiguous()": 0.6}
VIEWS = ("x[2]", "x[1:5]", "x.chunk(4)")  # their time does not depend on the size


def cases():
    for family, text in FAMILIES.items():
        for line in text.splitlines():
            yield from ((family, s.strip()) for s in line.split(" | ") if s.strip())


def names(library, side):
    """The operands, the same values in either library, and the functions that statements call by name."""
    make = torch.Generator().manual_seed(side)
    n = side * side
    flat_at = torch.randint(n, (n,), generator=make)
    values = {
        "x": torch.randn(side, side, generator=make),
        "y": torch.randn(side, side, generator=make),
        "t": torch.randn(side // 8 or 1, 8, side, generator=make),
        "i": torch.randint(1000, (side, side), generator=make),
        "j": torch.randint(1000, (side, side), generator=make),
        "m": torch.rand(side, side, generator=make) > 0.5,
        "at": torch.randint(side, (side, side), generator=make),
        "pick": torch.randperm(side, generator=make)[: max(1, side // 2)],
        "row": torch.randn(side, generator=make),
        "column": torch.randn(side, 1, generator=make),
        "edges": torch.linspace(-3, 3, 101),
        "wide": torch.randn(64, 16384, generator=make) if side == 2048 else torch.zeros(1, 1),
        "flat_at": flat_at,
        "flat_i": flat_at % 1000,
        "order": torch.randperm(n, generator=make),
    }
    given = {k: v if library is torch else library.from_numpy(v.numpy()).clone() for k, v in values.items()}
    x = given["x"]
    given |= {"h": x.half(), "b": x.bfloat16(), "d": x.double(), "u": x.abs().to(library.uint8), "k": given["i"].int()}
    given |= {"p": x.abs() + 0.1, "half": x.sigmoid(), "z": x.clone(), "c": x + 1j * given["y"], "flat": x.reshape(-1).clone()}
    given |= {"q": given["j"] + 1, "some": given["y"][given["pick"]]}
    given |= {"w": x.clone().requires_grad_(), "n": n, "side": side, "float32": library.float32}
    called = {name.split("(")[0] for _, name in cases() if "." not in name.split("(")[0]}
    return given | {f: getattr(library, f) for f in sorted(called) if f and hasattr(library, f)}


def workspace(statement, given):
    """Peak bytes allocated during the call, minus those that remain after it."""
    lucid.set_num_threads(1)
    run = eval(f"lambda {', '.join(given)}: {statement}")  # noqa: S307
    run(**given)
    lucid.reset_peak_memory_stats()
    result = run(**given)  # kept: the result is not workspace
    stats = lucid.memory_stats()
    del result
    return stats["peak_bytes"] - stats["allocated_bytes"]


def measure(statement, ours, theirs, seconds):
    """Best times: Lucid with 1 and 2 threads, PyTorch with 1 and 2 threads."""
    turns = [
        (lambda k=k, f=f: f(k), timer(statement, g))
        for f, g in ((lucid.set_num_threads, ours), (torch.set_num_threads, theirs))
        for k in (1, 2)
    ]
    return best_times(turns, seconds)


def geometric(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def absent(statement, given):
    """The reason why it cannot be measured, or None."""
    try:
        eval(statement, dict(given))  # noqa: S307
    except (AttributeError, NameError, NotImplementedError, TypeError) as e:
        return f"{statement} ({type(e).__name__})"
    return None


class Table:
    """Prints rows as they come, and keeps ratios and misses for the end."""

    def __init__(self, size, markdown):
        self.size, self.markdown, self.ratios, self.misses, self.absent = size, markdown, [], [], []
        print(f"\n{size} elements\n")
        self.line("case", "Lucid 1", "Lucid 2", "PyTorch 1", "PyTorch 2", "ratio", "")
        if markdown:
            print("|---|---:|---:|---:|---:|---:|---|")

    def line(self, case, *cells):
        if self.markdown:
            print("| " + " | ".join(c.replace("|", "\\|") for c in (case, *cells)) + " |", flush=True)
        else:
            print(f"{case:34}", *(f"{c:>9}" for c in cells), flush=True)

    def add(self, statement, times, used):
        ratio = times[1] / min(times[2:])
        limit = NAMED.get(statement, SLOWEST) if self.size == "4M" else None
        self.ratios.append(ratio)
        if limit and ratio > limit:
            self.misses.append(f"{self.size}: {statement} {ratio:.2f} (≤ {limit})")
        if used > WORKSPACE + PER_ROW * SIDES[self.size]:
            self.misses.append(f"{self.size}: {statement} takes {used >> 10} KiB of workspace")
        notes = [f"{used >> 10} KiB"] if used >= 1024 else []
        notes += ["MISS"] if limit and ratio > limit else []
        shown_times = [shown(t, "s") for t in times]
        self.line(f"`{statement}`" if self.markdown else statement, *shown_times, f"{ratio:.2f}", " ".join(notes))

    def summary(self):
        faster, target = 1 / geometric(self.ratios), FASTER[self.size]
        verdict = "met" if faster >= target else "MISSED"
        return f"{self.size} elements: {faster:.2f} times as fast ({len(self.ratios)} cases; target {target}: {verdict})"


def one_size(size, wanted, seconds, markdown):
    table = Table(size, markdown)
    ours, theirs = names(lucid, SIDES[size]), names(torch, SIDES[size])
    for family, statement in cases():
        only = "4M" if statement.startswith("wide.") else "64" if statement in VIEWS else size
        if only != size or (wanted and not any(w in statement or w == family for w in wanted)):
            continue
        if reason := absent(statement, ours):
            table.absent.append(reason)
            continue
        times = measure(statement, ours, theirs, seconds)
        table.add(statement, times, 0 if "backward" in statement else workspace(statement, ours))
    return table


def main(*arguments):
    wanted = [a for a in arguments if not a.startswith("--")]
    options = dict(a[2:].split("=") for a in arguments if "=" in a and a.startswith("--"))
    sizes = [options["size"]] if "size" in options else SIDES
    tables = [one_size(s, wanted, float(options.get("seconds", 0.2)), "--markdown" in arguments) for s in sizes]
    print()
    for table in tables:
        if table.ratios:
            print(table.summary())
    for table in tables:
        print(*(f"missed at {m}" for m in table.misses), sep="\n", end="\n" if table.misses else "")
    if tables[-1].absent:
        print("not measured:", ", ".join(tables[-1].absent))


if __name__ == "__main__":
    main(*sys.argv[1:])
