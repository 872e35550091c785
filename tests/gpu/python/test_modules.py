"""Checkpoints of activations, DataParallel, loaders and files: what Python does around ops, on CUDA devices."""

import pytest

import lucid
from lucid import nn
from lucid.utils.checkpoint import checkpoint

pytestmark = pytest.mark.skipif(not lucid.cuda.is_available(), reason="no CUDA device")


@pytest.mark.parametrize("reentrant", [False, True], ids=["", "reentrant"])
def test_a_checkpoint_draws_the_same_numbers_again(reentrant):
    x = lucid.ones(100, device="cuda", requires_grad=True)
    y = checkpoint(lambda t: nn.functional.dropout(t * 2, 0.5), x, use_reentrant=reentrant)
    after = lucid.rand(2, device="cuda")
    state = lucid.cuda.get_rng_state()
    y.sum().backward()
    assert lucid.equal(x.grad, y.detach()) and lucid.equal(lucid.cuda.get_rng_state(), state) and 0 < after[0] != after[1]


@pytest.mark.parametrize("reentrant", [False, True], ids=["", "reentrant"])
def test_a_checkpoint_is_computed_again_under_the_same_autocast(reentrant):
    layer, x, seen = nn.Linear(4, 4, device="cuda"), lucid.ones(2, 4, device="cuda", requires_grad=True), []

    def run(t):
        seen.append(lucid.is_autocast_enabled("cuda"))
        return layer(t)

    with lucid.autocast("cuda", dtype=lucid.bfloat16):
        y = checkpoint(run, x, use_reentrant=reentrant)
    y.float().sum().backward()
    z = checkpoint(run, x, use_reentrant=reentrant)
    with lucid.autocast("cuda", dtype=lucid.bfloat16):
        z.sum().backward()
    assert y.dtype == lucid.bfloat16 and z.dtype == lucid.float32 and seen == [True, True, False, False]


def test_a_checkpoint_in_a_captured_graph():
    x, graph = lucid.ones(64, device="cuda", requires_grad=True), lucid.cuda.CUDAGraph()

    def step():
        y = checkpoint(lambda t: nn.functional.dropout(t * 2, 0.5), x, use_reentrant=False)
        return y.detach(), *lucid.autograd.grad(y.sum(), x)

    step()
    lucid.cuda.manual_seed(3)
    with lucid.cuda.graph(graph):
        y, gradient = step()
    seen = []
    for _ in range(3):
        graph.replay()
        assert lucid.equal(y, gradient)
        seen.append(y.cpu())
    assert not lucid.equal(seen[0], seen[1])
    lucid.cuda.manual_seed(3)
    for before in seen:  # the numbers of eager calls
        assert lucid.equal(step()[0].cpu(), before)


class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Linear(3, 2), nn.BatchNorm1d(2)

    def forward(self, x, scale=1, also=None):
        return {"y": self.norm(self.layer(x["x"])) * scale, "also": (also, None)}


def test_data_parallel():
    """One device, or several (the second of test_emulated.py's processes): batches may come from the CPU."""
    lucid.manual_seed(0)
    plain, x = Named(), lucid.randn(6, 3)
    split = nn.DataParallel(Named().cuda())
    split.module.load_state_dict(plain.state_dict())
    for model in (plain, split):
        model.eval()
    expected, got = plain({"x": x}, scale=2), split({"x": x}, scale=2, also=x)
    assert lucid.allclose(got["y"].cpu(), expected["y"], atol=1e-6) and got["y"].device == lucid.device("cuda:0")
    assert lucid.equal(got["also"][0].cpu(), x) and got["also"][1] is None
    got["y"].square().sum().backward(), expected["y"].square().sum().backward()
    for ours, theirs in zip(split.parameters(), plain.parameters()):
        assert ours.grad.device.type == "cuda" and lucid.allclose(ours.grad.cpu(), theirs.grad, atol=1e-5)
    split.train()({"x": x})
    assert split.module.norm.num_batches_tracked == 1
    with lucid.no_grad():
        assert split.eval()({"x": x[:1]})["y"].shape == (1, 2)
    with pytest.raises(RuntimeError, match="found one of them on device: cpu"):
        split.cpu()({"x": x})


def test_distributed_data_parallel_brings_arguments():
    lucid.distributed.init_process_group("gloo", store=lucid.distributed.HashStore(), rank=0, world_size=1)
    try:
        model = nn.parallel.DistributedDataParallel(nn.Linear(3, 2).cuda(), device_ids=[0])
        assert model(lucid.ones(1, 3)).device.type == "cuda"
        model = nn.parallel.DistributedDataParallel(nn.GRU(3, 2).cuda(), device_ids=[lucid.device("cuda:0")])
        packed = nn.utils.rnn.pack_padded_sequence(lucid.ones(4, 2, 3), [4, 2])
        assert model(packed)[0].data.is_cuda
    finally:
        lucid.distributed.destroy_process_group()


def test_copies_between_devices():
    comm, last = lucid.cuda.comm, lucid.cuda.device_count() - 1
    x = lucid.arange(6.0, device="cuda", requires_grad=True)
    parts = comm.scatter(x, [0, last], chunk_sizes=[4, 2])
    assert [len(p) for p in parts] == [4, 2] and parts[1].device.index == last
    comm.gather([p * 2 for p in parts], destination="cpu").sum().backward()
    assert x.grad.tolist() == [2.0] * 6
    assert comm.reduce_add(comm.broadcast(x.detach(), [0, last]), last).tolist() == (2 * x).tolist()


@pytest.mark.parametrize(
    "where",
    ["cpu", "cuda", "cuda:0", {"cuda:0": "cpu"}, lambda s, _: s, lambda s, _: s.cuda(0)],
    ids=["cpu", "cuda", "cuda:0", "dict", "function", "function to the device"],
)
def test_map_location(tmp_path, where):
    lucid.save({"a": lucid.ones(3, device="cuda"), "b": lucid.ones(2)}, tmp_path / "x.pt")
    loaded = lucid.load(tmp_path / "x.pt", map_location=where)
    goes_up = where in ("cuda", "cuda:0") or callable(where) and where(lucid.UntypedStorage(1), "cpu").is_cuda
    stays = where in ("cpu",) or isinstance(where, dict) or callable(where) and not goes_up
    assert loaded["b"].is_cuda == goes_up and loaded["a"].is_cuda == (goes_up or not stays) and loaded["a"].sum() == 3
