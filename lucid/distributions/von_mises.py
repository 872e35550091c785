"""The von Mises distribution: angles."""

import math

from .. import _C
from ..autograd import grad
from ..autograd.grad_mode import no_grad
from . import constraints
from .distribution import NO_SHAPE, Distribution
from .utils import lazy_property

__all__ = ["VonMises"]


_FAR = 40.0  # I0 is finite in float32 up to here, and the asymptotic series has an error below 1e-13 from here on


def _log_i0(k):
    """The logarithm of the modified Bessel function I0, which itself overflows."""
    near, far = k.clamp(max=_FAR), k.clamp(min=_FAR)
    term = total = _C.ones_like(far)
    for n in range(1, 12):
        term = term * ((2 * n - 1) ** 2 / (8.0 * n)) / far
        total = total + term
    return _C.where(k < _FAR, _C.i0(near).log(), far - 0.5 * (2 * math.pi * far).log() + total.log())


class VonMises(Distribution):
    """Angles around loc, with a density proportional to exp(concentration * cos(x - loc)).

    >>> lucid.distributions.VonMises(0.0, 1.0).log_prob(lucid.tensor(0.0))
    tensor(-1.0738)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc, concentration, validate_args=None):
        self._set(validate_args, loc=loc, concentration=concentration)

    mean = mode = property(lambda self: self.loc)

    @lazy_property
    def variance(self):
        """Of the direction: 1 - the mean of cos(x - loc), which is the derivative of log I0."""
        k = self.concentration if self.concentration.requires_grad else self.concentration.detach().requires_grad_()
        (mean,) = grad(_log_i0(k).sum(), k, create_graph=self.concentration.requires_grad)
        return 1 - mean

    def log_prob(self, value):
        self._check(value)
        angle = self.concentration * (value - self.loc).cos()
        return angle - math.log(2 * math.pi) - _log_i0(self.concentration)

    def sample(self, sample_shape=NO_SHAPE):
        """Best and Fisher's rejection (1979), all elements at once until each was accepted; in float64, as in PyTorch."""
        with no_grad():
            k = self.concentration.double()
            tau = 1 + (1 + 4 * k**2).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            r = _C.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))
            shape = self._extended_shape(sample_shape)
            x = _C.zeros(shape, dtype=_C.float64, device=k.device)
            done = _C.zeros(shape, dtype=_C.bool, device=k.device)
            while not done.all():
                u1, u2, u3 = _C.rand((3, *shape), dtype=_C.float64, device=k.device).unbind()
                z = (math.pi * u1).cos()
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                accepted = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                x = _C.where(accepted, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accepted
            return ((x + math.pi + self.loc.double()) % (2 * math.pi) - math.pi).to(self.loc.dtype)
