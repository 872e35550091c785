"""In-place writes, views and the modes against PyTorch."""

from .programs import Programs, leaf, names, plain

suite = Programs()
program, error = suite.program, suite.error


# --- in place -----------------------------------------------------------------------------------------------------------------


@program
def in_place_on_a_result(L):
    x = leaf(L, 1.0, 2.0)
    y = x * 3
    y.mul_(2).add_(1)
    y *= y.detach().clone()
    y.sum().backward()
    return y, x.grad, type(y.grad_fn).__name__


@program
def overwritten_input_is_kept_as_a_copy(L):
    x, w = leaf(L, 1.0, 2.0), leaf(L, 3.0, 4.0)
    y = x * 1
    y.mul_(w)
    y.sum().backward()
    return x.grad, w.grad


@program
def in_place_makes_a_constant_require_grad(L):
    y, w = L.ones(2), leaf(L, 3.0, 4.0)
    y.mul_(w)
    y.sum().backward()
    return y.requires_grad, w.grad


@error("has been modified by an inplace operation")
def a_copy_into_what_made_it(L):
    x = L.ones(2)
    w = leaf(L, 3.0, 4.0)
    y = x * w
    x.copy_(y)
    x.sum().backward()
    return w.grad


@error("a leaf Variable that requires grad is being used in an in-place operation.")
def in_place_on_a_leaf(L):
    leaf(L, 1.0).add_(1)


@error("a view of a leaf Variable that requires grad is being used in an in-place operation.")
def in_place_on_a_view_of_a_leaf(L):
    leaf(L, 1.0, 2.0)[:1].add_(1)


@error("a view of a leaf Variable that requires grad is being used in an in-place operation.")
def in_place_on_a_view_that_is_a_leaf(L):
    L.zeros(4).reshape(2, 2).requires_grad_().add_(1)


@program
def in_place_without_recording(L):
    x = leaf(L, 1.0, 2.0)
    with L.no_grad():
        x.add_(1)
        x[0] = 7
    return x.detach(), x.grad_fn, x.is_leaf, x._version


@error("has been modified by an inplace operation")
def saved_output_was_written(L):
    x = leaf(L, 1.0, 2.0)
    y = x.exp()
    y.add_(1)
    y.sum().backward()


@error("is at version 1; expected version 0 instead")
def saved_input_was_written(L):
    x, w = leaf(L, 1.0, 2.0), L.ones(2)
    y = x * w
    w.add_(1)
    y.sum().backward()


@error("is at version 2; expected version 0 instead")
def saved_leaf_was_written(L):
    x = leaf(L, 1.0, 2.0)
    y = x * x
    with L.no_grad():
        x.add_(1).add_(1)
    y.sum().backward()


@program
def data_does_not_share_the_version(L):
    x, w = leaf(L, 1.0, 2.0), L.ones(2)
    y = x * w
    w.data.add_(1)
    y.sum().backward()
    return x.grad, w._version


@error("has been modified by an inplace operation")
def detach_shares_the_version(L):
    x, w = leaf(L, 1.0, 2.0), L.ones(2)
    y = x * w
    w.detach().add_(1)
    y.sum().backward()


@program
def writing_through_detach_leaves_history_alone(L):
    x, w = leaf(L, 1.0, 2.0), leaf(L, 3.0, 4.0)
    y = x + 1
    d = y.detach()
    d.mul_(w)
    (y.sum() + d.sum() * 10).backward()
    return y, d, x.grad, w.grad


@error("is at version 3; expected version 2 instead")
def an_operand_shares_memory_with_what_is_written(L):
    y = leaf(L, 1.0, 2.0) * 3
    y.mul_(2).add_(1)
    y.mul_(y.detach())
    y.sum().backward()


@error("functions with out=... arguments don't support automatic differentiation")
def out_while_recording(L):
    L.mul(leaf(L, 1.0), 2, out=L.ones(1))


# --- views --------------------------------------------------------------------------------------------------------------------


@program
def write_through_a_view(L):
    x, w = leaf(L, 1.0, 2.0, 3.0), leaf(L, 10.0)
    y = x * 2
    v = y[1:2]
    v.mul_(w)
    (y * y).sum().backward()
    return y, x.grad, w.grad, type(y.grad_fn).__name__, type(v.grad_fn).__name__, names(y.grad_fn)[:1], names(v.grad_fn)


@program
def the_view_is_used_afterwards(L):
    x, w = leaf(L, 1.0, 2.0, 3.0), leaf(L, 10.0)
    y = x * 2
    v = y[1:2]
    v.mul_(w)
    (v * v).sum().backward()
    return x.grad, w.grad


@program
def the_base_is_written_and_its_views_see_it(L):
    x = leaf(L, 1.0, 2.0, 3.0)
    y = x * 2
    v, u = y[1:], y.view(3, 1).expand(3, 2)
    y.mul_(x)
    (v * v).sum().backward(retain_graph=True)
    first = x.grad.clone()
    u.sum().backward()
    return first, x.grad, type(v.grad_fn).__name__


@program
def a_constant_base_gets_history_through_a_view(L):
    b, w = L.zeros(2, 3), leaf(L, 1.0, 2.0, 3.0)
    early, row = b[:, 1], b[1]
    before = b.requires_grad, early.requires_grad
    row.add_(w)
    after = b.requires_grad, early.requires_grad, row.requires_grad, early.is_leaf
    (b * 2).sum().backward(retain_graph=True)
    first = w.grad.clone()
    (early * 5).sum().backward()
    return before, after, first, w.grad


@program
def setitem_records(L):
    x, w = L.zeros(3, 3), leaf(L, 1.0, 2.0, 3.0)
    for i in range(3):
        x[i] = w * (i + 1)
    x[:, 1] = w.sum()
    (x * x).sum().backward()
    return x, w.grad


@program
def writes_through_every_kind_of_view(L):
    out = []
    for view in (
        lambda t: t.t(),
        lambda t: t[1:, ::2],
        lambda t: t.view(-1)[2:5],
        lambda t: t.permute(1, 0)[1],
        lambda t: t.unsqueeze(0).squeeze(),
        lambda t: t.diagonal(),
        lambda t: t.as_strided((2, 2), (3, 1), 1),
        lambda t: t.select(0, 1).narrow(0, 1, 2),
    ):
        x = L.arange(9.0).reshape(3, 3).requires_grad_()
        w = L.tensor(3.0, requires_grad=True)
        y = x * 2
        v = view(y)
        v.mul_(w).add_(1)
        (y * y + y).sum().backward()
        out.append((y.detach(), x.grad, w.grad))
    return out


@program
def writes_through_views_of_bases_that_are_not_contiguous(L):
    x = L.arange(6.0).reshape(2, 3).requires_grad_()
    w = leaf(L, 2.0, 3.0)
    y = x.t() * 1  # strides (1, 3)
    v = y[1]
    v.mul_(w)
    (y * y).sum().backward()
    return list(y.stride()), y, x.grad, w.grad


@program
def a_row_of_writes_through_views(L):
    x = leaf(L, 1.0, 2.0, 3.0, 4.0)
    y = x * 1
    a, b = y[:3], y[1:]
    a.mul_(2)
    b.mul_(a.detach()[0].clone())
    c = a[1:]
    c.mul_(b[:2].clone())
    (y * L.tensor([1.0, 10.0, 100.0, 1000.0])).sum().backward()
    return y, x.grad


@program
def second_derivative_through_written_views(L):
    x = leaf(L, 1.0, 2.0, 3.0)
    y = x * x
    y[1:].mul_(x[:2])
    (g,) = L.autograd.grad((y * y).sum(), x, create_graph=True)
    return g.detach(), L.autograd.grad((g * g).sum(), x)


@program
def hooks_and_written_views(L):
    seen = []
    x = leaf(L, 1.0, 2.0)
    y = x * 2
    v = y[:1]
    v.mul_(3)
    v.register_hook(lambda g: seen.append(plain(g)))
    (v * 5).sum().backward()
    return seen, x.grad


@program
def a_base_is_written_with_a_view_of_itself(L):
    w = leaf(L, 1.0, 2.0)
    base = w * 3
    view = base.view(2)
    base.add_(view)
    (view * view).sum().backward()
    return base, w.grad


@program
def in_place_calls_that_change_the_shape(L):
    x = L.ones(2, 3, requires_grad=True)
    y = x * 2
    y.t_()
    (y * L.arange(6.0).reshape(3, 2)).sum().backward()
    z = x * 1
    v = z[0]
    v.unsqueeze_(0)
    v.mul_(3)
    z.sum().backward()
    return x.grad, v, list(v.shape), z


@program
def writes_to_parts_of_complex_numbers(L):
    x = L.ones(3, dtype=L.complex64, requires_grad=True)
    y = x * (2 + 1j)
    y.real.mul_(3)
    (y * y.conj()).real.sum().backward()
    return [(c.real, c.imag) for c in x.grad.tolist()], type(y.grad_fn).__name__


@program
def writes_by_index(L):
    x, w = leaf(L, 1.0, 2.0, 3.0), L.tensor(2.0, requires_grad=True)
    y = x * 1
    y[L.tensor([True, False, True])] = w
    y[L.tensor([1, 1])] *= 5
    (y * y).sum().backward()
    z = x * 1
    z.fill_(w).add_(x)
    z.sum().backward()
    return y, x.grad, w.grad


@error("is a view and is being modified inplace. This view is the output of a function that returns multiple views")
def write_to_one_of_several_views(L):
    (leaf(L, 1.0, 2.0) * 1).unbind(0)[0].mul_(2)


@error("is a view and its base or another view of its base has been modified inplace")
def base_of_several_views_was_written(L):
    y = leaf(L, 1.0, 2.0) * 1
    a, _ = y.unbind(0)
    y.mul_(2)
    return a.grad_fn


@error("A view was created in no_grad mode and is being modified inplace with grad mode enabled")
def write_to_a_view_made_without_recording(L):
    y = leaf(L, 1.0, 2.0) * 1
    with L.no_grad():
        v = y[:1]
    v.mul_(2)


@error("A view was created in inference mode and is being modified inplace in normal mode")
def write_to_a_view_made_in_inference_mode(L):
    y = leaf(L, 1.0, 2.0) * 1
    with L.inference_mode():
        v = y[:1]
    v.mul_(2)


@program
def views_made_without_recording_have_no_history(L):
    x = leaf(L, 1.0, 2.0)
    with L.no_grad():
        v = x[:1]
    y = v * 2
    y.sum().backward()
    return v.requires_grad, v.grad_fn, v.is_leaf, v._base is x, names(y.grad_fn)[0], x.grad, v.grad


@error("A view was created in no_grad mode and its base or another view of its base has been modified inplace with grad mode")
def base_of_a_view_made_without_recording_was_written(L):
    x = leaf(L, 1.0, 2.0)
    with L.no_grad():
        v = x[:1]
        v.mul_(2)
    return v.grad_fn


# --- modes --------------------------------------------------------------------------------------------------------------------


@program
def inference_tensors(L):
    x = leaf(L, 1.0, 2.0)
    with L.inference_mode():
        a, v = x * 2, x[:1]
        a.add_(1)
    w = a + 1  # allowed: nothing is recorded
    return a.is_inference(), v.is_inference(), a.requires_grad, w.is_inference(), w, a[:1].is_inference()


@error("Inplace update to inference tensor outside InferenceMode is not allowed")
def write_to_an_inference_tensor(L):
    with L.inference_mode():
        a = L.ones(2)
    a.add_(1)


@error("Inference tensors cannot be saved for backward")
def save_an_inference_tensor(L):
    with L.inference_mode():
        a = L.ones(2)
    leaf(L, 1.0, 2.0) * a


@error("Inference tensors do not track version counter")
def version_of_an_inference_tensor(L):
    with L.inference_mode():
        a = L.ones(2)
    return a._version


@error("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed")
def inference_tensor_that_requires_grad(L):
    with L.inference_mode():
        a = L.ones(2)
    a.requires_grad_()


@error("you can only change requires_grad flags of leaf variables")
def requires_grad_of_a_result(L):
    (leaf(L, 1.0) * 2).requires_grad_(False)


@error("floating point")
def integers_that_require_grad(L):
    L.tensor([1]).requires_grad_()


@program
def detached(L):
    x = leaf(L, 1.0, 2.0)
    y = x * 2
    d = y.detach()
    y2 = (x * 3).detach_()
    return d.requires_grad, d.grad_fn, d._version, y2.requires_grad, y2.is_leaf


test_program, test_error, test_nothing_leaks = suite.tests()
