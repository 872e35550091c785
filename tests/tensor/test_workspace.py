"""What ops allocate besides their results: at most 64 KiB per thread and a few bytes per row; others: docs/conformance.md."""

import numpy as np
import pytest

import lucid

ROWS = 512
OPS = """
    x.sum() | x.sum(0) | x.sum(1) | x.mean(0) | x.amax(0) | x.argmax() | x.max(0) | x.var(0) | x.aminmax() | x.norm() | c.sum()
    x.logsumexp(0) | x.logsumexp(1) | x.logsumexp((0, 1)) | x.median() | x.median(0) | x.nanmedian() | x.quantile(0.3, 1)
    x.quantile(0.3, 0) | x.nanquantile(0.3) | flat.kthvalue(1000) | h.median() | h.softmax(1) | x.softmax(0) | x.log_softmax(1)
    x.cumsum(0) | x.cummax(1) | x.logcumsumexp(1) | x.sort() | x.sort(0) | flat.sort() | flat.argsort(descending=True)
    x.msort() | flat.msort() | x.topk(5) | flat.topk(9) | x.unique() | i.unique() | flat.quantile(row[:100].sigmoid())
    i.unique(return_inverse=True, return_counts=True) | flat.nanquantile(row[:9].sigmoid()) | x.quantile(row[:3].sigmoid(), 0)
    x.tril() | x.unique(return_inverse=True) | i.unique_consecutive() | runs.unique_consecutive(return_counts=True)
    d.sort() | d.argsort() | d.reshape(-1).sort() | d.reshape(-1).argsort(descending=True) | d.reshape(-1).sort(stable=True)
    perm.topk(9000) | perm.topk(perm.numel(), largest=False)
    d.reshape(-1).topk(9000) | places.topk(99999) | i.reshape(-1).topk(i.numel())
    d.unique() | d.unique(return_inverse=True, return_counts=True) | spread.unique(return_inverse=True, return_counts=True)
    lucid.bucketize(x, edges) | lucid.isin(i, edges.long()) | x.histc() | i.reshape(-1).bincount() | lucid.dropout(x, 0.5, True)
    x[m] | x.masked_select(m) | m.nonzero() | x.masked_scatter(m, x) | x.t().contiguous() | x.flip(1) | lucid.cat((x, x), 1)
    x.mv(row) | x.t().mv(row) | h.mv(h[0]) | h.t().mv(h[0]) | x.mv(x[:, 3]) | flat.dot(flat) | row.outer(row) | x @ x[:, :7]
    x @ x[:64].t() | lucid.bmm(t, t) | lucid.addmv(row, x, row) | i @ i | lucid.dropout_(x + 0, 0.5, True)
    lucid.alpha_dropout(x, 0.5, True) | lucid.arange(ROWS * ROWS) | lucid.randn(ROWS, ROWS)
    lucid.randperm(ROWS * ROWS) | x.half() | x.exp() | x.t() + x
    lucid.nn.functional.grid_sample(t[:2, :, None], t.reshape(-1)[:16384].reshape(2, 64, 64, 2), align_corners=False)
"""


@pytest.fixture(scope="module")
def operands():
    rng = np.random.default_rng(0)
    x = lucid.from_numpy(rng.normal(size=(ROWS, ROWS)).astype("float32"))
    i = lucid.from_numpy(rng.integers(0, 1000, (ROWS, ROWS)))
    given = {"x": x, "i": i, "m": x > 0, "h": x.half(), "c": x + 1j, "flat": x.reshape(-1), "edges": lucid.linspace(-3, 3, 101)}
    given |= {
        "d": lucid.from_numpy(rng.normal(size=(ROWS, ROWS))),
        "spread": i * 123456789,
        "perm": lucid.randperm(ROWS * ROWS).float(),
        "places": lucid.randperm(ROWS * ROWS),
    }
    return given | {"runs": (i // 100).sort().values, "row": x[0], "t": x.reshape(64, 64, 64), "lucid": lucid, "ROWS": ROWS}


@pytest.mark.parametrize("statement", [s.strip() for line in OPS.split("\n") for s in line.split(" | ") if s.strip()])
def test_workspace(statement, operands):
    threads = lucid.get_num_threads()
    lucid.set_num_threads(1)
    try:
        eval(statement, dict(operands))  # noqa: S307
        lucid.reset_peak_memory_stats()
        before = lucid.memory_stats()["allocated_bytes"]
        result = eval(statement, dict(operands))  # noqa: S307
        stats = lucid.memory_stats()
    finally:
        lucid.set_num_threads(threads)
    assert result is not None
    assert stats["peak_bytes"] - stats["allocated_bytes"] <= 192 << 10  # what 2048 rows may take
    del result
    assert lucid.memory_stats()["allocated_bytes"] == before
