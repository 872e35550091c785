"""What networks of images share: one body, and three forms of it.

A family writes one class with three steps: `trunk` (an image to a map of features, or to tokens), `pooled` (features to one
vector per image) and `scores` (the vector to logits). `forms` makes the classes people call from it: the network without a
head, the classifier that returns an object with `.logits`, and the classifier that returns the plain tensor, as
torchvision's does. All have the same keys; the layers of the head are there if `classifies` says so.
"""

import dataclasses
import re

from ...nn import functional as F
from ..base import ModelConfig, PretrainedModel
from ..mixins import ClassificationHeadMixin
from ..outputs import BaseModelOutputWithPooling, ImageClassificationOutput
from ..registry import family


@dataclasses.dataclass(frozen=True)
class ImageConfig(ModelConfig):
    """The settings that all networks of images have.

    >>> lucid.models.ResNetConfig(num_classes=10).in_channels
    3
    """

    num_classes: int = 1000
    in_channels: int = 3

    aliases = {"num_labels": "num_classes", "num_channels": "in_channels"}
    names_labels = False

    def check(self, **allowed):
        """Raise ValueError for a field that is none of the allowed values."""
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise ValueError(f"{type(self).__name__}: {name} is one of {sorted(values)}, not {getattr(self, name)!r}")


class ImageModel(PretrainedModel):
    """A network of images without its head: `last_hidden_state` and one vector per image, `pooler_output`.

    >>> out = lucid.models.resnet_18().eval()(lucid.zeros(1, 3, 32, 32))
    >>> tuple(out.last_hidden_state.shape), tuple(out.pooler_output.shape)
    ((1, 512, 1, 1), (1, 512))
    """

    classifies = False
    result = ImageClassificationOutput  # what the classifier returns

    def headless_keys(self):
        return () if self.classifies else tuple(f"^{re.escape(prefix)}" for prefix in self.head_prefixes())

    def head_prefixes(self):
        """Of the keys that a network without a head lacks: those of whole modules."""
        return {prefix.split(".")[0] + "." for prefix in self.head_keys}

    def trunk(self, x):
        raise NotImplementedError

    def pooled(self, x):
        return x.mean((2, 3))

    def scores(self, x):
        raise NotImplementedError

    def logits_of(self, x):
        return self.scores(self.pooled(self.trunk(x)))

    def forward(self, pixel_values):
        x = self.trunk(pixel_values)
        return BaseModelOutputWithPooling(last_hidden_state=x, pooler_output=self.pooled(x))


def _with_logits(self, pixel_values, labels=None):
    logits = self.logits_of(pixel_values)
    loss = None if labels is None else F.cross_entropy(logits, labels)
    return self.result(loss=loss, logits=logits)


def forms(network, example, called=None):
    """The classifier of a network (output objects), with its plain form (tensors) as the attribute `Plain`.

    example: the name of a factory, for the docstring.

    >>> lucid.models.ResNetForImageClassification.__mro__[1].__name__
    'ResNet'
    """
    name = called or f"{network.__name__}ForImageClassification"
    doc = (
        f"{network.__name__} that classifies: `logits`, and `loss` if it is given labels.\n\n"
        f"    >>> issubclass(lucid.models.{name}, lucid.models.{network.__name__}), lucid.models.is_model({example!r})\n"
        "    (True, True)\n    "
    )
    ways = {"__module__": network.__module__, "__doc__": doc, "classifies": True}
    bases = (network, ClassificationHeadMixin)
    result = type(name, bases, {**ways, "forward": getattr(network, "with_logits", _with_logits)})
    plain = {**ways, "forward": getattr(network, "plain", network.logits_of), "__qualname__": f"{name}.Plain"}
    result.Plain = type(network.__name__, bases, plain)
    return result


def image_family(network, sizes, torchvision=None, called=None):
    """The classes and factories of a family, by name: for `globals().update`.

    sizes: {name: fields}; torchvision: {its name: ours}, factories that give plain tensors.

    >>> lucid.models.list_models("resnet_18*"), lucid.models.list_models("resnet18")
    (['resnet_18', 'resnet_18_cls'], ['resnet18'])
    """
    first = next(iter(sizes))
    classifier = forms(network, f"{first}_cls", called)
    classes = {"": (network, "image-features"), "_cls": (classifier, "image-classification")}
    made = family(network.config_class, classes, sizes, plain=(classifier.Plain, torchvision or {}))
    return {classifier.__name__: classifier, **made}
