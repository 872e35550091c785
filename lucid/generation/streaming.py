"""Tokens as they come: an iterator, an async iterator, a callback; and text from tokens that are parts of characters."""

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
        for stop in self.stops:
            place = self.held.find(stop)
            if place >= 0:
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
        self.rest = None

    @property
    def statistics(self):
        return self.run.statistics

    @property
    def finish_reason(self):
        return self.run.reasons[0]

    def __iter__(self):
        return self

    def __next__(self):
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


def stream(model, input_ids, attention_mask=None, *, callback=None, **options):
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
    tokens = TokenStream(Generation(model, input_ids, attention_mask, **options))
    if callback is None:
        return tokens
    for token in tokens:
        if callback(token) is False:
            tokens.close()
    return tokens
