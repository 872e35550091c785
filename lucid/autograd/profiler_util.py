"""What a profiler recorded: events, averages over calls of one name, and the table that shows them."""

from collections import defaultdict
from enum import IntEnum
from types import SimpleNamespace
from typing import NamedTuple

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval", "Kernel"]

# by kind: of calls, steps of backward, ranges; from _DEVICE_KINDS on of what runs on a device, ranges among it
_ACTIVITIES = ("cpu_op", "cpu_op", "user_annotation", "kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation")
_DEVICE_KINDS, _RANGE_ON_DEVICE = 3, 6
_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}


def _format_time(us):
    """
    >>> from lucid.autograd.profiler_util import _format_time
    >>> _format_time(1500.0), _format_time(0.25)
    ('1.500ms', '0.250us')
    """
    unit = "s" if us >= 1e6 else "ms" if us >= 1e3 else "us"
    return _format_time_in(us, unit)


def _format_time_in(us, unit):
    return f"{us / _UNITS[unit]:.3f}{unit}"


def _format_share(part, whole):
    return f"{100 * part / whole:.2f}%" if whole else "NaN" if part else "0.00%"


def _format_memory(nbytes):
    for unit in ("GB", "MB", "KB"):
        size = 1024 ** (("KB", "MB", "GB").index(unit) + 1)
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


class DeviceType(IntEnum):
    """Where an event ran.

    >>> lucid.profiler.DeviceType.CPU.value
    0
    """

    CPU, CUDA = range(2)


class Interval:
    """From start to end, in microseconds since the recording began.

    >>> from lucid.autograd.profiler_util import Interval
    >>> Interval(1.0, 3.5).elapsed_us()
    2.5
    """

    def __init__(self, start, end):
        self.start, self.end = start, end

    def elapsed_us(self):
        return self.end - self.start


class _Times:
    """Texts and averages, for one event and for many."""

    cpu_time_str = property(lambda self: _format_time(self.cpu_time))
    cpu_time_total_str = property(lambda self: _format_time(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: _format_time(self.self_cpu_time_total))
    cpu_time = property(lambda self: self.cpu_time_total / self.count if self.count else 0.0)
    device_time_str = property(lambda self: _format_time(self.device_time))
    device_time_total_str = property(lambda self: _format_time(self.device_time_total))
    self_device_time_total_str = property(lambda self: _format_time(self.self_device_time_total))
    device_time = property(lambda self: self.device_time_total / self.count if self.count else 0.0)
    cuda_time = property(lambda self: self.device_time)  # PyTorch's older names
    cuda_time_total = property(lambda self: self.device_time_total)
    self_cuda_time_total = property(lambda self: self.self_device_time_total)
    device_memory_usage = self_device_memory_usage = 0  # memory is that of the host alone
    use_device = None  # "cuda": of a recording that has what ran on a device
    is_async = is_remote = is_legacy = False
    node_id = -1
    overload_name = ""


class Kernel(NamedTuple):
    """What a call ran on a device, in microseconds: an entry of `FunctionEvent.kernels`.

    >>> from lucid.autograd.profiler_util import Kernel
    >>> Kernel("tiles", 0, 2.5).duration
    2.5
    """

    name: str
    device: int
    duration: float


class FunctionEvent(_Times):
    """One call, one step of backward, one range of `record_function`; or what ran on a device: a kernel, a copy, a fill,
    or a range from its first kernel to its last.

    `kernels` has what the call itself ran on devices, `self_device_time_total` the microseconds of that, and
    `device_time_total` those of the calls inside it too.

    >>> with lucid.profiler.profile() as p:
    ...     x = lucid.ones(2).add(1)
    >>> [e.name for e in p.events()]
    ['aten::ones', 'aten::add']
    """

    count = 1

    def __init__(self, number, kind, name, start, end, shapes=(), dtypes=(), memory=0, stack=(), thread=0, flops=0, base_ns=0):
        self.id, self.name, self.trace_name, self.key, self._kind = number, name, name, name, kind
        self.time_range, self.base_ns = Interval(start, end), base_ns
        self.input_shapes, self.input_dtypes, self.stack, self.thread = list(shapes), list(dtypes), list(stack), thread
        self.cpu_memory_usage, self.flops = memory, flops
        self.cpu_children, self.cpu_parent = [], None
        self.scope = kind if kind < _DEVICE_KINDS else 0  # 0: a call, 1: a step of backward, 2: a range of the program
        self.is_user_annotation = self.activity_type.endswith("user_annotation")
        self.sequence_nr = self.device_index = -1
        self.kernels, self.concrete_inputs, self.kwinputs, self.fwd_thread = [], [], {}, None
        self.device_type, self.device_resource_id, self.device_details = DeviceType.CPU, thread, {}
        self.flow_id = self.linked_correlation_id = 0  # of a kernel: CUDA's number of the launch, and the id of the call

    @property
    def activity_type(self):
        return _ACTIVITIES[self._kind]

    def append_kernel(self, name, device, duration):
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child):
        self.cpu_children.append(child)
        child.cpu_parent = self

    @property
    def cpu_time_total(self):
        return self.time_range.elapsed_us() if self.device_type == DeviceType.CPU else 0.0

    @property
    def self_cpu_time_total(self):
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def device_time_total(self):
        if self.device_type != DeviceType.CPU:
            return self.time_range.elapsed_us()
        return self.self_device_time_total + sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_device_time_total(self):
        if self.device_type != DeviceType.CPU:
            return self.time_range.elapsed_us()
        return sum((kernel.duration for kernel in self.kernels), 0.0)

    @property
    def self_cpu_memory_usage(self):
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    def __repr__(self):
        children = [child.id for child in self.cpu_children]
        return (
            f"<FunctionEvent id={self.id} name={self.name} device_type={self.device_type} node_id=-1 "
            f"cpu_time={self.cpu_time_str} start_us={self.time_range.start:.3f} end_us={self.time_range.end:.3f} "
            f"cpu_children={children} {self.use_device}_time={self.device_time_str} "
            f"name={self.name} thread={self.thread} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} is_async=False is_remote=False seq_nr=-1 is_legacy=False>"
        )


class FunctionEventAvg(_Times):
    """All calls of one name, or of one name and one shape.

    >>> with lucid.profiler.profile() as p:
    ...     x = lucid.ones(2); y = x + x + x
    >>> next(k.count for k in p.key_averages() if k.key == "aten::add")
    2
    """

    def __init__(self):
        self.key = self.input_shapes = self.stack = self.scope = None
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.device_time_total = self.self_device_time_total = 0.0
        self.device_type = DeviceType.CPU
        self.cpu_memory_usage = self.self_cpu_memory_usage = self.flops = 0
        self.is_user_annotation = False

    def add(self, other):
        if self.key is None:
            self.key, self.input_shapes, self.stack = other.key, other.input_shapes, other.stack
            self.is_user_annotation, self.scope = other.is_user_annotation, other.scope
            self.device_type, self.use_device = other.device_type, other.use_device
        self.count += other.count
        recursive = isinstance(other, FunctionEvent) and _inside_its_own_name(other)
        self.cpu_time_total += 0.0 if recursive else other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.device_time_total += 0.0 if recursive else other.device_time_total
        self.self_device_time_total += other.self_device_time_total
        self.cpu_memory_usage += 0 if recursive else other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.flops += other.flops or 0
        return self

    __iadd__ = add

    def __repr__(self):
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f"self_{self.use_device}_time={self.self_device_time_total_str} {self.use_device}_time={self.device_time_str} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>"
        )


def _inside_its_own_name(event):
    """Whether its time is counted already, by an event of the same name around it."""
    parent = event.cpu_parent
    while parent is not None:
        if parent.key == event.key:
            return True
        parent = parent.cpu_parent
    return False


class EventList(list):
    """The events of a recording, or averages of them.

    >>> with lucid.profiler.profile() as p:
    ...     x = lucid.ones(2)
    >>> "aten::ones" in p.key_averages().table()
    True
    """

    def __init__(self, *args, profile_memory=False, with_flops=False, use_device=None):
        super().__init__(*args)
        self._profile_memory, self._with_flops, self._use_device = profile_memory, with_flops, use_device

    @property
    def self_cpu_time_total(self):
        """Microseconds of all events, each counted once."""
        return sum(event.self_cpu_time_total for event in self)

    def _like(self, events):
        return EventList(events, profile_memory=self._profile_memory, with_flops=self._with_flops, use_device=self._use_device)

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False):
        """Averages per name; per name and input shapes; per name and the innermost lines of the program.

        An op has one form, so grouping by overload changes nothing.
        """
        groups = defaultdict(FunctionEventAvg)
        for event in self:
            key = (event.key, event.device_type, event.is_user_annotation)
            key += (str(event.input_shapes),) if group_by_input_shapes else ()
            key += tuple(event.stack[:group_by_stack_n]) if group_by_stack_n > 0 and event.stack else ()
            groups[key].add(event)
        averages = self._like(groups.values())
        for average in averages:
            average.stack = (average.stack or [])[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
        return averages

    def total_average(self):
        """The sum of all events."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
            total.key = None
        total.key = "Total"
        return total

    def table(
        self,
        sort_by=None,
        row_limit=100,
        max_src_column_width=75,
        max_name_column_width=55,
        max_shapes_column_width=80,
        header=None,
        top_level_events_only=False,
        time_unit=None,
    ):
        """The events as text. sort_by: an attribute: `cpu_time_total`, `self_cuda_time_total`, `count`, ..."""
        widths = SimpleNamespace(name=max_name_column_width, source=max_src_column_width, shapes=max_shapes_column_width)
        return _table(self, sort_by, row_limit, widths, header, top_level_events_only, time_unit)

    __str__ = table

    def export_chrome_trace(self, path):
        """Write a file that Perfetto and chrome://tracing open."""
        from ..profiler._trace import write_trace

        write_trace(path, self, {})

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write "outermost;...;innermost microseconds" per line: what flame graph tools read. Needs `with_stack=True`."""
        if metric not in _STACK_METRICS:
            raise ValueError(f"metric should be one of: {_STACK_METRICS}, got {metric!r}")
        with open(path, "w") as file:
            for event in self:
                value = int(getattr(event, metric))
                if event.stack and value > 0:
                    frames = ";".join(frame.translate(str.maketrans(" ;\t\n", "____")) for frame in reversed(event.stack))
                    file.write(f"{frames} {value}\n")


_STACK_METRICS = ["self_cpu_time_total", "cpu_time_total", "self_cuda_time_total", "self_device_time_total"]


def _sorted(events, sort_by):
    if sort_by is None:
        return list(events)
    if not all(hasattr(event, sort_by) for event in events):  # the older names, such as self_cuda_memory_usage
        sort_by = sort_by.replace("cuda", "device").replace("xpu", "device")
    if not all(hasattr(event, sort_by) for event in events):
        raise AttributeError(f"events have no attribute {sort_by!r} to sort by")
    return sorted(events, key=lambda event: getattr(event, sort_by), reverse=True)


def _device_total(events):
    """Microseconds of what ran on devices. Calls and ranges are left out: they have the same kernels again."""
    return sum(e.self_device_time_total for e in events if e.device_type != DeviceType.CPU and not e.is_user_annotation)


def _columns(events, shown, widths, whole, time_unit):
    """[(title, width, texts)]"""

    def time(us):
        return _format_time(us) if time_unit is None else _format_time_in(us, time_unit)

    def width(texts, most):
        return min(max([*map(len, texts), 0]) + 4, most)

    names = [event.key for event in shown]
    if len(names) and widths.name is not None:
        names = [name if len(name) < widths.name else name[: widths.name - 4] + "..." for name in names]
    columns = [("Name", widths.name or width(names, 10**6), names)]
    columns += [
        ("Self CPU %", 12, [_format_share(e.self_cpu_time_total, whole) for e in shown]),
        ("Self CPU", 12, [time(e.self_cpu_time_total) for e in shown]),
        ("CPU total %", 12, [_format_share(e.cpu_time_total, whole) if not e.is_async else "0" for e in shown]),
        ("CPU total", 12, [time(e.cpu_time_total) for e in shown]),
        ("CPU time avg", 12, [time(e.cpu_time) for e in shown]),
    ]
    if any(e.self_device_time_total > 0 for e in events):
        device, ran = (events._use_device or "cuda").upper(), _device_total(events)
        columns += [
            (f"Self {device}", 12, [time(e.self_device_time_total) for e in shown]),
            (f"Self {device} %", 12, [_format_share(e.self_device_time_total, ran) for e in shown]),
            (f"{device} total", 12, [time(e.device_time_total) for e in shown]),
            (f"{device} time avg", 12, [time(e.device_time) for e in shown]),
        ]
    if events._profile_memory:
        columns.append(("CPU Mem", 12, [_format_memory(e.cpu_memory_usage) for e in shown]))
        columns.append(("Self CPU Mem", 12, [_format_memory(e.self_cpu_memory_usage) for e in shown]))
    columns.append(("# of Calls", 12, [str(e.count) for e in shown]))
    if any(e.input_shapes for e in shown):
        texts = [str(e.input_shapes)[: widths.shapes] for e in shown]
        columns.append(("Input Shapes", max(width(texts, widths.shapes), 12), texts))
    if any(e.stack for e in shown):
        texts = [(e.stack[0] if e.stack else "")[-widths.source :] for e in shown]
        columns.append(("Source Location", max(width(texts, widths.source), 15), texts))
    if events._with_flops:
        most = max((e.flops or 0) for e in shown)
        power = min(sum(most >= 1000 ** (i + 1) for i in range(4)), 4)
        scale, word = 1000**power, ("", "K", "M", "G", "T")[power]
        columns.append((f"Total {word}FLOPs", 12, [f"{e.flops / scale:.3f}" if e.flops else "--" for e in shown]))
    return columns


def _table(events, sort_by, row_limit, widths, header, top_level_events_only, time_unit):
    if not events:
        return ""
    if time_unit is not None and time_unit not in _UNITS:
        raise ValueError(f"time_unit must be one of {sorted(_UNITS)}, got {time_unit!r}")
    whole = events.self_cpu_time_total
    chosen = [e for e in events if not top_level_events_only or getattr(e, "cpu_parent", None) is None]
    shown = _sorted(chosen, sort_by)[: row_limit if row_limit >= 0 else None]
    columns = _columns(events, shown, widths, whole, time_unit)
    rule = "  ".join("-" * width for _, width, _ in columns) + "  "
    lines = [rule.rstrip("\n")]
    if header is not None:
        lines = ["=" * len(rule), header, rule]
    lines.append("  ".join(title.rjust(width) for title, width, _ in columns) + "  ")
    lines.append(rule)
    lines += ["  ".join(texts[i].rjust(width) for _, width, texts in columns) + "  " for i in range(len(shown))]
    totals = {"CPU": whole}
    if any(e.self_device_time_total > 0 for e in events):
        totals[(events._use_device or "cuda").upper()] = _device_total(events)
    lines.append(rule)
    for device, us in totals.items():
        lines.append(f"Self {device} time total: {_format_time(us) if time_unit is None else _format_time_in(us, time_unit)}")
    return "\n".join(lines) + "\n"
