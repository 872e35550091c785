"""Function transforms for derivatives: `grad`, `vjp`, `jvp`, `jacrev` and others built from them.

Everything here is `autograd.grad` on an evaluation of its own. Differentiated arguments are replaced: by a view if the
argument already has history, so that derivatives of derivatives work, else by a new leaf. The graph is freed with the
evaluation, unless it leads to a tensor that the caller records: only then results can be differentiated further.
Jacobian-vector products are vector-Jacobian products of vector-Jacobian products (autograd.functional).

Inside `vmap` gradients of all examples are those of the examples' sum: no example sees another. Other derivatives are
computed once per example.
"""

from _thread import _local
from functools import wraps

from .. import _C
from ..autograd._run import grad as backward_to
from ..autograd.grad_mode import enable_grad
from . import _flatten, _maps

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]


class _Open(_local):
    """The leaves of every evaluation that is under way on this thread, and of those that ran inside it, outermost first."""

    def __init__(self):
        self.leaves = []


_open = _Open()


def _tensors(leaves):
    return [x for x in leaves if isinstance(x, _C.Tensor)]


def _leads_on(outputs, ends):
    """Whether the graph of these tensors ends anywhere else than at `ends`."""
    own = {id(x) for x in ends}
    todo, seen = [y.grad_fn for y in outputs if y.grad_fn is not None], set()
    if any(y.grad_fn is None and y.requires_grad and id(y) not in own for y in outputs):
        return True
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable") and id(node.variable) not in own:
            return True
        todo += [n for n, _ in node.next_functions if n is not None]
    return False


class _Evaluation:
    """A function's value at arguments of which some are differentiated: trees of tensors, flattened."""

    def __init__(self, who, func, args, kwargs, positions, has_aux=False):
        self.who, self.recording = who, _C._grad_enabled()
        given, rebuild = zip(*[_flatten(args[i]) for i in positions]) if positions else ((), ())
        if any(not isinstance(x, _C.Tensor) for leaves in given for x in leaves):
            kinds = sorted({type(x).__name__ for leaves in given for x in leaves if not isinstance(x, _C.Tensor)})
            raise ValueError(f"{who}: expected tensors in the arguments that are differentiated, got {', '.join(kinds)}")
        outside = [x for leaves in given for x in leaves if x.requires_grad and self.recording]
        self.sizes, self.rebuild = [len(leaves) for leaves in given], rebuild
        with enable_grad():
            fresh = [[x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in leaves] for leaves in given]
            inner = list(args)
            for i, leaves, build in zip(positions, fresh, rebuild):
                inner[i] = build(leaves)
            self.inputs = [x for leaves in fresh for x in leaves]
            for own in _open.leaves:
                own += self.inputs
            _open.leaves.append(own := list(self.inputs))
            try:
                result = func(*inner, **kwargs)
            finally:
                _open.leaves.pop()
        aux = None
        if has_aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise RuntimeError(
                    f"{who}: expected the function to return (output, aux) if has_aux is True, got {type(result)}"
                )
            result, aux = result
        self.outputs, self.build = _flatten(result)
        if any(not isinstance(y, _C.Tensor) for y in self.outputs):
            raise RuntimeError(f"{who}: expected the function to return tensors, got {type(result)}")
        kept, build_aux = _flatten(aux)
        self.leads_on = self.recording and (bool(outside) or _leads_on(self.outputs + _tensors(kept), own))
        self.aux = build_aux([self.finished(x) if isinstance(x, _C.Tensor) else x for x in kept])

    def finished(self, x):
        return x if self.leads_on else x.detach()

    def value(self):
        return self.build([self.finished(y) for y in self.outputs])

    def pulled(self, outputs, weights, again=False):
        """weights times the Jacobian of some outputs, per input. again: it is differentiated once more."""
        weights = [_C.ones_like(y) if w is None else w for y, w in zip(outputs, weights)]
        pairs = [(y, w) for y, w in zip(outputs, weights) if y.requires_grad]
        create = again or self.leads_on or (_C._grad_enabled() and any(w.requires_grad for w in weights))
        found = [None] * len(self.inputs)
        if any(_C._batch_of(y) for y in outputs) and not any(_C._batch_of(x) for x in self.inputs):
            raise NotImplementedError(f"{self.who}: inside vmap the function reads examples: give them as arguments")
        if pairs and self.inputs:
            ys, ws = zip(*pairs)
            with enable_grad():
                found = backward_to(ys, self.inputs, ws, retain_graph=True, create_graph=create, allow_unused=True)
        return [_C.zeros_like(x).detach() if g is None else g for g, x in zip(found, self.inputs)]

    def pushed(self, u, pulled, tangents):
        """The Jacobian times tangents, per output, of what `pulled` gave for the weights u."""
        pairs = [(g, t) for g, t in zip(pulled, tangents) if g.requires_grad]
        found = [None] * len(u)
        if pairs and u:
            gs, ts = zip(*pairs)
            create = self.leads_on or (_C._grad_enabled() and any(t.requires_grad for t in tangents))
            with enable_grad():
                found = backward_to(gs, u, ts, retain_graph=True, create_graph=create, allow_unused=True)
        return [_C.zeros_like(y).detach() if g is None else g for g, y in zip(found, self.outputs)]

    def like_inputs(self, values):
        """One tree per argument."""
        values, trees = iter(values), []
        for size, build in zip(self.sizes, self.rebuild):
            trees.append(build([next(values) for _ in range(size)]))
        return tuple(trees)


def _positions(who, argnums, args):
    """Which arguments argnums means: (places, whether the result is a tuple of them)."""
    single = isinstance(argnums, int)
    if not single and not (isinstance(argnums, tuple) and argnums and all(isinstance(n, int) for n in argnums)):
        raise RuntimeError(f"{who}: argnums must be an int or a tuple of ints that is not empty, got {argnums!r}")
    places = [n if n >= 0 else n + len(args) for n in ((argnums,) if single else argnums)]
    if any(not 0 <= n < len(args) for n in places):
        raise RuntimeError(f"{who}: got argnums={argnums}, but only {len(args)} positional inputs")
    if len(set(places)) < len(places):
        raise RuntimeError(f"{who}: argnums must not have an argument twice, got {argnums}")
    return places, single


def _batched_leaves(*trees):
    return [x for tree in trees for x in _tensors(_flatten(tree)[0]) if _C._batch_of(x)]


def _per_example(function):
    """Inside vmap: one call per example, and the results stacked."""

    @wraps(function)
    def called(*args, **kwargs):
        batched = _batched_leaves(args, kwargs)
        if not batched:
            return function(*args, **kwargs)
        level = max(_C._batch_of(x)[1] for x in batched)
        leaves, build = _flatten((args, kwargs))
        mapped = [isinstance(x, _C.Tensor) and (batch := _C._batch_of(x)) is not None and batch[1] == level for x in leaves]
        size = next(_C._batch_of(x)[0].shape[0] for x, own in zip(leaves, mapped) if own)
        whole = [_C._unbatched(x, level, size, 0) if own else x for x, own in zip(leaves, mapped)]
        results, maps = [], _maps.open
        _maps.open = [(of, n) for of, n in maps if of != level]
        try:
            for i in range(size):
                one_args, one_kwargs = build([x[i] if own else x for x, own in zip(whole, mapped)])
                results.append(called(*one_args, **one_kwargs))
        finally:
            _maps.open = maps
        parts = [_flatten(result)[0] for result in results]
        rebuild = _flatten(results[0])[1]
        joined = lambda column: _C._batched(_C.stack(list(column)), 0, level) if isinstance(column[0], _C.Tensor) else column[0]
        return rebuild([joined(column) for column in zip(*parts)])

    return called


def _all_examples(who, func, argnums, has_aux, args, kwargs, maps):
    """(gradient, value, aux) of all examples of the last of these vmaps at once. A differentiated argument without a batch gets
    one: every example has a gradient of its own. The other vmaps are those whose examples the function may read, too."""
    if not maps:
        return _gradient(who, func, argnums, has_aux, args, kwargs)
    *others, (level, size) = maps
    leaves, build = _flatten((args, kwargs))
    own = [isinstance(x, _C.Tensor) and (batch := _C._batch_of(x)) is not None and batch[1] == level for x in leaves]
    places, _ = _positions(who, argnums, args)
    wanted = {id(x) for i in places for x in _tensors(_flatten(args[i])[0])}
    taken = [mine or id(x) in wanted for x, mine in zip(leaves, own)]
    whole = [_C._unbatched(x, level, size, 0) if mine else x for x, mine in zip(leaves, taken)]
    # Copies, each in memory of its own: elements of an expanded tensor that lie in one place would share a gradient.
    whole_args, whole_kwargs = build([x.contiguous() if t and not o else x for x, t, o in zip(whole, taken, own)])

    def batched(tree):
        inner, rebuild = _flatten(tree)
        return rebuild([_C._batched(x, 0, level) if isinstance(x, _C.Tensor) else x for x in inner])

    def values(tree):
        inner, rebuild = _flatten(tree)
        return rebuild([_C._unbatched(x, level, size, 0) if isinstance(x, _C.Tensor) else x for x in inner])

    def total(*args, **kwargs):
        inner = _flatten((args, kwargs))[0]
        inner_args, inner_kwargs = build([_C._batched(x, 0, level) if mine else x for x, mine in zip(inner, taken)])
        result = func(*inner_args, **inner_kwargs)
        result, aux = result if has_aux and isinstance(result, tuple) and len(result) == 2 else (result, None)
        if not isinstance(result, _C.Tensor) or result.dim():
            return result, aux  # `_gradient` says what is wrong
        result = _C._unbatched(result, level, size, 0)
        return result.sum(), (result, values(aux))

    found, _, (value, aux) = _all_examples(who, total, argnums, True, whole_args, whole_kwargs, others)
    return batched(found), batched(value), batched(aux)


def _examples_together(who, func, argnums, has_aux):
    """`_gradient` as a function of the arguments, also inside vmap."""
    one = lambda *args, **kwargs: _gradient(who, func, argnums, has_aux, args, kwargs)
    each = _per_example(one)

    def called(*args, **kwargs):
        if not _maps.open:
            return one(*args, **kwargs)
        try:
            return _all_examples(who, func, argnums, has_aux, args, kwargs, _maps.open)
        except (NotImplementedError, _C.LucidError) as error:
            if not str(error).startswith("vmap"):  # else it is refused only because the examples run together
                raise
        return each(*args, **kwargs)

    return called


def _scalar(who, evaluation):
    if len(evaluation.outputs) != 1 or not isinstance(evaluation.build(evaluation.outputs), _C.Tensor):
        raise RuntimeError(f"{who}: expected the function to return a tensor")
    (value,) = evaluation.outputs
    if value.dim() != 0:
        raise RuntimeError(
            f"{who}: expected the function to return a scalar tensor, got a tensor of {value.dim()} dimensions. "
            "Maybe vjp or jacrev is what is wanted."
        )
    return value


def _gradient(who, func, argnums, has_aux, args, kwargs):
    """(gradient, value, aux)"""
    places, single = _positions(who, argnums, args)
    evaluation = _Evaluation(who, func, args, kwargs, places, has_aux)
    found = evaluation.like_inputs(evaluation.pulled([_scalar(who, evaluation)], [None]))
    return found[0] if single else found, evaluation.value(), evaluation.aux


def grad(func, argnums=0, has_aux=False):
    """A function that computes the gradient of `func`, which returns a scalar.

    `argnums` says which argument it is the gradient for; a tuple gives a tuple of gradients. An argument may be a dict, list
    or tuple of tensors. With `has_aux`, `func` returns (value, anything else) and the result is (gradient, anything else).

    >>> x = lucid.tensor(2.0)
    >>> lucid.func.grad(lambda x: x**3)(x), lucid.func.grad(lucid.func.grad(lambda x: x**3))(x)
    (tensor(12.), tensor(12.))
    """

    computed = _examples_together("grad", func, argnums, has_aux)

    @wraps(func)
    def gradient(*args, **kwargs):
        found, _, aux = computed(*args, **kwargs)
        return (found, aux) if has_aux else found

    return gradient


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that computes (gradient of `func`, value of `func`): `grad` has the arguments.

    >>> lucid.func.grad_and_value(lambda x: x**3)(lucid.tensor(2.0))
    (tensor(12.), tensor(8.))
    """

    computed = _examples_together("grad_and_value", func, argnums, has_aux)

    @wraps(func)
    def gradient(*args, **kwargs):
        found, value, aux = computed(*args, **kwargs)
        return (found, (value, aux)) if has_aux else (found, value)

    return gradient


def _outside_vmap(who, *trees):
    if _batched_leaves(*trees):
        raise NotImplementedError(f"{who}: not inside vmap; grad, jacrev and jvp are")


def vjp(func, *primals, has_aux=False):
    """The value of `func`, and a function that multiplies a vector with its Jacobian: one gradient per input, in a tuple.

    >>> value, back = lucid.func.vjp(lucid.sin, lucid.zeros(2))
    >>> back(lucid.tensor([1.0, 2.0]))
    (tensor([1., 2.]),)
    """
    _outside_vmap("vjp", primals)
    evaluation = _Evaluation("vjp", func, primals, {}, range(len(primals)), has_aux)

    def back(cotangents):
        weights = _flatten(cotangents)[0]
        shapes = [tuple(y.shape) for y in evaluation.outputs]
        if [tuple(w.shape) for w in weights] != shapes:
            raise RuntimeError(
                f"vjp: expected cotangents like the output, of shapes {shapes}, got {[tuple(w.shape) for w in weights]}"
            )
        return evaluation.like_inputs(evaluation.pulled(evaluation.outputs, weights))

    return (evaluation.value(), back, evaluation.aux) if has_aux else (evaluation.value(), back)


def _pushed_forward(who, func, primals, has_aux):
    """(evaluation, tangents -> the Jacobian times them, as a tree)"""
    evaluation = _Evaluation(who, func, primals, {}, range(len(primals)), has_aux)
    u = [_C.zeros_like(y).requires_grad_() for y in evaluation.outputs]
    pulled = evaluation.pulled(evaluation.outputs, u, again=True)

    def forward(tangents):
        given = _flatten(tangents)[0]
        if [tuple(t.shape) for t in given] != [tuple(x.shape) for x in evaluation.inputs]:
            raise RuntimeError(f"{who}: expected tangents of the structure and shapes of the primals")
        return evaluation.build([evaluation.finished(y) for y in evaluation.pushed(u, pulled, given)])

    return evaluation, forward


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """The value of `func`, and its Jacobian times `tangents`. `primals` and `tangents` are tuples of the same structure.

    >>> lucid.func.jvp(lambda x: x * x, (lucid.tensor([1.0, 3.0]),), (lucid.tensor([1.0, 10.0]),))
    (tensor([1., 9.]), tensor([ 2., 60.]))
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple) or len(primals) != len(tangents) or not primals:
        raise RuntimeError("jvp: expected primals and tangents to be tuples of one length, not empty")

    @_per_example
    def products(primals, tangents):
        evaluation, forward = _pushed_forward("jvp", func, primals, has_aux)
        if strict and any(not y.requires_grad for y in evaluation.outputs):
            raise RuntimeError("jvp: the output is independent of the inputs, which strict=True does not allow")
        value = evaluation.value()
        return (value, forward(tangents), evaluation.aux) if has_aux else (value, forward(tangents))

    return products(primals, tangents)


def linearize(func, *primals):
    """The value of `func`, and its linear approximation there: a function that multiplies the Jacobian with tangents.

    >>> value, forward = lucid.func.linearize(lambda x: x * x, lucid.tensor([1.0, 3.0]))
    >>> forward(lucid.tensor([1.0, 10.0]))
    tensor([ 2., 60.])
    """
    _outside_vmap("linearize", primals)
    evaluation, forward = _pushed_forward("linearize", func, primals, False)
    return evaluation.value(), lambda *tangents: forward(tangents)


def _jacobian(who, func, argnums, has_aux):
    @wraps(func)
    @_per_example
    def jacobian(*args, **kwargs):
        places, single = _positions(who, argnums, args)
        evaluation = _Evaluation(who, func, args, kwargs, places, has_aux)
        trees = []
        for y in evaluation.outputs:
            with enable_grad():
                values = y.reshape(-1).unbind()
            rows = [evaluation.pulled([value], [None]) for value in values]
            columns = zip(*rows) if rows else ([] for _ in evaluation.inputs)
            wholes = [
                _C.stack(list(column)).reshape((*y.shape, *x.shape)) if rows else x.new_zeros((*y.shape, *x.shape))
                for column, x in zip(columns, evaluation.inputs)
            ]
            found = evaluation.like_inputs(wholes)
            trees.append(found[0] if single else found)
        result = evaluation.build(trees)
        return (result, evaluation.aux) if has_aux else result

    return jacobian


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None):
    """A function that computes the Jacobian of `func`: for each output, its shape followed by that of the input.

    One backward per output value. `argnums` and `has_aux` are as in `grad`. `chunk_size` bounds how many rows PyTorch computes
    at a time; here it is always one.

    >>> lucid.func.jacrev(lambda x: x * x)(lucid.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")
    return _jacobian("jacrev", func, argnums, has_aux)


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """A function that computes the Jacobian of `func`. It is `jacrev` here: the engine differentiates in reverse only.

    >>> lucid.func.jacfwd(lambda x: x * x)(lucid.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    return _jacobian("jacfwd", func, argnums, has_aux)


def hessian(func, argnums=0):
    """A function that computes the second derivatives of `func`: the Jacobian of its Jacobian.

    >>> lucid.func.hessian(lambda x: (x**3).sum())(lucid.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
