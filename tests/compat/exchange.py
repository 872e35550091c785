"""Convert values between PyTorch and Lucid exactly: element bits, strides, storage offset, shared memory.

A tensor is converted as a flat copy of its whole storage and a view of that copy. Conjugate and negative bits are
resolved first.
"""

import functools
import types

import torch

import lucid

BITS = {2: "int16", 4: "int32", 8: "int64"}  # integer dtypes that carry dtypes which DLPack lacks


class Missing(Exception):
    """Lucid has no such name."""


def find(space, path):
    """lucid.foo, lucid.Tensor.foo: the attribute, or Missing."""
    for name in path.split("."):
        if not hasattr(space, name):
            raise Missing(f"lucid.{path} does not exist")
        space = getattr(space, name)
    return space


def to_lucid_flat(flat):
    try:
        return lucid.from_dlpack(flat)
    except Exception:  # noqa: BLE001  not a dtype of DLPack
        return lucid.from_dlpack(flat.view(getattr(torch, BITS[flat.itemsize]))).view(named(flat.dtype))


def to_torch(x):
    """A Lucid tensor as a PyTorch tensor (sharing its memory)."""
    x = x.detach()
    if x.is_complex():
        x = x.resolve_conj()
    try:
        return torch.from_dlpack(x)
    except Exception:  # noqa: BLE001  not a dtype of DLPack
        dtype = getattr(torch, str(x.dtype).split(".")[-1])
        x = x.contiguous() if x.numel() else x.reshape(-1)
        shape = tuple(x.shape)
        return torch.from_dlpack(x.reshape(-1).view(getattr(lucid, BITS[dtype.itemsize]))).view(dtype).reshape(shape)


@functools.cache
def named(value):
    """torch.float32, torch.strided, torch.channels_last: the object of Lucid with the same name."""
    name = str(value).split(".")[-1]
    return find(lucid, name)


class Exchange:
    """One conversion of a sample's arguments: remembers storages, so that what was shared stays shared, and the leaves."""

    def __init__(self, ours):
        self.ours, self.flat, self.leaves, self.tensors = ours, {}, [], []
        self.held = []  # a resolved copy must not die: the next one could get its address

    def placed(self, flat):
        """The copied bytes of a storage, where the tensors of this conversion live."""
        return flat

    def tensor(self, t):
        if t.device.type == "meta":  # no bytes to copy
            m, dtype = (lucid, named(t.dtype)) if self.ours else (torch, t.dtype)
            return m.empty_strided(tuple(t.shape), tuple(t.stride()), dtype=dtype, device="meta")
        grad = t.requires_grad
        t = t.detach()
        if t.is_conj() or t.is_neg():
            t = t.resolve_conj().resolve_neg()
        storage = t.untyped_storage()
        key = storage.data_ptr() and (storage.data_ptr(), t.dtype)
        flat = self.flat.get(key) if key else None
        if flat is None:
            flat = torch.empty(0, dtype=t.dtype).set_(storage).clone()
            if self.ours:
                flat = self.placed(to_lucid_flat(flat))
            if key:
                self.flat[key] = flat
                self.held.append(storage)
        x = flat.as_strided(tuple(t.shape), tuple(t.stride()), t.storage_offset()).detach()
        if grad:
            x.requires_grad_()
            self.leaves.append(x)
        self.tensors.append(x)
        return x

    def __call__(self, value):
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, torch.Size):
            return lucid.Size(value) if self.ours else value
        if isinstance(value, (list, tuple)):
            if hasattr(value, "_fields"):
                return type(value)(*(self(v) for v in value))
            return type(value)(self(v) for v in value)
        if isinstance(value, dict):
            return {k: self(v) for k, v in value.items()}
        if isinstance(value, slice):
            return slice(self(value.start), self(value.stop), self(value.step))
        if not self.ours:
            return value
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return named(value)
        if isinstance(value, torch.device):
            return lucid.device(str(value))
        if isinstance(value, torch.Generator):
            generator = lucid.Generator()
            generator.manual_seed(value.initial_seed())
            return generator
        if isinstance(value, torch.nn.PairwiseDistance):
            return lambda x, y: lucid.pairwise_distance(x, y, value.norm, value.eps, value.keepdim)
        if isinstance(value, types.FunctionType):
            return rebuilt(value)
        return value


def seeded(op, *args, **kwargs):
    """What op_db calls wrapper_set_seed, for Lucid."""
    lucid.manual_seed(42)
    return op(*args, **kwargs)


class Names:
    """Resolves torch.* in lucid; torch.ops.aten.name.default is PyTorch's path to functions without a public name."""

    def __getattr__(self, name):
        return Operators() if name == "ops" else getattr(lucid, name)


class Operators:
    aten = property(lambda self: self)

    def __getattr__(self, name):
        return types.SimpleNamespace(default=find(lucid.nn.functional, name))


def rebuilt(f):
    """A function of op_db (a lambda around the op) with torch replaced by lucid."""
    to_ours = Exchange(ours=True)
    names = dict(f.__globals__, torch=Names(), wrapper_set_seed=seeded)
    cells = tuple(types.CellType(to_ours(c.cell_contents)) for c in f.__closure__ or ())
    made = types.FunctionType(f.__code__, names, f.__name__, to_ours(f.__defaults__ or ()), cells)
    made.__kwdefaults__ = to_ours(f.__kwdefaults__)
    return made


def counterpart(f, name):
    """The function of Lucid for a function of op_db: the same path, or the same wrapper around the same path."""
    if isinstance(f, types.FunctionType) and f.__module__.startswith("torch.testing._internal"):
        return rebuilt(f)
    if isinstance(f, torch._ops.OpOverload):  # torch.ops.aten.slice.Tensor
        name = f._schema.name.split("::")[1]
    if "." in name:
        return find(lucid, name)
    for candidate in (name, getattr(f, "__name__", name)):
        if getattr(torch, candidate, None) is f:
            return find(lucid, candidate)
        if getattr(torch.Tensor, candidate, None) is f:
            return find(lucid, f"Tensor.{candidate}")
    return find(lucid, name)
