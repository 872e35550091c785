"""The profiler without schedules: `profile` records all calls of this thread, `record_function` names a part of the program.

>>> with lucid.autograd.profiler.profile() as p:
...     with lucid.autograd.profiler.record_function("work"):
...         x = lucid.ones(2) * 3
>>> [e.name for e in p.function_events]
['work', 'aten::ones', 'aten::mul']
"""

import functools
import threading

from .. import _C
from .profiler_util import _DEVICE_KINDS, _RANGE_ON_DEVICE, DeviceType, EventList, FunctionEvent

__all__ = ["EventList", "FunctionEvent", "emit_itt", "emit_nvtx", "profile", "record_function"]
_PREFIX = ("aten::", "", "")


class record_function:  # noqa: N801 (PyTorch's name)
    """A context, or a decorator, whose time and calls appear under a name. Nothing happens while no profiler runs.

    >>> with lucid.profiler.profile() as p:
    ...     with lucid.profiler.record_function("forward"):
    ...         x = lucid.ones(2)
    >>> p.events()[0].name, [e.name for e in p.events()[0].cpu_children]
    ('forward', ['aten::ones'])
    """

    def __init__(self, name, args=None):
        self.name, self.args, self._open = str(name), args, []

    def __enter__(self):
        self._open.append(_C._profile_open(self.name if self.args is None else f"{self.name}({self.args})"))
        return self

    def __exit__(self, *exception):
        _C._profile_close(self._open.pop())

    def __call__(self, function):
        @functools.wraps(function)
        def recorded(*args, **kwargs):
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return recorded


def _events(recorded, stacks, base_ns, with_flops, with_shapes, profile_memory, first_number):
    from ..profiler._flops import flops_of

    made = EventList(profile_memory=profile_memory, with_flops=with_flops)
    thread = threading.get_native_id()
    stacks = [[line for line in lines if not line.startswith(__file__)] for lines in stacks]
    for i, (kind, name, start, end, parent, inputs, memory, out_numel, stack) in enumerate(recorded):
        shapes, dtypes = inputs or ([], [])
        flops = flops_of(name, shapes, out_numel) if with_flops else 0
        lines = stacks[stack] if stack >= 0 else made[parent].stack if parent >= 0 else []
        kept = (shapes, dtypes) if with_shapes else ([], [])
        event = FunctionEvent(
            first_number + i,
            kind,
            _PREFIX[kind] + name,
            start / 1e3,
            end / 1e3,
            *kept,
            memory,
            lines,
            thread,
            flops,
            base_ns,
        )
        if parent >= 0:
            made[parent].append_cpu_child(event)
        made.append(event)
    return made


def _ran_on_devices(ran, calls, number, base_ns):
    """Events of kernels, copies and fills; the call that started one gets it as a kernel of its own."""
    from ..profiler._names import demangled

    for kind, name, start, end, mark, correlation, device, stream, nbytes, grid, block, registers, shared in ran:
        name, times = demangled(name), (start / 1e3, end / 1e3)
        event = _on_device(FunctionEvent(number, _DEVICE_KINDS + kind, name, *times, thread=stream, base_ns=base_ns), device)
        of_kernel = {"registers per thread": registers, "shared memory": shared, "grid": grid, "block": block}
        event.flow_id, event.device_details = correlation, of_kernel if kind == 0 else {"bytes": nbytes}
        if 0 <= mark < len(calls):
            calls[mark].append_kernel(name, device, event.time_range.elapsed_us())
            event.linked_correlation_id = calls[mark].id
        yield event
        number += 1


def _ranges_on_devices(ran, calls, number):
    """Ranges of the program as devices saw them: on every stream from the first to the last kernel that has the range as
    the innermost one around its call."""
    spans, by_id = {}, {event.id: event for event in calls}
    for event in ran:
        call = by_id.get(event.linked_correlation_id)
        while call is not None and not call.is_user_annotation:
            call = call.cpu_parent
        if call is not None:
            spans.setdefault((call.id, event.device_index, event.thread), []).append(event.time_range)
    for (range_id, device, stream), times in spans.items():
        start, end = min(time.start for time in times), max(time.end for time in times)
        around = by_id[range_id]
        made = FunctionEvent(number, _RANGE_ON_DEVICE, around.name, start, end, thread=stream, base_ns=around.base_ns)
        yield _on_device(made, device)
        number += 1


def _on_device(event, index):
    event.device_type, event.device_index = DeviceType.CUDA, index
    return event


_DEVICES = ("cuda", "xpu", "mtia", "hpu")  # what PyTorch's profiler knows


def _usable_device(name):
    """The device that can be recorded, or None with a warning."""
    import warnings

    from .. import cuda

    if name == "cuda" and cuda.is_available():
        return name
    if name in _DEVICES:
        warnings.warn(f"{name.upper()} is not available, disabling {name.upper()} profiling", stacklevel=4)
    elif name is not None:
        warnings.warn(f"The {name} is not a valid device option.", stacklevel=4)
    return None


class profile:  # noqa: N801 (PyTorch's name)
    """Records every call of this thread between `with` and its end.

    Calls in other threads and processes are not recorded. `use_device="cuda"` records what ran on the GPU too.

    >>> with lucid.autograd.profiler.profile() as p:
    ...     x = lucid.ones(2)
    >>> len(p.function_events)
    1
    """

    def __init__(
        self,
        enabled=True,
        *,
        use_cuda=False,
        use_device=None,
        record_shapes=False,
        with_flops=False,
        profile_memory=False,
        with_stack=False,
        with_modules=False,
        use_kineto=False,
        use_cpu=True,
        experimental_config=None,
        acc_events=False,
        custom_trace_id_callback=None,
    ):
        if with_modules or experimental_config is not None:
            raise NotImplementedError("profiler: with_modules and experimental_config are not supported; use with_stack")
        self.use_device = _usable_device("cuda" if use_cuda else use_device) if enabled else None
        self.use_cpu, self.enabled = use_cpu, bool(enabled and (use_cpu or self.use_device))
        self.record_shapes, self.with_flops = record_shapes, with_flops
        self.profile_memory, self.with_stack, self.acc_events = profile_memory, with_stack, acc_events
        self.custom_trace_id_callback, self.trace_id = custom_trace_id_callback, ""
        self.function_events, self.entered = None, False

    def __enter__(self):
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self._start()
        return self

    def _start(self):
        self.trace_id = self.custom_trace_id_callback() if self.custom_trace_id_callback else _trace_id()
        shapes, device = self.record_shapes or self.with_flops, self.use_device is not None
        refused = _C._profile_start(shapes, self.profile_memory, self.with_stack, device)
        if refused:
            import warnings

            warnings.warn(f"{refused}; disabling {self.use_device.upper()} profiling", stacklevel=4)
            self.use_device = None

    def __exit__(self, *exception):
        if self.enabled and _C._profile_is_on():
            self._stop()

    def _stop(self):
        recorded, stacks, base_ns, lost, ran = _C._profile_stop()
        if lost:
            import warnings

            warnings.warn(f"profiler: {lost} events are missing, there was no memory for them", stacklevel=4)
        before = self.function_events if self.acc_events and self.function_events else []
        first = len(before) + 1
        calls = _events(recorded, stacks, base_ns, self.with_flops, self.record_shapes, self.profile_memory, first)
        devices = list(_ran_on_devices(ran, calls, first + len(calls), base_ns))
        devices += _ranges_on_devices(devices, calls, first + len(calls) + len(devices))
        calls._use_device = self.use_device
        fresh = calls._like([*(calls if self.use_cpu else ()), *devices])
        for event in fresh:
            event.use_device = self.use_device
        self.function_events = fresh._like([*before, *fresh]) if before else fresh

    def _checked(self):
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def __repr__(self):
        return "<unfinished profiler>" if self.function_events is None else repr(self.function_events)

    def __str__(self):
        return "<unfinished profiler>" if self.function_events is None else str(self.function_events)

    def table(self, *args, **kwargs):
        """All events as text: see `EventList.table`."""
        return self._checked().table(*args, **kwargs)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        """Averages per name."""
        return self._checked().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self):
        """The sum of all events."""
        return self._checked().total_average()

    def export_chrome_trace(self, path):
        """Write a file that Perfetto opens."""
        from ..profiler._trace import write_trace

        write_trace(path, self._checked(), {"trace_id": self.trace_id})

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write what flame graph tools read; needs `with_stack=True`."""
        if not self.with_stack:
            raise RuntimeError("export_stacks() requires with_stack=True")
        return self._checked().export_stacks(path, metric)

    @property
    def self_cpu_time_total(self):
        """Microseconds of all events."""
        return self._checked().self_cpu_time_total


def _trace_id():
    import uuid

    return uuid.uuid4().hex.upper()


def _absent(name, tool):
    def absent(*args, **kwargs):
        raise NotImplementedError(f"{name}: Lucid has no connection to {tool}")

    absent.__name__ = absent.__qualname__ = name
    absent.__doc__ = (
        f"Refused: there is no connection to {tool}.\n\n    >>> lucid.autograd.profiler.{name}.__name__\n    {name!r}\n"
    )
    return absent


emit_nvtx = _absent("emit_nvtx", "NVTX")
emit_itt = _absent("emit_itt", "ITT")


def kineto_available():
    """Whether PyTorch's tracing library is there: no, the engine records by itself.

    >>> lucid.autograd.profiler.kineto_available()
    False
    """
    return False
