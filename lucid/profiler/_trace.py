"""Traces in Chrome's event format, which Perfetto and chrome://tracing open. Time stamps are microseconds
since `baseTimeNanoseconds`, which counts from 1970: a double of microseconds since then would lose the nanoseconds."""

import gzip
import json
import os
import socket

_CATEGORIES = ("cpu_op", "cpu_op", "user_annotation")


def _event(event, pid, base):
    args = {"External id": event.id}
    if event.input_shapes:
        args["Input Dims"], args["Input type"] = event.input_shapes, event.input_dtypes
    if event.cpu_memory_usage:
        args["Bytes"] = event.cpu_memory_usage
    if event.flops:
        args["FLOPs"] = event.flops
    if event.stack:
        args["Call stack"] = ";".join(event.stack)
    return {
        "ph": "X",
        "cat": _CATEGORIES[event.scope],
        "name": event.name,
        "pid": pid,
        "tid": event.thread,
        "ts": round((event.base_ns - base) / 1e3 + event.time_range.start, 3),
        "dur": round(event.cpu_time_total, 3),
        "args": args,
    }


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
    listed += [_named("thread_name", pid, tid, name=f"thread {tid}") for tid in sorted({e.thread for e in events})]
    listed += [_event(event, pid, base) for event in events]
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
