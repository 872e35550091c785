"""The loop: a pass over the prompt, then a token per pass until every row has ended."""

import time

from .. import _C
from ..autograd import no_grad
from .cache import Cache, QuantizedCache, SlidingCache
from .config import end_tokens, resolved
from .decoder import Decoder
from .processors import Sampler, padded

_UNSET = object()


class Statistics:
    """How long a generation took. Seconds; tokens_per_second counts what came after the first token, of all rows.

    >>> lucid.generation.Statistics(3, 2, 1.0, 2.0, 11)
    3 + 11 tokens, first after 1.00 s, then 9.0 tokens/s
    """

    def __init__(self, prompt_tokens=0, rows=1, time_to_first_token=0.0, total_time=0.0, new_tokens=0, reused_tokens=0):
        self.prompt_tokens, self.rows, self.reused_tokens = prompt_tokens, rows, reused_tokens
        self.time_to_first_token, self.total_time, self.new_tokens = time_to_first_token, total_time, new_tokens

    @property
    def tokens_per_second(self):
        later = self.total_time - self.time_to_first_token
        return max(self.new_tokens - self.rows, 0) / later if later > 0 else 0.0

    def __repr__(self):
        first = f"first after {self.time_to_first_token:.2f} s"
        return f"{self.prompt_tokens} + {self.new_tokens} tokens, {first}, then {self.tokens_per_second:.1f} tokens/s"


class GenerateOutput:
    """What generate returns with return_dict_in_generate=True.

    sequences; scores (as they were chosen from) and logits (as the model gave them) per step, if asked for; finish_reasons,
    statistics, past_key_values; sequences_scores of beams.

    >>> lucid.generation.GenerateOutput(sequences=1, statistics=2).sequences
    1
    """

    def __init__(
        self,
        sequences,
        scores=None,
        finish_reasons=None,
        statistics=None,
        past_key_values=None,
        logits=None,
        sequences_scores=None,
    ):
        self.sequences, self.scores, self.logits, self.finish_reasons = sequences, scores, logits, finish_reasons
        self.statistics, self.past_key_values, self.sequences_scores = statistics, past_key_values, sequences_scores

    def __getitem__(self, name):
        return getattr(self, name)


def _rectangle(ids, attention_mask, pad, device):
    """Token ids as (rows, length), shorter rows filled on the left, and the mask that says so (None: nothing is filled)."""
    if isinstance(ids, _C.Tensor):
        ids = ids.unsqueeze(0) if ids.ndim == 1 else ids
    else:
        rows = [ids] if len(ids) and isinstance(ids[0], int) else [list(row) for row in ids]
        longest = max(map(len, rows), default=0)
        if attention_mask is None and any(len(row) != longest for row in rows):
            attention_mask = _C.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
        ids = _C.tensor([[pad or 0] * (longest - len(row)) + row for row in rows], dtype=_C.int64)
    if ids.ndim != 2 or ids.is_floating_point() or not ids.numel():
        raise ValueError(f"expected rows of token ids, at least one each, got {tuple(ids.shape)} of {ids.dtype}")
    if attention_mask is not None:
        attention_mask = attention_mask.unsqueeze(0) if attention_mask.ndim == 1 else attention_mask
        if attention_mask.shape != ids.shape:
            raise ValueError(f"attention_mask {tuple(attention_mask.shape)} for tokens {tuple(ids.shape)}")
        if not bool(attention_mask[:, -1].all()):
            raise ValueError("rows end in padding: generation needs texts of different lengths filled on the left")
        attention_mask = None if bool(attention_mask.all()) else attention_mask.to(device=device, dtype=_C.int64)
    return ids.to(device), attention_mask


def _new_cache(kind, config, capacity=0):
    if kind in (None, "dynamic", "static"):
        return Cache(capacity or 256, capacity)
    if kind == "quantized":
        return QuantizedCache()
    if kind == "sliding_window":
        window = getattr(config, "sliding_window", None)
        if window is None:
            raise ValueError("cache_implementation='sliding_window' needs sliding_window in the model's config")
        return SlidingCache(window)
    raise ValueError(f"cache_implementation is dynamic, static, quantized or sliding_window, not {kind!r}")


class Generation:
    """A generation under way: `step` computes the next token of every row.

    >>> config = lucid.models.GPT2Config(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> model = lucid.models.GPT2LMHeadModel(config).eval()
    >>> run = lucid.generation.Generation(model, [[1, 2]], max_new_tokens=2, eos_token_id=None)
    >>> len(run.step()), len(run.step()), run.step()
    (1, 1, None)
    """

    def __init__(
        self,
        model,
        input_ids,
        attention_mask=None,
        *,
        max_new_tokens=None,
        max_length=None,
        max_time=None,
        eos_token_id=_UNSET,
        pad_token_id=None,
        stop_strings=None,
        tokenizer=None,
        stopping_criteria=None,
        num_return_sequences=1,
        use_cache=True,
        past_key_values=None,
        cache_implementation=None,
        prefix_cache=None,
        prefill_chunk=None,
        output_scores=False,
        output_logits=False,
        cuda_graph=True,
        **sampling,
    ):
        self.model, config = model, model.config
        ends = end_tokens(model) if eos_token_id is _UNSET else eos_token_id
        self.ends = [] if ends is None else [ends] if isinstance(ends, int) else list(ends)
        pad = pad_token_id if pad_token_id is not None else getattr(config, "pad_token_id", None)
        self.pad = pad if pad is not None else self.ends[0] if self.ends else 0
        ids, mask = _rectangle(input_ids, attention_mask, self.pad, model.device)
        if num_return_sequences > 1:
            ids = ids.repeat_interleave(num_return_sequences, 0)
            mask = None if mask is None else mask.repeat_interleave(num_return_sequences, 0)
        (rows, length), self.prompts = ids.shape, ids
        if max_new_tokens is not None and max_length is not None:
            raise ValueError("max_new_tokens and max_length: give one of them")
        limit = max_new_tokens if max_new_tokens is not None else (20 if max_length is None else max_length) - length
        if max_new_tokens is None and max_length is None:
            limit = 20
        if limit < 1:
            raise ValueError(f"nothing to generate: {length} tokens and at most {length + limit}")
        room = self._room()
        self.limit = limit if room is None else min(limit, room - length + 1)
        if room is not None and length > room:
            raise ValueError(f"a prompt of {length} tokens; the model has positions for {room}")
        if stop_strings is not None:
            stop_strings = [stop_strings] if isinstance(stop_strings, str) else list(stop_strings)
            if tokenizer is None:
                raise ValueError("stop_strings need tokenizer=, to see the text of tokens")
        if max_time is not None and not max_time > 0:
            raise ValueError(f"max_time must be positive, got {max_time}")
        self.stop_strings, self.tokenizer, self.criteria = stop_strings or [], tokenizer, list(stopping_criteria or ())
        self.stop_window = 16 + max((len(stop.encode()) for stop in self.stop_strings), default=0)  # a token may be one byte
        self.sampler = Sampler(
            prompt_length=length, mask=mask, rows=rows, eos_token_id=self.ends, max_length=length + self.limit, **sampling
        )
        self._ids, self._unwritten, self.mask, self.prompt = ids, [], mask, length
        self.new = [[] for _ in range(rows)]
        self.reasons = [None] * rows
        self.scores, self.raw = [] if output_scores else None, [] if output_logits else None
        self.prefill_chunk = prefill_chunk
        self.prefix_cache = prefix_cache
        self.statistics = Statistics(rows * length if mask is None else int(mask.sum()), rows)
        self.started, self.logits, self.max_time = time.perf_counter(), None, max_time
        self.decoder = None
        self._find_cache(use_cache, past_key_values, cache_implementation, cuda_graph)

    @property
    def ids(self):
        """All tokens so far, (rows, length)."""
        if self._unwritten:
            new = _C.tensor(self._unwritten, device=self._ids.device).t()
            self._ids, self._unwritten = _C.cat([self._ids, new], 1), []
        return self._ids

    @property
    def device(self):
        return self._ids.device

    def _room(self):
        """How many positions the model has; None where they are angles, which have no end."""
        bounded = getattr(self.model, "bounded", True)
        return getattr(self.model.config, "max_position_embeddings", None) if bounded else None

    @property
    def length(self):
        return self._ids.shape[1] + len(self._unwritten)

    def _find_cache(self, use_cache, cache, kind, cuda_graph):
        self.captures = False
        if not use_cache:
            if cache is not None or kind is not None or self.prefix_cache is not None:
                raise ValueError("use_cache=False and a cache: give one of them")
            self.cache = None
            return
        if self.prefix_cache is not None:
            if len(self.new) > 1 or cache is not None or kind is not None:
                raise ValueError("prefix_cache is for one text at a time, and brings its own cache")
            cache, self.statistics.reused_tokens = self.prefix_cache.take(self.ids[0].tolist())
        config, model = self.model.config, self.model
        scaling = getattr(config, "rope_scaling", None) or {}
        self.captures = (
            bool(cuda_graph)
            and cache is None
            and kind in (None, "dynamic", "static")
            and self.prefix_cache is None
            and model.device.type == "cuda"
            and not model.training
            and getattr(model, "runs_in_steps", False)
            and scaling.get("rope_type", scaling.get("type")) not in ("dynamic", "longrope")  # the length decides their angles
            and self.limit > 2
        )
        capacity = 0
        if self.captures:
            room = self._room()
            capacity = -(-(self.prompt + self.limit) // 64) * 64
            capacity = max(min(capacity, room), self.prompt + self.limit - 1) if room is not None else capacity
        self.cache = cache if cache is not None else _new_cache(kind, config, capacity)
        if self.cache.length >= self.ids.shape[1]:
            raise ValueError(f"the cache has {self.cache.length} tokens already; give it and the text that goes on from them")

    def _forward(self, begin, end):
        """Logits behind token end - 1, from the tokens that the cache does not have."""
        mask = positions = None
        if self.mask is not None:
            mask = padded(self.mask, self.ids[:, : max(end, self.prompt)])[:, :end]
            positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, begin:end]
        out = self.model(
            self.ids[:, begin:end],
            attention_mask=mask,
            position_ids=positions,
            past_key_values=self.cache,
            logits_to_keep=1,
        )
        return out.logits[:, -1]

    def _next_logits(self):
        if self.captures and self.statistics.new_tokens:
            try:
                if self.decoder is None:
                    padding = None if self.mask is None else (self.prompt - self.mask.sum(-1)).tolist()
                    self.decoder = Decoder(self.model, self.cache, padding, self.sampler.is_plain)
                return self.decoder.next(self._unwritten[-1] if self._unwritten else self._ids[:, -1].tolist())
            except NotImplementedError:  # a width that the kernel does not take: no token was counted yet
                if self.decoder.steps:
                    raise
                self.captures, self.decoder = False, None
        end = self.length
        if self.cache is None:
            return self._forward(0, end)
        begin = self.cache.length
        if self.prefill_chunk:  # a long prompt in pieces: less memory at once
            while end - begin > self.prefill_chunk:
                self._forward(begin, begin + self.prefill_chunk)
                begin += self.prefill_chunk
        return self._forward(begin, end)

    def step(self):
        """The next token of every row (of one that has ended: padding), or None when all have ended."""
        if all(self.reasons):
            return None
        with no_grad():
            self.logits = self._next_logits()
            if self.decoder is not None and self.decoder.feeds:
                tokens, self.sampler.scores = self.decoder.ids[:, 0].tolist(), self.logits
            else:
                tokens = self.sampler(self.ids if self.sampler.processors else None, self.logits)
        self._record()
        tokens = [self.pad if done else token for token, done in zip(tokens, self.reasons)]
        self._unwritten.append(tokens)
        self._clock()
        for row, token in enumerate(tokens):
            if self.reasons[row] is None:
                self.statistics.new_tokens += 1
                self.new[row].append(token)
                self.reasons[row] = self._reason(self.new[row])
        for row, stop in enumerate(self._stopped(self.ids, len(tokens)) if self.criteria else ()):
            if stop and self.reasons[row] is None:
                self.reasons[row] = "stop"
        if all(self.reasons) and self.prefix_cache is not None:
            self.prefix_cache.keep(self.ids[0].tolist(), self.cache)
        return tokens

    def _record(self):
        for kept, values in ((self.scores, self.sampler.scores), (self.raw, self.logits)):
            if kept is not None:  # a graph overwrites its logits
                kept.append(values if self.decoder is None else values.clone())

    def _clock(self):
        now = time.perf_counter() - self.started
        if not self.statistics.new_tokens:
            self.statistics.time_to_first_token = now
        self.statistics.total_time = now

    def _reason(self, new):
        """Why a text ends with these new tokens, or None."""
        if new[-1] in self.ends:
            return "stop"
        if self.stop_strings:
            text = self.tokenizer.decode(new[-self.stop_window :])
            if any(stop in text for stop in self.stop_strings):
                return "stop"
        if self.max_time is not None and time.perf_counter() - self.started > self.max_time:
            return "time"
        return "length" if len(new) >= self.limit else None

    def _stopped(self, ids, rows):
        """What the caller's criteria say of every row."""
        answers = [criterion(ids, self.sampler.scores) for criterion in self.criteria]
        answers = [a.tolist() if isinstance(a, _C.Tensor) else [a] * rows for a in answers]
        return [any(row) for row in zip(*answers)]

    # ---- for beams, whose rows change places ----

    def next_scores(self, start):
        """Scores of the next tokens (rows, vocabulary): start(logits), then the processors."""
        self.logits = self._next_logits()
        scores = self.sampler.scores = self.sampler.processors(self.ids, start(self.logits.to(_C.float32)))
        self._record()
        return scores

    def reasons_for(self, new, parents):
        """Why texts with these new tokens, which go on from these rows, end."""
        reasons = [self._reason(tokens) for tokens in new]
        if self.criteria:
            ids = _C.cat([self.prompts[_C.tensor(parents, device=self.device)], _C.tensor(new, device=self.device)], 1)
            reasons = [r or ("stop" if stop else None) for r, stop in zip(reasons, self._stopped(ids, len(new)))]
        return reasons

    def follow(self, parents, tokens):
        """Rows take the place of their parents, each with one token more."""
        places = _C.tensor(parents, device=self.device)
        self._ids = _C.cat([self.ids[places], _C.tensor(tokens, device=self.device).unsqueeze(1)], 1)
        if self.cache is not None and parents != list(range(len(parents))):
            self.cache.select(places)
        self._clock()
        self.statistics.new_tokens += len(tokens)

    def stop(self):
        """End all rows now."""
        self.reasons = [reason or "cancelled" for reason in self.reasons]


def generate(model, input_ids, attention_mask=None, *, generation_config=None, **options):
    """Continue token ids with a language model; the result has prompt and continuation, ended rows filled with padding.

    input_ids: a tensor (rows, length), or lists of ids (shorter ones are filled on the left). Without do_sample=True the
    likeliest token is taken. What is not given is as generation_config says (a GenerationConfig), else as the
    generation_config.json of the model's folder did, else as here:

    max_new_tokens (20), max_length, min_new_tokens, min_length, max_time (seconds); do_sample, temperature, top_k (50), top_p,
    min_p, typical_p; repetition_penalty, presence_penalty, frequency_penalty, no_repeat_ngram_size; bad_words_ids,
    suppress_tokens, begin_suppress_tokens, sequence_bias, forced_eos_token_id, prefix_allowed_tokens_fn; logits_processor,
    stopping_criteria: lists of functions of (ids, scores); renormalize_logits; num_beams with length_penalty and
    early_stopping; eos_token_id (one or several; None: no end), pad_token_id; stop_strings with tokenizer;
    num_return_sequences; seed (an int, or one per row); use_cache, past_key_values, cache_implementation ("dynamic",
    "quantized", "sliding_window"), prefix_cache, prefill_chunk; return_dict_in_generate, output_scores, output_logits;
    cuda_graph (True: on a CUDA device a step is captured and replayed).

    callback(tokens) is called with the new token of every row; generation ends if it returns False. streamer: an object with
    put(ids) and end(), as transformers has them (`TextStreamer`).

    >>> config = lucid.models.GPT2Config(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> model = lucid.models.GPT2LMHeadModel(config).eval()
    >>> a = lucid.generation.generate(model, [[1, 2], [3]], max_new_tokens=3, do_sample=True, seed=0, eos_token_id=None)
    >>> b = lucid.generation.generate(model, [[1, 2], [3]], max_new_tokens=3, do_sample=True, seed=0, eos_token_id=None)
    >>> bool((a == b).all()), tuple(a.shape)
    (True, (2, 5))
    """
    options = resolved(model, options, generation_config)
    beams = options.pop("num_beams", 1)
    about_beams = {name: options.pop(name) for name in ("length_penalty", "early_stopping") if name in options}
    if beams not in (1, None):
        from .beams import beam_search

        return beam_search(model, input_ids, attention_mask, num_beams=beams, **about_beams, **options)
    return_dict_in_generate, streamer = options.pop("return_dict_in_generate", False), options.pop("streamer", None)
    callback = options.pop("callback", None)
    run = Generation(model, input_ids, attention_mask, **options)
    if streamer is not None:
        streamer.put(run.prompts.cpu())
    while (tokens := run.step()) is not None:
        if streamer is not None:
            streamer.put(_C.tensor(tokens))
        if callback is not None and callback(tokens) is False:
            run.stop()
    if streamer is not None:
        streamer.end()
    if not return_dict_in_generate:
        return run.ids
    return GenerateOutput(
        sequences=run.ids,
        scores=run.scores,
        logits=run.raw,
        finish_reasons=run.reasons,
        statistics=run.statistics,
        past_key_values=run.cache,
    )
