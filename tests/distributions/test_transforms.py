"""Transforms, constraints and the registry between them, beside PyTorch's."""

import copy
import pickle

import pytest

import lucid
from tests.distributions.families import MADE, NAN, compare, spd

X = {  # arguments of transforms
    "any": lambda m: m.tensor([[-2.0, 0.5, 1.5], [0.1, 3.0, -0.3]]),
    "positive": lambda m: m.tensor([[2.0, 0.5, 1.5], [0.1, 3.0, 0.3]]),
    "unit": lambda m: m.tensor([[0.2, 0.5, 0.9], [0.1, 0.7, 0.3]]),
    "matrix": lambda m: m.tensor([[[1.0, 2.0], [3.0, -1.0]], [[0.5, 0.1], [0.2, 0.3]]]),
}
TRANSFORMS = {
    "exp": ("any", lambda d, m: d.ExpTransform()),
    "exp inverse": ("positive", lambda d, m: d.ExpTransform().inv),
    "power": ("positive", lambda d, m: d.PowerTransform(2.0)),
    "powers": ("positive", lambda d, m: d.PowerTransform(m.tensor([2.0, -1.0, 0.5]))),
    "sigmoid": ("any", lambda d, m: d.SigmoidTransform()),
    "logit": ("unit", lambda d, m: d.SigmoidTransform().inv),
    "softplus": ("any", lambda d, m: d.SoftplusTransform()),
    "tanh": ("any", lambda d, m: d.TanhTransform()),
    "abs": ("any", lambda d, m: d.AbsTransform()),
    "affine": ("any", lambda d, m: d.AffineTransform(1.0, -2.0)),
    "affine tensors": ("any", lambda d, m: d.AffineTransform(m.tensor([1.0, 2.0, 3.0]), m.tensor([-2.0, 1.0, 0.5]))),
    "affine vectors": ("any", lambda d, m: d.AffineTransform(0.5, m.tensor([-2.0, 1.0, 0.5]), event_dim=1)),
    "affine vectors of a number": ("any", lambda d, m: d.AffineTransform(0.5, 3, event_dim=1)),
    "correlations": ("any", lambda d, m: d.CorrCholeskyTransform()),
    "softmax": ("any", lambda d, m: d.SoftmaxTransform()),
    "sticks": ("any", lambda d, m: d.StickBreakingTransform()),
    "cholesky": ("matrix", lambda d, m: d.LowerCholeskyTransform()),
    "definite": ("matrix", lambda d, m: d.PositiveDefiniteTransform()),
    "reshape": ("matrix", lambda d, m: d.ReshapeTransform((2, 2), (4,))),
    "independent": ("any", lambda d, m: d.IndependentTransform(d.ExpTransform(), 1)),
    "compose": (
        "any",
        lambda d, m: d.ComposeTransform([d.AffineTransform(0.0, 0.5), d.SigmoidTransform(), d.PowerTransform(2.0)]),
    ),
    "compose vectors": ("any", lambda d, m: d.ComposeTransform([d.TanhTransform(), d.StickBreakingTransform()])),
    "nothing": ("any", lambda d, m: d.identity_transform),
    "cat": ("any", lambda d, m: d.CatTransform([d.ExpTransform(), d.AffineTransform(1, 2)], dim=-1, lengths=[1, 2])),
    "cat of vectors": ("any", lambda d, m: d.CatTransform([d.StickBreakingTransform(), d.StickBreakingTransform()], dim=0)),
    "stack": ("any", lambda d, m: d.StackTransform([d.ExpTransform(), d.TanhTransform()], dim=0)),
    "stack last": (
        "any",
        lambda d, m: d.StackTransform([d.ExpTransform(), d.TanhTransform(), d.AffineTransform(1, 2)], dim=-1),
    ),
    "cdf": ("any", lambda d, m: d.CumulativeDistributionTransform(d.Normal(0.0, 1.0))),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("cache", [0, 1])
def test_values(name, cache):
    at, make = TRANSFORMS[name]

    def with_transform(what):
        def program(d, m):
            t = make(d, m)
            t = t.with_cache(1) if cache else t
            x = X[at](m).requires_grad_()
            return what(t, x, m)

        compare(program, rel=1e-4, absolute=1e-5)

    with_transform(lambda t, x, m: t(x))
    with_transform(lambda t, x, m: t.inv(t(x).detach()))
    with_transform(lambda t, x, m: (t.inv(t(x)) - x).abs().max() < 1e-4)
    with_transform(lambda t, x, m: t.log_abs_det_jacobian(x, t(x)))
    with_transform(lambda t, x, m: t.inv.log_abs_det_jacobian(t(x), x))
    with_transform(lambda t, x, m: m.autograd.grad(t(x).sin().sum(), x))
    with_transform(lambda t, x, m: m.autograd.grad(t.log_abs_det_jacobian(x, t(x)).sum(), x))
    for asked in ("bijective", "sign", "event_dim"):
        with_transform(lambda t, x, m, asked=asked: getattr(t, asked))
        with_transform(lambda t, x, m, asked=asked: getattr(t.inv, asked))
    with_transform(lambda t, x, m: (str(t.domain), str(t.codomain), t.domain.event_dim, t.codomain.event_dim))
    with_transform(lambda t, x, m: (t.domain.check(x), t.codomain.check(t(x))))
    with_transform(lambda t, x, m: repr(t))
    with_transform(lambda t, x, m: repr(t.inv))
    for shape in ((), (3,), (2, 3), (2, 2, 2), (5, 1), (3, 3)):
        with_transform(lambda t, x, m, shape=shape: t.forward_shape(m.Size(shape)))
        with_transform(lambda t, x, m, shape=shape: t.inverse_shape(m.Size(shape)))
    with_transform(lambda t, x, m: (t == t, t == t.inv, t.inv == t.inv, t.inv.inv == t, t != t))
    with_transform(lambda t, x, m: (t == make(m.distributions, m), make(m.distributions, m) == t, t == 3))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_jacobians(name):
    """Beside the determinant of the matrix of derivatives."""
    at, make = TRANSFORMS[name]
    t = make(lucid.distributions, lucid)
    if not t.bijective or name in ("correlations", "sticks", "compose vectors", "cat of vectors", "cdf", "definite"):
        return
    x = X[at](lucid).double()
    event = t.domain.event_dim
    jacobian = lucid.autograd.functional.jacobian(t, x).reshape(x.numel(), x.numel())
    per_element = jacobian.diagonal().abs().log() if name != "reshape" else lucid.zeros(x.numel())
    total = t.log_abs_det_jacobian(x, t(x)).sum()
    assert event <= 2 and abs((per_element.sum() - total).item()) < 1e-5


def test_copies_and_caches():
    d = lucid.distributions
    for _, make in TRANSFORMS.values():
        t = make(d, lucid)
        for new in (copy.deepcopy(t), pickle.loads(pickle.dumps(t))):
            assert repr(new) == repr(t)
    t = d.TanhTransform(cache_size=1)
    x = lucid.tensor([20.0])
    assert t.inv(t(x)) is x  # although tanh(20) is 1
    assert t.with_cache(1) is t and t.with_cache(0)._cache_size == 0
    with pytest.raises(ValueError):
        d.TanhTransform(cache_size=2)


REFUSED = {
    "reshape": lambda d, m: d.ReshapeTransform((2,), (3,)),
    "lengths": lambda d, m: d.CatTransform([d.ExpTransform()], lengths=[1, 2]),
    "parts": lambda d, m: d.StackTransform([3]),
    "size": lambda d, m: d.CatTransform([d.ExpTransform()], lengths=[2])(m.zeros(3)),
    "dim": lambda d, m: d.StackTransform([d.ExpTransform()], dim=1)(m.zeros(1)),
    "independent": lambda d, m: d.IndependentTransform(d.ExpTransform(), 2)(m.zeros(3)),
    "inverse of nothing": lambda d, m: d.AbsTransform().inv.sign,
    "sign": lambda d, m: d.StickBreakingTransform().sign,
    "diag": lambda d, m: d.utils.tril_matrix_to_vec(m.zeros(2, 2), 2),
    "registry": lambda d, m: d.biject_to(d.constraints.boolean),
    "registry type": lambda d, m: d.biject_to.register(3, 4),
    "dependent": lambda d, m: d.constraints.dependent.check(m.zeros(2)),
    "dependent dim": lambda d, m: d.constraints.dependent.event_dim,
    "independent check": lambda d, m: d.constraints.real_vector.check(m.tensor(0.0)),
    "cat check": lambda d, m: d.constraints.cat([d.constraints.real], dim=2).check(m.zeros(2)),
    "cat parts": lambda d, m: d.constraints.cat([1]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    compare(REFUSED[name])


def test_sizes_that_are_no_triangle():
    for function in (lucid.distributions.CorrCholeskyTransform(), lucid.distributions.utils.vec_to_tril_matrix):
        with pytest.raises(ValueError, match="cannot be expressed as the lower triangular part"):
            function(lucid.zeros(4))


# --- constraints ---

VALUES = {
    "numbers": lambda m: m.tensor([-1.0, 0.0, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf"), -float("inf"), NAN]),
    "integers": lambda m: m.tensor([-1, 0, 1, 2, 3]),
    "vectors": lambda m: m.tensor([[0.5, 0.5], [0.0, 1.0], [0.5, 0.6], [1.0, 2.0], [-0.5, 1.5]]),
    "matrices": lambda m: m.stack(
        [
            m.eye(2),
            m.ones(2, 2),
            m.tensor([[1.0, 0.0], [0.6, 0.8]]),
            m.tensor([[2.0, 0.0], [1.0, -1.0]]),
            spd(m, 2),
            m.tensor([[1.0, NAN], [0.0, 1.0]]),
        ]
    ),
    "rectangles": lambda m: m.ones(4, 2, 3),
}
CONSTRAINTS = {
    name: lambda c, name=name: getattr(c, name)
    for name in (
        "boolean real positive nonnegative nonnegative_integer positive_integer unit_interval real_vector simplex one_hot "
        "lower_triangular lower_cholesky corr_cholesky square symmetric"
    ).split()
}
if not hasattr(lucid.linalg, "cholesky_ex"):
    del TRANSFORMS["definite"]
else:
    CONSTRAINTS |= {name: lambda c, name=name: getattr(c, name) for name in ("positive_definite", "positive_semidefinite")}
CONSTRAINTS |= {
    "greater_than": lambda c: c.greater_than(0.5),
    "greater_than_eq": lambda c: c.greater_than_eq(0.5),
    "less_than": lambda c: c.less_than(0.5),
    "interval": lambda c: c.interval(0.5, 2.0),
    "half_open_interval": lambda c: c.half_open_interval(0.5, 2.0),
    "integer_interval": lambda c: c.integer_interval(1, 2),
    "multinomial": lambda c: c.multinomial(2),
    "independent": lambda c: c.independent(c.positive, 1),
    "mixture": lambda c: c.MixtureSameFamilyConstraint(c.positive),
    "cat": lambda c: c.cat([c.positive, c.real], dim=-1),
    "stack": lambda c: c.stack([c.positive, c.real], dim=-1),
}


@pytest.mark.parametrize("name", CONSTRAINTS)
@pytest.mark.parametrize("value", VALUES)
def test_constraints(name, value):
    compare(lambda d, m: CONSTRAINTS[name](d.constraints).check(VALUES[value](m)))
    compare(
        lambda d, m: (
            str(CONSTRAINTS[name](d.constraints)),
            CONSTRAINTS[name](d.constraints).event_dim,
            CONSTRAINTS[name](d.constraints).is_discrete,
        )
    )
    constraint = CONSTRAINTS[name](lucid.distributions.constraints)
    for v in (VALUES[value](lucid), *VALUES[value](lucid)):  # together and one by one
        try:
            inside = bool(constraint.check(v).all())
        except Exception:  # noqa: BLE001 (dimensions that do not fit; compared above)
            continue
        assert constraint.holds(v) == inside


BOUNDED = {
    "real": lambda c, m: c.real,
    "positive": lambda c, m: c.positive,
    "nonnegative": lambda c, m: c.nonnegative,
    "greater_than": lambda c, m: c.greater_than(m.tensor([1.0, 2.0, 3.0])),
    "less_than": lambda c, m: c.less_than(3.0),
    "interval": lambda c, m: c.interval(-1.0, m.tensor(2.0)),
    "unit_interval": lambda c, m: c.unit_interval,
    "half_open_interval": lambda c, m: c.half_open_interval(0.5, 1.5),
    "simplex": lambda c, m: c.simplex,
    "corr_cholesky": lambda c, m: c.corr_cholesky,
    "real_vector": lambda c, m: c.real_vector,
    "independent": lambda c, m: c.independent(c.positive, 2),
    "cat": lambda c, m: c.cat([c.positive, c.unit_interval], dim=-1, lengths=[1, 2]),
    "stack": lambda c, m: c.stack([c.positive, c.unit_interval], dim=0),
    "lower_cholesky": lambda c, m: c.lower_cholesky,
    "positive_definite": lambda c, m: c.positive_definite,
    "boolean": lambda c, m: c.boolean,
}
if not hasattr(lucid.linalg, "cholesky_ex"):
    del BOUNDED["positive_definite"]


@pytest.mark.parametrize("name", BOUNDED)
def test_registry(name):
    for registry in ("biject_to", "transform_to"):
        for x in ("any", "matrix"):

            def program(d, m, registry=registry, x=x):
                t = getattr(d, registry)(BOUNDED[name](d.constraints, m))
                y = t(X[x](m))
                return repr(t), y

            compare(program)

            def checked(d, m, registry=registry, x=x):
                constraint = BOUNDED[name](d.constraints, m)
                return constraint.check(getattr(d, registry)(constraint)(X[x](m)))

            compare(checked)


def test_parameters_can_be_fitted_freely():
    """Every parameter with a set of its own gets there from unconstrained numbers."""
    d = lucid.distributions
    for make in MADE.values():
        made = make(d, lucid)
        for constraint in made.arg_constraints.values():
            bounds = getattr(constraint, "lower_bound", 0), getattr(constraint, "upper_bound", 0)
            if constraint.is_discrete or any(isinstance(bound, lucid.Tensor) for bound in bounds):
                continue
            shape = (3,) * max(1, constraint.event_dim)
            assert constraint.holds(d.transform_to(constraint)(lucid.zeros(shape)))
