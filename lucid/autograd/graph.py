"""The recorded graph from Python: nodes, edges, and saved tensors."""

from _thread import _local
from collections import deque, namedtuple

from .. import _C
from .._C import Node
from .grad_mode import enable_grad

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class _HooksState(_local):
    active, refusal = 0, None  # pairs in force on this thread; why none may be
    mutation_allowed = False


_state = _HooksState()


class saved_tensors_hooks:
    """Decide how tensors are kept for backward: `pack(tensor)` returns anything, `unpack` of that gives an equal tensor
    back.

    Applies to what is recorded inside the `with` block. The innermost pair wins.

    >>> x = lucid.tensor([2.0], requires_grad=True)
    >>> with lucid.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lucid.tensor):
    ...     y = x * x
    >>> y.backward(); x.grad
    tensor([4.])
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        if _state.refusal is not None:
            raise RuntimeError(_state.refusal)
        _C._push_saved_hooks(self.pack_hook, self.unpack_hook)
        _state.active += 1

    def __exit__(self, *error):
        _state.active -= 1
        _C._pop_saved_hooks()


def _pack_on_cpu(t):
    return t.device, t.cpu()


def _unpack_from_cpu(packed):
    device, t = packed
    return t.to(device)


class save_on_cpu(saved_tensors_hooks):
    """Keep what backward needs in CPU memory and move it back when backward asks for it.

    >>> x = lucid.tensor([2.0], requires_grad=True)
    >>> with lucid.autograd.graph.save_on_cpu():
    ...     y = x * x
    >>> y.backward(); x.grad
    tensor([4.])
    """

    def __init__(self, pin_memory=False, device_type="cuda"):
        if pin_memory:
            raise NotImplementedError("save_on_cpu: pinned memory is not available")
        super().__init__(_pack_on_cpu, _unpack_from_cpu)


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Tensors recorded in the `with` block may be changed in place before backward: it uses the values they had.

    A copy is kept of each, so this costs memory.

    >>> x = lucid.tensor([2.0], requires_grad=True)
    >>> with lucid.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x * 3
    ...     z = y * y
    ...     _ = y.zero_()
    ...     z.backward()
    >>> x.grad
    tensor([36.])
    """

    def __init__(self):
        super().__init__(_copy_of, _as_it_is)

    def __enter__(self):
        if _state.mutation_allowed:
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        super().__enter__()
        _state.mutation_allowed = True

    def __exit__(self, *error):
        _state.mutation_allowed = False
        super().__exit__(*error)


def _copy_of(t):
    return t.clone()


def _as_it_is(t):
    return t


class disable_saved_tensors_hooks:
    """Refuse `saved_tensors_hooks` inside the `with` block: entering one raises `error_message`.

    >>> with lucid.autograd.graph.disable_saved_tensors_hooks("not here"):
    ...     with lucid.autograd.graph.save_on_cpu():
    ...         pass
    Traceback (most recent call last):
    RuntimeError: not here
    """

    def __init__(self, error_message):
        self.error_message = error_message

    def __enter__(self):
        if _state.active:
            raise RuntimeError(self.error_message)
        self._before, _state.refusal = _state.refusal, self.error_message

    def __exit__(self, *error):
        _state.refusal = self._before


class GradientEdge(namedtuple("GradientEdge", ("node", "output_nr", "ownership_token"), defaults=(None,))):
    """Where a tensor's gradient is computed: output `output_nr` of `node`. Accepted wherever `autograd.grad` and
    `backward` take a tensor.

    >>> x = lucid.tensor([2.0], requires_grad=True)
    >>> y = x * x
    >>> lucid.autograd.graph.get_gradient_edge(y).output_nr
    0
    """

    __slots__ = ()

    def _tensor(self):
        tensor = self.ownership_token
        if tensor is None or (tensor.grad_fn is not None and tensor.grad_fn is not self.node):
            raise RuntimeError("this GradientEdge is out of date: its tensor was changed in place since get_gradient_edge")
        return tensor


def get_gradient_edge(tensor):
    """The edge through which the gradient of `tensor` flows.

    >>> x = lucid.tensor([2.0], requires_grad=True)
    >>> y = x * x
    >>> edge = lucid.autograd.graph.get_gradient_edge(x)
    >>> lucid.autograd.grad(y, edge)
    (tensor([4.]),)
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node = tensor.grad_fn
    if node is None:
        with enable_grad():
            node = tensor.view(tensor.shape).grad_fn.next_functions[0][0]
    return GradientEdge(node, tensor.output_nr, tensor)


class _MultiHandle:
    """A handle that removes several hooks at once."""

    def __init__(self, handles):
        self.handles = handles

    def remove(self):
        """Take the hooks away."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Call `fn` once per backward: with the list of all gradients when the last of them is there (mode "all"), or with the
    first one (mode "any").

    Tensors that a backward does not reach are not waited for: their gradient is None.

    >>> a, b = lucid.ones(2, requires_grad=True), lucid.ones(2, requires_grad=True)
    >>> handle = lucid.autograd.graph.register_multi_grad_hook((a, b), lambda grads: print(grads))
    >>> (a * 3).sum().backward()
    [tensor([3., 3.]), None]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = list(tensors)
    runs = {}  # per backward under way: the gradients so far, and how many are still to come
    done = deque(maxlen=16)  # mode "any": backwards that had their call

    def with_all(place):
        def hook(gradient):
            number = _C._backward_passes(())[0]
            if number not in runs:
                runs[number] = [[None] * len(tensors), sum(_C._backward_passes(tensors)[1])]
            runs[number][0][place] = gradient
            runs[number][1] -= 1
            if not runs[number][1]:
                fn(runs.pop(number)[0])

        return hook

    def with_first(gradient):
        number = _C._backward_passes(())[0]
        if number not in done:
            done.append(number)
            fn(gradient)

    if mode == "any":
        return _MultiHandle([t.register_hook(with_first) for t in tensors if t.requires_grad])
    return _MultiHandle([t.register_hook(with_all(i)) for i, t in enumerate(tensors)])
