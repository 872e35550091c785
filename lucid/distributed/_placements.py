"""How a tensor lies over the processes of a mesh."""

from typing import NamedTuple


class Replicate:
    """Every process has the whole tensor.

    >>> lucid.distributed.tensor.Replicate() == lucid.distributed.tensor.Replicate()
    True
    """

    def __eq__(self, other):
        return isinstance(other, Replicate)

    def __hash__(self):
        return -1

    def __repr__(self):
        return "Replicate()"

    def is_replicate(self):
        return True

    def is_shard(self, dim=None):
        return False

    def is_partial(self):
        return False


class Shard(NamedTuple):
    """Every process has a part along a dimension.

    >>> lucid.distributed.tensor.Shard(1).dim
    1
    """

    dim: int

    def is_replicate(self):
        return False

    def is_shard(self, dim=None):
        return dim is None or dim == self.dim

    def is_partial(self):
        return False

    @staticmethod
    def _local_shard_size_and_offset(curr_local_size, num_chunks, rank):
        size = -(-curr_local_size // num_chunks)
        start = min(rank * size, curr_local_size)
        return min(size, curr_local_size - start), start

    local_shard_size_and_offset = _local_shard_size_and_offset


class Partial(NamedTuple):
    """Every process has a part of a sum.

    >>> lucid.distributed.tensor.Partial().reduce_op
    'sum'
    """

    reduce_op: str = "sum"

    def is_replicate(self):
        return False

    def is_shard(self, dim=None):
        return False

    def is_partial(self, reduce_op=None):
        return reduce_op is None or reduce_op == self.reduce_op
