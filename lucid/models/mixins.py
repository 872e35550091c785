"""What models have in common across families, to inherit from: a head that can be made anew, maps of features, losses of
tokens, and generation of text and of images. None has state or an `__init__` of its own.
"""

import dataclasses

from .. import _C, nn
from ..autograd import no_grad
from ..nn import functional as F
from .outputs import GenerationOutput


@dataclasses.dataclass(frozen=True)
class FeatureInfo:
    """One map of a backbone: its number, its channels, and how many times smaller than the image it is.

    >>> lucid.models.FeatureInfo(stage=3, num_channels=512, reduction=32).reduction
    32
    """

    stage: int
    num_channels: int
    reduction: int


class BackboneMixin:
    """A network whose maps other networks take: a class has `stages(x)`, the list of maps, and this answers for it.

    >>> model = lucid.models.resnet_18().eval()
    >>> tuple(model.forward_features(lucid.zeros(1, 3, 64, 64)).shape)
    (1, 512, 2, 2)
    >>> [(info.num_channels, info.reduction) for info in model.feature_info]
    [(64, 4), (128, 8), (256, 16), (512, 32)]
    """

    feature_side = 256  # of the square image that feature_info is measured on; no memory is taken for it

    def stages(self, x):
        """The maps of an image, from large to small."""
        raise NotImplementedError(f"{type(self).__name__} has no stages(x), the list of its maps")

    def forward_features(self, x):
        """The last map."""
        return self.stages(x)[-1]

    @property
    def feature_info(self):
        """A FeatureInfo per map."""
        config, side = getattr(self, "config", None), self.feature_side
        with _C.device("meta"), no_grad():
            twin = type(self)(config).eval()
            maps = twin.stages(_C.zeros(1, config.in_channels, side, side))
        return [FeatureInfo(i, x.shape[1], side // x.shape[-1]) for i, x in enumerate(maps)]


class ClassificationHeadMixin:
    """A classifier whose last layer can be made anew, for another number of classes.

    The modules of `head_keys` (else `classifier`) hold the layer.

    >>> model = lucid.models.resnet_18_cls().eval()
    >>> model.reset_classifier(10)
    >>> tuple(model(lucid.zeros(1, 3, 32, 32)).logits.shape), model.config.num_classes
    ((1, 10), 10)
    """

    head_keys = ("classifier.",)

    def build_classifier(self, in_features, num_classes, dropout=0.0):
        """Put a head at `self.classifier`: a linear layer, after dropout if there is any.

        >>> class Small(lucid.models.ClassificationHeadMixin, nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.build_classifier(4, 3, dropout=0.1)
        >>> Small().classifier[1].out_features
        3
        """
        layer = nn.Linear(in_features, num_classes)
        self.classifier = nn.Sequential(nn.Dropout(dropout), layer) if dropout > 0.0 else layer

    _build_classifier = build_classifier

    def reset_classifier(self, num_classes):
        """A fresh last layer for so many classes, on the device and in the dtype of the old one."""
        for path, old in self._last_layers():
            kept = dict(device=old.weight.device, dtype=old.weight.dtype, bias=old.bias is not None)
            if isinstance(old, nn.Linear):
                new = nn.Linear(old.in_features, num_classes, **kept)
            else:
                new = nn.Conv2d(old.in_channels, num_classes, old.kernel_size, **kept)
            self.set_submodule(path, new.train(old.training))
        config = getattr(self, "config", None)
        if config is not None:
            known = {field.name for field in dataclasses.fields(config)}
            self.config = config.replace(**{"num_classes" if "num_classes" in known else "num_labels": num_classes})

    def _last_layers(self):
        """(path, layer) of the layer that gives the scores, for each head there is."""
        found = {}
        for prefix in self.head_keys:
            for path, module in self.named_modules():
                if (path + ".").startswith(prefix) and isinstance(module, (nn.Linear, nn.Conv2d)):
                    found[prefix] = path, module
        if not found:
            raise ValueError(f"{type(self).__name__} has no linear layer or convolution below {', '.join(self.head_keys)}")
        return found.values()


class MaskedLMMixin:
    """The loss of every token whose label is not ignored.

    >>> lucid.models.MaskedLMMixin.compute_lm_loss(lucid.zeros(1, 3, 4), lucid.tensor([[0, -100, 1]]))
    tensor(1.3863)
    """

    @staticmethod
    def compute_lm_loss(logits, labels, *, ignore_index=-100):
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=ignore_index)


class GenerationMixin:
    """A language model that writes on: `generate` is lucid.generation.generate.

    >>> config = lucid.models.GPT2Config(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> model = lucid.models.GPT2LMHeadModel(config).eval()
    >>> isinstance(model, lucid.models.GenerationMixin)
    True
    >>> tuple(model.generate(lucid.tensor([[1, 2, 3]]), max_new_tokens=2).shape)
    (1, 5)
    """

    def generate(self, inputs=None, generation_config=None, *, input_ids=None, **options):
        """lucid.generation.generate(self, inputs, ...); inputs may be called input_ids. Without any a text begins with the
        token that begins texts.
        """
        from ..generation import generate

        ids = inputs if inputs is not None else input_ids
        if ids is None:
            start = options.pop("bos_token_id", None)
            for settings in (generation_config, getattr(self, "generation_config", None), self.config):
                start = getattr(settings, "bos_token_id", None) if start is None else start
            if start is None:
                raise ValueError("generate needs input_ids: the model names no token that begins texts")
            ids = [[start]]
        return generate(self, ids, generation_config=generation_config, **options)


class DiffusionMixin:
    """A network that says which noise is in an image at a time, and makes images from noise with a scheduler.

    The network takes (sample, timestep) and returns `.sample`, or the tensor; config has in_channels and sample_size.

    >>> config = lucid.models.DDPMConfig(sample_size=8, base_channels=8, channel_mult=(1, 2), resnet_groups=4)
    >>> model = lucid.models.DDPMForImageGeneration(config)
    >>> out = model.generate(2, lucid.models.DDIMScheduler(), steps=3, return_intermediates=True)
    >>> tuple(out.samples.shape), len(out.intermediates)
    ((2, 3, 8, 8), 3)
    """

    def make_scheduler(self):
        """The scheduler for `generate` if none is given."""
        from .vision.generative.schedulers import DDPMScheduler

        return DDPMScheduler()

    def generate(self, count=1, scheduler=None, steps=None, generator=None, return_intermediates=False):
        """count images between -1 and 1; scheduler: DDPM's if there is none; steps: of the scheduler, all if not said.

        return_intermediates: a GenerationOutput, with the image after every step as well.
        """
        scheduler = self.make_scheduler() if scheduler is None else scheduler
        scheduler.set_timesteps(steps or scheduler.num_train_timesteps)
        config, training, between = self.config, self.training, []
        self.eval()
        with no_grad():
            x = _C.randn(count, config.in_channels, config.sample_size, config.sample_size, generator=generator)
            x = x.to(device=self.device, dtype=self.dtype)
            for t in scheduler.timesteps.tolist():
                found = self(x, _C.tensor(t, device=x.device))
                x = scheduler.step(getattr(found, "sample", found), t, x, generator=generator).prev_sample
                if return_intermediates:
                    between.append(x)
        self.train(training)
        return GenerationOutput(samples=x, intermediates=tuple(between)) if return_intermediates else x
