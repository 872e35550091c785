"""Convolutions large enough for the blocked kernels: against float64, for any number of threads, and what is not finite."""

import numpy as np
import pytest
import torch

import lucid

SHAPES = {  # image, weight, stride, padding, dilation, groups
    "3x3": ((3, 20, 17, 23), (29, 20, 3, 3), 1, 1, 1, 1),
    "3x3, small images": ((7, 48, 9, 9), (130, 48, 3, 3), 1, 0, 1, 1),
    "3x3, dilated": ((2, 20, 37, 43), (29, 20, 3, 3), 1, 2, 2, 1),
    "3x3, stride 2": ((2, 20, 37, 43), (29, 20, 3, 3), 2, 1, 1, 1),
    "3x3, groups": ((2, 20, 37, 43), (28, 10, 3, 3), 1, 1, 1, 2),
    "3x3, many small images": ((9, 70, 4, 3), (130, 70, 3, 3), 1, 1, 1, 1),
    "3x3, stride 2, small images": ((5, 64, 9, 7), (66, 32, 3, 3), 2, 1, 1, 2),
    "4x4": ((2, 20, 27, 33), (29, 20, 4, 4), 1, 1, 1, 1),
    "5x5": ((17, 6, 14, 14), (16, 6, 5, 5), 1, 0, 1, 1),
    "5x5, many images": ((63, 6, 14, 13), (16, 6, 5, 5), 1, 0, 1, 1),
    "5x3, padded, many images": ((64, 5, 11, 13), (7, 5, 5, 3), 1, (4, 1), 1, 1),
    "depthwise": ((3, 9, 21, 37), (9, 1, 3, 3), 1, 1, 1, 9),
    "depthwise, 75 channels, stride 2": ((2, 75, 12, 9), (75, 1, 5, 3), 2, (2, 1), 1, 75),
    "depthwise, 7x7, small images": ((2, 40, 7, 5), (40, 1, 7, 7), 1, 3, 1, 40),
    "depthwise, 5x5, stride 2": ((2, 33, 15, 18), (33, 1, 5, 5), 2, 2, 1, 33),
    "depthwise, 2x4": ((1, 24, 9, 16), (24, 1, 2, 4), 1, (0, 1), 1, 24),
    "depthwise, 9 taps in a row": ((1, 24, 9, 20), (24, 1, 3, 9), 1, (1, 4), 1, 24),
    "depthwise, dilated, more rows than columns": ((2, 9, 33, 20), (9, 1, 3, 3), 1, (3, 2), (1, 2), 9),
    "3x3, stride 2, many images": ((63, 9, 14, 15), (20, 9, 3, 3), (2, 1), 1, 1, 1),
    "5x5, padded": ((2, 20, 17, 23), (29, 20, 5, 5), 1, 2, 1, 1),
    "7x7, stride 2": ((2, 3, 64, 65), (64, 3, 7, 7), 2, 3, 1, 1),
    "7x7, stride 2, even sizes": ((2, 3, 64, 64), (64, 3, 7, 7), 2, 3, 1, 1),
    "9x9, stride 2": ((2, 5, 37, 43), (29, 5, 9, 9), 2, 1, 1, 1),
    "5x5, stride 3, small images": ((3, 33, 11, 13), (47, 33, 5, 5), 3, 2, 1, 1),
    "1x1, many channels, small images": ((3, 1600, 5, 5), (40, 1600, 1, 1), 1, 0, 1, 1),
    "1x1": ((3, 70, 13, 15), (35, 70, 1, 1), 1, 0, 1, 1),
    "3x3, one small image": ((1, 64, 9, 7), (66, 64, 3, 3), 1, 1, 1, 1),
    "3x3, few small images": ((3, 40, 5, 6), (70, 40, 3, 3), 1, 1, 1, 1),
    "5x3, one image, stride 2, dilated": ((1, 40, 19, 14), (48, 40, 5, 3), 2, (3, 1), (1, 2), 1),
    "2x2, stride 2, one image": ((1, 36, 10, 12), (64, 36, 2, 2), 2, 0, 1, 1),
    "1x1, one image": ((1, 70, 13, 15), (35, 70, 1, 1), 1, 0, 1, 1),
    "1x1, one image, stride 2, padded": ((1, 70, 13, 15), (35, 70, 1, 1), 2, 1, 1, 1),
    "1x1, stride 2": ((3, 70, 13, 15), (35, 70, 1, 1), 2, 0, 1, 1),
}


def tensors(case, seed=0):
    image, weight, *window = SHAPES[case]
    random = np.random.default_rng(seed)
    return random.standard_normal(image, np.float32), random.standard_normal(weight, np.float32), window


def results(m, x, w, window, last=False, dtype=None):
    """The convolution and both gradients."""
    x, w = m.tensor(x, dtype=dtype), m.tensor(w, dtype=dtype)
    x = (x.contiguous(memory_format=m.channels_last) if last else x).requires_grad_()
    w = (w.contiguous(memory_format=m.channels_last) if last == "both" else w).requires_grad_()
    y = m.nn.functional.conv2d(x, w, None, *window)
    g = np.random.default_rng(1).standard_normal(tuple(y.shape), np.float32)
    return [y, *m.autograd.grad(y, [x, w], m.tensor(g, dtype=dtype))]


@pytest.mark.parametrize("last", [False, True, "both"])
@pytest.mark.parametrize("case", SHAPES)
def test_values(case, last):
    x, w, window = tensors(case)
    for ours, exact in zip(results(lucid, x, w, window, last), results(torch, x, w, window, dtype=torch.float64)):
        exact = exact.detach().numpy()
        np.testing.assert_allclose(ours.detach().numpy(), exact, rtol=0, atol=3e-5 * exact.std())


@pytest.mark.parametrize("last", [False, "both"])
@pytest.mark.parametrize("case", SHAPES)
def test_threads(case, last):
    x, w, window = tensors(case)
    before, made = lucid.get_num_threads(), []
    try:
        for n in (1, 2, 3):
            lucid.set_num_threads(n)
            made.append([t.detach().numpy() for t in results(lucid, x, w, window, last)])
    finally:
        lucid.set_num_threads(before)
    for other in made[1:]:
        for a, b in zip(made[0], other):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "case", ["3x3", "5x5", "5x5, many images", "depthwise", "7x7, stride 2, even sizes", "3x3, one small image"]
)
def test_what_is_not_finite_stays_where_it_belongs(case):
    x, w, window = tensors(case)
    x[0, 1, 5, 6], x[-1, 2, 0, 0] = np.inf, np.nan
    made = []
    for m in (lucid, torch):
        image, weight = m.tensor(x).requires_grad_(), m.tensor(w).requires_grad_()
        of = [image] if window[1] else [image, weight]  # PyTorch multiplies padding by what is infinite, too
        y = m.nn.functional.conv2d(image, weight, None, *window)
        g = np.random.default_rng(1).standard_normal(tuple(y.shape), np.float32)
        g[0, 1, 5, 6], g[0, 2, 0, 0] = np.inf, np.nan
        made.append([t.detach().numpy() for t in (y, *m.autograd.grad(y, of, m.tensor(g)))])
    for ours, theirs in zip(*made):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-3)


@pytest.mark.parametrize("case", ["depthwise, 7x7, small images", "depthwise, 5x5, stride 2"])
def test_weights_that_are_not_finite_do_not_meet_the_padding(case):
    x, w, window = tensors(case)
    w[3, 0, 0, 0], w[-1, 0, 4, 4] = np.inf, -np.inf
    (y, *_), (expected, *_) = (results(m, x, w, window, True) for m in (lucid, torch))
    ours = y.detach().numpy()
    inside = ~np.isnan(expected.detach().numpy())  # PyTorch multiplies padding in places
    np.testing.assert_allclose(ours[inside], expected.detach().numpy()[inside], rtol=1e-4, atol=1e-4)
    assert not np.isnan(ours).any()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dims, last", [(1, False), (2, True), (3, False), (3, True)])
def test_few_positions(dims, last, transposed, dtype):
    """One product, in every number of dimensions: values, bias and all gradients."""
    made = []
    for m in (lucid, torch):
        m.manual_seed(0)
        image, kernel = (1, 40, *(4, 5, 3)[:dims]), (40, 36, *(2, 3, 1)[:dims])
        if not transposed:
            kernel = (36, 40, *kernel[2:])
        x, w, b = m.randn(image), m.randn(kernel), m.randn(36)
        kind = m.float64 if m is torch else getattr(m, dtype)
        x, w, b = (t.to(getattr(m, dtype)).to(kind) for t in (x, w, b))
        if last:
            form = m.channels_last if dims == 2 else m.channels_last_3d
            x, w = x.contiguous(memory_format=form), w.contiguous(memory_format=form)
        of = [t.requires_grad_() for t in (x, w, b)]
        f = getattr(m.nn.functional, f"conv{'_transpose' if transposed else ''}{dims}d")
        y = f(*of, stride=(2, 1, 1)[:dims], padding=(1, 1, 0)[:dims])
        made.append([t.detach().double().numpy() for t in (y, *m.autograd.grad((y * y).sum(), of))])
    for ours, exact in zip(*made):
        np.testing.assert_allclose(
            ours, exact, rtol=0, atol={"float32": 1e-5, "float64": 1e-13, "bfloat16": 3e-2}[dtype] * abs(exact).max()
        )


@pytest.mark.parametrize("columns", [384, 385])
def test_large_results(columns):
    x, w = np.random.default_rng(0).standard_normal((1, 8, 384, columns), np.float32), np.ones((32, 8, 3, 3), np.float32)
    y = lucid.nn.functional.conv2d(lucid.tensor(x), lucid.tensor(w), None, 1, 1).numpy()
    exact = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(w[:1]), None, 1, 1).numpy()
    np.testing.assert_allclose(y, np.broadcast_to(exact, y.shape), rtol=0, atol=3e-4)


@pytest.mark.parametrize("kernel, padding", [(1, 0), (3, 1), (5, 2), (7, 3)])
def test_memory_is_that_of_tiles(kernel, padding):
    """Beyond operands, results and gradients: tiles per thread and copies of the weights. All columns would be 16 MB."""
    x = lucid.randn(2, 32, 256, 256, requires_grad=True)
    w = lucid.randn(24, 32, kernel, kernel, requires_grad=True)
    before, threads = lucid.memory_stats()["allocated_bytes"], lucid.get_num_threads()
    lucid.reset_peak_memory_stats()
    y = lucid.nn.functional.conv2d(x, w, None, 1, padding)
    forward = lucid.memory_stats()["peak_bytes"] - before - 4 * y.numel()
    assert forward < (3 << 20) * threads + 32 * w.numel()
    g, before = lucid.ones_like(y), lucid.memory_stats()["allocated_bytes"]
    lucid.reset_peak_memory_stats()
    lucid.autograd.grad(y, [x, w], g)
    backward = lucid.memory_stats()["peak_bytes"] - before - 4 * x.numel()
    assert backward < (3 << 20) * threads + 64 * w.numel()
