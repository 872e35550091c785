"""Normalisations: as PyTorch's functions of networks, and with their statistics."""

from ..sample import FLOATS, HALVES, S, T

DTYPES = FLOATS + HALVES
NEAR = {"rtol": 1e-5, "atol": 1e-5}
ROUGH = {"rtol": 3e-2, "atol": 3e-2}  # PyTorch rounds the statistics of float16 and bfloat16


def group_norm(m, x, weight, bias):  # PyTorch takes, or reads, no other strides
    return m.native_group_norm(x.contiguous(), weight.contiguous(), bias.contiguous(), 2, 6, 3, 3, 1e-5)


def batch_norm(m, x, weight, bias, mean, variance):  # writes mean and variance
    return *m.native_batch_norm(x, weight, bias, mean, variance, True, 0.1, 1e-5), mean, variance


def functional(name, *args, **kwargs):
    """A function of nn.functional whose name torch has too, with other arguments."""
    return lambda m, *tensors: getattr(m.nn.functional, name)(*tensors[:1], *args, *tensors[1:], **kwargs)


def trained(m, x, mean, variance, weight, bias):  # the statistics that were written are part of the result
    return m.nn.functional.batch_norm(x, mean, variance, weight, bias, training=True), mean, variance


def each_trained(m, x, mean, variance, weight, bias):
    return m.nn.functional.instance_norm(x, mean, variance, weight, bias), mean, variance


def last(name, *args, **kwargs):
    """Of a tensor with its channels last."""
    call = functional(name, *args, **kwargs)
    return lambda m, x, *rest: call(m, x.to(memory_format=m.channels_last), *rest)


def batch(m, x, weight, bias):
    return m.nn.functional.batch_norm(x, None, None, weight, bias, training=True)


def batch_last(m, x, weight, bias):
    return batch(m, x.to(memory_format=m.channels_last), weight, bias)


RUNNING = T(3, grad=False), T(3, low=0.5, grad=False)

SAMPLES = [
    S("native_layer_norm", T(4, 3, 5), [3, 5], T(3, 5), T(3, 5), 1e-5, dtypes=DTYPES),
    S("native_layer_norm", T(4, 5), [5], None, None, 1e-5, dtypes=DTYPES, id="plain"),
    S("native_layer_norm", T(0, 5), [5], None, T(5), 1e-5, id="empty", gradgrad=False),
    S("native_layer_norm", T(2, 0), [0], None, None, 1e-5, id="empty rows", grad=False),
    S("native_layer_norm", T(4, 5), [4], None, None, 1e-5, id="wrong shape"),
    S("native_group_norm", T(2, 6, 3), T(6), T(6), fn=group_norm),
    S("native_group_norm", T(2, 6, 3), None, None, 2, 6, 3, 4, 1e-5, id="groups do not divide"),
    S("native_batch_norm", T(4, 3, 5), T(3), T(3), *RUNNING, fn=batch_norm),
    S("native_batch_norm", T(4, 3), None, T(3), None, None, True, 0.1, 1e-5, id="no running statistics", gradgrad=False),
    S("native_batch_norm", T(4, 3), T(3), None, *RUNNING, False, 0.1, 1e-5, id="evaluation"),
    S("native_batch_norm", T(0, 3), None, None, None, None, True, 0.1, 1e-5, id="empty"),
    S("layer_norm", T(4, 3, 5), [3, 5], T(3, 5), T(3, 5), dtypes=DTYPES),
    S("layer_norm", T(4, 5), [5], T(5), dtypes=DTYPES, id="no bias"),
    S("layer_norm", T(4, 5), [5], None, T(5), id="no weight", gradgrad=False),
    S("layer_norm", T(4, 1), [1], T(1), T(1), id="one element"),
    S("layer_norm", T(), [], id="no dimension"),
    S("layer_norm", T(4, 5), [5], T(4), id="wrong weight"),
    S("layer_norm", T(values=[[1e4, 1e4 + 1, 1e4 - 1]]), [3], id="far from zero", rtol=1e-4, gradgrad=False),
    S("layer_norm", T(values=[[1.0, float("nan")], [float("inf"), 2.0]]), [2], id="not finite", grad=False),
    S("layer_norm", T(3, 9000), [9000], T(9000), T(9000), id="tiles", gradgrad=False, **NEAR),
    S("layer_norm", T(3, 9000), [9000], T(9000), T(9000), id="tiles of half precision", grad=False, dtypes=HALVES, **ROUGH),
    S("layer_norm", T(130, 70), [70], T(70), T(70), id="chunks", gradgrad=False, **NEAR),
    S("nn_layer_norm", T(4, 3, 5), T(5), T(5), fn=functional("layer_norm", [5])),
    S("rms_norm", T(4, 3, 5), [3, 5], T(3, 5), 1e-5, dtypes=DTYPES + ("complex128", "int64")),
    S("rms_norm", T(4, 5), [5], dtypes=DTYPES, id="plain"),
    S("rms_norm", T(values=[[0.01, -0.02, 0.04]]), [3], dtypes=DTYPES, id="small", gradgrad=False),
    S("rms_norm", T(3, 9000), [9000], T(9000), id="tiles", gradgrad=False, **NEAR),
    S("normalize", T(4, 5), dtypes=DTYPES + ("complex128", "int64")),
    S("normalize", T(4, 5), 1.0, 0, id="by sums"),
    S("normalize", T(values=[[0.0, 0.0], [1e-14, 0.0]]), id="zeros", gradgrad=False),
    S("local_response_norm", T(2, 5, 4), 3, dtypes=DTYPES + ("int64",)),
    S("local_response_norm", T(2, 5, 4, 3), 2, 0.1, 0.5, 2.0, dtypes=DTYPES, id="even"),
    S("local_response_norm", T(2, 5), 2, id="two dimensions"),
    S("local_response_norm", T(2, 5, 3), 0, id="no size"),
    S("local_response_norm", T(2, 0, 3), 2, id="empty", grad=False),
    S("group_norm", T(2, 6, 3), 3, T(6), T(6), dtypes=DTYPES),
    S("group_norm", T(2, 6), 3, T(6), T(6), id="vectors"),
    S("group_norm", T(2, 6, 4), 6, id="a group per channel"),
    S("group_norm", T(2, 6, 3), 4, id="groups do not divide"),
    S("group_norm", T(2, 6, 3), 0, id="no groups"),
    S("group_norm", T(2, 6, 3), 3, T(5), id="wrong weight"),
    S("group_norm", T(6), 3, id="one dimension"),
    S("group_norm", T(2, 4, 4500), 2, T(4), T(4), id="tiles", gradgrad=False, **NEAR),
    S("group_norm", T(2, 4, 4500), 2, T(4), T(4), id="tiles of half precision", grad=False, dtypes=HALVES, **ROUGH),
    S("nn_group_norm", T(2, 6, 3), T(6), T(6), fn=functional("group_norm", 3)),
    S("nn_group_norm", T(2, 6, 3, 2), T(6), T(6), fn=last("group_norm", 3), id="channels last"),
    S("nn_group_norm", T(1, 2), fn=functional("group_norm", 2), id="one value"),
    S("batch_norm", T(4, 3, 5), T(3), T(3), *RUNNING, False, 0.1, 1e-5, True),
    S("batch_norm", T(4, 3, 5), T(3), T(3), None, None, True, 0.1, 1e-5, True, dtypes=DTYPES, id="training"),
    S("batch_norm", T(4, 3, 5), T(4), T(3), None, None, True, 0.1, 1e-5, True, id="wrong weight"),
    S("nn_batch_norm", T(4, 3, 5), *RUNNING, T(3), T(3), fn=trained, dtypes=DTYPES),
    S("nn_batch_norm", T(4, 3), *RUNNING, T(3), T(3), fn=functional("batch_norm"), id="evaluation", dtypes=DTYPES),
    S("nn_batch_norm", T(4, 3), *RUNNING, fn=functional("batch_norm"), id="not affine"),
    S("nn_batch_norm", T(4, 3, 2, 5), T(3), T(3), fn=batch_last, id="channels last", dtypes=DTYPES),
    S("nn_batch_norm", T(4, 3, 2, 5), *RUNNING, fn=last("batch_norm"), id="channels last, evaluation"),
    S("nn_batch_norm", T(0, 3), T(3), T(3), fn=batch, id="empty"),
    S("nn_batch_norm", T(1, 3), T(3), T(3), fn=batch, id="one value"),
    S("nn_batch_norm", T(4, 3), T(3), T(3), fn=lambda m, *t: m.nn.functional.batch_norm(t[0], None, None), id="no statistics"),
    S("nn_batch_norm", T(3, 2, 5000), T(2), T(2), fn=batch, id="tiles", gradgrad=False, **NEAR),
    S("nn_batch_norm", T(3, 2, 5000), T(2), T(2), fn=batch, id="tiles of half precision", grad=False, dtypes=HALVES, **ROUGH),
    S("nn_batch_norm", T(700, 70), T(70), T(70), fn=batch, id="chunks", gradgrad=False, **NEAR),
    S("nn_batch_norm", T(700, 70), T(70), T(70), fn=batch, id="chunks of half precision", grad=False, dtypes=HALVES, **ROUGH),
    S("nn_batch_norm", T(40, 9, 17), T(9), T(9), fn=batch, id="columns", gradgrad=False, **NEAR),
    S("instance_norm", T(4, 3, 5), T(3), T(3), *RUNNING, False, 0.1, 1e-5, True),
    S("instance_norm", T(4, 3, 5), T(3), T(3), None, None, True, 0.1, 1e-5, True, dtypes=DTYPES, id="by input"),
    S("instance_norm", T(4, 3, 5), T(3), T(3), None, None, False, 0.1, 1e-5, True, id="no statistics"),
    S("nn_instance_norm", T(4, 3, 5), *RUNNING, T(3), T(3), fn=each_trained, dtypes=DTYPES),
    S("nn_instance_norm", T(4, 3, 5), fn=functional("instance_norm"), id="plain"),
    S("nn_instance_norm", T(4, 3, 1), fn=functional("instance_norm"), id="one element"),
]
