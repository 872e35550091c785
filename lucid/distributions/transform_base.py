"""What transforms have in common, and transforms made of others: inverses, chains, parts of a tensor each with its own."""

import math

from .. import _C
from . import constraints
from .utils import _sum_rightmost, lazy_property

_depends = constraints.dependent_property
__all__ = [
    "CatTransform",
    "ComposeTransform",
    "IndependentTransform",
    "StackTransform",
    "Transform",
    "identity_transform",
]


class Transform:
    """A function from `domain` to `codomain`. Subclasses define `_call` and, where there is one, `_inverse` and
    `log_abs_det_jacobian`. cache_size=1 keeps the last pair of argument and result, so that an inverse that is hard to
    compute is exact for a value just made.

    >>> class Shift(lucid.distributions.Transform):
    ...     domain = codomain = lucid.distributions.constraints.real
    ...     bijective, sign = True, 1
    ...     def _call(self, x):
    ...         return x + 1
    ...     def _inverse(self, y):
    ...         return y - 1
    >>> Shift().inv(lucid.tensor(3.0))
    tensor(2.)
    """

    bijective = False
    _arguments = ()  # names of what the constructor takes besides cache_size: `with_cache` reads them

    def __init__(self, cache_size=0):
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size, self._inv, self._cached_x_y = cache_size, None, (None, None)

    def __getstate__(self):
        return self.__dict__ | {"_inv": None}

    @property
    def event_dim(self):
        """How many trailing dimensions make one element, of the domain as well as of the codomain."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self):
        """The inverse."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self):
        """1 if monotonously increasing, -1 if decreasing."""
        raise NotImplementedError

    def with_cache(self, cache_size=1):
        """The same transform with another cache."""
        if self._cache_size == cache_size:
            return self
        if not self._arguments and type(self).__init__ is not Transform.__init__:
            raise NotImplementedError(f"{type(self)}.with_cache is not implemented")
        return type(self)(*(getattr(self, name) for name in self._arguments), cache_size=cache_size)

    def __eq__(self, other):
        return self is other

    __hash__ = None

    def __call__(self, x):
        """The function's value."""
        if not self._cache_size:
            return self._call(x)
        if x is not self._cached_x_y[0] or x is None:
            self._cached_x_y = x, self._call(x)
        return self._cached_x_y[1]

    def _inv_call(self, y):
        if not self._cache_size:
            return self._inverse(y)
        if y is not self._cached_x_y[1] or y is None:
            self._cached_x_y = self._inverse(y), y
        return self._cached_x_y[0]

    def _call(self, x):
        raise NotImplementedError

    def _inverse(self, y):
        raise NotImplementedError

    def log_abs_det_jacobian(self, x, y):
        """The logarithm of |dy / dx|."""
        raise NotImplementedError

    def __repr__(self):
        return type(self).__name__ + "()"

    def forward_shape(self, shape):
        """The shape of results."""
        return shape

    def inverse_shape(self, shape):
        """The shape of arguments."""
        return shape


class _InverseTransform(Transform):
    def __init__(self, transform):
        super().__init__(transform._cache_size)
        self._inv = transform

    def __getstate__(self):
        return self.__dict__

    domain = _depends(lambda self: self._inv.codomain, is_discrete=False)
    codomain = _depends(lambda self: self._inv.domain, is_discrete=False)
    bijective = property(lambda self: self._inv.bijective)
    sign = property(lambda self: self._inv.sign)
    inv = property(lambda self: self._inv)

    def with_cache(self, cache_size=1):
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other):
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __repr__(self):
        return f"{type(self).__name__}({self._inv!r})"

    def __call__(self, x):
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x, y):
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self._inv.forward_shape(shape)


class _Plain(Transform):
    """A transform without parameters: all of a class are equal."""

    def __eq__(self, other):
        return isinstance(other, type(self))


class _Monotone(_Plain):
    bijective, sign = True, 1
    domain = constraints.real


# --- transforms of transforms ---


class ComposeTransform(Transform):
    """Several transforms, one after the other.

    >>> from lucid.distributions.transforms import AffineTransform, ComposeTransform, ExpTransform
    >>> ComposeTransform([AffineTransform(1.0, 2.0), ExpTransform()])(lucid.tensor(0.0))
    tensor(2.7183)
    """

    _arguments = ("parts",)

    def __init__(self, parts, cache_size=0):
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else parts

    def __eq__(self, other):
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    def _end(self, parts, near, far):
        """The set at the near end: that of the first part, with as many dimensions as the parts after it ask for."""
        if not parts:
            return constraints.real
        end = getattr(parts[0], near)
        event_dim = getattr(parts[-1], far).event_dim
        for part in reversed(parts):
            a, b = getattr(part, near).event_dim, getattr(part, far).event_dim
            event_dim = max(event_dim + a - b, a)
        extra = event_dim - end.event_dim
        if extra < 0:
            raise AssertionError(f"event_dim {event_dim} must be >= {near}.event_dim {end.event_dim}")
        return constraints.independent(end, extra) if extra else end

    domain = _depends(lambda self: self._end(self.parts, "domain", "codomain"), is_discrete=False)
    codomain = _depends(lambda self: self._end(self.parts[::-1], "codomain", "domain"), is_discrete=False)

    @lazy_property
    def bijective(self):
        return all(p.bijective for p in self.parts)

    @lazy_property
    def sign(self):
        return math.prod(p.sign for p in self.parts)

    @property
    def inv(self):
        if self._inv is None:
            self._inv = ComposeTransform([p.inv for p in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return _C.zeros_like(x)
        total, event_dim, last = 0, self.domain.event_dim, len(self.parts) - 1
        for i, part in enumerate(self.parts):
            result = y if i == last else part(x)
            total = total + _sum_rightmost(part.log_abs_det_jacobian(x, result), event_dim - part.domain.event_dim)
            event_dim += part.codomain.event_dim - part.domain.event_dim
            x = result
        return total

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self):
        return type(self).__name__ + "(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last batch dimensions belong to one element: logarithms of Jacobians are summed over them.

    >>> from lucid.distributions.transforms import ExpTransform, IndependentTransform
    >>> x = lucid.ones(2, 3)
    >>> IndependentTransform(ExpTransform(), 1).log_abs_det_jacobian(x, x.exp())
    tensor([3., 3.])
    """

    _arguments = ("base_transform", "reinterpreted_batch_ndims")

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0):
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def _widened(self, constraint):
        return constraints.independent(constraint, self.reinterpreted_batch_ndims)

    domain = _depends(lambda self: self._widened(self.base_transform.domain), is_discrete=False)
    codomain = _depends(lambda self: self._widened(self.base_transform.codomain), is_discrete=False)
    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)

    def _call(self, x):
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y):
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)


class _Joined(Transform):
    """Transforms for parts of a tensor along `dim`."""

    def __init__(self, tseq, dim, cache_size):
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size)
        self.transforms, self.dim = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq), dim

    bijective = property(lambda self: all(t.bijective for t in self.transforms))

    def _call(self, x):
        return self._join([t(part) for t, part in zip(self.transforms, self._parts(x), strict=True)], self.dim)

    def _inverse(self, y):
        return self._join([t.inv(part) for t, part in zip(self.transforms, self._parts(y), strict=True)], self.dim)

    def _jacobians(self, x, y):
        parts = zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        return [t.log_abs_det_jacobian(a, b) for t, a, b in parts]


class CatTransform(_Joined):
    """Transforms for stretches of a dimension, of given lengths.

    >>> from lucid.distributions.transforms import CatTransform, ExpTransform, identity_transform
    >>> CatTransform([ExpTransform(), identity_transform], lengths=[2, 1])(lucid.zeros(3))
    tensor([1., 1., 0.])
    """

    _arguments = ("transforms", "dim", "lengths")
    _join = staticmethod(_C.cat)

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})")

    @lazy_property
    def event_dim(self):
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self):
        """The size of the dimension."""
        return sum(self.lengths)

    def _parts(self, x):
        if not -x.dim() <= self.dim < x.dim():
            raise AssertionError(f"dim {self.dim} out of range for tensor with {x.dim()} dimensions")
        if x.size(self.dim) != self.length:
            raise AssertionError(f"x.size({self.dim}) = {x.size(self.dim)} must equal length {self.length}")
        return x.split(self.lengths, self.dim)

    def log_abs_det_jacobian(self, x, y):
        widths = [self.event_dim - t.event_dim for t in self.transforms]
        terms = [_sum_rightmost(term, width) for term, width in zip(self._jacobians(x, y), widths, strict=True)]
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return _C.cat(terms, dim) if dim < 0 else sum(terms)

    domain = _depends(lambda self: constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths))
    codomain = _depends(lambda self: constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths))


class StackTransform(_Joined):
    """Transforms for the slices of a dimension.

    >>> from lucid.distributions.transforms import ExpTransform, StackTransform, identity_transform
    >>> StackTransform([ExpTransform(), identity_transform], dim=1)(lucid.zeros(2, 2))
    tensor([[1., 0.],
            [1., 0.]])
    """

    _arguments = ("transforms", "dim")
    _join = staticmethod(_C.stack)

    def __init__(self, tseq, dim=0, cache_size=0):
        super().__init__(tseq, dim, cache_size)

    def _parts(self, x):
        if not -x.dim() <= self.dim < x.dim():
            raise AssertionError(f"dim {self.dim} out of range for tensor with {x.dim()} dimensions")
        if x.size(self.dim) != len(self.transforms):
            raise AssertionError(f"x.size({self.dim}) = {x.size(self.dim)} must equal len(transforms) {len(self.transforms)}")
        return x.unbind(self.dim)

    def log_abs_det_jacobian(self, x, y):
        return _C.stack(self._jacobians(x, y), self.dim)

    domain = _depends(lambda self: constraints.stack([t.domain for t in self.transforms], self.dim))
    codomain = _depends(lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim))
