"""Continuous batching: a thread that owns the model and computes one token per pass for every text under way.

A text has a cache of its own (`lucid.generation.RaggedCache`), so it joins after its prompt is computed and leaves when it has
ended, whatever the others do. Prompts are computed in pieces between passes: a long one does not stop the others.
"""

import collections
import threading

from .. import _C
from ..autograd import no_grad
from ..generation import Cache, RaggedCache, Sampler, TextTail


class Text:
    """One text to generate. emit(piece, reason) is called from the batching thread: text as it comes, a reason at the end.

    >>> class Letters:
    ...     def decode(self, ids): return "".join(map(chr, ids))
    >>> text = lucid.serve.batching.Text([65], Letters(), 5, emit=lambda piece, reason: None)
    >>> text.cancel(); text.cancelled
    True
    """

    def __init__(self, ids, tokenizer, max_new_tokens, emit, ends=(), stop=(), logprobs=None, **sampling):
        """logprobs: keep each token's log probability, and so many likely others."""
        self.ids, self.prompt, self.limit, self.ends = list(ids), len(ids), max_new_tokens, set(ends)
        self.tail, self.emit = TextTail(tokenizer, stop), emit
        self.sampler = Sampler(prompt_length=len(ids), eos_token_id=list(ends), **sampling)
        self.cache, self.cancelled = Cache(), False
        self.logprobs, self.records = logprobs, []

    @property
    def new_tokens(self):
        return len(self.ids) - self.prompt

    def cancel(self):
        self.cancelled = True

    def choose(self, logits):
        """Take the next token from logits (1, vocabulary); True when the text has ended."""
        so_far = _C.tensor([self.ids]) if self.sampler.processors else None
        token = self.sampler(so_far, logits)[0]
        self.ids.append(token)
        if token in self.ends:
            return self._end("stop", "")
        if self.logprobs is not None:
            self._record(logits, token)
        piece = self.tail.push(token)
        if self.tail.stopped:
            return self._end("stop", piece)
        if self.new_tokens >= self.limit:
            return self._end("length", piece)
        if piece:
            self.emit(piece, None)
        return False

    def _record(self, logits, token):
        logs = logits[0].float().log_softmax(-1)
        best = logs.topk(min(self.logprobs, logs.numel())) if self.logprobs else None
        others = list(zip(best.indices.tolist(), best.values.tolist())) if best is not None else []
        self.records.append((token, float(logs[token]), others))

    def taken(self):
        """The (token, log probability, [(other token, its)]) since the last call."""
        records, self.records = self.records, []
        return records

    def _end(self, reason, piece):
        self.emit(piece + self.tail.flush(), reason)
        return True


class Batcher:
    """The thread with the model. `submit` takes a Text, `call` any function that uses the model.

    >>> lucid.serve.batching.Batcher(None).close()
    """

    def __init__(self, model, max_batch=16, max_queue=512, prompt_piece=256):
        self.model, self.max_batch, self.max_queue, self.piece = model, max_batch, max_queue, prompt_piece
        self.waiting, self.calls, self.active = collections.deque(), collections.deque(), []
        self.wake, self.closed = threading.Condition(), False
        self.passes = self.tokens = 0
        rotary = getattr(getattr(model, "base_model", None), "rotary", None)
        self.alone = rotary is not None and rotary.varies  # angles are of the longest text in a pass: each has its own
        self.thread = threading.Thread(target=self._run, name="lucid.serve", daemon=True)
        self.thread.start()

    def submit(self, *texts):
        """Queue texts; False if there is no room for them."""
        with self.wake:
            if self.closed or len(self.waiting) + len(texts) > self.max_queue:
                return False
            self.waiting.extend(texts)
            self.wake.notify()
        return True

    def call(self, function, done):
        """Run function() between passes; done(result, error) is called from the thread. False if there is no room."""
        with self.wake:
            if self.closed or len(self.calls) >= self.max_queue:
                return False
            self.calls.append((function, done))
            self.wake.notify()
        return True

    def close(self):
        """End the thread; texts under way end with the reason "cancelled"."""
        with self.wake:
            self.closed = True
            self.wake.notify()
        self.thread.join()

    def _run(self):
        with no_grad():
            while True:
                with self.wake:
                    while not (self.closed or self.waiting or self.calls or self.active):
                        self.wake.wait()
                    if self.closed:
                        break
                    while self.waiting and len(self.active) < self.max_batch:
                        self.active.append(self.waiting.popleft())
                    calls = [self.calls.popleft()] if self.calls else []
                for function, done in calls:
                    self._call(function, done)
                self.active = [text for text in self.active if not text.cancelled]
                self._step()
        for text in [*self.active, *self.waiting]:
            text.emit("", "cancelled")
        for _, done in self.calls:
            done(None, RuntimeError("the server stops"))

    @staticmethod
    def _call(function, done):
        try:
            result = function()
        except Exception as error:  # noqa: BLE001 (the thread goes on; the caller gets it)
            done(None, error)
        else:
            done(result, None)

    def _step(self):
        """A piece of the first prompt that is not computed yet, then a token for all others."""
        prompts = [t for t in self.active if t.cache.length < t.prompt and t.new_tokens == 0]
        ready = [t for t in self.active if t not in prompts]
        try:
            ended = self._prompt(prompts[0]) if prompts else []
            ended += self._tokens(ready) if ready else []
        except Exception as error:  # noqa: BLE001 (a failed pass ends its texts, not the server)
            for text in [*prompts[:1], *ready]:
                text.emit("", f"error: {error}")
            ended = [*prompts[:1], *ready]
        if ended:
            self.active = [t for t in self.active if t not in ended]

    def _prompt(self, text):
        begin = text.cache.length
        ids = text.ids[begin : min(begin + self.piece, text.prompt)]
        logits = self.model(_C.tensor([ids]), past_key_values=text.cache, logits_to_keep=1).logits[:, -1]
        self.passes += 1
        if text.cache.length < text.prompt:
            return []
        self.tokens += 1
        return [text] if text.choose(logits) else []

    def _tokens(self, texts):
        if self.alone and len(texts) > 1:
            return [text for each in texts for text in self._tokens([each])]
        last = _C.tensor([[t.ids[-1]] for t in texts])
        logits = self.model(last, past_key_values=RaggedCache([t.cache for t in texts])).logits[:, -1]
        self.passes, self.tokens = self.passes + 1, self.tokens + len(texts)
        return [text for i, text in enumerate(texts) if text.choose(logits[i : i + 1])]
