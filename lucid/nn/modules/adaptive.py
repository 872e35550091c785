"""A softmax over very many classes: frequent ones in a head, rare ones in clusters behind smaller projections."""

from collections import namedtuple

from ... import _C
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log probabilities of the right classes, and their mean with the sign changed: the loss.

    cutoffs: where clusters of classes begin; classes are sorted by frequency. A cluster is projected to in_features /
    div_value features first, the next one to in_features / div_value², and so on.

    >>> layer = lucid.nn.AdaptiveLogSoftmaxWithLoss(8, 100, cutoffs=[10, 40])
    >>> output, loss = layer(lucid.ones(3, 8), lucid.tensor([2, 20, 99]))
    >>> tuple(output.shape), tuple(layer.log_prob(lucid.ones(3, 8)).shape)
    ((3,), (3, 100))
    """

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None):
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        rising = cutoffs == sorted(set(cutoffs)) and all(int(c) == c for c in cutoffs)
        if not rising or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is "
                "between 1 and n_classes-1"
            )
        options = {"device": device, "dtype": dtype}
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*cutoffs, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i, (start, end) in enumerate(zip(self.cutoffs, self.cutoffs[1:]), 1):
            width = int(in_features // div_value**i)
            projection = Linear(in_features, width, bias=False, **options)
            self.tail.append(Sequential(projection, Linear(width, end - start, bias=False, **options)))

    def reset_parameters(self):
        """Draw all weights anew."""
        self.head.reset_parameters()
        for projection, classes in self.tail:
            projection.reset_parameters()
            classes.reset_parameters()

    def _check(self, input, target):  # noqa: A002
        if target.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input.dim() != target.dim() + 1:
            raise RuntimeError(
                f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with size "
                f"{input.size()}"
            )
        if target.dim() and input.size(0) != target.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")

    def forward(self, input_, target_):
        self._check(input_, target_)
        batched = target_.dim() > 0
        x, target = (input_, target_) if batched else (input_.unsqueeze(0), target_.unsqueeze(0))
        if target.numel() and not bool(((target >= 0) & (target < self.n_classes)).all()):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, "
                f"{target.max().item()}] were found. "
            )
        output, in_head = x.new_zeros(target.shape[0]), target.clone()
        for i, (start, end) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            rows = ((target >= start) & (target < end)).nonzero().squeeze(1)
            if rows.numel():
                in_head[rows] = self.shortlist_size + i
                scores = F.log_softmax(self.tail[i](x.index_select(0, rows)), dim=1)
                output = output.index_copy(0, rows, scores.gather(1, (target[rows] - start).unsqueeze(1)).squeeze(1))
        output = output + F.log_softmax(self.head(x), dim=1).gather(1, in_head.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _all_log_probs(self, x, head):
        head = F.log_softmax(head, dim=1)
        n = self.shortlist_size
        clusters = [F.log_softmax(part(x), dim=1) + head[:, n + i : n + i + 1] for i, part in enumerate(self.tail)]
        return _C.cat([head[:, :n], *clusters], 1)

    def log_prob(self, input):  # noqa: A002
        """Log probabilities of all classes."""
        return self._all_log_probs(input, self.head(input))

    def predict(self, input):  # noqa: A002
        """The most probable class of each row; only rows that look for a cluster are followed there."""
        head = self.head(input)
        best = head.argmax(1)
        beyond = best >= self.shortlist_size
        if bool(beyond.any()):
            best[beyond] = self._all_log_probs(input[beyond], head[beyond]).argmax(1)
        return best


__all__ = ["AdaptiveLogSoftmaxWithLoss"]
