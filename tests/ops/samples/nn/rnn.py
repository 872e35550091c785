"""Recurrent layers: layers, directions, projections, packed input, sizes that are no whole vectors, one step alone, what does not fit."""

from ..sample import HALVES, S, T

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
LOOSE = {"rtol": 1e-5, "atol": 1e-5}
SAMPLES = []


def weights(name, width, hidden, layers=1, directions=1, biases=True, projection=0):
    params, size = [], projection or hidden
    for layer in range(layers):
        for _ in range(directions):
            rows = GATES[name] * hidden
            params += [
                T(rows, width if layer == 0 else size * directions, low=-0.5, high=0.5),
                T(rows, size, low=-0.5, high=0.5),
            ]
            params += [T(rows), T(rows)] if biases else []
            params += [T(size, hidden, low=-0.5, high=0.5)] if projection else []
    return params


def state(name, batch, hidden, ways=1, projection=0):
    h = T(ways, batch, projection or hidden)
    return [h, T(ways, batch, hidden)] if name == "lstm" else h


def network(
    name, steps=3, batch=2, width=3, hidden=4, layers=1, both=False, biases=True, first=False, projection=0, dropout=0.0, **more
):
    ways = layers * (1 + both)
    shape = (batch, steps, width) if first else (steps, batch, width)
    return S(
        name,
        T(*shape),
        state(name, batch, hidden, ways, projection),
        weights(name, width, hidden, layers, 1 + both, biases, projection),
        biases,
        layers,
        dropout,
        dropout > 0,
        both,
        first,
        **{"strides": False} | LOOSE | more,
    )


def packed(name, sizes, width=3, hidden=4, layers=1, both=False, **more):
    def call(m, data, *rest):
        """hx is one tensor or two; parameters follow."""
        hx = list(rest[:2]) if name == "lstm" else rest[0]
        params = list(rest[2 if name == "lstm" else 1 :])
        return getattr(m, name)(data, m.tensor(sizes, device="cpu"), hx, params, True, layers, 0.0, False, both)

    ways = layers * (1 + both)
    hx = state(name, sizes[0], hidden, ways)
    tensors = [T(sum(sizes), width), *(hx if name == "lstm" else [hx]), *weights(name, width, hidden, layers, 1 + both)]
    return S(name, *tensors, fn=call, **{"strides": False} | LOOSE | more)


for name in GATES:
    smooth = name != "rnn_relu"
    SAMPLES += [
        network(name, gradgrad=smooth),
        network(name, layers=2, both=True, gradgrad=False),
        network(name, both=True, first=True, biases=False, gradgrad=smooth),
        network(name, steps=1, batch=1, hidden=1, width=1),
        network(name, steps=5, batch=19, hidden=17, width=7, gradgrad=False),
        network(name, steps=4, batch=33, hidden=64, width=32, gradgrad=False, rtol=1e-4, atol=1e-4),
        network(name, layers=2, dropout=0.4, random=True, grad=False),
        network(name, batch=0),
        network(name, steps=0),
        packed(name, [3, 2, 2, 1], gradgrad=smooth),
        packed(name, [11, 9, 2, 1, 1], layers=2, both=True, gradgrad=False),
        packed(name, [2, 2, 2]),
        network(name, dtypes=HALVES, grad=False, rtol=2e-2, atol=2e-2),
    ]
    bad = network(name, dtypes=("float64",))  # for float32 PyTorch uses another library, which reads out of bounds
    bad.args = (*bad.args[:1], state(name, 3, 4), *bad.args[2:])  # a batch of another size
    SAMPLES.append(bad)
    bad = network(name, dtypes=("float64",))
    bad.args = (T(3, 2, 5), *bad.args[1:])  # inputs of another width
    SAMPLES.append(bad)
    bad = network(name)
    bad.args = (T(3, 2), *bad.args[1:])
    SAMPLES.append(bad)
    for biases in (True, False):
        w = weights(name, 3, 4, biases=biases)
        hx = [T(5, 4), T(5, 4)] if name == "lstm" else T(5, 4)
        SAMPLES.append(S(f"{name}_cell", T(5, 3), hx, *w, gradgrad=smooth, strides=False, **LOOSE))
    SAMPLES.append(S(f"{name}_cell", T(5, 2), hx, *weights(name, 3, 4), strides=False, **LOOSE))
SAMPLES += [
    network("lstm", projection=2),
    network("lstm", projection=5, hidden=7, layers=2, both=True, gradgrad=False),
    network("lstm", projection=3, hidden=20, batch=9, biases=False, first=True, gradgrad=False),
]
