"""Mixed precision beside PyTorch's on the CPU: dtypes of every op of op_db, kept casts, gradients, training, GradScaler."""

import copy
import pickle
import threading
import warnings

import pytest
import torch

import lucid
from tests import few
from tests.compat.exchange import Exchange, Missing, to_torch
from tests.compat.forms import OPS, Variant, attempt, brief, samples_of, tensors_of
from tests.oracle import of_torch

DIFFERS = {
    "nn.functional.linear_cross_entropy": "in parts, PyTorch's sums are of the lower dtype",
    "nn.functional.pdist": "a float32 op: PyTorch accepts half precision if there is nothing to compute",
    "norm": "the nuclear norm is not there yet",
}
CALLED = {n: ops for n, ops in OPS.items() if n not in DIFFERS}


def dtypes(value, kind):
    return [str(t.dtype).split(".")[-1] for t in tensors_of(value, kind)]


OWN_DTYPES = {"linalg.pinv", "linalg.vecdot", "masked.prod"}  # one kernel here, ops of several lists in PyTorch


@pytest.mark.few(per=few.one_in(8))
@pytest.mark.parametrize("name", [name for name in CALLED if name not in OWN_DTYPES])
def test_dtypes_of_results(name):
    for op in CALLED[name]:
        try:
            variant = Variant(op)
        except Missing:
            continue
        for dtype in {torch.float32, torch.bfloat16} & set(op.supported_dtypes("cpu")):
            for _, sample in samples_of(op, dtype, False, True)[:2]:
                one_sample(variant, sample)


def one_sample(variant, sample):
    results = []
    for m, f, to in ((torch, variant.theirs, Exchange(ours=False)), (lucid, variant.ours, Exchange(ours=True))):
        args, kwargs = to((sample.input, *sample.args)), to(sample.kwargs)
        with m.autocast("cpu"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                results.append(attempt(f, *args, **kwargs))
            except Missing:
                return
    (theirs, their_error), (ours, our_error) = results
    if their_error is None:
        assert our_error is None, brief(our_error)
        assert dtypes(ours, lucid.Tensor) == dtypes(theirs, torch.Tensor)


def two_dims(m, dtype=None):
    return m.arange(12, dtype=dtype or m.float32).reshape(3, 4) / 7


LOWER = {
    "matmul": lambda m: m.matmul(two_dims(m), two_dims(m).T),
    "operator": lambda m: two_dims(m) @ two_dims(m).T,
    "bmm": lambda m: m.bmm(two_dims(m)[None], two_dims(m).T[None]),
    "addmm": lambda m: m.addmm(m.ones(3, 3), two_dims(m), two_dims(m).T),
    "baddbmm": lambda m: m.baddbmm(m.ones(1, 3, 3), two_dims(m)[None], two_dims(m).T[None]),
    "linear": lambda m: m.nn.functional.linear(two_dims(m), m.ones(5, 4), m.ones(5)),
    "conv2d": lambda m: m.nn.functional.conv2d(two_dims(m)[None, None], m.ones(2, 1, 2, 2) / 3),
    "conv2d same": lambda m: m.nn.functional.conv2d(two_dims(m)[None, None], m.ones(2, 1, 2, 2) / 3, padding="same"),
    "conv_transpose1d": lambda m: m.nn.functional.conv_transpose1d(two_dims(m), m.ones(3, 1, 2) / 3),
    "attention": lambda m: m.nn.functional.scaled_dot_product_attention(*[two_dims(m)[None, None]] * 3),
    "prelu": lambda m: m.nn.functional.prelu(-two_dims(m), m.tensor([0.3])),
    "einsum": lambda m: m.einsum("ij,kj->ik", two_dims(m), two_dims(m)),
    "half precision": lambda m: m.matmul(two_dims(m).bfloat16(), two_dims(m).T),
    "in place": lambda m: m.ones(3, 3).addmm_(two_dims(m), two_dims(m).T),
    "out": lambda m: m.mm(two_dims(m), two_dims(m).T, out=m.empty(3, 3)),
    "doubles": lambda m: m.mm(two_dims(m, m.float64), two_dims(m, m.float64).T),
    "loss of half precision": lambda m: m.nn.functional.mse_loss(two_dims(m).bfloat16(), m.ones(3, 4)),
    "nll": lambda m: m.nn.functional.nll_loss(two_dims(m).bfloat16(), m.tensor([0, 1, 2])),
    "cross entropy": lambda m: m.nn.functional.cross_entropy(two_dims(m).bfloat16(), m.tensor([0, 1, 2])),
    "cross entropy, weighed": lambda m: m.nn.functional.cross_entropy(
        two_dims(m).bfloat16(), m.tensor([0, 1, 2]), m.tensor([0.3, 1, 2, 0.7]), label_smoothing=0.2, ignore_index=1),
    "cross entropy of probabilities": lambda m: m.nn.functional.cross_entropy(
        two_dims(m).bfloat16(), m.softmax(two_dims(m), 1)),
    "reflected": lambda m: m.nn.functional.pad(two_dims(m).bfloat16()[None], (1, 1), "reflect"),
    "circular": lambda m: m.nn.functional.pad(two_dims(m).bfloat16()[None], (1, 1), "circular"),
    "cat": lambda m: m.cat([two_dims(m), two_dims(m).bfloat16()]),
    "stack of half precision": lambda m: m.stack([two_dims(m).bfloat16(), two_dims(m).bfloat16()]),
    "softmax": lambda m: m.softmax(two_dims(m).bfloat16(), -1),
    "norm of half precision": lambda m: m.nn.functional.layer_norm(two_dims(m).bfloat16(), (4,), m.ones(4), m.zeros(4)),
    "sum": lambda m: two_dims(m).bfloat16().sum(),
}  # fmt: skip


@pytest.mark.parametrize("call", LOWER.values(), ids=LOWER)
@pytest.mark.parametrize("lower", ["bfloat16", "float16"])
def test_values(call, lower):
    def results(m):
        with m.autocast("cpu", dtype=getattr(m, lower)):
            try:
                return call(m)
            except RuntimeError:  # float16 and bfloat16 mixed
                return None

    ours, theirs = results(lucid), results(torch)
    assert (ours is None) == (theirs is None)
    if theirs is not None:
        torch.testing.assert_close(to_torch(ours), theirs, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("settings", [{}, {"reduction": "none"}, {"label_smoothing": 0.3, "ignore_index": 2}])
def test_cross_entropy_of_halves(settings):
    """The loss is float32 and not rounded to the scores' dtype; the gradient has the scores' dtype; twice."""

    def results(m):
        x = two_dims(m).bfloat16().requires_grad_()
        with m.autocast("cpu", dtype=m.bfloat16):
            loss = m.nn.functional.cross_entropy(x, m.tensor([3, 0, 2]), **settings)
        (slope,) = m.autograd.grad(loss.sum(), x, create_graph=True)
        slope.float().square().sum().backward()
        return loss.detach(), slope.detach(), x.grad

    for ours, theirs, error in zip(results(lucid), results(torch), (1e-6, 1e-2, 1e-2)):
        torch.testing.assert_close(to_torch(ours), theirs, rtol=error, atol=error / 10)


def test_vmap():
    weight, rows = lucid.rand(3, 4), lucid.rand(5, 4)
    with lucid.autocast("cpu"), warnings.catch_warnings():
        warnings.simplefilter("error")  # a loop over examples would warn
        y = lucid.vmap(lambda x: lucid.nn.functional.linear(x.half().float(), weight))(rows)
    assert y.dtype == lucid.bfloat16
    torch.testing.assert_close(to_torch(y.float()), to_torch(rows @ weight.T), rtol=2e-2, atol=2e-2)


LISTED = [
    "matmul", "mm", "bmm", "addmm", "baddbmm", "addbmm", "einsum", "tensordot", "inner", "cat", "stack", "prod", "trace",
    "cdist", "quantile", "index_copy", "polar", "view_as_complex", "nn.functional.prelu", "nn.functional.linear",
    "nn.functional.conv1d",
    "nn.functional.conv2d", "nn.functional.conv3d", "nn.functional.conv_transpose2d", "nn.functional.bilinear",
    "nn.functional.scaled_dot_product_attention", "nn.functional.grid_sample", "nn.functional.pad", "nn.functional.mse_loss",
    "nn.functional.cross_entropy", "nn.functional.nll_loss", "nn.functional.binary_cross_entropy_with_logits",
    "nn.functional.kl_div", "nn.functional.huber_loss", "nn.functional.triplet_margin_loss", "nn.functional.layer_norm",
    "nn.functional.batch_norm", "nn.functional.max_pool3d", "nn.functional.multi_head_attention_forward",
]  # fmt: skip


@pytest.mark.parametrize("inside", [True, False], ids=["recorded inside", "recorded outside"])
@pytest.mark.parametrize("name", [n for n in LISTED if n in OPS])
def test_gradients_inside(name, inside):
    """Backward under autocast, of what was recorded there and elsewhere."""
    for op in OPS[name]:
        variant = Variant(op)
        for _, sample in samples_of(op, torch.float32, True, True)[:2]:
            ours, theirs = gradients(lucid, variant.ours, sample, inside), gradients(torch, variant.theirs, sample, inside)
            assert [g is None for g in ours] == [g is None for g in theirs]
            for a, b in zip(ours, theirs):
                if b is not None:
                    a, size = to_torch(a), max(1.0, b.abs().max().item()) if b.numel() else 1.0
                    torch.testing.assert_close(a, b, rtol=6e-2, atol=6e-2 * size, equal_nan=True)


def gradients(m, f, sample, inside):
    to = Exchange(ours=m is lucid)
    args, kwargs = to((sample.input, *sample.args)), to(sample.kwargs)
    with m.autocast("cpu", enabled=inside), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result, error = attempt(f, *args, **kwargs)
    results = [t for t in tensors_of(result, m.Tensor) if t.requires_grad]
    if error is not None or not results or not to.leaves:
        return []
    with m.autocast("cpu"):
        total = sum(t.abs().sum() if t.is_complex() else t.float().sum() for t in results)
        return m.autograd.grad(total, to.leaves, allow_unused=True)


def test_recurrent_layers():
    def results(m):
        seen = []
        with m.autocast("cpu"):
            for name in ("LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell"):
                module = getattr(m.nn, name)(4, 5)
                x = m.ones(3, 4) if "Cell" in name else m.ones(3, 2, 4)
                for given in (x, x.bfloat16()):
                    seen.append(dtypes(module(given), m.Tensor))
                if name == "LSTM":
                    seen.append(dtypes(m.nn.LSTM(4, 5, num_layers=2, proj_size=3, bidirectional=True)(x), m.Tensor))
                if "Cell" not in name:
                    seen.append(dtypes(module(m.nn.utils.rnn.pack_padded_sequence(x, [3, 2]))[0].data, m.Tensor))
        return seen

    assert results(lucid) == results(torch)


def test_nesting_and_restoring():
    def states(m):
        seen = []

        def look():
            dtype = str(m.get_autocast_dtype("cpu")).split(".")[-1]
            seen.append((m.is_autocast_enabled("cpu"), dtype, m.is_autocast_cache_enabled()))

        look()
        with m.autocast("cpu", dtype=m.float16):
            look()
            with m.autocast("cpu", enabled=False, cache_enabled=False):
                look()
                with m.autocast("cpu", dtype=m.bfloat16):
                    look()
                look()
            look()
        try:
            with m.autocast("cpu"):
                raise KeyError
        except KeyError:
            look()
        decorated = m.autocast("cpu")(look)
        decorated()
        look()
        m.set_autocast_cpu_enabled(True)
        m.set_autocast_cpu_dtype(m.float16)
        look()
        m.set_autocast_enabled("cpu", False)
        m.set_autocast_dtype("cpu", m.bfloat16)
        look()
        return seen

    assert states(lucid) == states(torch)


def test_a_decorated_function_may_call_itself():
    @lucid.autocast("cpu")
    def product(n):
        y = lucid.ones(2, 2) @ lucid.ones(2, 2)
        return y if n == 0 else product(n - 1)

    assert product(3).dtype == lucid.bfloat16
    assert not lucid.is_autocast_enabled("cpu")


def test_other_threads_are_not_concerned():
    seen = []
    with lucid.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append((lucid.ones(2, 2) @ lucid.ones(2, 2)).dtype))
        thread.start()
        thread.join()
    assert seen == [lucid.float32]


@pytest.mark.parametrize("m", [lucid, torch], ids=["lucid", "torch"])
def test_bad_settings(m):
    with pytest.raises(ValueError):
        m.autocast(m.device("cpu"))
    with pytest.raises(RuntimeError):
        m.autocast("nowhere")
    with pytest.warns(UserWarning, match="not supported"), m.autocast("cpu", dtype=m.float32):
        assert not m.is_autocast_enabled("cpu")
    with pytest.raises(TypeError):
        m.autocast("cpu")(3)
    assert m.amp.is_autocast_available("cpu")


def casts(m, tensor):
    """How many conversions hang on a leaf's history."""
    seen, todo = set(), [tensor.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        todo += [n for n, _ in node.next_functions]
    return sum("ToCopy" in n.name() for n in seen)


def test_parameters_are_converted_once():
    weight = lucid.rand(3, 3, requires_grad=True)
    x = lucid.ones(2, 3)
    with lucid.autocast("cpu"):
        assert casts(lucid, (x @ weight) + (x @ weight)) == 1
        with lucid.autocast("cpu", cache_enabled=False):
            assert casts(lucid, (x @ weight) + (x @ weight)) == 2
    with lucid.autocast("cpu"):
        first = (x @ weight).sum()
        second = (x @ weight).sum()
        first.backward()
        second.backward()  # the conversion they share saves nothing
    assert weight.grad.dtype == lucid.float32
    assert weight.grad.tolist() == [[4.0] * 3] * 3


def test_kept_casts_are_made_anew_when_they_must_be():
    weight, x = lucid.ones(2, 2, requires_grad=True), lucid.ones(1, 2)
    with lucid.autocast("cpu"):
        with lucid.no_grad():
            assert not (x @ weight).requires_grad
        assert (x @ weight).requires_grad  # not the one made without history
        with lucid.inference_mode():
            assert (x @ weight).tolist() == [[2.0, 2.0]]
        with lucid.no_grad():
            weight.mul_(3)
        assert (x @ weight).tolist() == [[6.0, 6.0]]
        weight.data = lucid.zeros(2, 2)
        assert (x @ weight).tolist() == [[0.0, 0.0]]


def test_kept_casts_are_freed():
    import gc

    def once():
        weights = [lucid.rand(8, 8, requires_grad=True) for _ in range(100)]
        with lucid.autocast("cpu"):
            sum((lucid.ones(8, 8) @ w).sum() for w in weights).backward()

    once()
    gc.collect()
    before = lucid.live_blocks()
    once()
    gc.collect()
    assert lucid.live_blocks() <= before


def test_failing_allocations_leave_nothing_behind():
    weight = lucid.rand(4, 4, requires_grad=True)
    for n in range(1, 40):
        lucid._C._fail_allocation(n)
        try:
            with lucid.autocast("cpu"):
                weight @ weight
        except (MemoryError, RuntimeError):
            pass
        finally:
            left = lucid._C._fail_allocation(0)
        assert not lucid.is_autocast_enabled("cpu")
        if left:
            break
    assert (weight @ weight).dtype == lucid.float32


def train(m, model, steps, **options):
    """Losses of a classifier under autocast."""
    optimizer = m.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    x = m.arange(8 * 64, dtype=m.float32).reshape(8, 1, 8, 8).sin()
    target = m.arange(8) % 3
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        with m.autocast("cpu", **options):
            loss = m.nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert all(p.grad.dtype == m.float32 and p.dtype == m.float32 for p in model.parameters())
    return losses


def network(m):
    nn = m.nn
    layers = [nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 16), nn.GELU()]
    return nn.Sequential(*layers, nn.LayerNorm(16), nn.Linear(16, 3))


@pytest.mark.parametrize("lower", ["bfloat16", "float16"])
def test_training(lower):
    torch.manual_seed(0)
    theirs, ours = network(torch), network(lucid)
    ours.load_state_dict({k: of_torch(v) for k, v in theirs.state_dict().items()})
    a = train(lucid, ours, 15, dtype=getattr(lucid, lower))
    b = train(torch, theirs, 15, dtype=getattr(torch, lower))
    assert a == pytest.approx(b, rel=3e-2, abs=1e-2)
    assert a[-1] < a[0] / 2


def test_backward_inside():
    """Products of a recorded float32 computation are of the lower dtype if backward runs under autocast, as PyTorch's are."""

    def grads(m):
        a = (m.arange(16, dtype=m.float32).reshape(4, 4) / 7).requires_grad_()
        y = (a @ a).square().sum()
        with m.autocast("cpu"):
            y.backward()
        return a.grad

    torch.testing.assert_close(to_torch(grads(lucid)), grads(torch), rtol=1e-2, atol=1e-2)
    assert grads(lucid).dtype == lucid.float32


def product_of(m, cast_inputs):
    class Product(m.autograd.Function):
        @staticmethod
        @m.amp.custom_fwd(device_type="cpu", cast_inputs=cast_inputs)
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a.mm(b)

        @staticmethod
        @m.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            return grad.mm(b.t()), a.t().mm(grad)

    return Product


def test_custom_functions():
    def seen(m):
        result = []
        for cast_inputs in (None, m.float32, m.bfloat16):
            for on in (True, False):
                a, b = (m.full((2, 2), 0.3, requires_grad=True) for _ in range(2))
                with m.autocast("cpu", enabled=on):
                    y = product_of(m, cast_inputs).apply(a, b)
                y.sum().backward()
                result.append((str(y.dtype).split(".")[-1], str(a.grad.dtype).split(".")[-1], round(a.grad[0, 0].item(), 2)))
        return result

    assert seen(lucid) == seen(torch)


# --- GradScaler -----------------------------------------------------------------------------------------------------------
def scaled_steps(m, name, unscale=False, **options):
    p = m.tensor([1.0, 2.0], requires_grad=True)
    optimizer = getattr(m.optim, name)([p], lr=0.1, **options)
    scaler = m.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    seen = []
    for i in range(8):
        optimizer.zero_grad()
        scaler.scale((p * p).sum() * (float("inf") if i in (3, 4) else 1.0)).backward()
        if unscale:
            scaler.unscale_(optimizer)
            m.nn.utils.clip_grad_norm_([p], 0.5)
        scaler.step(optimizer)
        scaler.update()
        seen.append((p.tolist(), scaler.get_scale(), scaler._get_growth_tracker()))
    state = optimizer.state_dict()["state"].get(0, {})
    return seen, scaler.state_dict(), state["step"].item() if "step" in state else None


@pytest.mark.parametrize("unscale", [False, True])
@pytest.mark.parametrize("fused", [None, True])
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_scaled_training(name, fused, unscale):
    if name == "SGD" and fused:
        options = {"fused": True, "momentum": 0.9}
    else:
        options = {"fused": fused}
    ours, theirs = (scaled_steps(m, name, unscale, **options) for m in (lucid, torch))
    assert ours[1:] == theirs[1:]
    for (a, *rest), (b, *expected) in zip(ours[0], theirs[0]):
        assert a == pytest.approx(b, rel=1e-5)
        assert rest == expected


@pytest.mark.parametrize("m", [lucid, torch], ids=["lucid", "torch"])
def test_scaler_protocol(m):
    p = m.ones(2, requires_grad=True)
    optimizer = m.optim.SGD([p], lr=0.1)
    scaler = m.amp.GradScaler("cpu", init_scale=4.0)
    assert scaler.get_scale() == 4.0 and scaler.is_enabled()
    for early in (lambda: scaler.step(optimizer), lambda: scaler.unscale_(optimizer), scaler.update):
        with pytest.raises(AssertionError):
            early()
    nested = scaler.scale([p.sum(), (p.sum(),)])
    assert [nested[0].item(), nested[1][0].item()] == [8.0, 8.0]
    with pytest.raises(ValueError):
        scaler.scale(3)
    with pytest.raises(AssertionError):
        scaler.update()
    nested[0].backward()
    scaler.unscale_(optimizer)
    assert p.grad.tolist() == [1.0, 1.0]
    for again in (lambda: scaler.unscale_(optimizer), lambda: scaler.step(optimizer, closure=lambda: 1)):
        with pytest.raises(RuntimeError):
            again()
    scaler.step(optimizer)
    for again in (lambda: scaler.unscale_(optimizer), lambda: scaler.step(optimizer)):
        with pytest.raises(RuntimeError):
            again()
    with pytest.raises(AssertionError):
        pickle.dumps(scaler)
    scaler.update(3.0)
    assert scaler.get_scale() == 3.0
    scaler.update(m.tensor(5.0))
    other = m.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == copy.deepcopy(scaler).state_dict() == pickle.loads(pickle.dumps(scaler)).state_dict()
    off = m.amp.GradScaler("cpu", enabled=False)
    assert off.state_dict() == {} and off.get_scale() == 1.0 and off.scale(p) is p
    with pytest.raises(RuntimeError):
        other.load_state_dict({})
    with pytest.raises(AssertionError):
        m.amp.GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError):
        m.amp.GradScaler("cpu", backoff_factor=1.0)
    half = m.ones(2, dtype=m.float16, requires_grad=True)
    half.grad = m.ones(2, dtype=m.float16)
    with pytest.raises(ValueError):
        scaler.unscale_(m.optim.SGD([half], lr=0.1))


def test_scaler_state_goes_both_ways():
    theirs, ours = torch.amp.GradScaler("cpu", init_scale=32.0), lucid.amp.GradScaler("cpu")
    ours.load_state_dict(theirs.state_dict())
    assert ours.state_dict() == theirs.state_dict()
    ours.set_growth_factor(3.0)
    ours.set_backoff_factor(0.25)
    ours.set_growth_interval(7)
    theirs.load_state_dict(ours.state_dict())
    assert (theirs.get_growth_factor(), theirs.get_backoff_factor(), theirs.get_growth_interval()) == (3.0, 0.25, 7)


# --- deterministic algorithms ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("m", [lucid, torch], ids=["lucid", "torch"])
def test_deterministic_algorithms(m):
    def put(**options):
        return m.zeros(3).put_(m.tensor([1]), m.tensor([5.0]), **options).tolist()

    try:
        m.use_deterministic_algorithms(True)
        assert m.are_deterministic_algorithms_enabled() and not m.is_deterministic_algorithms_warn_only_enabled()
        assert m.get_deterministic_debug_mode() == 2
        with pytest.raises(RuntimeError, match="does not have a deterministic implementation"):
            put()
        assert put(accumulate=True) == [0.0, 5.0, 0.0]
        m.manual_seed(0)
        m.nn.functional.dropout(m.ones(5))  # seeded
        assert m.isnan(m.empty(3)).all() and m.isnan(m.empty_like(m.ones(2))).all()
        assert m.isnan(m.empty(2, dtype=m.complex64).real).all() and m.isnan(m.ones(1).new_empty(2)).all()
        assert m.empty(2, dtype=m.int32).tolist() == [2**31 - 1] * 2 and m.empty(1, dtype=m.uint8).item() == 255
        assert m.empty(1, dtype=m.bool).item() is True
        m.use_deterministic_algorithms(True, warn_only=True)
        assert m.is_deterministic_algorithms_warn_only_enabled() and m.get_deterministic_debug_mode() == 1
        with pytest.warns(UserWarning, match="deterministic"):
            assert put() == [0.0, 5.0, 0.0]
        for mode, level in (("default", 0), ("warn", 1), ("error", 2), (1, 1), (2, 2), (0, 0)):
            m.set_deterministic_debug_mode(mode)
            assert m.get_deterministic_debug_mode() == level
        for bad, kind in (("no", RuntimeError), (3, RuntimeError), (1.0, TypeError)):
            with pytest.raises(kind):
                m.set_deterministic_debug_mode(bad)
    finally:
        m.use_deterministic_algorithms(False)
    assert not m.are_deterministic_algorithms_enabled()
    assert put() == [0.0, 5.0, 0.0]
