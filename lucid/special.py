"""Special functions by the names that SciPy and PyTorch's `torch.special` give them. Some are ops of the main namespace too.

>>> import lucid
>>> lucid.special.expit(lucid.tensor([0.0, 2.0]))
tensor([0.5000, 0.8808])
>>> lucid.special.gammaln(lucid.tensor([1.0, 5.0]))
tensor([0.0000, 3.1781])
>>> lucid.special.bessel_j0(lucid.tensor([0.0, 1.0, 10.0]))
tensor([ 1.0000,  0.7652, -0.2459])
"""

from . import _C
from ._C import (
    digamma,
    erf,
    erfc,
    erfinv,
    exp2,
    expm1,
    i0,
    log1p,
    log_softmax,
    logit,
    logsumexp,
    polygamma,
    round,  # noqa: A004 (PyTorch's name)
    sinc,
    softmax,
    xlogy,
)
from ._C import digamma as psi
from ._C import igamma as gammainc
from ._C import igammac as gammaincc
from ._C import lgamma as gammaln
from ._C import mvlgamma as multigammaln
from ._C import sigmoid as expit

_own = {key.removeprefix("special."): op for key, op in _C._namespaced.items() if key.startswith("special.")}
globals().update(_own)  # the ops that are here only: engine/ops/elementwise/bessel.c

__all__ = [
    *_own,
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0",
    "log1p",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "polygamma",
    "psi",
    "round",
    "sinc",
    "softmax",
    "xlogy",
]
