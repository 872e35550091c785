"""Recording, backward, hooks and re-entrance against PyTorch: every program runs with both modules."""

from .programs import Programs, leaf, names, plain

suite = Programs()
program, error = suite.program, suite.error


# --- recording ----------------------------------------------------------------------------------------------------------------


@program
def numbers_on_either_side(L):
    x = leaf(L, 1.0, 2.0)
    y = (2 * x + 1.5) / 4 - x * True
    y.sum().backward()
    return y, x.grad


@program
def broadcast_is_summed(L):
    a = L.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    b, c = leaf(L, 1.0, 2.0, 3.0), L.tensor([[2.0], [3.0]], requires_grad=True)
    s = L.tensor(2.0, requires_grad=True)
    (a * b + c * s).sum().backward()
    return a.grad, b.grad, c.grad, s.grad


@program
def gradient_takes_the_dtype_of_its_input(L):
    x, w = leaf(L, 1.0, 2.0), L.tensor([3.0, 4.0], dtype=L.float64, requires_grad=True)
    y = x * w
    y.sum().backward()
    return str(y.dtype).split(".")[-1], str(x.grad.dtype).split(".")[-1], str(w.grad.dtype).split(".")[-1], x.grad, w.grad


@program
def integers_do_not_record(L):
    x = leaf(L, 1.0, 2.0)
    return (x > 1).requires_grad, (x * 2).argmax().requires_grad, (x * 2).requires_grad


@program
def names_and_edges(L):
    x = leaf(L, 1.0, 2.0)
    y = x * 2
    z = (y + x).exp()
    return (
        type(y.grad_fn).__name__,
        y.grad_fn.name(),
        names(y.grad_fn),
        names(z.grad_fn),
        names(z.grad_fn.next_functions[0][0]),
        x.grad_fn,
        x.is_leaf,
        y.is_leaf,
        y.grad_fn is y.grad_fn,
        z.grad_fn.next_functions[0][0].next_functions[0][0] is y.grad_fn,
        y.grad_fn.next_functions[0][0].variable is x,
        hash(y.grad_fn) == hash(y.grad_fn),
        y.grad_fn.metadata,
        y.output_nr,
    )


@program
def output_numbers(L):
    x = L.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True) * 1
    a, b = x.unbind(0)
    return a.output_nr, b.output_nr, a.grad_fn is b.grad_fn, names(b.grad_fn)


@program
def saved_values_can_be_looked_at(L):
    x = leaf(L, 1.0, 2.0)
    y = x * x
    e = x.exp()
    return y.grad_fn._saved_self is x, y.grad_fn._saved_other, e.grad_fn._saved_result, hasattr(y.grad_fn, "_saved_nothing")


@error("Trying to backward through the graph a second time")
def saved_values_are_gone_after_backward(L):
    x = leaf(L, 1.0, 2.0)
    y = x * x
    y.sum().backward()
    return y.grad_fn._saved_self


# --- backward -----------------------------------------------------------------------------------------------------------------


@program
def accumulates_over_runs_and_paths(L):
    x = leaf(L, 1.0, 2.0)
    for _ in range(3):
        y = x * x
        (y + y * x + x).sum().backward()
    return x.grad


@program
def twice_without_saved_values(L):
    x = leaf(L, 1.0, 2.0)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    return x.grad


@program
def retained_graph(L):
    x = leaf(L, 1.0, 2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


@error("Trying to backward through the graph a second time")
def twice(L):
    x = leaf(L, 1.0, 2.0)
    y = (x * x).sum()
    y.backward()
    y.backward()


@program
def several_roots(L):
    x = leaf(L, 1.0, 2.0)
    y = x * x
    L.autograd.backward([y.sum(), y, x], [None, L.tensor([1.0, 10.0]), L.tensor([100.0, 200.0])])
    return x.grad


@program
def same_root_twice(L):
    x = leaf(L, 1.0, 2.0)
    y = (x * x).sum()
    return L.autograd.grad([y, y], x)


@program
def some_inputs_only(L):
    x, w, unused = leaf(L, 1.0, 2.0), leaf(L, 3.0, 4.0), leaf(L, 1.0)
    h = x * w
    y = (h * h + w).sum()
    got = L.autograd.grad(y, [h, w, unused, h], allow_unused=True, retain_graph=True)
    y.backward(inputs=[w, h])
    return got, x.grad, w.grad, h.grad


@program
def only_what_leads_to_the_inputs_runs(L):
    seen = []
    x, w = leaf(L, 1.0, 2.0), leaf(L, 3.0, 4.0)
    a, b = x * 2, w * 3
    a.register_hook(lambda g: seen.append("a"))
    b.register_hook(lambda g: seen.append("b"))
    a.grad_fn.register_hook(lambda i, o: seen.append("A"))
    b.grad_fn.register_hook(lambda i, o: seen.append("B"))
    (a * b).sum().backward(inputs=[x])
    return seen, x.grad, w.grad


@program
def captured_gradients_and_hooks(L):
    x = leaf(L, 1.0, 2.0)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g * 100)
    z = (y * y).sum()
    end = L.autograd.grad(z, y, retain_graph=True)
    through = L.autograd.grad(z, [y, x])
    return end, through, x.grad


@program
def higher_derivatives(L):
    x = leaf(L, 2.0, 3.0)
    y = (x * x * x).sum()
    out = []
    for _ in range(3):
        (y,) = L.autograd.grad(y, x, create_graph=True)
        out.append(y)
        y = y.sum()
    return [o.detach() for o in out]


@program
def create_graph_through_grad(L):
    x = leaf(L, 2.0, 3.0)
    (x * x * x).sum().backward(create_graph=True)
    first = x.grad
    x.grad = None
    first.sum().backward()
    return first.detach(), x.grad, first.requires_grad


@program
def second_derivative_of_what_was_saved_as_output(L):
    x = leaf(L, 0.5, 1.0)
    (g,) = L.autograd.grad((x.exp() * 0.5).tanh().sum(), x, create_graph=True)
    return L.autograd.grad(g.sum(), x)


@program
def gradient_layout(L):
    x = L.zeros(2, 3).t().requires_grad_()
    (x * 2).sum().backward()
    w = L.zeros(2, 3, requires_grad=True)
    (w.t() * L.ones(3, 2)).sum().backward()
    e = L.zeros(3, requires_grad=True)
    e.sum().backward()
    return list(x.grad.stride()), list(w.grad.stride()), list(e.grad.stride())


@program
def gradients_do_not_share_memory(L):
    x, w = leaf(L, 1.0, 2.0), leaf(L, 3.0, 4.0)
    g = L.tensor([1.0, 1.0])
    (x + w).backward(g)
    x.grad.mul_(5)
    return x.grad, w.grad, g


@program
def root_is_a_leaf(L):
    x = leaf(L, 1.0, 2.0)
    g = L.tensor([1.0, 3.0])
    x.backward(g)
    x.backward(g)
    return x.grad, g


@program
def root_gradient_is_converted(L):
    x = leaf(L, 1.0, 2.0)
    (x * 2).backward(L.tensor([1.0, 2.0], dtype=L.float64))
    return x.grad, str(x.grad.dtype).split(".")[-1]


@error("does not require grad and does not have a grad_fn")
def root_without_history(L):
    L.tensor([1.0]).sum().backward()


@error("grad can be implicitly created only for scalar outputs")
def root_is_not_a_scalar(L):
    leaf(L, 1.0, 2.0).backward()


@error("Mismatch in shape: grad_output[0]")
def root_gradient_of_another_shape(L):
    (leaf(L, 1.0, 2.0) * 2).backward(L.ones(3))


@error("One of the differentiated Tensors does not require grad")
def input_without_grad(L):
    x = leaf(L, 1.0, 2.0)
    L.autograd.grad((x * x).sum(), L.ones(2))


@error("appears to not have been used in the graph")
def input_not_used(L):
    x = leaf(L, 1.0, 2.0)
    L.autograd.grad((x * x).sum(), leaf(L, 1.0))


# --- hooks --------------------------------------------------------------------------------------------------------------------


@program
def hooks_in_order(L):
    seen = []

    def note(name, result=None):
        return lambda *args: seen.append((name, plain(args[0]))) or result

    x = leaf(L, 1.0, 2.0)
    y = x * 3
    y.register_hook(note("tensor 1"))
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    y.register_hook(note("tensor 2"))
    y.grad_fn.register_prehook(note("pre"))
    y.grad_fn.register_prehook(lambda g: (g[0] * 5,))
    y.grad_fn.register_hook(lambda i, o: seen.append(("post", plain(i), plain(o))))
    x.register_hook(note("leaf"))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(("done", p is x, plain(p.grad))))
    y.sum().backward()
    return seen, y.grad, x.grad


@program
def a_leaf_hook_sees_the_sum_once(L):
    seen = []
    x = leaf(L, 1.0, 2.0)
    x.register_hook(lambda g: seen.append(plain(g)))
    y = x * x
    (y + x * 3 + y.exp() * 0).sum().backward()
    return seen, x.grad


@program
def hooks_are_removed(L):
    seen = []
    x = leaf(L, 1.0, 2.0)
    y = x * 2
    first = y.register_hook(lambda g: seen.append("first"))
    with y.register_hook(lambda g: seen.append("with")):
        y.sum().backward(retain_graph=True)
    first.remove()
    first.remove()
    y.sum().backward(retain_graph=True)
    handle = y.register_hook(lambda g: (seen.append("self"), handle.remove())[0])
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    return seen


@program
def hooks_fire_without_their_tensor(L):
    seen = []
    x = leaf(L, 1.0, 2.0)
    y = x * 2
    y.register_hook(lambda g: seen.append(plain(g)))
    z = y.sum()
    del y
    z.backward()
    return seen


@program
def post_hook_replaces_what_flows_on(L):
    x, w = leaf(L, 1.0, 2.0), leaf(L, 3.0, 4.0)
    y = x * w
    y.grad_fn.register_hook(lambda i, o: (i[0] * 0, i[1] + 1))
    y.sum().backward()
    return x.grad, w.grad


@program
def accumulators_have_hooks_too(L):
    seen = []
    x = leaf(L, 1.0, 2.0)
    y = x * 2
    end = y.grad_fn.next_functions[0][0]
    end.register_hook(lambda i, o: seen.append((len(i), plain(o))))
    end.register_prehook(lambda o: seen.append(plain(o)))
    y.sum().backward()
    return seen, type(end).__name__


@program
def retained_gradients(L):
    x = leaf(L, 1.0, 2.0)
    y = x * x
    y.retain_grad()
    x.retain_grad()
    y.sum().backward(retain_graph=True)
    (y * 2).sum().backward()
    return y.grad, x.grad, y.retains_grad, x.retains_grad


@program
def retained_gradient_follows_an_in_place_write(L):
    x = leaf(L, 1.0, 2.0)
    y = x * 3
    y.retain_grad()
    y.mul_(2)
    y.sum().backward()
    return y.grad, x.grad


@error("hook '<lambda>' has changed the size of value")
def hook_changes_the_size(L):
    x = leaf(L, 1.0, 2.0)
    x.register_hook(lambda g: L.ones(3))
    x.sum().backward()


@error("expected Variable, but hook returned 'int'")
def hook_returns_a_number(L):
    x = leaf(L, 1.0, 2.0)
    x.register_hook(lambda g: 3)
    x.sum().backward()


@error("cannot register a hook on a tensor that doesn't require gradient")
def hook_on_a_constant(L):
    L.ones(2).register_hook(print)


@error("post accumulate grad hooks cannot be registered on non-leaf tensors")
def post_accumulate_hook_on_a_result(L):
    (leaf(L, 1.0) * 2).register_post_accumulate_grad_hook(print)


@error("can't retain_grad on Tensor that has requires_grad=False")
def retain_grad_of_a_constant(L):
    L.ones(2).retain_grad()


# --- re-entrance --------------------------------------------------------------------------------------------------------------


@program
def backward_inside_a_hook(L):
    x, w = leaf(L, 1.0, 2.0), leaf(L, 3.0, 4.0)

    def inner(g):
        with L.enable_grad():
            (w * w).sum().backward()

    y = x * 2
    y.register_hook(inner)
    y.sum().backward()
    return x.grad, w.grad


@program
def backward_inside_a_hook_over_pending_nodes(L):
    x = leaf(L, 1.0, 2.0)
    a = x * 2
    b = a * 3
    c = a * 5
    root = (b + c).sum()
    inner = []

    def again(g):
        if not inner:
            inner.append(None)
            inner[0] = L.autograd.grad(root, x, retain_graph=True)

    c.register_hook(again)
    root.backward(retain_graph=True)
    return x.grad, inner[0]


@program
def gradient_that_waits_elsewhere_is_not_added_to(L):
    x = leaf(L, 1.5)
    y = x * 2
    a = (y * y + y).sum()
    b = (y * y * 3).sum()
    (a + b).backward()
    x0 = L.tensor(2.0, requires_grad=True)
    y0 = x0 * 1
    (first,) = L.autograd.grad((y0 * y0 * 0.5 + y0).sum(), [y0], create_graph=True)
    twice = L.autograd.grad((first * first * 0.5 + first).sum() + (first * first * 0.5 + first).sum(), [x0])
    return x.grad, first, twice[0]


test_program, test_error, test_nothing_leaks = suite.tests()
