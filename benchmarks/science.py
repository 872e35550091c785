"""Packages of scientific programs beside PyTorch: one table per package.

usage: python benchmarks/science.py [--markdown] [--threads N] [FILTER]
"""

import argparse

import torch
from compare import Row, alternate, show

import lucid

# package -> (names(m), [(title, statement, ratio at most)])
SECTIONS = {}


def section(name, cases):
    """Enter a package: the decorated function of a library gives the names its statements use."""

    def enter(names):
        SECTIONS[name] = (names, cases)
        return names

    return enter


@section(
    "sparse",
    [
        ("CSR 10,000² with 1e6 entries @ dense 64", "csr @ wide", 0.6),
        ("the same, COO", "coo @ wide", 0.6),
        ("CSR @ vector", "csr @ vector", 0.6),
        ("COO coalesce of 1e6", "scattered.coalesce()", 0.6),
        ("COO to CSR, 1e6 entries", "coo.to_sparse_csr()", None),
        ("sparse embedding step: forward, backward, SparseAdam", "embedding_step()", 0.6),
        ("the same with SGD", "sgd_step()", 0.6),
        ("COO 64 x 64 with 256 entries @ dense 8", "small @ few", 0.6),
    ],
)
def sparse(m):
    def same(function, *args):
        """The same values in both libraries."""
        made = function(*args, generator=torch.Generator().manual_seed(len(args)))
        return made if m is torch else lucid.from_numpy(made.numpy())

    n = 10_000
    index, values = same(torch.randint, 0, n, (2, 1_000_000)), same(torch.randn, 1_000_000)
    scattered = m.sparse_coo_tensor(index, values, (n, n))
    coo = scattered.coalesce()
    small = m.sparse_coo_tensor(index[:, :256] % 64, values[:256], (64, 64)).coalesce()
    ids = same(torch.randint, 0, 100_000, (4096,))

    def stepper(kind, **options):
        table = m.nn.Embedding(100_000, 64, sparse=True)
        optimizer = getattr(m.optim, kind)(table.parameters(), **options)

        def step():
            optimizer.zero_grad()
            table(ids).pow(2).sum().backward()
            optimizer.step()

        return step

    return {
        "csr": coo.to_sparse_csr(), "coo": coo, "scattered": scattered, "wide": same(torch.randn, n, 64), "small": small,
        "few": same(torch.randn, 64, 8), "vector": same(torch.randn, n),
        "embedding_step": stepper("SparseAdam"), "sgd_step": stepper("SGD", lr=0.1),
    }  # fmt: skip


def rows(wanted, threads):
    lucid.set_num_threads(threads)
    torch.set_num_threads(threads)
    for package, (names, cases) in SECTIONS.items():
        chosen = [c for c in cases if wanted in f"{package} {c[0]}"]
        if not chosen:
            continue
        ours, theirs = names(lucid), names(torch)
        for title, statement, ratio in chosen:
            mine, other = alternate(statement, ours, theirs)
            yield Row(title, mine, other, ratio, None, "s")


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("filter", nargs="?", default="")
    given = parser.parse_args()
    show(list(rows(given.filter, given.threads)), given.markdown)
