"""Products that cuBLAS and cuBLASLt make: layouts, dtypes, epilogues, captured graphs, threads. Runs on a GPU, or on stand-ins
of the libraries beside the emulated driver (emulator/cublas.cpp, by test_emulated.py), which count and check their calls.

Numbers are small and whole where every sum is then exact, so that a result is right or wrong in any dtype. float32 has more
rows than the backend's own kernel for small products takes.
"""

import ctypes
import os
import pathlib
import threading

import pytest

import lucid
import lucid.nn.functional as F
from tests.gpu.test_products import align_everything, whole  # noqa: F401  a fixture

if not lucid.cuda.is_available():  # not a skip for each of many cases
    pytest.skip("no CUDA device", allow_module_level=True)
COUNTERS = 7
LT, BLAS, CHOICES, REFUSED, IN_WORKSPACE, CAPTURED, SUMS = range(COUNTERS)
DTYPES = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
FEW = ["float16", "bfloat16", "float32"]  # that have epilogues


def stand_in():
    path = pathlib.Path(os.environ.get("LUCID_CUDA_PATH", ""), "libcublasLt.so.13")
    library = ctypes.CDLL(str(path)) if path.is_file() and lucid.cuda.device_count() else None
    if not hasattr(library, "emulated_library_calls"):
        return None
    library.emulated_library_calls.restype = ctypes.c_int64
    return library.emulated_library_calls


@pytest.mark.skipif(not stand_in(), reason="a real library counts nothing")
def test_the_stand_in_takes_part():
    """Both libraries, and algorithms with a workspace and without one."""
    before = [stand_in()(of) for of in range(COUNTERS)]
    for n in (16, 24, 32):
        x, w, b = (lucid.ones(*s, dtype=lucid.float16, device="cuda") for s in ((64, 8), (n, 8), (n,)))
        assert lucid.equal(F.linear(x, w, b).cpu(), lucid.full((64, n), 9, dtype=lucid.float16))
        assert lucid.equal((x @ w.mT).cpu(), lucid.full((64, n), 8, dtype=lucid.float16))
    made = [stand_in()(of) - n for of, n in enumerate(before)]
    assert made == [3, 3, made[CHOICES], 0, 2, 0, 0] and made[CHOICES] <= 3  # choices may be on disk


class Calls:
    """What the libraries were asked for within a block. Beside a real library nothing is known."""

    def __enter__(self):
        self.ask = stand_in()
        self.before = [self.ask(of) for of in range(COUNTERS)] if self.ask else None
        return self

    def __exit__(self, kind, *_):
        lucid.cuda.synchronize()
        self.made = [self.ask(of) - n for of, n in enumerate(self.before)] if self.ask else None

    def expect(self, **counts):
        if self.ask:
            names = dict(lt=LT, blas=BLAS, refused=REFUSED, captured=CAPTURED, sums=SUMS)
            assert {name: self.made[of] for name, of in names.items()} == dict.fromkeys(names, 0) | counts


def drawn(dtype, *shape):
    """Of one dtype on the device and exact on the CPU."""
    dtype = getattr(lucid, dtype)
    x = lucid.complex(whole(*shape), whole(*shape)) if dtype.is_complex else whole(*shape)
    exact = x.to(lucid.complex128 if dtype.is_complex else lucid.float64)
    return exact, exact.to(dtype).cuda()


def same(found, exact):
    return lucid.equal(found.cpu().to(exact.dtype), exact)


ROWS = 520  # more than own kernels take
LAYOUTS = {  # of a matrix of the shape that is asked for: the shape that is drawn, and the view
    "plain": lambda r, c: ((r, c), lambda t: t),
    "transposed": lambda r, c: ((c, r), lambda t: t.mT),
    "some columns": lambda r, c: ((r, c + 16), lambda t: t[:, 8:-8]),
    "some columns, transposed": lambda r, c: ((c, r + 16), lambda t: t[:, 8:-8].mT),
    "columns from an odd place": lambda r, c: ((r, c + 1), lambda t: t[:, 1:]),
    "every second row": lambda r, c: ((2 * r, c), lambda t: t[::2]),
    "every second column": lambda r, c: ((r, 2 * c), lambda t: t[:, ::2]),
    "one row for all": lambda r, c: ((1, c), lambda t: t.expand(r, c)),
    "windows": lambda r, c: ((r + c - 1,), lambda t: t.unfold(0, c, 1)),
}
STRIDED = {"every second column", "one row for all", "windows"}  # no matrix for a library: a kernel of our own


def drawn_as(layout, dtype, rows, cols):
    shape, view = LAYOUTS[layout](rows, cols)
    exact, x = drawn(dtype, *shape)
    return view(exact), view(x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("left", LAYOUTS)
def test_layouts(left, right, dtype):
    exact_a, a = drawn_as(left, dtype, ROWS, 24)
    exact_b, b = drawn_as(right, dtype, 24, 16)
    with Calls() as calls:
        found = a @ b
    assert same(found, exact_a @ exact_b)
    if {left, right} & STRIDED:
        return
    calls.expect(blas=1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m, n, k", [(ROWS, 1, 8), (1, ROWS, 8), (2, ROWS, 1), (ROWS, 3, 5), (ROWS, 17, 33), (1, 1, 5000)])
def test_lengths(m, n, k, dtype):
    (exact_a, a), (exact_b, b) = drawn(dtype, m, k), drawn(dtype, k, n)
    assert same(a @ b, exact_a @ exact_b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_batches(dtype):
    (exact_a, a), (exact_b, b), (exact_x, x) = drawn(dtype, 3, ROWS, 24), drawn(dtype, 3, 24, 16), drawn(dtype, 3, ROWS, 16)
    with Calls() as calls:
        found = lucid.bmm(a, b)
        shared = lucid.matmul(a, b[0])
        other = lucid.matmul(a[0], b)
        flipped = lucid.bmm(b.mT, a.mT)
        swapped = lucid.bmm(a.transpose(0, 1).contiguous().transpose(0, 1), b)
        summed = lucid.baddbmm(x, a, b, beta=2, alpha=-1)
        in_place = x.clone().baddbmm_(a, b)
    exact = lucid.bmm(exact_a, exact_b)
    assert same(found, exact) and same(shared, exact_a @ exact_b[0]) and same(other, exact_a[0] @ exact_b)
    assert same(flipped, exact.mT) and same(swapped, exact)
    assert same(summed, 2 * exact_x - exact) and same(in_place, exact_x + exact)
    calls.expect(blas=6 if dtype == "float32" else 7)  # one of float32 is a small one


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_with_products(dtype):
    (exact_a, a), (exact_b, b), (exact_x, x) = drawn(dtype, ROWS, 24), drawn(dtype, 24, 16), drawn(dtype, ROWS, 16)
    (exact_row, row), (exact_column, column) = drawn(dtype, 16), drawn(dtype, ROWS, 1)
    exact = exact_a @ exact_b
    assert same(lucid.addmm(x, a, b), exact_x + exact)
    assert same(lucid.addmm(x, a, b, beta=0.5, alpha=2), 0.5 * exact_x + 2 * exact)
    assert same(lucid.addmm(row, a, b), exact_row + exact)
    assert same(lucid.addmm(column, a, b, alpha=3), exact_column + 3 * exact)
    assert same(lucid.addmm(x * float("nan"), a, b, beta=0), exact)
    assert same(x.clone().addmm_(a, b), exact_x + exact)
    out = lucid.full((16, ROWS), float("nan"), dtype=a.dtype, device="cuda").mT
    assert same(lucid.mm(a, b, out=out), exact)


ACTIVATIONS = {
    "none": lambda x: x,
    "relu": F.relu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "gelu": F.gelu,
    "silu": F.silu,
}
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5}


@pytest.mark.parametrize("dtype", FEW)
@pytest.mark.parametrize("parts", ["bias", "residual", "bias residual", "scale", "bias scale", "none"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("features", [(40, 24), (48, 40), (24, 17)])
def test_epilogues(features, activation, parts, dtype):
    k, n = features
    (exact_x, x), (exact_w, w), (exact_b, b), (exact_r, r) = (drawn(dtype, *s) for s in ((ROWS, k), (n, k), (n,), (ROWS, n)))
    scale, exact_w, w = 0.25 if "scale" in parts else 1.0, exact_w / 4, w / 4
    bias, residual = "bias" in parts, "residual" in parts
    with Calls() as calls:
        found = F.fused_linear(x, w, b if bias else None, activation, scale, r if residual else None)
    exact = ACTIVATIONS[activation](scale * (exact_x @ exact_w.mT) + (exact_b if bias else 0)) + (exact_r if residual else 0)
    tolerance = TOLERANCE[dtype]
    assert lucid.allclose(found.cpu().double(), exact, rtol=tolerance, atol=tolerance)
    aligned = n % 8 == 0 or not residual  # the result and the addends start on 16 bytes
    exact_gelu = (activation, dtype) == ("gelu_tanh", "float32")  # the library's is short: float32 takes it as a step
    by_lt = (
        activation in ("none", "relu", "gelu_tanh") and not (residual and activation != "none" and not exact_gelu) and aligned
    )
    plain = (activation, parts) == ("none", "none")
    if aligned and (by_lt or plain):
        calls.expect(**{"blas" if plain else "lt": 1})
    elif activation in ("gelu", "silu"):
        calls.expect(blas=1)


@pytest.fixture
def precision():
    before = lucid.get_float32_matmul_precision()
    yield lucid.set_float32_matmul_precision
    lucid.set_float32_matmul_precision(before)


def test_gelu_is_as_exact_behind_a_layer_as_alone(precision):
    """In float32; where TF32 may be used, the library's."""
    x, w, b, r = (lucid.randn(*shape, device="cuda") for shape in ((ROWS, 40), (24, 40), (24,), (ROWS, 24)))
    with Calls() as calls:
        alone = F.gelu(F.linear(x, w, b), approximate="tanh")
        assert lucid.equal(F.fused_linear(x, w, b, "gelu_tanh"), alone)
        assert lucid.equal(F.fused_linear(x, w, b, "gelu_tanh", 1.0, r), alone + r)
        compiled = lucid.compile(lambda x: F.gelu(F.linear(x, w, b), approximate="tanh"))
        assert all(lucid.equal(compiled(x), alone) for _ in range(3))
    calls.expect(lt=6)
    precision("high")
    with Calls() as calls:
        assert lucid.allclose(F.fused_linear(x, w, b, "gelu_tanh"), alone, rtol=1e-2, atol=1e-2)
    calls.expect(lt=1)


@pytest.mark.parametrize("dtype", FEW)
@pytest.mark.parametrize("weight", ["plain", "transposed", "some columns"])
@pytest.mark.parametrize("features", ["plain", "transposed", "some columns", "columns from an odd place"])
def test_layers(features, weight, dtype):
    """Forward and backward of a layer, of any layout."""
    (exact_x, x), (exact_w, w), (exact_b, b) = (
        drawn_as(features, dtype, ROWS, 24), drawn_as(weight, dtype, 16, 24), drawn(dtype, 16)
    )  # fmt: skip
    exact_g, g = drawn(dtype, ROWS, 16)
    inputs = [t.detach().requires_grad_() for t in (x, w, b)]
    y = F.linear(*inputs)
    y.backward(g)
    assert same(y.detach(), F.linear(exact_x, exact_w, exact_b))
    for found, exact in zip(inputs, (exact_g @ exact_w, exact_g.mT @ exact_x, exact_g.sum(0))):
        assert same(found.grad, exact.to(found.dtype).to(exact.dtype))


@pytest.mark.parametrize("dtype", FEW)
def test_biases_of_any_alignment(dtype):
    """An algorithm is chosen for what the key promises, not for the pointers of the first call."""
    (exact_x, x), (exact_w, w), (exact_b, b) = drawn(dtype, ROWS, 32), drawn(dtype, 56, 32), drawn(dtype, 256)
    step = 16 // x.element_size()
    with Calls() as calls:
        for start in (0, step, 3 * step, 2 * step):
            assert same(F.linear(x, w, b[start : start + 56]), F.linear(exact_x, exact_w, exact_b[start : start + 56]))
    calls.expect(lt=4)
    with Calls() as calls:
        assert same(F.linear(x, w, b[1:57]), F.linear(exact_x, exact_w, exact_b[1:57]))
    calls.expect(blas=1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_odd_layers_on_padded_copies(align_everything, dtype):  # noqa: F811
    """The result has padded rows then, a residual has not."""
    (exact_x, x), (exact_w, w), (exact_b, b), (exact_r, r) = (drawn(dtype, *s) for s in ((70, 99), (83, 99), (83,), (70, 83)))
    exact = F.linear(exact_x, exact_w, exact_b)
    for arguments, expected in ((("none",), exact), (("relu",), F.relu(exact)), (("none", 1.0, r), exact + exact_r)):
        with Calls() as calls:
            found = F.fused_linear(x, w, b, *arguments)
        assert same(found, expected)
        calls.expect(lt=1)


@pytest.mark.parametrize("bias", [False, True])
def test_float32_is_rounded_only_where_it_may_be(precision, bias):
    """The factor's last bits get lost in TF32."""
    x, w = lucid.full((ROWS, 16), 1 + 2.0**-20, device="cuda"), lucid.eye(16, device="cuda")
    b = lucid.zeros(16, device="cuda") if bias else None
    exact = x.cpu()
    for how in ("highest", "high", "highest"):
        precision(how)
        with Calls() as calls:
            y = F.linear(x, w, b).cpu()
        calls.expect(**{"lt" if bias else "blas": 1})
        if how == "highest" or calls.ask:
            assert lucid.equal(y, exact if how == "highest" else lucid.ones(ROWS, 16))
        assert lucid.allclose(y, exact, 1e-3)


def test_what_is_captured_runs_again():
    """Also where a graph is the first to use a shape."""
    (exact_x, x), (exact_w, w), (exact_b, b) = drawn("bfloat16", ROWS, 72), drawn("bfloat16", 88, 72), drawn("bfloat16", 88)
    graph = lucid.cuda.CUDAGraph()
    with Calls() as calls:
        with lucid.cuda.graph(graph):
            y = F.fused_linear(x, w, b, "relu")
            z = y @ w
    calls.expect(lt=1, blas=1, captured=2)
    lucid.empty(64 << 20, dtype=lucid.uint8, device="cuda").fill_(7)  # takes what the capture gave back
    for _ in range(2):
        exact_x, other = drawn("bfloat16", ROWS, 72)
        x.copy_(other)
        with Calls() as calls:
            graph.replay()
        calls.expect()
        exact = F.relu(F.linear(exact_x, exact_w, exact_b))
        assert same(y, exact) and same(z, (exact @ exact_w).bfloat16().double())
    assert same(F.linear(x, w, b), F.linear(exact_x, exact_w, exact_b))


def test_several_threads_and_streams():
    """Each thread has a stream; plans and their descriptors are everyone's."""
    cases = [[drawn(dtype, *s) for s in ((64, 72), (56, 72), (56,), (64, 56))] for dtype in ("bfloat16", "float16") * 2]
    right, start = [], threading.Barrier(len(cases))

    def work(case):
        (exact_x, x), (exact_w, w), (exact_b, b), (exact_r, r) = case
        exact = F.linear(exact_x, exact_w, exact_b)
        start.wait()
        with lucid.cuda.stream(lucid.cuda.Stream()):
            for turn in range(12):
                y = F.fused_linear(x, w, b, "relu") if turn % 2 else F.fused_linear(x, w, b, "none", 1.0, r)
                z = y.mT @ y
                right.append(same(y, F.relu(exact) if turn % 2 else exact + exact_r) and z.shape == (56, 56))

    lucid.cuda.synchronize()
    threads = [threading.Thread(target=work, args=(case,), daemon=True) for case in cases]
    with Calls() as calls:
        [t.start() for t in threads]
        [t.join(120) for t in threads]
    calls.expect(lt=48, blas=48)
    assert right == [True] * 48


def test_work_waits_in_its_stream():
    """A product reads what was written before it in the stream, also when its workspace is that of the product before."""
    exact_w, w = drawn("bfloat16", 64, 64)
    x = lucid.zeros(64, 64, device="cuda", dtype=lucid.bfloat16)
    b = lucid.zeros(64, device="cuda", dtype=lucid.bfloat16)
    results = []
    for turn in range(6):
        x.fill_(turn), b.fill_(-turn)
        results.append(F.linear(x, w, b))
        results.append(x @ w)
    for turn in range(6):
        ones = lucid.full((64, 64), float(turn)).double()
        assert same(results[2 * turn], (F.linear(ones, exact_w) - turn).bfloat16().double())
        assert same(results[2 * turn + 1], (ones @ exact_w).bfloat16().double())


@pytest.mark.skipif(lucid.cuda.is_available() and lucid.cuda.device_count() < 2, reason="one device")
def test_each_device_has_handles_of_its_own():
    (exact_x, x), (exact_w, w), (exact_b, b) = drawn("bfloat16", 64, 72), drawn("bfloat16", 56, 72), drawn("bfloat16", 56)
    for device in (1, 0, 1):
        on = [t.to(f"cuda:{device}") for t in (x, w, b)]
        with Calls() as calls:
            y, z = F.linear(*on), on[0] @ on[1].mT
            lucid.cuda.synchronize(device)
        assert same(y, F.linear(exact_x, exact_w, exact_b)) and same(z, exact_x @ exact_w.mT)
        calls.expect(lt=1, blas=1)
