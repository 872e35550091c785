"""Options that are a dataclass in PyTorch."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """How `nn.functional.linear_cross_entropy` goes through its rows: PyTorch's fields.

    batch_chunk_size is the number of rows per chunk; chunking_method "aspect_ratio:N" chooses it so that the scores of a chunk
    take an N-th of the memory of the input. "auto" leaves the choice to the engine. The gradient recomputes scores and sums
    float16 and bfloat16 in float32, so a graph may be used twice whatever allow_retain_graph is, and acc_dtype may be None,
    float32 or float64.

    >>> lucid.nn.LinearCrossEntropyOptions(batch_chunk_size=64).batch_chunk_size
    64
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: object = None

    def __post_init__(self):
        if self.acc_policy not in ("auto", "accurate", "balanced", "compact"):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto") and not _factor(self.chunking_method):
            raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        rows = self.batch_chunk_size
        if rows is not None and not (isinstance(rows, int) and rows > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {rows!r}")
        if str(self.acc_dtype).split(".")[-1] not in ("None", "float32", "float64"):
            raise ValueError(f"acc_dtype: sums are formed in float32 or wider, not in {self.acc_dtype}")


def _factor(method):
    """N of "aspect_ratio:N"; 0 if it says something else."""
    name, _, factor = method.partition(":")
    return int(factor or 1) if name == "aspect_ratio" and (factor or "1").isdigit() else 0


def rows_of_options(options, input, linear_weight):  # noqa: A002
    """How many rows at a time; 0 leaves it to the engine.

    >>> from lucid.nn._options import LinearCrossEntropyOptions, rows_of_options
    >>> rows_of_options(LinearCrossEntropyOptions(batch_chunk_size=64), lucid.ones(100, 3), lucid.ones(5, 3))
    64
    """
    if options.batch_chunk_size is not None:
        return options.batch_chunk_size
    if options.chunking_method in (None, "auto") or input.ndim != 2 or linear_weight.ndim != 2 or not input.shape[1]:
        return 0
    rows = -(-input.shape[0] // max(1, -(-linear_weight.shape[0] // input.shape[1])))
    return max(1, (1 << max(0, rows - 1).bit_length()) // _factor(options.chunking_method))
