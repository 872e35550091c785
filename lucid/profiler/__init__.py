"""Which calls take the time: PyTorch's `torch.profiler`.

>>> from lucid.profiler import profile, record_function
>>> with profile(record_shapes=True) as prof:
...     with record_function("product"):
...         y = lucid.ones(8, 8) @ lucid.ones(8, 8)
>>> table = prof.key_averages().table(sort_by="cpu_time_total", row_limit=5)
>>> "aten::matmul" in table
True

Where there is a GPU, what ran on it is recorded too: every kernel, copy and fill, with the call that started it.
A call that is recorded takes less than 0.1 µs longer, on a GPU with the records of its launches more; without a profiler
nothing is paid.
"""

from ..autograd.profiler import kineto_available, record_function
from ..autograd.profiler_util import DeviceType
from .profiler import ProfilerAction, ProfilerActivity, profile, schedule, supported_activities, tensorboard_trace_handler

__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
