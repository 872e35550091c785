"""Names for annotations. Loading this module loads `typing`; `import lucid` does not.

>>> lucid.types.Scalar
int | float | complex | bool
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from ._C import Size, Tensor, device, dtype

Scalar: TypeAlias = int | float | complex | bool
TensorOrScalar: TypeAlias = Tensor | Scalar
TensorLike: TypeAlias = Tensor | Scalar | Sequence[Any]
ShapeLike: TypeAlias = int | Sequence[int]
DTypeLike: TypeAlias = dtype | None
DeviceLike: TypeAlias = device | str | int | None
StateDict: TypeAlias = Mapping[str, Tensor]
Number: TypeAlias = int | float | bool  # PyTorch's names
Device: TypeAlias = device | str | int | None
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_dtype, _device, _int, _float, _bool = dtype, device, int, float, bool


@runtime_checkable
class HasShape(Protocol):
    """Anything with a shape.

    >>> isinstance(lucid.ones(2), lucid.HasShape)
    True
    """

    @property
    def shape(self) -> Sequence[int]: ...


@runtime_checkable
class SupportsGrad(Protocol):
    """Anything that can take part in a recorded computation.

    >>> isinstance(lucid.ones(2), lucid.SupportsGrad)
    True
    """

    requires_grad: bool
    grad: Any

    def backward(self) -> None: ...


@runtime_checkable
class SupportsNumpyConversion(Protocol):
    """Anything NumPy can make an array of.

    >>> isinstance(lucid.ones(2), lucid.SupportsNumpyConversion)
    True
    """

    def __array__(self, dtype: Any = None) -> Any: ...


@runtime_checkable
class TensorLikeProtocol(HasShape, Protocol):
    """Anything with a shape, a dtype and a device.

    >>> isinstance(lucid.ones(2), lucid.TensorLikeProtocol)
    True
    """

    @property
    def dtype(self) -> Any: ...
    @property
    def device(self) -> Any: ...
