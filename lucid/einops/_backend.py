"""The backend for the package einops, which looks for subclasses of its AbstractBackend."""

from functools import cache

import lucid

from . import _reduced, asnumpy


@cache  # einops does not keep it alive
def make_backend():
    """The subclass that einops finds once it exists.

    >>> from lucid.einops._backend import make_backend
    >>> make_backend().framework_name  # doctest: +SKIP
    'lucid'
    """
    from einops._backends import AbstractBackend

    class LucidBackend(AbstractBackend):
        """The functions that einops needs from a tensor library."""

        framework_name = "lucid"

        def is_appropriate_type(self, tensor):
            """Whether this backend is for an object."""
            return isinstance(tensor, lucid.Tensor)

        def from_numpy(self, x):
            """An array as a tensor that requires grad if its dtype allows."""
            tensor = lucid.from_numpy(x)
            tensor.requires_grad = self.is_float_type(tensor)
            return tensor

        def to_numpy(self, x):
            """A tensor as an array."""
            return asnumpy(x)

        def arange(self, start, stop):
            """Whole numbers."""
            return lucid.arange(start, stop)

        def reduce(self, x, operation, axes):
            """A reduction by name over dimensions."""
            return _reduced(x, operation, tuple(sorted(axes)))

        def transpose(self, x, axes):
            """Dimensions in another order."""
            return x.permute(axes)

        def stack_on_zeroth_dimension(self, tensors):
            """Tensors along a new first dimension."""
            return lucid.stack(tensors)

        def add_axis(self, x, new_position):
            """A new dimension of size one."""
            return x.unsqueeze(new_position)

        def add_axes(self, x, n_axes, pos2len):
            """New dimensions that repeat, as a view."""
            sizes = [-1] * n_axes
            for position, length in pos2len.items():
                x = x.unsqueeze(position)
                sizes[position] = length
            return x.expand(sizes)

        def tile(self, x, repeats):
            """A copy repeated along each dimension."""
            return x.repeat(repeats)

        def concat(self, tensors, axis):
            """Tensors joined along a dimension."""
            return lucid.cat(tensors, axis)

        def is_float_type(self, x):
            """Whether averages make sense."""
            return x.is_floating_point()

        def einsum(self, pattern, *x):
            """Products summed over axes."""
            return lucid.einsum(pattern, *x)

    return LucidBackend
