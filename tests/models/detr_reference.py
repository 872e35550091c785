"""DETR as transformers has it, with the weights that its keys have in facebookresearch/detr."""

import re

import torch
import transformers as T
import vision_cases as cases

_WORDS = (
    ("out_proj", "o_proj"),
    ("multihead_attn", "encoder_attn"),
    ("linear", "mlp.fc"),
    ("class_embed", "class_labels_classifier"),
    ("bbox_embed", "bbox_predictor"),
    ("query_embed", "model.query_position_embeddings"),
    ("input_proj", "model.input_projection"),
    ("transformer.", "model."),
    ("decoder.norm.", "decoder.layernorm."),
)
_NORMS = {
    "encoder": ("self_attn_layer_norm", "final_layer_norm"),
    "decoder": ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
}


def theirs(key):
    """The name in transformers of a key of facebookresearch/detr."""
    if key.startswith("backbone"):
        key, kinds = key.removeprefix("backbone.0.body."), {"conv": "convolution", "bn": "normalization"}
        if found := re.match(r"(conv|bn)1\.(.*)", key):
            return f"model.backbone.model.embedder.embedder.{kinds[found[1]]}.{found[2]}"
        stage, layer, rest = re.match(r"layer(\d)\.(\d+)\.(.*)", key).groups()
        start = f"model.backbone.model.encoder.stages.{int(stage) - 1}.layers.{layer}"
        if found := re.match(r"downsample\.(\d)\.(.*)", rest):
            return f"{start}.shortcut.{list(kinds.values())[int(found[1])]}.{found[2]}"
        kind, number, name = re.match(r"(conv|bn)(\d)\.(.*)", rest).groups()
        return f"{start}.layer.{int(number) - 1}.{kinds[kind]}.{name}"
    for old, new in _WORDS:
        key = key.replace(old, new)
    for part, names in _NORMS.items():
        for number, name in enumerate(names, 1):
            if f"{part}.layers" in key:
                key = key.replace(f".norm{number}.", f".{name}.")
    return key


def build(shapes):
    """The model, filled by the keys and shapes of ours."""
    fields = {key: cases.DETR[key] for key in ("d_model", "num_queries")}
    for part in ("encoder", "decoder"):
        fields |= {f"{part}_layers": 2, f"{part}_attention_heads": 2, f"{part}_ffn_dim": 24}
    trunk = T.ResNetConfig(depths=[1, 1, 1, 1], hidden_sizes=[256, 512, 1024, 2048], out_features=["stage4"])
    names = {i: str(i) for i in range(cases.DETR["num_classes"])}
    config = T.DetrConfig(use_timm_backbone=False, backbone=None, backbone_config=trunk, id2label=names, **fields)
    config._attn_implementation = "eager"
    model, state = T.DetrForObjectDetection(config), {}
    for key, shape in shapes.items():
        value = cases.value_of(torch, key, torch.empty(shape))
        if "in_proj_" in key:
            for name, part in zip("qkv", value.chunk(3)):
                state[theirs(key).replace("in_proj_", f"{name}_proj.")] = part
        else:
            state[theirs(key)] = value
    assert set(state) == set(model.state_dict())
    model.load_state_dict(state)
    return model.eval()


def numbers():
    from lucid import models  # the list of keys alone

    ours = models.DETRForObjectDetection(models.DETRConfig(**cases.DETR))
    model = build({key: tuple(value.shape) for key, value in ours.state_dict().items()})
    pictures, mask, things = cases.detr_inputs(torch)
    pictures = pictures.float()
    labels = [{"class_labels": t["labels"], "boxes": t["boxes"].float()} for t in things]
    padded = model(pictures, pixel_mask=mask)
    out = model(pictures, labels=labels)
    out.loss.backward()
    grads = [p.grad for name, p in model.named_parameters() if p.grad is not None and "backbone" not in name]
    return {
        "keys": cases.digest(ours),
        "logits": [float(f"{v:.7g}") for v in out.logits.flatten().tolist()],
        "padded": [float(f"{v:.7g}") for v in padded.pred_boxes.flatten().tolist()],
        "loss": out.loss.item(),
        "norm": sum(float((g**2).sum()) for g in grads) ** 0.5,
    }
