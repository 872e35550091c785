"""Shapes are plain numbers here: what PyTorch's symbolic shapes ask is answered at once."""

from .. import _C
from .contexts import nothing


def truth(value, *more, **settings):
    """Whether a condition holds.

    >>> from lucid.fx.experimental.symbolic_shapes import guard_or_false
    >>> guard_or_false(2 > 1)
    True
    """
    return bool(value)


def falsehood(value):
    """Whether a condition does not hold.

    >>> from lucid.fx.experimental.symbolic_shapes import definitely_false
    >>> definitely_false(1 > 2)
    True
    """
    return not value


def same_value(value):
    """The number itself.

    >>> from lucid.fx.experimental.symbolic_shapes import guard_int
    >>> guard_int(3)
    3
    """
    return value


def is_symbolic(value):
    """Whether a number is a symbol: no.

    >>> lucid.fx.experimental.symbolic_shapes.is_symbolic(3)
    False
    """
    return False


has_free_symbols = is_symbolic


def has_hint(value):
    """Whether a number is known: yes.

    >>> lucid.fx.experimental.symbolic_shapes.has_hint(3)
    True
    """
    return True


def free_symbols(value):
    """The symbols in a number or shape: none.

    >>> lucid.fx.experimental.symbolic_shapes.free_symbols(3)
    set()
    """
    return set()


free_unbacked_symbols = free_symbols


class GuardOnDataDependentSymNode(RuntimeError):
    """PyTorch's error of a shape that depends on values.

    >>> issubclass(lucid.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode, RuntimeError)
    True
    """


class Dim:
    """A dimension of an exported program; there is no export, so that it is a name.

    >>> lucid.export.Dim("batch", min=1).__name__
    'batch'
    """

    AUTO, DYNAMIC, STATIC = "AUTO", "DYNAMIC", "STATIC"

    def __init__(self, name, *, min=None, max=None):  # noqa: A002 (PyTorch's names)
        self.__name__, self.min, self.max = name, min, max


class IntInfinity(float):
    """An integer larger than all others.

    >>> lucid.utils._sympy.numbers.IntInfinity() > 10**30
    True
    """

    def __new__(cls):
        return super().__new__(cls, "inf")


class FakeTensor:
    """The class of PyTorch's tensors without memory, for `isinstance`; here they are tensors on device "meta".

    >>> isinstance(lucid.ones(1, device="meta"), lucid._subclasses.FakeTensor)
    False
    """


class FakeTensorMode(nothing):
    """Raises: tensors without memory are made on device "meta".

    >>> lucid._subclasses.FakeTensorMode()
    Traceback (most recent call last):
    NotImplementedError: ...
    """

    def __init__(self, *args, **kwargs):
        raise NotImplementedError('FakeTensorMode is not in Lucid: make tensors without memory with device="meta"')


class PassBase:
    """The base of a pass over a graph: `call` changes it.

    >>> lucid.fx.passes.infra.pass_base.PassBase.__name__
    'PassBase'
    """

    def __call__(self, graph_module):
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    def call(self, graph_module):
        raise NotImplementedError

    def requires(self, graph_module):
        pass

    def ensures(self, graph_module):
        pass


class PassResult(tuple):
    """What a pass gives: the module, and whether it changed it.

    >>> lucid.fx.passes.infra.pass_base.PassResult(None, True).modified
    True
    """

    def __new__(cls, graph_module, modified):
        return super().__new__(cls, (graph_module, modified))

    graph_module = property(lambda self: self[0])
    modified = property(lambda self: self[1])


def shape_as_tensor(x):
    """The shape as a tensor of int64.

    >>> lucid.onnx.operators.shape_as_tensor(lucid.ones(2, 3))
    tensor([2, 3])
    """
    return _C.tensor(list(x.shape), dtype=_C.int64)


def reshape_from_tensor_shape(x, shape):
    """Reshape to what a tensor holds.

    >>> lucid.onnx.operators.reshape_from_tensor_shape(lucid.ones(2, 3), lucid.tensor([6])).shape
    lucid.Size([6])
    """
    return x.reshape(shape.tolist())


def is_contiguous_or_false(a, memory_format=None):
    """Whether a tensor's elements lie in order.

    >>> lucid._prims_common.is_contiguous_or_false(lucid.ones(2, 3).t())
    False
    """
    return a.is_contiguous() if memory_format is None else a.is_contiguous(memory_format=memory_format)


def is_float_dtype(dtype):
    """Whether a dtype is a float.

    >>> lucid._prims_common.is_float_dtype(lucid.float16)
    True
    """
    return dtype.is_floating_point


def is_integer_dtype(dtype):
    """Whether a dtype is an integer.

    >>> lucid._prims_common.is_integer_dtype(lucid.bool)
    False
    """
    return not (dtype.is_floating_point or dtype.is_complex or dtype == _C.bool)


def make_contiguous_strides_for(shape, row_major=True):
    """The strides of a tensor whose elements lie in order.

    >>> lucid._prims_common.make_contiguous_strides_for((2, 3))
    (3, 1)
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    strides.reverse()
    if not row_major and len(strides) > 1:
        strides[-2:] = 1, max(shape[-2], 1)
    return tuple(strides)


def out_dtype(op, dtype, *args):
    """What an op gives, in another dtype.

    >>> lucid._higher_order_ops.out_dtype(lucid.mm, lucid.int32, lucid.ones(1, 1), lucid.ones(1, 1)).dtype
    lucid.int32
    """
    return op(*args).to(dtype)


def not_none(value):
    """The value, which must not be None.

    >>> lucid.utils._typing_utils.not_none(1)
    1
    """
    if value is None:
        raise TypeError("Invariant encountered: value was None when it should not be")
    return value


_REDUCTIONS = ("none", "mean", "sum")


def reduction_enum(reduction):
    """The number of a reduction.

    >>> lucid.nn._reduction.get_enum("sum")
    2
    """
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _REDUCTIONS.index(reduction)


def reduction_string(size_average, reduce, emit_warning=True):
    """The reduction that two old flags mean.

    >>> lucid.nn._reduction.legacy_get_string(True, None)
    'mean'
    """
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    return "none" if not reduce else "mean" if size_average else "sum"
