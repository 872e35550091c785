"""Normalisations and softmax: the same bits for every number of threads; effects on running statistics; momentum."""

import numpy as np
import pytest
import torch

import lucid

F = lucid.nn.functional
CASES = {
    "layer_norm": ((700, 130), lambda x, w, b: F.layer_norm(x, (130,), w, b), 130),
    "rms_norm": ((700, 130), lambda x, w, b: F.rms_norm(x, (130,), w) + b, 130),
    "group_norm": ((6, 8, 50, 50), lambda x, w, b: F.group_norm(x, 4, w, b), 8),
    "batch_norm": ((6, 8, 50, 50), lambda x, w, b: F.batch_norm(x, None, None, w, b, True), 8),
    "batch_norm of columns": ((3000, 70), lambda x, w, b: F.batch_norm(x, None, None, w, b, True), 70),
    "softmax": ((700, 130), lambda x, w, b: F.softmax(x * w + b, 1), 130),
    "softmax, dim 0": ((700, 130), lambda x, w, b: F.softmax(x * w + b, 0), 130),
    "log_softmax": ((700, 130), lambda x, w, b: F.log_softmax(x * w + b, 1), 130),
}


@pytest.fixture
def threads():
    before = lucid.get_num_threads()
    yield
    lucid.set_num_threads(before)


@pytest.mark.parametrize("name", CASES)
def test_threads_do_not_matter(name, threads):
    shape, call, n = CASES[name]
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(s).astype("float32") for s in (shape, n, n, shape)]
    seen = []
    for count in (1, 2, 3):
        lucid.set_num_threads(count)
        x, w, b = (lucid.tensor(v).requires_grad_() for v in values[:3])
        y = call(x, w, b)
        y.backward(lucid.tensor(values[3]))
        seen.append([t.detach().numpy().tobytes() for t in (y, x.grad, w.grad, b.grad)])
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("shape", [(40, 5), (4, 5, 300), (9000, 5)])
def test_running_statistics_are_those_of_pytorch(shape):
    values = np.random.default_rng(1).standard_normal(shape).astype("float32") * 3 + 50
    results = []
    for m in (lucid, torch):
        mean, var = m.zeros(5), m.ones(5)
        for momentum in (0.1, 1.0, 0.0):
            m.nn.functional.batch_norm(m.tensor(values), mean, var, None, None, True, momentum)
            results.append((mean.clone().numpy(), var.clone().numpy()))
    for ours, theirs in zip(results[:3], results[3:]):
        for a, b in zip(ours, theirs):
            np.testing.assert_allclose(a, b, rtol=2e-5)


def test_evaluation_writes_nothing():
    mean, var = lucid.zeros(3), lucid.ones(3)
    F.batch_norm(lucid.randn(4, 3), mean, var)
    assert mean.tolist() == [0, 0, 0] and var.tolist() == [1, 1, 1]


def test_far_from_zero():
    """A mean that is large against the deviation does not spoil it."""
    x = np.random.default_rng(2).standard_normal((64, 4096)).astype("float32") + 1e4
    exact = torch.nn.functional.layer_norm(torch.tensor(x).double(), (4096,))
    ours = F.layer_norm(lucid.tensor(x), (4096,)).numpy()
    assert np.abs(ours - exact.numpy()).max() < 1e-3
    columns = F.batch_norm(lucid.tensor(x.T.copy()), None, None, training=True).numpy()
    exact = torch.nn.functional.batch_norm(torch.tensor(x.T.copy()).double(), None, None, training=True)
    assert np.abs(columns - exact.numpy()).max() < 1e-3
