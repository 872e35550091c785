"""Sequences of different lengths in one tensor: packed, or padded."""

from collections import namedtuple

from ... import _C

_Packed = namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])


def invert_permutation(permutation):
    """The permutation that undoes one; None stays None.

    >>> lucid.nn.utils.rnn.invert_permutation(lucid.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    order = _C.empty_like(permutation)
    return order.scatter_(0, permutation, _C.arange(0, permutation.numel(), device=permutation.device))


class PackedSequence(_Packed):
    """The elements of several sequences step by step: `data`, and how many sequences have each step: `batch_sizes`.

    >>> packed = lucid.nn.utils.rnn.pack_sequence([lucid.tensor([1, 2, 3]), lucid.tensor([4])])
    >>> packed.data, packed.batch_sizes
    (tensor([1, 4, 2, 3]), tensor([2, 1, 1]))
    """

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise ValueError("a PackedSequence needs data and batch_sizes")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                f"batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. Got: "
                f"{batch_sizes.device}"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs):
        """Move or cast the data, as a tensor's `to` does."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        kwargs = {k: v for k, v in kwargs.items() if k not in ("device", "dtype")}
        indices = [i if i is None else i.to(data.device, **kwargs) for i in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(data, self.batch_sizes, *indices)

    def cpu(self):
        return self.to("cpu")

    def cuda(self, device=None):
        return self.to("cuda" if device is None else device)

    def double(self):
        return self.to(_C.float64)

    def float(self):  # noqa: A003
        return self.to(_C.float32)

    def half(self):
        return self.to(_C.float16)

    def long(self):
        return self.to(_C.int64)

    def int(self):  # noqa: A003
        return self.to(_C.int32)

    def short(self):
        return self.to(_C.int16)

    def char(self):
        return self.to(_C.int8)

    def byte(self):
        return self.to(_C.uint8)

    def pin_memory(self):
        indices = [i if i is None else i.pin_memory() for i in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(self.data.pin_memory(), self.batch_sizes, *indices)

    def is_pinned(self):
        """Whether the data lies in page-locked memory."""
        return self.data.is_pinned()

    @property
    def is_cuda(self):
        """Whether the data is on a GPU."""
        return self.data.is_cuda


def _batch_sizes(lengths):
    """How many of the sequences, the longest first, have each step."""
    return [sum(1 for n in lengths if n > step) for step in range(lengths[0])] if lengths else []


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):  # noqa: A002
    """Leave the padding of a batch out. lengths: of the sequences, the longest first unless enforce_sorted=False.

    >>> packed = lucid.nn.utils.rnn.pack_padded_sequence(lucid.tensor([[1, 3], [2, 0]]), [2, 1])
    >>> packed.data, packed.batch_sizes
    (tensor([1, 3, 2]), tensor([2, 1]))
    """
    if not isinstance(batch_first, bool):
        raise TypeError(f"pack_padded_sequence(): argument 'batch_first' must be bool, not {type(batch_first).__name__}")
    lengths = (
        _C.as_tensor(lengths, dtype=_C.int64, device="cpu") if not isinstance(lengths, _C.Tensor) else lengths.to(_C.int64)
    )
    if lengths.device.type != "cpu":
        raise RuntimeError("'lengths' argument should be a 1D CPU int64 tensor, but got a tensor on " + str(lengths.device))
    if lengths.dim() != 1:
        raise RuntimeError(f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D tensor")
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = _C.sort(lengths, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)  # noqa: A001
    if batch_first:
        input = input.transpose(0, 1)  # noqa: A001
    counts = lengths.tolist()
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if len(counts) != input.size(1):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} (batch_size={input.size(1)})"
        )
    if counts[-1] <= 0 or min(counts) <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    if any(a < b for a, b in zip(counts, counts[1:])):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not "
            "need ONNX exportability."
        )
    if counts[0] > input.size(0):
        raise RuntimeError(f"Expected all lengths to be at most {input.size(0)}, but got {counts[0]}")
    sizes = _batch_sizes(counts)
    runs, start = [], 0  # steps with the same number of sequences are one block
    for step in range(1, len(sizes) + 1):
        if step == len(sizes) or sizes[step] != sizes[start]:
            runs.append(input[start:step, : sizes[start]].reshape(-1, *input.shape[2:]))
            start = step
    return PackedSequence(_C.cat(runs), _C.tensor(sizes, dtype=_C.int64, device="cpu"), sorted_indices, None)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """A packed sequence as a padded tensor, and the lengths.

    >>> lucid.nn.utils.rnn.pack_padded_sequence(lucid.tensor([[1, 3], [2, 0]]), [2, 1]).data
    tensor([1, 3, 2])
    """
    sizes = sequence.batch_sizes.tolist()
    steps = len(sizes)
    if not steps:
        raise RuntimeError("batch_sizes can not be empty")
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                f"Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    data = sequence.data
    padded, at = data.new_full((steps, sizes[0], *data.shape[1:]), padding_value), 0
    start = 0
    for step in range(1, len(sizes) + 1):
        if step == len(sizes) or sizes[step] != sizes[start]:
            n = (step - start) * sizes[start]
            padded[start:step, : sizes[start]] = data[at : at + n].reshape(step - start, sizes[start], *data.shape[1:])
            at, start = at + n, step
    lengths = _C.tensor([sum(1 for s in sizes if s > i) for i in range(sizes[0])], dtype=_C.int64, device="cpu")
    if batch_first:
        padded = padded.transpose(0, 1)
    if sequence.unsorted_indices is not None:
        order = sequence.unsorted_indices
        return padded.index_select(0 if batch_first else 1, order), lengths[order.cpu()]
    return padded, lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Sequences of different lengths as one tensor.

    >>> lucid.nn.utils.rnn.pad_sequence([lucid.tensor([1, 2]), lucid.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    if not hasattr(sequences, "__iter__"):
        raise RuntimeError(f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}")
    sequences = tuple(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    for name, value, kind in (("batch_first", batch_first, bool), ("padding_side", padding_side, str)):
        if not isinstance(value, kind):
            raise TypeError(f"pad_sequence(): argument '{name}' must be {kind.__name__}, not {type(value).__name__}")
    for i, s in enumerate(sequences):
        if not isinstance(s, _C.Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(s).__name__}")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    longest = max(s.size(0) for s in sequences)
    sizes = (len(sequences), longest) if batch_first else (longest, len(sequences))
    out = sequences[0].new_full((*sizes, *sequences[0].shape[1:]), padding_value)
    rows = out if batch_first else out.transpose(0, 1)
    for i, s in enumerate(sequences):
        n = s.size(0)
        start = longest - n if padding_side == "left" else 0
        rows[i, start : start + n] = s
    return out


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences of a padded tensor, as a list.

    >>> lucid.nn.utils.rnn.unpad_sequence(lucid.tensor([[1, 3], [2, 0]]), lucid.tensor([2, 1]))
    [tensor([1, 2]), tensor([3])]
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    steps = _C.arange(padded_sequences.shape[1], device=lengths.device)
    if len(padded_sequences) != len(lengths):
        raise ValueError(f"{len(lengths)} lengths for {len(padded_sequences)} sequences")
    return [s[steps < n] for s, n in zip(padded_sequences, lengths)]


def pack_sequence(sequences, enforce_sorted=True):
    """Pack a list of sequences of different lengths.

    >>> lucid.nn.utils.rnn.pack_sequence([lucid.tensor([1, 2]), lucid.tensor([3])]).batch_sizes
    tensor([2, 1])
    """
    lengths = _C.tensor([s.size(0) for s in sequences], dtype=_C.int64, device="cpu")
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The sequences of a packed one, as a list.

    >>> lucid.nn.utils.rnn.unpack_sequence(lucid.nn.utils.rnn.pack_sequence([lucid.tensor([1, 2]), lucid.tensor([3])]))
    [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]
