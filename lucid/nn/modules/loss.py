"""Losses as modules."""

from .. import functional as F
from ._base.layer import layer, names_of
from .module import Module

_OLD = {(True, True): "mean", (True, False): "sum"}  # of (reduce, size_average)


def _reduction(size_average, reduce, reduction):
    """The reduction that the deprecated arguments size_average and reduce mean, if they are given."""
    if size_average is None and reduce is None:
        return reduction
    import warnings

    reduce, size_average = reduce is None or reduce, size_average is None or size_average
    result = _OLD.get((bool(reduce), bool(size_average)), "none")
    warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{result}' instead.", stacklevel=4)
    return result


class _Loss(Module):
    """A loss with a reduction: 'mean', 'sum' or 'none'."""

    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        super().__init__()
        self.reduction = _reduction(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    """A loss with a weight per class."""

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


_OLD_FORM = "size_average=None, reduce=None, reduction='mean'"


def _loss(name, function, parameters, inputs, doc, base=_Loss):
    """A class that calls a function of nn.functional with its settings by name; `base` keeps reduction and weight."""
    names = names_of(parameters)
    call = ", ".join([inputs, *(f"{n}=self.{n}" for n in names if n not in ("size_average", "reduce"))])
    to_base = [n for n in names if n in ("weight", "size_average", "reduce", "reduction")]
    return layer(name, function, parameters, doc=doc, inputs=inputs, call=call, base=base, to_base=to_base)


# name, function, settings, inputs, what it is
_ROWS = [
    (
        "L1Loss",
        "l1_loss",
        _OLD_FORM,
        "input, target",
        "The mean of |input - target|."
        "\n\n>>> lucid.nn.L1Loss()(lucid.tensor([1.0, 2.0]), lucid.tensor([1.5, 0.0]))\ntensor(1.2500)",
    ),
    (
        "MSELoss",
        "mse_loss",
        _OLD_FORM,
        "input, target",
        "The mean of (input - target)²."
        "\n\n>>> lucid.nn.MSELoss()(lucid.tensor([1.0, 2.0]), lucid.tensor([1.5, 0.0]))\ntensor(2.1250)",
    ),
    (
        "SmoothL1Loss",
        "smooth_l1_loss",
        _OLD_FORM + ", beta=1.0",
        "input, target",
        "Squares for differences below beta, absolute values above."
        "\n\n>>> lucid.nn.SmoothL1Loss()(lucid.tensor([1.0, 2.0]), lucid.tensor([1.5, 0.0]))\ntensor(0.8125)",
    ),
    (
        "KLDivLoss",
        "kl_div",
        _OLD_FORM + ", log_target=False",
        "input, target",
        "How far a distribution is from a target; input: its logarithm."
        '\n\n>>> lucid.nn.KLDivLoss(reduction="batchmean")(lucid.tensor([[0.5, 0.5]]).log(), lucid.tensor([[0.9, 0.1]]))'
        "\ntensor(0.3681)",
    ),
    (
        "MultiLabelMarginLoss",
        "multilabel_margin_loss",
        _OLD_FORM,
        "input, target",
        "Margins between the classes of an example and all others."
        "\n\n>>> lucid.nn.MultiLabelMarginLoss()(lucid.tensor([[0.1, 0.2, 0.4, 0.8]]), lucid.tensor([[3, 0, -1, 1]]))"
        "\ntensor(0.8500)",
    ),
    (
        "SoftMarginLoss",
        "soft_margin_loss",
        _OLD_FORM,
        "input, target",
        "The logistic loss of targets 1 and -1."
        "\n\n>>> lucid.nn.SoftMarginLoss()(lucid.tensor([1.0, -2.0]), lucid.tensor([1.0, -1.0]))\ntensor(0.2201)",
    ),
    (
        "HingeEmbeddingLoss",
        "hinge_embedding_loss",
        "margin=1.0, " + _OLD_FORM,
        "input, target",
        "Distances: small for targets 1, above a margin for -1."
        "\n\n>>> lucid.nn.HingeEmbeddingLoss()(lucid.tensor([0.5, 0.2]), lucid.tensor([1.0, -1.0]))\ntensor(0.6500)",
    ),
    (
        "CosineEmbeddingLoss",
        "cosine_embedding_loss",
        "margin=0.0, " + _OLD_FORM,
        "input1, input2, target",
        "Cosines: near 1 for targets 1, below a margin for -1."
        "\n\n>>> lucid.nn.CosineEmbeddingLoss()(lucid.tensor([[1.0, 0.0]]), lucid.tensor([[0.0, 1.0]]), lucid.tensor([1.0]))"
        "\ntensor(1.)",
    ),
    (
        "MarginRankingLoss",
        "margin_ranking_loss",
        "margin=0.0, " + _OLD_FORM,
        "input1, input2, target",
        "input1 above input2 by a margin for targets 1, below for -1."
        "\n\n>>> lucid.nn.MarginRankingLoss()(lucid.tensor([1.0]), lucid.tensor([3.0]), lucid.tensor([1.0]))\ntensor(2.)",
    ),
]
globals().update({row[0]: _loss(*row) for row in _ROWS})

HuberLoss = _loss(
    "HuberLoss",
    "huber_loss",
    "reduction='mean', delta=1.0",
    "input, target",
    "Squares for small differences, straight lines above delta."
    "\n\n>>> lucid.nn.HuberLoss()(lucid.tensor([1.0, 2.0]), lucid.tensor([1.5, 0.0]))\ntensor(0.8125)",
)
_WEIGHTED = [
    (
        "BCELoss",
        "binary_cross_entropy",
        "weight=None, " + _OLD_FORM,
        "input, target",
        "Binary cross entropy of probabilities."
        "\n\n>>> lucid.nn.BCELoss()(lucid.tensor([0.9, 0.2]), lucid.tensor([1.0, 0.0]))\ntensor(0.1643)",
    ),
    (
        "MultiLabelSoftMarginLoss",
        "multilabel_soft_margin_loss",
        "weight=None, " + _OLD_FORM,
        "input, target",
        "Binary cross entropy of each class, averaged."
        "\n\n>>> lucid.nn.MultiLabelSoftMarginLoss()(lucid.tensor([[1.0, -1.0]]), lucid.tensor([[1.0, 0.0]]))\ntensor(0.3133)",
    ),
]
globals().update({row[0]: _loss(*row, base=_WeightedLoss) for row in _WEIGHTED})


class BCEWithLogitsLoss(_WeightedLoss):
    """Binary cross entropy of logits.

    >>> lucid.nn.BCEWithLogitsLoss()(lucid.tensor([2.0, -1.0]), lucid.tensor([1.0, 0.0]))
    tensor(0.2201)
    """

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input, target):  # noqa: A002
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class NLLLoss(_WeightedLoss):
    """The negative logarithm of the probability of the right class; input: logarithms.

    >>> lucid.nn.NLLLoss()(lucid.tensor([[-0.1, -2.4]]), lucid.tensor([0]))
    tensor(0.1000)
    """

    __constants__ = ["ignore_index", "reduction"]

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input, target):  # noqa: A002
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """The deprecated name of NLLLoss for images.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     loss = lucid.nn.NLLLoss2d()
    >>> loss(lucid.zeros(1, 2, 1, 1), lucid.zeros(1, 1, 1, dtype=lucid.int64))
    tensor(0.)
    """

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
        import warnings

        warnings.warn("NLLLoss2d has been deprecated: NLLLoss takes images as well.", FutureWarning, stacklevel=2)
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class CrossEntropyLoss(_WeightedLoss):
    """The negative logarithm of the probability that softmax gives the right class; target: classes or probabilities.

    >>> lucid.nn.CrossEntropyLoss()(lucid.zeros(3, 4), lucid.tensor([0, 1, 2]))
    tensor(1.3863)
    """

    __constants__ = ["ignore_index", "reduction", "label_smoothing"]

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input, target):  # noqa: A002
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class PoissonNLLLoss(_Loss):
    """The negative log likelihood of counts; input: the expected count, or its logarithm.

    >>> lucid.nn.PoissonNLLLoss()(lucid.tensor([0.5]), lucid.tensor([2.0]))
    tensor(0.6487)
    """

    def __init__(self, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, log_input, target):
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """The negative log likelihood of a normal distribution with given means and variances.

    >>> lucid.nn.GaussianNLLLoss()(lucid.tensor([1.0]), lucid.tensor([2.0]), lucid.tensor([1.0]))
    tensor(0.5000)
    """

    def __init__(self, *, full=False, eps=1e-6, reduction="mean"):
        super().__init__(None, None, reduction)
        self.full, self.eps = full, eps

    def forward(self, input, target, var):  # noqa: A002
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """Multi-class margin loss between the target class and all others.

    >>> lucid.nn.MultiMarginLoss()(lucid.tensor([[0.1, 0.2, 0.8]]), lucid.tensor([2]))
    tensor(0.2333)
    """

    def __init__(self, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p, self.margin = p, margin

    def forward(self, input, target):  # noqa: A002
        return F.multi_margin_loss(input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """Triplet loss: an anchor must be closer to a positive example than to a negative one, by a margin.

    >>> lucid.nn.TripletMarginLoss()(lucid.zeros(1, 2), lucid.ones(1, 2), lucid.full((1, 2), 2.0))
    tensor(0.)
    """

    def __init__(self, margin=1.0, p=2.0, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor, positive, negative):
        return F.triplet_margin_loss(
            anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps, swap=self.swap, reduction=self.reduction
        )


class TripletMarginWithDistanceLoss(_Loss):
    """TripletMarginLoss with a user-defined distance function.

    >>> lucid.nn.TripletMarginWithDistanceLoss()(lucid.zeros(1, 2), lucid.ones(1, 2), lucid.full((1, 2), 1.5))
    tensor(0.2929)
    """

    def __init__(self, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
        super().__init__(None, None, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead")
        self.distance_function = F.pairwise_distance if distance_function is None else distance_function
        self.margin, self.swap = margin, swap

    def forward(self, anchor, positive, negative):
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class CTCLoss(_Loss):
    """Connectionist temporal classification: the probability of a sequence over all its alignments.

    >>> log_probs = lucid.zeros(4, 1, 3).log_softmax(2)
    >>> lucid.nn.CTCLoss()(log_probs, lucid.tensor([[1, 2]]), [4], [2])
    tensor(0.8432)
    """

    def __init__(self, blank=0, reduction="mean", zero_infinity=False):
        super().__init__(None, None, reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(self, log_probs, targets, input_lengths, target_lengths):
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity)


MultilabelMarginLoss = MultiLabelMarginLoss  # noqa: F821 (of the table; Lucid's old name)
__all__ = sorted(n for n in globals() if n.endswith(("Loss", "Loss2d")) and n[0] != "_")
