"""Attention whose scores and masks are functions of places: `flex_attention(q, k, v, score_mod, block_mask)`.

>>> from lucid.nn.attention.flex_attention import create_block_mask, flex_attention
>>> q = lucid.ones(1, 1, 4, 2)
>>> causal = create_block_mask(lambda b, h, i, j: i >= j, None, None, 4, 4, device="cpu")
>>> flex_attention(q, q, q, block_mask=causal).shape
lucid.Size([1, 1, 4, 2])

A function of places gets tensors of all batches, heads, queries and keys at once, which broadcast, instead of numbers.
Scores are formed whole; what is masked is not skipped.
"""

import math
from typing import NamedTuple

from ... import _C

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

_DEFAULT_SPARSE_BLOCK_SIZE = 128
_LARGE_SPARSE_BLOCK_SIZE = 1 << 30
FlexKernelOptions = dict


class AuxRequest(NamedTuple):
    """What `flex_attention` shall return besides its result.

    >>> lucid.nn.attention.flex_attention.AuxRequest(lse=True).max_scores
    False
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What `flex_attention` returned besides its result.

    >>> lucid.nn.attention.flex_attention.AuxOutput().lse is None
    True
    """

    lse: _C.Tensor | None = None
    max_scores: _C.Tensor | None = None


def noop_mask(batch, head, token_q, token_kv):
    """A mask that lets everything through.

    >>> lucid.nn.attention.flex_attention.noop_mask(0, 0, lucid.tensor(0), 0)
    tensor(True)
    """
    return _C.ones((), dtype=_C.bool, device=getattr(token_q, "device", None))


def and_masks(*mask_mods):
    """The mask that lets through what all masks let through.

    >>> both = lucid.nn.attention.flex_attention.and_masks(lambda b, h, i, j: i >= j, lambda b, h, i, j: i < 2)
    >>> both(0, 0, lucid.tensor(1), 0)
    tensor(True)
    """
    if not all(callable(mask) for mask in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def joined(b, h, q_idx, kv_idx):
        result = noop_mask(b, h, q_idx, kv_idx)
        for mask in mask_mods:
            result = result & mask(b, h, q_idx, kv_idx)
        return result

    return joined


def or_masks(*mask_mods):
    """The mask that lets through what any mask lets through.

    >>> either = lucid.nn.attention.flex_attention.or_masks(lambda b, h, i, j: i >= j, lambda b, h, i, j: i < 2)
    >>> either(0, 0, lucid.tensor(1), 3)
    tensor(True)
    """
    if not all(callable(mask) for mask in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def joined(b, h, q_idx, kv_idx):
        result = ~noop_mask(b, h, q_idx, kv_idx)
        for mask in mask_mods:
            result = result | mask(b, h, q_idx, kv_idx)
        return result

    return joined


def _places(batch, heads, queries, keys, device):
    """Four tensors of indices that broadcast to (batch, heads, queries, keys)."""
    sizes = (batch, heads, queries, keys)
    return [_C.arange(n, device=device).reshape([-1 if d == i else 1 for d in range(4)]) for i, n in enumerate(sizes)]


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device="cpu"):  # noqa: N803 (PyTorch's names)
    """What a function of places says, as a tensor of shape (B, H, Q_LEN, KV_LEN): truth of a mask, or scores from 0.

    >>> lucid.nn.attention.flex_attention.create_mask(lambda b, h, i, j: i >= j, 1, 1, 2, 2)[0, 0]
    tensor([[ True, False],
            [ True,  True]])
    """
    import inspect

    places = _places(B or 1, H or 1, Q_LEN, KV_LEN, device)
    shape = (B or 1, H or 1, Q_LEN, KV_LEN)
    if len(inspect.signature(mod_fn).parameters) == 5:
        result = mod_fn(_C.zeros(shape, device=device), *places)
        return _C.where(_C.isneginf(result), False, True)
    return mod_fn(*places).expand(shape).clone()


def _blocks_of(mask, rows, columns):
    """Which blocks have something, and which are all true: (B, H, blocks of queries, blocks of keys)."""
    b, h, queries, keys = mask.shape
    padded = _C.zeros(b, h, -(-queries // rows) * rows, -(-keys // columns) * columns, dtype=_C.bool, device=mask.device)
    padded[:, :, :queries, :keys] = mask
    grid = padded.reshape(b, h, padded.shape[2] // rows, rows, padded.shape[3] // columns, columns)
    count = grid.sum(dim=(3, 5))
    return count > 0, count == rows * columns


def _ordered(chosen):
    """How many blocks of each row are chosen, and which, those first."""
    number = chosen.sum(-1).to(_C.int32)
    order = _C.argsort(chosen.to(_C.int32), dim=-1, descending=True, stable=True).to(_C.int32)
    return number, order


class BlockMask:
    """A mask of attention: a function of places, and which blocks of queries and keys it leaves anything of.

    >>> from lucid.nn.attention.flex_attention import create_block_mask
    >>> mask = create_block_mask(lambda b, h, i, j: i >= j, 1, 1, 256, 256, device="cpu")
    >>> mask.shape, mask.kv_num_blocks[0, 0].tolist(), mask.sparsity()
    ((1, 1, 256, 256), [1, 1], 25.0)
    """

    def __init__(
        self, seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, q_num_blocks=None, q_indices=None,
        full_q_num_blocks=None, full_q_indices=None, BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE, mask_mod=None,  # noqa: N803
    ):  # fmt: skip
        self.seq_lengths, self.kv_num_blocks, self.kv_indices = tuple(seq_lengths), kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.BLOCK_SIZE = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
        self.mask_mod = noop_mask if mask_mod is None else mask_mod

    @classmethod
    def from_kv_blocks(
        cls, kv_num_blocks, kv_indices, full_kv_num_blocks=None, full_kv_indices=None, BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE,  # noqa: N803
        mask_mod=None, seq_lengths=None, compute_q_blocks=True,
    ):  # fmt: skip
        """A mask from the blocks of keys that each block of queries meets."""
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        return cls(
            seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, BLOCK_SIZE=size, mask_mod=mask_mod
        )

    @property
    def shape(self):
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    @property
    def device(self):
        return self.kv_indices.device

    def numel(self):
        """How many places there are."""
        return math.prod(self.shape)

    def sparsity(self):
        """How many percent of the places lie in blocks that are masked whole."""
        blocks = self.kv_num_blocks.sum().item()
        if self.full_kv_num_blocks is not None:
            blocks += self.full_kv_num_blocks.sum().item()
        whole = math.prod(self.kv_num_blocks.shape) * self.kv_indices.shape[-1]
        return 100 * (1 - blocks / whole)

    def _chosen(self, number, indices):
        places = _C.arange(indices.shape[-1], device=indices.device)
        chosen = (places < number.unsqueeze(-1)).to(_C.int32)
        return _C.zeros_like(indices).scatter(-1, indices.to(_C.int64), chosen)

    def to_dense(self):
        """1 where a block has anything."""
        dense = self._chosen(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None:
            dense = dense | self._chosen(self.full_kv_num_blocks, self.full_kv_indices)
        return dense

    def _mapped(self, change):
        made = BlockMask.__new__(BlockMask)
        made.__dict__.update({n: change(v) if isinstance(v, _C.Tensor) else v for n, v in self.__dict__.items()})
        return made

    def to(self, device):
        """The mask on a device."""
        return self._mapped(lambda tensor: tensor.to(device))

    def __getitem__(self, index):
        """The mask of some batches, heads or blocks of queries. The function stays that of the whole mask."""
        return self._mapped(lambda tensor: tensor[index])

    def as_tuple(self, flatten=True):
        """All parts."""
        return (
            *self.seq_lengths, self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices,
            self.q_num_blocks, self.q_indices, self.full_q_num_blocks, self.full_q_indices, *self.BLOCK_SIZE, self.mask_mod,
        )  # fmt: skip

    def _places_allowed(self, b, h, q_len, kv_len):
        """Every place: the function, and blocks that were given."""
        allowed = self.mask_mod(*_places(b, h, q_len, kv_len, self.device)).expand(b, h, q_len, kv_len)
        rows, columns = self.BLOCK_SIZE
        dense = self.to_dense().to(_C.bool)
        if self.full_kv_num_blocks is not None:
            full = self._chosen(self.full_kv_num_blocks, self.full_kv_indices).to(_C.bool)
            allowed = allowed | _spread(full, rows, columns, q_len, kv_len)
        return allowed & _spread(dense, rows, columns, q_len, kv_len)

    def __repr__(self):
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, BLOCK_SIZE={self.BLOCK_SIZE})"

    __str__ = __repr__


def _spread(blocks, rows, columns, q_len, kv_len):
    q = (_C.arange(q_len, device=blocks.device) // rows).clamp(max=blocks.shape[-2] - 1)
    k = (_C.arange(kv_len, device=blocks.device) // columns).clamp(max=blocks.shape[-1] - 1)
    return blocks[..., q, :][..., k]


def create_block_mask(
    mask_mod, B, H, Q_LEN, KV_LEN, device=None, BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE, _compile=False, **settings,  # noqa: N803
):  # fmt: skip
    """The mask of a function mask_mod(b, h, q_idx, kv_idx); B or H None: the same for all.

    >>> from lucid.nn.attention.flex_attention import create_block_mask
    >>> create_block_mask(lambda b, h, i, j: i >= j, None, None, 256, 256, device="cpu").to_dense()[0, 0]
    tensor([[1, 0],
            [1, 1]], dtype=lucid.int32)
    """
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, "cpu" if device is None else device)
    some, whole = _blocks_of(mask, *size)
    partial = some & ~whole
    q_side = [_ordered(part.transpose(-2, -1).contiguous()) for part in (partial, whole)]
    kv, full = _ordered(partial), _ordered(whole)
    return BlockMask((Q_LEN, KV_LEN), *kv, *full, *q_side[0], *q_side[1], size, mask_mod)


def flex_attention(
    query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False, return_lse=False, kernel_options=None,
    *, return_aux=None,
):  # fmt: skip
    """softmax(score_mod(q kᵀ · scale)) v over the places a mask leaves; a query that sees nothing gives zeros.

    return_lse, or return_aux=AuxRequest(lse=True, max_scores=True): also the logarithm of the sum of exponentials and the
    largest score of every query.

    >>> from lucid.nn.attention.flex_attention import flex_attention
    >>> q = lucid.ones(1, 1, 2, 2)
    >>> flex_attention(q, q, q, lambda score, b, h, i, j: score - (i - j).abs())
    tensor([[[[1., 1.],
              [1., 1.]]]])
    """
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    wants = return_aux is not None or return_lse
    if key.shape[1] != query.shape[1]:
        if not enable_gqa or query.shape[1] % key.shape[1]:
            raise ValueError(f"flex_attention: {query.shape[1]} heads of queries, {key.shape[1]} of keys; set enable_gqa=True")
        times = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(times, 1), value.repeat_interleave(times, 1)
    if score_mod is None and block_mask is None and not wants:
        from ..functional import scaled_dot_product_attention

        return scaled_dot_product_attention(query, key, value, scale=scale)
    exact = _C.float64 if query.dtype == _C.float64 else _C.float32
    scores = (query.to(exact) @ key.to(exact).transpose(-2, -1)) * scale
    if score_mod is not None:
        scores = score_mod(scores, *_places(*scores.shape, scores.device)).expand(scores.shape).to(exact)
    if block_mask is not None:
        scores = scores.masked_fill(~block_mask._places_allowed(*scores.shape), -math.inf)
    top = scores.detach().amax(-1, keepdim=True)
    weights = _C.exp(scores - _C.where(_C.isneginf(top), 0.0, top))
    total = weights.sum(-1, keepdim=True)
    result = ((weights / _C.where(total == 0, 1.0, total)) @ value.to(exact)).to(query.dtype)
    if not wants:
        return result
    lse = (total.log() + _C.where(_C.isneginf(top), 0.0, top)).squeeze(-1)
    if return_aux is None:
        return result, lse
    return result, AuxOutput(lse if return_aux.lse else None, top.squeeze(-1) if return_aux.max_scores else None)
