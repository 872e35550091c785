"""The gradients of a layer's weight and bias by one call of cuBLASLt, which has an epilogue for that: numbers, where it is
used, what happens where the library does not take it. Runs on a GPU, or on the stand-in (test_emulated.py)."""

import ctypes
import os
import threading

import pytest

import lucid
import lucid.nn.functional as F
from lucid import nn
from tests.gpu.libraries.test_library_products import (
    BLAS,
    CHOICES,
    IN_WORKSPACE,
    LT,
    SUMS,
    TOLERANCE,
    Calls,
    drawn,
    same,
    stand_in,
)

HALVES = ["float16", "bfloat16"]
ONE = dict(lt=1, sums=1)  # a call that makes both


def conv1d(x, w, b):
    """A layer that keeps its weight transposed, as GPT-2's do."""
    return lucid.addmm(b, x.flatten(0, -2), w).reshape(*x.shape[:-1], w.shape[1])


LAYERS = {  # a function of input, weight and bias; whether the weight is transposed; products by cuBLAS in its gradient
    "linear": (F.linear, False, 1),
    "addmm": (conv1d, True, 1),
    "fused_linear": (F.fused_linear, False, 1),
    "fused_linear, relu": (lambda x, w, b: F.fused_linear(x, w, b, "relu"), False, 1),
    "fused_linear_relu": (F.fused_linear_relu, False, 1),
    "baddbmm": (lambda x, w, b: lucid.baddbmm(b, x[None], w[None])[0], True, 2),  # other ops go on as they are
}


def parts(layer, dtype, rows, inputs, outputs):
    """Whole numbers for input, weight, bias and the result's gradient; the function."""
    function, transposed, _ = LAYERS[layer]
    shapes = rows + (inputs,), (inputs, outputs) if transposed else (outputs, inputs), (outputs,), rows + (outputs,)
    return [drawn(dtype, *shape) for shape in shapes], function


def slopes(function, *tensors, gradient):
    inputs = [t.detach().requires_grad_() for t in tensors]
    return lucid.autograd.grad(function(*inputs), inputs, gradient)


def rounded(exact, dtype):
    return exact.to(getattr(lucid, dtype)).to(exact.dtype)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("rows", [(520,), (4, 130), (3, 5, 7), (1, 33), (2, 1)], ids=str)
@pytest.mark.parametrize("layer", LAYERS)
def test_one_call_makes_both(layer, rows, dtype):
    if layer == "baddbmm" and len(rows) > 1:
        rows = (rows[0] * 60,)
    tensors, function = parts(layer, dtype, rows, 48, 24)
    (x, w, b, g), exact = (t for _, t in tensors), [e for e, _ in tensors]
    expected = slopes(function, *exact[:3], gradient=exact[3])
    inputs = [t.detach().requires_grad_() for t in (x, w, b)]
    y = function(*inputs)
    with Calls() as calls:
        found = lucid.autograd.grad(y, inputs, g)
    for ours, theirs in zip(found, expected):
        assert ours.dtype == x.dtype and ours.shape == theirs.shape and same(ours, rounded(theirs, dtype)), layer
    if layer == "baddbmm":
        calls.expect(blas=2)
    elif layer == "fused_linear, relu":  # the activation's input is made again
        calls.expect(blas=1, lt=2, sums=1)
    else:
        calls.expect(blas=1, **ONE)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("layer", ["linear", "addmm"])
@pytest.mark.parametrize("seed", range(12))
def test_any_shape_and_any_numbers(layer, seed, dtype):
    """Odd sizes too, which the library does not take. The sums are rounded once."""
    draw = lambda low, high: int(lucid.randint(low, high, ()).item())  # noqa: E731
    lucid.manual_seed(seed)
    unit = 8 if seed % 3 else 1
    rows, inputs, outputs = draw(2, 300), unit * draw(1, 14), unit * draw(1, 14)
    shapes = (rows, inputs), (inputs, outputs) if LAYERS[layer][1] else (outputs, inputs), (outputs,), (rows, outputs)
    on = [lucid.randn(*shape).to(getattr(lucid, dtype)).cuda() for shape in shapes]
    exact = [t.cpu().double() for t in on]
    function = LAYERS[layer][0]
    with Calls() as calls:
        found = slopes(function, *on[:3], gradient=on[3])
    expected = slopes(function, *exact[:3], gradient=exact[3])
    for ours, theirs, depth in zip(found, expected, (outputs, rows, rows)):
        assert ours.dtype == on[0].dtype
        tolerance = TOLERANCE[dtype]
        assert lucid.allclose(ours.cpu().double(), theirs, rtol=tolerance, atol=tolerance * depth**0.5 / 8), layer
    if calls.ask:
        assert calls.made[SUMS] == (inputs % 8 == outputs % 8 == 0)


LAYOUTS = {  # of input and gradient; whether the library takes them
    "input by columns": (lambda x, g: (x.mT.contiguous().mT, g), True),
    "gradient by columns": (lambda x, g: (x, g.mT.contiguous().mT), False),
    "every second row": (lambda x, g: (x[::2], g[::2]), True),
    "some columns": (lambda x, g: (lucid.cat([x, x], 1)[:, 8:32], lucid.cat([g, g], 1)[:, 8:24]), True),
    "columns from an odd place": (lambda x, g: (x, lucid.cat([g, g], 1)[:, 3:19]), False),
    "input from an odd place": (lambda x, g: (lucid.cat([x, x], 1)[:, 3:27], g), False),
    "rows of an odd length": (lambda x, g: (x, lucid.cat([g, g], 1)[:, :27].contiguous()[:, :16]), False),
    "one number for all": (lambda x, g: (x, g[:1, :1].expand(*g.shape)), False),
    "one row for all": (lambda x, g: (x, g[:1].expand(*g.shape)), False),
}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("layer", ["linear", "addmm"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, layer, dtype):
    (_, x), (exact_w, w), (exact_b, b), (_, g) = parts(layer, dtype, (520,), 24, 16)[0]
    function, (lies, taken) = LAYERS[layer][0], LAYOUTS[layout]
    x, g = lies(x, g)
    expected = slopes(function, x.cpu().double(), exact_w, exact_b, gradient=g.cpu().double())
    inputs = [t.detach().requires_grad_() for t in (x, w, b)]
    y = function(*inputs)
    with Calls() as calls:
        found = lucid.autograd.grad(y, inputs, g)
    for ours, theirs in zip(found, expected):
        assert same(ours, rounded(theirs, dtype))
    if calls.ask:
        assert calls.made[SUMS] == taken


@pytest.fixture
def up_to():
    """Sets the number of multiplications up to which one call makes both."""
    limit = ctypes.c_int64.in_dll(ctypes.CDLL(lucid._C.__file__), "lc_cuda_sums_up_to")
    before = limit.value
    yield lambda n: setattr(limit, "value", n)
    limit.value = before


@pytest.mark.parametrize("layer", ["linear", "addmm"])
def test_large_products_are_left_to_two_calls(up_to, layer):
    tensors, function = parts(layer, "bfloat16", (40,), 48, 24)
    x, w, b, g = (t for _, t in tensors)
    made = []
    for limit, sums in ((40 * 48 * 24, 1), (40 * 48 * 24 - 1, 0)):
        up_to(limit)
        inputs = [t.detach().requires_grad_() for t in (x, w, b)]
        y = function(*inputs)
        with Calls() as calls:
            made.append(lucid.autograd.grad(y, inputs, g))
        calls.expect(blas=2 - sums, lt=sums, sums=sums)
    assert all(lucid.equal(*pair) for pair in zip(*made))


@pytest.mark.skipif(not stand_in(), reason="a real library does as it likes")
@pytest.mark.parametrize("how, asked", [("1", 1), ("late", 1)])
@pytest.mark.parametrize("layer, outputs", [("linear", 104), ("addmm", 112)])  # shapes that no other test uses
def test_what_the_library_refuses_is_done_by_two_calls(monkeypatch, layer, outputs, how, asked):
    monkeypatch.setenv("EMULATOR_CUBLAS_NO_BGRAD", how)
    outputs += 16 * (how == "late")
    tensors, function = parts(layer, "float16", (72,), 88, outputs)
    expected = slopes(function, *(exact for exact, _ in tensors[:3]), gradient=tensors[3][0])
    for turn in range(3):
        inputs = [t.detach().requires_grad_() for _, t in tensors[:3]]
        y = function(*inputs)
        with Calls() as calls:
            found = lucid.autograd.grad(y, inputs, tensors[3][1])
        for ours, theirs in zip(found, expected):
            assert same(ours, rounded(theirs, "float16"))
        calls.expect(blas=2, refused=turn == 0)  # it is asked once
        assert calls.made[CHOICES] == (asked if turn == 0 else 0)


def test_only_where_it_pays():
    """float32 has no such kernel in the library; a gradient alone, and one with a graph of its own, are what they were."""
    for dtype in ("float32", "float64"):
        tensors, function = parts("linear", dtype, (520,), 24, 16)
        with Calls() as calls:
            found = slopes(function, *(t for _, t in tensors[:3]), gradient=tensors[3][1])
        assert same(found[2], tensors[3][0].sum(0)) and (not calls.ask or calls.made[SUMS] == 0)
    (exact_x, x), (exact_w, w), (exact_b, b), (exact_g, g) = parts("linear", "bfloat16", (520,), 24, 16)[0]
    inputs = [t.detach().requires_grad_() for t in (x, w, b)]
    for wanted in ([0], [1], [2], [0, 2]):
        y = F.linear(*inputs)
        with Calls() as calls:
            lucid.autograd.grad(y, [inputs[k] for k in wanted], g)
        calls.expect(blas=len(set(wanted) & {0, 1}))
    g.requires_grad_(), exact_g.requires_grad_()
    exact = [t.detach().requires_grad_() for t in (exact_x, exact_w, exact_b)]
    with Calls() as calls:
        first = lucid.autograd.grad(F.linear(*inputs), inputs, g, create_graph=True)
        (second,) = lucid.autograd.grad(first[1].sum() + first[2].sum(), g)
    theirs = lucid.autograd.grad(F.linear(*exact), exact, exact_g, create_graph=True)
    (expected,) = lucid.autograd.grad(theirs[1].sum() + theirs[2].sum(), exact_g)
    assert same(second, rounded(expected, "bfloat16")) and (not calls.ask or calls.made[SUMS] == 0)
    loss = lambda c, v: (F.linear(v[None], w, c) * 2).sum()  # noqa: E731
    each = lucid.func.vmap(lucid.func.grad(loss), in_dims=(None, 0))(b, x[:4])
    assert lucid.equal(each.cpu(), lucid.full((4, 16), 2, dtype=lucid.bfloat16))


def test_biases_of_other_shapes():
    """One for all, wide ones, a column, an input of one row."""
    (exact_x, x), (exact_w, w), (_, b), (exact_g, g) = parts("linear", "float16", (520,), 24, 16)[0]
    for bias in (b[:1], b[None], g.clone(), x[:, :1].clone()):
        bias = bias.detach().requires_grad_()
        exact = bias.detach().cpu().double().requires_grad_()
        F.linear(x, w.requires_grad_(), bias).backward(g)
        F.linear(exact_x, exact_w.requires_grad_(), exact).backward(exact_g)
        assert same(bias.grad, rounded(exact.grad, "float16"))
    y = F.linear(x[0], w, b.requires_grad_())
    y.backward(g[0])
    assert lucid.equal(b.grad, g[0])


@pytest.mark.parametrize("layer", ["linear", "addmm"])
def test_gradients_add_up(layer):
    """Into what is there, of layers that share a weight, and under autocast into float32."""
    tensors, function = parts(layer, "bfloat16", (40,), 24, 24)
    (exact_x, x), (exact_w, w), (exact_b, b), (exact_g, g) = tensors
    once = slopes(function, exact_x, exact_w, exact_b, gradient=exact_g)
    w, b = w.detach().requires_grad_(), b.detach().requires_grad_()
    with Calls() as calls:
        for turn in range(1, 4):
            function(x, w, b).backward(g)
            assert same(w.grad, rounded(turn * once[1], "bfloat16")) and same(b.grad, rounded(turn * once[2], "bfloat16"))
    calls.expect(lt=6, sums=3)
    w, b = (t.detach().float().requires_grad_() for t in (w, b))
    with Calls() as calls:
        with lucid.autocast("cuda", dtype=lucid.bfloat16):
            y = function(x, w, b)
        y.backward(g)
    calls.expect(lt=2, sums=1)
    assert w.grad.dtype == b.grad.dtype == lucid.float32
    assert same(w.grad, rounded(once[1], "bfloat16")) and same(b.grad, rounded(once[2], "bfloat16"))


def test_a_plan_is_for_one_epilogue():
    """A forward product with the operands and the layout of a gradient's."""
    (_, x), _, _, (_, g) = parts("linear", "float16", (136,), 48, 40)[0]
    w, b = lucid.zeros(40, 48, device="cuda", dtype=lucid.float16), lucid.ones(48, device="cuda", dtype=lucid.float16)
    expected = g.cpu().double().mT @ x.cpu().double()
    with Calls() as calls:
        for _ in range(2):
            grads = slopes(lambda w, c: F.linear(x, w, c), w, w[0, :40], gradient=g)
            forward = F.linear(g.mT, x.mT, b)
    assert same(grads[0], rounded(expected, "float16")) and same(grads[1], g.cpu().double().sum(0))
    assert same(forward, rounded(expected + 1, "float16"))
    calls.expect(lt=6, sums=2)


def test_captured():
    """Also where a graph is the first to use a shape."""
    (exact_x, x), (exact_w, w), (exact_b, b), (exact_g, g) = parts("linear", "bfloat16", (120,), 56, 152)[0]
    w, b = w.requires_grad_(), b.requires_grad_()
    with lucid.no_grad():
        F.linear(x, w, b)
    graph = lucid.cuda.CUDAGraph()
    with Calls() as calls:
        with lucid.cuda.graph(graph):
            found = lucid.autograd.grad(F.linear(x, w, b), (w, b), g)
    calls.expect(lt=2, sums=1, captured=2)
    lucid.empty(64 << 20, dtype=lucid.uint8, device="cuda").fill_(7)
    for _ in range(2):
        (exact_x, other), (exact_g, slope) = drawn("bfloat16", 120, 56), drawn("bfloat16", 120, 152)
        x.copy_(other), g.copy_(slope)
        with Calls() as calls:
            graph.replay()
        calls.expect()
        assert same(found[0], rounded(exact_g.mT @ exact_x, "bfloat16")) and same(found[1], exact_g.sum(0))


def test_threads_share_plans():
    """Each call writes the sums of its own."""
    cases = [[t for _, t in parts("linear", "float16", (64,), 72, 56)[0]] for _ in range(4)]
    right, start = [], threading.Barrier(4)

    def work(x, w, b, g):
        expected = g.cpu().double().sum(0)
        start.wait()
        with lucid.cuda.stream(lucid.cuda.Stream()):
            for _ in range(12):
                right.append(same(slopes(F.linear, x, w, b, gradient=g)[2], expected))

    lucid.cuda.synchronize()
    threads = [threading.Thread(target=work, args=case, daemon=True) for case in cases]
    with Calls() as calls:
        [t.start() for t in threads]
        [t.join(120) for t in threads]
    calls.expect(lt=96, blas=48, sums=48)
    assert right == [True] * 48


def block(dtype):
    """What the forward pass of a transformer's block does between its attention and its norms, with the weights of one."""
    lucid.manual_seed(0)
    net = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    return net.to("cuda", dtype), lucid.randn(2, 40, 64).to("cuda", dtype)


def test_compiled_gradients_are_those_of_eager():
    net, x = block(lucid.bfloat16)
    compiled, found = lucid.compile(net), []
    for call in (net, compiled, compiled):
        net.zero_grad()
        with Calls() as calls:
            call(x).square().mean().backward()
        assert not calls.ask or calls.made[SUMS] == 4 * (1 + (len(found) == 1))  # what is traced runs, too
        found.append([p.grad.clone() for p in net.parameters()])
    assert all(lucid.equal(a, b) and lucid.equal(a, c) for a, b, c in zip(*found))


@pytest.mark.skipif(not stand_in(), reason="a driver counts no launches")
def test_launches_of_a_blocks_gradient(up_to):
    """Of four layers: a bias's sum over many rows is two launches, which go."""
    driver = ctypes.CDLL(os.environ["LUCID_CUDA_PATH"] + "/libcuda.so.1")
    driver.emulated_launches.restype = ctypes.c_int64
    net, x = block(lucid.bfloat16)
    x, counts = x.repeat(4, 4, 1), []
    for limit in (0, 1 << 30, 0, 1 << 30):  # the first two choose algorithms
        up_to(limit)
        y = net(x).square().mean()
        lucid.cuda.synchronize()
        before = driver.emulated_launches()
        with Calls() as calls:
            y.backward()
        products = calls.made[LT] + calls.made[BLAS]
        counts.append((driver.emulated_launches() - before - products - calls.made[IN_WORKSPACE], products))
    (kernels, products), (fewer, as_many) = counts[2:]
    assert kernels - fewer == 8 and products == as_many, counts


OK, INVALID_VALUE, NOT_SUPPORTED = 0, 7, 15
HALF, SINGLE = 2, 0  # types
BGRADA, BGRADB = 256, 512
ASKED = {  # epilogue, transpositions, type of the results, of the vector, length of the batch; the library's answer
    "left": ((BGRADA, 0, 0, HALF, -1, 1), OK),
    "left, both by columns": ((BGRADA, 0, 1, HALF, HALF, 1), OK),
    "left, transposed": ((BGRADA, 1, 0, HALF, -1, 1), NOT_SUPPORTED),
    "right": ((BGRADB, 1, 1, HALF, -1, 1), OK),
    "right, left by columns": ((BGRADB, 0, 1, HALF, -1, 1), OK),
    "right, not transposed": ((BGRADB, 0, 0, HALF, -1, 1), NOT_SUPPORTED),
    "a vector of another type": ((BGRADB, 0, 1, HALF, SINGLE, 1), NOT_SUPPORTED),
    "results of another type": ((BGRADB, 0, 1, SINGLE, -1, 1), NOT_SUPPORTED),
    "a batch": ((BGRADA, 0, 0, HALF, -1, 2), NOT_SUPPORTED),
    "both": ((BGRADA | BGRADB, 0, 1, HALF, -1, 1), NOT_SUPPORTED),
    "with ReLU": ((BGRADA | 2, 0, 0, HALF, -1, 1), NOT_SUPPORTED),
}


@pytest.mark.skipif(not stand_in(), reason="a real library does as it likes")
@pytest.mark.parametrize("case", ASKED)
def test_the_stand_in_refuses_what_the_library_does(case):
    """8 x 16 = (8 x 24) (24 x 16) by columns; a vector that is missing is refused when the product is made."""
    (epilogue, ta, tb, to, of_vector, batch), expected = ASKED[case]
    lucid.zeros(1, device="cuda")  # a context
    lt = ctypes.CDLL(os.environ["LUCID_CUDA_PATH"] + "/libcublasLt.so.13")
    a, b, d = (lucid.zeros(1024, device="cuda") for _ in range(3))
    vector = lucid.zeros(16, device="cuda", dtype=lucid.float16)

    def made(create, *arguments):
        handle = ctypes.c_void_p()
        assert create(ctypes.byref(handle), *arguments) == OK
        return handle

    def settle(function, of, name, value, kind=ctypes.c_int32):
        value = kind(value)
        assert function(of, name, ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value))) == OK

    def layout(kind, rows, columns):
        size = [ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(rows)]
        of = made(lt.cublasLtMatrixLayoutCreate, kind, *size)
        settle(lt.cublasLtMatrixLayoutSetAttribute, of, 5, batch)
        settle(lt.cublasLtMatrixLayoutSetAttribute, of, 6, 512, ctypes.c_int64)
        return of

    operation = made(lt.cublasLtMatmulDescCreate, 68, 0)
    for name, value in ((3, ta), (4, tb), (7, epilogue), (26, of_vector)):
        settle(lt.cublasLtMatmulDescSetAttribute, operation, name, value)
    settle(lt.cublasLtMatmulDescSetAttribute, operation, 8, vector.data_ptr(), ctypes.c_uint64)
    layouts = [layout(HALF, *((24, 8) if ta else (8, 24))), layout(HALF, *((16, 24) if tb else (24, 16))), layout(to, 8, 16)]
    handle, preference = made(lt.cublasLtCreate), made(lt.cublasLtMatmulPreferenceCreate)
    settle(lt.cublasLtMatmulPreferenceSetAttribute, preference, 1, 1 << 20, ctypes.c_uint64)
    algorithm, n = ctypes.create_string_buffer(96), ctypes.c_int()
    order = [layouts[0], layouts[1], layouts[2], layouts[2]]
    ask = (handle, operation, *order, preference, 1, algorithm, ctypes.byref(n))
    assert lt.cublasLtMatmulAlgoGetHeuristic(*ask) == expected and n.value == (expected == OK)
    if expected == OK:
        settle(lt.cublasLtMatmulDescSetAttribute, operation, 8, 0, ctypes.c_uint64)
        one, none = ctypes.c_float(1), ctypes.c_float(0)
        space = lucid.zeros(1 << 20, device="cuda", dtype=lucid.uint8)
        a, b, d, space = (ctypes.c_void_p(t.data_ptr()) for t in (a, b, d, space))
        operands = (ctypes.byref(one), a, layouts[0], b, layouts[1], ctypes.byref(none), d, layouts[2], d, layouts[2])
        call = (handle, operation, *operands, algorithm, space, ctypes.c_size_t(1 << 20), None)
        assert lt.cublasLtMatmul(*call) == INVALID_VALUE
