"""`backward` and `grad`: PyTorch's calling convention around the engine's one entry point, `_C._backward`."""

from .. import _C


def _is_one(value):
    return isinstance(value, _C.Tensor) or _is_edge(value)


def _is_edge(value):
    return hasattr(value, "ownership_token")


def _as_tuple(values, function, argument="inputs"):
    """One tensor (or edge), a dict of them or a sequence, as a tuple of tensors."""
    if _is_one(values):
        values = (values,)
    elif type(values) is dict:
        values = values.values()
    elif hasattr(values, "keys"):
        raise TypeError(f"`{argument}` argument to `{function}()` must be a dict, not {type(values).__name__}. "
                        "Other Mapping types are not supported.")  # fmt: skip
    return tuple(v._tensor() if _is_edge(v) else v for v in values)


def _grads_for(tensors, grads):
    if grads is None:
        return (None,) * len(tensors)
    grads = (grads,) if isinstance(grads, _C.Tensor) else tuple(grads)
    if len(grads) != len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(grads)} gradients")
    return grads


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Add the gradients of `tensors`, weighted by `grad_tensors`, to `.grad` of the leaves they depend on.

    A tensor with one element may do without a weight. With `inputs`, only their `.grad` changes (they need not be leaves).
    `create_graph` makes the gradients themselves differentiable; `retain_graph` (default: as `create_graph`) allows a
    second backward.

    >>> x = lucid.tensor([1.0, 2.0], requires_grad=True)
    >>> y = x * x
    >>> lucid.autograd.backward([y, x.sum()], [lucid.tensor([1.0, 10.0]), None])
    >>> x.grad
    tensor([ 3., 41.])
    """
    if grad_variables is not None:
        import warnings

        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. "
                               "Please only use `grad_tensors`.")  # fmt: skip
        grad_tensors = grad_variables
    if inputs is not None:
        inputs = _as_tuple(inputs, "backward")
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    tensors = _as_tuple(tensors, "backward", "tensors")
    grads = _grads_for(tensors, grad_tensors)
    _C._backward(tensors, grads, inputs, False, create_graph if retain_graph is None else retain_graph, create_graph)


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
):
    """The gradients of `outputs`, weighted by `grad_outputs`, with respect to `inputs`; no `.grad` is touched.

    A tuple with one gradient per input; a dict if `inputs` is one. An input the outputs do not depend on is an error, None
    with `allow_unused`, zeros with `materialize_grads`. With `is_grads_batched`, dimension 0 of each of `grad_outputs`
    counts weights: one backward for each, results stacked.

    >>> x = lucid.tensor(3.0, requires_grad=True)
    >>> (dx,) = lucid.autograd.grad(x * x, x, create_graph=True)
    >>> lucid.autograd.grad(dx, x)
    (tensor(2.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if not only_inputs:
        import warnings

        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True).", FutureWarning, stacklevel=2)
    outputs, given, names = _as_tuple(outputs, "grad", "outputs"), _as_tuple(inputs, "grad"), None
    if not given:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    names = inputs.keys() if type(inputs) is dict else None
    grads = _grads_for(outputs, grad_outputs)
    retain_graph = create_graph if retain_graph is None else retain_graph
    run = _run_batched if is_grads_batched else _run
    result = run(outputs, grads, given, retain_graph, create_graph)
    if materialize_grads:
        result = tuple(
            _C.zeros_like(x, requires_grad=create_graph) if g is None else g for g, x in zip(result, given, strict=True)
        )
    elif not allow_unused and None in map(_none_only, result):
        raise RuntimeError("One of the differentiated Tensors appears to not have been used in the graph. "
                           "Set allow_unused=True if this is the desired behavior.")  # fmt: skip
    return result if names is None else dict(zip(names, result, strict=True))


def _none_only(value):
    return None if value is None else True  # `None in tensors` would compare elementwise


def _run(outputs, grads, inputs, retain_graph, create_graph):
    return _C._backward(outputs, grads, inputs, True, retain_graph, create_graph)


def _run_batched(outputs, grads, inputs, retain_graph, create_graph):
    """One backward per weight. All but the last keep the graph."""
    sizes = {g.shape[0] for g in grads if g is not None}
    if len(sizes) != 1:
        raise ValueError(f"is_grads_batched needs grad_outputs that agree in dimension 0, but got sizes {sorted(sizes)}")
    (size,) = sizes
    if size == 0:
        raise ValueError("is_grads_batched needs at least one weight, but dimension 0 of grad_outputs is empty")
    rows = []
    for i in range(size):
        weights = tuple(g if g is None else g[i] for g in grads)
        rows.append(_run(outputs, weights, inputs, retain_graph or i + 1 < size, create_graph))
    return tuple(None if column[0] is None else _C.stack(column) for column in zip(*rows, strict=True))
