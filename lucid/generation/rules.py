"""Processors that forbid or favour tokens outright, and the warper of typical tokens; see processors.py.

Scores of a token that cannot come are -inf.
"""

from .. import _C

_NEVER = float("-inf")


def _forbid(scores, tokens):
    scores = scores.clone()
    scores[:, _C.tensor(sorted(set(tokens)), device=scores.device)] = _NEVER
    return scores


def _sequences(name, value):
    rows = [list(row) for row in value]
    if not rows or not all(row and all(isinstance(i, int) and i >= 0 for i in row) for row in rows):
        raise ValueError(f"{name} is a list of lists of token ids, none empty, got {value!r}")
    return rows


class SequenceBiasLogitsProcessor:
    """Add a number to the score of the token that would complete a sequence: {(token, ...): number}.

    >>> process = lucid.generation.SequenceBiasLogitsProcessor({(2,): 1.0, (0, 1): -5.0})
    >>> process(lucid.tensor([[0], [1]]), lucid.zeros(2, 3))
    tensor([[ 0., -5.,  1.],
            [ 0.,  0.,  1.]])
    """

    def __init__(self, sequence_bias):
        pairs = sequence_bias.items() if isinstance(sequence_bias, dict) else sequence_bias
        pairs = [(tuple(ids), float(value)) for ids, value in pairs]
        _sequences("sequence_bias", [ids for ids, _ in pairs])
        self.everywhere = {ids[0]: value for ids, value in pairs if len(ids) == 1}
        self.behind = [(list(ids[:-1]), ids[-1], value) for ids, value in pairs if len(ids) > 1]

    def __call__(self, input_ids, scores):
        bias = _C.zeros_like(scores)
        if self.everywhere:
            places = _C.tensor(list(self.everywhere), device=scores.device)
            bias[:, places] = _C.tensor(list(self.everywhere.values()), dtype=scores.dtype, device=scores.device)
        if self.behind:
            for row, ids in enumerate(input_ids.tolist()):
                for start, token, value in self.behind:
                    if ids[-len(start) :] == start:
                        bias[row, token] += value
        return scores + bias


class NoBadWordsLogitsProcessor(SequenceBiasLogitsProcessor):
    """Sequences of tokens that never come. Those that are an end alone are passed over.

    >>> lucid.generation.NoBadWordsLogitsProcessor([[2], [0, 1]])(lucid.tensor([[0]]), lucid.zeros(1, 3))
    tensor([[0., -inf, -inf]])
    """

    def __init__(self, bad_words_ids, eos_token_id=()):
        rows = _sequences("bad_words_ids", bad_words_ids)
        ends = [] if eos_token_id is None else [eos_token_id] if isinstance(eos_token_id, int) else eos_token_id
        super().__init__({tuple(row): _NEVER for row in rows if row not in [[end] for end in ends]}.items())

    def __call__(self, input_ids, scores):
        return super().__call__(input_ids, scores) if self.everywhere or self.behind else scores


class SuppressTokensLogitsProcessor:
    """Tokens that never come; begin: only at this length of the text.

    >>> lucid.generation.SuppressTokensLogitsProcessor([1])(lucid.tensor([[0]]), lucid.zeros(1, 2))
    tensor([[0., -inf]])
    """

    def __init__(self, suppress_tokens, begin=None):
        self.tokens, self.begin = list(suppress_tokens), begin

    def __call__(self, input_ids, scores):
        if not self.tokens or self.begin not in (None, input_ids.shape[1]):
            return scores
        return _forbid(scores, self.tokens)


class MinLengthLogitsProcessor:
    """No end before the text has so many tokens, the prompt included.

    >>> lucid.generation.MinLengthLogitsProcessor(3, [1])(lucid.tensor([[0, 0]]), lucid.zeros(1, 2))
    tensor([[0., -inf]])
    """

    def __init__(self, min_length, eos_token_id):
        self.until, self.ends = min_length, [eos_token_id] if isinstance(eos_token_id, int) else list(eos_token_id)

    def __call__(self, input_ids, scores):
        return _forbid(scores, self.ends) if self.ends and input_ids.shape[1] < self.until else scores


class ForcedEOSTokenLogitsProcessor:
    """The last token that max_length has room for is an end.

    >>> lucid.generation.ForcedEOSTokenLogitsProcessor(3, 1)(lucid.tensor([[0, 0]]), lucid.ones(1, 2))
    tensor([[-inf, 0.]])
    """

    def __init__(self, max_length, eos_token_id):
        self.last, self.ends = max_length - 1, [eos_token_id] if isinstance(eos_token_id, int) else list(eos_token_id)

    def __call__(self, input_ids, scores):
        if input_ids.shape[1] != self.last:
            return scores
        scores = _C.full_like(scores, _NEVER)
        scores[:, _C.tensor(self.ends, device=scores.device)] = 0.0
        return scores


class PrefixConstrainedLogitsProcessor:
    """Only tokens that a function allows: allowed(number of the text, its ids so far) is a list of them.

    >>> lucid.generation.PrefixConstrainedLogitsProcessor(lambda text, ids: [1])(lucid.tensor([[0]]), lucid.zeros(1, 2))
    tensor([[-inf, 0.]])
    """

    def __init__(self, prefix_allowed_tokens_fn, num_beams=1):
        self.allowed, self.beams = prefix_allowed_tokens_fn, num_beams

    def __call__(self, input_ids, scores):
        kept = _C.full_like(scores, _NEVER)
        for row, ids in enumerate(input_ids):
            tokens = self.allowed(row // self.beams, ids)
            tokens = tokens.tolist() if isinstance(tokens, _C.Tensor) else list(tokens)
            if not tokens:
                raise ValueError(f"prefix_allowed_tokens_fn allows no token at all after {ids.tolist()}")
            kept[row, _C.tensor(tokens, device=scores.device)] = 0.0
        return scores + kept


class TypicalLogitsWarper:
    """Keep the tokens whose surprise is nearest to the expected one, until their probabilities sum to mass.

    Meister et al., 2022.

    >>> lucid.generation.TypicalLogitsWarper(0.2)(None, lucid.tensor([[0.5, 0.3, 0.2]]).log()).exp()
    tensor([[0.0000, 0.3000, 0.0000]])
    """

    def __init__(self, mass=0.9):
        if not 0 < mass < 1:
            raise ValueError(f"typical_p must be between 0 and 1, got {mass}")
        self.mass = mass

    def __call__(self, input_ids, scores):
        logs = scores.log_softmax(-1)
        expected = -(logs * logs.exp()).nansum(-1, keepdim=True)
        far, places = (-logs - expected).abs().sort(-1)
        before = scores.gather(-1, places).softmax(-1).cumsum(-1) < self.mass
        last = before.sum(1, keepdim=True).clamp(max=scores.shape[-1] - 1)
        gone = far > far.gather(1, last)
        return scores.masked_fill(_C.zeros_like(gone).scatter(-1, places, gone), _NEVER)
