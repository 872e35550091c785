"""Steps of one token per row on a CUDA device, captured as a graph: one launch per token, whatever the number of layers.

A graph repeats its calls on the same memory, so nothing that changes from step to step may be known to the host alone. Keys
and values lie in buffers of full capacity, and where the tokens of a row begin and end is a tensor on the device (`spans`),
which the step itself moves on. Without penalties and draws the step also chooses the next token and feeds it to itself; the
host only reads it.

The first step runs as it is: kernels are compiled and libraries choose. The second is captured, all others replay it.
"""

import math

from .. import _C


class StepCache:
    """What a model sees as its cache in such a step: buffers of another cache, and the spans of its rows.

    >>> from lucid.generation.decoder import StepCache
    >>> cache, k = lucid.generation.Cache(capacity=4, step=4), lucid.ones(1, 1, 2, 8)
    >>> _ = cache.update(0, k, k)
    >>> step, one = StepCache(cache, lucid.tensor([[0, 2]])), lucid.ones(1, 1, 1, 8)
    >>> out = step.attend(0, one, one, 4 * one, lucid.models.text.attention.Sight())
    >>> step.positions(1), out[0, 0, 0, :2]
    (tensor([[2]]), tensor([2., 2.]))
    """

    ragged = True

    def __init__(self, cache, spans):
        self.cache, self.spans, self.seen = cache, spans, spans + _C.tensor([[0, 1]], device=spans.device)

    @property
    def length(self):
        """The longest that a row can be before a step: tables of positions must reach as far."""
        return self.cache.capacity - 1

    @property
    def batch(self):
        return self.cache.batch

    def positions(self, length):
        return self.spans[:, 1:] - self.spans[:, :1]

    def attend(self, layer, q, k, v, sight, scale=None, dropout=0.0):
        if q.shape[2] != 1 or dropout:
            raise ValueError(f"a step is one token per row, without dropout; got {q.shape[2]} tokens")
        keys, values = self.cache.keys[layer], self.cache.values[layer]
        _C._cache_write(keys, values, k.detach(), v.detach(), self.spans)
        return _C._cached_attention(
            q, keys, values, self.seen, 1 / math.sqrt(q.shape[-1]) if scale is None else scale, sight.window or 0
        )

    def advance(self):
        """The rows have one token more."""
        self.spans.copy_(self.seen)
        self.seen[:, 1] += 1


class Decoder:
    """The steps of a generation whose prompt is in the cache. padding: filled places at the start of each row, or None.

    >>> config = lucid.models.GPT2Config(vocab_size=11, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
    >>> model = lucid.models.GPT2LMHeadModel(config).eval()
    >>> cache = lucid.generation.Cache(capacity=8, step=8)
    >>> with lucid.no_grad():
    ...     _ = model(lucid.tensor([[1, 2, 3]]), past_key_values=cache)
    ...     decoder = lucid.generation.Decoder(model, cache)
    ...     logits = decoder.next([4])
    ...     whole = model(lucid.tensor([[1, 2, 3, 4]])).logits[:, -1]
    >>> cache.length, bool((logits - whole).abs().max() < 1e-5)
    (4, True)
    """

    def __init__(self, model, cache, padding=None, feeds=False):
        device, rows = model.device, cache.batch
        begins = [0] * rows if padding is None else padding
        self.model, self.cache, self.feeds = model, cache, feeds
        self.step = StepCache(cache, _C.tensor([[begin, cache.length] for begin in begins], device=device))
        self.ids = _C.zeros(rows, 1, dtype=_C.int64, device=device)
        self.graph, self.logits, self.steps = None, None, 0

    def next(self, tokens):
        """Logits (rows, vocabulary) behind these tokens, one per row. With feeds=True, `ids` has the likeliest ones then."""
        if self.cache.length >= self.cache.capacity:
            raise ValueError(f"the cache is full: {self.cache.capacity} tokens")
        if not (self.feeds and self.steps):
            self.ids.copy_(_C.tensor(tokens).unsqueeze(1))
        if self.steps and self.graph is None and self.ids.device.type == "cuda":
            self._capture()
        if self.graph is not None:
            self.graph.replay()
        else:
            self.logits = self._run()
        self.steps += 1
        self.cache.lengths = [n + 1 for n in self.cache.lengths]
        return self.logits

    def _run(self):
        logits = self.model(self.ids, past_key_values=self.step, logits_to_keep=1).logits[:, -1]
        self.step.advance()
        if self.feeds:
            self.ids.copy_(logits.argmax(-1, keepdim=True))
        return logits

    def _capture(self):
        from .. import cuda

        graph, stream = cuda.CUDAGraph(), cuda.Stream(device=self.ids.device)
        stream.wait_stream(cuda.current_stream(self.ids.device))
        with cuda.stream(stream):
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                logits = self._run()
            finally:
                graph.capture_end()
        cuda.current_stream(self.ids.device).wait_stream(stream)
        self.graph, self.logits, self.stream = graph, logits, stream
