"""Beam search: the likeliest texts, found by going on with several at once.

Every text has num_beams rows. A step ranks the continuations of all its rows by the sum of their tokens' log
probabilities; those that end become results if they are among the first num_beams, the best others are the next rows, with
the caches of their parents. Results compete by sum / length ** length_penalty. Texts do not look at each other: each gets what
it would get alone. Rules and their order are transformers'.
"""

from .. import _C
from ..autograd import no_grad
from .loop import GenerateOutput, Generation

_LOW = -1e9


class _Text:
    """The beams of one text: sums of the rows under way, results so far (score, tokens, reason), whether it is over."""

    def __init__(self, beams, early_stopping, length_penalty, limit):
        self.beams, self.early, self.penalty, self.limit = beams, early_stopping, length_penalty, limit
        self.sums, self.rows = [0.0] + [_LOW] * (beams - 1), [[] for _ in range(beams)]
        self.results, self.over = [], False

    def take(self, candidates, reasons):
        """The next rows from continuations (sum, row, token), best first; those that have a reason end."""
        length = len(self.rows[0]) + 1
        ended = [
            (total / length**self.penalty, [*self.rows[row], token], reason)
            for (total, row, token), reason in zip(candidates[: self.beams], reasons)
            if reason
        ]
        if not (self.early is True and len(self.results) == self.beams):
            self.results = sorted([*self.results, *ended], key=lambda result: -result[0])[: self.beams]
        going = [(t + (_LOW if reason else 0.0), row, token) for (t, row, token), reason in zip(candidates, reasons)]
        going = sorted(going, key=lambda each: -each[0])[: self.beams]
        self.rows = [[*self.rows[row], token] for _, row, token in going]
        self.sums = [total for total, _, _ in going]
        best = self.limit if self.early == "never" and self.penalty > 0 else length
        full = len(self.results) == self.beams
        hopeless = full and self.sums[0] / best**self.penalty <= self.results[-1][0]
        self.over = all(reasons) or hopeless or (full and self.early is True)
        return [row for _, row, _ in going], [token for _, _, token in going]


def beam_search(
    model,
    input_ids,
    attention_mask=None,
    *,
    num_beams,
    num_return_sequences=1,
    length_penalty=1.0,
    early_stopping=False,
    return_dict_in_generate=False,
    **options,
):
    """generate with num_beams > 1.

    >>> from lucid.generation.beams import beam_search
    >>> config = lucid.models.GPT2Config(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> model = lucid.models.GPT2LMHeadModel(config).eval()
    >>> tuple(beam_search(model, [[1, 2]], num_beams=3, num_return_sequences=2, max_new_tokens=4, eos_token_id=None).shape)
    (2, 6)
    """
    if not isinstance(num_beams, int) or num_beams < 1:
        raise ValueError(f"num_beams must be a positive int, got {num_beams!r}")
    if num_return_sequences > num_beams:
        raise ValueError(f"num_return_sequences={num_return_sequences} of {num_beams} beams")
    if early_stopping not in (True, False, "never"):
        raise ValueError(f"early_stopping is True, False or 'never', not {early_stopping!r}")
    for name in ("callback", "streamer", "prefix_cache"):
        if options.pop(name, None) is not None:
            raise ValueError(f"{name} takes num_beams=1: beams change their texts as they go")
    options["cuda_graph"] = False  # rows change places between steps
    run = Generation(model, input_ids, attention_mask, num_return_sequences=num_beams, num_beams=num_beams, **options)
    texts = [_Text(num_beams, early_stopping, length_penalty, run.limit) for _ in range(len(run.new) // num_beams)]
    keep = max(2, 1 + len(run.ends)) * num_beams
    with no_grad():
        while not all(text.over for text in texts):
            totals, places = _continuations(run, texts, keep)
            _advance(run, texts, totals, places)
    chosen = [result for text in texts for result in text.results[:num_return_sequences]]
    longest = max(len(tokens) for _, tokens, _ in chosen)
    new = _C.tensor([[*tokens, *[run.pad] * (longest - len(tokens))] for _, tokens, _ in chosen], device=run.device)
    prompts = run.prompts[::num_beams].repeat_interleave(num_return_sequences, 0)
    sequences = _C.cat([prompts, new], 1)
    if not return_dict_in_generate:
        return sequences
    return GenerateOutput(
        sequences=sequences,
        scores=run.scores,
        logits=run.raw,
        finish_reasons=[reason for _, _, reason in chosen],
        statistics=run.statistics,
        past_key_values=run.cache,
        sequences_scores=_C.tensor([score for score, _, _ in chosen]),
    )


def _continuations(run, texts, keep):
    """Per text: sums and places (row * vocabulary + token) of the best continuations, or of drawn ones."""
    logs = run.next_scores(lambda logits: logits.log_softmax(-1))
    sums = _C.tensor([text.sums for text in texts], device=logs.device)
    whole = (logs.view(len(texts), -1, logs.shape[-1]) + sums.unsqueeze(-1)).flatten(1)
    keep = min(keep, whole.shape[1])
    if not run.sampler.do_sample:
        totals, places = whole.topk(keep)
    else:
        places = run.sampler.draw(whole.softmax(-1), keep, whole.shape[0])
        totals = whole.gather(1, places)
    return totals.tolist(), places.tolist()


def _advance(run, texts, totals, places):
    beams, size = texts[0].beams, run.sampler.scores.shape[-1]
    parents, tokens = [], []
    for i, text in enumerate(texts):
        if text.over:  # its rows go on beside the others, and count no more
            parents += range(i * beams, (i + 1) * beams)
            tokens += [run.pad] * beams
            continue
        candidates = [(total, place // size, place % size) for total, place in zip(totals[i], places[i])]
        new = [[*text.rows[row], token] for _, row, token in candidates]
        reasons = run.reasons_for(new, [i * beams + row for _, row, _ in candidates])
        rows, chosen = text.take(candidates, reasons)
        parents += [i * beams + row for row in rows]
        tokens += chosen
    run.follow(parents, tokens)
