"""Traces in Chrome's event format, which Perfetto and chrome://tracing open. Time stamps are microseconds
since `baseTimeNanoseconds`, which counts from 1970: a double of microseconds since then would lose the nanoseconds.

A device is a process of the trace, whose number is that of the device, and a stream is a thread of it, as in PyTorch's traces.
Arrows ("ac2g") lead from the call that started a kernel to the kernel."""

import gzip
import json
import os
import socket

from ..autograd.profiler_util import DeviceType


def _event(event, pid, base):
    if event.device_type == DeviceType.CUDA:
        return _on_device(event, base)
    args = {"External id": event.id}
    if event.input_shapes:
        args["Input Dims"], args["Input type"] = event.input_shapes, event.input_dtypes
    if event.cpu_memory_usage:
        args["Bytes"] = event.cpu_memory_usage
    if event.flops:
        args["FLOPs"] = event.flops
    if event.stack:
        args["Call stack"] = ";".join(event.stack)
    return _slice(event, pid, event.thread, base, args)


def _on_device(event, base):
    args = {"External id": event.linked_correlation_id, "device": event.device_index, "stream": event.device_resource_id}
    args |= {"correlation": event.flow_id, **event.device_details}
    return _slice(event, event.device_index, event.device_resource_id, base, args)


def _slice(event, pid, tid, base, args):
    times = {"ts": _time_stamp(event, base), "dur": round(event.time_range.elapsed_us(), 3)}
    return {"ph": "X", "cat": event.activity_type, "name": event.name, "pid": pid, "tid": tid, **times, "args": args}


def _time_stamp(event, base):
    return round((event.base_ns - base) / 1e3 + event.time_range.start, 3)


def _arrows(events, pid, base):
    by_id = {event.id: event for event in events}
    for event in events:
        call = by_id.get(event.linked_correlation_id) if event.device_type == DeviceType.CUDA else None
        if call is not None:
            arrow = {"id": event.id, "cat": "ac2g", "name": "ac2g"}
            yield {"ph": "s", **arrow, "pid": pid, "tid": call.thread, "ts": _time_stamp(call, base)}
            to = {"pid": event.device_index, "tid": event.device_resource_id, "ts": _time_stamp(event, base)}
            yield {"ph": "f", **arrow, **to, "bp": "e"}


def _named(kind, pid, tid, **args):
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "ts": 0, "args": args}


def write_trace(path, events, metadata):
    """Write the events as a trace; a path that ends in .gz is compressed.

    >>> import json, tempfile, os
    >>> with lucid.profiler.profile() as p:
    ...     x = lucid.ones(2)
    >>> path = os.path.join(tempfile.mkdtemp(), "trace.json")
    >>> p.export_chrome_trace(path)
    >>> [e["name"] for e in json.load(open(path))["traceEvents"] if e["ph"] == "X"]
    ['aten::ones']
    """
    pid = os.getpid()
    base = min((event.base_ns for event in events), default=0)
    listed = [_named("process_name", pid, 0, name="python"), _named("process_labels", pid, 0, labels="CPU")]
    on_device = [event for event in events if event.device_type == DeviceType.CUDA]
    threads = {event.thread for event in events if event.device_type == DeviceType.CPU}
    listed += [_named("thread_name", pid, tid, name=f"thread {tid}") for tid in sorted(threads)]
    for index in sorted({event.device_index for event in on_device}):
        listed += [_named("process_name", index, 0, name="python"), _named("process_labels", index, 0, labels=f"GPU {index}")]
    for index, stream in sorted({(event.device_index, event.device_resource_id) for event in on_device}):
        listed.append(_named("thread_name", index, stream, name=f"stream {stream}"))
    listed += [_event(event, pid, base) for event in events]
    listed += _arrows(events, pid, base)
    trace = {
        "schemaVersion": 1,
        "deviceProperties": [],
        "host_name": socket.gethostname(),
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": base,
        **metadata,
        "traceEvents": listed,
        "traceName": str(path),
    }
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "wt") as file:
        json.dump(trace, file)
