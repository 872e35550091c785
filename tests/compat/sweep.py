#!/usr/bin/env python3
"""Random bad calls of nn.functional, in PyTorch and in Lucid: the same value, or the same class of error.

usage: sweep.py [OP ...] [--calls N] [--seed S] [--kinds crash,value,...]

A valid call of each op (CALLS) is mutated at random: sizes 0 and 1, dimensions more and fewer, other dtypes, strides and memory
formats, NaN, infinities, indices out of range, numbers too large, negative or of the wrong type, tuples of the wrong length.
Prints what differs: a crash or a hang ("crash"), a value, shape, dtype or gradient ("value"), strides of the result
("strides"), a call that PyTorch refuses ("accepted") or takes ("refused"), another class of error ("class"), a gradient that
one of both cannot compute ("gradient"). Calls run in child
processes, one per op, started again after a crash; what crashes PyTorch itself is left out.
"""

import argparse
import json
import math
import os
import pathlib
import random
import re
import resource
import signal
import sys
import warnings
import zlib

if __name__ == "__main__":  # from a source tree, as run.py
    root = pathlib.Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(root), str(root / "build" / "release" / "pkg")][: 1 if os.environ.get("PYTHONPATH") else 2]

import torch

import lucid
from tests.compat.compare import assert_same_error, assert_same_tensor, first_line

INF, NAN = math.inf, math.nan
SECONDS, MEMORY = 60, 2 << 30  # of a call; what it may take beyond what the process has

# op: arguments that are good. T(sizes): floats that want gradients; C: positive ones that do not; I(n, sizes): integers < n.
CALLS = """
conv1d: T(2,4,9), T(6,4,3), T(6), stride=1, padding=0, dilation=1, groups=1
conv2d: T(2,4,7,7), T(6,4,3,3), T(6), stride=1, padding=0, dilation=1, groups=1
conv2d: T(2,4,7,7), T(8,1,3,3), T(8), stride=2, padding=1, groups=4
conv3d: T(1,2,4,4,4), T(3,2,2,2,2), T(3), stride=1, padding=0, dilation=1, groups=1
conv_transpose1d: T(2,4,5), T(4,3,3), T(3), stride=1, padding=0, output_padding=0, groups=1, dilation=1
conv_transpose2d: T(2,4,5,5), T(4,3,3,3), T(3), stride=2, padding=1, output_padding=1, groups=1, dilation=1
conv_transpose3d: T(1,2,3,3,3), T(2,3,2,2,2), T(3), stride=1, padding=0, output_padding=0, groups=1, dilation=1
max_pool1d: T(2,3,9), 2, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
max_pool2d: T(2,3,8,8), 2, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=True
max_pool3d: T(1,2,4,4,4), 2, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=True
avg_pool1d: T(2,3,9), 2, stride=None, padding=0, ceil_mode=False, count_include_pad=True
avg_pool2d: T(2,3,8,8), 2, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
avg_pool3d: T(1,2,4,4,4), 2, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
lp_pool1d: T(2,3,9), 2.0, 2, stride=None, ceil_mode=False
lp_pool2d: T(2,3,8,8), 2.0, 2, stride=None, ceil_mode=False
lp_pool3d: T(1,2,4,4,4), 3.0, 2, stride=None, ceil_mode=False
adaptive_avg_pool1d: T(2,3,9), 2
adaptive_avg_pool2d: T(2,3,8,8), (2,3)
adaptive_avg_pool3d: T(1,2,4,4,4), (2,3,1)
adaptive_max_pool1d: T(2,3,9), 2, return_indices=True
adaptive_max_pool2d: T(2,3,8,8), (2,3), return_indices=True
adaptive_max_pool3d: T(1,2,4,4,4), (2,3,1), return_indices=True
fractional_max_pool2d: T(2,3,8,8), 2, output_size=3, output_ratio=None, return_indices=True
fractional_max_pool3d: T(2,3,6,6,6), 2, output_size=3, output_ratio=None, return_indices=True
max_unpool1d: T(1,2,3), I(6,1,2,3), 2, stride=None, padding=0, output_size=None
max_unpool2d: T(1,2,2,2), I(16,1,2,2,2), 2, stride=None, padding=0, output_size=None
max_unpool3d: T(1,1,2,2,2), I(64,1,1,2,2,2), 2, stride=None, padding=0, output_size=None
unfold: T(2,3,6,6), 2, dilation=1, padding=0, stride=1
fold: T(2,12,4), 3, 2, dilation=1, padding=0, stride=1
pixel_shuffle: T(2,8,3,3), 2
pixel_unshuffle: T(2,2,4,4), 2
channel_shuffle: T(2,4,3,3), 2
interpolate: T(2,3,4,4), size=5, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None
interpolate: T(2,3,4,4), size=None, scale_factor=1.5, mode='bilinear', align_corners=False, antialias=False
interpolate: T(2,3,4), size=5, scale_factor=None, mode='linear', align_corners=None
interpolate: T(1,2,3,4,3), size=5, scale_factor=None, mode='trilinear', align_corners=None
upsample: T(2,3,4,4), size=5, scale_factor=None, mode='bilinear', align_corners=None
upsample_nearest: T(2,3,4,4), size=5, scale_factor=None
upsample_bilinear: T(2,3,4,4), size=5, scale_factor=None
grid_sample: T(2,3,4,4), T(2,5,5,2), mode='bilinear', padding_mode='zeros', align_corners=False
grid_sample: T(1,2,3,4,4), T(1,2,3,3,3), mode='bilinear', padding_mode='zeros', align_corners=False
affine_grid: T(2,2,3), [2,3,4,4], align_corners=False
affine_grid: T(2,3,4), [2,3,2,3,4], align_corners=False
pad: T(2,3,4), (1,1), mode='reflect', value=None
pad: T(2,3,4,4), (1,1,2,0), mode='circular', value=None
pad: T(2,3,4), (1,1), mode='constant', value=1.0
layer_norm: T(2,3,4), (4,), T(4), T(4), eps=1e-5
rms_norm: T(2,3,4), (4,), T(4), eps=1e-5
batch_norm: T(4,3,2), C(3), C(3), T(3), T(3), training=True, momentum=0.1, eps=1e-5
batch_norm: T(2,3,4,4), C(3), C(3), T(3), T(3), training=False, eps=1e-5
group_norm: T(2,6,4), 3, T(6), T(6), eps=1e-5
instance_norm: T(2,3,4), C(3), C(3), T(3), T(3), use_input_stats=True, momentum=0.1, eps=1e-5
local_response_norm: T(2,4,5), 3, alpha=1e-4, beta=0.75, k=1.0
normalize: T(2,3), p=2.0, dim=1, eps=1e-12
softmax: T(2,3), 1, dtype=None
log_softmax: T(2,3), 1, dtype=None
softmin: T(2,3), 1, dtype=None
one_hot: I(5,2,3), num_classes=-1
relu|relu6|selu|silu|mish|hardswish|hardsigmoid: T(2,3), inplace=False
sigmoid|tanh|logsigmoid|softsign|tanhshrink: T(2,3)
elu|celu: T(2,3), alpha=1.0, inplace=False
gelu: T(2,3), approximate='none'
leaky_relu: T(2,3), negative_slope=0.01, inplace=False
hardtanh: T(2,3), min_val=-1.0, max_val=1.0, inplace=False
softplus: T(2,3), beta=1.0, threshold=20.0
softshrink|hardshrink: T(2,3), lambd=0.5
threshold: T(2,3), 0.1, 20.0, inplace=False
glu: T(2,4), dim=-1
prelu: T(2,3), T(3)
rrelu: T(2,3), lower=0.1, upper=0.3, training=False, inplace=False
dropout|alpha_dropout|dropout1d|feature_alpha_dropout: T(2,3,4), p=0.0, training=True, inplace=False
dropout2d|dropout3d: T(1,2,3,2,2), p=0.0, training=True, inplace=False
gumbel_softmax: T(2,3), tau=1.0, hard=False, dim=-1
linear: T(2,3), T(4,3), T(4)
bilinear: T(2,3), T(2,4), T(5,3,4), T(5)
scaled_dot_product_attention: T(2,2,3,4), T(2,2,3,4), T(2,2,3,4), attn_mask=None, dropout_p=0.0, is_causal=False, scale=None
scaled_dot_product_attention: T(2,4,20,4), T(2,2,33,4), T(2,2,33,4), attn_mask=C(20,33), enable_gqa=True
mse_loss|l1_loss: T(2,3), T(2,3), reduction='mean', weight=None
smooth_l1_loss: T(2,3), T(2,3), reduction='mean', beta=1.0
huber_loss: T(2,3), T(2,3), reduction='mean', delta=1.0, weight=None
cross_entropy: T(4,3), I(3,4), weight=None, ignore_index=-100, reduction='mean', label_smoothing=0.0
cross_entropy: T(2,3,4), I(3,2,4), weight=C(3), ignore_index=1, reduction='mean', label_smoothing=0.1
cross_entropy: T(4,3), U(4,3), weight=C(3), reduction='mean', label_smoothing=0.1
nll_loss: T(4,3), I(3,4), weight=None, ignore_index=-100, reduction='mean'
linear_cross_entropy: T(4,3), T(5,3), I(5,4), linear_bias=T(5), weight=None, reduction='mean', label_smoothing=0.0
binary_cross_entropy: U(2,3), U(2,3), weight=None, reduction='mean'
binary_cross_entropy_with_logits: T(2,3), U(2,3), weight=None, reduction='mean', pos_weight=None
kl_div: T(2,3), U(2,3), reduction='mean', log_target=False
poisson_nll_loss: T(2,3), U(2,3), log_input=True, full=False, eps=1e-8, reduction='mean'
gaussian_nll_loss: T(2,3), T(2,3), U(2,3), full=False, eps=1e-6, reduction='mean'
hinge_embedding_loss: T(2,3), C(2,3), margin=1.0, reduction='mean'
margin_ranking_loss: T(3), T(3), T(3), margin=0.0, reduction='mean'
cosine_embedding_loss: T(3,4), T(3,4), C(3), margin=0.0, reduction='mean'
soft_margin_loss: T(2,3), C(2,3), reduction='mean'
multi_margin_loss: T(4,3), I(3,4), p=1, margin=1.0, weight=None, reduction='mean'
multilabel_margin_loss: T(2,3), I(3,2,3), reduction='mean'
multilabel_soft_margin_loss: T(2,3), U(2,3), weight=None, reduction='mean'
triplet_margin_loss: T(3,4), T(3,4), T(3,4), margin=1.0, p=2.0, eps=1e-6, swap=False, reduction='mean'
ctc_loss: T(6,2,4), I(4,2,3), (6,5), (3,2), blank=0, reduction='mean', zero_infinity=False
embedding: I(5,2,3), T(5,4), padding_idx=None, max_norm=None, scale_grad_by_freq=False
embedding_bag: I(5,2,3), T(5,4), mode='mean', padding_idx=None, per_sample_weights=None
cosine_similarity: T(2,3), T(2,3), dim=1, eps=1e-8
pairwise_distance: T(2,3), T(2,3), p=2.0, eps=1e-6, keepdim=False
pdist: T(4,3), p=2.0
m.cdist: T(2,4,3), T(2,5,3), p=1.0
m.matmul: T(2,1,3,4), T(5,4,2)
m.mm|m.matmul: T(2,3), T(3,4)
m.bmm: T(2,3,4), T(2,4,5)
m.addmm: T(2,4), T(2,3), T(3,4), beta=1, alpha=1
m.baddbmm: T(2,3,5), T(2,3,4), T(2,4,5), beta=1, alpha=1
m.gru_cell: T(2,3), T(2,5), T(15,3), T(15,5), T(15), T(15)
m.rnn_tanh_cell|m.rnn_relu_cell: T(2,3), T(2,5), T(5,3), T(5,5), T(5), T(5)
"""
# Vectors of PyTorch's kernels and the elements behind the last one differ in what they make of NaN, or of its gradient.
UNSURE = "conv gelu elu celu hardswish hardsigmoid hardtanh soft_margin_loss scaled_dot_product_attention".split()
ODD = (
    "None True 'a' 0 -1 1 2 3 5 2.0 0.5 NAN INF -0.5 () (1,) (2,) (2,2) (0,1) (1,2,3) (1,1,1,1) [1,1] (2.0,2) (None,2) "
    "2**31 2**40 2**62 1e300 1j T() T(2) I(3,2)"
).split()
SUITED = {  # values that are likely to matter
    "mode": "'nearest' 'linear' 'bilinear' 'bicubic' 'trilinear' 'area' 'nearest-exact' "
    "'reflect' 'replicate' 'circular' 'constant'",
    "padding": "'same' 'valid' 1 2 (1,0) -1",
    "padding_mode": "'border' 'reflection'",
    "align_corners": "True False",
    "stride": "2 3 (2,1) 0 ()",
    "groups": "2 4 0 -1",
    "dim": "0 -1 2 -3",
    "dtype": "m.float64 m.int32 m.float16 m.complex64",
    "size": "(2,3) 0 (3,) 2 (2,3,4)",
    "output_size": "(2,2) 4 (4,4) (3,) (2,2,2)",
    "output_ratio": "0.5 (0.5,0.5) (0.5,0.4,0.6) 1.5",
    "scale_factor": "0.5 2 (1.5,2.0) 0.1",
    "ceil_mode": "True",
    "antialias": "True",
    "return_indices": "True False",
    "reduction": "'none' 'sum' 'x'",
    "p": "0 1 0.5 2.0 3.0 INF",
    "weight": "C(3) C(4) C(2,3) C(3).double()",
    "attn_mask": "C(3,3) C(3,3)>1 C(2,1,3,3) C(20,33) C(20,33)>1",
    "ignore_index": "0 2 -1",
    "label_smoothing": "1.0 0.5 -0.1 1.1",
    "padding_idx": "0 4 -1 -5 5",
    "max_norm": "1.0 0.0",
    "training": "True False",
}
DTYPES = ".double() .half() .bfloat16() .int() .long() .bool() .to(m.complex64) .to(m.uint8) .to(m.int8)".split()
STRIDES = [
    ".transpose(0,-1)",
    "[...,::2]",
    ".to(memory_format=m.channels_last)",
    ".to(memory_format=m.channels_last_3d)",
]


def split(text):
    """At the commas that are in no bracket."""
    return [part.strip() for part in re.split(r",(?![^(\[]*[)\]])", text) if part.strip()]


def other_shape(r, sizes):
    sizes, k = list(sizes), r.randrange(6)
    if k == 0 and sizes:
        sizes[r.randrange(len(sizes))] = r.choice([0, 1, 1, 2, 3, 5])
    elif k == 1 and sizes:
        sizes.pop(r.randrange(len(sizes)))
    elif k == 2:
        sizes.insert(r.randrange(len(sizes) + 1), r.choice([0, 1, 2, 3]))
    elif k == 3 and len(sizes) > 1:
        r.shuffle(sizes)
    elif k == 4 and sizes:
        sizes[0] = r.choice([0, 1, 4])
    elif sizes:
        sizes[-1] = r.choice([0, 1, 2, 7])
    return sizes


def spoil(r, argument, odd):
    """A mutated text for this argument. odd: constructors of tensors with non-finite values."""
    made = re.fullmatch(r"([A-Z]\w*)\(([\d,]*)\)", argument)
    if not made:
        return r.choice(ODD)
    maker, sizes = made[1], [int(n) for n in made[2].split(",") if n]
    bound, sizes = (sizes[:1], sizes[1:]) if maker.startswith("I") else ([], sizes)
    text = lambda name, bound, sizes: f"{name}({','.join(map(str, [*bound, *sizes]))})"  # noqa: E731
    k = r.randrange(12)
    if k < 5:
        return text(maker, bound, other_shape(r, sizes))
    if k < 7:
        return argument + r.choice(DTYPES)
    if k < 9:
        return argument + r.choice(STRIDES)
    if k == 9:
        return text(maker, [bound[0] + 3], sizes) if bound else text(odd, [], sizes)  # out of range; not finite
    if k == 10:
        return text("X", [], sizes) if maker == "T" and sizes else f"({argument}-2)"
    return r.choice(ODD)


def calls_of(name, n, seed):
    """n different statements. No NaN in convolutions: some of PyTorch's kernels multiply it by the padding, some do not."""
    lines = [line.split(": ", 1)[1] for line in CALLS.strip().splitlines() if name in line.split(": ")[0].split("|")]
    r, made = random.Random(seed * 100003 + zlib.crc32(name.encode())), {}
    for _ in range(20 * n):
        arguments = split(r.choice(lines))
        plain = [a for a in arguments if not re.match(r"\w+=", a)]
        named = [a.split("=", 1) for a in arguments[len(plain) :] if r.random() < 0.5]
        for pair in named:
            if r.random() < 0.35:
                pair[1] = r.choice(SUITED[pair[0]].split() if pair[0] in SUITED and r.random() < 0.7 else ODD)
        for _ in range(r.choice([1, 1, 1, 2])):
            if r.random() < 0.8:
                k = r.randrange(len(plain))
                plain[k] = spoil(r, plain[k], "T" if name.startswith(tuple(UNSURE)) else "N")
        if r.random() < 0.03:
            named.append(["bogus", "1"])
        if r.random() < 0.03:
            plain.pop()
        made[f"{name if '.' in name else 'F.' + name}({', '.join(plain + ['='.join(pair) for pair in named])})"] = None
        if len(made) == n:
            break
    return list(made)


class Operands:
    """The names of a statement, in one library."""

    def __init__(self, library):
        self.library, self.leaves = library, []

    def made(self, sizes, value, dtype="float32"):
        m = self.library
        return m.tensor([value(k) for k in range(math.prod(sizes))], dtype=getattr(m, dtype)).reshape(sizes)

    def leaf(self, *args):
        self.leaves.append(self.made(*args).requires_grad_())
        return self.leaves[-1]

    def names(self):
        some = lambda k: ((7 * k + 3) % 19 - 9) / 4 + 0.01  # noqa: E731
        odd = lambda k: NAN if k % 5 == 3 else INF if k % 7 == 5 else some(k)  # noqa: E731
        return {
            "m": self.library,
            "F": self.library.nn.functional,
            "T": lambda *sizes: self.leaf(sizes, some),
            "N": lambda *sizes: self.leaf(sizes, odd),
            "X": lambda *sizes: self.leaf((1, *sizes[1:]), some).expand(sizes),
            "C": lambda *sizes: self.made(sizes, lambda k: abs(some(k))),
            "U": lambda *sizes: self.leaf(sizes, lambda k: ((7 * k + 3) % 19 + 1) / 21),
            "I": lambda n, *sizes: self.made(sizes, lambda k: (7 * k + 3) % max(n, 1), "int64"),
            "INF": INF,
            "NAN": NAN,
        }


def outcome(statement, library):
    """(results, gradients), or the error of either."""
    operands, results = Operands(library), None
    try:
        library.manual_seed(1)
        results = eval(statement, operands.names())
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        total = [t.real.sum() if t.is_complex() else t.sum() for t in results if t.requires_grad]
        grads = library.autograd.grad(sum(total), operands.leaves, allow_unused=True) if total else []
        return results, list(grads)
    except Exception as error:  # noqa: BLE001  the class is compared
        return (results, error) if isinstance(results, list) else error


def difference(statement):
    """(kind, what); kind "" is none."""
    theirs, mine = outcome(statement, torch), outcome(statement, lucid)
    if isinstance(theirs, Exception):
        failed = isinstance(mine, Exception)
        try:
            assert_same_error(mine if failed else None, theirs)
        except AssertionError as error:
            return "class" if failed else "accepted", str(error)
        return "", ""
    if isinstance(mine, Exception):
        return "refused", f"{type(mine).__name__}: {first_line(mine)}"
    half = "half()" in statement or "bfloat16()" in statement or "float16" in statement
    tolerance = lambda dtype: (3e-2, 3e-2) if half else (1e-4, 1e-5)  # noqa: E731
    for (a, b), what in zip(zip(mine, theirs), ("result", "gradient")):
        if isinstance(a, Exception) or isinstance(b, Exception):
            same = isinstance(a, Exception) and isinstance(b, Exception)
            return ("", "") if same else ("gradient", f"Lucid: {first_line(a)}" if isinstance(a, Exception) else first_line(b))
        if [t is None for t in a] != [t is None for t in b]:
            return "value", f"{what}s: {[t is None for t in a]}, not {[t is None for t in b]} are None"
        for k, (x, y) in enumerate(zip(a, b)):
            for kind in ("value", "strides") if what == "result" else ("value",):
                strides, values = kind == "strides", kind == "value"
                try:
                    if y is not None:
                        assert_same_tensor(x.detach(), y.detach(), tolerance, f"{what} {k}: ", strides, values)
                except AssertionError as error:
                    return kind, str(error)[:200]
    return "", ""


def limit():
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, resource.RLIM_INFINITY))
    signal.alarm(SECONDS)


def child(statements, pipe):
    warnings.simplefilter("ignore")
    for statement in statements:
        limit()
        pipe.write(json.dumps(difference(statement)) + "\n")
        pipe.flush()
    os._exit(0)


def dies(statement, library):
    pid = os.fork()
    if not pid:
        limit()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        outcome(statement, library)
        os._exit(0)
    return os.waitpid(pid, 0)[1]


def differences(statements):
    """(statement, kind, what) of those that differ."""
    while statements:
        ends = os.pipe()
        pid = os.fork()
        if not pid:
            child(statements, os.fdopen(ends[1], "w"))
        os.close(ends[1])
        with os.fdopen(ends[0]) as answers:
            lines = answers.readlines()
        os.waitpid(pid, 0)
        for statement, line in zip(statements, lines):
            kind, what = json.loads(line)
            if kind:
                yield statement, kind, what
        if len(lines) < len(statements) and not dies(statements[len(lines)], torch):
            yield statements[len(lines)], "crash", f"status {dies(statements[len(lines)], lucid)}"
        statements = statements[len(lines) + 1 :]


OPS = list(dict.fromkeys(name for line in CALLS.strip().splitlines() for name in line.split(": ")[0].split("|")))


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("ops", nargs="*", default=OPS)
    options.add_argument("--calls", type=int, default=300, help="per op")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--kinds", default="crash,value,strides,accepted,refused,class,gradient")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    lucid.set_num_threads(1)
    counts, total = dict.fromkeys(chosen.kinds.split(","), 0), 0
    for name in chosen.ops:
        statements = calls_of(name, chosen.calls, chosen.seed)
        total += len(statements)
        for statement, kind, what in differences(statements):
            if kind in counts:
                counts[kind] += 1
                print(f"{kind:9}{statement}\n         {what}", flush=True)
    print(f"sweep: {total} calls of {len(chosen.ops)} ops; {', '.join(f'{n} {kind}' for kind, n in counts.items())}")


if __name__ == "__main__":
    sys.exit(main())
