"""What models that read one sequence and write another share: attention with four projections, a memory of keys and values,
and greedy generation.
"""

from ... import _C, nn
from ...autograd import no_grad
from ...nn import functional as F
from ..base import PretrainedModel


class ProjectedAttention(nn.Module):
    """Attention with projections of queries, keys, values and results, of a sequence over itself or over another.

    names: the keys of the four layers; biases: which of them have one; scale: None for 1/sqrt(width of a head).

    >>> from lucid.models.text.projected import ProjectedAttention
    >>> layer = ProjectedAttention(8, 2)
    >>> tuple(layer(lucid.zeros(1, 3, 8), lucid.zeros(1, 5, 8)).shape)
    (1, 3, 8)
    """

    def __init__(
        self,
        width,
        heads,
        names=("q_proj", "k_proj", "v_proj", "out_proj"),
        biases=(True, True, True, True),
        inner=None,
        scale=None,
        dropout=0.0,
    ):
        super().__init__()
        inner = inner or width
        if inner % heads:
            raise ValueError(f"a width of {inner} is not a multiple of {heads} heads")
        self.heads, self.names, self.scale, self.dropout = heads, names, scale, dropout
        for name, bias, shape in zip(names, biases, ((width, inner),) * 3 + ((inner, width),)):
            setattr(self, name, nn.Linear(*shape, bias=bias))

    def forward(self, x, source=None, mask=None, causal=False, past=None, places=None, source_places=None):
        """source: what keys and values come from, if not x; past: a dict that keeps them from call to call.

        places are added to what queries come from, source_places (places, without a source) to what keys come from.
        """
        query, key, value, out = (getattr(self, name) for name in self.names)
        split = lambda t: t.view(t.shape[0], t.shape[1], self.heads, -1).transpose(1, 2)
        kept = None if past is None else past.get(self)
        if kept is not None and source is not None:
            k, v = kept
        else:
            of = x if source is None else source
            of_places = places if source is None else source_places
            k, v = split(key(of if of_places is None else of + of_places)), split(value(of))
            if kept is not None:
                k, v = _C.cat([kept[0], k], 2), _C.cat([kept[1], v], 2)
            if past is not None:
                past[self] = k, v
        causal = causal and x.shape[1] > 1
        rate = self.dropout if self.training else 0.0
        q = split(query(x if places is None else x + places))
        y = F.scaled_dot_product_attention(q, k, v, mask, rate, causal, scale=self.scale)
        return out(y.transpose(1, 2).flatten(2))


def shifted(labels, start, padding):
    """What a decoder reads while it learns to write labels: the same one place later; -100 becomes padding.

    >>> from lucid.models.text.projected import shifted
    >>> shifted(lucid.tensor([[5, 6, -100]]), 0, 1)
    tensor([[0, 5, 6]])
    """
    first = _C.full((labels.shape[0], 1), start, dtype=labels.dtype, device=labels.device)
    ids = _C.cat([first, labels[:, :-1]], 1)
    return ids.masked_fill(ids == -100, padding)


class EncoderDecoder(PretrainedModel):
    """A model with `encode` and `decode`: the loss of labels, and greedy generation.

    >>> from lucid.models.text.projected import EncoderDecoder
    >>> issubclass(lucid.models.T5ForConditionalGeneration, EncoderDecoder)
    True
    """

    def generate(self, inputs, attention_mask=None, max_new_tokens=20, decoder_input_ids=None):
        """The most probable tokens one after another, until every row has the end token; rows that ended are padded."""
        config = self.config
        with no_grad():
            encoded = self.encode(inputs, attention_mask)
            ids = decoder_input_ids
            if ids is None:
                ids = _C.full((encoded.shape[0], 1), config.decoder_start_token_id, dtype=_C.int64, device=encoded.device)
            past, step, done = {}, ids, _C.zeros(ids.shape[0], dtype=_C.bool, device=ids.device)
            for _ in range(max_new_tokens):
                chosen = self.decode(step, encoded, attention_mask, past)[:, -1].argmax(-1)
                chosen = chosen.masked_fill(done, config.pad_token_id)
                ids, step = _C.cat([ids, chosen[:, None]], 1), chosen[:, None]
                done = done | (chosen == config.eos_token_id)
                if bool(done.all()):
                    break
        return ids
