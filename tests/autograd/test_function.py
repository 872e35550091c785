"""User-defined Functions, saved_tensors_hooks and anomaly mode against PyTorch."""

import pytest

import lucid

from .programs import Programs, leaf, names, plain

suite = Programs()
program, error = suite.program, suite.error


# --- saved_tensors_hooks, anomaly mode ----------------------------------------------------------------------------------------


@program
def packing(L):
    seen = []
    x = leaf(L, 1.0, 2.0)
    with L.autograd.graph.saved_tensors_hooks(
        lambda t: seen.append(("pack", plain(t))) or t * 2,
        lambda t: seen.append(("unpack", plain(t))) or t / 2,
    ):
        y = x.exp() * x
    z = y * y
    z.sum().backward()
    return sorted(map(str, seen)), x.grad


@program
def packing_and_second_derivatives(L):
    x = leaf(L, 1.0, 2.0)
    with L.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = x * x * x
        (g,) = L.autograd.grad(y.sum(), x, create_graph=True)
        return L.autograd.grad(g.sum(), x)


@error("unpack fails")
def unpacking_raises(L):
    def unpack(t):
        raise RuntimeError("unpack fails")

    x = leaf(L, 1.0, 2.0)
    with L.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        y = x * x
    y.sum().backward()


@error("pack fails")
def packing_raises(L):
    def pack(t):
        raise RuntimeError("pack fails")

    x = leaf(L, 1.0, 2.0)
    with L.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        x * x


@error("Function 'DivBackward0' returned nan values in its 1th output.")
def anomaly_names_the_node(L):
    with L.autograd.set_detect_anomaly(True):
        x = leaf(L, 0.0, 1.0)
        (x * 0 / x).sum().backward()


@program
def anomaly_without_nan_check(L):
    with L.autograd.set_detect_anomaly(True, check_nan=False):
        x = leaf(L, 0.0, 1.0)
        y = (x * 0 / x).sum()
        y.backward()
        return "traceback_" in y.grad_fn.metadata, x.grad


def test_anomaly_tells_where_it_was_recorded():
    x = lucid.tensor([0.0], requires_grad=True)
    with (
        lucid.autograd.set_detect_anomaly(True),
        pytest.warns(UserWarning, match="(?s)Error detected in DivBackward0.*x [*] 0 / x"),
    ):
        y = (x * 0 / x).sum()
        with pytest.raises(RuntimeError, match="nan"):
            y.backward()


# --- Function -----------------------------------------------------------------------------------------------------------------


def cube(L, calls=None):
    class Cube(L.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor=1.0, name=None):
            ctx.save_for_backward(x)
            ctx.factor = factor
            if calls is not None:
                calls.append((L.is_grad_enabled(), ctx.needs_input_grad, name))
            return x * x * x * factor

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * x * x * g * ctx.factor, None, None

    return Cube


@program
def function_basics(L):
    calls = []
    x = leaf(L, 2.0, 3.0)
    y = cube(L, calls).apply(x, 2.0, "n")
    y.sum().backward()
    return y, x.grad, calls, type(y.grad_fn).__name__, y.grad_fn.name(), names(y.grad_fn)


@program
def function_differentiated_twice(L):
    x = leaf(L, 2.0, 3.0)
    (g,) = L.autograd.grad(cube(L).apply(x, 2.0).sum(), x, create_graph=True)
    return g.detach(), L.autograd.grad(g.sum(), x)


@program
def function_that_saves_its_output(L):
    class Exp(L.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y, None)
            return y

        @staticmethod
        def backward(ctx, g):
            y, nothing = ctx.saved_tensors
            assert nothing is None
            return g * y

    x = leaf(L, 0.5, 1.0)
    y = Exp.apply(x)
    (g,) = L.autograd.grad(y.sum(), x, create_graph=True)
    same = y.grad_fn.saved_tensors[0].grad_fn is y.grad_fn
    return L.autograd.grad(g.sum(), x), same


@program
def function_with_setup_context(L):
    class Scale(L.autograd.Function):
        @staticmethod
        def forward(x, w, power=2):
            return x * w**power

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, w, power = inputs
            ctx.save_for_backward(x, w)
            ctx.power = power

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return g * w**ctx.power, (g * x * ctx.power * w).sum() if ctx.needs_input_grad[1] else None, None

    x, w = leaf(L, 1.0, 2.0), L.tensor(3.0, requires_grad=True)
    Scale.apply(x, w).sum().backward()
    Scale.apply(x, w.detach(), 3).sum().backward()
    return x.grad, w.grad


@program
def function_with_several_outputs(L):
    got = []

    class Split(L.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            index = x.argmax()
            ctx.mark_non_differentiable(index)
            return x * 2, index, x * 3, "text"

        @staticmethod
        def backward(ctx, a, index, b, text=None):
            got.append([plain(a), plain(b)])
            return a * 2 + b * 3

    x = leaf(L, 1.0, 5.0)
    a, index, b, text = Split.apply(x)
    a.sum().backward(retain_graph=True)
    (a + b).sum().backward()
    return x.grad, index.requires_grad, b.requires_grad, text, got, a.output_nr


@program
def function_without_materialized_gradients(L):
    got = []

    class Two(L.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            got.append((a is None, b is None))
            return a * 2

    x = leaf(L, 1.0, 5.0)
    Two.apply(x)[0].sum().backward()
    return got, x.grad


@program
def function_that_writes_its_input(L):
    class Double(L.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(L, 1.0, 2.0)
    y = x * 3
    z = Double.apply(y)
    v = (x * 3)[:1]
    base = v._base
    u = Double.apply(v)
    (z.sum() + base.sum() * 10).backward()
    return z is y, u is v, y, x.grad, type(y.grad_fn).__name__, type(base.grad_fn).__name__


@program
def function_that_returns_its_input(L):
    class Same(L.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 10

    x = leaf(L, 1.0, 2.0)
    y = Same.apply(x)
    (y.sum() + x.sum()).backward()
    return y is x, y._base is x, x.grad, x.is_leaf, type(y.grad_fn).__name__


@error("This view was created inside a custom Function")
def write_to_a_view_made_by_a_function(L):
    class View(L.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view(-1)

        @staticmethod
        def backward(ctx, g):
            return g

    View.apply(leaf(L, 1.0, 2.0) * 1).mul_(2)


@program
def function_without_recording(L):
    calls = []
    x = leaf(L, 1.0, 2.0)
    with L.no_grad():
        y = cube(L, calls).apply(x)
    z = cube(L, calls).apply(x.detach())
    return y.requires_grad, z.requires_grad, y.grad_fn, calls


@program
def function_among_hooks_and_subsets(L):
    x = leaf(L, 1.0, 2.0)
    y = cube(L).apply(x)
    y.register_hook(lambda g: g * 10)
    y.grad_fn.register_hook(lambda i, o: None)
    return L.autograd.grad(y.sum(), x), y.grad_fn is y.grad_fn


@program
def functions_and_saved_tensors_hooks(L):
    seen = []
    x = leaf(L, 1.0, 2.0)
    with L.autograd.graph.saved_tensors_hooks(lambda t: seen.append("pack") or t * 2, lambda t: seen.append("unpack") or t / 2):
        y = cube(L).apply(x)
    y.sum().backward()
    return seen, x.grad


@program
def function_runs_backward_inside(L):
    class Inner(L.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with L.enable_grad():
                ctx.x = x.detach().requires_grad_()
                ctx.y = ctx.x * ctx.x
            return ctx.y.detach()

        @staticmethod
        def backward(ctx, g):
            ctx.y.backward(g)
            return ctx.x.grad

    x = leaf(L, 1.0, 2.0)
    (Inner.apply(x * 3) * 2).sum().backward()
    return x.grad


@program
def once_differentiable(L):
    class Square(L.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @L.autograd.function.once_differentiable
        def backward(ctx, g):
            return ctx.saved_tensors[0] * 2 * g

    x = leaf(L, 1.0, 2.0)
    Square.apply(x).sum().backward()
    (g,) = L.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
    try:
        g.sum().backward()
    except RuntimeError as problem:
        return x.grad, str(problem)


def one_function(L, forward=None, backward=None):
    return type(
        "Odd",
        (L.autograd.Function,),
        {
            "forward": staticmethod(forward or (lambda ctx, x, *rest: x * 2)),
            **({"backward": staticmethod(backward)} if backward else {}),
        },
    )


@error("mine")
def function_raises_in_backward(L):
    def backward(ctx, g):
        raise ValueError("mine")

    one_function(L, backward=backward).apply(leaf(L, 1.0)).backward()


@error("function OddBackward returned an incorrect number of gradients (expected 2, got 1)")
def function_returns_too_few(L):
    one_function(L, backward=lambda ctx, g: g).apply(leaf(L, 1.0), 3).backward()


@error("function OddBackward returned a gradient different than None at position 2")
def function_returns_a_gradient_for_a_number(L):
    one_function(L, backward=lambda ctx, g: (g, g)).apply(leaf(L, 1.0), 3).backward()


@error("Function OddBackward returned an invalid gradient at index 0 - got [7] but expected shape compatible with [3]")
def function_returns_another_shape(L):
    one_function(L, backward=lambda ctx, g: L.ones(7)).apply(leaf(L, 1.0, 2.0, 3.0)).sum().backward()


@error("expected Variable or None (got int)")
def function_returns_a_number(L):
    one_function(L, backward=lambda ctx, g: 6).apply(leaf(L, 1.0)).backward()


@error("You must implement the forward function for custom autograd.Function.")
def function_without_forward(L):
    L.autograd.Function.apply(L.ones(1))


@error("You must implement either the backward or vjp method for your custom autograd.Function")
def function_without_backward(L):
    one_function(L).apply(leaf(L, 1.0)).backward()


@error("save_for_backward can only save variables, but argument 0 is of type int")
def function_saves_a_number(L):
    one_function(L, forward=lambda ctx, x: (ctx.save_for_backward(3), x * 2)[1]).apply(leaf(L, 1.0))


@error("Some elements marked as dirty during the forward method were not returned as output")
def dirty_is_not_returned(L):
    one_function(L, forward=lambda ctx, x: (ctx.mark_dirty(x), x * 2)[1]).apply(leaf(L, 1.0) * 1)


@error("a leaf Variable that requires grad has been used in an in-place operation.")
def dirty_leaf(L):
    one_function(L, forward=lambda ctx, x: (x.mul_(2), ctx.mark_dirty(x))[0]).apply(leaf(L, 1.0))


@error("has been modified by an inplace operation")
def saved_by_a_function_and_written(L):
    x, w = leaf(L, 1.0), L.ones(1)
    f = one_function(
        L,
        forward=lambda ctx, x, w: (ctx.save_for_backward(w), x * w)[1],
        backward=lambda ctx, g: (g * ctx.saved_tensors[0], None),
    )
    y = f.apply(x, w)
    w.add_(1)
    y.backward()


@error("Trying to backward through the graph a second time")
def function_twice(L):
    y = cube(L).apply(leaf(L, 1.0)).sum()
    y.backward()
    y.backward()


def of_nothing(L, materialize, log, outputs=1):
    """A function that gets no gradient, because the backward of the next function returns None."""

    class Stops(L.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return None

    class Hears(L.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 2 if outputs == 1 else (x * 2, x * 3)

        @staticmethod
        def backward(ctx, *gs):
            log.append(["function", *gs])
            return None if gs[0] is None else gs[0] * 2

    x = leaf(L, 1.0, 2.0)
    y = Hears.apply(x) if outputs == 1 else Hears.apply(x)[0]
    y.register_hook(lambda g: log.append(["y", g]))
    x.register_hook(lambda g: log.append(["x", g]))
    x.register_post_accumulate_grad_hook(lambda x: log.append(["after", x.grad]))
    return x, Stops.apply(y * 1)


@program
def gradients_that_do_not_arrive(L):
    log = []
    for materialize in (True, False):
        for outputs in (1, 2):
            x, z = of_nothing(L, materialize, log, outputs)
            z.sum().backward(retain_graph=True)
            log.append([x.grad, *L.autograd.grad(z.sum(), x, allow_unused=True)])
    x = leaf(L, 1.0, 2.0)
    first, second = x.unbind(0)
    second.register_hook(lambda g: log.append(["second", g]))
    first.backward()
    return log


@error("can't replace a None gradient")
def nothing_cannot_be_replaced(L):
    first, second = leaf(L, 1.0, 2.0).unbind(0)
    second.register_hook(lambda g: L.ones(()))
    first.backward()


@program
def a_leaf_that_wants_no_gradient_any_more(L):
    x, y = leaf(L, 1.0), leaf(L, 2.0)
    z = (x * y).sum() * 3
    x.requires_grad_(False)
    y.detach_()
    z.backward()
    return x.grad, y.grad


@error("a second time")
def a_number_is_saved_too(L):
    y = leaf(L, 1.0) * 2
    y.sum().backward()
    y.sum().backward()


@program
def an_addend_is_not_saved(L):
    x = leaf(L, 1.0)
    y = (x + 2).lerp(L.ones(1), 0.5)
    y.sum().backward()
    y.sum().backward()
    return x.grad


@program
def views_in_inference_mode(L):
    with L.inference_mode():
        x, own = leaf(L, 1.0, 2.0), L.ones(2)
    y = L.ones(2, 2)
    with L.inference_mode():
        views = [y.T, y.reshape(-1), y.flatten(), y.view_as(y), y.movedim(0, 1), y[0], own.reshape(1, 2), x[0]]
    return [[v.is_inference(), v._base is None, v.requires_grad] for v in views]


@error("Inference tensors cannot be saved")
def inference_tensors_are_not_saved(L):
    with L.inference_mode():
        x = L.ones(2)

    class Saves(L.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2, None

    Saves.apply(leaf(L, 1.0, 2.0), x)


@error("When use_reentrant=True")
def reentrant_checkpoints_need_all_gradients(L):
    x = leaf(L, 1.0)
    y = L.utils.checkpoint.checkpoint(lambda v: v * v, x, use_reentrant=True)
    y.sum().backward(inputs=[x])


test_program, test_error, test_nothing_leaks = suite.tests()
