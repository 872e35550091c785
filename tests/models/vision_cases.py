"""Networks of images that are compared with other zoos: how they are made here, what they are given, and their weights.

The weights follow from the keys by a formula that both libraries compute alike. `FULL` lists published sizes whose keys and
numbers of parameters are compared as well, without values.
"""

import math
import zlib

S = dict(num_classes=7)
# name: factory or class with config, fields, shape of the images
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
    "deit": ("deit_tiny_16_cls", dict(S, image_size=32, dim=24, depth=2, num_heads=2), (2, 3, 32, 32)),
    "deit distilled": ("deit_tiny_distilled_16_cls", dict(S, image_size=32, dim=24, depth=2, num_heads=2), (2, 3, 32, 32)),
}


def numbers(m, key, count):
    """count numbers between -0.5 and 0.5 that depend on the key, in either library."""
    x = m.arange(count, dtype=m.float64) * 12.9898 + zlib.crc32(key.encode()) % 1000
    x = m.sin(x) * 43758.5453
    return x - m.floor(x) - 0.5


def fill(m, model):
    """Give every tensor of a model its values."""
    with m.no_grad():
        for key, tensor in model.state_dict().items():
            if not tensor.is_floating_point():
                continue
            value = numbers(m, key, tensor.numel()).view(tensor.shape)
            if key.endswith("running_var"):
                value = value * 0.5 + 1.0
            elif tensor.ndim > 1:
                value = value * math.sqrt(12.0 / max(tensor[0].numel(), 1))
            elif key.endswith("weight"):
                value = value * 0.5 + 1.0
            else:
                value = value * 0.2
            tensor.copy_(value)


def images(m, shape):
    return (numbers(m, "images", math.prod(shape)) * 3).view(shape).to(m.float32)


def digest(model):
    """A short hash of all keys and shapes."""
    return f"{zlib.crc32(repr(sorted((k, tuple(v.shape)) for k, v in model.state_dict().items())).encode()):08x}"
