"""Whisper (Radford et al., 2022): spectrograms of speech in, text out. transformers' keys."""

import dataclasses
import math

from ... import _C, nn
from ...nn import functional as F
from ..base import ModelConfig
from ..registry import family
from .projected import EncoderDecoder, ProjectedAttention, shifted
from .t5 import Seq2SeqLMOutput


@dataclasses.dataclass(frozen=True)
class WhisperConfig(ModelConfig):
    """The settings of Whisper; defaults are those of whisper-tiny.

    >>> lucid.models.WhisperConfig(num_mel_bins=128).max_source_positions
    1500
    """

    vocab_size: int = 51865
    num_mel_bins: int = 80
    d_model: int = 384
    encoder_layers: int = 4
    decoder_layers: int = 4
    encoder_attention_heads: int = 6
    decoder_attention_heads: int = 6
    encoder_ffn_dim: int = 1536
    decoder_ffn_dim: int = 1536
    max_source_positions: int = 1500
    max_target_positions: int = 448
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    init_std: float = 0.02
    pad_token_id: int = 50256
    bos_token_id: int = 50257
    eos_token_id: int = 50256
    decoder_start_token_id: int = 50257

    model_type = "whisper"
    only = {
        "scale_embedding": False,
        "activation_function": "gelu",
        "encoder_layerdrop": 0.0,
        "decoder_layerdrop": 0.0,
        "apply_spec_augment": False,
    }


def _sinusoids(length, width):
    rates = _C.exp(-math.log(10000) / (width // 2 - 1) * _C.arange(width // 2, dtype=_C.float64))
    angles = _C.outer(_C.arange(length, dtype=_C.float64), rates)
    return _C.cat([angles.sin(), angles.cos()], 1).to(_C.get_default_dtype())


class _Layer(nn.Module):
    def __init__(self, config, heads, inner, decodes):
        super().__init__()
        width = config.d_model
        attention = lambda: ProjectedAttention(width, heads, biases=(True, False, True, True), dropout=config.attention_dropout)
        self.self_attn, self.self_attn_layer_norm = attention(), nn.LayerNorm(width)
        if decodes:
            self.encoder_attn, self.encoder_attn_layer_norm = attention(), nn.LayerNorm(width)
        self.fc1, self.fc2 = nn.Linear(width, inner), nn.Linear(inner, width)
        self.final_layer_norm, self.dropout = nn.LayerNorm(width), nn.Dropout(config.dropout)
        self.activation_dropout, self.decodes = nn.Dropout(config.activation_dropout), decodes

    def forward(self, x, source=None, past=None):
        y = self.self_attn_layer_norm(x)
        x = x + self.dropout(self.self_attn(y, causal=self.decodes, past=past))
        if source is not None:
            x = x + self.dropout(self.encoder_attn(self.encoder_attn_layer_norm(x), source, past=past))
        y = self.activation_dropout(F.gelu(self.fc1(self.final_layer_norm(x))))
        return x + self.dropout(self.fc2(y))


class _Encoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.d_model
        self.conv1 = nn.Conv1d(config.num_mel_bins, width, 3, padding=1)
        self.conv2 = nn.Conv1d(width, width, 3, 2, 1)
        self.embed_positions = nn.Embedding(config.max_source_positions, width)
        self.embed_positions.weight = nn.Parameter(_sinusoids(config.max_source_positions, width), requires_grad=False)
        shape = config.encoder_attention_heads, config.encoder_ffn_dim, False
        self.layers = nn.ModuleList([_Layer(config, *shape) for _ in range(config.encoder_layers)])
        self.layer_norm, self.dropout = nn.LayerNorm(width), nn.Dropout(config.dropout)

    def forward(self, features):
        expected = 2 * self.embed_positions.num_embeddings
        if features.shape[-1] != expected:
            raise ValueError(f"a spectrogram of {features.shape[-1]} frames; the model takes {expected}")
        x = F.gelu(self.conv2(F.gelu(self.conv1(features)))).transpose(1, 2)
        x = self.dropout(x + self.embed_positions.weight)
        for layer in self.layers:
            x = layer(x)
        return self.layer_norm(x)


class _Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.d_model, padding_idx=config.pad_token_id)
        self.embed_positions = nn.Embedding(config.max_target_positions, config.d_model)
        shape = config.decoder_attention_heads, config.decoder_ffn_dim, True
        self.layers = nn.ModuleList([_Layer(config, *shape) for _ in range(config.decoder_layers)])
        self.layer_norm, self.dropout = nn.LayerNorm(config.d_model), nn.Dropout(config.dropout)

    def forward(self, ids, source, past=None):
        first = past[self.layers[0].self_attn][0].shape[2] if past else 0
        last = first + ids.shape[1]
        if last > self.embed_positions.num_embeddings:
            raise ValueError(f"{last} tokens; the model has positions for {self.embed_positions.num_embeddings}")
        x = self.dropout(self.embed_tokens(ids) + self.embed_positions.weight[first:last])
        for layer in self.layers:
            x = layer(x, source, past)
        return self.layer_norm(x)


class _Whisper(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.encoder, self.decoder = _Encoder(config), _Decoder(config)


class WhisperForConditionalGeneration(EncoderDecoder):
    """Whisper: spectrograms (batch, mel bins, frames) in, `.logits` of tokens out; `.loss` with labels, `.generate`.

    >>> config = lucid.models.WhisperConfig(vocab_size=20, num_mel_bins=4, d_model=8, encoder_layers=1, decoder_layers=1,
    ...     encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16,
    ...     max_source_positions=5, max_target_positions=6, pad_token_id=0, decoder_start_token_id=1, eos_token_id=2)
    >>> model = lucid.models.WhisperForConditionalGeneration(config).eval()
    >>> tuple(model(lucid.zeros(1, 4, 10), decoder_input_ids=lucid.tensor([[1, 3]])).logits.shape)
    (1, 2, 20)
    """

    config_class = WhisperConfig
    tied_keys = {"proj_out.weight": "model.decoder.embed_tokens.weight"}

    def __init__(self, config):
        super().__init__(config)
        self.model = _Whisper(config)
        self.proj_out = nn.Linear(config.d_model, config.vocab_size, bias=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Conv1d)) or module is self.model.decoder.embed_tokens:
                nn.init.normal_(module.weight, std=config.init_std)
        self.tie_weights()

    def encode(self, features, padding=None):
        if padding is not None:
            raise ValueError("Whisper takes no attention_mask: spectrograms are padded with silence")
        return self.model.encoder(features)

    def decode(self, ids, encoded, padding=None, past=None):
        return self.proj_out(self.model.decoder(ids, encoded, past))

    def forward(self, input_features, decoder_input_ids=None, labels=None):
        if decoder_input_ids is None:
            if labels is None:
                raise ValueError("give decoder_input_ids or labels")
            decoder_input_ids = shifted(labels, self.config.decoder_start_token_id, self.config.pad_token_id)
        encoded = self.encode(input_features)
        logits = self.decode(decoder_input_ids, encoded)
        loss = None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return Seq2SeqLMOutput(loss=loss, logits=logits, encoder_last_hidden_state=encoded)


def _size(width, layers, heads, **others):
    parts = ("encoder", "decoder")
    sizes = {f"{p}_layers": layers for p in parts} | {f"{p}_attention_heads": heads for p in parts}
    return {"d_model": width, **sizes, **{f"{p}_ffn_dim": 4 * width for p in parts}, **others}


globals().update(
    family(
        WhisperConfig,
        {"": (WhisperForConditionalGeneration, "speech-seq2seq")},
        {
            "whisper_tiny": {},
            "whisper_base": _size(512, 6, 8),
            "whisper_small": _size(768, 12, 12),
            "whisper_medium": _size(1024, 24, 16),
            "whisper_large": _size(1280, 32, 20),
            "whisper_large_v3": _size(1280, 32, 20, num_mel_bins=128, vocab_size=51866),
        },
    )
)
