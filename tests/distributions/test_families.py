"""Distributions beside PyTorch's: what they say about themselves, what they draw, and what they refuse."""

import copy
import importlib
import pathlib
import pickle

import pytest
import torch

import lucid
from tests.distributions.families import MADE, NAN, compare

ASKED = ["mean", "mode", "variance", "stddev", "batch_shape", "event_shape", "has_rsample", "has_enumerate_support"]
# PyTorch's polynomials for Bessel functions have relative errors of 1e-7 or so, which logarithms and differences enlarge.
LOOSE = {"VonMises": {"rel": 1e-4, "absolute": 1e-5}}
LOOSE |= {name: {"rel": 1e-4, "absolute": 1e-4} for name in MADE if "Wishart" in name or "Multivariate" in name}
LOOSE |= {name: {"rel": 1e-4, "absolute": 1e-4} for name in MADE if "LKJ" in name}  # roots of small differences
LOOSE["TransformedDistribution"] = {"rel": 1e-4, "absolute": 1e-5}  # the inverse of a sigmoid near 1


def seen(name, what):
    compare(lambda d, m: what(MADE[name](d, m), m), **LOOSE.get(name, {}))


@pytest.mark.parametrize("name", MADE)
def test_attributes(name):
    for asked in ASKED:
        seen(name, lambda d, m, asked=asked: (getattr(d, asked), 0))
    seen(name, lambda d, m: repr(d))
    seen(name, lambda d, m: (d.entropy(), d.perplexity()))
    seen(name, lambda d, m: str(d.support))
    seen(name, lambda d, m: (d.support.event_dim, d.support.is_discrete))
    for expand in (True, False):
        seen(name, lambda d, m, expand=expand: d.enumerate_support(expand))
    for parameter in MADE[name](lucid.distributions, lucid).arg_constraints:
        seen(name, lambda d, m, parameter=parameter: (getattr(d, parameter), str(d.arg_constraints[parameter])))
    seen(name, lambda d, m: repr(d))  # now with what was computed


@pytest.mark.parametrize("name", MADE)
def test_samples_and_densities(name):
    for shape in ((), (2,), (3, 2), (40,)):
        seen(name, lambda d, m, shape=shape: d.sample(shape))
        seen(name, lambda d, m, shape=shape: d.rsample(shape))
        seen(name, lambda d, m, shape=shape: d.log_prob(d.sample(shape)))
    seen(name, lambda d, m: d.sample_n(2))
    seen(name, lambda d, m: d.cdf(d.sample((4,))))
    seen(name, lambda d, m: d.icdf(m.tensor([0.25, 0.5]).reshape((2,) + (1,) * len(d.batch_shape))))
    seen(name, lambda d, m: d.log_prob(d.sample() - 0.5))
    seen(name, lambda d, m: d.log_prob(m.full((7,), -1.5)))
    seen(name, lambda d, m: d.log_prob(m.full(d.batch_shape + d.event_shape, NAN)))
    seen(name, lambda d, m: d.log_prob(1.0))


@pytest.mark.parametrize("name", MADE)
def test_expanded(name):
    def larger(d):
        return d.expand((2, *d.batch_shape))

    for asked in ("batch_shape", "event_shape", "mean", "variance", "mode"):
        seen(name, lambda d, m, asked=asked: (getattr(larger(d), asked), 0))
    seen(name, lambda d, m: repr(larger(d)))
    seen(name, lambda d, m: larger(larger(d)).sample((3,)))
    seen(name, lambda d, m: larger(d).log_prob(d.sample((2,))))
    if "Multinomial" not in name:  # PyTorch forgets a part
        seen(name, lambda d, m: larger(d).entropy())
    seen(name, lambda d, m: (d.mean, d.variance, larger(d).variance))  # what was computed before is not kept
    for parameter in MADE[name](lucid.distributions, lucid).arg_constraints:
        seen(name, lambda d, m, parameter=parameter: getattr(larger(d), parameter))


@pytest.mark.parametrize("name", MADE)
def test_copies(name):
    d = MADE[name](lucid.distributions, lucid)
    d.log_prob(d.sample())  # computes what it computes once
    for new in (copy.deepcopy(d), copy.copy(d), pickle.loads(pickle.dumps(d))):
        assert repr(new) == repr(d)
        samples = []
        for source in (d, new):
            lucid.manual_seed(1)
            samples.append(source.sample((3,)))
        assert lucid.equal(*samples)
        assert lucid.equal(d.log_prob(samples[0]), new.log_prob(samples[0]))


def leaves_of(name, m):
    """A distribution made of leaves that want gradients, and the leaves: the factories of tensors are watched."""
    leaves = []

    class Watched:
        def __getattr__(self, attribute):
            found = getattr(m, attribute)
            if attribute not in ("tensor", "zeros", "ones"):
                return found

            def make(*args, **kwargs):
                leaves.append(found(*args, **kwargs).requires_grad_())
                return leaves[-1]

            return make

    return MADE[name](m.distributions, Watched()), leaves


# PyTorch's Wishart writes samples into tensors that its gradients need.
@pytest.mark.parametrize("name", [n for n in MADE if "Wishart" not in n])
def test_gradients(name):
    def program(d, m):
        made, leaves = leaves_of(name, m)
        x = (made.rsample if made.has_rsample else made.sample)((4,))
        loss = made.log_prob(x.detach()).clamp(-50, 50).sum()
        if made.has_rsample:
            loss = loss + x.clamp(-20, 20).sin().sum()
        return [g for g in m.autograd.grad(loss, leaves, allow_unused=True) if g is not None] if leaves else 0

    # PyTorch's gradients of gamma and beta variables are approximations of 1e-3.
    gammas = "Gamma Chi2 Fisher StudentT Beta Dirichlet Wishart Mixture".split()
    loose = {"rel": 3e-3, "absolute": 3e-3} if any(g in name for g in gammas) else {"rel": 1e-4, "absolute": 1e-4}
    compare(program, **loose)


REFUSED = {
    "scale": lambda d, m: d.Normal(0.0, -1.0),
    "scale, unchecked": lambda d, m: d.Normal(0.0, -1.0, validate_args=False).scale,
    "nan": lambda d, m: d.Normal(NAN, 1.0),
    "half of a negative scale": lambda d, m: d.HalfNormal(-1.0),
    "strings": lambda d, m: d.Normal("a", 1.0),
    "interval": lambda d, m: d.Uniform(1.0, 0.0),
    "rate": lambda d, m: d.Exponential(0.0),
    "probability": lambda d, m: d.Bernoulli(1.5),
    "both": lambda d, m: d.Bernoulli(0.5, 0.5),
    "neither": lambda d, m: d.Categorical(),
    "a number of classes": lambda d, m: d.Categorical(m.tensor(0.5)),
    "negative probabilities": lambda d, m: d.Categorical(m.tensor([-1.0, 2.0])),
    "nan logits": lambda d, m: d.Categorical(logits=m.tensor([NAN, 2.0])),
    "class": lambda d, m: d.Categorical(m.ones(3)).log_prob(m.tensor(3)),
    "half a class": lambda d, m: d.Categorical(m.ones(3)).log_prob(m.tensor(0.5)),
    "success": lambda d, m: d.Geometric(0.0),
    "dims": lambda d, m: d.Independent(d.Normal(0.0, 1.0), 1),
    "no pair": lambda d, m: d.kl_divergence(d.Normal(0.0, 1.0), d.Poisson(1.0)),
    "no such attribute": lambda d, m: d.Bernoulli(0.5).bogus,
    "base": lambda d, m: d.Distribution(validate_args=False).mean,
    "concentration": lambda d, m: d.Gamma(m.tensor([1.0, 0.0]), 1.0),
    "negative gamma": lambda d, m: d.Gamma(1.0, 1.0).log_prob(m.tensor(-1.0)),
    "scalar concentration": lambda d, m: d.Dirichlet(m.tensor(1.0)),
    "off the simplex": lambda d, m: d.Dirichlet(m.ones(2)).log_prob(m.tensor([0.5, 0.6])),
    "degrees": lambda d, m: d.StudentT(0.0),
    "chi2": lambda d, m: d.Chi2(m.tensor(-1.0)),
    "fisher": lambda d, m: d.FisherSnedecor(1.0, -1.0),
    "beta": lambda d, m: d.Beta(1.0, -1.0),
    "more than all": lambda d, m: d.Binomial(3, 0.5).log_prob(m.tensor(4.0)),
    "half a trial": lambda d, m: d.Binomial(2.5, 0.5),
    "different counts": lambda d, m: d.Binomial(m.tensor([2.0, 3.0]), 0.5).enumerate_support(),
    "certain success": lambda d, m: d.NegativeBinomial(3, 1.0),
    "counts of tensors": lambda d, m: d.Multinomial(m.tensor([1]), m.ones(2)),
    "too many": lambda d, m: d.Multinomial(3, m.ones(2)).log_prob(m.tensor([2.0, 2.0])),
    "below scale": lambda d, m: d.Pareto(1.0, 1.0).log_prob(m.tensor(0.5)),
    "beyond the end": lambda d, m: d.GeneralizedPareto(0.0, 1.0, -1.0).log_prob(m.tensor(1.5)),
    "lkj": lambda d, m: d.LKJCholesky(1),
    "not a factor": lambda d, m: d.LKJCholesky(2).log_prob(m.tensor([[1.0, 0.0], [1.0, 1.0]])),
    "mixture of normals": lambda d, m: d.MixtureSameFamily(d.Normal(0.0, 1.0), d.Normal(m.zeros(2), 1.0)),
    "mixture of numbers": lambda d, m: d.MixtureSameFamily(d.Categorical(m.ones(2)), 3),
    "mixture of three by two": lambda d, m: d.MixtureSameFamily(d.Categorical(m.ones(2)), d.Normal(m.zeros(3), 1.0)),
    "mixture batch": lambda d, m: d.MixtureSameFamily(d.Categorical(m.ones(3, 2)), d.Normal(m.zeros(4, 2), 1.0)),
    "no transforms": lambda d, m: d.TransformedDistribution(d.Normal(0.0, 1.0), 3),
    "not transforms": lambda d, m: d.TransformedDistribution(d.Normal(0.0, 1.0), [3]),
    "too few dims": lambda d, m: d.TransformedDistribution(d.Normal(0.0, 1.0), d.StickBreakingTransform()),
    "a matrix too many": lambda d, m: d.MultivariateNormal(m.zeros(2), m.eye(2), m.eye(2)),
    "scalar loc": lambda d, m: d.MultivariateNormal(m.tensor(0.0), m.eye(2)),
    "vector covariance": lambda d, m: d.MultivariateNormal(m.zeros(2), m.ones(2)),
    "low rank loc": lambda d, m: d.LowRankMultivariateNormal(m.tensor(0.0), m.ones(2, 1), m.ones(2)),
    "low rank factor": lambda d, m: d.LowRankMultivariateNormal(m.zeros(2), m.ones(3, 1), m.ones(2)),
    "low rank diag": lambda d, m: d.LowRankMultivariateNormal(m.zeros(2), m.ones(2, 1), m.ones(3)),
    "low rank batch": lambda d, m: d.LowRankMultivariateNormal(m.zeros(2, 2), m.ones(3, 2, 1), m.ones(2)),
    "wishart df": lambda d, m: d.Wishart(1.0, m.eye(3)),
    "wishart without matrix": lambda d, m: d.Wishart(1.0),
    "event shape": lambda d, m: d.Dirichlet(m.ones(3)).log_prob(m.ones(2) / 2),
    "batch shape": lambda d, m: d.Normal(m.zeros(3), 1.0).log_prob(m.ones(2)),
}
TEXTS = {  # messages with numbers: PyTorch's, word by word
    "scale": lambda d, m: d.Normal(m.tensor([1.0, 2.0]), m.tensor([1.0, -1.0])),
    "scalar": lambda d, m: d.Gamma(1.0, 0.0),
    "support": lambda d, m: d.Beta(1.0, 1.0).log_prob(m.tensor([0.5, 1.5])),
    "classes": lambda d, m: d.Categorical(m.ones(2, 3)).log_prob(m.tensor([1, 3])),
    "simplex": lambda d, m: d.Dirichlet(m.ones(2)).log_prob(m.tensor([0.5, 0.6])),
    "event": lambda d, m: d.Dirichlet(m.ones(3)).log_prob(m.ones(2) / 2),
    "batch": lambda d, m: d.Normal(m.zeros(3), 1.0).log_prob(m.ones(2)),
    "either": lambda d, m: d.Bernoulli(0.5, 0.5),
    "geometric": lambda d, m: d.Geometric(0.0),
    "count": lambda d, m: d.Binomial(-1, 0.5),
    "pair": lambda d, m: d.kl_divergence(d.Normal(0.0, 1.0), d.Poisson(1.0)),
    "value": lambda d, m: d.Normal(0.0, 1.0).log_prob(1.0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    compare(REFUSED[name])


@pytest.mark.parametrize("name", TEXTS)
def test_messages(name):
    said = []
    for m in (lucid, torch):
        with pytest.raises((ValueError, NotImplementedError)) as caught:
            TEXTS[name](m.distributions, m)
        said.append(" ".join(str(caught.value).replace("torch.", "lucid.").split()))
    assert said[0] == said[1]


def test_validation_can_be_switched_off():
    for m in (lucid, torch):
        m.distributions.Distribution.set_default_validate_args(False)
        try:
            assert m.distributions.Normal(0.0, -1.0).scale.item() == -1
        finally:
            m.distributions.Distribution.set_default_validate_args(True)
        with pytest.raises(ValueError):
            m.distributions.Distribution.set_default_validate_args(None)
        off = m.distributions.Exponential(1.0, validate_args=False)
        assert off.log_prob(m.tensor(-1.0)).item() == 1  # not checked either


def test_names():
    folder = pathlib.Path(torch.distributions.__file__).parent
    for file in folder.glob("*.py"):
        if file.stem != "__init__":
            theirs = importlib.import_module(f"torch.distributions.{file.stem}")
            mine = importlib.import_module(f"lucid.distributions.{file.stem}")
            assert mine is getattr(lucid.distributions, file.stem)
            missing = [name for name in getattr(theirs, "__all__", ()) if not hasattr(mine, name)]
            assert not missing, (file.stem, missing)
    assert set(torch.distributions.__all__) <= set(lucid.distributions.__all__)
    assert set(torch.distributions.constraints.__all__) <= set(lucid.distributions.constraints.__all__)


def test_subclasses_written_for_pytorch():
    """A family of one's own that expands itself as PyTorch's families do."""
    for m in (lucid, torch):
        d = m.distributions

        class Shifted(d.Distribution):
            arg_constraints = {"by": d.constraints.real}
            support = d.constraints.real

            def __init__(self, by, validate_args=None, d=d):
                (self.by,) = d.utils.broadcast_all(by)
                super().__init__(self.by.shape, validate_args=validate_args)

            def expand(self, batch_shape, _instance=None):
                new = self._get_checked_instance(Shifted, _instance)
                new.by = self.by.expand(batch_shape)
                super(Shifted, new).__init__(batch_shape, validate_args=False)
                new._validate_args = self._validate_args
                return new

            def rsample(self, sample_shape=(), m=m):
                return self.by + m.rand(self._extended_shape(sample_shape))

            def log_prob(self, value):
                if self._validate_args:
                    self._validate_sample(value)
                return value * 0

        made = Shifted(m.tensor([1.0, 2.0])).expand((3, 2))
        assert made.sample((4,)).shape == (4, 3, 2) and made.log_prob(m.zeros(2)).shape == (2,)
        with pytest.raises(ValueError):
            made.log_prob(m.tensor([NAN, 1.0]))

        class Incomplete(Shifted):
            def __init__(self):
                super().__init__(0.0)

        with pytest.raises(NotImplementedError):
            Incomplete().expand((2,))
