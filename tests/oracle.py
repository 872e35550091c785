"""Comparing with PyTorch."""

import math

import lucid


def of_torch(x):
    """The same tensor in Lucid: values, strides, dtype."""
    import torch

    flat = torch.as_strided(x, (x.untyped_storage().nbytes() // x.element_size(),), (1,), 0) if x.numel() else x.reshape(0)
    copy = lucid.tensor(flat.tolist(), dtype=getattr(lucid, str(x.dtype)[6:]))
    return copy.as_strided(x.shape, x.stride(), x.storage_offset()) if x.numel() else copy.reshape(tuple(x.shape))


def equal_values(a, b):
    """Nested lists that agree; NaN agrees with NaN."""
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(equal_values, a, b))
    if isinstance(a, complex) and isinstance(b, complex):
        return equal_values(a.real, b.real) and equal_values(a.imag, b.imag)
    return a == b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))


def assert_same(mine, theirs, strides=True):
    """Shape, dtype, strides and values."""
    assert tuple(mine.shape) == tuple(theirs.shape)
    assert str(mine.dtype)[6:] == str(theirs.dtype)[6:]
    if strides and theirs.numel() > 1:
        assert mine.stride() == theirs.stride()
    assert equal_values(mine.tolist(), theirs.tolist())


def both(mine, theirs, strides=True):
    """Run both; the same result, or the same kind of error."""
    try:
        expected = theirs()
    except Exception as error:  # noqa: BLE001 (whatever PyTorch raises is the specification)
        import pytest

        kind = next(k for k in (IndexError, TypeError, ValueError, RuntimeError) if isinstance(error, k))
        with pytest.raises(kind) as caught:
            mine()
        return str(caught.value), str(error)
    result = mine()
    if hasattr(expected, "dtype"):
        assert_same(result, expected, strides)
    else:
        assert equal_values(result, expected) and type(result) is type(expected)
    return None


def outcome(function, library):
    """What a function of the library does: its value as plain data, or the type of its error."""
    try:
        value = function(library)
    except (RuntimeError, TypeError, ValueError) as error:
        for kind in (TypeError, ValueError, RuntimeError):
            if isinstance(error, kind):
                return kind
    return plain(value)


def plain(value):
    """Tensors as (shape, values, requires_grad), wherever they are in a structure."""
    if hasattr(value, "requires_grad"):
        return (tuple(value.shape), value.tolist(), value.requires_grad)
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value


def leaf(m, data=(1.0, 2.0, -3.0)):
    """A tensor of either library that wants a gradient."""
    return m.tensor(data, requires_grad=True)
