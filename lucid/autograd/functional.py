"""Derivatives of functions: Jacobians, Hessians and their products with vectors.

Everything here is `autograd.grad`, once or twice. A vector-Jacobian product is one backward. A Jacobian-vector product is
the vector-Jacobian product of a vector-Jacobian product: u -> uJ is linear, so differentiating it once more with weight v
gives Jv, whatever u was. The Hessian is the Jacobian of the gradient.

All functions share these arguments:
    func          takes the inputs as positional arguments and returns a tensor or a tuple of tensors
    inputs        a tensor or a tuple of tensors; results have the same structure
    create_graph  results can be differentiated again
    strict        an output that does not depend on an input raises, instead of having a derivative of zero
"""

from .. import _C
from ._run import grad
from .grad_mode import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


class _Group:
    """One tensor or a tuple of them, treated as a tuple; `like` gives results the form the user gave."""

    def __init__(self, values, what, who):
        self.is_tuple = isinstance(values, tuple)
        self.values = values if self.is_tuple else (values,)
        for i, value in enumerate(self.values):
            if not isinstance(value, _C.Tensor):
                where = f"value at index {i}" if self.is_tuple else f"given {what}"
                raise TypeError(
                    f"The {what} given to {who} must be either a Tensor or a tuple of Tensors but the {where} has type "
                    f"{type(value)}."
                )

    def like(self, results):
        return results if self.is_tuple else results[0]


def _fresh(tensors, create_graph, need_graph):
    """Inputs for one evaluation: connected to the user's graph if that is to be differentiated, else cut off from it."""
    return tuple(
        t.view(t.shape) if create_graph and t.requires_grad else t.detach().requires_grad_(need_graph) for t in tensors
    )


def _finished(results, create_graph):
    return results if create_graph else tuple(r.detach() for r in results)


def _evaluate(func, inputs, create_graph, strict, who):
    """The inputs, made differentiable, and the outputs."""
    inputs = _Group(inputs, "inputs", who)
    inputs.values = _fresh(inputs.values, create_graph, True)
    outputs = _Group(func(*inputs.values), "outputs of the user-provided function", who)
    for i, out in enumerate(outputs.values):
        if strict and not out.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in a "
                "differentiable manner from the input when running in strict mode."
            )
    return inputs, outputs


def _vector(v, group, create_graph, who, of_what):
    """The vector v, which must have the structure of group; optional for a single scalar."""
    if v is None:
        if len(group.values) != 1 or group.values[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if {of_what} a single Tensor with a single element.")
        return (_C.ones_like(group.values[0]).detach(),)
    v = _fresh(_Group(v, "v", who).values, create_graph, False)
    if len(v) != len(group.values):
        expected = f"v is a tuple of invalid length: should be {len(group.values)} but got {len(v)}."
        raise RuntimeError(expected if group.is_tuple else "The given v should contain a single Tensor.")
    for i, (given, wanted) in enumerate(zip(v, group.values, strict=True)):
        if given.shape != wanted.shape:
            entry = f"Entry {i} in " if group.is_tuple else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {wanted.shape} but got {given.shape}.")
    return v


def _products(outputs, inputs, weights, create_graph=False, retain_graph=None):
    """`grad`, with None for inputs that outputs do not depend on, also if no output is recorded at all."""
    recorded = [(o, w) for o, w in zip(outputs, weights, strict=True) if o is not None and o.requires_grad]
    if not recorded:
        return (None,) * len(inputs)
    outputs, weights = zip(*recorded, strict=True)
    return grad(outputs, inputs, weights, create_graph=create_graph, retain_graph=retain_graph, allow_unused=True)


def _filled(grads, references, strict, create_graph, independent, what):
    """Zeros for None. In strict mode both None and a result that cannot be differentiated again are errors."""
    for i, g in enumerate(grads):
        if strict and g is None:
            raise RuntimeError(independent.format(i) + " This is not allowed in strict mode.")
        if strict and create_graph and not g.requires_grad:
            raise RuntimeError(
                f"The {what} of the user-provided function is independent of input {i}. This is not allowed in strict mode "
                "when create_graph=True."
            )
    return tuple(_C.zeros_like(r) if g is None else g for g, r in zip(grads, references, strict=True))


def _check_again_differentiable(grads, strict, message):
    """In strict mode, before differentiating a second time."""
    for i, g in enumerate(grads):
        if strict and g is None:
            raise RuntimeError(
                f"The output of the user-provided function is independent of input {i}. This is not allowed in strict mode."
            )
        if strict and not g.requires_grad:
            raise RuntimeError(message.format(i) + " This is not allowed in strict mode.")


_LINEAR = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is "
    "independent of the input."
)


@enable_grad
def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """`func(*inputs)`, and v times its Jacobian; v has the form of the output.

    >>> x, v = lucid.tensor([1.0, 2.0]), lucid.tensor([1.0, 10.0])
    >>> output, product = lucid.autograd.functional.vjp(lambda x: x * x, x, v)
    >>> product
    tensor([ 2., 40.])
    """
    inputs, outputs = _evaluate(func, inputs, create_graph, strict, "vjp")
    v = _vector(v, outputs, create_graph, "vjp", "the user-provided function returns")
    products = _products(outputs.values, inputs.values, v, create_graph)
    independent = "The output of the user-provided function is independent of input {}."
    products = _filled(products, inputs.values, strict, create_graph, independent, "jacobian")
    return outputs.like(_finished(outputs.values, create_graph)), inputs.like(_finished(products, create_graph))


@enable_grad
def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """`func(*inputs)`, and its Jacobian times v; v has the form of the inputs.

    >>> x, v = lucid.tensor([1.0, 2.0]), lucid.tensor([1.0, 10.0])
    >>> output, product = lucid.autograd.functional.jvp(lambda x: x.sum(), x, v)
    >>> product
    tensor(11.)
    """
    inputs, outputs = _evaluate(func, inputs, create_graph, strict, "jvp")
    v = _vector(v, inputs, create_graph, "jvp", "the input to the user-provided function is")
    u, pulled = _linear_map(inputs.values, outputs.values)
    message = "The gradient with respect to input {} is independent of the inputs of the user-provided function."
    _check_again_differentiable(pulled, strict, message)
    products = _products(pulled, u, v, create_graph)
    independent = (
        "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the double backward "
        "trick to compute forward mode gradients."
    )
    products = _filled(products, outputs.values, strict, create_graph, independent, "jacobian")
    return outputs.like(_finished(outputs.values, create_graph)), outputs.like(_finished(products, create_graph))


def _linear_map(inputs, outputs):
    """u and uJ, recorded: its derivative with weight v is Jv."""
    u = tuple(_C.zeros_like(out).requires_grad_() for out in outputs)
    return u, _products(outputs, inputs, u, create_graph=True)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """All derivatives of all outputs: entry [i][j] has the shape of output i followed by that of input j.

    Reverse mode does one backward per output value, forward mode (`strategy="forward-mode"`) one per input value.
    `vectorize` is accepted, and makes no difference to the result.

    >>> lucid.autograd.functional.jacobian(lambda x: x * x, lucid.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(f'Expected strategy to be either "forward-mode" or "reverse-mode", not {strategy!r}.')
    forward = strategy == "forward-mode"
    if forward and create_graph:
        raise NotImplementedError('jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported together.')
    if forward and not vectorize:
        raise NotImplementedError("jacobian: forward mode is only implemented for `vectorize=True`.")
    if strict and (forward or vectorize):
        other = '`strategy="forward-mode"`' if forward else "`vectorized=True`"
        raise RuntimeError(f"jacobian: `strict=True` and {other} are not supported together.")
    with enable_grad():
        inputs, outputs = _evaluate(func, inputs, create_graph, strict, "jacobian")
        if forward:
            result = _by_columns(inputs.values, outputs.values)
        else:
            result = tuple(_by_rows(i, out, inputs.values, create_graph, strict) for i, out in enumerate(outputs.values))
    return outputs.like(tuple(inputs.like(_finished(row, create_graph)) for row in result))


def _assembled(parts, first, second):
    shape = (*first.shape, *second.shape)
    return _C.stack(parts).reshape(shape) if parts else second.new_zeros(shape)


def _by_rows(i, out, inputs, create_graph, strict):
    """One backward per value of output i."""
    rows = [[] for _ in inputs]
    flat = out.reshape(-1)
    for j in range(out.numel()):
        grads = _products((flat[j],), inputs, (None,), create_graph, retain_graph=True)
        independent = f"Output {i} of the user-provided function is independent of input {{}}."
        for row, g in zip(rows, _filled(grads, inputs, strict, create_graph, independent, "jacobian"), strict=True):
            row.append(g)
    return tuple(_assembled(row, out, x) for row, x in zip(rows, inputs, strict=True))


def _by_columns(inputs, outputs):
    """One backward of the linear map per value of each input."""
    u, pulled = _linear_map(inputs, outputs)
    result = [[] for _ in outputs]
    for k, x in enumerate(inputs):
        columns = [[] for _ in outputs]
        for j in range(x.numel()):
            weight = _C.zeros_like(pulled[k] if pulled[k] is not None else x)
            weight.view(-1)[j] = 1
            products = _products((pulled[k],), u, (weight,), retain_graph=True)
            for column, p, out in zip(columns, products, outputs, strict=True):
                column.append(_C.zeros_like(out) if p is None else p)
        for row, column, out in zip(result, columns, outputs, strict=True):
            joined = _assembled(column, x, out).reshape((x.numel(), out.numel())).t()
            row.append(joined.reshape((*out.shape, *x.shape)))
    return tuple(map(tuple, result))


def _single_value(outputs, who):
    if outputs.is_tuple:
        raise RuntimeError(f"The function given to {who} should return a single Tensor")
    if outputs.values[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {who} should contain a single element")
    return outputs.values[0]


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """All second derivatives of a function with one value: entry [i][j] has the shape of input i followed by that of input
    j.

    >>> lucid.autograd.functional.hessian(lambda x: (x * x * x).sum(), lucid.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    form = _Group(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar(*values):
        outputs = _Group(func(*values), "outputs of the user-provided function", "hessian")
        if strict and not outputs.values[0].requires_grad:
            raise RuntimeError("Output 0 of the user-provided function does not require gradients.")
        return _single_value(outputs, "hessian").reshape(())

    def gradient(*values):
        first = jacobian(scalar, values, create_graph=True)
        _check_again_differentiable(first, strict, _LINEAR)
        return first

    second = jacobian(gradient, form.values, create_graph, strict, vectorize, outer_jacobian_strategy)
    return form.like(tuple(form.like(row) for row in second))


def _gradient(func, inputs, v, create_graph, strict, who):
    inputs, outputs = _evaluate(func, inputs, create_graph, strict, who)
    v = _vector(v, inputs, create_graph, who, "the input to the user-provided function is")
    value = _single_value(outputs, who)
    first = _products((value,), inputs.values, (None,), create_graph=True)
    _check_again_differentiable(first, strict, _LINEAR)
    return inputs, value, first, v


@enable_grad
def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """The value of `func`, and v times its Hessian.

    >>> x, v = lucid.tensor([1.0, 2.0]), lucid.tensor([1.0, 10.0])
    >>> value, product = lucid.autograd.functional.vhp(lambda x: (x * x).sum(), x, v)
    >>> product
    tensor([ 2., 20.])
    """
    inputs, value, first, v = _gradient(func, inputs, v, create_graph, strict, "vhp")
    products = _products(first, inputs.values, v, create_graph)
    independent = "The jacobian of the user-provided function is independent of input {}."
    products = _filled(products, inputs.values, strict, create_graph, independent, "hessian")
    return _finished((value,), create_graph)[0], inputs.like(_finished(products, create_graph))


@enable_grad
def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """The value of `func`, and its Hessian times v. Where the Hessian is symmetric, `vhp` gives the same for less work.

    >>> x, v = lucid.tensor([1.0, 2.0]), lucid.tensor([1.0, 10.0])
    >>> value, product = lucid.autograd.functional.hvp(lambda x: (x * x).sum(), x, v)
    >>> product
    tensor([ 2., 20.])
    """
    inputs, value, first, v = _gradient(func, inputs, v, create_graph, strict, "hvp")
    u = tuple(_C.zeros_like(x).requires_grad_() for x in inputs.values)
    second = _products(first, inputs.values, u, create_graph=True)
    products = _products(second, u, v, create_graph)
    independent = "The hessian of the user-provided function is independent of entry {} in the grad_jacobian."
    products = _filled(products, inputs.values, strict, create_graph, independent, "hessian")
    return _finished((value,), create_graph)[0], inputs.like(_finished(products, create_graph))
