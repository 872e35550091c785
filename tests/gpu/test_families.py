"""Every kernel family of the CUDA backend against the CPU: results and gradients. Runs on a GPU, or on the emulation
(test_emulated.py)."""

import copy

import pytest

import lucid
import lucid.nn.functional as F
from lucid import nn

pytestmark = pytest.mark.skipif(not lucid.cuda.is_available(), reason="no CUDA device")


def drawn(*shape):
    return lucid.randn(*shape)


def labels(n, classes):
    return lucid.arange(n) * 7 % classes


def on(module, x):
    return copy.deepcopy(module).to(x.device)(x)


def first_of(module):
    return lambda x: on(module, x)[0]


def causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def masked(q, k, v):
    mask = lucid.ones(q.shape[-2], k.shape[-2], dtype=lucid.bool, device=q.device).tril()
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def heads_joined(x):
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


def drawn_complex(*shape):
    return lucid.randn(*shape, dtype=lucid.complex64)


def rebuilt(values, vectors):
    return (vectors * values.unsqueeze(-2)) @ vectors.mT


def ldl(a, b, hermitian):
    """Factors, infos and solutions of matrices and of their real parts."""
    results = []
    for x, y in ((a.detach(), b.detach()), (a.detach().real, b.detach().real)):
        factors, pivots, info = lucid.linalg.ldl_factor_ex(x, hermitian=hermitian)
        good = lucid.linalg.ldl_solve(factors[:3], pivots[:3], y[:3], hermitian=hermitian)
        results += [lucid.view_as_real(t) if t.is_complex() else t for t in (factors, good)] + [pivots, info]
    return results


INF = float("inf")
GRIDS = [(m, p) for m in ("bilinear", "nearest", "bicubic") for p in ("zeros", "border", "reflection")]
lucid.manual_seed(0)
SQUARES = drawn(3, 5, 5) + 4 * lucid.eye(5), drawn(3, 5, 2)
SYMMETRIC = [drawn_complex(4, 37, 37) for _ in range(2)]  # with pivots of one and of two rows, and a matrix without any
SYMMETRIC = SYMMETRIC[0] + SYMMETRIC[0].mT, SYMMETRIC[1] + SYMMETRIC[1].mH, drawn_complex(4, 37, 2)
(
    SYMMETRIC[0][1].diagonal().zero_(),
    SYMMETRIC[1][2].diagonal().zero_(),
    SYMMETRIC[0][3, 1:].zero_(),
    SYMMETRIC[0][3, :, 1:].zero_(),
)
SPARSE_LABELS = lucid.tensor([1, 0, 4, 2, -100])
MANY_LABELS = lucid.where(lucid.rand(2, 65, 97) < 0.1, -100, lucid.randint(0, 5, (2, 65, 97)))
CASES = {
    # rows
    "softmax": (lambda x: F.softmax(x, -1), drawn(5, 300)),
    "softmax of columns": (lambda x: F.softmax(x, 0), drawn(5, 30)),
    "log_softmax": (lambda x: F.log_softmax(x, -1), drawn(3, 40)),
    "softmax of long rows": (lambda x: (F.softmax(x, -1), F.log_softmax(x[:, 1:], -1)), drawn(2, 4096)),
    "softmax of odd rows": (lambda x: (F.softmax(x, -1), F.log_softmax(x, -1)), drawn(3, 1001)),
    "softmax of very long rows": (lambda x: (F.softmax(x, -1), F.log_softmax(x, -1)), drawn(1, 20003)),
    "layer_norm of long rows": (lambda x, w, b: F.layer_norm(x, (1536,), w, b), drawn(3, 1536), drawn(1536), drawn(1536)),
    "layer_norm of very long rows": (lambda x: F.layer_norm(x, (20000,)), drawn(2, 20000)),
    "rms_norm of long rows": (lambda x, w: F.rms_norm(x, (2048,), w), drawn(2, 2048), drawn(2048)),
    "cross_entropy of long rows": (lambda x, t: F.cross_entropy(x, t), drawn(5, 5001), SPARSE_LABELS),
    "cross_entropy of few": (lambda x, t: F.cross_entropy(x, t), drawn(5, 10), SPARSE_LABELS),
    "cross_entropy of many": (
        lambda x, t: F.cross_entropy(x, t, 1 / (labels(5, 5) + 1).to(x)),
        drawn(2, 5, 65, 97),
        MANY_LABELS,
    ),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (70,), w, b), drawn(6, 70), drawn(70), drawn(70)),
    "rms_norm": (lambda x, w: F.rms_norm(x, (70,), w), drawn(6, 70), drawn(70)),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), drawn(3, 4, 5, 5), drawn(4), drawn(4)),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), drawn(3, 4, 5, 5), drawn(4), drawn(4)),
    "batch_norm, channels last": (
        lambda x, w, b: F.batch_norm(x.contiguous(memory_format=lucid.channels_last), None, None, w, b, training=True),
        drawn(3, 40, 5, 5),
        drawn(40),
        drawn(40),
    ),
    "batch_norm of strips": (
        lambda x: on(nn.BatchNorm2d(72).train(), x.to(memory_format=lucid.channels_last)),
        drawn(3, 72, 11, 13),
    ),
    "batch_norm of strips, fixed": (
        lambda x: on(nn.BatchNorm2d(72).eval(), x.to(memory_format=lucid.channels_last)),
        drawn(3, 72, 11, 13),
    ),
    "batch_norm of wide images": (lambda x: F.batch_norm(x, None, None, training=True), drawn(2, 3, 8, 8)),
    "conv2d, channels last": (
        lambda x, w, b: F.conv2d(x.contiguous(memory_format=lucid.channels_last), w, b, padding=1),
        drawn(2, 8, 9, 8),
        drawn(16, 8, 3, 3),
        drawn(16),
    ),
    "batch_norm of vectors": (lambda x, w: F.batch_norm(x, None, None, w, training=True), drawn(33, 4), drawn(4)),
    "cross_entropy": (lambda x, t: F.cross_entropy(x, t), drawn(5, 40), SPARSE_LABELS),
    "cross_entropy smoothed": (
        lambda x, t, w: F.cross_entropy(x, t, weight=w.detach().abs(), label_smoothing=0.1),
        drawn(5, 7),
        SPARSE_LABELS,
        drawn(7),
    ),
    "cross_entropy of images": (
        lambda x, t: F.cross_entropy(x, t, reduction="none"),
        drawn(2, 5, 3, 3),
        labels(18, 5).reshape(2, 3, 3),
    ),
    # reductions
    "sum of all": (lambda x: x.sum(), drawn(50000)),
    "sum of many": (lambda x: (x.sum(), x.bfloat16().float().mean(), x.norm(1)), drawn(300000)),
    "sum of columns": (lambda x: x.sum(0), drawn(5000, 3)),
    "sums of many rows": (
        lambda x: (
            x.sum(0),
            x[:, 1:].mean(0),
            x[3:, :50].norm(2, dim=0),
            lucid.count_nonzero(x > 0, 0),
            x.reshape(60, 11, 128).nansum(0),
        ),
        drawn(660, 128),
    ),
    "sums of many rows of doubles": (lambda x: x.double().sum(0).float(), drawn(260, 40)),
    "mean": (lambda x: x.mean(1), drawn(7, 13)),
    "var": (lambda x: x.var(0), drawn(70, 40)),
    "std": (lambda x: x.std(), drawn(7, 130)),
    "prod": (lambda x: x.prod(1), drawn(7, 13)),
    "amax": (lambda x: x.amax((0, 2)), drawn(7, 13, 9)),
    "max": (lambda x: tuple(x.max(1)), drawn(7, 30)),
    "min": (lambda x: tuple(x.min(0)), drawn(70, 30)),
    "argmax": (lambda x: x.argmax(), drawn(7, 300)),
    "logsumexp": (lambda x: x.logsumexp(1), drawn(7, 130)),
    "norms": (lambda x: (x.norm(), x.norm(1, dim=0), x.norm(float("inf"))), drawn(7, 100)),
    "any, all, count": (lambda x: ((x > 1).any(1), (x > -3).all(), lucid.count_nonzero(x > 0)), drawn(7, 30)),
    # indices
    "embedding": (lambda w, i: F.embedding(i, w, padding_idx=2), drawn(6, 5), lucid.tensor([[0, 2, 5], [1, 1, 1]])),
    "embedding_bag": (
        lambda w, i, o: F.embedding_bag(i, w, o, mode="sum"),
        drawn(6, 5),
        lucid.tensor([0, 2, 5, 1, 1, 1]),
        lucid.tensor([0, 2]),
    ),
    "gather": (lambda x, i: x.gather(1, i), drawn(4, 6), labels(12, 6).reshape(4, 3)),
    "scatter_add": (lambda x, i, s: x.scatter_add(1, i, s), drawn(4, 6), labels(12, 2).reshape(4, 3), drawn(4, 3)),
    "index_select": (lambda x, i: x.index_select(0, i), drawn(4, 6), lucid.tensor([1, 1, 3])),
    "x[i, j]": (lambda x, i: x[i, i + 1], drawn(4, 6), lucid.tensor([1, -1, 3])),
    "x[mask]": (lambda x: x[x > 0], drawn(40, 60)),
    "index_put": (lambda x, i, v: x.index_put((i,), v), drawn(4, 6), lucid.tensor([1, 3]), drawn(2, 6)),
    "nonzero": (lambda x: (x > 0).nonzero(), drawn(40, 60)),
    "masked_scatter": (lambda x, y: x.masked_scatter(x > 0, y), drawn(4, 6), drawn(40)),
    "masked_fill": (lambda x: x.masked_fill(x > 0, 2.0), drawn(4, 6)),
    # convolution and pooling
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1), drawn(2, 3, 9, 8), drawn(5, 3, 3, 3), drawn(5)),
    "conv2d in groups": (lambda x, w: F.conv2d(x, w, padding=1, groups=2, dilation=2), drawn(2, 4, 9, 8), drawn(6, 2, 3, 3)),
    "conv1d": (lambda x, w: F.conv1d(x, w), drawn(2, 3, 9), drawn(5, 3, 3)),
    "conv3d": (lambda x, w: F.conv3d(x, w), drawn(1, 2, 4, 5, 6), drawn(3, 2, 2, 3, 2)),
    "conv_transpose2d": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1),
        drawn(2, 3, 5, 4),
        drawn(3, 5, 3, 3),
        drawn(5),
    ),
    "max_pool": (lambda x: F.max_pool2d(x, 3, 2, 1), drawn(2, 3, 8, 9)),
    "max_pool with indices": (lambda x: tuple(F.max_pool2d(x, 2, return_indices=True)), drawn(2, 3, 8, 9)),
    "avg_pool": (lambda x: F.avg_pool2d(x, 3, 2, 1), drawn(2, 3, 8, 9)),
    "adaptive pools": (lambda x: (F.adaptive_avg_pool2d(x, (3, 2)), F.adaptive_max_pool2d(x, 2)), drawn(2, 3, 8, 7)),
    "unfold": (lambda x: F.unfold(x, 3, padding=1), drawn(2, 3, 8, 7)),
    # attention and recurrent layers
    "attention": (F.scaled_dot_product_attention, drawn(2, 3, 9, 8), drawn(2, 3, 11, 8), drawn(2, 3, 11, 6)),
    "attention, causal": (causal, drawn(2, 3, 40, 8), drawn(2, 3, 40, 8), drawn(2, 3, 40, 8)),
    "attention, masked": (masked, drawn(2, 3, 9, 8), drawn(2, 3, 11, 8), drawn(2, 3, 11, 8)),
    "attention, shared keys": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        drawn(2, 4, 9, 8),
        drawn(2, 2, 11, 8),
        drawn(2, 2, 11, 8),
    ),
    "attention, tiles": (causal, drawn(2, 2, 150, 36), drawn(2, 2, 150, 36), drawn(2, 2, 150, 33)),
    "attention, longer keys": (causal, drawn(1, 2, 70, 64), drawn(1, 2, 200, 64), drawn(1, 2, 200, 64)),
    "attention, shorter keys": (causal, drawn(1, 2, 200, 64), drawn(1, 2, 70, 64), drawn(1, 2, 70, 64)),
    "attention, blind rows": (
        lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, mask),
        drawn(2, 2, 40, 24),
        drawn(2, 2, 80, 24),
        drawn(2, 2, 80, 24),
        (lucid.arange(40)[:, None] * 7 + lucid.arange(80)) % 5 < lucid.arange(40)[:, None] % 4,
    ),
    "attention, added mask": (
        lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, mask, scale=0.2),
        drawn(2, 2, 33, 100),
        drawn(2, 2, 75, 100),
        drawn(2, 2, 75, 100),
        drawn(2, 1, 33, 75),
    ),
    "attention, wide heads": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        drawn(1, 4, 45, 200),
        drawn(1, 2, 45, 200),
        drawn(1, 2, 45, 132),
    ),
    "attention, layouts": (
        lambda q, k, v: F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.mT),
        drawn(2, 40, 3, 20),
        drawn(2, 50, 3, 20),
        drawn(2, 3, 12, 50),
    ),
    "transformer layer": (lambda x: on(LAYER, x), drawn(2, 5, 16)),
    "lstm": (first_of(nn.LSTM(5, 7, 2, bidirectional=True)), drawn(6, 3, 5)),
    "lstm, projected": (first_of(nn.LSTM(5, 7, proj_size=3)), drawn(6, 3, 5)),
    "gru": (first_of(nn.GRU(5, 7, batch_first=True)), drawn(6, 3, 5)),
    "rnn": (first_of(nn.RNN(5, 7)), drawn(6, 3, 5)),
    # products
    "mm": (lambda a, b: a @ b, drawn(70, 33), drawn(33, 90)),
    "bmm": (lambda a, b: a @ b.transpose(1, 2), drawn(3, 70, 33), drawn(3, 90, 33)),
    "linear": (F.linear, drawn(70, 33), drawn(20, 33), drawn(20)),
    "linear, layouts": (lambda x, w, v: (F.linear(x, w), x.t() @ v, v.t() @ x), drawn(64, 120), drawn(84, 120), drawn(64, 84)),
    "fused_linear": (
        lambda x, w, b, r: tuple(F.fused_linear(x, w, b, act, 0.5, r) for act in ("none", "relu", "gelu", "gelu_tanh", "silu")),
        drawn(9, 33),
        drawn(20, 33),
        drawn(20),
        drawn(9, 20),
    ),
    "lora_linear": (
        lambda x, w, c, a, b: F.lora_linear(x, w, c, a, b, 0.5),
        drawn(9, 64),
        drawn(30, 64),
        drawn(30),
        drawn(64, 9),
        drawn(9, 30),
    ),
    "addmm": (lambda c, a, b: lucid.addmm(c, a, b, beta=0.5, alpha=2), drawn(70, 90), drawn(70, 33), drawn(33, 90)),
    # moves
    "ramps": (lambda x: (lucid.arange(2, 30, 3, device=x.device), lucid.linspace(0, 1, 7, device=x.device)), drawn(1)),
    "triangles": (lambda x: x.tril(1) + x.triu(), drawn(2, 5, 6)),
    "pad": (lambda x: (F.pad(x, (1, 2, 2, 1), mode="reflect"), F.pad(x, (1, 2, 2, 1))), drawn(2, 3, 5, 6)),
    "joined": (lambda x, y: (lucid.cat([x, y], 1), lucid.stack([x, x], 1)), drawn(2, 3), drawn(2, 4)),
    "copies of runs": (lambda x: (heads_joined(x), heads_joined(x[:, :, 1:]), x.mT.contiguous()), drawn(2, 3, 5, 8)),
    "copies of shifted runs": (lambda x: (x[:, 1:].contiguous(), x[:, 2:6].contiguous(), x[1:3, 4:].clone()), drawn(4, 12)),
    "copies of halves": (
        lambda x: (heads_joined(x.bfloat16()).float(), x.half().permute(3, 0, 2, 1).contiguous().float()),
        drawn(2, 3, 5, 24),
    ),
    "copies of many dimensions": (
        lambda x: x.permute(0, 2, 1, 3, 5, 4, 7, 6, 9, 8).contiguous(),
        drawn(2, 3, 2, 3, 2, 3, 2, 2, 3, 2),
    ),
    "flipped and rolled": (lambda x: (x.flip(1), x.roll(1, 0), x.repeat(2, 3), x.t() + 1), drawn(3, 3)),
    # order
    "sort": (lambda x: tuple(x.sort(1)), drawn(3, 300)),
    "sort of columns": (lambda x: tuple(x.sort(0, descending=True)), drawn(37, 5)),
    "sort, stable": (lambda x: tuple(x.sort(1, stable=True)), labels(180, 5).reshape(3, 60)),
    "topk": (lambda x: tuple(x.topk(4)), drawn(3, 50)),
    "medians": (lambda x: (x.median(), *x.median(1), x.kthvalue(3, 0)[0], x.quantile(0.3, dim=1)), drawn(7, 9)),
    "cumsum": (lambda x: (x.cumsum(1), x.cumsum(0)), drawn(3, 700)),
    "other scans": (lambda x: (x.cumprod(1), *x.cummax(1), *x.cummin(0), x.logcumsumexp(1)), drawn(3, 40)),
    # maps
    "maps": (lambda x: (F.gelu(x), x.clamp(-1, 1), lucid.where(x > 0, x, x * 2), x.abs().sqrt().lgamma()), drawn(3, 31)),
    # images, sorted sequences, counts
    "interpolate": (
        lambda x: tuple(F.interpolate(x, size=(11, 5), mode=m) for m in ("nearest", "nearest-exact", "bilinear", "bicubic")),
        drawn(2, 3, 7, 9),
    ),
    "interpolate, antialiased": (lambda x: F.interpolate(x, size=(4, 5), mode="bicubic", antialias=True), drawn(2, 3, 7, 9)),
    "interpolate volumes": (lambda x: F.interpolate(x, scale_factor=1.5, mode="trilinear"), drawn(2, 3, 4, 3, 5)),
    "grid_sample": (
        lambda x, g: tuple(F.grid_sample(x, g, m, p, align_corners=False) for m, p in GRIDS),
        drawn(2, 3, 7, 9),
        drawn(2, 4, 5, 2),
    ),
    "grid_sample of volumes": (
        lambda x, g: F.grid_sample(x, g, align_corners=True),
        drawn(2, 3, 4, 5, 6),
        drawn(2, 3, 4, 5, 3),
    ),
    "searchsorted": (
        lambda s, v: (lucid.searchsorted(s, v), lucid.bucketize(v, s[0], right=True)),
        drawn(3, 20).sort().values,
        drawn(3, 5),
    ),
    "isin": (lambda x, y: (lucid.isin(x, y), lucid.isin(x, y, invert=True)), labels(40, 23), lucid.tensor([3, 5, 19, 40])),
    "histograms": (lambda x: (lucid.histc(x.detach(), 10), *lucid.histogram(x.detach(), 7)), drawn(1000)),
    "bincount": (lambda x, w: (lucid.bincount(x, minlength=20), lucid.bincount(x, w.detach())), labels(100, 13), drawn(100)),
    "unique": (lambda x: lucid.unique(x, return_inverse=True, return_counts=True), labels(1000, 37)),
    "unique rows": (lambda x: lucid.unique(x, dim=0, return_inverse=True, return_counts=True), labels(90, 4).reshape(30, 3)),
    "unique neighbours": (
        lambda x: lucid.unique_consecutive(x, return_inverse=True, return_counts=True),
        lucid.arange(100) // 7 % 3,
    ),
    # distances and losses
    "cdist": (lambda x, y: tuple(lucid.cdist(x, y, p=p) for p in (0.0, 1.0, 2.0, 3.0, INF)), drawn(2, 5, 4), drawn(2, 6, 4)),
    "pdist": (lambda x: F.pdist(x), drawn(7, 4)),
    "ctc_loss": (
        lambda x, t: F.ctc_loss(x.log_softmax(-1), t, (9, 7, 9), (4, 3, 5)),
        drawn(9, 3, 6),
        lucid.tensor([[1, 2, 2, 3, 0], [1, 1, 1, 0, 0], [5, 4, 3, 2, 1]]),
    ),
    "margin losses": (
        lambda x, t: (F.multilabel_margin_loss(x, t), F.multi_margin_loss(x, t[:, 0].clamp(min=0))),
        drawn(3, 4),
        lucid.tensor([[1, 2, -1, 0], [0, -1, 0, 0], [-1, 0, 0, 0]]),
    ),
    # linear algebra: what does not depend on the signs of vectors
    "ldl": (lambda a, h, b: (*ldl(a, b, False), *ldl(h, b, True), *ldl(a[0, :1, :1], b[0, :1], False)), *SYMMETRIC),
    "lu": (lambda a, b: (*lucid.linalg.lu_factor(a), *lucid.linalg.lu(a), lucid.linalg.det(a), lucid.linalg.inv(a)), *SQUARES),
    "solve": (
        lambda a, b: (lucid.linalg.solve(a, b), lucid.linalg.solve(a, b.mT, left=False), lucid.logdet(a @ a.mT)),
        *SQUARES,
    ),
    "cholesky": (
        lambda a, b: (lucid.linalg.cholesky(a @ a.mT + lucid.eye(5, device=a.device)), lucid.cholesky_solve(b, a.tril())),
        *SQUARES,
    ),
    "triangular systems": (
        lambda a, b: (
            lucid.linalg.solve_triangular(a, b, upper=True),
            lucid.linalg.solve_triangular(a, b.mT, upper=False, left=False, unitriangular=True),
        ),
        *SQUARES,
    ),
    "qr": (lambda a: (*lucid.linalg.qr(a), *lucid.geqrf(a.detach())), drawn(2, 7, 4)),
    "eigh": (lambda a: (lucid.linalg.eigvalsh(a + a.mT), rebuilt(*lucid.linalg.eigh(a + a.mT))), drawn(2, 6, 6)),
    "eigvals": (lambda a: lucid.linalg.eigvals(a).abs().sort().values, drawn(2, 6, 6)),
    "svd": (
        lambda a: (lucid.linalg.svdvals(a), lucid.linalg.pinv(a), lucid.linalg.matrix_norm(a, "nuc")),
        drawn(2, 4, 7),
    ),
    "lstsq": (lambda a, b: tuple(lucid.linalg.lstsq(a, b, driver="gels"))[:2], drawn(2, 7, 4), drawn(2, 7, 3)),
    "complex matrices": (
        lambda a: (lucid.linalg.inv(a), lucid.linalg.qr(a).R, lucid.linalg.svdvals(a), lucid.linalg.eigvalsh(a + a.mH)),
        drawn_complex(2, 4, 4),
    ),
    "sparse products": (
        lambda a, b: (a.detach().to_sparse_csr() @ b, (a.detach().to_sparse() @ a.detach().to_sparse().t()).to_dense()),
        drawn(5, 7).relu(),
        drawn(7, 3),
    ),
    # Fourier transforms
    "fft": (lambda *x: tuple(lucid.fft.fft(y) for y in x), *(drawn_complex(3, n) for n in (1, 2, 5, 12, 16, 31, 64, 90))),
    "fft of real numbers": (
        lambda x: (
            lucid.fft.rfft(x),
            lucid.fft.irfft(lucid.fft.rfft2(x), 10),
            lucid.fft.rfftn(x, norm="ortho"),
            lucid.fft.ihfft(x),
        ),
        drawn(3, 6, 10),
    ),
    "fft of dimensions": (
        lambda x: (lucid.fft.fft2(x), lucid.fft.ifftn(x, dim=(0, 2)), lucid.fft.hfft(x)),
        drawn_complex(3, 4, 5),
    ),
    # complex numbers
    "complex arithmetic": (
        lambda x, y: (x + y, x * y, x / y, x - 2j, (2 + 1j) / x, x**y, x.abs(), x.angle(), x == y),
        drawn_complex(5, 6),
        drawn_complex(6),
    ),
    "complex functions": (
        lambda x: tuple(getattr(lucid, f)(x) for f in "exp log sqrt sin cos tanh asin acosh atan log1p sigmoid".split()),
        drawn_complex(40),
    ),
    "complex reductions": (
        lambda x: (x.sum(), x.mean(0), x.prod(1), x.cumsum(1), x.cumprod(0), x.any(), lucid.count_nonzero(x, 0), x.var(0)),
        drawn_complex(5, 7),
    ),
    "complex products": (lambda x, y: (x @ y, x.conj().T @ x), drawn_complex(20, 7), drawn_complex(7, 30)),
    "complex indices": (
        lambda x, i: (x[i], x.gather(0, i[:, None].expand(-1, 7))),
        drawn_complex(5, 7),
        lucid.tensor([1, 0, 1]),
    ),
}
LAYER = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)


def computed(function, inputs, device):
    inputs = [x.to(device).detach().clone().requires_grad_(x.is_floating_point() or x.is_complex()) for x in inputs]
    results = function(*inputs)
    results = results if isinstance(results, tuple) else (results,)
    results = tuple(lucid.view_as_real(y.resolve_conj()) if y.is_complex() else y for y in results)
    total = [
        (y * lucid.arange(1.0, y.numel() + 1).reshape(y.shape).to(device).to(y.dtype) / y.numel()).sum()
        for y in results
        if y.requires_grad
    ]
    if total:
        sum(total).backward()
    return [*results, *(lucid.view_as_real(x.grad) if x.is_complex() else x.grad for x in inputs if x.grad is not None)]


def same(ours, cpu, tolerance):
    assert len(ours) == len(cpu)
    for a, b in zip(ours, cpu):
        assert a.shape == b.shape and a.dtype == b.dtype
        a, b = a.detach().cpu().double(), b.detach().double()
        atol = tolerance * max(1.0, b.abs().max().item() if b.numel() else 0.0)
        lucid.testing.assert_close(a, b, rtol=tolerance, atol=atol)


@pytest.mark.parametrize("name", CASES)
def test_like_the_cpu(name):
    function, *inputs = CASES[name]
    ours = computed(function, inputs, "cuda")
    assert all(y.device.type == "cuda" for y in ours)
    same(ours, computed(function, inputs, "cpu"), 3e-4)


HALF = [
    "softmax of long rows",
    "layer_norm of long rows",
    "cross_entropy of long rows",
    "softmax",
    "layer_norm",
    "rms_norm",
    "cross_entropy",
    "linear",
    "attention, causal",
    "attention, tiles",
    "attention, added mask",
    "batch_norm of strips",
    "conv2d",
    "mean",
    "sums of many rows",
    "batch_norm",
]


@pytest.mark.parametrize("name", HALF)
def test_bfloat16(name):
    function, *inputs = CASES[name]
    inputs = [x.bfloat16() if x.is_floating_point() else x for x in inputs]
    same(computed(function, inputs, "cuda"), computed(function, inputs, "cpu"), 4e-2)


@pytest.mark.parametrize("dtype", [lucid.float16, lucid.bfloat16])
def test_gelu_of_halves(dtype):
    x = lucid.linspace(-9, 9, 1003).to(dtype)
    a = x.float().requires_grad_()
    b = x.cuda().requires_grad_()
    F.gelu(a).sum().backward()
    y = F.gelu(b)
    y.float().sum().backward()
    eps = lucid.finfo(dtype).eps
    lucid.testing.assert_close(y.cpu().float(), F.gelu(a), rtol=eps, atol=1e-7)
    lucid.testing.assert_close(b.grad.cpu().float(), a.grad, rtol=eps, atol=1e-5)
    ends = lucid.tensor([float("inf"), float("nan"), 0.0, -80.0, 80.0], dtype=dtype)
    lucid.testing.assert_close(F.gelu(ends.cuda()).cpu(), F.gelu(ends.float()).to(dtype), equal_nan=True)


OPTIMIZERS = {
    "SGD": dict(lr=0.1, momentum=0.9, nesterov=True),
    "Adam": dict(lr=0.01, amsgrad=True),
    "AdamW": dict(lr=0.01),
    "RMSprop": dict(lr=0.01, centered=True, momentum=0.5),
    "Adagrad": dict(lr=0.01),
    "Adadelta": {},
    "Adamax": {},
    "NAdam": {},
    "RAdam": {},
    "ASGD": {},
    "Rprop": {},
    "Adafactor": dict(weight_decay=0.1),
}


def trained(name, device):
    lucid.manual_seed(3)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 10),
    )
    x, y = lucid.randn(8, 1, 8, 8).to(device), labels(8, 10).to(device)
    net.to(device)
    optimizer = getattr(lucid.optim, name)(net.parameters(), **OPTIMIZERS[name])
    for _ in range(3):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
    return [loss, *net.parameters()]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training(name):
    same(trained(name, "cuda"), trained(name, "cpu"), 3e-3)


def test_adafactor_of_any_layout():
    """Matrices in batches, a transposed one, long and empty vectors, and a number; in halves and doubles too."""

    def stepped(device, dtype):
        lucid.manual_seed(4)
        shapes = [(3, 40, 7), (1, 1500), (1500, 2), (2500,), (0, 4), ()]
        params = [lucid.randn(s, dtype=lucid.float64).to(device, dtype) for s in shapes]
        params.append(lucid.randn(30, 20, dtype=lucid.float64).to(device, dtype).T.detach())
        optimizer = lucid.optim.Adafactor([p.requires_grad_() for p in params], lr=0.1, maximize=True)
        for _ in range(3):
            for p in params:
                p.grad = lucid.randn(p.shape, dtype=lucid.float64).to(device, dtype)
            optimizer.step()
        return params

    for dtype, tolerance in ((lucid.float32, 1e-5), (lucid.float64, 1e-12), (lucid.bfloat16, 2e-2)):
        same(stepped("cuda", dtype), stepped("cpu", dtype), tolerance)


def test_random_numbers():
    lucid.manual_seed(5)
    x, y = lucid.rand(2000, device="cuda"), lucid.randn(2000, device="cuda")
    assert 0 <= x.min().item() and x.max().item() < 1 and abs(x.mean().item() - 0.5) < 0.05
    assert abs(y.mean().item()) < 0.1 and abs(y.std().item() - 1) < 0.1
    lucid.manual_seed(5)
    assert lucid.equal(lucid.rand(2000, device="cuda"), x) and not lucid.equal(lucid.rand(2000, device="cuda"), x)
    state = lucid.cuda.get_rng_state()
    again = lucid.randint(0, 7, (50,), device="cuda")
    lucid.cuda.set_rng_state(state)
    assert lucid.equal(lucid.randint(0, 7, (50,), device="cuda"), again) and again.max().item() < 7
    assert sorted(lucid.randperm(100, device="cuda").tolist()) == list(range(100))
    kept = F.dropout(lucid.ones(4000, device="cuda"), 0.25)
    assert set(kept.cpu().tolist()) == {0.0, lucid.tensor(1 / 0.75).item()} and abs(kept.mean().item() - 1) < 0.1
    weights = lucid.tensor([0.2, 0.0, 0.8], device="cuda")
    assert set(lucid.multinomial(weights, 50, replacement=True).tolist()) == {0, 2}


def test_bad_indices_raise_at_the_next_wait():
    x = lucid.zeros(3, device="cuda")
    with pytest.raises(IndexError, match="out of bounds"):
        x[lucid.tensor([0, 7], device="cuda")].cpu()
    with pytest.raises(IndexError, match="out of range"):
        F.embedding(lucid.tensor([9], device="cuda"), lucid.zeros(4, 2, device="cuda")).cpu()
    with pytest.raises(IndexError, match="Target 5"):
        F.cross_entropy(lucid.zeros(1, 3, device="cuda"), lucid.tensor([5], device="cuda")).item()
    assert (x + 1).tolist() == [1.0, 1.0, 1.0]  # the device goes on


def test_checkpoints_move_between_devices(tmp_path):
    net = nn.Linear(3, 2).cuda()
    lucid.save(net.state_dict(), tmp_path / "net.pt")
    assert lucid.load(tmp_path / "net.pt")["weight"].device.type == "cuda"
    here = lucid.load(tmp_path / "net.pt", map_location="cpu")
    assert here["weight"].device.type == "cpu" and lucid.equal(here["weight"], net.weight.detach().cpu())


def test_mixed_precision():
    weight = lucid.ones(3, 3, device="cuda", requires_grad=True)
    with lucid.autocast("cuda", dtype=lucid.bfloat16):
        product = lucid.ones(2, 3, device="cuda") @ weight
    assert product.dtype == lucid.bfloat16
    scaler, optimizer = lucid.amp.GradScaler("cuda"), lucid.optim.SGD([weight], 0.1)
    scaler.scale(product.float().sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert lucid.allclose(weight.detach().cpu(), lucid.full((3, 3), 0.8))


def test_memory_and_device_information():
    properties = lucid.cuda.get_device_properties(0)
    assert properties.name == lucid.cuda.get_device_name() and properties.total_memory > 0
    before = lucid.cuda.memory_allocated()
    x = lucid.empty(1 << 20, device="cuda")
    assert lucid.cuda.memory_allocated() - before == 4 << 20 and lucid.cuda.memory_reserved() >= 4 << 20
    del x
    lucid.cuda.empty_cache()
    free, total = lucid.cuda.mem_get_info()
    assert 0 < free <= total and "reserved" in lucid.cuda.memory_summary()


def test_out_of_memory_is_an_error_that_passes():
    with pytest.raises(lucid.cuda.OutOfMemoryError, match="Tried to allocate"):
        lucid.empty(1 << 45, device="cuda")
    assert lucid.ones(3, device="cuda").sum().item() == 3


def test_matrices_without_a_factorisation_raise():
    for call in (lucid.linalg.inv, lucid.linalg.cholesky):
        with pytest.raises(lucid.linalg.LinAlgError):
            call(lucid.zeros(3, 3, device="cuda"))
    with pytest.raises(lucid.LucidError, match="gels"):
        lucid.linalg.lstsq(lucid.eye(2, device="cuda"), lucid.eye(2, device="cuda"), driver="gelsd")


def test_ops_without_a_kernel_are_refused_by_name():
    with pytest.raises(NotImplementedError, match="on cuda"):
        F.interpolate(lucid.ones(1, 1, 2, 2, dtype=lucid.uint8, device="cuda"), scale_factor=2, mode="bilinear")
