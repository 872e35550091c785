"""What shapes the choice of the next token. A processor is called with the tokens so far and the scores, and gives scores.

Order, as in transformers: penalties, the caller's processors, then temperature, top-k, top-p, min-p and typical for sampling.
"""

from .. import _C
from ..nn import functional as F
from .rules import (
    ForcedEOSTokenLogitsProcessor,
    MinLengthLogitsProcessor,
    NoBadWordsLogitsProcessor,
    PrefixConstrainedLogitsProcessor,
    SequenceBiasLogitsProcessor,
    SuppressTokensLogitsProcessor,
    TypicalLogitsWarper,
)

_NEVER = float("-inf")


class TemperatureLogitsWarper:
    """Divide scores: below 1 the likely becomes likelier.

    >>> lucid.generation.TemperatureLogitsWarper(0.5)(None, lucid.tensor([[1.0, 2.0]]))
    tensor([[2., 4.]])
    """

    def __init__(self, temperature):
        if not temperature > 0:
            raise ValueError(f"temperature must be positive, got {temperature}; do_sample=False takes the likeliest token")
        self.temperature = temperature

    def __call__(self, input_ids, scores):
        return scores / self.temperature


class TopKLogitsWarper:
    """Keep the k largest scores (and those equal to the last of them).

    >>> lucid.generation.TopKLogitsWarper(1)(None, lucid.tensor([[1.0, 2.0]]))
    tensor([[-inf, 2.]])
    """

    def __init__(self, top_k):
        if not isinstance(top_k, int) or top_k < 1:
            raise ValueError(f"top_k must be a positive int, got {top_k!r}")
        self.top_k = top_k

    def __call__(self, input_ids, scores):
        least = scores.topk(min(self.top_k, scores.shape[-1]), -1).values[..., -1:]
        return scores.masked_fill(scores < least, _NEVER)


class TopPLogitsWarper:
    """Keep the likeliest tokens whose probabilities sum to top_p or more.

    >>> lucid.generation.TopPLogitsWarper(0.6)(None, lucid.tensor([[0.5, 0.3, 0.2]]).log()).exp()
    tensor([[0.5000, 0.3000, 0.0000]])
    """

    def __init__(self, top_p):
        if not 0 < top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, got {top_p}")
        self.top_p = top_p

    def __call__(self, input_ids, scores):
        ordered, places = scores.sort(-1)  # from the smallest on, as transformers has it
        gone = ordered.softmax(-1).cumsum(-1) <= 1 - self.top_p
        gone[..., -1:] = False
        return scores.masked_fill(_C.zeros_like(gone).scatter(-1, places, gone), _NEVER)


class MinPLogitsWarper:
    """Keep tokens at least min_p times as likely as the likeliest.

    >>> lucid.generation.MinPLogitsWarper(0.5)(None, lucid.tensor([[0.5, 0.3, 0.2]]).log()).exp()
    tensor([[0.5000, 0.3000, 0.0000]])
    """

    def __init__(self, min_p):
        if not 0 <= min_p <= 1:
            raise ValueError(f"min_p must be between 0 and 1, got {min_p}")
        self.min_p = min_p

    def __call__(self, input_ids, scores):
        likely = scores.softmax(-1)
        return scores.masked_fill(likely < self.min_p * likely.amax(-1, keepdim=True), _NEVER)


def _seen(input_ids, scores, mask):
    """Which tokens a row has had: bools of the shape of scores. mask: 0 where input_ids are padding."""
    count = _counts(input_ids, scores, mask)
    return count > 0


def _counts(input_ids, scores, mask=None):
    ones = _C.ones_like(input_ids, dtype=scores.dtype) if mask is None else mask.to(scores.dtype)
    return _C.zeros_like(scores).scatter_add(-1, input_ids, ones)


class RepetitionPenaltyLogitsProcessor:
    """Divide the positive scores of tokens that were there by penalty, multiply negative ones.

    >>> lucid.generation.RepetitionPenaltyLogitsProcessor(2.0)(lucid.tensor([[0, 1]]), lucid.tensor([[1.0, -1.0, 1.0]]))
    tensor([[ 0.5000, -2.0000,  1.0000]])
    """

    def __init__(self, penalty):
        if not penalty > 0:
            raise ValueError(f"repetition_penalty must be positive, got {penalty}")
        self.penalty, self.mask = penalty, None

    def __call__(self, input_ids, scores):
        changed = _C.where(scores < 0, scores * self.penalty, scores / self.penalty)
        return _C.where(_seen(input_ids, scores, padded(self.mask, input_ids)), changed, scores)


class PresencePenaltyLogitsProcessor:
    """Subtract penalty once from the scores of tokens that were generated (after the first `start` tokens).

    >>> lucid.generation.PresencePenaltyLogitsProcessor(0.5)(lucid.tensor([[0, 0]]), lucid.tensor([[1.0, 1.0]]))
    tensor([[0.5000, 1.0000]])
    """

    def __init__(self, penalty, start=0):
        self.penalty, self.start = penalty, start

    def __call__(self, input_ids, scores):
        return scores - self.penalty * _seen(input_ids[:, self.start :], scores, None).to(scores.dtype)


class FrequencyPenaltyLogitsProcessor:
    """Subtract penalty from the scores of generated tokens for every time they appeared (after the first `start` tokens).

    >>> lucid.generation.FrequencyPenaltyLogitsProcessor(0.5)(lucid.tensor([[0, 0]]), lucid.tensor([[1.0, 1.0]]))
    tensor([[0., 1.]])
    """

    def __init__(self, penalty, start=0):
        self.penalty, self.start = penalty, start

    def __call__(self, input_ids, scores):
        return scores - self.penalty * _counts(input_ids[:, self.start :], scores)


class NoRepeatNGramLogitsProcessor:
    """No run of n tokens appears twice.

    >>> lucid.generation.NoRepeatNGramLogitsProcessor(2)(lucid.tensor([[0, 1, 0]]), lucid.zeros(1, 3))
    tensor([[0., -inf, 0.]])
    """

    def __init__(self, ngram_size):
        if not isinstance(ngram_size, int) or ngram_size < 1:
            raise ValueError(f"no_repeat_ngram_size must be a positive int, got {ngram_size!r}")
        self.size, self.mask = ngram_size, None

    def __call__(self, input_ids, scores):
        scores, mask = scores.clone(), padded(self.mask, input_ids)
        for row, ids in enumerate(input_ids.tolist()):
            if mask is not None:  # padding is no text
                ids = ids[len(ids) - int(mask[row].sum()) :]
            last = ids[len(ids) - self.size + 1 :] if self.size > 1 else []
            ends = range(self.size - 1, len(ids))
            banned = {ids[i] for i in ends if ids[i - self.size + 1 : i] == last}
            if banned:
                scores[row, _C.tensor(sorted(banned), device=scores.device)] = _NEVER
        return scores


class MinNewTokensLengthLogitsProcessor:
    """No end before so many new tokens.

    >>> process = lucid.generation.MinNewTokensLengthLogitsProcessor(2, 3, [1])
    >>> process(lucid.zeros(1, 2, dtype=lucid.int64), lucid.zeros(1, 3))
    tensor([[0., -inf, 0.]])
    """

    def __init__(self, prompt_length_to_skip, min_new_tokens, eos_token_id):
        self.until, self.ends = prompt_length_to_skip + min_new_tokens, list(eos_token_id)

    def __call__(self, input_ids, scores):
        if input_ids.shape[1] >= self.until or not self.ends:
            return scores
        scores = scores.clone()
        scores[:, _C.tensor(self.ends, device=scores.device)] = _NEVER
        return scores


class LogitsProcessorList(list):
    """Processors one after the other.

    >>> double = lambda ids, scores: scores * 2
    >>> lucid.generation.LogitsProcessorList([double, double])(None, lucid.ones(1, 1))
    tensor([[4.]])
    """

    def __call__(self, input_ids, scores):
        for process in self:
            scores = process(input_ids, scores)
        return scores


def padded(mask, input_ids):
    """The mask of a prompt, extended by ones for what was generated since (None: nothing is filled).

    >>> from lucid.generation.processors import padded
    >>> padded(lucid.tensor([[0, 1]]), lucid.zeros(1, 4))
    tensor([[0, 1, 1, 1]])
    """
    if mask is None:
        return None
    new = input_ids.shape[1] - mask.shape[1]
    return F.pad(mask.to(_C.int64), (0, new), value=1) if new else mask


class Sampler:
    """From scores to tokens: processors, then the likeliest token or a draw. Rows draw from generators of their own.

    prompt_length and mask: of the prompt, for the penalties. seed: an int (row i gets seed + i) or one per row; without it the
    draws follow lucid.manual_seed.

    >>> choose = lucid.generation.Sampler(repetition_penalty=2.0)
    >>> choose(lucid.tensor([[0]]), lucid.tensor([[3.0, 2.0]]))
    [1]
    """

    def __init__(
        self,
        do_sample=False,
        temperature=1.0,
        top_k=50,
        top_p=1.0,
        min_p=None,
        typical_p=1.0,
        repetition_penalty=1.0,
        presence_penalty=0.0,
        frequency_penalty=0.0,
        no_repeat_ngram_size=0,
        min_new_tokens=0,
        min_length=0,
        bad_words_ids=None,
        suppress_tokens=None,
        begin_suppress_tokens=None,
        sequence_bias=None,
        forced_eos_token_id=None,
        prefix_allowed_tokens_fn=None,
        renormalize_logits=False,
        eos_token_id=(),
        logits_processor=None,
        prompt_length=0,
        max_length=None,
        mask=None,
        seed=None,
        rows=1,
        num_beams=1,
    ):
        self.do_sample = do_sample
        self.processors = LogitsProcessorList()
        add = self.processors.append
        if sequence_bias:
            add(SequenceBiasLogitsProcessor(sequence_bias))
        if repetition_penalty is not None and repetition_penalty != 1.0:
            add(RepetitionPenaltyLogitsProcessor(repetition_penalty))
            self.processors[-1].mask = mask
        if presence_penalty:
            add(PresencePenaltyLogitsProcessor(presence_penalty, prompt_length))
        if frequency_penalty:
            add(FrequencyPenaltyLogitsProcessor(frequency_penalty, prompt_length))
        if no_repeat_ngram_size:
            add(NoRepeatNGramLogitsProcessor(no_repeat_ngram_size))
            self.processors[-1].mask = mask
        if bad_words_ids is not None:
            add(NoBadWordsLogitsProcessor(bad_words_ids, eos_token_id))
        if min_length:
            add(MinLengthLogitsProcessor(min_length, eos_token_id))
        if min_new_tokens:
            add(MinNewTokensLengthLogitsProcessor(prompt_length, min_new_tokens, eos_token_id))
        if prefix_allowed_tokens_fn is not None:
            add(PrefixConstrainedLogitsProcessor(prefix_allowed_tokens_fn, num_beams))
        if forced_eos_token_id is not None and max_length is not None:
            add(ForcedEOSTokenLogitsProcessor(max_length, forced_eos_token_id))
        if suppress_tokens:
            add(SuppressTokensLogitsProcessor(suppress_tokens))
        if begin_suppress_tokens:
            add(SuppressTokensLogitsProcessor(begin_suppress_tokens, prompt_length))
        for process in logits_processor or ():
            add(process)
        if do_sample:
            if temperature is not None and temperature != 1.0:
                add(TemperatureLogitsWarper(temperature))
            if top_k:
                add(TopKLogitsWarper(top_k))
            if top_p is not None and top_p < 1.0:
                add(TopPLogitsWarper(top_p))
            if min_p is not None:
                add(MinPLogitsWarper(min_p))
            if typical_p is not None and typical_p < 1.0:
                add(TypicalLogitsWarper(typical_p))
        if renormalize_logits:
            add(lambda input_ids, scores: scores.log_softmax(-1))
        seeds = [seed + i for i in range(rows)] if isinstance(seed, int) else seed
        if seeds is not None and len(seeds) != rows:
            raise ValueError(f"{len(seeds)} seeds for {rows} rows")
        self.generators = None if seeds is None else [_C.Generator().manual_seed(s) for s in seeds]

    @property
    def is_plain(self):
        """Whether the next token is the one with the largest logit."""
        return not (self.do_sample or self.processors)

    def __call__(self, input_ids, logits):
        """The next token of every row, as a list of ints. logits (rows, vocabulary)."""
        if not self.is_plain:  # sums of probabilities in halves are far off
            logits = logits.to(_C.float32)
        scores = self.scores = self.processors(input_ids, logits) if self.processors else logits
        if not self.do_sample:
            return scores.argmax(-1).tolist()
        return self.draw(scores.softmax(-1))[:, 0].tolist()

    def draw(self, likely, count=1, groups=None):
        """count different tokens for every row of probabilities; groups: how many texts the rows belong to (beams)."""
        if self.generators is None:
            return likely.multinomial(count)
        generators = self.generators[:: len(self.generators) // (groups or len(self.generators))]
        device, likely = likely.device, likely.cpu()  # where the generators are: a seed gives the same tokens on every device
        rows = [likely[i].multinomial(count, generator=g) for i, g in enumerate(generators)]
        return _C.stack(rows).to(device)
