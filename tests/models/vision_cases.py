"""Networks that are compared with other zoos: how they are made here, what they are given, and their weights.

The weights follow from the keys by a formula that both libraries compute alike. `FULL` lists published sizes whose keys and
numbers of parameters are compared as well, without values.
"""

import math
import zlib

S = dict(num_classes=7)
GPT = dict(vocab_size=37, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=20)
TINY = dict(GPT, intermediate_size=24)
IDS = {"input_ids": ("ids", 37, 2, 9)}
T5 = dict(vocab_size=37, d_model=16, d_kv=4, d_ff=24, num_layers=2, num_heads=4, dropout_rate=0.0)
CLIP = dict(
    **dict(image_size=16, patch_size=8, vision_layers=2, vision_width=16, vision_heads=4, embed_dim=8),
    **dict(context_length=12, vocab_size=37, text_width=16, text_heads=4, text_layers=2),
)
WHISPER = dict(
    **dict(vocab_size=37, num_mel_bins=8, d_model=16, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=24),
    **dict(encoder_attention_heads=4, decoder_attention_heads=4, decoder_ffn_dim=24, max_source_positions=10),
    **dict(max_target_positions=12, pad_token_id=1, bos_token_id=1, eos_token_id=1, decoder_start_token_id=2),
)
SEGFORMER = dict(
    **dict(hidden_sizes=(8, 16, 24, 32), depths=(1, 2, 1, 1), num_attention_heads=(1, 2, 3, 4), decoder_hidden_size=8),
    **dict(drop_path_rate=0.0, classifier_dropout_prob=0.0),
)
DINO = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, image_size=28)
RCNN = dict(num_classes=4, min_size=64, max_size=96, rpn_post_nms_top_n_train=60)
NO_CHANCE = dict(
    **dict(backbone_layers=(1, 1, 1, 1), rpn_batch_size_per_image=10**6, rpn_positive_fraction=1.0),
    **dict(box_batch_size_per_image=10**6, box_positive_fraction=1.0),
)
DETR = dict(
    **dict(num_classes=3, backbone_layers=(1, 1, 1, 1), d_model=16, n_head=2, num_encoder_layers=2, num_decoder_layers=2),
    **dict(dim_feedforward=24, num_queries=5, bbox_hidden_dim=16, dropout=0.0),
)
COAT = dict(stem_width=16, attn_heads=(1, 2), head_hidden_size=24)
QUERIES = dict(
    **dict(num_classes=3, d_model=32, n_head=2, num_decoder_layers=2, dim_feedforward=24, dropout=0.0, num_queries=5),
)
MASK2 = dict(
    **dict(QUERIES, num_decoder_layers=5, num_encoder_layers=2, encoder_feedforward_dim=24, mask_feature_size=16),
    **dict(swin_embed_dim=16, swin_depths=(2, 1, 2, 2), swin_num_heads=(1, 2, 4, 4), swin_window_size=4),
    **dict(swin_drop_path_rate=0.0, train_num_points=60),
)
EFFDET = dict(
    **dict(num_classes=4, image_size=128, fpn_channels=16, box_class_repeats=2, drop_path_rate=0.0),
    **dict(image_mean=(0.0,) * 3, image_std=(1.0,) * 3, score_thresh=0.0),
)
EFFDETS = {
    "efficientdet": dict(EFFDET, fpn_cell_repeats=2),
    "efficientdet symmetric": dict(
        **dict(EFFDET, fpn_cell_repeats=1, padding="symmetric", redundant_bias=False, weighted=False),
        **dict(backbone_norm_eps=1e-5, anchor_scale=5.0, width_mult=1.1, depth_mult=1.2),
    ),
}
DETECTORS = {"faster rcnn": "faster_rcnn", "mask rcnn": "mask_rcnn"}
# name: factory, fields, shape of the images or inputs by name
CASES = {
    "resnet": ("resnet_18_cls", S, (2, 3, 64, 64)),
    "resnet bottleneck": ("resnet_50_cls", dict(S, layers=(1, 2, 1, 1)), (2, 3, 64, 64)),
    "resnext": ("resnext_50_32x4d_cls", dict(S, layers=(1, 1, 1, 1)), (2, 3, 64, 64)),
    "wide resnet": ("wide_resnet_50_cls", dict(S, layers=(1, 1, 1, 1)), (2, 3, 64, 64)),
    "se resnet": ("se_resnet_18_cls", dict(S, layers=(1, 2, 1, 1)), (2, 3, 64, 64)),
    "sk resnet": ("sk_resnet_18_cls", dict(S, layers=(1, 1, 1, 1)), (2, 3, 64, 64)),
    "sk resnext": ("sk_resnext_50_32x4d_cls", dict(S, layers=(1, 1, 1, 1)), (2, 3, 64, 64)),
    "resnest": ("resnest_14_cls", S, (2, 3, 64, 64)),
    "cspresnet": ("cspresnet_50_cls", S, (2, 3, 64, 64)),
    "mobilenet v1": ("mobilenet_v1_cls", S, (2, 3, 64, 64)),
    "mobilenet v4": ("mobilenet_v4_conv_small_cls", S, (2, 3, 64, 64)),
    "mobilenet v4 medium": ("mobilenet_v4_conv_medium_cls", S, (2, 3, 64, 64)),
    "alexnet": ("alexnet_cls", dict(S, dropout=0.0, hidden_size=16), (2, 3, 64, 64)),
    "vgg": ("vgg_11_bn_cls", dict(S, dropout=0.0, hidden_size=16), (2, 3, 32, 32)),
    "densenet": ("densenet_121_cls", dict(S, block_config=(2, 3, 2), growth_rate=8), (2, 3, 64, 64)),
    "googlenet": ("googlenet_cls", dict(S, dropout=0.0, dropout_aux=0.0), (2, 3, 64, 64)),
    "inception v3": ("inception_v3_cls", dict(S, dropout=0.0, aux_logits=False), (2, 3, 140, 140)),
    "mobilenet v2": ("mobilenet_v2_cls", dict(S, dropout=0.0), (2, 3, 64, 64)),
    "mobilenet v3 small": ("mobilenet_v3_small_cls", dict(S, dropout=0.0), (2, 3, 64, 64)),
    "mobilenet v3 large": ("mobilenet_v3_large_cls", dict(S, dropout=0.0), (2, 3, 64, 64)),
    "efficientnet": ("efficientnet_b0_cls", dict(S, dropout=0.0, stochastic_depth_prob=0.0), (2, 3, 64, 64)),
    "efficientnet v2": ("efficientnet_v2_s_cls", dict(S, dropout=0.0, stochastic_depth_prob=0.0), (2, 3, 64, 64)),
    "convnext": (
        "convnext_tiny_cls",
        dict(S, depths=(1, 2, 1), dims=(8, 16, 24), stochastic_depth_prob=0.0),
        (2, 3, 64, 64),
    ),
    "vit": ("vit_base_16_cls", dict(S, image_size=32, dim=24, depth=2, num_heads=2), (2, 3, 32, 32)),
    "swin": (
        "swin_tiny_cls",
        dict(S, embed_dim=16, depths=(2, 2), num_heads=(2, 4), window_size=4, stochastic_depth_prob=0.0),
        (2, 3, 52, 64),
    ),
    "fcn": ("fcn_resnet50", dict(S, backbone_layers=(1, 1, 1, 1), aux_loss=True), (2, 3, 64, 64)),
    "deeplab": ("deeplab_v3_resnet50", dict(S, backbone_layers=(1, 1, 1, 1)), (2, 3, 64, 64)),
    "deeplab mobile": ("deeplab_v3_mobilenet_v3_large", dict(S, aux_loss=True), (2, 3, 64, 64)),
    "segformer": ("segformer_b0", dict(SEGFORMER, num_labels=3), (2, 3, 64, 64)),
    "dinov2": ("dinov2_small", DINO, (2, 3, 28, 42)),
    "dinov2 gated": ("dinov2_small_cls", dict(DINO, use_swiglu_ffn=True, num_labels=3), (2, 3, 28, 28)),
    "ddpm": (
        "ddpm_cifar",
        dict(sample_size=16, base_channels=8, channel_mult=(1, 2, 2), attention_resolutions=(8,), resnet_groups=4),
        {"sample": (2, 3, 16, 16), "timestep": ("ids", 1000, 2)},
    ),
    "autoencoder": (
        "autoencoder_kl",
        dict(block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4),
        {"sample": (2, 3, 16, 16)},
    ),
    "xception": ("xception_cls", S, (2, 3, 96, 96)),
    "inception next": ("inception_next_tiny_cls", dict(S, depths=(1, 2, 1, 1), dims=(16, 24, 32, 40)), (2, 3, 64, 64)),
    "pvt": ("pvt_tiny_cls", dict(S, image_size=64, dims=(16, 32, 40, 64)), (2, 3, 64, 96)),
    "pvt v2": ("pvt_v2_b0_cls", S, (2, 3, 64, 64)),
    "roberta": ("roberta_base_mlm", dict(TINY, hidden_dropout=0.0, attention_dropout=0.0), IDS),
    "roberta classifier": ("roberta_base_cls", dict(TINY, hidden_dropout=0.0, attention_dropout=0.0), IDS),
    "distilbert": (
        "distilbert_base_cls",
        dict(TINY, hidden_dropout=0.0, attention_dropout=0.0, classifier_dropout=0.0),
        IDS,
    ),
    "roformer": ("roformer_mlm", dict(TINY, hidden_dropout=0.0, attention_dropout=0.0), IDS),
    "gpt": ("gpt_lm", dict(GPT, hidden_dropout=0.0, attention_dropout=0.0), IDS),
    "t5": ("t5_small", T5, {**IDS, "decoder_input_ids": ("ids", 37, 2, 4)}),
    "t5 gated": ("t5_small", dict(T5, feed_forward_proj="gated-gelu"), {**IDS, "decoder_input_ids": ("ids", 37, 2, 4)}),
    "clip": ("clip_vit_base_32", CLIP, {"pixel_values": (2, 3, 16, 16), "input_ids": ("ids", 37, 2, 9)}),
    "whisper": ("whisper_tiny", WHISPER, {"input_features": (2, 8, 20), "decoder_input_ids": ("ids", 37, 2, 4)}),
    "maxvit": (
        "maxvit_tiny_cls",
        dict(S, depths=(1, 2), dims=(32, 64), window_size=2, stem_width=16, head_hidden_size=24),
        (2, 3, 32, 48),
    ),
    "coatnet": (
        "coatnet_0_cls",
        dict(S, **dict(image_size=64, blocks_per_stage=(1, 1, 2, 1), dims=(16, 24, 32, 64)), **COAT),
        (2, 3, 64, 64),
    ),
    "crossvit": (
        "crossvit_tiny_cls",
        dict(S, image_size=120, dims=(12, 24), depths=((1, 2), (1, 1)), mlp_ratios=(2.0, 3.0)),
        (2, 3, 120, 120),
    ),
    "efficientformer": (
        "efficientformer_l1_cls",
        dict(S, image_size=64, depths=(1, 1, 1, 2), dims=(8, 16, 24, 32), layer_scale=1.0),
        (2, 3, 64, 64),
    ),
    "cvt": ("cvt_13_cls", dict(S, dims=(8, 12, 24), depths=(1, 2, 3), drop_path_rate=(0.0,) * 3), (2, 3, 64, 64)),
    "maskformer": ("maskformer_resnet50", dict(QUERIES, fpn_out_channels=32, backbone_layers=(1, 1, 1, 1)), (2, 3, 64, 96)),
    "mask2former": ("mask2former_swin_tiny", MASK2, (2, 3, 70, 96)),
    "mask2former resnet": (
        "mask2former_resnet50",
        dict(MASK2, backbone_layers=(1, 1, 1, 1), num_encoder_layers=1, num_decoder_layers=2),
        (2, 3, 64, 64),
    ),
    "inception resnet": ("inception_resnet_v2_cls", dict(S, repeats=(1, 1, 1)), (2, 3, 110, 110)),
    "deit": ("deit_tiny_16_cls", dict(S, image_size=32, dim=24, depth=2, num_heads=2), (2, 3, 32, 32)),
    "deit distilled": ("deit_tiny_distilled_16_cls", dict(S, image_size=32, dim=24, depth=2, num_heads=2), (2, 3, 32, 32)),
}


def numbers(m, key, count):
    """count numbers between -0.5 and 0.5 that depend on the key, in either library."""
    x = m.arange(count, dtype=m.float64) * 12.9898 + zlib.crc32(key.encode()) % 1000
    x = m.sin(x) * 43758.5453
    return x - m.floor(x) - 0.5


def fill(m, model):
    """Give every tensor of a model its values; nothing is dropped."""
    for module in model.modules():
        if "Dropout" in type(module).__name__:
            module.p = 0.0
    with m.no_grad():
        for key, tensor in model.state_dict().items():
            if not tensor.is_floating_point():
                continue
            tensor.copy_(value_of(m, key, tensor))


def value_of(m, key, tensor):
    value = numbers(m, key, tensor.numel()).view(tensor.shape)
    if key.endswith("running_var"):
        return value * 0.5 + 1.0
    if tensor.ndim > 1:
        return value * math.sqrt(12.0 / max(tensor[0].numel(), 1))
    return value * 0.5 + 1.0 if key.endswith(("weight", "edge_weights")) else value * 0.2


def inputs(m, given, dtype=None):
    """The arguments of a case: images of a shape, or a dict by name of shapes and of ("ids", how many there are, *shape)."""
    if isinstance(given, dict):
        return {name: one_input(m, name, shape, dtype or m.float32) for name, shape in given.items()}
    return {None: one_input(m, "images", given, dtype or m.float32)}


def one_input(m, name, shape, dtype):
    if shape[0] == "ids":
        _, high, *shape = shape
        return m.floor((numbers(m, name, math.prod(shape)) + 0.5) * high).view(*shape).to(m.int64)
    return (numbers(m, name, math.prod(shape)) * 3).view(shape).to(m.float32).to(dtype)


def detr_inputs(m):
    """Two images, the second padded to the right, and the things in them."""
    pictures = (numbers(m, "pictures", 2 * 3 * 64 * 96) * 3).view(2, 3, 64, 96)
    mask = m.ones(2, 64, 96, dtype=m.int64)
    mask[1, :, 64:] = 0
    boxes = [[[0.5, 0.5, 0.2, 0.3], [0.3, 0.6, 0.4, 0.2]], [[0.2, 0.2, 0.1, 0.1]]]
    things = [{"labels": m.tensor([1, 2][: len(b)]), "boxes": m.tensor(b, dtype=m.float64)} for b in boxes]
    return pictures, mask, things


def query_inputs(m):
    """Things of two pictures of 64x96 pixels, and their classes."""
    kinds = [m.tensor([2, 0, 1]), m.tensor([1])]
    things = [m.zeros(len(k), 64, 96) for k in kinds]
    for i, (x0, y0, x1, y1) in enumerate(((0, 0, 50, 20), (30, 10, 90, 60), (60, 0, 96, 30), (10, 10, 60, 50))):
        things[i // 3][i % 3, y0:y1, x0:x1] = 1
    return {"mask_labels": things, "class_labels": kinds}


def detection_inputs(m, masks):
    """Two images and the things in them."""
    pictures = [(numbers(m, f"picture {n}", 3 * n * 64) + 0.5).view(3, n, 64) for n in (48, 64)]
    boxes = [[[5.0, 5.0, 40.0, 30.0], [20.0, 10.0, 60.0, 46.0]], [[10.0, 10.0, 40.0, 50.0]]]
    targets = [{"boxes": m.tensor(b, dtype=m.float64), "labels": m.tensor([1, 3][: len(b)])} for b in boxes]
    for picture, target in zip(pictures, targets):
        if masks:
            target["masks"] = m.zeros(len(target["boxes"]), *picture.shape[1:], dtype=m.uint8)
            for mask, (x0, y0, x1, y1) in zip(target["masks"], target["boxes"].long().tolist()):
                mask[y0:y1, x0:x1] = 1
    return pictures, targets


def effdet_inputs(m):
    """Two images of at most 128 pixels, and the things in them."""
    pictures = [(numbers(m, f"picture {n}", 3 * n * 128) * 3).view(3, n, 128).to(m.float32) for n in (128, 96)]
    boxes = [[[5.0, 5.0, 60.0, 30.0], [20.0, 10.0, 90.0, 126.0], [64.5, 70.0, 72.0, 80.5]], [[10.0, 10.0, 40.0, 50.0]]]
    return pictures, [{"boxes": m.tensor(b), "labels": m.tensor([1, 3, 4][: len(b)])} for b in boxes]


def effdet_outputs(m, classes):
    """What a network of nine anchors per place may have said of an image of 128 pixels: logits and codes."""
    count = 9 * sum((128 >> level) ** 2 for level in range(3, 8))
    logits = (numbers(m, "logits", count * classes) * 9).view(count, classes)
    return logits.to(m.float32), (numbers(m, "codes", 4 * count) * 0.2).view(count, 4).to(m.float32)


def call(model, given):
    given = dict(given)
    first = [given.pop(None)] if None in given else []
    return model(*first, **given)


FIELDS = (
    "class_queries_logits",
    "masks_queries_logits",
    "logits",
    "logits_per_image",
    "pred_boxes",
    "sample",
    "aux_logits",
    "aux_logits1",
    "aux_logits2",
    "last_hidden_state",
)


def values_of(out):
    """What a model returned, of either library, as one tensor of numbers."""
    if hasattr(out, "shape"):
        return out.flatten()
    if isinstance(out, dict) and "out" in out:
        found = list(out.values())
    elif hasattr(out, "_fields"):
        found = list(out)
    else:
        found = [getattr(out, name, None) for name in FIELDS]
        found = [value for value in found if value is not None][:3]
    total = found[0].flatten()
    for value in found[1:]:  # of any shapes
        total = total + value.flatten().mean()
    return total


def digest(model):
    """A short hash of all keys and shapes."""
    return f"{zlib.crc32(repr(sorted((k, tuple(v.shape)) for k, v in model.state_dict().items())).encode()):08x}"
