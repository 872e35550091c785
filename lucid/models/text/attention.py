"""Attention of text models: who sees whom, rotary positions, and the call that all of them share.

A cache (`lucid.generation.cache`) keeps keys and values of earlier tokens and answers for them: `cache.attend`. Without one
`attend` below is called with what the layer has. A `Sight` says which keys the queries of one forward pass may look at; it
is made once per pass and shared by the layers.
"""

import math

from ... import _C
from ...nn import functional as F


class Sight:
    """What queries may see: nothing to say (mask None), everything before them (causal), or a mask of bools; and the window.

    >>> from lucid.models.text.attention import Sight
    >>> Sight.of(3).causal, Sight.of(1, past=5).causal
    (True, False)
    >>> Sight.of(2, past=1).mask.int().tolist()
    [[1, 1, 0], [1, 1, 1]]
    >>> Sight.of(3, window=2).mask.int().tolist()
    [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    """

    def __init__(self, mask=None, causal=False, window=None):
        self.mask, self.causal, self.window = mask, causal, window
        self.turn = None  # of queries, keys and values by their positions, if the layers do not know it

    @classmethod
    def of(cls, length, past=0, padding=None, window=None, device=None):
        """For length queries after past keys; padding: a mask (batch, past + length) that is 0 where there is no token."""
        total = past + length
        window = window if window is not None and window < total else None
        if padding is not None:
            padding = padding.to(_C.bool)
            if padding.shape[-1] != total:
                raise ValueError(
                    f"attention_mask has {padding.shape[-1]} columns; with {past} tokens in the cache it takes {total}"
                )
            if bool(padding.all()):
                padding = None
        if padding is None and length == 1:
            return cls(window=window)
        if padding is None and not past and window is None:
            return cls(causal=True)
        rows = _C.arange(past, total, device=device).unsqueeze(1)
        columns = _C.arange(total, device=device)
        mask = columns <= rows
        if window is not None:
            mask = mask & (columns > rows - window)
        if padding is not None:
            mask = mask & padding[:, None, None, :]
        return cls(mask, False, window)


def attend(q, k, v, sight, scale=None, dropout=0.0):
    """Attention of q over k and v, (batch, heads, length, width); fewer heads of keys than of queries are shared.

    >>> from lucid.models.text.attention import Sight, attend
    >>> q = lucid.ones(1, 4, 2, 8)
    >>> tuple(attend(q, q[:, :2], q[:, :2], Sight.of(2)).shape)
    (1, 4, 2, 8)
    """
    mask, keys = sight.mask, k.shape[2]
    if sight.window is not None and q.shape[2] == 1 and keys > sight.window:
        k, v, keys = k[:, :, -sight.window :], v[:, :, -sight.window :], sight.window
    if mask is not None and mask.shape[-1] > keys:
        mask = mask[..., -keys:]
    return F.scaled_dot_product_attention(
        q, k, v, mask, dropout, sight.causal, scale=scale, enable_gqa=q.shape[1] != k.shape[1]
    )


def _inverse_frequencies(base, dim, scaling, length, longest):
    """(inverse frequencies, factor on cos and sin) by the kind of scaling, with the Hub's names and defaults."""
    inverse = base ** (-_C.arange(0, dim, 2, dtype=_C.float64, device="cpu") / dim)
    scaling = scaling or {}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    factor = scaling.get("factor", 1.0)
    if kind == "default":
        return inverse, 1.0
    if kind == "linear":
        return inverse / factor, 1.0
    if kind == "dynamic":
        known = scaling.get("original_max_position_embeddings") or longest
        if length > known:
            base = base * (factor * length / known - (factor - 1)) ** (dim / (dim - 2))
        return base ** (-_C.arange(0, dim, 2, dtype=_C.float64, device="cpu") / dim), 1.0
    if kind == "llama3":
        known, low, high = scaling["original_max_position_embeddings"], scaling["low_freq_factor"], scaling["high_freq_factor"]
        waves = 2 * math.pi / inverse
        smooth = ((known / waves - low) / (high - low)).clamp(0, 1)
        return (1 - smooth) * inverse / factor + smooth * inverse, 1.0
    if kind == "yarn":
        return _yarn(inverse, base, dim, scaling, factor, longest)
    if kind == "longrope":
        return _longrope(inverse, scaling, length, longest)
    raise ValueError(
        f"rotary positions of type {kind!r} are not implemented; known: default, linear, dynamic, llama3, yarn, longrope"
    )


def _longrope(inverse, scaling, length, longest):
    known = scaling.get("original_max_position_embeddings") or longest
    if not ("long_factor" in scaling and "short_factor" in scaling):
        raise ValueError("rotary positions of type 'longrope' need short_factor and long_factor")
    each = scaling["long_factor" if length > known else "short_factor"]
    if len(each) != inverse.numel():
        raise ValueError(f"longrope: {len(each)} factors for {inverse.numel()} frequencies")
    factor, attention = scaling.get("factor") or longest / known, scaling.get("attention_factor")
    if attention is None:
        attention = math.sqrt(1 + math.log(factor) / math.log(known)) if factor > 1 else 1.0
    return inverse / _C.tensor(each, dtype=_C.float64, device="cpu"), attention


def _yarn(inverse, base, dim, scaling, factor, longest):
    known = scaling.get("original_max_position_embeddings") or longest

    def magnitude(scale, weight=1.0):
        return 0.1 * weight * math.log(scale) + 1.0 if scale > 1 else 1.0

    attention = scaling.get("attention_factor")
    if attention is None:
        some, whole = scaling.get("mscale"), scaling.get("mscale_all_dim")
        attention = magnitude(factor, some) / magnitude(factor, whole) if some and whole else magnitude(factor)

    def turns(count):  # the dimension that turns so often over the known length
        return dim * math.log(known / (count * 2 * math.pi)) / (2 * math.log(base))

    low, high = turns(scaling.get("beta_fast") or 32), turns(scaling.get("beta_slow") or 1)
    if scaling.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    ramp = ((_C.arange(dim // 2, dtype=_C.float64, device="cpu") - low) / max(high - low, 0.001)).clamp(0, 1)
    return inverse / factor * ramp + inverse * (1 - ramp), attention


class Rotary:
    """cos and sin for positions, from a table that grows as it is asked for more; the scaling variants of Llama's family.

    >>> from lucid.models.text.attention import Rotary
    >>> cos, sin = Rotary(4, 10000.0, 32)(lucid.tensor([[1]]), lucid.float32)
    >>> sin
    tensor([[[[0.8415, 0.0100, 0.8415, 0.0100]]]])
    """

    def __init__(self, dim, base, longest, scaling=None):
        self.dim, self.base, self.longest, self.scaling = dim, base, longest, scaling
        self.table = (0, None, None)
        self.kind = (scaling or {}).get("rope_type", (scaling or {}).get("type", "default"))
        rows = min(longest, 2048)
        if self.kind == "longrope":
            rows = min(rows, scaling.get("original_max_position_embeddings") or rows)
        self._grow(rows, _C.get_default_dtype(), "cpu")  # now: a compiled model changes nothing as it runs

    @property
    def varies(self):
        """Whether the angles depend on the length of the text, not on positions alone."""
        return self.kind in ("dynamic", "longrope")

    def _fits(self, length, needed):
        """Whether a table made for one length serves another."""
        if self.kind == "longrope":
            known = self.scaling.get("original_max_position_embeddings") or self.longest
            return needed <= length and (length > known) == (needed > known)
        return needed == length if self.kind == "dynamic" else needed <= length

    def __call__(self, positions, dtype, last=None):
        """last: the largest position, if it is known. Returns two tensors (batch, 1, length, dim)."""
        needed = 1 + (int(positions.max()) if last is None else last)
        length, cos, sin = self.table
        if not self._fits(length, needed) or cos.dtype != dtype or cos.device != positions.device:
            rows = needed if self.varies else max(needed, length, min(2 * needed, self.longest))
            self._grow(rows, dtype, positions.device)
            _, cos, sin = self.table
        return cos[positions].unsqueeze(1), sin[positions].unsqueeze(1)

    def _grow(self, length, dtype, device):
        inverse, factor = _inverse_frequencies(self.base, self.dim, self.scaling, length, self.longest)
        angles = _C.outer(_C.arange(length, dtype=_C.float64, device="cpu"), inverse)
        angles = _C.cat([angles, angles], -1)
        cos, sin = ((t * factor).to(dtype=dtype, device=device) for t in (angles.cos(), angles.sin()))
        self.table = (length, cos, sin)


def rotate(x, cos, sin):
    """Turn the halves of the last dimension by the angles of their positions.

    >>> from lucid.models.text.attention import rotate
    >>> rotate(lucid.tensor([1.0, 2.0]), lucid.zeros(2), lucid.ones(2))
    tensor([-2.,  1.])
    """
    if x.dtype is cos.dtype is sin.dtype and max(cos.ndim, sin.ndim) <= x.ndim <= 4:
        return _C._rotary(x, cos, sin)
    half = x.shape[-1] // 2
    return x * cos + _C.cat([-x[..., half:], x[..., :half]], -1) * sin
