"""ConvNeXt (Liu et al., 2022): a convolutional network with the shape of a transformer. torchvision's keys."""

import dataclasses

from .... import _C, nn
from ..base import ImageConfig, ImageModel, image_family
from ..blocks import ChannelNorm, DropPath, drop_rates, start_narrow


@dataclasses.dataclass(frozen=True)
class ConvNeXtConfig(ImageConfig):
    """The settings of ConvNeXt; the defaults are the tiny one.

    >>> lucid.models.ConvNeXtConfig(depths=(3, 3, 27, 3)).dims
    (96, 192, 384, 768)
    """

    depths: tuple = (3, 3, 9, 3)
    dims: tuple = (96, 192, 384, 768)
    layer_scale: float = 1e-6
    stochastic_depth_prob: float = 0.1
    model_type = "convnext-torchvision"

    def __post_init__(self):
        if len(self.depths) != len(self.dims):
            raise ValueError("depths and dims have one number per stage")


class _ToLast(nn.Module):  # the channels last: fully connected layers work on them
    def forward(self, x):
        return x.permute(0, 2, 3, 1)


class _ToFirst(nn.Module):
    def forward(self, x):
        return x.permute(0, 3, 1, 2)


class _Block(nn.Module):
    def __init__(self, width, scale, drop):
        super().__init__()
        self.layer_scale = nn.Parameter(_C.full((width, 1, 1), scale))
        self.block = nn.Sequential(
            *(nn.Conv2d(width, width, 7, padding=3, groups=width), _ToLast(), nn.LayerNorm(width, eps=1e-6)),
            *(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), _ToFirst()),
        )
        self.stochastic_depth = DropPath(drop)

    def forward(self, x):
        return x + self.stochastic_depth(self.layer_scale * self.block(x))


class ConvNeXt(ImageModel):
    """ConvNeXt without its classifier.

    >>> config = lucid.models.ConvNeXtConfig(depths=(1, 1), dims=(8, 16))
    >>> tuple(lucid.models.ConvNeXt(config)(lucid.zeros(1, 3, 32, 32)).last_hidden_state.shape)
    (1, 16, 4, 4)
    """

    config_class = ConvNeXtConfig
    head_keys = ("classifier.2.",)
    stem_keys = ("features.0.0.weight",)

    def __init__(self, config):
        super().__init__(config)
        dims = config.dims
        stem = nn.Conv2d(config.in_channels, dims[0], 4, 4), ChannelNorm(dims[0], eps=1e-6)
        layers = [nn.Sequential(*stem)]
        for number, (width, rates) in enumerate(zip(dims, drop_rates(config.stochastic_depth_prob, config.depths))):
            if number:
                before = dims[number - 1]
                layers.append(nn.Sequential(ChannelNorm(before, eps=1e-6), nn.Conv2d(before, width, 2, 2)))
            layers.append(nn.Sequential(*(_Block(width, config.layer_scale, rate) for rate in rates)))
        self.features = nn.Sequential(*layers)
        if self.classifies:
            head = ChannelNorm(dims[-1], eps=1e-6), nn.Flatten(1), nn.Linear(dims[-1], config.num_classes)
            self.classifier = nn.Sequential(*head)
        start_narrow(self)

    def trunk(self, x):
        return self.features(x)

    def scores(self, x):
        return self.classifier(x[:, :, None, None])


def _size(first, depths, drop):
    return dict(depths=depths, dims=tuple(first * 2**i for i in range(4)), stochastic_depth_prob=drop)


_SIZES = {
    "convnext_tiny": _size(96, (3, 3, 9, 3), 0.1),
    "convnext_small": _size(96, (3, 3, 27, 3), 0.4),
    "convnext_base": _size(128, (3, 3, 27, 3), 0.5),
    "convnext_large": _size(192, (3, 3, 27, 3), 0.5),
    "convnext_xlarge": _size(256, (3, 3, 27, 3), 0.5),
}
globals().update(image_family(ConvNeXt, _SIZES, {name: name for name in list(_SIZES)[:4]}))
