"""Normalisations that return their statistics."""

from .sample import FLOATS, HALVES, S, T

DTYPES = FLOATS + HALVES


def group_norm(m, x, weight, bias):  # PyTorch takes, or reads, no other strides
    return m.native_group_norm(x.contiguous(), weight.contiguous(), bias.contiguous(), 2, 6, 3, 3, 1e-5)


def batch_norm(m, x, weight, bias, mean, variance):  # writes mean and variance
    return *m.native_batch_norm(x, weight, bias, mean, variance, True, 0.1, 1e-5), mean, variance


SAMPLES = [
    S("native_layer_norm", T(4, 3, 5), [3, 5], T(3, 5), T(3, 5), 1e-5, dtypes=DTYPES),
    S("native_layer_norm", T(4, 5), [5], None, None, 1e-5, dtypes=DTYPES, id="plain"),
    S("native_layer_norm", T(0, 5), [5], None, T(5), 1e-5, id="empty", gradgrad=False),
    S("native_layer_norm", T(4, 5), [4], None, None, 1e-5, id="wrong shape"),
    S("native_group_norm", T(2, 6, 3), T(6), T(6), fn=group_norm),
    S("native_group_norm", T(2, 6, 3), None, None, 2, 6, 3, 4, 1e-5, id="groups do not divide"),
    S("native_batch_norm", T(4, 3, 5), T(3), T(3), T(3, grad=False), T(3, low=0.5, grad=False), fn=batch_norm),
    S("native_batch_norm", T(4, 3), None, T(3), None, None, True, 0.1, 1e-5, id="no running statistics", gradgrad=False),
    S("native_batch_norm", T(4, 3), T(3), None, T(3, grad=False), T(3, low=0.5, grad=False), False, 0.1, 1e-5, id="evaluation"),
]
