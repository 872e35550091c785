"""Autocast on CUDA: the dtypes in which ops compute are those of PyTorch's lists (ATen/autocast_mode.h). GradScaler never
waits."""

import pytest

import lucid
import lucid.nn.functional as F
from lucid import linalg

pytestmark = pytest.mark.skipif(not lucid.cuda.is_available(), reason="no CUDA device")
FLOAT32 = "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan sum prod norm".split()
ALONG_A_DIMENSION = "softmax log_softmax cumsum cumprod logsumexp sum".split()
OTHERS_IN_FLOAT32 = {
    "pow": lambda x: x.pow(1.5),
    "**": lambda x: x**2,
    "pow of a number": lambda x: lucid.pow(2.0, x),
    "softplus": F.softplus,
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "group_norm": lambda x: F.group_norm(x, 2),
    "rms_norm": lambda x: F.rms_norm(x, (4,)),
    "norm of columns": lambda x: x.norm(dim=0),
    "vector_norm": linalg.vector_norm,
    "matrix_norm": linalg.matrix_norm,
    "linalg.norm": linalg.norm,
    "cosine_similarity": lambda x: F.cosine_similarity(x, x),
    "dist": lambda x: lucid.dist(x, x),
    "pdist": lucid.pdist,
    "cdist": lambda x: lucid.cdist(x, x),
    "renorm": lambda x: lucid.renorm(x, 2, 0, 1.0),
    "interpolate": lambda x: F.interpolate(x[None, None], scale_factor=2.0, mode="bilinear"),
    "mse_loss": lambda x: F.mse_loss(x, x),
    "kl_div": lambda x: F.kl_div(x, x, reduction="sum"),
    "cross entropy of bits": lambda x: F.binary_cross_entropy_with_logits(x, x),
}
LOWER = {
    "mm": lambda x: x @ x,
    "linear": lambda x: F.linear(x, x),
    "einsum": lambda x: lucid.einsum("ij,jk->ik", x, x),
    "vecdot": lambda x: linalg.vecdot(x, x),
    "multi_dot": lambda x: linalg.multi_dot([x, x, x]),
    "prelu": lambda x: F.prelu(x, x[0, :1]),
    "conv1d": lambda x: F.conv1d(x[None], x[:, :, None]),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    "GRU": lambda x: lucid.nn.GRU(4, 4, device="cuda")(x[None])[0],
    "LSTM": lambda x: lucid.nn.LSTM(4, 4, device="cuda")(x[None])[0],
    "GRUCell": lambda x: lucid.nn.GRUCell(4, 4, device="cuda")(x),
    "LSTMCell": lambda x: lucid.nn.LSTMCell(4, 4, device="cuda")(x)[0],
}
WIDEST = {
    "cross": lambda h, f: lucid.cross(h[:, :3], f[:, :3], 1),
    "dot": lambda h, f: lucid.dot(h[0], f[0]),
    "tensordot": lambda h, f: lucid.tensordot(h, f, 1),
    "index_put": lambda h, f: lucid.index_put(h, (lucid.tensor([0], device="cuda"),), f[0]),
    "scatter_add": lambda h, f: lucid.scatter_add(h, 0, lucid.zeros(1, 4, dtype=lucid.int64, device="cuda"), f),
    "cat": lambda h, f: lucid.cat([h, f]),
}


def along(name):
    return lambda x: getattr(lucid, name)(x, 0)


@pytest.mark.parametrize("lower", [lucid.float16, lucid.bfloat16], ids=["float16", "bfloat16"])
def test_dtypes(lower):
    half = (lucid.rand(4, 4) * 0.8 + 0.1).cuda().to(lower)
    calls = {name: getattr(lucid, name) for name in FLOAT32}
    calls |= {f"{name} along a dimension": along(name) for name in ALONG_A_DIMENSION}
    with lucid.autocast("cuda", dtype=lower):
        wide = {name: f(half).dtype for name, f in (calls | OTHERS_IN_FLOAT32).items()}
        low = {name: f(half.float()).dtype for name, f in LOWER.items()}
        widest = {name: f(half, half.float()).dtype for name, f in WIDEST.items()}
        kept = {name: getattr(half, name)().dtype for name in ("mean", "abs", "sqrt", "relu", "exp_")}
    assert {name: dtype for name, dtype in wide.items() if dtype != lucid.float32} == {}
    assert {name: dtype for name, dtype in low.items() if dtype != lower} == {}
    assert {name: dtype for name, dtype in widest.items() if dtype != lucid.float32} == {}
    assert {name: dtype for name, dtype in kept.items() if dtype != lower} == {}


def test_a_sum_does_not_overflow():
    x = lucid.ones(70000, device="cuda", dtype=lucid.float16)
    with lucid.autocast("cuda"):
        assert x.sum().item() == 70000 and (x * 100).pow(2).mean().item() == 10000


def test_the_scaler_waits_for_nothing():
    """What waits for the device cannot be captured."""
    scaler, p = (
        lucid.amp.GradScaler("cuda", init_scale=8.0, growth_interval=2),
        lucid.ones(3, device="cuda", requires_grad=True),
    )
    optimizer, by = lucid.optim.SGD([p], 0.5), lucid.ones((), device="cuda")

    def step():
        p.grad = None
        scaler.scale((p * 2 * by).sum()).backward()
        scaler.unscale_(optimizer)
        norm = lucid.nn.utils.clip_grad_norm_([p], 1.0)
        scaler.update()
        return norm

    step()
    graph = lucid.cuda.CUDAGraph()
    with lucid.cuda.graph(graph):
        norm = step()
    graph.replay()
    assert norm.item() == pytest.approx(12**0.5) and scaler.get_scale() == 16 and scaler._get_growth_tracker() == 0
    by.fill_(float("inf"))
    graph.replay()
    assert scaler.get_scale() == 8 and scaler._get_growth_tracker() == 0
