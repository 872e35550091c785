"""Who allocated device memory, and when: what `memory._record_memory_history` records and `_dump_snapshot` writes, in the
format that pytorch.org/memory_viz shows.

>>> if lucid.cuda.is_available():
...     lucid.cuda.memory._record_memory_history(max_entries=1000)
...     x = lucid.ones(3, device="cuda")
...     trace = lucid.cuda.memory._snapshot()["device_traces"][0]
...     lucid.cuda.memory._record_memory_history(enabled=None)
...     assert trace[-1]["action"] == "alloc"
"""

import atexit
import sys
import time
from collections import deque

from .. import _C
from ._devices import index_of

_ACTIONS = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "oom", "snapshot")
_DEEPEST = 64  # frames of a stack that are kept


class _History:
    def __init__(self, keeps, context, most, device, skipped):
        self.keeps, self.context, self.device, self.skipped = keeps, context, device, skipped
        self.most = None if most == sys.maxsize else most
        self.traces, self.frames = {}, {}  # events by device; stacks by address of what is allocated

    def tell(self, what, device, address, size, stream):
        if self.device is not None and device != self.device:
            return
        frames = _stack() if self.context is not None and (what == 1 or self.context == "all") else []
        if what == 1:
            self.frames[address] = frames
        elif what == 0:
            self.frames.pop(address, None)
        if self.keeps != "all":
            return
        trace = self.traces.setdefault(device, deque(maxlen=self.most))
        for action in {1: ("alloc",), 0: ("free_requested", "free_completed"), -1: ("oom",)}[what]:
            if action not in self.skipped:
                event = {"action": action, "size": size, "stream": stream, "time_us": time.time_ns() // 1000}
                event["frames"] = frames if self.context in ("alloc", "all") and action != "free_completed" else []
                event["device_free" if what < 0 else "addr"] = address
                trace.append(event)


def _stack():
    frame, found = sys._getframe(2), []
    while frame is not None and len(found) < _DEEPEST:
        code = frame.f_code
        found.append({"filename": code.co_filename, "line": frame.f_lineno or 0, "name": code.co_name})
        frame = frame.f_back
    return found


_now = None  # what records, or the last that did


def _record_memory_history(
    enabled="all",
    context="all",
    stacks="all",
    max_entries=sys.maxsize,
    device=None,
    clear_history=False,
    compile_context=False,
    global_record_annotations=False,
    skip_actions=None,
):
    """Record allocations and frees from now on: "state" keeps the stacks of what is allocated, "all" every event as well, None
    stops. context: "alloc" or "all" keeps stacks with events of these kinds, None none. Stacks are Python's, whichever
    stacks= asks for; notes of compiled code and of the profiler are refused.

    >>> lucid.cuda.memory._record_memory_history(enabled=None)
    """
    global _now
    enabled = "all" if enabled is True else enabled or None
    if enabled not in (None, "state", "all") or context not in (None, "state", "alloc", "all"):
        raise RuntimeError(f"_record_memory_history: enabled={enabled!r}, context={context!r}")
    if stacks not in ("python", "all") or compile_context or global_record_annotations:
        raise NotImplementedError("_record_memory_history: stacks are Python's, and events have no annotations")
    unknown = set(skip_actions or ()) - set(_ACTIONS)
    if unknown:
        raise ValueError(f"_record_memory_history: unknown actions {sorted(unknown)}")
    if enabled is None:
        return _C._cuda_memory_watch(None)
    kept = None if clear_history else _now
    _now = _History(enabled, context, max_entries, None if device is None else index_of(device), set(skip_actions or ()))
    if kept is not None:
        _now.traces = {index: deque(trace, maxlen=_now.most) for index, trace in kept.traces.items()}
    _C._cuda_memory_watch(_now.tell)
    atexit.register(_C._cuda_memory_watch, None)


def _snapshot(device=None, augment_with_fx_traces=False):
    """The allocator's segments, with the stacks that allocated blocks, and the recorded events of every device.

    >>> sorted(lucid.cuda.memory._snapshot())
    ['allocator_settings', 'device_traces', 'external_annotations', 'segments']
    """
    from . import device_count
    from .memory import memory_snapshot

    if augment_with_fx_traces:
        raise NotImplementedError("_snapshot: frames have no traces of torch.fx")
    segments, frames = memory_snapshot(), {} if _now is None else _now.frames
    for segment in segments:
        for block in segment["blocks"]:
            if block["state"] != "inactive":
                block["frames"] = frames.get(block["address"], [])
    traces = [list(_now.traces.get(index, ())) if _now else [] for index in range(device_count())]
    if device is not None:
        segments = [s for s in segments if s["device"] == index_of(device)]
    return {"segments": segments, "device_traces": traces, "allocator_settings": {}, "external_annotations": []}


def _dump_snapshot(filename="dump_snapshot.pickle", augment_with_fx_traces=False):
    """Write a snapshot to a file that pytorch.org/memory_viz reads.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "snapshot.pickle")
    >>> lucid.cuda.memory._dump_snapshot(path)
    """
    import pickle

    snapshot = _snapshot(augment_with_fx_traces=augment_with_fx_traces)
    with open(filename, "wb") as file:
        pickle.dump(snapshot, file)


def _set_allocator_settings(env):
    """Settings of PyTorch's allocator, such as "expandable_segments:True": Lucid's has none, as a warning says.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True):
    ...     lucid.cuda.memory._set_allocator_settings("expandable_segments:True")
    """
    import warnings

    warnings.warn(f"the allocator has no settings; {env!r} changes nothing", stacklevel=2)
