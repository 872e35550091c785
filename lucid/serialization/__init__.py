"""Checkpoints: `save` and `load` in PyTorch's format, safetensors, and NumPy's files.

>>> import io
>>> file = io.BytesIO()
>>> lucid.save({"weight": lucid.ones(2), "epoch": 3}, file)
>>> _ = file.seek(0)
>>> lucid.load(file)
{'weight': tensor([1., 1.]), 'epoch': 3}

A file that PyTorch wrote is read, and PyTorch reads what is written here. Reading runs nothing: names and calls that a file
of weights does not need are refused (`weights_only=False` takes that back, for files you trust). A path that is written to
holds the old file until the new one is complete and on disk.
"""

from .errors import CorruptFileError, MissingDeviceError, NewerVersionError
from .npy import _read_array, _read_npz, load_npy, load_npz, save_npy, save_npz
from .safetensors import load_safetensors, safetensors_metadata, save_safetensors
from .sharded import load_sharded, save_sharded

__all__ = [
    "CorruptFileError",
    "MissingDeviceError",
    "NewerVersionError",
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "load",
    "load_npy",
    "load_npz",
    "load_safetensors",
    "load_sharded",
    "safe_globals",
    "safetensors_metadata",
    "save",
    "save_npy",
    "save_npz",
    "save_safetensors",
    "save_sharded",
]

_safe = []


def save(obj, f, pickle_module=None, pickle_protocol=2, _use_new_zipfile_serialization=True, _disable_byteorder_record=False):
    """Write an object to a path or a file object, in the format that PyTorch reads.

    Tensors that look at the same memory do so again when they are loaded. A path is replaced at once, when the new file is
    complete and on disk: a crash, a kill or a full disk leaves the old one. pickle_module can only be Python's own.

    >>> import io
    >>> file = io.BytesIO()
    >>> lucid.save(lucid.nn.Linear(2, 1).state_dict(), file)
    """
    import pickle

    from .files import target
    from .torch_format import write

    if pickle_module not in (None, pickle):
        raise ValueError("save writes with Python's pickle: pickle_module cannot be another one")
    if not isinstance(pickle_protocol, int) or not 2 <= pickle_protocol <= pickle.HIGHEST_PROTOCOL:
        raise ValueError(f"pickle_protocol is 2 to {pickle.HIGHEST_PROTOCOL}, not {pickle_protocol!r}")
    with target(f) as file:
        if _use_new_zipfile_serialization:
            write(obj, file, pickle_protocol, not _disable_byteorder_record)
        else:
            from . import legacy

            legacy.write(obj, file, pickle_protocol)


def load(f, map_location=None, pickle_module=None, *, weights_only=True, mmap=False, **pickle_load_args):
    """Read what `save`, PyTorch's `torch.save`, or NumPy's `save` and `savez` wrote, from a path or a file object.

    map_location: a device for all tensors, a dict from device to device, or a function of (storage, location). weights_only:
    True reads tensors, numbers, texts and containers and runs nothing; False runs whatever the file says. mmap: tensors are the
    file's pages, read when they are touched; checksums are then not checked.

    >>> import io
    >>> file = io.BytesIO()
    >>> lucid.save([lucid.zeros(1), "text"], file)
    >>> _ = file.seek(0)
    >>> lucid.load(file)
    [tensor([0.]), 'text']
    """
    from .files import Source

    if weights_only is None:
        weights_only = True
    if weights_only and (pickle_module is not None or pickle_load_args):
        raise RuntimeError("pickle_module and arguments of the unpickler have no meaning with weights_only=True")
    options = {} if weights_only else {"pickle_module": pickle_module, **pickle_load_args}
    with Source(f) as source:
        start = source.read(0, min(source.size, 8))
        if start[:6] == b"\x93NUMPY":
            return _read_array(source, 0, source.size)
        if start[:4] == b"PK\3\4":
            return _load_zip(source, map_location, bool(mmap), not weights_only, options)
        if start[:1] != b"\x80":
            what = "an empty file" if not start else "not a checkpoint: it is neither a zip archive nor a pickle"
            raise CorruptFileError(what)
        if mmap:
            raise RuntimeError("mmap=True needs a file of the zip format; save it again")
        from . import legacy

        return legacy.read(source, map_location, not weights_only, _allowed(), **options)


def _load_zip(source, map_location, mapped, trusted, options):
    from .archive import Reader
    from .torch_format import read_zip

    names = Reader(source, deflated=True).records
    if "data.pkl" not in names and names and all(name.endswith(".npy") for name in names):
        return _read_npz(source)
    return read_zip(source, map_location, mapped, trusted, _allowed(), **options)


def add_safe_globals(safe_globals):
    """Allow classes and functions to be named by files that `load(..., weights_only=True)` reads.

    They will be called: functions, and a class's `__new__` and `__setstate__`. A pair (class, "module.name") allows the class
    under another name, which it had once.

    >>> class Config: pass
    >>> lucid.serialization.add_safe_globals([Config, (Config, "old.place.Config")])
    >>> lucid.serialization.clear_safe_globals()
    """
    for allowed in safe_globals:
        pair = isinstance(allowed, tuple) and len(allowed) == 2 and isinstance(allowed[1], str) and "." in allowed[1]
        if not callable(allowed[0] if pair else allowed):
            raise TypeError(f"expected classes, functions, or pairs of one and its full name, not {allowed!r}")
        if allowed not in _safe:
            _safe.append(allowed)


def _allowed():
    """What add_safe_globals has allowed, by full name."""
    pairs = (a if isinstance(a, tuple) else (a, f"{a.__module__}.{a.__qualname__}") for a in _safe)
    return {name: a for a, name in pairs}


def clear_safe_globals():
    """Take back what add_safe_globals allowed.

    >>> lucid.serialization.clear_safe_globals()
    """
    _safe.clear()


def get_safe_globals():
    """What add_safe_globals has allowed.

    >>> lucid.serialization.get_safe_globals()
    []
    """
    return list(_safe)


class safe_globals:  # noqa: N801 (PyTorch's name)
    """Allow classes and functions inside a with block.

    >>> class Config: pass
    >>> with lucid.serialization.safe_globals([Config]):
    ...     len(lucid.serialization.get_safe_globals())
    1
    """

    def __init__(self, safe_globals):
        self.classes = list(safe_globals)

    def __enter__(self):
        self.before = list(_safe)
        add_safe_globals(self.classes)

    def __exit__(self, *_):
        _safe[:] = self.before
