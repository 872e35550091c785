"""What the published zoos compute for the cases: `python vision_reference.py vision.json` keeps small numbers for the
tests.

Needs torch, torchvision, timm, transformers, diffusers and effdet; for PVT the folder classification of whai362/PVT in
PYTHONPATH. `NAME ...` as further arguments makes these anew and keeps the rest.
"""

import json
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import detr_reference  # noqa: E402
import diffusers as D  # noqa: E402
import effdet_reference  # noqa: E402
import transformers as T  # noqa: E402
import vision_cases as cases  # noqa: E402
from zoos import timm, tv  # noqa: E402

N = dict(num_classes=7)
TINY = dict(cases.TINY, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
THREE = {0: "a", 1: "b", 2: "c"}
DDPM = dict(norm_eps=1e-6, flip_sin_to_cos=False, freq_shift=1, downsample_padding=0)  # as the published files have it
AUTOENCODER = dict(down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)
NO_DROP = dict(N, dropout=0.0)
STAGES = ["stage1", "stage2", "stage3", "stage4"]
THEIRS = {
    "resnet": lambda: tv.resnet18(**N),
    "resnet bottleneck": lambda: tv.ResNet(tv.resnet.Bottleneck, [1, 2, 1, 1], **N),
    "resnext": lambda: tv.ResNet(tv.resnet.Bottleneck, [1, 1, 1, 1], groups=32, width_per_group=4, **N),
    "wide resnet": lambda: tv.ResNet(tv.resnet.Bottleneck, [1, 1, 1, 1], width_per_group=128, **N),
    "se resnet": lambda: timm.create_model("seresnet18", layers=[1, 2, 1, 1], **N),
    "sk resnet": lambda: timm.create_model("skresnet18", layers=[1, 1, 1, 1], **N),
    "sk resnext": lambda: timm.create_model("skresnext50_32x4d", layers=[1, 1, 1, 1], **N),
    "resnest": lambda: timm.create_model("resnest14d", **N),
    "cspresnet": lambda: timm.create_model("cspresnet50", **N),
    "mobilenet v1": lambda: timm.create_model("mobilenetv1_100", **N),
    "mobilenet v4": lambda: timm.create_model("mobilenetv4_conv_small", **N),
    "mobilenet v4 medium": lambda: timm.create_model("mobilenetv4_conv_medium", **N),
    "alexnet": lambda: _narrow(tv.alexnet(**NO_DROP), 1, 4, 6),
    "vgg": lambda: _narrow(tv.vgg11_bn(**NO_DROP), 0, 3, 6),
    "densenet": lambda: tv.DenseNet(8, (2, 3, 2), 64, **N),
    "googlenet": lambda: tv.googlenet(**NO_DROP, dropout_aux=0.0, init_weights=False),
    "inception v3": lambda: tv.inception_v3(**NO_DROP, aux_logits=False, init_weights=False),
    "mobilenet v2": lambda: tv.mobilenet_v2(**NO_DROP),
    "mobilenet v3 small": lambda: tv.mobilenet_v3_small(**NO_DROP),
    "mobilenet v3 large": lambda: tv.mobilenet_v3_large(**NO_DROP),
    "efficientnet": lambda: tv.efficientnet_b0(**NO_DROP, stochastic_depth_prob=0.0),
    "efficientnet v2": lambda: tv.efficientnet_v2_s(**NO_DROP, stochastic_depth_prob=0.0),
    "convnext": lambda: tv.ConvNeXt([tv.convnext.CNBlockConfig(*s) for s in ((8, 16, 1), (16, 24, 2), (24, None, 1))], **N),
    "vit": lambda: tv.VisionTransformer(32, 16, 2, 2, 24, 96, **N),
    "swin": lambda: tv.SwinTransformer([4, 4], 16, [2, 2], [2, 4], [4, 4], stochastic_depth_prob=0.0, **N),
    "fcn": lambda: tv.segmentation.fcn._fcn_resnet(_dilated(), 7, True),
    "deeplab": lambda: tv.segmentation.deeplabv3._deeplabv3_resnet(_dilated(), 7, False),
    "deeplab mobile": lambda: tv.segmentation.deeplabv3_mobilenet_v3_large(weights_backbone=None, aux_loss=True, **N),
    "segformer": lambda: T.SegformerForSemanticSegmentation(T.SegformerConfig(**cases.SEGFORMER, id2label=THREE)),
    "dinov2": lambda: T.Dinov2Model(T.Dinov2Config(**cases.DINO)),
    "dinov2 gated": lambda: T.Dinov2ForImageClassification(T.Dinov2Config(**cases.DINO, use_swiglu_ffn=True, id2label=THREE)),
    "ddpm": lambda: D.UNet2DModel(
        sample_size=16,
        block_out_channels=(8, 16, 16),
        down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=None,
        norm_num_groups=4,
        **DDPM,
    ),
    "autoencoder": lambda: D.AutoencoderKL(**AUTOENCODER, block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4),
    "xception": lambda: timm.create_model("legacy_xception", **N),
    "inception next": lambda: timm.create_model("inception_next_tiny", depths=(1, 2, 1, 1), dims=(16, 24, 32, 40), **N),
    "pvt": lambda: _pvt(64, [16, 32, 40, 64], 7),
    "pvt v2": lambda: timm.create_model("pvt_v2_b0", **N),
    "roberta": lambda: T.RobertaForMaskedLM(T.RobertaConfig(type_vocab_size=1, layer_norm_eps=1e-5, **TINY)),
    "roberta classifier": lambda: T.RobertaForSequenceClassification(
        T.RobertaConfig(type_vocab_size=1, layer_norm_eps=1e-5, **TINY)
    ),
    "distilbert": lambda: T.DistilBertForSequenceClassification(
        T.DistilBertConfig(
            **dict(vocab_size=37, dim=16, n_layers=2, n_heads=4, hidden_dim=24, max_position_embeddings=20),
            **dict(dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0),
        )
    ),
    "roformer": lambda: T.RoFormerForMaskedLM(T.RoFormerConfig(**TINY)),
    "gpt": lambda: T.OpenAIGPTLMHeadModel(
        T.OpenAIGPTConfig(
            vocab_size=37, n_embd=16, n_layer=2, n_head=4, n_positions=20, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0
        )
    ),
    "t5": lambda: T.T5ForConditionalGeneration(T.T5Config(**cases.T5)),
    "t5 gated": lambda: T.T5ForConditionalGeneration(T.T5Config(**cases.T5, feed_forward_proj="gated-gelu")),
    "clip": lambda: T.CLIPModel(_clip_config()),
    "whisper": lambda: T.WhisperForConditionalGeneration(T.WhisperConfig(**cases.WHISPER)),
    "maxvit": lambda: _maxxvit(
        "maxvit_tiny_tf", embed_dim=(32, 64), depths=(1, 2), stem_width=16, head_hidden_size=24, window=(2, 2)
    ),
    "coatnet": lambda: _maxxvit(
        "coatnet_0", embed_dim=(16, 24, 32, 64), depths=(1, 1, 2, 1), stem_width=16, head_hidden_size=24, img_size=64
    ),
    "crossvit": lambda: timm.create_model(
        "crossvit_tiny_240",
        **dict(img_size=120, embed_dim=[12, 24], depth=[[1, 2, 0], [1, 1, 0]], mlp_ratio=[2, 3, 1]),
        **N,
    ),
    "efficientformer": lambda: _efficientformer(),
    "cvt": lambda: T.CvtForImageClassification(
        T.CvtConfig(embed_dim=[8, 12, 24], depth=[1, 2, 3], drop_path_rate=[0.0] * 3, id2label=dict.fromkeys(range(7), "x"))
    ),
    "maskformer": lambda: T.MaskFormerForInstanceSegmentation(
        T.MaskFormerConfig(
            **dict(fpn_feature_size=32, mask_feature_size=32, backbone_config=_backbone([1, 1, 1, 1]), id2label=THREE),
            decoder_config=T.DetrConfig(
                **dict(d_model=32, decoder_attention_heads=2, decoder_layers=2, decoder_ffn_dim=24, dropout=0.0),
                **dict(num_queries=5, encoder_attention_heads=2),
            ),
        )
    ),
    "mask2former": lambda: _mask2former(
        T.SwinConfig(
            **dict(embed_dim=16, depths=[2, 1, 2, 2], num_heads=[1, 2, 4, 4], window_size=4, drop_path_rate=0.0),
            out_features=STAGES,
        ),
        2,
        5,
    ),
    "mask2former resnet": lambda: _mask2former(_backbone([1, 1, 1, 1]), 1, 2),
    "inception resnet": lambda: _shortened(timm.create_model("inception_resnet_v2", **N)),
    "deit": lambda: _deit("deit_tiny_patch16_224"),
    "deit distilled": lambda: _deit("deit_tiny_distilled_patch16_224"),
}


def _dilated():
    return tv.ResNet(tv.resnet.Bottleneck, [1, 1, 1, 1], replace_stride_with_dilation=[False, True, True])


def _narrow(model, *places):
    """The fully connected layers with 16 in place of 4096."""
    first = model.classifier[places[0]].in_features
    for place, size in zip(places, ((first, 16), (16, 16), (16, 7))):
        model.classifier[place] = torch.nn.Linear(*size)
    return model


def _clip_config():
    from lucid.models import CLIPConfig  # only names are translated

    config = T.CLIPConfig(**CLIPConfig(**cases.CLIP).to_hub())
    config.text_config.eos_token_id = 2
    return config


def _maxxvit(name, window=None, img_size=224, **fields):
    from dataclasses import replace

    from timm.models import maxxvit

    found = maxxvit.model_cfgs[name]
    kinds = found.block_type[: len(fields["depths"])]
    attention = replace(found.transformer_cfg, window_size=window, grid_size=window) if window else found.transformer_cfg
    config = replace(found, block_type=kinds, transformer_cfg=attention, **fields)
    return maxxvit.MaxxVit(config, img_size=img_size, **N)


def _backbone(depths):
    return T.ResNetConfig(depths=depths, out_features=STAGES)


def _mask2former(backbone, encoder_layers, decoder_layers):
    return T.Mask2FormerForUniversalSegmentation(
        T.Mask2FormerConfig(
            **dict(backbone_config=backbone, feature_size=32, hidden_dim=32, mask_feature_size=16, num_attention_heads=2),
            **dict(encoder_layers=encoder_layers, decoder_layers=decoder_layers, encoder_feedforward_dim=24),
            **dict(dim_feedforward=24, dropout=0.0, num_queries=5, train_num_points=60, id2label=THREE),
        )
    )


def queries_of(name):
    """The losses of things; the points that Mask2Former draws are those of the seed."""
    model = THEIRS[name]().eval()
    cases.fill(torch, model)
    torch.manual_seed(3)
    pictures = cases.one_input(torch, "images", (2, 3, 64, 96), torch.float32)
    out = model(pictures, **cases.query_inputs(torch))
    out.loss.backward()
    norm = sum(float((p.grad.double() ** 2).sum()) for p in model.parameters() if p.grad is not None) ** 0.5
    return {"loss": float(f"{out.loss.item():.7g}"), "norm": float(f"{norm:.7g}")}


def _shortened(model):
    model.repeat, model.repeat_1, model.repeat_2 = model.repeat[:1], model.repeat_1[:1], model.repeat_2[:1]
    return model


def _efficientformer():
    import functools

    from timm.models import efficientformer

    usual = efficientformer.Attention
    efficientformer.Attention = functools.partial(usual, resolution=2)  # a map of 64x64 pixels
    try:
        return efficientformer.EfficientFormer((1, 1, 1, 2), (8, 16, 24, 32), num_vit=1, layer_scale_init_value=1.0, **N)
    finally:
        efficientformer.Attention = usual


def _pvt(size, dims, classes):
    import pvt

    norm = lambda width: torch.nn.LayerNorm(width, eps=1e-6)
    shape = dict(num_heads=[1, 2, 5, 8], mlp_ratios=[8, 8, 4, 4], depths=[2] * 4, sr_ratios=[8, 4, 2, 1])
    return pvt.PyramidVisionTransformer(size, 4, 3, classes, dims, qkv_bias=True, norm_layer=norm, **shape)


def _deit(name):
    return timm.create_model(name, img_size=32, embed_dim=24, depth=2, num_heads=2, **N)


CIFAR = dict(
    **dict(sample_size=32, block_out_channels=(128, 256, 256, 256), attention_head_dim=None),
    down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "UpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
)
STABLE = dict(
    **dict(block_out_channels=(128, 256, 512, 512), layers_per_block=2),
    **dict(down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4),
)
ROBERTA = T.RobertaConfig(vocab_size=50265, max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5)
# our factory at its full size: theirs
FULL = {
    **{f"resnet_{d}_cls": (tv, f"resnet{d}") for d in (18, 34, 50, 101, 152)},
    **{f"wide_resnet_{d}_cls": (tv, f"wide_resnet{d}_2") for d in (50, 101)},
    **{f"resnext_{n}_cls": (tv, f"resnext{n}") for n in ("50_32x4d", "101_32x8d", "101_64x4d")},
    **{f"se_resnet_{d}_cls": (timm, f"seresnet{d}") for d in (18, 34, 50, 101, 152)},
    **{f"vgg_{d}{bn}_cls": (tv, f"vgg{d}{bn}") for d in (11, 13, 16, 19) for bn in ("", "_bn")},
    **{f"densenet_{d}_cls": (tv, f"densenet{d}") for d in (121, 161, 169, 201)},
    **{f"{n}_cls": (tv, n) for n in ("alexnet", "googlenet", "inception_v3", "mobilenet_v2")},
    **{f"{n}_cls": (tv, n) for n in ("mobilenet_v3_small", "mobilenet_v3_large")},
    **{f"efficientnet_b{i}_cls": (tv, f"efficientnet_b{i}") for i in range(8)},
    **{f"efficientnet_v2_{s}_cls": (tv, f"efficientnet_v2_{s}") for s in "sml"},
    **{f"convnext_{s}_cls": (tv, f"convnext_{s}") for s in ("tiny", "small", "base", "large")},
    **{f"vit_{n}_cls": (tv, f"vit_{n[0]}_{n[-2:]}") for n in ("base_16", "base_32", "large_16", "large_32", "huge_14")},
    **{f"swin_{n}_cls": (tv, f"swin_{n[0]}") for n in ("tiny", "small", "base")},
    **{
        f"sk_{n}_cls": (timm, f"sk{n.replace('_', '', 1)}") for n in ("resnet_18", "resnet_34", "resnet_50", "resnext_50_32x4d")
    },
    **{f"resnest_{n[:-1]}_cls": (timm, f"resnest{n}") for n in ("14d", "26d", "50d", "101e", "200e", "269e")},
    "cspresnet_50_cls": (timm, "cspresnet50"),
    "mobilenet_v1_cls": (timm, "mobilenetv1_100"),
    **{f"mobilenet_v4_conv_{s}_cls": (timm, f"mobilenetv4_conv_{s}") for s in ("small", "medium", "large")},
    **{f"fcn_resnet{d}": (tv.segmentation, f"fcn_resnet{d}") for d in (50, 101)},
    **{f"deeplab_v3_resnet{d}": (tv.segmentation, f"deeplabv3_resnet{d}") for d in (50, 101)},
    "deeplab_v3_mobilenet_v3_large": (tv.segmentation, "deeplabv3_mobilenet_v3_large"),
    "faster_rcnn": (tv.detection, "fasterrcnn_resnet50_fpn"),
    "mask_rcnn": (tv.detection, "maskrcnn_resnet50_fpn"),
    "xception_cls": (timm, "legacy_xception"),
    "inception_resnet_v2_cls": (timm, "inception_resnet_v2"),
    "coatnet_0_cls": (timm, "coatnet_0_224"),
    **{f"maxvit_{s}_cls": (timm, f"maxvit_{s}_tf_224") for s in ("tiny", "small", "base", "large")},
    "maxvit_xlarge_cls": (T, lambda: timm.create_model("maxvit_xlarge_tf_224", num_classes=1000)),
    **{f"crossvit_{s}_cls": (timm, f"crossvit_{s}_240") for s in ("tiny", "small", "base", "9", "15", "18")},
    **{f"efficientformer_{s}_cls": (timm, f"efficientformer_{s}") for s in ("l1", "l3", "l7")},
    **{f"cvt_{n}_cls": (T, lambda n=n: T.CvtForImageClassification(_cvt(n))) for n in ("13", "21", "w24")},
    **{f"inception_next_{s}_cls": (timm, f"inception_next_{s}") for s in ("tiny", "small", "base")},
    **{f"efficientdet_d{i}": (T, lambda i=i: effdet_reference.full(i)) for i in range(8)},
    "pvt_tiny_cls": (T, lambda: _pvt(224, [64, 128, 320, 512], 1000)),
    **{f"pvt_v2_b{i}_cls": (timm, f"pvt_v2_b{i}") for i in range(6)},
    "maskformer_resnet50": (T, lambda: _full_maskformer([3, 4, 6, 3])),
    "maskformer_resnet101": (T, lambda: _full_maskformer([3, 4, 23, 3])),
    "mask2former_swin_tiny": (T, lambda: _full_mask2former(T.SwinConfig(out_features=STAGES))),
    "mask2former_swin_base": (
        T,
        lambda: _full_mask2former(
            T.SwinConfig(embed_dim=128, depths=[2, 2, 18, 2], num_heads=[4, 8, 16, 32], window_size=12, out_features=STAGES)
        ),
    ),
    "mask2former_resnet50": (T, lambda: _full_mask2former(_backbone([3, 4, 6, 3]))),
    "segformer_b0": (T, lambda: T.SegformerForSemanticSegmentation(T.SegformerConfig(id2label=dict.fromkeys(range(150), "x")))),
    "dinov2_base": (T, lambda: T.Dinov2Model(T.Dinov2Config(image_size=518))),
    "ddpm_cifar": (T, lambda: D.UNet2DModel(**CIFAR)),
    "autoencoder_kl": (T, lambda: D.AutoencoderKL(**STABLE)),
    "roberta_base_mlm": (T, lambda: T.RobertaForMaskedLM(ROBERTA)),
    "distilbert_base_mlm": (T, lambda: T.DistilBertForMaskedLM(T.DistilBertConfig())),
    "roformer_mlm": (T, lambda: T.RoFormerForMaskedLM(T.RoFormerConfig())),
    "gpt_lm": (T, lambda: T.OpenAIGPTLMHeadModel(T.OpenAIGPTConfig())),
    "t5_small": (T, lambda: T.T5ForConditionalGeneration(T.T5Config())),
    "t5_base": (T, lambda: T.T5ForConditionalGeneration(T.T5Config(d_model=768, d_ff=3072, num_layers=12, num_heads=12))),
    "clip_vit_base_32": (T, lambda: T.CLIPModel(T.CLIPConfig())),
    "whisper_tiny": (T, lambda: T.WhisperForConditionalGeneration(T.WhisperConfig())),
    "deit_tiny_distilled_16_cls": (timm, "deit_tiny_distilled_patch16_224"),
    **{f"deit_{n}_16_cls": (timm, f"deit_{n}_patch16_224") for n in ("tiny", "small", "base")},
}


ADE = dict.fromkeys(range(150), "x")


def _full_maskformer(depths):
    config = T.MaskFormerConfig(backbone_config=_backbone(depths), decoder_config=T.DetrConfig(), id2label=ADE)
    return T.MaskFormerForInstanceSegmentation(config)


def _full_mask2former(backbone):
    return T.Mask2FormerForUniversalSegmentation(T.Mask2FormerConfig(backbone_config=backbone, id2label=ADE))


def _cvt(name):
    """As the published files have it."""
    wide = dict(embed_dim=[192, 768, 1024], depth=[2, 2, 20], num_heads=[3, 12, 16])
    return T.CvtConfig(**{"13": {}, "21": dict(depth=[1, 4, 16]), "w24": wide}[name], id2label=dict.fromkeys(range(1000), "x"))


def full(zoo, name):
    with torch.device("meta"):
        if zoo is T:
            return name()
        if zoo is timm:
            return timm.create_model(name)
        options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
        if zoo in (tv.segmentation, tv.detection):
            options = {"weights_backbone": None}
        return getattr(zoo, name)(**options)


def outputs_of(name):
    torch.manual_seed(0)
    model, given = THEIRS[name](), cases.CASES[name][2]
    cases.fill(torch, model)
    with torch.no_grad():
        model.eval()
        logits = cases.values_of(cases.call(model, cases.inputs(torch, given)))
    model.train().double()
    trained = cases.values_of(cases.call(model, cases.inputs(torch, given, torch.float64)))
    loss = (trained * cases.numbers(torch, "weights", trained.numel())).sum()
    loss.backward()
    norm = sum(float((p.grad**2).sum()) for p in model.parameters() if p.grad is not None) ** 0.5
    return {
        "keys": cases.digest(model),
        "count": sum(p.numel() for p in model.parameters()),
        "logits": [float(f"{v:.7g}") for v in logits[:: max(1, logits.numel() // 14)][:14]],
        "loss": float(f"{loss.item():.9g}"),
        "norm": float(f"{norm:.9g}"),
    }


def detection_of(name):
    from torchvision.models.detection.backbone_utils import BackboneWithFPN

    body = tv.ResNet(tv.resnet.Bottleneck, [1, 1, 1, 1])
    layers = {f"layer{i + 1}": str(i) for i in range(4)}
    backbone = BackboneWithFPN(body, layers, [256, 512, 1024, 2048], 256)
    make = tv.detection.MaskRCNN if name == "mask rcnn" else tv.detection.FasterRCNN
    fields = {key: value for key, value in {**cases.RCNN, **cases.NO_CHANCE}.items() if key != "backbone_layers"}
    model = make(backbone, **fields)
    cases.fill(torch, model)
    keys = cases.digest(model)
    for module in model.train().double().modules():
        if type(module).__name__ == "BatchNorm2d":
            module.eval()
    losses = model(*cases.detection_inputs(torch, name == "mask rcnn"))
    # not the classifier's: RoI align in Python treats samples outside of the map otherwise than the compiled one
    return {"keys": keys, "losses": {k: float(f"{v.item():.7g}") for k, v in losses.items() if k != "loss_classifier"}}


def main(path, *names):
    path = pathlib.Path(path)
    kept = json.loads(path.read_text()) if path.exists() else {"cases": {}, "full": {}}
    for name in cases.CASES:
        if name not in kept["cases"] or name in names:
            kept["cases"][name] = outputs_of(name)
    kept.setdefault("detection", {})
    for name in cases.DETECTORS:
        if name not in kept["detection"] or name in names:
            kept["detection"][name] = detection_of(name)
    if "detr" not in kept["detection"] or "detr" in names:
        kept["detection"]["detr"] = detr_reference.numbers()
    for name in cases.EFFDETS:
        if name not in kept["detection"] or name in names:
            kept["detection"][name] = effdet_reference.numbers(name)
    for name in ("maskformer", "mask2former"):
        key = f"{name} loss"
        if key not in kept["detection"] or name in names:
            kept["detection"][key] = queries_of(name)
    for name, (zoo, theirs) in FULL.items():
        if name not in kept["full"] or name in names:
            model = full(zoo, theirs)
            kept["full"][name] = [sum(p.numel() for p in model.parameters()), cases.digest(model)]
    parts = [
        f'"{part}": {{\n' + ",\n".join(f"{json.dumps(n)}: {json.dumps(v)}" for n, v in kept[part].items()) + "\n}"
        for part in kept
    ]
    path.write_text("{" + ",\n".join(parts) + "}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
