"""How samples become a batch."""

import collections.abc
import copy
import sys

from ... import _C

_ERROR = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def _numpy_array(value):
    """Whether a value is of NumPy; NumPy is not imported for the question."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


def _of_text(value):
    return value.dtype.kind in "SUO"


def default_convert(data):
    """Tensors of NumPy's arrays, in containers of any depth; everything else as it is.

    >>> lucid.utils.data.default_convert([1, "a"])
    [1, 'a']
    """
    kind = type(data)
    if isinstance(data, _C.Tensor) or isinstance(data, (str, bytes)):
        return data
    if _numpy_array(data) and kind.__module__ == "numpy":  # not of its masked arrays
        return data if data.ndim and _of_text(data) or kind.__name__ in ("str_", "bytes_") else _C.as_tensor(data)
    if isinstance(data, collections.abc.Mapping):
        return _rebuilt_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return kind(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, collections.abc.Sequence):
        return _rebuilt_sequence(data, [default_convert(value) for value in data])
    return data


def _rebuilt_mapping(like, values):
    """A mapping of the class of another one, where it can be made; else a dict."""
    try:
        if isinstance(like, collections.abc.MutableMapping):
            result = copy.copy(like)  # keeps attributes besides the keys
            result.update(values)
            return result
        return type(like)(values)
    except TypeError:
        return dict(values)


def _rebuilt_sequence(like, values):
    try:
        if isinstance(like, list) or not isinstance(like, collections.abc.MutableSequence):
            return values if type(like) is list else type(like)(values)
        result = copy.copy(like)
        for i, value in enumerate(values):
            result[i] = value
        return result
    except TypeError:
        return values


def _collate_tensors(batch, *, collate_fn_map=None):
    return _C.stack(batch, 0)


def _collate_arrays(batch, *, collate_fn_map=None):
    if _of_text(batch[0]):
        raise TypeError(_ERROR.format(batch[0].dtype))
    return collate([_C.as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def _collate_scalars(batch, *, collate_fn_map=None):
    if isinstance(batch[0], (str, bytes)):
        return batch
    import numpy

    return _C.as_tensor(numpy.asarray(batch))


def _collate_numbers(batch, *, collate_fn_map=None):
    return _C.tensor(batch)


def _collate_floats(batch, *, collate_fn_map=None):
    return _C.tensor(batch, dtype=_C.float64)


def _collate_texts(batch, *, collate_fn_map=None):
    return batch


default_collate_fn_map = {
    _C.Tensor: _collate_tensors,
    float: _collate_floats,
    int: _collate_numbers,
    str: _collate_texts,
    bytes: _collate_texts,
}


def collate(batch, *, collate_fn_map=None):
    """A batch of a list of samples, with a function per type; containers are walked into.

    >>> lucid.utils.data.collate([1, 2], collate_fn_map={int: lambda batch, collate_fn_map: sum(batch)})
    3
    """
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        function = collate_fn_map.get(kind)
        if function is None and collate_fn_map is default_collate_fn_map and _numpy_array(first):
            function = _collate_arrays if kind.__name__ == "ndarray" else _collate_scalars
        if function is None:
            function = next((f for types, f in collate_fn_map.items() if isinstance(first, types)), None)
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)

    def again(values):
        return collate(values, collate_fn_map=collate_fn_map)

    if isinstance(first, collections.abc.Mapping):
        return _rebuilt_mapping(first, {key: again([sample[key] for sample in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(again(values) for values in zip(*batch, strict=True)))
    if isinstance(first, collections.abc.Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [again(values) for values in zip(*batch, strict=True)]
        return columns if isinstance(first, tuple) else _rebuilt_sequence(first, columns)
    raise TypeError(_ERROR.format(kind))


def default_collate(batch):
    """A batch of a list of samples: tensors and numbers stacked, texts in a list, containers walked into.

    >>> lucid.utils.data.default_collate([(1, "a"), (2, "b")])
    [tensor([1, 2]), ('a', 'b')]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
