"""Optimizers and schedules of learning rates.

>>> model = lucid.nn.Linear(2, 1)
>>> optimizer = lucid.optim.AdamW(model.parameters(), lr=0.01)
>>> schedule = lucid.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
>>> for _ in range(3):
...     optimizer.zero_grad()
...     model(lucid.ones(4, 2)).square().mean().backward()
...     optimizer.step()
...     schedule.step()
"""

from . import lr_scheduler
from ._stateless import swap_in_optimizer_params_and_state
from .adagrad import Adadelta, Adafactor, Adagrad, RMSprop
from .adam import Adam, Adamax, AdamW, NAdam, RAdam, SparseAdam
from .lbfgs import LBFGS
from .lr_scheduler import (
    ChainedScheduler,
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    CyclicLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    LRScheduler,
    MultiplicativeLR,
    MultiStepLR,
    NoamScheduler,
    OneCycleLR,
    PolynomialLR,
    ReduceLROnPlateau,
    SequentialLR,
    StepLR,
)
from .muon import Muon
from .optimizer import Optimizer
from .sgd import ASGD, SGD, Rprop


def __getattr__(name):
    if name == "swa_utils":
        from importlib import import_module

        return import_module("lucid.optim.swa_utils")
    from .._declared.instead import MissingName

    raise MissingName("optim", name)


__all__ = [
    "ASGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LBFGS",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "Muon",
    "NAdam",
    "NoamScheduler",
    "OneCycleLR",
    "Optimizer",
    "PolynomialLR",
    "RAdam",
    "RMSprop",
    "ReduceLROnPlateau",
    "Rprop",
    "SGD",
    "SequentialLR",
    "SparseAdam",
    "StepLR",
    "lr_scheduler",
    "swap_in_optimizer_params_and_state",
]
