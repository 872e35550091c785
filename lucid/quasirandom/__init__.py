"""Quasi-random points: Sobol sequences, plain and scrambled, with PyTorch's numbers.

>>> lucid.quasirandom.SobolEngine(2).draw(4)
tensor([[0.0000, 0.0000],
        [0.5000, 0.5000],
        [0.7500, 0.2500],
        [0.2500, 0.7500]])

A dimension has 30 direction numbers v_1, v_2, ..., integers below 2^30. Point n is the exclusive or of those v_i whose
bit is set in the Gray code of n, over 2^30. In Gray codes the second half of a block repeats the first in reverse with
one bit more, so that a block of points doubles with one exclusive or, and all later blocks are the first one, shifted.
`_numbers.py` holds the polynomials and the first numbers of each dimension, from which a recurrence gives the rest.

Scrambling multiplies every direction number, as a vector of bits, by a random lower triangular matrix, and shifts all
points by a random number; with the same seed both are PyTorch's.
"""

from .. import _C

__all__ = ["SobolEngine"]

_BITS = 30


def _initialize_state_(state, dimension):
    """Write the direction numbers of the first dimensions into a matrix (dimension, 30) of int64."""
    from ._numbers import dimensions

    rows = [[1 << (_BITS - 1 - j) for j in range(_BITS)]]
    for polynomial, v in dimensions(dimension - 1):
        degree = len(v)
        for j in range(degree, _BITS):
            new = v[j - degree]
            for k in range(1, degree + 1):
                if polynomial >> (degree - k) & 1:
                    new ^= v[j - k] << k
            v.append(new)
        rows.append([number << (_BITS - 1 - j) for j, number in enumerate(v)])
    return state.copy_(_C.tensor(rows, dtype=state.dtype))


def _scramble_(state, triangles, dimension):
    """Multiply the direction numbers, as vectors of bits, by matrices (dimension, 30, 30) of bits, with ones on the
    diagonal."""
    places = _C.arange(_BITS - 1, -1, -1)
    matrices = triangles.to(_C.float32)
    matrices.diagonal(0, -2, -1).fill_(1)
    bits = (state.unsqueeze(1) >> places.reshape(1, _BITS, 1)) & 1  # (dimension, bit, number)
    scrambled = (matrices @ bits.to(_C.float32)).to(_C.int64) & 1
    return state.copy_((scrambled << places.reshape(1, _BITS, 1)).sum(1))


def _gray(index):
    return index ^ (index >> 1)


def _check_left(points):
    if points >= 1 << _BITS:
        raise ValueError(f"Sobol sequences have 2^{_BITS} points; number {points} was asked for")


def _draw(quasi, n, sobolstate, dimension, num_generated, dtype=None):
    """The n points after the one of index `num_generated`, which `quasi` holds, and the state after them."""
    _check_left(num_generated + n)
    dtype = dtype or _C.get_default_dtype()
    if n == 0:
        return _C.empty(0, dimension, dtype=dtype), quasi
    first, end = num_generated + 1, num_generated + n + 1
    low = (n - 1).bit_length()  # bits of an index within a block
    block = _C.zeros(1 << low, dimension, dtype=quasi.dtype)  # points of the Gray codes of 0, 1, ...
    for bit in range(low):
        size = 1 << bit  # codes of the second half are those of the first, in reverse, with one bit more
        _C.bitwise_xor(block[:size].flip(0), sobolstate[:, bit], out=block[size : 2 * size])
    points, at = _C.empty(n, dimension, dtype=quasi.dtype), first
    while at < end:
        begin = at >> low << low
        stop = min(begin + (1 << low), end)
        step = _fast_forward_(quasi.clone(), begin - num_generated, sobolstate, dimension, num_generated)
        _C.bitwise_xor(block[at - begin : stop - begin], step, out=points[at - first : stop - first])
        at = stop
    return points.to(dtype) * 2.0**-_BITS, points[-1].clone()


def _fast_forward_(quasi, n, sobolstate, dimension, num_generated):
    """Move the state over n points."""
    _check_left(num_generated + n)
    code = _gray(num_generated + n) ^ _gray(num_generated)
    for bit in range(code.bit_length()):
        if code >> bit & 1:
            quasi ^= sobolstate[:, bit]
    return quasi


class SobolEngine:
    """A Sobol sequence in `dimension` dimensions (up to 1111): points in [0, 1) that fill the cube more evenly than
    random ones.

    `scramble=True` randomizes the sequence and keeps its evenness; `seed` makes that repeatable, else the default
    generator decides.

    >>> engine = lucid.quasirandom.SobolEngine(3, scramble=True, seed=0)
    >>> engine.draw(2).shape, engine.fast_forward(6).draw_base2(3).shape
    (lucid.Size([2, 3]), lucid.Size([8, 3]))
    """

    MAXBIT = _BITS
    MAXDIM = 1111

    def __init__(self, dimension, scramble=False, seed=None):
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed, self.scramble, self.dimension = seed, scramble, dimension
        self.sobolstate = _initialize_state_(_C.zeros(dimension, _BITS, dtype=_C.int64), dimension)
        self.shift = _C.zeros(dimension, dtype=_C.int64)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**_BITS).reshape(1, -1)
        self.num_generated = 0

    def _scramble(self):
        generator = None
        if self.seed is not None:
            generator = _C.Generator()
            generator.manual_seed(self.seed)
        bits = _C.randint(2, (self.dimension, _BITS), generator=generator)
        self.shift = (bits << _C.arange(_BITS)).sum(1)
        triangles = _C.randint(2, (self.dimension, _BITS, _BITS), generator=generator).tril()
        _scramble_(self.sobolstate, triangles, self.dimension)

    def draw(self, n=1, out=None, dtype=None):
        """The next n points, a tensor (n, dimension).

        >>> lucid.quasirandom.SobolEngine(1).draw(3).flatten().tolist()
        [0.0, 0.5, 0.75]
        """
        dtype = dtype or _C.get_default_dtype()
        first = self.num_generated == 0  # point 0 is the shift itself
        before = 0 if first else self.num_generated - 1
        result, self.quasi = _draw(self.quasi, n - first, self.sobolstate, self.dimension, before, dtype)
        if first:
            result = _C.cat([self._first_point.to(dtype), result], -2)
        self.num_generated += n
        return result if out is None else out.resize_as_(result).copy_(result)

    def draw_base2(self, m, out=None, dtype=None):
        """The next 2^m points; all points drawn must then be a power of 2, which keeps the sequence balanced.

        >>> engine = lucid.quasirandom.SobolEngine(1)
        >>> engine.draw_base2(2).shape
        lucid.Size([4, 1])
        >>> engine.draw_base2(3)
        Traceback (most recent call last):
        ValueError: 4 points were drawn, 8 more make 12: no power of 2, so they are not balanced; draw() gives any number
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                f"{self.num_generated} points were drawn, {n} more make {total}: no power of 2, so they are not balanced; "
                "draw() gives any number"
            )
        return self.draw(n, out, dtype)

    def reset(self):
        """Begin again.

        >>> engine = lucid.quasirandom.SobolEngine(1)
        >>> engine.draw(2).equal(engine.reset().draw(2))
        True
        """
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n):
        """Leave out n points.

        >>> lucid.quasirandom.SobolEngine(1).fast_forward(2).draw().item()
        0.75
        """
        first = self.num_generated == 0
        before = 0 if first else self.num_generated - 1
        _fast_forward_(self.quasi, n - first, self.sobolstate, self.dimension, before)
        self.num_generated += n
        return self

    def __repr__(self):
        settings = [f"dimension={self.dimension}"]
        settings += ["scramble=True"] if self.scramble else []
        settings += [f"seed={self.seed}"] if self.seed is not None else []
        return f"SobolEngine({', '.join(settings)})"
