"""Namespaces, ops and overloads as objects: looked up once, the same ever after, so that they can be keys of dictionaries."""

import os

from .. import _C
from .registry import OPS, registered

_BUILTIN = ("aten", "prims", "prim")


class OpOverload:
    """An op with given kinds of arguments, `torch.ops.aten.add.Tensor`: callable, comparable, a key.

    >>> lucid.ops.aten.add.Tensor is lucid.ops.aten.add.Tensor
    True
    """

    def __init__(self, packet, name, call):
        self._packet, self._overload, self._op = packet, name, call
        self.__name__, self.__qualname__ = f"{packet.__name__}.{name}", f"{packet._qualname}.{name}"
        self.__module__ = f"lucid.ops.{packet._space}"

    @property
    def overloadpacket(self):
        return self._packet

    @property
    def namespace(self):
        return self._packet._space

    @property
    def op(self):
        return self._op

    @property
    def _schema(self):
        return Schema(self._packet._qualname, self._overload)

    def name(self):
        """The name, as "aten::add.Tensor"."""
        return self._packet._qualname + ("" if self._overload == "default" else f".{self._overload}")

    _name = property(name)

    def __call__(self, *args, **kwargs):
        return self._op(*args, **kwargs)

    def __repr__(self):
        return f"<OpOverload(op='{self._packet._space}.{self._packet.__name__}', overload='{self._overload}')>"

    def __str__(self):
        return f"{self._packet._space}.{self._packet.__name__}.{self._overload}"

    def __reduce__(self):
        return _again, (self._packet._space, self._packet.__name__, self._overload)


def _again(space, name, overload):
    packet = getattr(getattr(ops, space), name)
    return packet if overload is None else getattr(packet, overload)


class Schema:
    """The name of an op and of its overload.

    >>> lucid.ops.aten.add.Tensor._schema.name
    'aten::add'
    """

    def __init__(self, name, overload):
        self.name, self.overload_name = name, "" if overload == "default" else overload


class OpOverloadPacket:
    """An op by name, `torch.ops.aten.add`; its attributes are overloads.

    >>> str(lucid.ops.aten.mul.Scalar)
    'aten.mul.Scalar'
    """

    def __init__(self, space, name, call):
        self._space, self._qualname, self._op = space, f"{space}::{name}", call
        self.__name__ = self.__qualname__ = name
        self.__module__ = f"lucid.ops.{space}"
        self._overloads = {}

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if self._op is None:
            raise AttributeError(f"{self._space}.{self.__name__} has no overload {name!r}")
        found = self._overloads.get(name)
        if found is None:
            found = self._overloads[name] = OpOverload(self, name, self._op)
        return found

    def overloads(self):
        """The names of the overloads that were asked for, and default."""
        return sorted({"default", *self._overloads})

    @property
    def op(self):
        return self._op

    def __call__(self, *args, **kwargs):
        return self._op(*args, **kwargs)

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self._space}.{self.__name__}')>"

    def __str__(self):
        return f"{self._space}.{self.__name__}"

    def __reduce__(self):
        return _again, (self._space, self.__name__, None)


_RENAMED = {  # PyTorch's inner names of what is called differently outside
    "_to_copy": lambda x, **settings: x.to(**{k: v for k, v in settings.items() if v is not None and k != "layout"}, copy=True),
    "_unsafe_view": lambda x, size: x.reshape(size),
    "alias": lambda x: x.view(x.shape),
    "copy": lambda x, source, non_blocking=False: source.to(x, non_blocking=non_blocking, copy=True).expand(x.shape).clone(),
    "_pin_memory": lambda x, device=None: x.pin_memory(device),
    "_softmax": lambda x, dim, half_to_float: _C.softmax(x, dim, dtype=_C.float32 if half_to_float else None),
    "_log_softmax": lambda x, dim, half_to_float: _C.log_softmax(x, dim, dtype=_C.float32 if half_to_float else None),
    "_local_scalar_dense": lambda x: x.item(),
    "sym_size": lambda x, dim=None: x.shape if dim is None else x.shape[dim],
    "sym_stride": lambda x, dim=None: x.stride() if dim is None else x.stride(dim),
    "sym_numel": lambda x: x.numel(),
    "sym_constrain_range_for_size": lambda size, min=None, max=None: None,
    "sym_constrain_range": lambda size, min=None, max=None: None,
    "to": lambda x, *args, **settings: x.to(*args, **settings),
    "slice": lambda x, dim=0, start=None, end=None, step=1: x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)],
    "lift_fresh": lambda x: x,
    "index": lambda x, indices: x[tuple(slice(None) if i is None else i for i in indices)],
    "_sparse_addmm": lambda x, a, b, *, beta=1, alpha=1: _C.addmm(x, a, b, beta=beta, alpha=alpha),
    "_sparse_mm_reduce_impl": lambda a, b, reduce: _sparse_mm(a, b, reduce),
    "_fft_c2c": lambda x, dim, normalization, forward: _fft(x, dim, normalization, forward),
    "scalar_tensor": lambda value, **settings: _C.tensor(value, **{"dtype": None, **settings}),
    "_assert_scalar": lambda value, message: _check(value, message),
    "_assert_async": lambda value, message="assertion failed": _check(value.item(), message),
    "_assert_tensor_metadata": lambda *args, **settings: None,
    "_scaled_dot_product_flash_attention": lambda q, k, v, p=0.0, causal=False, debug=False, *, scale=None: _attention(
        q, k, v, p, causal, scale
    ),
    "_scaled_dot_product_cudnn_attention": lambda q, k, v, bias, lse, p=0.0, causal=False, debug=False, *, scale=None: (
        _attention(q, k, v, p, causal, scale, bias)
    ),
}
_RENAMED["_scaled_dot_product_flash_attention_for_cpu"] = lambda q, k, v, p=0.0, causal=False, *, attn_mask=None, scale=None: (
    _attention(q, k, v, p, causal, scale, attn_mask)
)
_ABSENT = ("_scaled_dot_product_flash_attention_backward", "_scaled_dot_product_cudnn_attention_backward")


def _sparse_mm(a, b, reduce):
    from .. import sparse

    return sparse.mm(a, b, reduce)


def _check(value, message):
    if not value:
        raise RuntimeError(message)


def _fft(x, dim, normalization, forward):
    from .. import fft

    if normalization == 1:
        norm = "ortho"
    else:
        norm = "backward" if (normalization == 0) == bool(forward) else "forward"
    return (fft.fftn if forward else fft.ifftn)(x, dim=tuple(dim), norm=norm)


def _attention(q, k, v, p, causal, scale, bias=None):
    from ..nn.functional import scaled_dot_product_attention

    result = scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=p, is_causal=causal, scale=scale)
    scores = (q @ k.transpose(-2, -1)) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        scores = scores.masked_fill(_C.ones(scores.shape[-2:], dtype=_C.bool).tril().logical_not(), float("-inf"))
    return result, scores.logsumexp(-1)


def _refused(name):
    def call(*args, **kwargs):
        raise NotImplementedError(f"torch.ops.aten.{name} is not in Lucid: autograd has the gradient of attention")

    return call


def _builtin(name):
    """The function behind `torch.ops.aten.name`, or None."""
    import lucid

    if name in _RENAMED:
        return _RENAMED[name]
    if name in _ABSENT:
        return _refused(name)
    for place in (lucid, lucid.nn.functional, lucid.special):
        found = getattr(place, name, None)
        if callable(found) and not isinstance(found, type):
            return found
    method = getattr(lucid.Tensor, name, None)
    if callable(method):
        return lambda tensor, *args, **kwargs: method(tensor, *args, **kwargs)
    for family in ("linalg", "fft", "special"):
        if name.startswith(family + "_"):
            return getattr(getattr(lucid, family), name[len(family) + 1 :], None)
    if name.endswith("_copy"):
        view = _builtin(name[: -len("_copy")])
        return view and (lambda *args, **kwargs: view(*args, **kwargs).clone())
    return None


class _Namespace:
    """Ops whose names start alike: `torch.ops.aten`."""

    def __init__(self, name):
        self.name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if f"{self.name}::{name}" in OPS:
            call = registered(f"{self.name}::{name}")
        elif self.name in _BUILTIN:
            call = _builtin(name)
        else:
            call = None
        if call is None:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
        packet = OpOverloadPacket(self.name, name, call)
        setattr(self, name, packet)
        return packet

    def __dir__(self):
        return sorted(n.partition("::")[2] for n in OPS if n.startswith(self.name + "::"))

    def __repr__(self):
        return f"<OpNamespace {self.name!r}>"


class _Classes:
    """Classes that libraries of C++ register, `torch.classes.space.Name`: there are none, and asking for one says so."""

    loaded_libraries = frozenset()

    def __init__(self, space=None):
        self._space = space

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if self._space is None:
            return _Classes(name)
        raise RuntimeError(
            f"Tried to instantiate class '{self._space}.{name}', but it does not exist! Classes of C++ are registered with "
            "PyTorch's library, which Lucid is not"
        )

    def load_library(self, path):
        """Raises OSError, as `torch.ops.load_library` does."""
        ops.load_library(path)

    def __repr__(self):
        return "<classes>"


class _Ops:
    """`torch.ops`."""

    loaded_libraries = set()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        space = _Namespace(name)
        setattr(self, name, space)
        return space

    def load_library(self, path):
        """Raises OSError: a library of ops for PyTorch needs PyTorch's C++ library."""
        if not os.path.exists(os.fspath(path)):
            raise OSError(f"{path}: cannot open shared object file: No such file or directory")
        raise OSError(f"{path}: built for PyTorch's C++ library (libtorch), which Lucid is not")

    def import_module(self, module):
        """Import a module that registers ops."""
        from importlib import import_module

        import_module(module)

    def __repr__(self):
        return "<ops>"


ops = _Ops()
classes = _Classes()
