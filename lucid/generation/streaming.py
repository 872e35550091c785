"""Tokens as they come: an iterator, an async iterator, a callback; and text from tokens that are parts of characters."""

import queue
import sys
import threading

from .config import resolved
from .loop import Generation


class Token:
    """One generated token: token_id, text (with a tokenizer), logit, probability, is_eos.

    >>> lucid.generation.Token(7, "a", 1.5, 0.25, False)
    Token(7, 'a', probability=0.250)
    """

    __slots__ = ("is_eos", "logit", "probability", "text", "token_id")

    def __init__(self, token_id, text, logit, probability, is_eos):
        self.token_id, self.text, self.logit, self.probability, self.is_eos = token_id, text, logit, probability, is_eos

    def __repr__(self):
        return f"Token({self.token_id}, {self.text!r}, probability={self.probability:.3f})"


class TextTail:
    """Text of a growing list of tokens: what is new and complete. Half characters and starts of stop strings are held back.

    >>> class Letters:
    ...     def decode(self, ids):
    ...         return "".join("abcd"[i] for i in ids)
    >>> tail = lucid.generation.TextTail(Letters(), ["cd"])
    >>> [tail.push(i) for i in (0, 1, 2, 3, 0)], tail.stopped
    (['a', 'b', '', '', ''], True)
    """

    def __init__(self, tokenizer, stop_strings=()):
        self.tokenizer, self.stops = tokenizer, list(stop_strings)
        self.tokens, self.begin, self.read = [], 0, 0  # tokens[begin:read] are context: their text was given out
        self.held, self.stopped = "", False

    def _ready(self, text):
        """Of the text held back: what cannot be a part of a stop string."""
        self.held += text
        place = min((at for at in map(self.held.find, self.stops) if at >= 0), default=None)
        if place is not None:
            out, self.held, self.stopped = self.held[:place], "", True
            return out
        keep = max((n for stop in self.stops for n in range(1, len(stop)) if self.held.endswith(stop[:n])), default=0)
        out = self.held[: len(self.held) - keep]
        self.held = self.held[len(out) :]
        return out

    def push(self, token):
        """Add a token; the text that is complete now."""
        if self.stopped:
            return ""
        self.tokens.append(token)
        before = self.tokenizer.decode(self.tokens[self.begin : self.read])
        after = self.tokenizer.decode(self.tokens[self.begin :])
        if len(after) <= len(before) or after.endswith("\N{REPLACEMENT CHARACTER}"):
            return ""
        self.begin, self.read = self.read, len(self.tokens)
        return self._ready(after[len(before) :])

    def flush(self):
        """What is left at the end."""
        if self.stopped:
            return ""
        before = self.tokenizer.decode(self.tokens[self.begin : self.read])
        rest = self.tokenizer.decode(self.tokens[self.begin :])[len(before) :]
        out, self.held, self.begin, self.read = self.held + rest, "", len(self.tokens), len(self.tokens)
        for stop in self.stops:
            out = out.split(stop)[0]
        return out


class TokenStream:
    """Tokens of one text as they are computed: `for`, or `async for` (each step runs in a thread). `close` ends it early.

    >>> config = lucid.models.GPT2Config(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> model = lucid.models.GPT2LMHeadModel(config).eval()
    >>> tokens = lucid.generation.stream(model, [1, 2], max_new_tokens=3, eos_token_id=None)
    >>> len([token.token_id for token in tokens]), tokens.finish_reason, tokens.statistics.new_tokens
    (3, 'length', 3)
    """

    def __init__(self, run):
        if len(run.new) != 1:
            raise ValueError(f"a stream is of one text, not of {len(run.new)}; generate takes a callback for batches")
        self.run = run
        self.tail = TextTail(run.tokenizer, run.stop_strings) if run.tokenizer is not None else None
        self.lock = threading.Lock()  # an awaited step that was cancelled still runs to its end

    @property
    def statistics(self):
        return self.run.statistics

    @property
    def finish_reason(self):
        return self.run.reasons[0]

    def __iter__(self):
        return self

    def __next__(self):
        with self.lock:
            return self._next()

    def _next(self):
        tokens = self.run.step()
        if tokens is None:
            raise StopIteration
        token = tokens[0]
        scores = self.run.sampler.scores[0].float()
        is_end = token in self.run.ends
        text = None
        if self.tail is not None:
            text = "" if is_end else self.tail.push(token)
            if self.finish_reason:
                text += self.tail.flush()
        return Token(token, text, float(self.run.logits[0, token]), float(scores.softmax(-1)[token]), is_end)

    def close(self):
        self.run.stop()

    def __aiter__(self):
        return self

    async def __anext__(self):
        import asyncio

        token = await asyncio.get_running_loop().run_in_executor(None, next, self, None)
        if token is None:
            raise StopAsyncIteration
        return token


class TextStreamer:
    """Prints a text as it is generated, as transformers' class does: given to generate as streamer=.

    >>> class Letters:
    ...     def decode(self, ids, skip_special_tokens=False): return "".join("abcd"[i] for i in ids)
    >>> streamer = lucid.generation.TextStreamer(Letters(), skip_prompt=True)
    >>> for ids in ([[0]], [1], [2]):
    ...     streamer.put(lucid.tensor(ids))
    ...     if ids == [2]: streamer.end()
    bc
    """

    def __init__(self, tokenizer, skip_prompt=False, **decode):
        self.tokenizer, self.skip_prompt, self.decode_options = tokenizer, skip_prompt, decode
        self._restart()

    def _restart(self):
        self.tail, self.at_prompt = TextTail(self), True

    def decode(self, ids):
        return self.tokenizer.decode(ids, **self.decode_options)

    def put(self, value):
        """Token ids: first the prompt, then one after the other."""
        if value.ndim > 1 and value.shape[0] > 1:
            raise ValueError(f"a streamer is of one text, not of {value.shape[0]}")
        first, self.at_prompt = self.at_prompt, False
        if not (first and self.skip_prompt):
            self._give("".join(self.tail.push(token) for token in value.flatten().tolist()))

    def end(self):
        """The text is whole."""
        text = self.tail.flush()
        self._restart()
        self.on_finalized_text(text, stream_end=True)

    def _give(self, text):
        if text:
            self.on_finalized_text(text)

    def on_finalized_text(self, text, stream_end=False):
        """Where the text goes; a class of your own may send it elsewhere."""
        print(text, end="\n" if stream_end else "", flush=True, file=sys.stdout)


class TextIteratorStreamer(TextStreamer):
    """Text as it is generated, as an iterator for another thread; timeout: seconds that it waits for a piece.

    >>> class Letters:
    ...     def decode(self, ids): return "".join("abcd"[i] for i in ids)
    >>> streamer = lucid.generation.TextIteratorStreamer(Letters())
    >>> streamer.put(lucid.tensor([[0, 1]])), streamer.end(), list(streamer)
    (None, None, ['ab'])
    """

    def __init__(self, tokenizer, skip_prompt=False, timeout=None, **decode):
        super().__init__(tokenizer, skip_prompt, **decode)
        self.timeout, self.pieces = timeout, queue.Queue()

    def on_finalized_text(self, text, stream_end=False):
        if text:
            self.pieces.put(text)
        if stream_end:
            self.pieces.put(None)

    def __iter__(self):
        return self

    def __next__(self):
        piece = self.pieces.get(timeout=self.timeout)
        if piece is None:
            raise StopIteration
        return piece


def stream(model, input_ids, attention_mask=None, *, callback=None, generation_config=None, **options):
    """Generate one text token by token. Options are those of generate; with tokenizer= tokens carry their text.

    Returns a TokenStream, which is an iterator and an async iterator. With callback(token) the tokens are given to it instead
    until it returns False, and the finished stream is returned.

    >>> config = lucid.models.GPT2Config(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> model = lucid.models.GPT2LMHeadModel(config).eval()
    >>> seen = []
    >>> done = lucid.generation.stream(model, [1], max_new_tokens=3, eos_token_id=None, callback=seen.append)
    >>> len(seen), done.finish_reason
    (3, 'length')
    """
    options = resolved(model, options, generation_config)
    for name in ("length_penalty", "early_stopping", "return_dict_in_generate"):
        options.pop(name, None)
    if options.pop("num_beams", 1) not in (1, None) or options.pop("streamer", None) is not None:
        raise ValueError("stream takes neither beams, which change their texts as they go, nor a streamer")
    tokens = TokenStream(Generation(model, input_ids, attention_mask, **options))
    if callback is None:
        return tokens
    for token in tokens:
        if callback(token) is False:
            tokens.close()
    return tokens
