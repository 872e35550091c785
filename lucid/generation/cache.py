"""Keys and values of the tokens a decoder has seen, kept for the tokens to come.

A cache has one pair of tensors (batch, heads, capacity, width) per layer, made at the first call and grown in steps; what a
layer gets back are views of the used part. `attend` stores new keys and values and answers the queries.

    Cache            everything, grown in steps
    SlidingCache     the last `window` tokens of every layer
    QuantizedCache   everything in int8, with a scale per token and head
    RaggedCache      a batch whose rows have caches of their own, of different lengths (continuous batching)
"""

from .. import _C
from ..models.text.attention import Sight, attend


class Cache:
    """Keys and values in preallocated memory that grows in steps.

    >>> cache = lucid.generation.Cache(step=4)
    >>> k = lucid.ones(1, 2, 3, 8)
    >>> keys, values = cache.update(0, k, k)
    >>> tuple(keys.shape), cache.length, cache.capacity
    ((1, 2, 3, 8), 3, 4)
    >>> cache.crop(1)
    >>> cache.length
    1
    """

    ragged = False

    def __init__(self, step=256, capacity=0):
        if step < 1:
            raise ValueError(f"step must be positive, got {step}")
        self.step, self.first = step, capacity
        self.keys, self.values, self.lengths = [], [], []

    @property
    def length(self):
        """How many tokens came through."""
        return self.lengths[0] if self.lengths else 0

    @property
    def capacity(self):
        return self.keys[0].shape[2] if self.keys else 0

    @property
    def batch(self):
        return self.keys[0].shape[0] if self.keys else 0

    @property
    def nbytes(self):
        return sum(t.numel() * t.element_size() for t in [*self.keys, *self.values])

    def _room(self, layer, like, needed, kept):
        """Make buffers for a new layer, or larger ones that begin with the rows kept (begin, end) of the old."""
        batch, heads, _, width = like.shape
        if layer < len(self.keys) and self.keys[layer].shape[2] >= needed:
            if self.keys[layer].shape[0] != batch:
                raise ValueError(f"a batch of {batch} for a cache of {self.keys[layer].shape[0]} rows")
            return
        if layer > len(self.keys):
            raise IndexError(f"layer {layer} before layer {len(self.keys)}")
        capacity = max(-(-needed // self.step) * self.step, self.first)
        for buffers in (self.keys, self.values):
            new = _C.empty((batch, heads, capacity, width), dtype=like.dtype, device=like.device)
            if layer == len(buffers):
                buffers.append(new)
            else:
                new[:, :, : kept[1] - kept[0]].copy_(buffers[layer][:, :, kept[0] : kept[1]])
                buffers[layer] = new
        if layer == len(self.lengths):
            self.lengths.append(0)

    def update(self, layer, k, v):
        """Store keys and values (batch, heads, length, width); returns all of the layer's, as views."""
        begin = self.lengths[layer] if layer < len(self.lengths) else 0
        end = begin + k.shape[2]
        k, v = k.detach(), v.detach()
        self._room(layer, k, end, (0, begin))
        self.keys[layer][:, :, begin:end].copy_(k)
        self.values[layer][:, :, begin:end].copy_(v)
        self.lengths[layer] = end
        return self.keys[layer][:, :, :end], self.values[layer][:, :, :end]

    def attend(self, layer, q, k, v, sight, scale=None, dropout=0.0):
        """Store, then attention of q over all keys and values."""
        return attend(q, *self.update(layer, k, v), sight, scale, dropout)

    def crop(self, length):
        """Forget all but the first length tokens: the start that another text shares."""
        if length > self.length or length < 0:
            raise ValueError(f"cannot keep {length} of {self.length} tokens")
        self.lengths = [length] * len(self.lengths)

    def select(self, rows):
        """Keep these rows of the batch, in this order (a list or a tensor of indices)."""
        rows = _C.tensor(list(rows)) if not isinstance(rows, _C.Tensor) else rows
        self.keys = [t.index_select(0, rows) for t in self.keys]
        self.values = [t.index_select(0, rows) for t in self.values]

    def clone(self):
        """A copy with memory of its own."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        for name, value in self.__dict__.items():
            if isinstance(value, list):
                setattr(other, name, [t.clone() if isinstance(t, _C.Tensor) else t for t in value])
        return other

    def clear(self):
        """Forget everything; the memory stays."""
        self.lengths = [0] * len(self.lengths)


class SlidingCache(Cache):
    """The last `window` tokens of every layer, for models whose attention looks no further.

    Buffers hold two windows: when they are full, the last window moves to the front, once per window of tokens.

    >>> cache = lucid.generation.SlidingCache(window=2)
    >>> for i in range(5):
    ...     keys, _ = cache.update(0, lucid.full((1, 1, 1, 1), float(i)), lucid.zeros(1, 1, 1, 1))
    >>> keys.flatten().tolist(), cache.length
    ([3.0, 4.0], 5)
    """

    def __init__(self, window):
        super().__init__(step=max(2 * window, 1))
        if window < 1:
            raise ValueError(f"window must be positive, got {window}")
        self.window = window
        self.used = []  # per layer: rows in the buffer

    def update(self, layer, k, v):
        new = k.shape[2]
        k, v = k.detach(), v.detach()
        if layer == len(self.used):
            self.used.append(0)
        used = self.used[layer]
        if layer == len(self.keys) or used + new > self.keys[layer].shape[2]:
            kept = min(used, self.window - 1)  # what the oldest of the new tokens still sees
            if layer < len(self.keys) and kept + new <= self.keys[layer].shape[2]:
                for buffers in (self.keys, self.values):
                    buffers[layer][:, :, :kept].copy_(buffers[layer][:, :, used - kept : used].clone())
            else:
                self._room(layer, k, kept + new, (used - kept, used))
            used = kept
        self.keys[layer][:, :, used : used + new].copy_(k)
        self.values[layer][:, :, used : used + new].copy_(v)
        self.used[layer] = end = used + new
        self.lengths[layer] += new
        begin = used - min(used, self.window - 1)
        return self.keys[layer][:, :, begin:end], self.values[layer][:, :, begin:end]

    def attend(self, layer, q, k, v, sight, scale=None, dropout=0.0):
        new, past = q.shape[2], self.lengths[layer] if layer < len(self.lengths) else 0
        keys, values = self.update(layer, k, v)
        if sight.mask is None and new > 1:  # the model's own window may be wider than the cache's
            sight = Sight.of(new, past, None, self.window, q.device)
        elif sight.mask is not None and past + new > self.window:
            own = Sight.of(new, past, None, self.window, q.device)
            sight = Sight(sight.mask if own.mask is None else sight.mask & own.mask)
        return attend(q, keys, values, Sight(sight.mask, sight.causal, self.window), scale, dropout)

    def crop(self, length):
        """Only a cache that has not slid yet can be cut."""
        if self.length > min(self.window, self.used[0] if self.used else 0):
            raise ValueError("a sliding cache that has dropped tokens cannot be cut back")
        super().crop(length)
        self.used = [length] * len(self.used)

    def clear(self):
        super().clear()
        self.used = [0] * len(self.used)


class QuantizedCache(Cache):
    """Keys and values in int8, with a scale per token and head: a quarter of the memory of float32.

    >>> cache = lucid.generation.QuantizedCache()
    >>> k = lucid.linspace(-1, 1, 8).view(1, 1, 1, 8)
    >>> keys, _ = cache.update(0, k, k)
    >>> float((keys - k).abs().max()) < 1 / 127
    True
    """

    def __init__(self, step=256, capacity=0):
        super().__init__(step, capacity)
        self.codes = Cache(step, capacity)
        self.scales = Cache(step, capacity)

    @property
    def length(self):
        return self.codes.length

    @property
    def capacity(self):
        return self.codes.capacity

    @property
    def batch(self):
        return self.codes.batch

    @property
    def nbytes(self):
        return self.codes.nbytes + self.scales.nbytes

    @staticmethod
    def _coded(t):
        scale = t.abs().amax(-1, keepdim=True) / 127
        return (t / scale.clamp(min=1e-30)).round().to(_C.int8), scale

    def update(self, layer, k, v):
        dtype = k.dtype
        (k, k_scale), (v, v_scale) = self._coded(k.detach()), self._coded(v.detach())
        codes, scales = self.codes.update(layer, k, v), self.scales.update(layer, k_scale, v_scale)
        return tuple(c.to(dtype) * s for c, s in zip(codes, scales))

    def crop(self, length):
        self.codes.crop(length)
        self.scales.crop(length)

    def select(self, rows):
        self.codes.select(rows)
        self.scales.select(rows)

    def clone(self):
        other = super().clone()
        other.codes, other.scales = self.codes.clone(), self.scales.clone()
        return other

    def clear(self):
        self.codes.clear()
        self.scales.clear()


class RaggedCache:
    """A batch whose rows have caches of their own, each of its own length: one token per row and pass.

    Products run over the whole batch, attention row by row, so rows can come and go between passes.

    >>> one, two = lucid.generation.Cache(), lucid.generation.Cache()
    >>> k = lucid.ones(1, 1, 3, 4)
    >>> _ = one.update(0, k, k), two.update(0, k[:, :, :1], k[:, :, :1])
    >>> lucid.generation.RaggedCache([one, two]).positions(1)
    tensor([[3],
            [1]])
    """

    ragged = True

    def __init__(self, caches):
        self.caches = list(caches)

    @property
    def length(self):
        return max((c.length for c in self.caches), default=0)

    @property
    def batch(self):
        return len(self.caches)

    def positions(self, length):
        """The positions of the next tokens of each row."""
        return _C.tensor([[c.length + i for i in range(length)] for c in self.caches])

    def attend(self, layer, q, k, v, sight, scale=None, dropout=0.0):
        if q.shape[2] != 1 or q.shape[0] != len(self.caches):
            raise ValueError(
                f"rows with caches of their own take one token each: {len(self.caches)} rows, got {tuple(q.shape)}"
            )
        rows = [
            cache.attend(layer, q[i : i + 1], k[i : i + 1], v[i : i + 1], sight, scale, dropout)
            for i, cache in enumerate(self.caches)
        ]
        return _C.cat(rows, 0)


class PrefixCache:
    """Caches of earlier texts: a text that starts like one of them need not be computed from its first token again.

    Holds the `limit` texts that were used last. `generate(..., prefix_cache=)` reads and fills it.

    >>> config = lucid.models.GPT2Config(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> model = lucid.models.GPT2LMHeadModel(config).eval()
    >>> kept = lucid.generation.PrefixCache()
    >>> _ = lucid.generation.generate(model, [[1, 2, 3]], max_new_tokens=2, prefix_cache=kept)
    >>> cache, length = kept.take([1, 2, 3, 9, 9])
    >>> length, cache.length
    (3, 3)
    """

    def __init__(self, limit=4):
        self.limit, self.entries = limit, []  # (tokens, cache), the last used at the end

    def take(self, tokens):
        """(a cache of the longest known start of tokens, its length); at least one token is left to compute."""
        best, common = None, 0
        for entry in self.entries:
            n = 0
            for a, b in zip(entry[0], tokens[:-1]):
                if a != b:
                    break
                n += 1
            if n > common:
                best, common = entry, n
        if best is None:
            return None, 0
        self.entries.remove(best)
        self.entries.append(best)
        cache = best[1].clone()
        cache.crop(common)
        return cache, common

    def keep(self, tokens, cache):
        """Remember the cache of a text; one that is the start of this one makes room."""
        tokens = list(tokens[: cache.length])
        self.entries = [e for e in self.entries if tokens[: len(e[0])] != e[0]]
        self.entries.append((tokens, cache))
        del self.entries[: -self.limit]
