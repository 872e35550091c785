"""Private names of PyTorch's modules that packages import: of `hub`, `serialization`, `optim`, `nn`, `utils`, `autograd`."""

import os
import re
from collections.abc import Iterable
from typing import Any

from .. import _C

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
MAP_LOCATION = Any
ParamsT = Iterable
PyTree = Any
Context = Any
np_str_obj_array_pattern = re.compile(r"[SaUO]")


def _get_torch_home():
    """TORCH_HOME, or torch in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def hub_load(repo_or_dir, model, *args, source="github", **kwargs):
    """A model of a folder with a `hubconf.py`; folders of GitHub are not downloaded.

    >>> lucid._declared.private.hub_load("owner/name", "model")
    Traceback (most recent call last):
    NotImplementedError: ...
    """
    if source != "local":
        raise NotImplementedError(f"hub.load: {repo_or_dir} would run code from the network; use source='local' and a folder")
    from importlib.util import module_from_spec, spec_from_file_location

    for name in ("trust_repo", "force_reload", "verbose", "skip_validation"):
        kwargs.pop(name, None)
    spec = spec_from_file_location("hubconf", os.path.join(repo_or_dir, "hubconf.py"))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    if not callable(getattr(module, model, None)):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return getattr(module, model)(*args, **kwargs)


def get_unsafe_globals_in_checkpoint(f):
    """The classes and functions that a checkpoint names and loading would not call: all but tensors' own.

    >>> import io
    >>> file = io.BytesIO()
    >>> lucid.save({"a": lucid.ones(1)}, file)
    >>> lucid._declared.private.get_unsafe_globals_in_checkpoint(io.BytesIO(file.getvalue()))
    []
    """
    import io
    import zipfile

    from .pickles import get_globals_in_pkl

    with zipfile.ZipFile(f) as archive:
        name = next(n for n in archive.namelist() if n.endswith("data.pkl"))
        found = get_globals_in_pkl(io.BytesIO(archive.read(name)))
    return sorted(n for n in found if not n.startswith(("torch.", "torch", "collections.OrderedDict", "_codecs.encode")))


# ---- optim ----


def _use_grad_for_differentiable(step):
    from ..optim.optimizer import without_grad

    return without_grad(step)


def _default_to_fused_or_foreach(params, differentiable, use_fused=False):
    return False, False


def _get_capturable_supported_devices(supports_xla=True):
    return ["cuda", "xpu", "hpu", "privateuseone"]


def _get_value(x):
    return x.item() if isinstance(x, _C.Tensor) else x


def _dispatch_sqrt(x):
    return x.sqrt() if isinstance(x, _C.Tensor) else x**0.5


def _view_as_real(params, *state_and_grads):
    for i, p in enumerate(params):
        if p.is_complex():
            params[i] = p.view(p.dtype.to_real())


# ---- nn ----


def _no_grad_uniform_(tensor, a, b, generator=None):
    before = _C._set_grad_enabled(False)
    try:
        return tensor.uniform_(a, b) if generator is None else tensor.uniform_(a, b, generator=generator)
    finally:
        _C._set_grad_enabled(before)


def _no_grad_normal_(tensor, mean, std, generator=None):
    before = _C._set_grad_enabled(False)
    try:
        return tensor.normal_(mean, std) if generator is None else tensor.normal_(mean, std, generator=generator)
    finally:
        _C._set_grad_enabled(before)


def _get_activation_fn(activation):
    from ..nn import functional

    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(functional, activation)


def _get_clones(module, n):
    import copy

    from ..nn import ModuleList

    return ModuleList([copy.deepcopy(module) for _ in range(n)])


def grouped_mm(mat_a, mat_b, *, offs=None, bias=None, out_dtype=None):
    """Products of groups of rows by a matrix of their own.

    >>> from lucid._declared.private import grouped_mm
    >>> grouped_mm(lucid.ones(2, 1), lucid.ones(2, 1, 1), offs=lucid.tensor([1, 2]))
    tensor([[1.],
            [1.]])
    """
    from .tensors import _grouped_mm

    return _grouped_mm(mat_a, mat_b, offs, bias, out_dtype)


# ---- utils ----


def detach_variable(inputs):
    """Inputs cut from the graph, each of which needs a gradient as before.

    >>> from lucid._declared.private import detach_variable
    >>> detach_variable((lucid.ones(1, requires_grad=True), 2))[0].is_leaf
    True
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    cut = []
    for value in inputs:
        if isinstance(value, _C.Tensor):
            needed, value = value.requires_grad, value.detach()
            value.requires_grad = needed
        cut.append(value)
    return tuple(cut)


def check_backward_validity(inputs):
    """Warn if no input needs a gradient.

    >>> from lucid._declared.private import check_backward_validity
    >>> check_backward_validity([lucid.ones(1, requires_grad=True)])
    """
    import warnings

    if not any(isinstance(value, _C.Tensor) and value.requires_grad for value in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def get_device_states(*args):
    """(numbers, states of their random streams) of the CUDA devices that arguments are on.

    >>> from lucid._declared.private import get_device_states
    >>> get_device_states(lucid.ones(1))
    ([], [])
    """
    from .. import cuda
    from ..utils._pytree import tree_leaves

    devices = sorted({x.get_device() for x in tree_leaves(args) if isinstance(x, _C.Tensor) and x.device.type == "cuda"})
    return devices, [cuda.get_rng_state(device) for device in devices]


def set_device_states(devices, states, *, device_type=None):
    """Put random streams of devices back.

    >>> from lucid._declared.private import set_device_states
    >>> set_device_states([], [])
    """
    from .. import cuda

    for device, state in zip(devices, states):
        cuda.set_rng_state(state, device)


def _load_tqdm():
    try:
        from tqdm import tqdm
    except ImportError:
        from .contexts import nothing as tqdm
    return tqdm


tqdm = _load_tqdm()


# ---- autograd ----


def _is_checkpoint_valid():
    return not _C._backward_partial()


def _profiler_enabled():
    return False


class _InverseTransform:
    """For `isinstance`: inverses are transforms of their own."""


# ---- pytree ----


class SequenceKey:
    """The place of a leaf in a list.

    >>> str(lucid._declared.private.SequenceKey(2))
    '[2]'
    """

    def __init__(self, idx):
        self.idx = idx

    def get(self, sequence):
        return sequence[self.idx]

    def __str__(self):
        return f"[{self.idx!r}]"

    def __eq__(self, other):
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self):
        return hash(str(self))

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"


class MappingKey(SequenceKey):
    """The place of a leaf in a dict.

    >>> str(lucid._declared.private.MappingKey("a"))
    "['a']"
    """

    def __init__(self, key):
        self.key = key

    def get(self, mapping):
        return mapping[self.key]

    def __str__(self):
        return f"[{self.key!r}]"


class GetAttrKey(SequenceKey):
    """The place of a leaf in a named tuple.

    >>> str(lucid._declared.private.GetAttrKey("a"))
    '.a'
    """

    def __init__(self, name):
        self.name = name

    def get(self, obj):
        return getattr(obj, self.name)

    def __str__(self):
        return f".{self.name}"


def _dict_flatten(d):
    return list(d.values()), list(d.keys())


def _dict_flatten_with_keys(d):
    values, keys = _dict_flatten(d)
    return [(MappingKey(k), v) for k, v in zip(keys, values)], keys


def _dict_unflatten(values, context):
    return dict(zip(context, values))


def _list_flatten(d):
    return list(d), None


def _list_flatten_with_keys(d):
    return [(SequenceKey(i), v) for i, v in enumerate(d)], None


def _list_unflatten(values, context):
    return list(values)


def _tuple_unflatten(values, context):
    return tuple(values)


def _with_keys(tree, is_leaf):
    from ..utils import _pytree

    kind = _pytree._node_type(tree)
    if (is_leaf is not None and is_leaf(tree)) or kind is None or kind not in _pytree._NODES:
        yield (), tree
        return
    if isinstance(tree, dict):
        parts = [(MappingKey(k), v) for k, v in tree.items()]
    elif hasattr(tree, "_fields"):
        parts = [(GetAttrKey(k), getattr(tree, k)) for k in tree._fields]
    else:
        parts = [(SequenceKey(i), v) for i, v in enumerate(tree)]
    for key, part in parts:
        for path, leaf in _with_keys(part, is_leaf):
            yield (key, *path), leaf


def tree_flatten_with_path(tree, is_leaf=None):
    """Leaves with the keys that lead to them, and the structure.

    >>> lucid._declared.private.tree_flatten_with_path({"a": [1]})[0]
    [((MappingKey(key='a'), SequenceKey(idx=0)), 1)]
    """
    from ..utils import _pytree

    return list(_with_keys(tree, is_leaf)), _pytree.tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree, is_leaf=None):
    """Leaves with the keys that lead to them.

    >>> lucid._declared.private.tree_leaves_with_path([1])
    [((SequenceKey(idx=0),), 1)]
    """
    return list(_with_keys(tree, is_leaf))


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """func of every path and leaf.

    >>> lucid._declared.private.tree_map_with_path(lambda path, leaf: (lucid._declared.private.keystr(path), leaf), [1])
    [('[0]', 1)]
    """
    from ..utils import _pytree

    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return _pytree.tree_unflatten([func(path, leaf, *more) for (path, leaf), *more in zip(pairs, *others)], spec)


def keystr(path):
    """A path as text.

    >>> lucid._declared.private.keystr((lucid._declared.private.SequenceKey(0),))
    '[0]'
    """
    return "".join(map(str, path))


def key_get(obj, path):
    """What a path leads to.

    >>> lucid._declared.private.key_get([7], (lucid._declared.private.SequenceKey(0),))
    7
    """
    for key in path:
        obj = key.get(obj)
    return obj
