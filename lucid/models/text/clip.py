"""CLIP (Radford et al., 2021): images and texts as vectors of one space. transformers' keys; the config is flat, files of
the Hub with a config of either part inside are understood.
"""

import dataclasses

from ... import _C, nn
from ...nn import functional as F
from ..base import ModelConfig, PretrainedModel
from ..outputs import BaseModelOutputWithPooling, ModelOutput
from ..registry import family
from ..vision.blocks import MLP
from .projected import ProjectedAttention


class CLIPOutput(ModelOutput):
    """What CLIP returns.

    >>> lucid.models.CLIPOutput(logits_per_image=1).logits_per_image
    1
    """

    fields = ("loss", "logits_per_image", "logits_per_text", "text_embeds", "image_embeds")


@dataclasses.dataclass(frozen=True)
class CLIPConfig(ModelConfig):
    """The settings of CLIP; defaults are those of clip-vit-base-patch32.

    eos_token_id: the token whose vector stands for a text; 2 or None: the one with the highest number, as in the first files.

    >>> lucid.models.CLIPConfig.from_dict({"vision_config": {"hidden_size": 1024}}).vision_width
    1024
    """

    image_size: int = 224
    patch_size: int = 32
    vision_layers: int = 12
    vision_width: int = 768
    vision_heads: int = 12
    vision_intermediate_size: int | None = None
    context_length: int = 77
    vocab_size: int = 49408
    text_width: int = 512
    text_heads: int = 8
    text_layers: int = 12
    text_intermediate_size: int | None = None
    embed_dim: int = 512
    hidden_act: str = "quick_gelu"
    attention_dropout: float = 0.0
    layer_norm_eps: float = 1e-5
    logit_scale_init_value: float = 2.6592
    eos_token_id: int | None = None

    model_type = "clip"
    aliases = {"projection_dim": "embed_dim"}

    def __post_init__(self):
        if self.hidden_act not in _ACTS:
            raise ValueError(f"hidden_act is one of {sorted(_ACTS)}, not {self.hidden_act!r}")

    @classmethod
    def understood(cls, values):
        values = super().understood(values)
        for part, names in _PARTS.items():
            inner = values.pop(part, None) or {}
            for theirs, ours in names.items():
                if theirs in inner:
                    values.setdefault(ours, inner[theirs])
        return values

    def to_hub(self):
        parts = {}
        for part, names in _PARTS.items():
            parts[part] = {theirs: getattr(self, ours) for theirs, ours in names.items() if getattr(self, ours) is not None}
            parts[part].setdefault("intermediate_size", 4 * parts[part]["hidden_size"])
            parts[part]["model_type"] = "clip_" + part.replace("_config", "_model")
        parts["text_config"].setdefault("eos_token_id", 2)
        scale = self.logit_scale_init_value
        return {"model_type": "clip", "projection_dim": self.embed_dim, "logit_scale_init_value": scale, **parts}


_SHARED = {"hidden_act": "hidden_act", "attention_dropout": "attention_dropout", "layer_norm_eps": "layer_norm_eps"}
_PARTS = {
    "vision_config": {
        "image_size": "image_size",
        "patch_size": "patch_size",
        "num_hidden_layers": "vision_layers",
        "hidden_size": "vision_width",
        "num_attention_heads": "vision_heads",
        "intermediate_size": "vision_intermediate_size",
        **_SHARED,
    },
    "text_config": {
        "max_position_embeddings": "context_length",
        "vocab_size": "vocab_size",
        "hidden_size": "text_width",
        "num_attention_heads": "text_heads",
        "num_hidden_layers": "text_layers",
        "intermediate_size": "text_intermediate_size",
        "eos_token_id": "eos_token_id",
        **_SHARED,
    },
}
_ACTS = {"quick_gelu": lambda x: x * _C.sigmoid(1.702 * x), "gelu": F.gelu}


class _Layer(nn.Module):
    def __init__(self, config, width, heads, inner):
        super().__init__()
        self.self_attn = ProjectedAttention(width, heads, dropout=config.attention_dropout)
        self.layer_norm1 = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.mlp = MLP(width, inner or 4 * width, _ACTS[config.hidden_act])
        self.layer_norm2 = nn.LayerNorm(width, eps=config.layer_norm_eps)

    def forward(self, x, mask, causal):
        x = x + self.self_attn(self.layer_norm1(x), mask=mask, causal=causal)
        return x + self.mlp(self.layer_norm2(x))


class _Encoder(nn.Module):
    def __init__(self, config, width, heads, layers, inner):
        super().__init__()
        self.layers = nn.ModuleList([_Layer(config, width, heads, inner) for _ in range(layers)])

    def forward(self, x, mask=None, causal=False):
        for layer in self.layers:
            x = layer(x, mask, causal)
        return x


class _Texts(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.text_width
        self.embeddings, self.eos = nn.Module(), config.eos_token_id
        self.embeddings.token_embedding = nn.Embedding(config.vocab_size, width)
        self.embeddings.position_embedding = nn.Embedding(config.context_length, width)
        self.encoder = _Encoder(config, width, config.text_heads, config.text_layers, config.text_intermediate_size)
        self.final_layer_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)

    def forward(self, ids, attention_mask=None):
        length, positions = ids.shape[1], self.embeddings.position_embedding
        if length > positions.num_embeddings:
            raise ValueError(f"{length} tokens; the model has positions for {positions.num_embeddings}")
        x = self.embeddings.token_embedding(ids) + positions.weight[:length]
        mask = None
        if attention_mask is not None and not bool(attention_mask.all()):
            earlier = _C.ones(length, length, dtype=_C.bool, device=ids.device).tril()
            mask = earlier & (attention_mask[:, None, None, :] != 0)
        x = self.final_layer_norm(self.encoder(x, mask, mask is None))
        places = ids if self.eos in (None, 2) else (ids == self.eos).to(_C.int64)
        return x, x[_C.arange(x.shape[0], device=x.device), places.argmax(-1)]


class _Images(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, patch = config.vision_width, config.patch_size
        self.embeddings, self.side = nn.Module(), config.image_size
        self.embeddings.class_embedding = nn.Parameter(_C.empty(width).normal_(0.0, width**-0.5))
        self.embeddings.patch_embedding = nn.Conv2d(3, width, patch, patch, bias=False)
        self.embeddings.position_embedding = nn.Embedding((config.image_size // patch) ** 2 + 1, width)
        self.pre_layrnorm = nn.LayerNorm(width, eps=config.layer_norm_eps)  # so spelled in the published files
        self.encoder = _Encoder(config, width, config.vision_heads, config.vision_layers, config.vision_intermediate_size)
        self.post_layernorm = nn.LayerNorm(width, eps=config.layer_norm_eps)

    def forward(self, pixel_values):
        if pixel_values.shape[-2:] != (self.side, self.side):
            size = "x".join(str(n) for n in pixel_values.shape[-2:])
            raise ValueError(f"images of {size} pixels; the model is for {self.side}x{self.side}")
        parts = self.embeddings
        x = parts.patch_embedding(pixel_values).flatten(2).transpose(1, 2)
        x = _C.cat([parts.class_embedding.expand(x.shape[0], 1, -1), x], 1) + parts.position_embedding.weight
        x = self.encoder(self.pre_layrnorm(x))
        return x, self.post_layernorm(x[:, 0])


class CLIPModel(PretrainedModel):
    """CLIP: images and texts in, how well each image fits each text out.

    >>> config = lucid.models.CLIPConfig(image_size=16, patch_size=8, vision_layers=1, vision_width=8, vision_heads=2,
    ...     context_length=6, vocab_size=20, text_width=8, text_heads=2, text_layers=1, embed_dim=4)
    >>> out = lucid.models.CLIPModel(config)(lucid.zeros(2, 3, 16, 16), lucid.tensor([[1, 2, 19]]))
    >>> tuple(out.logits_per_image.shape), tuple(out.text_embeds.shape)
    ((2, 1), (1, 4))
    """

    config_class = CLIPConfig
    ignored_keys = (r"embeddings\.position_ids$",)

    def __init__(self, config):
        super().__init__(config)
        self.logit_scale = nn.Parameter(_C.tensor(config.logit_scale_init_value))
        self.text_model, self.vision_model = _Texts(config), _Images(config)
        self.visual_projection = nn.Linear(config.vision_width, config.embed_dim, bias=False)
        self.text_projection = nn.Linear(config.text_width, config.embed_dim, bias=False)
        for module in self.modules():
            if isinstance(module, (nn.Embedding, nn.Conv2d)):
                nn.init.normal_(module.weight, std=0.02)

    def get_image_features(self, pixel_values):
        x, first = self.vision_model(pixel_values)
        return BaseModelOutputWithPooling(last_hidden_state=x, pooler_output=self.visual_projection(first))

    def get_text_features(self, input_ids, attention_mask=None):
        x, last = self.text_model(input_ids, attention_mask)
        return BaseModelOutputWithPooling(last_hidden_state=x, pooler_output=self.text_projection(last))

    def forward(self, pixel_values, input_ids, attention_mask=None, return_loss=False):
        images = self.get_image_features(pixel_values).pooler_output
        texts = self.get_text_features(input_ids, attention_mask).pooler_output
        images, texts = images / images.norm(dim=-1, keepdim=True), texts / texts.norm(dim=-1, keepdim=True)
        scores = texts @ images.t() * self.logit_scale.exp()
        loss = None
        if return_loss:
            right = _C.arange(len(scores), device=scores.device)
            loss = (F.cross_entropy(scores, right) + F.cross_entropy(scores.t(), right)) / 2
        return CLIPOutput(
            loss=loss, logits_per_image=scores.t(), logits_per_text=scores, text_embeds=texts, image_embeds=images
        )


_LARGE = dict(vision_layers=24, vision_width=1024, vision_heads=16, text_width=768, text_heads=12, embed_dim=768)
globals().update(
    family(
        CLIPConfig,
        {"": (CLIPModel, "zero-shot-image-classification")},
        {
            "clip_vit_base_32": {},
            "clip_vit_base_16": dict(patch_size=16),
            "clip_vit_large_14": dict(_LARGE, patch_size=14),
        },
    )
)
