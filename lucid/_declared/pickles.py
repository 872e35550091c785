"""Functions that PyTorch's pickles and checkpoints name, and helpers of `torch._utils`."""

import traceback

from .. import _C
from ..nn.parameter import Parameter


def _storage_bytes(storage):
    return storage.untyped() if hasattr(storage, "untyped") else storage


def _rebuild_tensor(storage, storage_offset, size, stride):
    dtype = getattr(storage, "dtype", _C.uint8)
    flat = _C.asarray(_storage_bytes(storage), dtype=_C.uint8)
    return flat.view(dtype).as_strided(tuple(size), tuple(stride), storage_offset)


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    tensor.requires_grad = requires_grad
    return tensor


def _rebuild_parameter(data, requires_grad, backward_hooks):
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    parameter = Parameter(data, requires_grad)
    parameter.__dict__.update(state if isinstance(state, dict) else state[0])
    return parameter


def _rebuild_from_type_v2(func, new_type, args, state):
    value = func(*args)
    if type(value) is not new_type:
        value = value.as_subclass(new_type)
    if hasattr(value, "__setstate__") and "__setstate__" in vars(new_type):
        value.__setstate__(state)
    elif state:
        value.__dict__.update(state if isinstance(state, dict) else state[0])
    return value


def _get_user_allowed_globals():
    from ..serialization import get_safe_globals

    return {f"{g.__module__}.{g.__qualname__}": g for g in get_safe_globals()}


def get_globals_in_pkl(file):
    """The classes and functions that a pickle names, without running it.

    >>> import io, pickle
    >>> from lucid._weights_only_unpickler import get_globals_in_pkl
    >>> get_globals_in_pkl(io.BytesIO(pickle.dumps(len, 4)))
    {'builtins.len'}
    """
    import pickletools

    strings, found = [], set()
    for op, argument, _ in pickletools.genops(file):
        if op.name in ("GLOBAL", "INST"):
            found.add(argument.replace(" ", "."))
        elif op.name == "STACK_GLOBAL":
            found.add(".".join(strings[-2:]))
        elif isinstance(argument, str):
            strings.append(argument)
    return found


def _element_size(dtype):
    return dtype.itemsize


def _get_device_index(device, optional=False, allow_cpu=False):
    if isinstance(device, int):
        return device
    device = _C.device(device) if isinstance(device, str) else device
    if device is None or device.index is None:
        if optional or (allow_cpu and device is not None and device.type == "cpu"):
            return -1 if device is not None and device.type == "cpu" else 0
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    return device.index


def _flatten_dense_tensors(tensors):
    return _C.cat([t.reshape(-1) for t in tensors]) if len(tensors) != 1 else tensors[0].reshape(-1)


def _unflatten_dense_tensors(flat, tensors):
    parts = flat.split([t.numel() for t in tensors])
    return tuple(part.view(t.shape) for part, t in zip(parts, tensors))


def render_call(function, args, kwargs):
    """A call in words, for messages.

    >>> lucid._utils.render_call(abs, (1,), {})
    'abs(1)'
    """
    parts = [*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())]
    return f"{getattr(function, '__name__', function)}({', '.join(parts)})"


class ExceptionWrapper:
    """An exception with its traceback as text, to be raised in another thread or process.

    >>> wrapped = lucid._utils.ExceptionWrapper((ValueError, ValueError("no"), None), "in a worker")
    >>> wrapped.reraise()
    Traceback (most recent call last):
    ValueError: ...
    """

    def __init__(self, exc_info=None, where="in background"):
        import sys

        kind, error, trace = exc_info or sys.exc_info()
        self.exc_type, self.where = kind, where
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))

    def reraise(self):
        """Raise the exception here."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        raise (KeyError if self.exc_type is KeyError else self.exc_type)(message)
