"""Sparse tensors on their way: files and pickles, both libraries' ways; copies; other processes."""

import copy
import io
import pickle
import warnings

import pytest
import torch

import lucid

from .both import coo, csr, dense, described, hybrid

MADE = {
    "coo": coo,
    "coalesced": lambda m: coo(m).coalesce(),
    "hybrid": hybrid,
    "empty": lambda m: m.sparse_coo_tensor(size=(2, 3)),
    "csr": csr,
    "csc": lambda m: csr(m).to_sparse_csc(),
    "bsr": lambda m: dense(m, 4, 4).to_sparse_bsr((2, 2)),
    "bsc": lambda m: dense(m, 4, 4).to_sparse_bsc((2, 2)),
    "double": lambda m: coo(m, dtype=m.float64),
}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", MADE)
def test_files(name):
    for write in (lucid, torch):
        for read in (lucid, torch):
            file = io.BytesIO()
            write.save({"s": MADE[name](write), "x": write.ones(2)}, file)
            file.seek(0)
            back = read.load(file)
            assert described(back["s"], read) == described(MADE[name](write), write)
            assert back["x"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", MADE)
def test_pickles_and_copies(name):
    s = MADE[name](lucid)
    for protocol in (2, 5):
        assert described(pickle.loads(pickle.dumps(s, protocol)), lucid) == described(s, lucid)
    for made in (copy.deepcopy(s), copy.copy(s), s.clone()):
        assert described(made, lucid) == described(s, lucid)
    leaf = copy.deepcopy(s.requires_grad_())
    assert leaf.requires_grad
    assert leaf.layout == s.layout
    again = pickle.loads(pickle.dumps(s))
    assert again.requires_grad
    deep = copy.deepcopy(s)
    deep._values().zero_()
    assert described(s, lucid) == described(MADE[name](lucid), lucid)


def test_damaged_files():
    file = io.BytesIO()
    lucid.save(coo(lucid), file)
    text = file.getvalue()
    for i in range(0, len(text), 97):
        broken = io.BytesIO(text[:i] + bytes([text[i] ^ 0x55]) + text[i + 1 :])
        try:
            made = lucid.load(broken)
        except Exception:  # noqa: BLE001, S112  any error will do; a crash would not
            continue
        if isinstance(made, lucid.Tensor) and made.is_sparse:
            made.to_dense()


class Graphs(lucid.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return lucid.sparse_coo_tensor([[0, i], [i, 1]], [1.0, 2.0], (4, 4)), csr(lucid) * i


def first(items):
    return items[0]


def test_data_loader_workers():
    loader = lucid.utils.data.DataLoader(Graphs(), batch_size=1, num_workers=2, collate_fn=first)
    for i, (a, b) in enumerate(loader):
        assert described(a, lucid) == described(Graphs()[i][0], lucid)
        assert described(b, lucid) == described(Graphs()[i][1], lucid)


def test_state_dict_with_a_sparse_buffer():
    def module(m):
        made = m.nn.Linear(2, 2)
        made.register_buffer("adjacency", coo(m).coalesce())
        return made

    file = io.BytesIO()
    torch.save(module(torch).state_dict(), file)
    file.seek(0)
    mine = module(lucid)
    mine.adjacency = lucid.zeros_like(mine.adjacency)
    mine.load_state_dict(lucid.load(file))
    assert described(mine.adjacency, lucid) == described(coo(torch).coalesce(), torch)
    assert described(mine.double().adjacency, lucid) == described(coo(lucid, dtype=lucid.float64).coalesce(), lucid)
