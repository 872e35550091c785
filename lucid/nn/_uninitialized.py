"""Parameters and buffers whose shape is not known yet: those of lazy modules before their first call."""

from .. import _C
from .._C import Tensor
from .parameter import Parameter

_ALLOWED = {
    "is_leaf",
    "device",
    "dtype",
    "requires_grad",
    "requires_grad_",
    "grad",
    "is_shared",
    "is_cuda",
    "layout",
    "is_floating_point",
}

# methods that are not ops and would read missing values
_READING = (
    "__array__ __bool__ __complex__ __float__ __getitem__ __index__ __int__ __iter__ __len__ __setitem__ backward data_ptr dim "
    "dim_order is_contiguous is_nonzero item ndimension nelement numel numpy storage_offset stride tolist untyped_storage"
)


def _refuse(what):
    raise ValueError(
        f"Attempted to use an uninitialized parameter in {what}. This error happens when you are using a `LazyModule` or "
        "explicitly manipulating `lucid.nn.parameter.UninitializedParameter` objects. When using LazyModules Call "
        "`forward` with a dummy batch to initialize the parameters before calling lucid functions"
    )


class _Uninitialized:
    """Shared by both: a device and a dtype, but neither shape nor values."""

    _is_uninitialized = True

    def materialize(self, shape, device=None, dtype=None):
        """Become an uninitialised tensor of this shape."""
        self.data = _C.empty(shape, device=self.device if device is None else device, dtype=dtype or self.dtype)
        self.__class__ = self._becomes

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in `load_state_dict` "
            "when trying to load an uninitialized parameter into an initialized one. Call `forward` to initialize the "
            "parameters before accessing their attributes."
        )

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func.__name__ in _ALLOWED or func.__name__ in ("__get__", "__set__"):  # attributes may be asked for
            with _C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        return _refuse(func)

    def share_memory_(self):
        raise RuntimeError("Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize it first.")

    def __repr__(self):
        return f"<{type(self).__name__}>"

    def _converted(self, *args, **kwargs):
        from .modules.module import _parse_to

        device, dtype, *_ = _parse_to(*args, **kwargs)
        return type(self)(**self._options(), device=device or self.device, dtype=dtype or self.dtype)

    to = _converted

    def float(self):  # noqa: A003
        return self._converted(_C.float32)

    def double(self):
        return self._converted(_C.float64)

    def half(self):
        return self._converted(_C.float16)

    def bfloat16(self):
        return self._converted(_C.bfloat16)

    def cpu(self):
        return self._converted("cpu")

    def cuda(self, device=None):
        return self._converted("cuda" if device is None else device)

    def detach(self):
        return self

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = self._converted()
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        return _rebuilt, (type(self), self._options(), str(self.device), self.dtype)


for _name in _READING.split():
    setattr(_Uninitialized, _name, lambda self, *args, _name=_name, **kwargs: _refuse(f"Tensor.{_name}"))


def _rebuilt(cls, options, device, dtype):
    return cls(**options, device=device, dtype=dtype)


class UninitializedParameter(_Uninitialized, Parameter):
    """A parameter without a shape: `materialize(shape)` gives it one.

    >>> p = lucid.nn.parameter.UninitializedParameter()
    >>> p.materialize((2, 3))
    >>> tuple(p.shape)
    (2, 3)
    """

    _becomes = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        return Tensor._make_subclass(cls, _C.empty(0, device=device, dtype=dtype), requires_grad)

    def _options(self):
        return {"requires_grad": self.requires_grad}


class _MaterializedBuffer(Tensor):
    persistent = True
    __torch_function__ = _C._disabled_torch_function_impl


class UninitializedBuffer(_Uninitialized, Tensor):
    """A buffer without a shape: `materialize(shape)` gives it one.

    >>> b = lucid.nn.UninitializedBuffer(); b.materialize((2, 3)); tuple(b.shape)
    (2, 3)
    """

    _becomes = _MaterializedBuffer

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        t = Tensor._make_subclass(cls, _C.empty(0, device=device, dtype=dtype), requires_grad)
        t.persistent = persistent
        return t

    def _options(self):
        return {"requires_grad": self.requires_grad}
