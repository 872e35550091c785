"""Checkpoints that keep the results of chosen ops and compute only the others again.

A policy is asked about every op of a checkpointed function. What it saves is kept, and is there when backward runs the function
again: the op does not run a second time. A mode (`overrides.TorchFunctionMode`) sees the calls and names them by PyTorch's aten
ops, as `lucid.ops.aten.mm.default`.

The op itself is not run again, but its part of the graph needs what it had saved for backward. The first run notes for each of
these tensors which argument or result it was; the second run takes it from there. Rejected: keeping all that the op saved,
which would keep the inputs of every matrix product besides its result.

>>> def policy(ctx, op, *args, **kwargs):
...     return CheckpointPolicy.MUST_SAVE if op == lucid.ops.aten.mm.default else CheckpointPolicy.PREFER_RECOMPUTE
>>> from functools import partial
>>> from lucid.utils.checkpoint import checkpoint
>>> x = lucid.ones(2, 2, requires_grad=True)
>>> contexts = partial(create_selective_checkpoint_contexts, policy)
>>> checkpoint(lambda x: (x @ x).sigmoid().sum(), x, use_reentrant=False, context_fn=contexts).backward()
"""

from collections import defaultdict
from enum import Enum

from .. import _C, random
from .._ops.packets import OpOverload, OpOverloadPacket, ops
from ..overrides import TorchFunctionMode
from . import _pytree

__all__ = ["CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts"]


class CheckpointPolicy(Enum):
    """What happens to an op's result: it is saved, saved on the CPU, or computed again. MUST and PREFER are the same here.

    >>> CheckpointPolicy.MUST_SAVE.name
    'MUST_SAVE'
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVED = {CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE}
_ON_CPU = {CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD}


class SelectiveCheckpointContext:
    """What a policy is told besides the op: whether this is the run of backward.

    >>> SelectiveCheckpointContext(is_recompute=False).is_recompute
    False
    """

    def __init__(self, *, is_recompute, op_output=None):
        self.is_recompute, self.op_output = is_recompute, op_output


# ---- PyTorch's names of ops ----

_INNER = {  # the op that PyTorch runs for a function
    "layer_norm": "native_layer_norm",
    "group_norm": "native_group_norm",
    "batch_norm": "native_batch_norm",
    "dropout": "native_dropout",
    "softmax": "_softmax",
    "log_softmax": "_log_softmax",
    "max_pool2d": "max_pool2d_with_indices",
    "einsum": "bmm",
    **dict.fromkeys(["conv1d", "conv2d", "conv3d"], "convolution"),
    **dict.fromkeys(["conv_transpose1d", "conv_transpose2d", "conv_transpose3d"], "convolution"),
}
_OF_TENSORS = set("add sub mul div add_ sub_ mul_ div_ bitwise_and bitwise_or bitwise_xor slice index".split())
_COMPARISONS = set("eq ne lt le gt ge remainder fmod".split())
_DRAWING = ("dropout", "scaled_dot_product_attention")
_IGNORED = {"detach"}


def _product(a, b):
    if a.ndim == 1 and b.ndim == 1:
        return "dot"
    if b.ndim == 1:
        return "mv"
    return "bmm" if a.ndim > 2 and b.ndim > 2 else "mm"


def _overload(name, args, kwargs):
    """Which of an op's overloads PyTorch calls."""
    other = args[1] if len(args) > 1 else None
    if name in _OF_TENSORS:
        return "Tensor"
    if name in _COMPARISONS:
        return "Tensor" if isinstance(other, _C.Tensor) else "Scalar"
    if name == "pow":
        return "_".join("Tensor" if isinstance(a, _C.Tensor) else "Scalar" for a in args[:2])
    if name in ("sum", "mean") and (other is not None or "dim" in kwargs):
        return "dim_IntList" if name == "sum" else "dim"
    return {"transpose": "int", "select": "int", "where": "self"}.get(name, "default")


def _aten(name, args, kwargs):
    """The op of PyTorch for a function by name; None: it has none."""
    if name == "linear":
        bias = args[2] if len(args) > 2 else kwargs.get("bias")
        name = "mm" if bias is None else "addmm"
    elif name == "matmul":
        name = _product(*args[:2]) if len(args) > 1 else "mm"
    elif name == "scaled_dot_product_attention":
        on_cpu = args and args[0].device.type == "cpu"
        name = "_scaled_dot_product_flash_attention" + ("_for_cpu" if on_cpu else "")
    else:
        name = _INNER.get(name, name)
    packet = getattr(ops.aten, name, None)
    return packet and getattr(packet, _overload(name, args, kwargs))


# ---- the two runs ----


class _Entry:
    """The result of an op, and what its backward had saved: ("argument", number), ("result", number) or the tensor itself."""

    def __init__(self, result, saved, arguments, on_cpu, state):
        leaves, self.build = _pytree.tree_flatten(result)
        self.leaves = [(t.detach(), t.requires_grad, t._version) if isinstance(t, _C.Tensor) else t for t in leaves]
        places = {_key(t): ("result", i) for i, t in enumerate(leaves) if isinstance(t, _C.Tensor)}
        places |= {_key(t): ("argument", i) for i, t in enumerate(arguments)}
        self.saved = [places.get(_key(t)) or t.detach() for t in saved]
        self.state = state
        self.devices = None
        if on_cpu:
            self.devices = [x[0].device if isinstance(x, tuple) else None for x in self.leaves]
            self.leaves = [(x[0].cpu(), x[1], None) if isinstance(x, tuple) else x for x in self.leaves]

    def result(self, check):
        """The results again, as leaves of the new graph."""
        made = []
        for i, leaf in enumerate(self.leaves):
            if not isinstance(leaf, tuple):
                made.append(leaf)
                continue
            tensor, requires_grad, version = leaf
            if check and version is not None and tensor._version != version:
                raise RuntimeError(
                    "Tensor cached during selective activation checkpoint has been mutated; allow_cache_entry_mutation=True "
                    "takes it as it is"
                )
            tensor = tensor.detach() if self.devices is None else tensor.to(self.devices[i])
            made.append(tensor.requires_grad_(requires_grad))
        return made


def _key(tensor):
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype


def _tensors(args, kwargs):
    return [t for t in _pytree.tree_flatten((args, kwargs))[0] if isinstance(t, _C.Tensor)]


class _Run(TorchFunctionMode):
    """Asks the policy about every op; subclasses say what saving means."""

    again = False

    def __init__(self, policy, cache, check):
        self.policy, self.cache, self.check = policy, cache, check

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        inner = getattr(func, "__wrapped__", None)
        if inner is not None and name not in _INNER and name != "embedding":
            with self:  # a function of functions: the policy is asked about those
                return inner(*args, **kwargs)
        op = None if name.startswith("__") or name in _IGNORED else _aten(name, args, kwargs)
        if op is None:
            return func(*args, **kwargs)
        wanted = self.policy(SelectiveCheckpointContext(is_recompute=self.again), op, *args, **kwargs)
        if not isinstance(wanted, CheckpointPolicy):
            wanted = CheckpointPolicy.MUST_SAVE if wanted else CheckpointPolicy.PREFER_RECOMPUTE
        # what is written in place has to be written again
        if wanted not in _SAVED | _ON_CPU or name.endswith("_") or kwargs.get("out") is not None or kwargs.get("inplace"):
            return func(*args, **kwargs)
        return self.saved_call(op, func, args, kwargs, wanted in _ON_CPU, name in _DRAWING)


class _First(_Run):
    def saved_call(self, op, func, args, kwargs, on_cpu, draws):
        from .checkpoint import running

        frame, arguments = running(), _tensors(args, kwargs)
        frame.watched = watched = []
        try:
            result = func(*args, **kwargs)
        finally:
            frame.watched = None
        state = random.get_rng_state() if draws and frame.random_state is not None else None
        self.cache[op].append(_Entry(result, watched, arguments, on_cpu, state))
        return result


class _Again(_Run):
    again = True

    def saved_call(self, op, func, args, kwargs, on_cpu, draws):
        from .checkpoint import running

        if not self.cache[op]:
            raise RuntimeError(
                f"{op} encountered during backward, but not found in storage: backward may run once through a selective "
                "checkpoint, and its policy has to decide alike in both runs"
            )
        entry, arguments = self.cache[op].pop(0), _tensors(args, kwargs)
        leaves = entry.result(self.check)
        if entry.state is not None:
            random.set_rng_state(entry.state)
        frame = running()
        for place in entry.saved:
            frame.keep(place if isinstance(place, _C.Tensor) else (leaves if place[0] == "result" else arguments)[place[1]])
        return _pytree.tree_unflatten(leaves, entry.build)


def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation=False):
    """Two contexts for `checkpoint(..., context_fn=)`, for its first run and for that of backward, between which the results of
    some ops are kept.

    policy_fn_or_list: a function of (context, op, *args, **kwargs) that returns a `CheckpointPolicy`, or a list of ops to save,
    such as `lucid.ops.aten.mm.default`. Backward may run once. Results that were written in place meanwhile are an error unless
    `allow_cache_entry_mutation`.

    >>> from functools import partial
    >>> from lucid.utils.checkpoint import checkpoint
    >>> x = lucid.eye(2, requires_grad=True)
    >>> save_products = partial(create_selective_checkpoint_contexts, [lucid.ops.aten.mm.default])
    >>> checkpoint(lambda x: (x @ x).exp().sum(), x, use_reentrant=False, context_fn=save_products).backward()
    """
    policy = policy_fn_or_list
    if isinstance(policy, list):
        for op in policy:
            if not isinstance(op, OpOverload):
                told = (
                    f"Please update the OpOverloadPacket to a specific OpOverload: {op}.default"
                    if isinstance(op, OpOverloadPacket)
                    else "only ops such as lucid.ops.aten.mm.default can be saved"
                )
                raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op}. {told}")
        chosen = set(policy)

        def policy(ctx, op, *args, **kwargs):
            return CheckpointPolicy.MUST_SAVE if op in chosen else CheckpointPolicy.PREFER_RECOMPUTE

    elif not callable(policy):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    cache = defaultdict(list)
    return _First(policy, cache, True), _Again(policy, cache, not allow_cache_entry_mutation)
