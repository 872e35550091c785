"""TensorBoard's messages by PyTorch's names: what `SummaryWriter` writes, for programs that write them on their own.

from lucid.utils.tensorboard.summary import hparams, scalar

for message in hparams({"lr": 0.1}, {"loss": 0}):
    writer.file_writer.add_summary(message)
"""

from .summaries import _array as make_np
from .summaries import _audio as audio
from .summaries import _custom_scalars as custom_scalars
from .summaries import _histogram as histogram
from .summaries import _histogram_raw as histogram_raw
from .summaries import _hparams, _scalar
from .summaries import _tensor as tensor_proto
from .summaries import _text as text

__all__ = [
    "audio",
    "custom_scalars",
    "histogram",
    "histogram_raw",
    "hparams",
    "make_np",
    "scalar",
    "tensor_proto",
    "text",
]


def hparams(hparam_dict=None, metric_dict=None, hparam_domain_discrete=None):
    """Three messages: what the experiment has, the start and the end of a session.

    >>> from importlib.util import find_spec
    >>> if find_spec("tensorboard"):
    ...     assert len(lucid.utils.tensorboard.summary.hparams({"lr": 0.1}, {"loss": 0})) == 3
    """
    return _hparams(hparam_dict or {}, metric_dict or {}, hparam_domain_discrete)


def scalar(name, tensor, collections=None, new_style=False, double_precision=False):
    """One number. `collections` is TensorFlow's, and must be None.

    >>> from importlib.util import find_spec
    >>> if find_spec("tensorboard"):
    ...     assert lucid.utils.tensorboard.summary.scalar("loss", 2.5).value[0].simple_value == 2.5
    """
    if collections is not None:
        raise NotImplementedError("scalar: collections are TensorFlow's graph collections")
    return _scalar(name, tensor, new_style, double_precision)
