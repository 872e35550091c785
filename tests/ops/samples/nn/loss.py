"""Losses of nn.functional."""

from ..sample import COMPLEX, FLOATS, HALVES, S, T

FLOATING = FLOATS + HALVES
INF, NAN = float("inf"), float("nan")
SAMPLES = []


def functional(name):
    return lambda m, *args, **kwargs: getattr(m.nn.functional, name)(*args, **kwargs)


def add(name, *args, reductions=("none", "mean", "sum"), dtypes=FLOATING, **options):
    for reduction in reductions:
        SAMPLES.append(S(name, *args, fn=functional(name), dtypes=dtypes, reduction=reduction, strides=False, **options))


def bad(name, *args, **options):
    """PyTorch refuses it; so does Lucid."""
    SAMPLES.append(S(name, *args, fn=functional(name), **options))


def fixed(*shape, low=0, high=5, dtype="int64"):
    return T(*shape, dtype=dtype, low=low, high=high)


X, Y = T(3, 4), T(3, 4, low=-1, high=3)
for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss"):
    wide = {"dtypes": FLOATS + COMPLEX} if name == "l1_loss" else {}
    y = name != "soft_margin_loss"  # PyTorch has no gradient of its target
    add(name, X, T(3, 4, low=-1, high=3, grad=y), **wide)
    add(name, T(), T(grad=y))
    add(name, T(2, 0), T(2, 0, grad=y), dtypes=FLOATS)
    bad(name, X, Y, reduction="median")
    add(name, T(values=[0.0, INF, NAN, 1.0, -INF]), T(values=[0.0, 1.0, 1.0, INF, INF]), dtypes=FLOATS, grad=False)
for name in ("mse_loss", "l1_loss", "huber_loss"):
    add(name, X, Y, weight=T(3, 4, low=0.1, high=2, grad=False))
    bad(name, X, Y, weight=T(4))
for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
    add(name, X, T(4), dtypes=FLOATS)
for old in ({"size_average": False}, {"reduce": False}, {"size_average": True, "reduce": True}):
    SAMPLES.append(S("mse_loss", X, Y, fn=functional("mse_loss"), **old))
    SAMPLES.append(S("kl_div", X, T(3, 4, low=0.1, high=1), fn=functional("kl_div"), **old))
add("smooth_l1_loss", X, Y, beta=0.3)
add("smooth_l1_loss", X, Y, beta=0.0)
bad("smooth_l1_loss", X, Y, beta=-1.0)
add("huber_loss", X, Y, delta=0.3)
bad("huber_loss", X, Y, delta=0.0)

P = T(3, 4, low=0.05, high=0.95)
add("binary_cross_entropy", P, T(3, 4, low=0, high=1))
add("binary_cross_entropy", P, T(3, 4, low=0, high=1), weight=T(4, low=0.1, high=2, grad=False))
add("binary_cross_entropy", T(values=[0.0, 1.0, 0.0, 1.0]), T(values=[0.0, 1.0, 1.0, 0.0]), dtypes=FLOATS, grad=False)
add("binary_cross_entropy", T(0), T(0), dtypes=FLOATS)
bad("binary_cross_entropy", T(values=[1.5, 0.5]), T(values=[1.0, 0.0]))
bad("binary_cross_entropy", T(values=[NAN, 0.5]), T(values=[1.0, 0.0]))
bad("binary_cross_entropy", P, T(4))
BCE = "binary_cross_entropy_with_logits"
add(BCE, T(3, 4, low=-6, high=6), T(3, 4, low=0, high=1), dtypes=FLOATS, rtol=5e-6)
add(BCE, T(3, 4), T(3, 4, low=0, high=1), dtypes=HALVES, rtol=2e-2)
add(
    BCE,
    T(3, 4),
    T(3, 4, low=0, high=1),
    weight=T(4, low=0.1, high=2, grad=False),
    pos_weight=T(4, low=0.1, high=3, grad=False),
    dtypes=FLOATS,
)
add(BCE, T(values=[100.0, -100.0, 0.0]), T(values=[0.0, 1.0, 1.0]), dtypes=FLOATS, grad=False)
bad(BCE, X, T(4))
for log_target in (False, True):
    add("kl_div", X, T(3, 4, low=0.1, high=1), reductions=("none", "mean", "sum", "batchmean"), log_target=log_target)
add("kl_div", T(4), T(4, low=-1, high=1), dtypes=FLOATS, grad=False)
for log_input in (True, False):
    for full in (True, False):
        add("poisson_nll_loss", T(3, 4, low=0.1), T(3, 4, low=0.1, high=4), log_input=log_input, full=full)
bad("poisson_nll_loss", X, Y, reduction="median")
for var in (T(3, 4, low=0.1), T(3, low=0.1), T(3, 1, low=0.1), 0.7):
    add("gaussian_nll_loss", X, Y, var, dtypes=FLOATS)
    add("gaussian_nll_loss", X, Y, var, full=True, eps=0.5, dtypes=FLOATS)
bad("gaussian_nll_loss", X, Y, T(3, 4, low=-1, high=-0.5))
bad("gaussian_nll_loss", X, Y, T(4, 3, low=0.1))

SIGNS = T(values=[1.0, -1.0, 1.0, -1.0], grad=False)
add("hinge_embedding_loss", T(3, 4), SIGNS)
add("hinge_embedding_loss", T(3, 4), SIGNS, margin=0.4)
add("cosine_embedding_loss", T(4, 5), T(4, 5), SIGNS)
add("cosine_embedding_loss", T(4, 5), T(4, 5), SIGNS, margin=0.3, dtypes=FLOATS)
add("cosine_embedding_loss", T(5), T(5), T(values=-1.0, grad=False), dtypes=FLOATS)
bad("cosine_embedding_loss", T(4, 5), T(4, 5), T(4, 5))
add("margin_ranking_loss", T(4), T(4), SIGNS, margin=0.4)
bad("margin_ranking_loss", T(4, 1), T(4), SIGNS)
add("multilabel_soft_margin_loss", T(3, 4), fixed(3, 4, high=2, dtype="float32"), dtypes=("float32",))
add("multilabel_soft_margin_loss", X, T(3, 4, low=0, high=1), weight=T(4, low=0.1))
for swap in (False, True):
    add("triplet_margin_loss", T(4, 5), T(4, 5), T(4, 5), swap=swap, dtypes=FLOATS)
    add("triplet_margin_loss", T(4, 5), T(4, 5), T(4, 5), p=3.0, margin=0.3, swap=swap, dtypes=FLOATS)
bad("triplet_margin_loss", T(4, 5), T(4, 5), T(5))
bad("triplet_margin_loss", T(4, 5), T(4, 5), T(4, 5), margin=-1.0)

for p in (1, 2):
    add("multi_margin_loss", T(6, 5), fixed(6), p=p, dtypes=FLOATS, gradgrad=False)
    add(
        "multi_margin_loss", T(6, 5), fixed(6), p=p, margin=0.3, weight=T(5, low=0.1, grad=False), dtypes=FLOATS, gradgrad=False
    )
add("multi_margin_loss", T(5), T(values=2, dtype="int64"), dtypes=FLOATS, gradgrad=False)
bad("multi_margin_loss", T(6, 5), fixed(4))
bad("multi_margin_loss", T(6, 5), fixed(6), p=3)
bad("multi_margin_loss", T(6, 5), T(values=[0, 1, 2, 3, 4, 5], dtype="int64"))
LABELS = T(values=[[0, 2, -1, 1], [3, -1, 0, 0], [-1, 1, 2, 3], [0, 1, 2, 3]], dtype="int64")
add("multilabel_margin_loss", T(4, 4), LABELS, dtypes=FLOATS, gradgrad=False)
add("multilabel_margin_loss", T(4), T(values=[1, 3, -1, 0], dtype="int64"), dtypes=FLOATS, gradgrad=False)
bad("multilabel_margin_loss", T(2, 2), T(values=[[0, 2], [1, -1]], dtype="int64"))
bad("multilabel_margin_loss", T(2, 2), T(values=[[0, 1, -1], [1, -1, 0]], dtype="int64"))

SHAPES = [((6, 5), (6,)), ((5,), ()), ((2, 5, 7), (2, 7)), ((2, 5, 3, 4), (2, 3, 4)), ((2, 5, 40), (2, 40)), ((0, 5), (0,))]
for name in ("nll_loss", "cross_entropy"):
    smoothings = ({}, {"label_smoothing": 0.2}, {"label_smoothing": 1.0}) if name == "cross_entropy" else ({},)
    for shape, target in SHAPES:
        for more in smoothings:
            t, weight = fixed(*target), T(5, low=0.1, grad=False)
            more = {**more, "grad": name != "nll_loss" or len(shape) != 4}  # PyTorch's refuses to write strided gradients
            add(name, T(*shape), t, **more)
            add(name, T(*shape), t, weight=weight, dtypes=FLOATS, **more)
            add(name, T(*shape), t, weight=weight, ignore_index=1, dtypes=FLOATS, **more)
            add(name, T(*shape), t, ignore_index=3, dtypes=FLOATS, **more)
    add(name, T(3, 5), T(values=[-100, 2, -100], dtype="int64"), dtypes=FLOATS)
    add(name, T(2, 5), T(values=[-100, -100], dtype="int64"), dtypes=FLOATS, grad=False)
    add(name, T(values=[[NAN, 1.0, 2.0], [1.0, 2.0, 3.0]]), T(values=[-100, 1], dtype="int64"), dtypes=FLOATS, grad=False)
    for t in ([0, 5], [0, -1], [2**40, 0]):
        bad(name, T(2, 5), T(values=t, dtype="int64"))
    bad(name, T(2, 5), fixed(3))
    bad(name, T(2, 5), fixed(2, dtype="float32"))
    bad(name, T(2, 5), fixed(2), weight=T(4))
    bad(name, T(2, 5, 3), fixed(2, 4))
    bad(name, T(2, 5), fixed(2), reduction="median")
INFINITE = T(values=[[-INF, 1.0, 2.0], [INF, 2.0, 3.0], [-INF, -INF, -INF], [-900.0, 0.0, 900.0]])
add("cross_entropy", INFINITE, T(values=[1, 1, 1, 1], dtype="int64"), dtypes=FLOATS, grad=False)
bad("cross_entropy", T(2, 5), fixed(2), label_smoothing=1.5)
for shape in ((6, 5), (5,), (2, 5, 7), (2, 5, 3, 4)):
    for eps in (0.0, 0.3):
        add("cross_entropy", T(*shape), T(*shape, low=0, high=1), label_smoothing=eps)
        add(
            "cross_entropy",
            T(*shape),
            T(*shape, low=0, high=1),
            weight=T(5, low=0.1),
            label_smoothing=eps,
            dtypes=FLOATS,
            grad=False,
        )
bad("cross_entropy", T(6, 5), T(6, 5, low=0, high=1), ignore_index=2)
bad("cross_entropy", T(6, 5), fixed(6, 5))
# lines that are longer than the kernel's vectors, and blocks that are not whole
for shape, target in (((3, 1003), (3,)), ((2, 37, 5, 13), (2, 5, 13))):
    add("cross_entropy", T(*shape), fixed(*target, high=36), dtypes=HALVES, grad=False)
    add("cross_entropy", T(*shape), fixed(*target, high=36), rtol=1e-5, gradgrad=False, dtypes=FLOATS)
    add(
        "cross_entropy",
        T(*shape),
        fixed(*target, high=36),
        label_smoothing=0.1,
        rtol=1e-5,
        atol=1e-5,
        gradgrad=False,
        dtypes=FLOATS,
    )


def triplets(m, anchor, positive, negative, **kwargs):
    distance = lambda x, y: (x - y).abs().sum(-1)
    return m.nn.functional.triplet_margin_with_distance_loss(anchor, positive, negative, distance_function=distance, **kwargs)


for reduction in ("none", "mean", "sum"):
    SAMPLES.append(S("triplet_margin_with_distance_loss", T(4, 5), T(4, 5), T(4, 5), fn=triplets, reduction=reduction))
SAMPLES.append(S("triplet_margin_with_distance_loss", T(4, 5), T(4, 5), T(4, 5), fn=triplets, swap=True, margin=2.0))


def ctc(m, x, targets, *lengths, **kwargs):
    targets = m.tensor(targets) if isinstance(targets, list) else targets
    return m.nn.functional.ctc_loss(m.log_softmax(x, -1), targets, *lengths, **kwargs)


ROWS = T(values=[[1, 2, 2, 3], [3, 1, 0, 0], [2, 2, 2, 2]], dtype="int64")
FLAT = [1, 2, 2, 3, 3, 1, 2, 2, 2, 2]  # a list, because PyTorch takes a strided tensor for a contiguous one
TIMES, LENGTHS = [9, 7, 4], [4, 2, 4]  # the last sample has no alignment
for reduction in ("none", "mean", "sum"):
    for zero in (False, True):
        more = {"fn": ctc, "reduction": reduction, "zero_infinity": zero, "gradgrad": False, "strides": False, "rtol": 1e-5}
        SAMPLES += [
            S("ctc_loss", T(9, 3, 5), ROWS, TIMES, LENGTHS, grad=zero, **more),
            S("ctc_loss", T(9, 3, 5), FLAT, TIMES, LENGTHS, grad=zero, **more),
            S("ctc_loss", T(9, 2, 5), T(values=[[1, 2, 2, 3], [3, 1, 0, 0]], dtype="int64"), [9, 8], [4, 2], **more),
            S("ctc_loss", T(9, 2, 5), T(values=[[0, 2], [3, 1]], dtype="int64"), [9, 8], [2, 1], blank=4, **more),
            S("ctc_loss", T(9, 5), [1, 3, 3], [9], [3], **more),
            S("ctc_loss", T(4, 2, 5), T(values=[[1], [2]], dtype="int64"), [0, 3], [1, 0], grad=zero, **more),
            S("ctc_loss", T(4, 2, 5), T(values=[[1], [2]], dtype="int64"), [0, 3], [0, 1], grad=False, **more),
        ]
SAMPLES += [
    S("ctc_loss", T(9, 2, 5), T(values=[[1, 2], [3, 1]], dtype="int64"), T(values=[9, 8], dtype="int64"),
      T(values=[2, 2], dtype="int64"), fn=ctc, gradgrad=False, strides=False, rtol=1e-5),
    S("ctc_loss", T(60, 3, 30), T(3, 25, dtype="int64", low=1, high=30), [60, 55, 58], [20, 25, 0], fn=ctc, gradgrad=False,
      strides=False, rtol=1e-4, atol=1e-5),
    S("ctc_loss", T(9, 2, 5), T(values=[[1, 2], [3, 1]], dtype="int64"), [9, 8], [2, 1], blank=5, fn=ctc),
    S("ctc_loss", T(9, 2, 5), T(values=[[1, 2], [3, 1]], dtype="int64"), [9, 10], [2, 1], fn=ctc),
    S("ctc_loss", T(9, 2, 5), T(values=[[1, 2], [3, 1]], dtype="int64"), [9, 8], [2, 3], fn=ctc),
    S("ctc_loss", T(9, 2, 5), T(values=[[1, 2], [3, 1]], dtype="int64"), [9], [2], fn=ctc),
]  # fmt: skip

W, B, CLASSES = T(7, 4), T(7), T(5, dtype="int64", low=0, high=7)
for more in ({}, {"linear_bias": B}, {"weight": T(7, low=0.1, grad=False), "ignore_index": 2}, {"label_smoothing": 0.2}):
    add("linear_cross_entropy", T(5, 4), W, CLASSES, **more, dtypes=FLOATS)
add("linear_cross_entropy", T(5, 4), W, CLASSES, dtypes=HALVES, grad=False)
add("linear_cross_entropy", T(4), W, T(dtype="int64", low=0, high=7), dtypes=FLOATS)
add("linear_cross_entropy", T(5, 4), T(7, 3, 4), T(5, 3, dtype="int64", low=0, high=7), dtypes=FLOATS)
add("linear_cross_entropy", T(5, 4), W, T(5, 7, low=0, high=1), dtypes=FLOATS)
for args in ((T(5, 3), W, CLASSES), (T(5, 4), T(7), CLASSES), (T(2, 5, 4), W, CLASSES), (T(5, 4), W, T(4, dtype="int64")),
             (T(5, 4), W, T(values=[0, 1, 2, 3, 7], dtype="int64"))):  # fmt: skip
    bad("linear_cross_entropy", *args)


def in_parts(m, x, w, t, b, **kwargs):
    options = m.nn.LinearCrossEntropyOptions(batch_chunk_size=2, allow_retain_graph=True)
    return m.nn.functional.linear_cross_entropy(x, w, t, linear_bias=b, options=options, **kwargs)


for reduction in ("none", "mean", "sum"):  # of "none" PyTorch has no gradient while one of the gradient is recorded
    grad = reduction != "none"
    SAMPLES.append(
        S(
            "linear_cross_entropy",
            T(5, 4),
            W,
            CLASSES,
            B,
            fn=in_parts,
            grad=grad,
            reduction=reduction,
            gradgrad=False,
            strides=False,
        )
    )
