"""Networks, ready to train.

>>> model = lucid.models.lenet_5()
>>> tuple(model(lucid.zeros(2, 1, 32, 32)).shape)
(2, 10)
"""

from .lenet import LeNet, lenet_5

__all__ = ["LeNet", "lenet_5"]
