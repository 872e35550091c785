"""Activations and dropout of nn.functional."""

from ..sample import COMPLEX, FLOATS, HALVES, INTS, S, T

INF, NAN = float("inf"), float("nan")
FLOATING = FLOATS + HALVES
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, 6.0, 25.0, -25.0, NAN, INF, -INF]
SAMPLES = []


def functional(name):
    return lambda m, *args, **kwargs: getattr(m.nn.functional, name)(*args, **kwargs)


def add(name, *arguments, dtypes=FLOATING, edges=EDGES, flag=True, **options):
    """Values, edges, an empty tensor, and inplace=True on an intermediate result."""
    f = functional(name)
    for args, kwargs in arguments or [((), {})]:
        SAMPLES.append(S(name, T(3, 4, low=-5, high=8), *args, fn=f, dtypes=dtypes, **kwargs, **options))
        SAMPLES.append(S(name, T(values=edges), *args, fn=f, grad=False, id=name + "-edges", **kwargs))
    args, kwargs = (arguments or [((), {})])[0]
    SAMPLES.append(S(name, T(2, 0), *args, fn=f, **kwargs, **options))
    if flag:
        f = lambda m, x, *a, **k: getattr(m.nn.functional, name)(x * 1, *a, inplace=True, **k)
        SAMPLES.append(S(name, T(3, 4, low=-5, high=8), *args, fn=f, **kwargs, **options, id=name + "-inplace"))


def call(*args, **kwargs):
    return args, kwargs


add("relu", dtypes=INTS + FLOATING)
add("relu6", dtypes=INTS + FLOATING)
add("hardtanh", call(), call(-0.5, 2.0), call(min_val=0), dtypes=("int8", "int32") + FLOATING, gradgrad=True)
add("hardsigmoid", gradgrad=False, atol=1e-7)
add("hardswish")
add("elu", call(), call(0.3), call(alpha=2))
add("celu", call(), call(0.3), call(alpha=2), rtol=1e-6)  # PyTorch rounds 1 / alpha to float32
add("selu")
add("leaky_relu", call(), call(0.3), call(negative_slope=0))
add("silu", edges=EDGES[:-1])  # PyTorch: NaN for the lowest; the limit is zero
add("mish")
add("threshold", call(0.5, 7.0), call(-1, 2), dtypes=INTS + FLOATING)
add("rrelu", call(), call(0.1, 0.9))
add("gelu", call(), call(approximate="tanh"), flag=False, edges=EDGES[:-2])
add("softplus", call(), call(2, 3), call(beta=0.5, threshold=5.5), flag=False)
add("logsigmoid", flag=False)
add("hardshrink", call(), call(2), flag=False)
add("softshrink", call(), call(2), flag=False)
add("softsign", flag=False, dtypes=INTS + FLOATING + COMPLEX, edges=EDGES[:-2])
add("tanhshrink", flag=False, dtypes=INTS + FLOATING + COMPLEX, edges=EDGES[:-2])
SAMPLES += [S("softshrink", T(3), -1, fn=functional("softshrink")), S("celu", T(3), 0, fn=functional("celu"))]
for name in "elu_ celu_ selu_ relu_ leaky_relu_ hardtanh_ rrelu_".split():
    SAMPLES += [S(name, T(3, 4), fn=lambda m, x, name=name: getattr(m.nn.functional, name)(x * 1))]
SAMPLES += [S("threshold_", T(3, 4), fn=lambda m, x: m.nn.functional.threshold_(x * 1, 0.5, 2))]
SAMPLES += [
    S("rrelu", T(5, 40), fn=lambda m, x: (m.manual_seed(3), m.nn.functional.rrelu(x, training=True))[1], dtypes=FLOATS),
    S("rrelu", T(5, 40), 0.1, 0.5, fn=lambda m, x, *a: (m.manual_seed(3), m.rrelu_(x * 1, *a, training=True))[1]),
    S("rrelu", T(3), 0.5, 0.1, fn=functional("rrelu")),
]

for x, w in ((T(3, 4), T(4)), (T(3, 4), T(1)), (T(5), T(1)), (T(2, 3, 4), T(3)), (T(), T(1)), (T(), T()), (T(3, 4), T()),
             (T(2, 0, 3), T(0)), (T(3, 4), T(3)), (T(3, 4), T(2, 2)), (T(3), T(3))):  # fmt: skip
    SAMPLES += [S("prelu", x, w, dtypes=FLOATING)]
SAMPLES += [S("prelu", T(3, 4), T(4, dtype="float64"), dtypes=("float32",))]
for shape, dim in (((4, 6), -1), ((4, 6), 0), ((2, 3, 8), 2), ((3, 5), -1), ((), -1), ((0, 4), 1), ((4, 6), 3)):
    SAMPLES += [S("glu", T(*shape), dim, fn=functional("glu"), dtypes=FLOATING)]


def seeded(name):
    return lambda m, *args, **kwargs: (m.manual_seed(11), getattr(m.nn.functional, name)(*args, **kwargs))[1]


def seeded_inplace(name):
    return lambda m, x, *a, **k: (m.manual_seed(11), getattr(m.nn.functional, name)(x * 1, *a, inplace=True, **k))[1]


SHAPES = {
    "dropout": [(40,), (3, 5), (2, 0)], "dropout1d": [(6, 5), (2, 7, 5), (3,)], "dropout2d": [(2, 5, 3, 3), (2, 5, 3)],
    "dropout3d": [(2, 5, 3, 2, 2), (5, 3, 2, 2)], "alpha_dropout": [(40,), (3, 5)], "feature_alpha_dropout": [(4, 5, 3)],
}  # fmt: skip
for name, shapes in SHAPES.items():
    for shape in shapes:
        for kwargs in ({"training": True}, {"p": 0.2, "training": True}, {"p": 0.0, "training": True},
                       {"p": 1.0, "training": True}, {"training": False}):  # fmt: skip
            SAMPLES += [S(name, T(*shape), fn=seeded(name), **kwargs)]
        SAMPLES += [S(name, T(*shape), 0.3, True, fn=seeded_inplace(name))]
    SAMPLES += [S(name, T(*shapes[0]), fn=seeded(name), p=p) for p in (-0.1, 1.5)]
