"""DINOv2 (Oquab et al., 2023): a vision transformer whose features serve many tasks. The keys are transformers 5's; files
with the earlier names, as published, are understood.
"""

import dataclasses

from .... import _C, nn
from ....nn import functional as F
from ...base import ModelConfig, PretrainedModel
from ...outputs import BaseModelOutputWithPooling, ImageClassificationOutput
from ...registry import family
from ...text.projected import ProjectedAttention
from ..blocks import MLP, DropPath, drop_rates, start_narrow


@dataclasses.dataclass(frozen=True)
class Dinov2Config(ModelConfig):
    """The settings of DINOv2; defaults are those of dinov2-base at 224 pixels (published for 518).

    >>> lucid.models.Dinov2Config(hidden_size=384, num_attention_heads=6).patch_size
    14
    """

    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    mlp_ratio: int = 4
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    drop_path_rate: float = 0.0
    image_size: int = 224
    patch_size: int = 14
    num_channels: int = 3
    layer_norm_eps: float = 1e-6
    layerscale_value: float = 1.0
    qkv_bias: bool = True
    use_swiglu_ffn: bool = False
    use_mask_token: bool = True
    num_labels: int = 1000

    model_type = "dinov2"
    also = {"num_classes": "num_labels", "in_channels": "num_channels"}
    only = {"hidden_act": "gelu"}


class _Scale(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.lambda1 = nn.Parameter(_C.full((config.hidden_size,), config.layerscale_value))

    def forward(self, x):
        return x * self.lambda1


class _Gated(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        inner = (int(inner * 2 / 3) + 7) // 8 * 8
        self.gate_proj, self.up_proj = nn.Linear(width, inner), nn.Linear(width, inner)
        self.down_proj = nn.Linear(inner, width)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class _Named(PretrainedModel):  # files as published are understood
    config_class = Dinov2Config
    base_model_prefix = "dinov2"
    renamed_keys = (
        (r"\.attention\.attention\.(q|k|v)(uery|ey|alue)\.", r".attention.\1_proj."),
        (r"\.attention\.output\.dense\.", ".attention.o_proj."),
        (r"\.mlp\.weights_out\.", ".mlp.down_proj."),
    )

    def load_weights(self, weights, source="the weights"):
        split = {}
        for key, value in weights.items():
            if ".mlp.weights_in." in key:  # gate and input in one matrix
                for name, part in zip(("gate_proj", "up_proj"), value.chunk(2, 0)):
                    split[key.replace("weights_in", name)] = part
            else:
                split[key] = value
        return super().load_weights(split, source)


class _Layer(nn.Module):
    def __init__(self, config, rate):
        super().__init__()
        width, bias = config.hidden_size, config.qkv_bias
        self.norm1 = nn.LayerNorm(width, eps=config.layer_norm_eps)
        names, biases = ("q_proj", "k_proj", "v_proj", "o_proj"), (bias, bias, bias, True)
        drop = config.attention_probs_dropout_prob
        self.attention = ProjectedAttention(width, config.num_attention_heads, names, biases, dropout=drop)
        self.layer_scale1, self.drop_path = _Scale(config), DropPath(rate)
        self.norm2 = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.mlp = (_Gated if config.use_swiglu_ffn else MLP)(width, int(width * config.mlp_ratio))
        self.layer_scale2, self.dropout = _Scale(config), nn.Dropout(config.hidden_dropout_prob)

    def forward(self, x):
        x = x + self.drop_path(self.layer_scale1(self.dropout(self.attention(self.norm1(x)))))
        return x + self.drop_path(self.layer_scale2(self.mlp(self.norm2(x))))


class _Embeddings(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, patch = config.hidden_size, config.patch_size
        self.cls_token = nn.Parameter(_C.empty(1, 1, width).normal_(0.0, 0.02))
        if config.use_mask_token:
            self.mask_token = nn.Parameter(_C.zeros(1, width))
        self.side, self.patch = config.image_size // patch, patch
        self.position_embeddings = nn.Parameter(_C.empty(1, self.side**2 + 1, width).normal_(0.0, 0.02))
        self.patch_embeddings = nn.Module()
        self.patch_embeddings.projection = nn.Conv2d(config.num_channels, width, patch, patch)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def positions(self, height, width):
        """The learned positions, drawn to the number of patches of these images."""
        if (height, width) == (self.side, self.side):
            return self.position_embeddings
        first, rest = self.position_embeddings[:, :1], self.position_embeddings[:, 1:]
        rest = rest.transpose(1, 2).unflatten(2, (self.side, self.side))
        rest = F.interpolate(rest.to(_C.float32), (height, width), mode="bicubic", align_corners=False).to(first.dtype)
        return _C.cat([first, rest.flatten(2).transpose(1, 2)], 1)

    def forward(self, pixel_values, masked=None):
        x = self.patch_embeddings.projection(pixel_values)
        height, width = x.shape[2:]
        x = x.flatten(2).transpose(1, 2)
        if masked is not None:
            x = _C.where(masked.unsqueeze(-1), self.mask_token.to(x.dtype).unsqueeze(0), x)
        x = _C.cat([self.cls_token.expand(x.shape[0], -1, -1), x], 1)
        return self.dropout(x + self.positions(height, width))


class _Encoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        (rates,) = drop_rates(config.drop_path_rate, (config.num_hidden_layers,))
        self.layer = nn.ModuleList([_Layer(config, rate) for rate in rates])


class Dinov2Model(_Named):
    """DINOv2 without a head: a vector per patch after that of the image, which is `pooler_output` too.

    >>> config = lucid.models.Dinov2Config(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, image_size=28)
    >>> tuple(lucid.models.Dinov2Model(config)(lucid.zeros(1, 3, 28, 42)).last_hidden_state.shape)
    (1, 7, 8)
    """

    ignored_keys = (r"^classifier\.",)
    stem_keys = ("embeddings.patch_embeddings.projection.weight",)

    def __init__(self, config):
        super().__init__(config)
        self.embeddings, self.encoder = _Embeddings(config), _Encoder(config)
        self.layernorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        start_narrow(self)

    def forward(self, pixel_values, bool_masked_pos=None, output_hidden_states=False):
        x = self.embeddings(pixel_values, bool_masked_pos)
        states = [x]
        for layer in self.encoder.layer:
            x = layer(x)
            states.append(x)
        x = self.layernorm(x)
        return BaseModelOutputWithPooling(
            last_hidden_state=x, pooler_output=x[:, 0], hidden_states=tuple(states) if output_hidden_states else None
        )


class Dinov2ForImageClassification(_Named):
    """DINOv2 that classifies by the vector of the image and the mean of those of its patches.

    >>> config = lucid.models.Dinov2Config(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, image_size=28,
    ...     num_labels=3)
    >>> tuple(lucid.models.Dinov2ForImageClassification(config)(lucid.zeros(1, 3, 28, 28)).logits.shape)
    (1, 3)
    """

    head_keys = ("classifier.",)

    def __init__(self, config):
        super().__init__(config)
        self.dinov2 = Dinov2Model(config)
        self.classifier = nn.Linear(2 * config.hidden_size, config.num_labels)

    def forward(self, pixel_values, labels=None):
        x = self.dinov2(pixel_values).last_hidden_state
        logits = self.classifier(_C.cat([x[:, 0], x[:, 1:].mean(1)], 1))
        return ImageClassificationOutput(loss=None if labels is None else F.cross_entropy(logits, labels), logits=logits)


def _size(width, layers, heads):
    return dict(hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, image_size=518)


globals().update(
    family(
        Dinov2Config,
        {"": (Dinov2Model, "image-features"), "_cls": (Dinov2ForImageClassification, "image-classification")},
        {
            "dinov2_small": _size(384, 12, 6),
            "dinov2_base": _size(768, 12, 12),
            "dinov2_large": _size(1024, 24, 16),
            "dinov2_giant": dict(_size(1536, 40, 24), use_swiglu_ffn=True),
        },
    )
)
