"""What decoder models share: positions and sight of a pass, the loss of the next token, and generation as methods."""

from ... import _C
from ...autograd import is_grad_enabled
from ...nn import functional as F
from ...nn.modules._base import hooks as _hooks
from ..base import PretrainedModel
from ..mixins import GenerationMixin
from ..outputs import CausalLMOutput, SequenceClassifierOutput
from .attention import Sight


def next_token_loss(logits, labels, ignore_index=-100):
    """The mean cross entropy of every token given those before it; labels of -100 do not count.

    >>> from lucid.models.text.language import next_token_loss
    >>> next_token_loss(lucid.zeros(1, 3, 4), lucid.tensor([[0, 1, -100]]))
    tensor(1.3863)
    """
    logits = logits[:, :-1].to(_C.float32).reshape(-1, logits.shape[-1])
    return F.cross_entropy(logits, labels[:, 1:].reshape(-1), ignore_index=ignore_index)


def watched(module):
    """Whether somebody asked for this module's inputs or results: then it is called as it is.

    >>> from lucid.models.text.language import watched
    >>> layer = lucid.nn.Linear(2, 2)
    >>> before, handle = watched(layer), layer.register_forward_hook(print)
    >>> before, watched(layer)
    (False, True)
    """
    own = module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    return bool(own or _hooks.global_forward_hooks or _hooks.global_forward_pre_hooks)


def branch(part, residual, *inputs):
    """residual + part(*inputs). Without gradients the last layer of an unwatched part adds the residual in its own pass.

    >>> from lucid.models.text.language import branch
    >>> branch(lucid.nn.Identity(), lucid.ones(2), lucid.ones(2))
    tensor([2., 2.])
    """
    if is_grad_enabled() or watched(part):
        return residual + part(*inputs)
    return part(*inputs, residual=residual)


class Pass:
    """The frame of one forward pass of a decoder: the embedded input, positions, sight, and the cache.

    >>> from lucid.models.text.language import Pass
    >>> Pass(lucid.zeros(1, 3, 8), None, None, None, False).positions
    tensor([[0, 1, 2]])
    """

    def __init__(self, x, attention_mask, position_ids, cache, use_cache, window=None):
        if cache is None and use_cache:
            from ...generation.cache import Cache

            cache = Cache()
        batch, length = x.shape[:2]
        past = cache.length if cache is not None else 0
        self.cache, self.last = cache, past + length - 1
        ragged = cache is not None and cache.ragged
        if position_ids is None:
            position_ids = cache.positions(length) if ragged else _C.arange(past, past + length, device=x.device).unsqueeze(0)
        elif position_ids.ndim == 1:
            position_ids = position_ids.unsqueeze(0)
        self.positions = position_ids
        if ragged:
            if attention_mask is not None:
                raise ValueError("rows with caches of their own take no attention_mask")
            self.sight = self.windowed = Sight(window=None)
            if window is not None:
                self.windowed = Sight(window=window)
        else:
            self.sight = Sight.of(length, past, attention_mask, None, x.device)
            self.windowed = self.sight if window is None else Sight.of(length, past, attention_mask, window, x.device)

    def attend(self, layer, q, k, v, scale=None, dropout=0.0, windowed=False):
        from .attention import attend

        sight = self.windowed if windowed else self.sight
        if self.cache is None:
            return attend(q, k, v, sight, scale, dropout)
        return self.cache.attend(layer, q, k, v, sight, scale, dropout)


def inputs_of(embedding, input_ids, inputs_embeds):
    """The embedded input: exactly one of the two is given.

    >>> from lucid.models.text.language import inputs_of
    >>> inputs_of(lucid.nn.Embedding(4, 2), None, None)
    Traceback (most recent call last):
    ValueError: give either input_ids or inputs_embeds
    """
    if (input_ids is None) == (inputs_embeds is None):
        raise ValueError("give either input_ids or inputs_embeds")
    return embedding(input_ids) if inputs_embeds is None else inputs_embeds


class CausalLM(GenerationMixin, PretrainedModel):
    """A decoder with a head over the vocabulary: loss, logits, cache, and `generate`.

    >>> config = lucid.models.GPT2Config(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> model = lucid.models.GPT2LMHeadModel(config)
    >>> ids = lucid.tensor([[1, 2, 3]])
    >>> tuple(model(ids).logits.shape), model(ids, labels=ids).loss.ndim
    ((1, 3, 11), 0)
    >>> tuple(model.generate(ids, max_new_tokens=2).shape)
    (1, 5)
    """

    runs_in_steps = True  # a pass over one token per row takes any cache's word for positions (generation/decoder.py)
    bounded = True  # positions are rows of a table: texts are no longer than it
    generation_config = None  # what generation_config.json of the folder says, a lucid.generation.GenerationConfig

    @classmethod
    def from_pretrained(cls, folder, **options):
        from ...generation.config import GenerationConfig

        model = super().from_pretrained(folder, **options)
        model.generation_config = GenerationConfig.of(folder)
        return model

    def save_pretrained(self, folder, **options):
        super().save_pretrained(folder, **options)
        if self.generation_config is not None:
            self.generation_config.save_pretrained(folder)

    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        position_ids=None,
        past_key_values=None,
        inputs_embeds=None,
        labels=None,
        use_cache=False,
        output_hidden_states=False,
        logits_to_keep=0,
    ):
        """logits_to_keep: only for so many last tokens; 0: for all."""
        out = self.base_model(
            input_ids, attention_mask, position_ids, past_key_values, inputs_embeds, use_cache, output_hidden_states
        )
        hidden = out.last_hidden_state
        if logits_to_keep:
            hidden = hidden[:, -logits_to_keep:]
        logits = self.lm_head(hidden)
        return CausalLMOutput(
            loss=None if labels is None else next_token_loss(logits, labels),
            logits=logits,
            past_key_values=out.past_key_values,
            hidden_states=out.hidden_states,
        )

    def tied(self):
        return self.tied_keys if self.config.tie_word_embeddings else {}

    def get_input_embeddings(self):
        return self.base_model.get_input_embeddings()

    def get_output_embeddings(self):
        return self.lm_head


def classification_loss(logits, labels, num_labels):
    """Mean squared error for one label or floating labels, else cross entropy; of several labels each, binary.

    >>> from lucid.models.text.language import classification_loss
    >>> classification_loss(lucid.zeros(1, 2), lucid.tensor([0]), 2)
    tensor(0.6931)
    """
    if num_labels == 1:
        return F.mse_loss(
            logits.squeeze(-1), labels.squeeze(-1).to(logits.dtype) if labels.ndim > 1 else labels.to(logits.dtype)
        )
    if labels.is_floating_point():
        return F.binary_cross_entropy_with_logits(logits, labels)
    return F.cross_entropy(logits.reshape(-1, num_labels), labels.reshape(-1))


class DecoderClassifier(PretrainedModel):
    """A decoder whose last token of each text is classified; `score` is the head.

    >>> config = lucid.models.GPT2Config(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, num_labels=3)
    >>> tuple(lucid.models.GPT2ForSequenceClassification(config)(lucid.tensor([[1, 2, 3]])).logits.shape)
    (1, 3)
    """

    head_keys = ("score.",)
    ignored_keys = (r"^lm_head\.",)

    def forward(self, input_ids, attention_mask=None, labels=None, **options):
        out = self.base_model(input_ids, attention_mask, **options)
        scores = self.score(out.last_hidden_state)
        pad = self.config.pad_token_id
        if pad is None:
            if input_ids.shape[0] > 1:
                raise ValueError("a batch of texts needs pad_token_id in the config, to find their last tokens")
            logits = scores[:, -1]
        else:
            places = _C.arange(input_ids.shape[1], device=input_ids.device)
            last = (places * (input_ids != pad).to(places.dtype)).argmax(-1)
            logits = scores[_C.arange(scores.shape[0], device=scores.device), last]
        loss = None if labels is None else classification_loss(logits, labels, self.config.num_labels)
        return SequenceClassifierOutput(loss=loss, logits=logits, past_key_values=out.past_key_values)
