"""Elementwise steps that become part of the kernel before them: eager's bits whatever way the kernel takes, and only where
nobody sees the difference."""

import pytest

import lucid
from lucid.nn import functional as F

from .test_passes import compare, same, steps

ACTIVATIONS = [
    F.relu,
    lambda x: x.relu_(),
    F.silu,
    F.gelu,
    F.hardswish,
    lambda x: F.leaky_relu(x, 0.1),
    lambda x: x.clamp(-0.5, 0.5),
    lambda x: (x * 2 + 1).relu_().sqrt(),
]
NAMES = ["relu", "relu_", "silu", "gelu", "hardswish", "leaky_relu", "clamp", "four steps"]
# Image, weight and arguments, by the way that the kernel takes on the CPU.
CONVOLUTIONS = {
    "one product": ((2, 64, 7, 7), (48, 64, 3, 3), dict(padding=1)),
    "one tap": ((1, 64, 12, 12), (48, 64, 1, 1), {}),
    "Winograd, lines of an image": ((2, 16, 40, 40), (24, 16, 3, 3), dict(padding=1)),
    "Winograd, several images": ((16, 16, 20, 20), (24, 16, 3, 3), dict(padding=1)),
    "Winograd, lanes are images": ((64, 16, 8, 8), (24, 16, 3, 3), dict(padding=1)),
    "small images": ((24, 20, 4, 4), (36, 20, 3, 3), dict(padding=1)),
    "depthwise": ((2, 6, 30, 33), (6, 1, 3, 3), dict(padding=1, groups=6)),
    "strips": ((3, 3, 31, 29), (7, 3, 7, 7), dict(stride=2, padding=3)),
    "many channels": ((1, 300, 18, 18), (20, 300, 2, 2), {}),
    "groups": ((2, 8, 15, 15), (12, 4, 5, 5), dict(groups=2)),
    "one dimension": ((4, 5, 50), (6, 5, 3), dict(dilation=2)),
    "three dimensions": ((2, 3, 6, 9, 10), (4, 3, 3, 3, 3), dict(padding=1)),
    "wide": ((1, 2, 3, 2100), (3, 2, 2, 2), {}),
}


def convolution(x, w, b=None, **settings):
    return (None, None, None, F.conv1d, F.conv2d, F.conv3d)[x.dim()](x, w, b, **settings)


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float64], ids=str)
@pytest.mark.parametrize("way", CONVOLUTIONS)
def test_convolutions_take_them(way, dtype):
    lucid.manual_seed(0)
    shape, kernel, settings = CONVOLUTIONS[way]
    x, w, b = (lucid.randn(s).to(dtype) for s in (shape, kernel, kernel[:1]))
    other = lucid.randn_like(convolution(x, w, b, **settings))
    for after in ACTIVATIONS:
        compiled = compare(lambda x, w, b, after=after: after(convolution(x, w, b, **settings)), x, w, b)
        assert len(steps(compiled)) == 1, compiled.graph()
    compiled = compare(lambda x, w, b, r: F.relu(r - convolution(x, w, b, **settings)), x, w, b, other)
    assert len(steps(compiled)) == 1, compiled.graph()


@pytest.mark.parametrize("way", CONVOLUTIONS)
def test_images_that_are_not_finite(way):
    """Winograd leaves them to another way: what has been added is not added again."""
    lucid.manual_seed(0)
    shape, kernel, settings = CONVOLUTIONS[way]
    x, w = lucid.randn(shape), lucid.randn(kernel)
    x[-1, 0].flatten()[3] = float("inf")
    x[0, -1].flatten()[-1] = float("nan")
    other = lucid.randn_like(convolution(x, w, **settings))
    compare(lambda x, w, r: F.silu(convolution(x, w, **settings) + r), x, w, other)


NORMS = {
    "channels": ((4, 6, 9, 9), lambda x, n, w, b: F.batch_norm(x, None, None, w, b, training=True)),
    "channels of little": ((4, 6, 3, 3), lambda x, n, w, b: F.batch_norm(x, None, None, w, b, training=True)),
    "channels of much": ((2, 3, 70, 70), lambda x, n, w, b: F.batch_norm(x, None, None, w, b, training=True)),
    "vectors": ((40, 6), lambda x, n, w, b: F.batch_norm(x, None, None, w, b, training=True)),
    "given statistics": ((4, 6, 9, 9), lambda x, n, w, b: F.batch_norm(x, w * 0.1, b * b + 1, w, b)),
    "instances": ((4, 6, 9, 9), lambda x, n, w, b: F.instance_norm(x, weight=w, bias=b)),
    "rows": ((5, 7, 6), lambda x, n, w, b: F.layer_norm(x, (6,), w, b)),
    "long rows": ((3, 9000), lambda x, n, w, b: F.layer_norm(x, (9000,), w, b)),
    "root mean squares": ((5, 7, 6), lambda x, n, w, b: F.rms_norm(x, (6,), w)),
    "groups": ((4, 6, 9, 9), lambda x, n, w, b: F.group_norm(x, 3, w, b)),
}


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float64], ids=str)
@pytest.mark.parametrize("which", NORMS)
def test_norms_take_them(which, dtype):
    lucid.manual_seed(0)
    shape, norm = NORMS[which]
    channels = shape[-1] if "rows" in which or "squares" in which else shape[1]
    x, r = lucid.randn(shape).to(dtype), lucid.randn(shape).to(dtype)
    w, b = lucid.randn(channels).to(dtype), lucid.randn(channels).to(dtype)
    for after in ACTIVATIONS:
        alone = len(steps(compare(lambda x, w, b: norm(x, channels, w, b), x, w, b)))
        compiled = compare(lambda x, w, b, after=after: after(norm(x, channels, w, b)), x, w, b)
        assert len(steps(compiled)) == alone, compiled.graph()
    compiled = compare(lambda x, w, b, r: F.relu(norm(x, channels, w, b).add_(r)), x, w, b, r)
    assert len(steps(compiled)) == alone, compiled.graph()


class Block(lucid.nn.Module):
    """What residual networks are made of."""

    def __init__(self, channels, stride=1, inplace=True):
        super().__init__()
        nn = lucid.nn
        self.conv1 = nn.Conv2d(channels, 2 * channels, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(2 * channels, 2 * channels, 3, 1, 1, bias=False)
        self.bn1, self.bn2, self.bn3 = (nn.BatchNorm2d(2 * channels) for _ in range(3))
        self.down = nn.Conv2d(channels, 2 * channels, 1, stride)
        self.relu, self.pool = nn.ReLU(inplace), nn.MaxPool2d(2)

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += self.bn3(self.down(x))
        return self.pool(self.relu(y))


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("size", [8, 32])
def test_forward_and_backward_of_a_block(size, training, inplace):
    lucid.manual_seed(0)
    model = lucid.nn.Sequential(Block(4, 2, inplace), Block(8, 1, inplace)).train(training)
    x = lucid.randn(3, 4, size, size, requires_grad=True)
    state = {k: v.clone() for k, v in model.state_dict().items()}
    compiled, found = lucid.compile(model, fullgraph=True), []
    for run in (model, compiled, compiled):
        model.load_state_dict(state)
        y = run(x)
        seed = lucid.linspace(-1, 1, y.numel()).reshape(y.shape)
        found.append([y, *lucid.autograd.grad(y, [x, *model.parameters()], seed), *[v.clone() for v in model.buffers()]])
    for values in found[1:]:
        for ours, theirs in zip(values, found[0]):
            assert same(ours, theirs), compiled.graph()
    assert "then relu" in compiled.graph()
    with lucid.no_grad():
        compare(model.eval(), x.detach())


def gradients(f, *tensors):
    """Of f's sum of squares with respect to all of them, eager and compiled; the compiled function."""
    compiled, found = lucid.compile(f, fullgraph=True), []
    for run in (f, compiled, compiled):
        leaves = [t.detach().requires_grad_() for t in tensors]
        y = run(*leaves)
        seed = lucid.linspace(-1, 1, y.numel()).reshape(y.shape)
        found.append(lucid.autograd.grad(y, leaves, seed))
    for values in found[1:]:
        for ours, theirs in zip(values, found[0]):
            assert same(ours, theirs), compiled.graph()
    return compiled


@pytest.mark.parametrize("shape", [(3, 4, 8, 8), (2, 3, 9, 7), (2, 5, 1, 1), (64, 6, 28, 28)], ids=str)
@pytest.mark.parametrize("kernel", [1, 2, 3])
def test_gradients_of_pooling_take_them(shape, kernel):
    lucid.manual_seed(0)
    if kernel > shape[-1]:
        kernel = 1
    compiled = gradients(lambda x: F.max_pool2d(F.relu(x), kernel), lucid.randn(shape))
    assert "then relu_backward" in compiled.graph()


@pytest.mark.parametrize("weights", ["finite", "infinite"])
@pytest.mark.parametrize("way", [w for w in CONVOLUTIONS if CONVOLUTIONS[w][0][0] > 1])
def test_gradients_of_images_take_them(way, weights):
    """Weights that are not finite: the border of the gradient is computed again, before the rest is done."""
    lucid.manual_seed(0)
    shape, kernel, settings = CONVOLUTIONS[way]
    x, w = lucid.randn(shape), lucid.randn(kernel)
    if weights == "infinite":
        w.flatten()[0] = float("inf")
    compiled = gradients(lambda x, w: convolution(F.relu(x), w, **settings), x, w)
    assert "then relu_backward" in compiled.graph()


def test_a_result_that_somebody_reads_stays():
    lucid.manual_seed(0)
    x, w = lucid.randn(2, 3, 8, 8), lucid.randn(4, 3, 3, 3)

    def read_before(x, w):
        y = F.conv2d(x, w)
        z = y.sum()
        return y.relu_(), z

    def read_behind(x, w):
        y = F.conv2d(x, w)
        return F.relu(y), y.sum()

    def returned(x, w):
        y = F.conv2d(x, w)
        return F.relu(y), y

    def seen_in_part(x, w):
        y = F.conv2d(x, w)
        y[0].relu_()
        return y

    def twice(x, w):
        y = F.conv2d(x, w)
        return y * y

    def with_itself_in_another_order(x, w):
        y = F.conv2d(x, w)
        return y + y.transpose(2, 3)

    def broadcast(x, w):
        return F.conv2d(x, w) + w[0, 0, 0, 0]

    def other_dtype(x, w):
        return F.conv2d(x, w).double() * 2

    for f in (read_before, read_behind, returned, seen_in_part, twice, with_itself_in_another_order, broadcast, other_dtype):
        compare(f, x, w)


def test_an_operand_that_is_not_there_yet():
    lucid.manual_seed(0)
    x, w, r = lucid.randn(2, 3, 8, 8), lucid.randn(4, 3, 3, 3), lucid.randn(2, 4, 6, 6)

    def made_behind(x, w, r):
        y = F.conv2d(x, w)
        return y + r.cumsum(-1)

    def written_between(x, w, r):
        s = r * 2
        y = F.conv2d(x, w)
        s.copy_(r.flip(0))
        return y + s

    def two_convolutions(x, w, r):
        a = F.conv2d(x, w)
        b = F.conv2d(x * 2, w)
        return F.relu(a + b)

    def into_an_operand(x, w, r):
        s = r.clone()
        y = F.conv2d(x, w)
        s += y
        return s

    def into_given_memory(x, w, r):
        return lucid.add(F.conv2d(x, w), 1, out=r[:])

    for f in (made_behind, written_between, two_convolutions, into_an_operand):
        compare(f, x, w, r)
    compiled, expected = lucid.compile(into_given_memory), F.conv2d(x, w) + 1
    for _ in range(3):
        r.zero_()
        assert compiled(x, w, r).equal(expected) and r.equal(expected)


def test_channels_last_stays_right():
    lucid.manual_seed(0)
    x, w = lucid.randn(2, 8, 9, 9).to(memory_format=lucid.channels_last), lucid.randn(8, 8, 3, 3)
    f = compare(lambda x, w: F.relu(F.batch_norm(F.relu(F.conv2d(x, w)), None, None, training=True)), x, w)
    assert f(x, w).is_contiguous(memory_format=lucid.channels_last)


def test_halves_and_autocast_stay_right():
    lucid.manual_seed(0)
    x, w = lucid.randn(2, 8, 9, 9), lucid.randn(8, 8, 3, 3)
    compare(lambda x, w: F.relu(F.conv2d(x, w)), x.bfloat16(), w.bfloat16())

    def cast(x, w):
        with lucid.autocast("cpu", dtype=lucid.bfloat16):
            return F.relu(F.conv2d(x, w))

    compare(cast, x, w)


def test_threads_do_not_change_bits_of_epilogues():
    lucid.manual_seed(0)
    x, w, r = lucid.randn(8, 16, 40, 40), lucid.randn(24, 16, 3, 3), lucid.randn(8, 24, 38, 38)
    f = lucid.compile(lambda x, w, r: F.relu(F.batch_norm(F.silu(F.conv2d(x, w)), None, None, training=True) + r))
    before, found = lucid.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            lucid.set_num_threads(threads)
            f(x, w, r)
            found.append(f(x, w, r))
    finally:
        lucid.set_num_threads(before)
    assert all(same(found[0], other) for other in found[1:])
