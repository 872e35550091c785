"""Kernels of deep learning beside PyTorch's.

usage: kernels.py [--markdown] [--seconds=S] [FILTER...]      a filter is a part of a title

One thread against one thread; then Lucid with two against the better of PyTorch's with one and with two.
"""

import sys
from dataclasses import dataclass

import torch
from compare import Row, best_times, show, timer

import lucid


@dataclass
class Of:
    """An operand: randn of a shape, recorded for gradients if `grad`, or integers below `high`; `count`: a positive list."""

    shape: tuple
    grad: bool = False
    high: int | None = None
    count: int | None = None

    def values(self):
        if self.count:
            return [torch.rand(self.shape).numpy() for _ in range(self.count)]
        return (torch.randint(self.high, self.shape) if self.high else torch.randn(self.shape)).numpy()


@dataclass
class Case:
    statement: str  # F: nn.functional; m: the library; and the operands
    target: float | tuple[float, float] | None  # two: with 1 thread, with 2
    operands: dict[str, Of]
    theirs: str | None = None  # PyTorch's statement, if it differs


IMAGES = {"x": Of((8, 64, 112, 112)), "w": Of((8, 64, 112, 112), grad=True)}
CASES = {
    "max_pool2d 3x3 s2": Case("F.max_pool2d(x, 3, 2, 1)", 0.1, IMAGES),
    "max_pool2d 3x3 s2 with indices": Case("F.max_pool2d(x, 3, 2, 1, return_indices=True)", None, IMAGES),
    "max_pool2d 3x3 s2 f+b": Case("F.max_pool2d(w, 3, 2, 1).sum().backward()", None, IMAGES),
    "max_pool2d 2x2": Case("F.max_pool2d(x, 2)", 0.1, IMAGES),
    "avg_pool2d 3x3 s2": Case("F.avg_pool2d(x, 3, 2, 1)", 0.3, IMAGES),
    "avg_pool2d 3x3 s2 f+b": Case("F.avg_pool2d(w, 3, 2, 1).sum().backward()", None, IMAGES),
    "avg_pool2d 2x2": Case("F.avg_pool2d(x, 2)", 0.3, IMAGES),
    "adaptive_avg_pool2d 7": Case("F.adaptive_avg_pool2d(x, 7)", None, IMAGES),
    "adaptive_avg_pool2d 1": Case("F.adaptive_avg_pool2d(x, 1)", None, IMAGES),
}


def matrices(a, b):
    return {"a": Of(a), "b": Of(b)}


for n in (8, 16, 32, 64, 128, 256, 512, 1024, 2048):
    CASES[f"gemm {n}"] = Case("a @ b", 0.5 if n <= 64 else 1.05, matrices((n, n), (n, n)))
CASES |= {
    "gemm 512, b transposed": Case("a @ b.t()", 1.05, matrices((512, 512), (512, 512))),
    "gemm 16x1024x1024": Case("a @ b", 1.05, matrices((16, 1024), (1024, 1024))),
    "gemm 16x1024x1024, b transposed": Case("a @ b.t()", 1.05, matrices((16, 1024), (1024, 1024))),
    "gemv 4096": Case("a @ b", 1.05, matrices((4096, 4096), (4096,))),
    "gemv 4096, a transposed": Case("a.t() @ b", 1.05, matrices((4096, 4096), (4096,))),
    "bmm 64x128x64x128": Case("a @ b", 1.05, matrices((64, 128, 64), (64, 64, 128))),
    "bmm 64x128x64x128, b transposed": Case("a @ b.mT", 1.05, matrices((64, 128, 64), (64, 128, 64))),
    "bmm 10000 of 3x3": Case("a @ b", 0.5, matrices((10000, 3, 3), (10000, 3, 3))),
    "bmm 1000 of 8x8": Case("a @ b", 0.5, matrices((1000, 8, 8), (1000, 8, 8))),
    "bmm 256 of 16x16": Case("a @ b", 0.5, matrices((256, 16, 16), (256, 16, 16))),
}
LAYER = {"x": Of((1, 128, 512)), "w": Of((512, 512)), "b": Of((512,)), "A": Of((512, 8)), "B": Of((8, 512))}
TRAINED = LAYER | {"x": Of((1, 128, 512), grad=True), "A": Of((512, 8), grad=True), "B": Of((8, 512), grad=True)}
UNFUSED = "F.linear(x, w, b) + 0.5 * ((x @ A) @ B)"
CASES |= {
    "linear 128x512x512": Case("F.linear(x, w, b)", None, LAYER),
    "linear with gelu": Case("F.fused_linear_gelu(x, w, b)", None, LAYER, "F.gelu(F.linear(x, w, b))"),
    "lora": Case("F.lora_linear(x, w, b, A, B, 0.5)", 0.7, LAYER, UNFUSED),
    "lora, unfused": Case(UNFUSED, None, LAYER),
    "lora f+b": Case("F.lora_linear(x, w, b, A, B, 0.5).sum().backward()", 0.7, TRAINED, f"({UNFUSED}).sum().backward()"),
    "lora f+b, unfused": Case(f"({UNFUSED}).sum().backward()", None, TRAINED),
}
HEADS, KEYS = (4, 8, 512, 64), (4, 2, 512, 64)
ATTENTION = {"q": Of(HEADS), "k": Of(HEADS), "v": Of(HEADS)}
RECORDED = {"q": Of(HEADS, grad=True), "k": Of(HEADS, grad=True), "v": Of(HEADS, grad=True)}
SHARED = {"q": Of(HEADS), "k": Of(KEYS), "v": Of(KEYS)}
ATTEND = "F.scaled_dot_product_attention(q, k, v"
CASES |= {
    "attention 4x8x512x64": Case(f"{ATTEND})", (0.9, 0.5), ATTENTION),
    "attention causal": Case(f"{ATTEND}, is_causal=True)", (0.55, 0.3), ATTENTION),
    "attention f+b": Case(f"{ATTEND}).sum().backward()", (0.8, 0.5), RECORDED),
    "attention causal f+b": Case(f"{ATTEND}, is_causal=True).sum().backward()", None, RECORDED),
    "attention, shared heads": Case(f"{ATTEND}, enable_gqa=True)", None, SHARED),
}
for name, gates, state, target in (("lstm", 4, "[h, c]", 0.7), ("gru", 3, "h", None), ("rnn_tanh", 1, "h", None)):
    layer = {"x": Of((32, 16, 32)), "h": Of((1, 16, 64)), "c": Of((1, 16, 64)), "wi": Of((gates * 64, 32), grad=True)}
    layer |= {"wh": Of((gates * 64, 64), grad=True), "bi": Of((gates * 64,), grad=True), "bh": Of((gates * 64,), grad=True)}
    statement = f"m.{name}(x, {state}, [wi, wh, bi, bh], True, 1, 0.0, True, False, False)[0]"
    CASES[f"{name} 32-64 b16 t32"] = Case(statement, None, layer)
    CASES[f"{name} 32-64 b16 t32 f+b"] = Case(f"{statement}.sum().backward()", target, layer)
ROWS = {"x": Of((4096, 1024)), "w": Of((1024,)), "b": Of((1024,)), "g": Of((4096, 1024))}
ROWS_TRAINED = ROWS | {name: Of(ROWS[name].shape, grad=True) for name in "xwb"}
CHANNELS = {"x": Of((8, 64, 56, 56)), "w": Of((64,)), "b": Of((64,)), "g": Of((8, 64, 56, 56))}
CHANNELS_TRAINED = CHANNELS | {name: Of(CHANNELS[name].shape, grad=True) for name in "xwb"}
CASES |= {
    "softmax 4096x1024": Case("F.softmax(x, 1)", 0.55, ROWS),
    "softmax 4096x1024 f+b": Case("F.softmax(x, 1).backward(g)", None, ROWS_TRAINED),
    "softmax 4096x1024, dim 0": Case("F.softmax(x, 0)", None, ROWS),
    "softmax 128x128": Case("F.softmax(x, 1)", None, {"x": Of((128, 128))}),
    "log_softmax 128x128": Case("F.log_softmax(x, 1)", None, {"x": Of((128, 128))}),
    "layer_norm 4096x1024": Case("F.layer_norm(x, (1024,), w, b)", 0.9, ROWS),
    "layer_norm 4096x1024 f+b": Case("F.layer_norm(x, (1024,), w, b).backward(g)", None, ROWS_TRAINED),
    "rms_norm 4096x1024": Case("F.rms_norm(x, (1024,), w)", 0.4, ROWS),
    "rms_norm 4096x1024 f+b": Case("F.rms_norm(x, (1024,), w).backward(g)", None, ROWS_TRAINED),
    "batch_norm 8x64x56x56": Case("F.batch_norm(x, None, None, w, b, True)", None, CHANNELS),
    "batch_norm 8x64x56x56 f+b": Case("F.batch_norm(x, None, None, w, b, True).backward(g)", 0.7, CHANNELS_TRAINED),
    "batch_norm 4096x1024 f+b": Case("F.batch_norm(x, None, None, w, b, True).backward(g)", 0.7, ROWS_TRAINED),
    "group_norm 8x64x56x56 f+b": Case("F.group_norm(x, 8, w, b).backward(g)", None, CHANNELS_TRAINED),
}
MAPPED = {"x": Of((4096, 1024)), "r": Of((4096, 1024), grad=True)}
CASES |= {
    "gelu 4M": Case("F.gelu(x)", 0.6, MAPPED),
    "gelu tanh 4M": Case("F.gelu(x, approximate='tanh')", 0.6, MAPPED),
    "silu 4M": Case("F.silu(x)", 0.6, MAPPED),
    "exp 4M": Case("m.exp(x)", 0.6, MAPPED),
    "tanh 4M": Case("m.tanh(x)", 0.6, MAPPED),
    "mish 4M": Case("F.mish(x)", None, MAPPED),
    "elu 4M": Case("F.elu(x)", None, MAPPED),
    "gelu 4M f+b": Case("F.gelu(r).sum().backward()", None, MAPPED),
    "silu 4M f+b": Case("F.silu(r).sum().backward()", None, MAPPED),
    "mse_loss 4M f+b": Case("F.mse_loss(r, x).backward()", None, MAPPED),
}
SCORES = {"x": Of((512, 10000)), "r": Of((512, 10000), grad=True), "t": Of((512,), high=10000)}
FEW = {"r": Of((128, 10), grad=True), "t": Of((128,), high=10)}
PIXELS = {"r": Of((4, 21, 128, 128), grad=True), "t": Of((4, 128, 128), high=21)}
SPOKEN = {"r": Of((100, 32, 32), grad=True), "t": Of((32, 30), high=31)}
CASES |= {
    "cross_entropy 512x10000": Case("F.cross_entropy(x, t)", None, SCORES),
    "cross_entropy 512x10000 f+b": Case("F.cross_entropy(r, t).backward()", 0.5, SCORES),
    "cross_entropy 512x10000, smoothed f+b": Case("F.cross_entropy(r, t, label_smoothing=0.1).backward()", None, SCORES),
    "cross_entropy 128x10 f+b": Case("F.cross_entropy(r, t).backward()", None, FEW),
    "cross_entropy 4x21x128x128 f+b": Case("F.cross_entropy(r, t).backward()", None, PIXELS),
    "nll_loss 512x10000 f+b": Case("F.nll_loss(r, t).backward()", None, SCORES),
    "ctc_loss 100x32x32 f+b": Case("F.ctc_loss(r, t + 1, [100] * 32, [30] * 32).backward()", None, SPOKEN),
}
LISTS = {name: Of((1000,), count=200) for name in "pgab"} | {"s": Of((), count=200)}
ADAMW = "lr=1e-3, beta1=0.9, beta2=0.999, weight_decay=0.01, eps=1e-8, amsgrad=False, maximize=False)"
FUSED = f"m._foreach_add_(s, 1); m._fused_adamw_(p, g, a, b, [], s, {ADAMW}"
CASES |= {
    "AdamW 200 x 1000, against the default": Case(FUSED, 0.1, LISTS, f"m.optim._functional.adamw(p, g, a, b, [], s, {ADAMW}"),
    "AdamW 200 x 1000, against the fused": Case(FUSED, 0.5, LISTS),
}

GRID = IMAGES | {"g": Of((8, 112, 112, 2))}
TABLE = {"w": Of((50000, 256), grad=True), "i": Of((32, 128), high=50000)}
CASES |= {
    "interpolate bilinear x2": Case("F.interpolate(x, scale_factor=2.0, mode='bilinear')", 0.3, IMAGES),
    "interpolate bilinear x0.5": Case("F.interpolate(x, scale_factor=0.5, mode='bilinear')", 0.3, IMAGES),
    "interpolate bilinear x2 f+b": Case("F.interpolate(w, scale_factor=2.0, mode='bilinear').sum().backward()", None, IMAGES),
    "interpolate nearest x2": Case("F.interpolate(x, scale_factor=2.0)", None, IMAGES),
    "interpolate bicubic x2": Case("F.interpolate(x, scale_factor=2.0, mode='bicubic')", None, IMAGES),
    "grid_sample bilinear": Case("F.grid_sample(x, g, align_corners=False)", None, GRID),
    "pad reflect": Case("F.pad(x, (1, 1, 1, 1), mode='reflect')", None, IMAGES),
    "pixel_shuffle": Case("F.pixel_shuffle(x, 2)", None, IMAGES),
    "embedding 32x128x256": Case("F.embedding(i, w)", None, TABLE),
    "embedding 32x128x256 f+b": Case("F.embedding(i, w).sum().backward()", 0.7, TABLE),
    "embedding_bag 32x128x256 f+b": Case("F.embedding_bag(i, w).sum().backward()", 0.7, TABLE),
}


def conv(image, weight, *window, groups=1):
    """Forward, and with the gradients of both."""
    call = f"None, {', '.join(map(str, window))}, 1, {groups}"
    operands = {"x": Of(image), "w": Of(weight), "xg": Of(image, grad=True), "wg": Of(weight, grad=True)}
    return f"F.conv2d(x, w, {call})", f"F.conv2d(xg, wg, {call}).sum().backward()", operands


for title, targets, (forward, both, operands) in (
    ("conv3x3 8x64x56x56", (1.0, 0.85), conv((8, 64, 56, 56), (64, 64, 3, 3), 1, 1)),
    ("conv1x1 8x256x28x28", (1.0, 0.85), conv((8, 256, 28, 28), (128, 256, 1, 1), 1, 0)),
    ("conv7x7 s2 8x3x224x224", (0.55, 0.4), conv((8, 3, 224, 224), (64, 3, 7, 7), 2, 3)),
    ("conv5x5 64x1x28x28 (LeNet)", (0.5, 0.25), conv((64, 1, 28, 28), (6, 1, 5, 5), 1, 2)),
    ("conv5x5 64x6x14x14 (LeNet)", (0.5, 0.25), conv((64, 6, 14, 14), (16, 6, 5, 5), 1, 0)),
    ("depthwise 3x3 8x64x56x56", (0.8, 0.8), conv((8, 64, 56, 56), (64, 1, 3, 3), 1, 1, groups=64)),
    ("depthwise 3x3 8x128x28x28", (0.8, 0.8), conv((8, 128, 28, 28), (128, 1, 3, 3), 1, 1, groups=128)),
    ("conv3x3 8x256x14x14", (None, None), conv((8, 256, 14, 14), (256, 256, 3, 3), 1, 1)),
):
    CASES |= {title: Case(forward, targets[0], operands), f"{title} f+b": Case(both, targets[1], operands)}


def names(m, operands, values):
    given = {"F": m.nn.functional, "m": m}
    for name, operand in operands.items():
        if operand.count:
            given[name] = [m.tensor(x) for x in values[name]]
            continue
        x = m.tensor(values[name])
        given[name] = x.requires_grad_() if operand.grad else x
    return given


def measure(case, seconds):
    """Lucid with 1 and 2 threads, PyTorch with 1 and 2."""
    values = {name: operand.values() for name, operand in case.operands.items()}
    both = (lucid, case.statement), (torch, case.theirs or case.statement)
    return best_times(
        [
            (lambda m=m, n=n: m.set_num_threads(n), timer(statement, names(m, case.operands, values)))
            for m, statement in both
            for n in (1, 2)
        ],
        seconds,
    )


def main(*arguments):
    wanted = [a for a in arguments if not a.startswith("--")]
    options = dict(a[2:].split("=") for a in arguments if "=" in a and a.startswith("--"))
    rows = []
    for title, case in CASES.items():
        if wanted and not any(w in title for w in wanted):
            continue
        a1, a2, b1, b2 = measure(case, float(options.get("seconds", 1)))
        one, two = case.target if isinstance(case.target, tuple) else (case.target, case.target)
        rows += [Row(f"{title}, 1 thread", a1, b1, one, unit="s")]
        rows += [Row(f"{title}, 2 threads", a2, min(b1, b2), two, unit="s")]
    show(rows, "--markdown" in arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
