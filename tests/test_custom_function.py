"""autograd.Function: the same classes in both libraries do the same."""

import pytest
import torch

import lucid

from .oracle import leaf, outcome


def square(m):
    class Square(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    return Square


def function_works(m):
    x = leaf(m)
    y = square(m).apply(x)
    y.sum().backward()
    return y, x.grad, type(y.grad_fn).__name__, y.grad_fn.name()


def function_second_gradient(m):
    x = leaf(m)
    (g,) = m.autograd.grad(square(m).apply(x).sum(), x, create_graph=True)
    return g, m.autograd.grad(g.sum(), x)


def function_setup_context(m):
    class Scale(m.autograd.Function):
        @staticmethod
        def forward(x, factor):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.factor = inputs

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, None

    x = leaf(m)
    Scale.apply(x, 3).sum().backward()
    return x.grad


def function_several_outputs(m):
    seen = []

    class Both(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 2, y * 3

        @staticmethod
        def backward(ctx, a, b):
            seen.append((ctx.needs_input_grad, a, b))
            return a * 2, b * 3

    x, y = leaf(m), m.ones(3)
    p, q = Both.apply(x, y)
    p.sum().backward()
    return seen, x.grad, y.grad


def function_unmaterialized(m):
    seen = []

    class Both(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            seen.append((a is None, b is None))
            return b * 3

    x = leaf(m)
    Both.apply(x)[1].sum().backward()
    return seen, x.grad


def function_marks_dirty(m):
    class AddOne(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 5

    x = leaf(m)
    y = x * 2
    z = AddOne.apply(y)
    z.sum().backward()
    return z is y, y, x.grad


def function_marks_non_differentiable(m):
    class Sorted(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            marks = x * 0
            ctx.mark_non_differentiable(marks)
            return x * 2, marks

        @staticmethod
        def backward(ctx, g, unused):
            return g * 2

    x = leaf(m)
    y, marks = Sorted.apply(x)
    y.sum().backward()
    return y.requires_grad, marks.requires_grad, x.grad


def once(m):
    class Once(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @m.autograd.function.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    return Once


def function_once(m):
    x = leaf(m)
    once(m).apply(x).sum().backward()
    return x.grad


def function_once_is_not_twice(m):
    x = leaf(m)
    (g,) = m.autograd.grad(once(m).apply(x).sum(), x, create_graph=True)
    m.autograd.grad(g.sum(), x)


def function_wrong_number_of_gradients(m):
    class Bad(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g, g

    Bad.apply(leaf(m)).sum().backward()


def function_gradient_of_wrong_shape(m):
    class Bad(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return m.ones(7)

    Bad.apply(leaf(m)).sum().backward()


def function_backward_raises(m):
    class Bad(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise ValueError("mine")

    Bad.apply(leaf(m)).sum().backward()


def function_records_nothing_inside(m):
    seen = []

    class Look(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            seen.append(m.is_grad_enabled())
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append(m.is_grad_enabled())
            return g

    Look.apply(leaf(m)).sum().backward()
    return seen


def function_without_gradients(m):
    y = square(m).apply(m.ones(3))
    with m.no_grad():
        z = square(m).apply(leaf(m))
    return y, z


@pytest.mark.parametrize(
    "function",
    [
        function_works,
        function_second_gradient,
        function_setup_context,
        function_several_outputs,
        function_unmaterialized,
        function_marks_dirty,
        function_marks_non_differentiable,
        function_once,
        function_once_is_not_twice,
        function_wrong_number_of_gradients,
        function_gradient_of_wrong_shape,
        function_backward_raises,
        function_records_nothing_inside,
        function_without_gradients,
    ],
)
def test_function(function):
    assert outcome(function, lucid) == outcome(function, torch)
