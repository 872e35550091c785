"""Embeddings: rows of a table by index."""

from ... import _C
from ...autograd import no_grad
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module


def _table(shape, weight, freeze, device, dtype):
    if weight is None:
        return Parameter(_C.empty(shape, device=device, dtype=dtype), requires_grad=not freeze)
    if list(weight.shape) != list(shape):
        raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
    return Parameter(weight, requires_grad=not freeze)


def _padding(padding_idx, n):
    if padding_idx is None:
        return None
    if not -n <= padding_idx < n:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx % n


class _Embedding(Module):
    """The table and its settings."""

    def reset_parameters(self):
        """Draw the rows anew; the row for padding is zero."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self):
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, **options):
        """A layer with a given table; freeze: it is not trained."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        made = cls(rows, columns, _weight=embeddings, **options)
        made.weight.requires_grad = not freeze
        return made


class Embedding(_Embedding):
    """The row of a table for every index of the input.

    >>> layer = lucid.nn.Embedding(10, 3)
    >>> tuple(layer(lucid.tensor([[1, 2, 4, 5], [4, 3, 2, 9]])).shape)
    (2, 4, 3)
    """

    __constants__ = ["num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse"]

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
        _weight=None,
        _freeze=False,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = _padding(padding_idx, num_embeddings)
        self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse = max_norm, norm_type, scale_grad_by_freq, sparse
        self.weight = _table((num_embeddings, embedding_dim), _weight, _freeze, device, dtype)
        if _weight is None:
            self.reset_parameters()

    def forward(self, input):  # noqa: A002
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self):
        said = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            said += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            said += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            said += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            said += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        return said


class EmbeddingBag(_Embedding):
    """Sums, means or maxima of rows of a table, per bag of indices.

    >>> bags = lucid.nn.EmbeddingBag(10, 3, mode="sum")
    >>> tuple(bags(lucid.tensor([1, 2, 4, 5]), lucid.tensor([0, 3])).shape)
    (2, 3)
    """

    __constants__ = [
        "num_embeddings",
        "embedding_dim",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "mode",
        "sparse",
        "include_last_offset",
        "padding_idx",
    ]

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        mode="mean",
        sparse=False,
        _weight=None,
        include_last_offset=False,
        padding_idx=None,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.padding_idx = _padding(padding_idx, num_embeddings)
        self.weight = _table((num_embeddings, embedding_dim), _weight, False, device, dtype)
        if _weight is None:
            self.reset_parameters()
        self.mode, self.sparse, self.include_last_offset = mode, sparse, include_last_offset

    def forward(self, input, offsets=None, per_sample_weights=None):  # noqa: A002
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self):
        said = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            said += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            said += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            said += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        said += f", mode={self.mode!r}"
        if self.padding_idx is not None:
            said += f", padding_idx={self.padding_idx}"
        return said


__all__ = ["Embedding", "EmbeddingBag"]
