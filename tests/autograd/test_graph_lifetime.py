"""What autograd keeps alive, and for how long; threads, interrupts, and memory that runs out."""

import gc
import signal
import threading
import weakref

import pytest

import lucid

from .programs import blocks
from .test_function import cube


def test_an_error_leaves_no_gradient_behind():
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    w = lucid.tensor([3.0, 4.0], requires_grad=True)
    a, b = x * 2, w * 3
    y = (a * b + a).sum()
    boom = a.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.backward(retain_graph=True)
    boom.remove()
    x.grad = w.grad = None
    y.backward()
    assert x.grad.tolist() == [20.0, 26.0] and w.grad.tolist() == [6.0, 12.0]


def test_backward_can_be_interrupted():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    x = lucid.tensor([1.0], requires_grad=True)
    y = x
    for _ in range(1000):
        y = y + 1
    y.register_hook(lambda g: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        y.backward()
    signal.signal(signal.SIGINT, before)


def test_threads_accumulate_into_one_leaf():
    x = lucid.ones(1000, requires_grad=True)

    def work():
        for _ in range(50):
            (x * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert x.grad.tolist() == [400.0] * 1000


def test_threads_run_backward_over_one_graph():
    x = lucid.ones(100_000, requires_grad=True)
    y = x
    for _ in range(20):
        y = y * 1.0 + 0.0
    y = y.sum()
    found = []

    def work():
        for _ in range(5):
            found.append(lucid.autograd.grad(y, x, retain_graph=True)[0].sum().item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [100_000.0] * 20


def test_a_retained_tensor_may_die():
    x = lucid.tensor([1.0], requires_grad=True)
    y = x * 2
    y.retain_grad()
    z = y * 3
    del y
    z.backward()
    assert x.grad.tolist() == [6.0]


def test_dead_cycles_through_nodes_are_collected():
    x = lucid.tensor([1.0], requires_grad=True)
    y = x * 2
    fn = y.grad_fn
    fn.metadata["y"] = [y]
    ref = weakref.ref(y)
    del y, fn
    gc.collect()
    assert ref() is None


def test_ctx_that_holds_its_output():
    class Keep(lucid.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.y = x * 2
            ctx.save_for_backward(ctx.y)
            return ctx.y

        @staticmethod
        def backward(ctx, g):
            return g * 2

    before = blocks()
    x = lucid.tensor([1.0], requires_grad=True)
    y = Keep.apply(x)
    y.backward(retain_graph=True)
    assert x.grad.tolist() == [2.0]
    ref = weakref.ref(y)
    del x, y
    assert blocks() == before and ref() is None


def test_grad_fn_of_a_function_knows_when_its_node_is_gone():
    y = cube(lucid).apply(lucid.tensor([1.0], requires_grad=True))
    fn = y.grad_fn
    del y
    with pytest.raises(RuntimeError, match="gone"):
        fn.next_functions  # noqa: B018


def test_nodes_keep_their_graph():
    y = (lucid.tensor([1.0], requires_grad=True) * 2).exp()
    fn = y.grad_fn
    del y
    end = fn.next_functions[0][0].next_functions[0][0]
    del fn
    gc.collect()
    assert end.variable.tolist() == [1.0]


def test_memory_is_freed_as_backward_goes():
    x = lucid.ones(1000, requires_grad=True)
    y = x
    for _ in range(50):
        y = y.exp() * 0.1
    seen = []
    y.register_hook(lambda g: seen.append(lucid._C.live_blocks()))
    x.register_hook(lambda g: seen.append(lucid._C.live_blocks()))
    y.sum().backward()
    assert seen[1] < seen[0]


@pytest.mark.parametrize("n", range(1, 60))
def test_any_allocation_may_fail(n):
    def work():
        x = lucid.tensor([1.0, 2.0], requires_grad=True)
        y = x * x
        y[1:].mul_(3)
        y.retain_grad()
        (y.exp() + x).sum().backward()
        return x.grad.tolist(), y.grad.tolist()

    expected = work()
    before = blocks()
    lucid._C._fail_allocation(n)
    try:
        assert work() == expected
    except (lucid.OutOfMemory, MemoryError):
        pass
    finally:
        lucid._C._fail_allocation(0)
    assert blocks() == before


def kept_bytes(make):
    """What stays allocated for the gradient of make(), beyond its result."""
    before = lucid.memory_stats()["allocated_bytes"]
    y = make()
    gc.collect()
    return lucid.memory_stats()["allocated_bytes"] - before - y.numel() * y.element_size()


def test_operands_are_kept_only_for_gradients_that_are_wanted():
    x, w = lucid.ones(1000), lucid.ones(1000, requires_grad=True)
    square = lucid.ones(30, 30, requires_grad=True)
    temporary = x.numel() * x.element_size()
    assert kept_bytes(lambda: (x + 1) * w) == temporary  # the gradient of w reads x + 1
    assert kept_bytes(lambda: (w + 1) * x) == 0  # that of w + 1 reads x, and nobody reads w + 1
    assert kept_bytes(lambda: (w + 1) * w) == temporary
    assert kept_bytes(lambda: (w + 1) / 2) == 0
    assert kept_bytes(lambda: lucid.addmm(square + 1, lucid.ones(30, 30), square)) == 30 * 30 * 4
    y = x * w
    assert y.grad_fn._saved_self is not None and y.grad_fn._saved_other is None


def test_an_in_place_call_copies_what_it_overwrites_only_if_it_is_read():
    x, w = lucid.ones(1000), lucid.ones(1000, requires_grad=True)
    y = w + 1
    before = lucid.memory_stats()["allocated_bytes"]
    y.mul_(x)
    assert lucid.memory_stats()["allocated_bytes"] == before
    y.mul_(w)
    assert lucid.memory_stats()["allocated_bytes"] == before + 4000
