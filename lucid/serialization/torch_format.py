"""PyTorch's checkpoint format: a pickle that names tensors as PyTorch does, and a record of bytes per storage.

Files are written so that torch.load reads them: tensors, parameters, dtypes, devices and sizes go by PyTorch's names.
Reading goes the other way by tables of these names; PyTorch itself is never needed.
"""

import datetime
import pickle
from collections import Counter, OrderedDict, defaultdict

from .. import _C
from ..nn.parameter import Parameter
from . import versions
from .archive import Reader, Writer
from .errors import CorruptFileError, MissingDeviceError, UnpicklingError
from .files import bytes_of, make_bools
from .safe_pickle import Machine, described

_PICKLE_LIMIT = 1 << 31
_STORAGES = {
    "DoubleStorage": _C.float64,
    "FloatStorage": _C.float32,
    "HalfStorage": _C.float16,
    "LongStorage": _C.int64,
    "IntStorage": _C.int32,
    "ShortStorage": _C.int16,
    "CharStorage": _C.int8,
    "ByteStorage": _C.uint8,
    "BoolStorage": _C.bool,
    "BFloat16Storage": _C.bfloat16,
    "ComplexDoubleStorage": _C.complex128,
    "ComplexFloatStorage": _C.complex64,
}
_STORAGE_NAMES = {dtype: name for name, dtype in _STORAGES.items()}
_DTYPE_NAMES = (
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex32 complex64 complex128 "
    "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu"
).split()


# --- writing ----------------------------------------------------------------------------------------------------------------
class _Name:
    """A global of another library, written without importing it."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def __call__(self, *args):
        raise TypeError(f"{self.module}.{self.name} is only a name")


_TENSOR = _Name("torch._utils", "_rebuild_tensor_v2")
_TENSOR_OF_DTYPE = _Name("torch._utils", "_rebuild_tensor_v3")
_PARAMETER = _Name("torch._utils", "_rebuild_parameter")
_PARAMETER_WITH_STATE = _Name("torch._utils", "_rebuild_parameter_with_state")
_SPARSE = _Name("torch._utils", "_rebuild_sparse_tensor")
_META = _Name("torch._utils", "_rebuild_meta_tensor_no_storage")
_OF_TYPE = _Name("torch._tensor", "_rebuild_from_type_v2")
_LAYOUT = _Name("torch.serialization", "_get_layout")
_UNTYPED = _Name("torch.storage", "UntypedStorage")
_DEVICE = _Name("torch", "device")
_SIZE = _Name("torch", "Size")
_CLASSES = {_C.Tensor: _Name("torch", "Tensor"), Parameter: _Name("torch.nn.parameter", "Parameter")}
TYPED = {dtype: _Name("torch", name) for dtype, name in _STORAGE_NAMES.items()}
_NAMED_DTYPES = {getattr(_C, name): _Name("torch", name) for name in _DTYPE_NAMES}


class _Stored:
    """A storage in a pickle: the fields of its persistent id."""

    def __init__(self, kind, key, location, count):
        self.id = ("storage", kind, key, location, count)


class Pickler(pickle._Pickler):
    """Python's own pickler, with PyTorch's names for what is PyTorch's.

    >>> import io
    >>> file = io.BytesIO()
    >>> Pickler(file, 2).dump(_C.float32)
    >>> b"torch" in file.getvalue()
    True
    """

    dispatch = dict(pickle._Pickler.dispatch)

    def __init__(self, file, protocol):
        super().__init__(file, protocol)
        self.storages = {}  # where the memory begins -> (key, storage, dtype of the first tensor)

    def persistent_id(self, value):
        if isinstance(value, _C.UntypedStorage):
            value = _Stored(_UNTYPED, self.key_of(value, None)[0], str(value.device), value.nbytes())
        return value.id if isinstance(value, _Stored) else None

    def _save_name(self, value):
        known = self.memo.get(id(value))
        if known:
            self.write(self.get(known[0]))
            return
        self.write(pickle.GLOBAL + f"{value.module}\n{value.name}\n".encode())
        self.memoize(value)

    dispatch[_Name] = _save_name
    dispatch[type(_C.float32)] = lambda self, value: self._save_name(_NAMED_DTYPES[value])
    dispatch[_C.layout] = lambda self, value: self.save_reduce(_LAYOUT, (str(value).replace("lucid", "torch"),), obj=value)

    def reducer_override(self, value):
        if isinstance(value, _C.Tensor):
            return self._reduce_tensor(value)
        if isinstance(value, _C.device):
            return _DEVICE, ((value.type, value.index) if value.index is not None else (value.type,))
        if isinstance(value, _C.Size):
            return _SIZE, (tuple(value),)
        return NotImplemented

    def save_type(self, value):
        if value in _CLASSES:
            return self._save_name(_CLASSES[value])
        return super().save_type(value)

    dispatch[type] = save_type

    def save_tuple(self, value):
        if len(value) > 8 and self.proto >= 2 and set(map(type, value)) == {int}:  # the state of Python's random numbers
            codes = [pickle.dumps(number, 2)[2:-1] for number in value]  # without the first and last code: of a whole pickle
            self.write(pickle.MARK + b"".join(codes) + pickle.TUPLE)
            return self.memoize(value)
        return super().save_tuple(value)

    dispatch[tuple] = save_tuple

    def key_of(self, storage, dtype):
        """The key of a storage, and the dtype of the first tensor on it."""
        place = (storage.data_ptr(), str(storage.device)) if storage.nbytes() else id(storage)
        key, _, first = self.storages.setdefault(place, (str(len(self.storages)), storage, dtype))
        return key, first

    def stored(self, tensor):
        """The storage of a tensor in the pickle, and whether the tensor has its dtype from it."""
        storage = tensor.untyped_storage()
        key, dtype = self.key_of(storage, tensor.dtype)
        typed = dtype == tensor.dtype and dtype in TYPED
        kind, count = (TYPED[dtype], storage.nbytes() // dtype.itemsize) if typed else (_UNTYPED, storage.nbytes())
        return _Stored(kind, key, str(tensor.device), count), typed

    def _reduce_tensor(self, tensor):
        shape, stride = tuple(tensor.shape), tensor.stride()
        state = dict(tensor.__dict__)
        kind = type(tensor)
        if tensor.layout != _C.strided:
            from ..sparse.construct import pieces

            function, args = _SPARSE, (tensor.layout, _size_as_torch(pieces(tensor)))
        elif tensor.device.type == "meta":
            function, args = _META, (tensor.dtype, shape, stride, tensor.requires_grad)
        else:
            stored, typed = self.stored(tensor)
            flag = False if kind is Parameter else tensor.requires_grad
            args = (stored, tensor.storage_offset(), shape, stride, flag, OrderedDict())
            function, args = (_TENSOR, args) if typed else (_TENSOR_OF_DTYPE, (*args, tensor.dtype))
        if kind is Parameter:
            plain = _Reduced(function, args)
            if state:
                return _PARAMETER_WITH_STATE, (plain, tensor.requires_grad, OrderedDict(), state)
            return _PARAMETER, (plain, tensor.requires_grad, OrderedDict())
        if kind is _C.Tensor and not state:
            return function, args
        return _OF_TYPE, (function, kind, args, state)


class _Reduced:
    """A tensor inside the pickle of a parameter, which is no object here."""

    def __init__(self, function, args):
        self.reduced = function, args

    def __reduce__(self):
        return self.reduced


def write(value, file, protocol, byteorder=True):
    """Write an object as an archive that PyTorch reads. byteorder: with a record that says which.

    >>> import io
    >>> write([1], io.BytesIO(), 2)
    """
    import io

    pickled = io.BytesIO()
    pickler = Pickler(pickled, protocol)
    pickler.dump(value)
    writer = Writer(file)
    writer.add("data.pkl", pickled.getbuffer())
    writer.add(".format_version", b"1")
    writer.add(".storage_alignment", b"64")
    if byteorder:
        writer.add("byteorder", b"little")
    for key, storage, _ in pickler.storages.values():
        writer.add(f"data/{key}", bytes_of(flat(storage)))
    writer.add("version", b"3\n")
    writer.add(versions.RECORD, versions.current())
    writer.close()


# --- reading ----------------------------------------------------------------------------------------------------------------
class _Storage:
    """The storage of a persistent id while a pickle is read."""

    __slots__ = ("dtype", "untyped")

    def __init__(self, untyped, dtype):
        self.untyped, self.dtype = untyped, dtype


class _Kind:
    """A storage type in a pickle; dtype None: bytes."""

    def __init__(self, dtype):
        self.dtype = dtype


def _tensor(storage, dtype, offset, size, stride, requires_grad):
    storage = storage.untyped if isinstance(storage, _Storage) else storage
    if not isinstance(storage, _C.UntypedStorage) or not isinstance(requires_grad, bool):
        raise UnpicklingError("a damaged pickle: a tensor without a storage")
    result = _C._on_storage(storage, dtype, tuple(size), tuple(stride), offset)
    return result.requires_grad_() if requires_grad else result


def _rebuild_tensor(storage, offset, size, stride):
    return _tensor(storage, storage.dtype, offset, size, stride, False)


def _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks, metadata=None):
    return _with_metadata(_tensor(storage, storage.dtype, offset, size, stride, requires_grad), metadata)


def _rebuild_tensor_v3(storage, offset, size, stride, requires_grad, hooks, dtype, metadata=None):
    if not isinstance(dtype, type(_C.float32)):
        raise UnpicklingError("a damaged pickle: a tensor without a dtype")
    return _with_metadata(_tensor(storage, dtype, offset, size, stride, requires_grad), metadata)


def _with_metadata(tensor, metadata):
    """PyTorch's lazy conjugation and negation, which are values here."""
    if not metadata:
        return tensor
    if type(metadata) is not dict or any(key not in ("conj", "neg") for key in metadata):
        raise UnpicklingError("a tensor with metadata that are not known")
    plain = tensor.detach()
    if metadata.get("conj"):
        plain = plain.conj()
    if metadata.get("neg"):
        plain = plain.neg()
    return plain.requires_grad_() if tensor.requires_grad else plain


def _rebuild_parameter(data, requires_grad, hooks):
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, hooks, state):
    parameter = Parameter(data, requires_grad)
    _give_state(parameter, state)
    return parameter


def _rebuild_meta(dtype, size, stride, requires_grad):
    return _C.empty_strided(size, stride, dtype=dtype, device="meta", requires_grad=requires_grad)


def _size_as_torch(pieces):
    """The size among the parts of a sparse tensor, which PyTorch has as a Size."""
    return tuple(_C.Size(p) if isinstance(p, tuple) else p for p in pieces)


def _layout(name):
    known = isinstance(name, str) and name.startswith("torch.") and getattr(_C, name[6:], None)
    if not isinstance(known, _C.layout):
        raise UnpicklingError(f"a layout {described(name)}")
    return known


def _rebuild_sparse(layout, data):
    from ..sparse.construct import _rebuild_sparse_tensor

    if not isinstance(layout, _C.layout) or not isinstance(data, tuple) or not 3 <= len(data) <= 4:
        raise UnpicklingError("a damaged pickle: a sparse tensor without its parts")
    return _rebuild_sparse_tensor(layout, data)


def _give_state(tensor, state):
    if type(state) is not dict or not all(type(key) is str for key in state):
        raise UnpicklingError("a damaged pickle: attributes that are not a dict")
    tensor.__dict__.update(state)


def _rebuild_of_type(function, kind, args, state):
    if function not in (_rebuild_tensor_v2, _rebuild_tensor_v3, _rebuild_parameter, _rebuild_meta, _rebuild_sparse):
        raise UnpicklingError(f"the file calls {described(function)} for a tensor")
    tensor = function(*args)
    if isinstance(kind, type) and issubclass(kind, _C.Tensor) and type(tensor) is not kind:
        tensor = tensor.as_subclass(kind)
    if isinstance(state, tuple):  # attributes and slots
        state = state[0]
    _give_state(tensor, state or {})
    return tensor


def _encode(text, encoding):
    if encoding not in ("latin1", "utf-8"):
        raise UnpicklingError(f"bytes written as {described(encoding)}")
    return text.encode(encoding)


def _bytes(make):
    """bytes or bytearray of bytes or of an encoded text; never of a number, which would ask for memory."""

    def rebuilt(data=b"", *encoding):
        if not isinstance(data, (bytes, str)):
            raise UnpicklingError(f"bytes of a {type(data).__name__}")
        return make(_encode(data, *encoding) if encoding else data)

    return rebuilt


def _counter(counts=None):
    if not isinstance(counts, (dict, type(None))):
        raise UnpicklingError("a Counter of what is not a dict")
    return Counter(counts)


def _ordered(items=()):
    result = OrderedDict()
    for key, value in items:
        if isinstance(key, tuple):
            raise UnpicklingError("a tuple as key of an old OrderedDict is not allowed in a file of weights")
        result[key] = value
    return result


def _device(kind, index=None):
    return _C.device(kind) if index is None else _C.device(kind, index)


def _default_dict(factory=None):
    if factory not in (None, list, dict, int, float, set, str):
        raise UnpicklingError(f"a default {described(factory)}")
    return defaultdict(factory)


def _set(items=()):
    if any(isinstance(item, tuple) for item in items):
        raise UnpicklingError("a set of tuples is not allowed in a file of weights")
    return set(items)


_CALLABLES = {
    "torch._utils _rebuild_tensor": _rebuild_tensor,
    "torch._utils _rebuild_tensor_v2": _rebuild_tensor_v2,
    "torch._utils _rebuild_tensor_v3": _rebuild_tensor_v3,
    "torch._utils _rebuild_parameter": _rebuild_parameter,
    "torch._utils _rebuild_parameter_with_state": _rebuild_parameter_with_state,
    "torch._utils _rebuild_meta_tensor_no_storage": _rebuild_meta,
    "torch._utils _rebuild_sparse_tensor": _rebuild_sparse,
    "torch.serialization _get_layout": _layout,
    "torch._tensor _rebuild_from_type_v2": _rebuild_of_type,
    "torch device": _device,
    "torch Size": _C.Size,
    "collections OrderedDict": _ordered,
    "collections Counter": _counter,
    "collections defaultdict": _default_dict,
    "datetime timedelta": datetime.timedelta,
    "_codecs encode": _encode,
    "builtins set": _set,
    "builtins frozenset": lambda items=(): frozenset(_set(items)),
    "builtins complex": complex,
    "builtins bytes": _bytes(bytes),
    "builtins bytearray": _bytes(bytearray),
    "builtins slice": slice,
    "lucid device": _device,
    "lucid Size": _C.Size,
    "lucid._C device": _device,
    "lucid._C Size": _C.Size,
}
_CALLABLES |= {f"__builtin__ {name[9:]}": f for name, f in _CALLABLES.items() if name.startswith("builtins ")}
_VALUES = {f"torch {name}": getattr(_C, name) for name in _DTYPE_NAMES}
_VALUES |= {f"{module} {name}": getattr(_C, name) for name in _DTYPE_NAMES for module in ("lucid", "lucid._C")}
_VALUES |= {f"torch {name}": _Kind(dtype) for name, dtype in _STORAGES.items()}
_VALUES |= {"torch.storage UntypedStorage": _Kind(None), "torch UntypedStorage": _Kind(None)}
_VALUES |= {
    "torch Tensor": _C.Tensor,
    "torch.nn.parameter Parameter": Parameter,
    "lucid Tensor": _C.Tensor,
    "lucid._C Tensor": _C.Tensor,
}
_VALUES |= {"lucid.nn.parameter Parameter": Parameter}
_VALUES |= {f"builtins {t.__name__}": t for t in (list, dict, int, float, str)}


def flat(storage):
    """The bytes of a storage as a tensor.

    >>> flat(_C.ones(2).untyped_storage()).shape
    lucid.Size([8])
    """
    return _C._on_storage(storage, _C.uint8, (storage.nbytes(),), (1,), 0)


class Storages:
    """Storages by key, each read once and moved where map_location says.

    >>> storages = Storages(lambda key, size: _C.empty(size, dtype=_C.uint8).untyped_storage(), "cpu")
    >>> storages.of(("storage", _Kind(_C.float32), "0", "cpu", 2)).untyped.nbytes()
    8
    """

    def __init__(self, read, map_location):
        self.read, self.map_location, self.known, self.itemsizes = read, map_location, {}, {}
        self.bools = set()  # keys of storages of bools
        self.problem = None  # an error of the caller's map_location: not one of the file
        for where in map_location.values() if isinstance(map_location, dict) else [map_location]:
            if isinstance(where, (str, _C.device)):
                _C.device(where)
            elif isinstance(map_location, dict) or not (where is None or callable(where)):
                raise TypeError(f"map_location is a device, a dict of devices, or a function, not {map_location!r}")

    def placed(self, storage, location):
        """A storage where the caller or the file wants it."""
        if not callable(self.map_location):
            return _moved(storage, self.map_location, location)
        try:
            moved = self.map_location(storage, location)
            if isinstance(moved, _C.Tensor):
                moved = moved.untyped_storage()
            if not isinstance(moved, (_C.UntypedStorage, type(None))):
                raise TypeError(f"map_location returned a {type(moved).__name__}, which is not a storage")
        except Exception as error:
            self.problem = error
            raise
        return _moved(storage, None, location) if moved is None else moved

    def of(self, persistent_id):
        if type(persistent_id) is not tuple or len(persistent_id) < 5 or persistent_id[0] != "storage":
            raise UnpicklingError(f"an unknown persistent id, {described(persistent_id)}")
        _, kind, key, location, count = persistent_id[:5]
        if not isinstance(kind, _Kind) or type(key) is not str or type(location) is not str or type(count) is not int:
            raise UnpicklingError("a damaged pickle: the id of a storage")
        if key not in self.known:
            if count < 0:
                raise UnpicklingError("a damaged pickle: a storage of negative size")
            self.itemsizes[key] = kind.dtype.itemsize if kind.dtype else 1
            storage = self.read(key, count * self.itemsizes[key])
            if kind.dtype is _C.bool:
                self.bools.add(key)
                make_bools(flat(storage))
            self.known[key] = self.placed(storage, location)
        view = persistent_id[5] if len(persistent_id) > 5 else None
        if view is not None:
            raise UnpicklingError("a storage that is a part of another one (PyTorch before 0.4): not supported")
        return _Storage(self.known[key], kind.dtype) if kind.dtype else self.known[key]


def _moved(storage, map_location, location):
    """A storage moved to the device that the file or map_location names."""
    location = map_location.get(location, location) if isinstance(map_location, dict) else map_location or location
    device = _C.device(location)
    if device.type == "cpu":
        return storage
    try:
        return flat(storage).to(device).untyped_storage()
    except (RuntimeError, NotImplementedError) as error:
        raise MissingDeviceError(
            f"the file has tensors on {device}, which is not here: {error}. map_location='cpu' brings them to the CPU"
        ) from error


def unpickled(data, storages, trusted, allowed, version=versions.FORMAT, position=0, pickle_module=None, **pickle_args):
    """The object of a pickle and where it ended; trusted: by Python's own unpickler, which calls anything the file names.

    allowed: further names that a file may use, by full name. version: of the file, for the names that only old ones use.

    >>> unpickled(pickle.dumps("text"), Storages(None, None), False, {})[0]
    'text'
    """
    callables = {**_CALLABLES, **versions.old_names(version)}
    if not trusted:
        machine = Machine(data, callables, _VALUES, allowed, storages.of, position)
        try:
            return machine.load(), machine.at
        except UnpicklingError:
            if storages.problem is not None:
                raise storages.problem from None
            raise
    import io

    module = pickle_module or pickle

    class Trusted(module.Unpickler):
        def find_class(self, module_name, name):
            full = f"{module_name} {name}"
            if full.startswith(("torch", "lucid")):
                for table in (callables, _VALUES):
                    if full in table:
                        return table[full]
            if module_name == "torch" or module_name.startswith("torch."):
                module_name = "lucid" + module_name[5:]
            return super().find_class(module_name, name)

        def persistent_load(self, persistent_id):
            return storages.of(persistent_id)

    stream = io.BytesIO(data)
    stream.seek(position)
    return Trusted(stream, **pickle_args).load(), stream.tell()


def read_zip(source, map_location, mapped, trusted, allowed, **options):
    """The object of an archive.

    >>> import io
    >>> from .files import Source
    >>> file = io.BytesIO()
    >>> lucid.save("text", file)
    >>> with Source(io.BytesIO(file.getvalue())) as source:
    ...     read_zip(source, None, False, False, {})
    'text'
    """
    reader = Reader(source)
    if "byteorder" in reader and reader.read("byteorder", 16) != b"little":
        raise NotImplementedError("a file of a big-endian machine: save it again on a little-endian one")
    version = versions.check(reader.read(versions.RECORD, 4096)) if versions.RECORD in reader else versions.FORMAT
    memory = source.map() if mapped else None

    def read(key, size):
        record = reader.record(f"data/{key}")
        if record.size != size:
            raise CorruptFileError(f"the record {record.name!r} has {record.size} bytes where the tensors say {size}")
        if not size:
            return _C.empty(0, dtype=_C.uint8, device="cpu").untyped_storage()
        if memory is not None and record.offset % 16 == 0:
            part = memory[record.offset : record.offset + size]
            return _C.frombuffer(part, dtype=_C.uint8).untyped_storage()
        values = _C.empty(size, dtype=_C.uint8, device="cpu")
        source.read_into(record.offset, memoryview(values))
        reader.verify(record, values)
        return values.untyped_storage()

    data = reader.read("data.pkl", _PICKLE_LIMIT)
    value, _ = unpickled(data, Storages(read, map_location), trusted, allowed, version, **options)
    return versions.migrate(value, version)
