"""LeNet-5, the convolutional network of LeCun, Bottou, Bengio and Haffner, 1998.

Layers and sizes are the paper's: C1, S2, C3, S4, C5, F6, output. As is usual today, C3 sees all maps of S2, the pools have
no weights, tanh is not scaled, and the output layer is linear: its values are logits for a cross entropy.
"""

from .. import nn

_ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU}
_POOLS = {"avg": nn.AvgPool2d, "max": nn.MaxPool2d}


class LeNet(nn.Module):
    """Images of 32x32 pixels in, a score per class out.

    activation: "tanh" or "relu"; pooling: "avg" or "max".

    >>> model = lucid.models.LeNet(num_classes=26, activation="relu", pooling="max")
    >>> tuple(model(lucid.zeros(5, 1, 32, 32)).shape)
    (5, 26)
    """

    def __init__(self, num_classes=10, in_channels=1, activation="tanh", pooling="avg"):
        super().__init__()
        self.build(num_classes, in_channels, activation, pooling)

    def build(self, num_classes, in_channels, activation, pooling):
        for given, known in ((activation, _ACTIVATIONS), (pooling, _POOLS)):
            if given not in known:
                raise ValueError(f"expected one of {sorted(known)}, got {given!r}")
        active, pool = _ACTIVATIONS[activation], _POOLS[pooling]
        self.features = nn.Sequential(
            nn.Conv2d(in_channels, 6, 5),  # C1: 6 x 28 x 28
            active(),
            pool(2),  # S2: 6 x 14 x 14
            nn.Conv2d(6, 16, 5),  # C3: 16 x 10 x 10
            active(),
            pool(2),  # S4: 16 x 5 x 5
            nn.Conv2d(16, 120, 5),  # C5: 120 x 1 x 1
            active(),
        )
        self.f6 = nn.Sequential(nn.Linear(120, 84), active())
        self.classifier = nn.Linear(84, num_classes)

    def forward(self, x):
        return self.classifier(self.f6(self.features(x).flatten(1)))


def lenet_5(num_classes=10, in_channels=1, activation="tanh", pooling="avg"):
    """LeNet-5 for images of 32x32 pixels: 61,706 parameters with the settings as they are.

    >>> sum(p.numel() for p in lucid.models.lenet_5().parameters())
    61706
    """
    return LeNet(num_classes, in_channels, activation, pooling)


def lenet_5_cls(num_classes=10, in_channels=1, activation="tanh", pooling="avg"):
    """The same as lenet_5, by the name that classifiers have.

    >>> type(lucid.models.lenet_5_cls()).__name__
    'LeNet'
    """
    return LeNet(num_classes, in_channels, activation, pooling)
