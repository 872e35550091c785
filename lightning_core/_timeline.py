"""The trace as a timeline: what came after what, how long until the next event, which groups took the time."""

from lucid import _C

_c = _C._lightning()
_EVENT_KEYS = ("index", "timestamp_ns", "offset_ns", "delta_prev_ns", "delta_next_ns", "size_bytes")
_GROUP_KEYS = (
    "key",
    "count",
    "total_delta_next_ns",
    "avg_delta_next_ns",
    "max_delta_next_ns",
    "total_size_bytes",
)
_NOTES = (
    "Times are those of one monotonic clock. An event is recorded before its work, so delta_next_ns holds the work and "
    "whatever the program did until its next event."
)


def _of_op(*parts):
    return lambda e: "|".join(p(e) for p in parts) if e["op"] else "non_op"


_GROUPS = {
    "type": lambda e: e["type"],
    "status": lambda e: e["status"],
    "type_status": lambda e: f"{e['type']}|{e['status']}",
    "op": _of_op(lambda e: e["op"]),
    "op_selected_device": _of_op(lambda e: e["op"], lambda e: e["selected_device"]),
    "op_path": _of_op(lambda e: e["op"], lambda e: e["selected_device"], lambda e: "fallback" if e["fallback"] else "direct"),
}


def _check(name, value, known):
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, not {value!r}")


def _rows(events):
    times = [e["timestamp_ns"] for e in events]
    last = len(times) - 1
    return [
        {
            **event,
            "index": i,
            "offset_ns": times[i] - times[0],
            "delta_prev_ns": times[i] - times[i - 1] if i else 0,
            "delta_next_ns": times[i + 1] - times[i] if i < last else 0,
        }
        for i, event in enumerate(events)
    ]


def _group(key, members, window):
    deltas = [e["delta_next_ns"] for e in members]
    return {
        "key": key,
        "count": len(members),
        "total_delta_next_ns": sum(deltas),
        "avg_delta_next_ns": sum(deltas) / len(deltas),
        "max_delta_next_ns": max(deltas),
        "total_size_bytes": sum(e["size_bytes"] for e in members),
        "first_timestamp_ns": members[0]["timestamp_ns"],
        "last_timestamp_ns": members[-1]["timestamp_ns"],
        "window_share_pct": 100.0 * sum(deltas) / window if window else 0.0,
    }


def _sorted(rows, key, tie, descending):
    return sorted(rows, key=lambda r: (r[key], r[tie]), reverse=descending)


def runtime_trace_timeline(
    event_sort_by="timestamp_ns",
    event_descending=False,
    group_by="type",
    group_sort_by="total_delta_next_ns",
    group_descending=True,
    hotspot_top_k=8,
):
    """The recorded events with the times between them, groups of them, and the events before the longest times.

    >>> import lightning_core as lc
    >>> lc.runtime_trace_clear()
    >>> lc.runtime_trace_enable(True)
    >>> _ = lc.vector_add([1.0], [2.0], "cpu")
    >>> _ = lc.matmul2d([[1.0]], [[2.0]], "cpu")
    >>> lc.runtime_trace_enable(False)
    >>> timeline = lc.runtime_trace_timeline(group_by="op_path", group_sort_by="key", group_descending=False)
    >>> timeline["event_count"], [g["key"] for g in timeline["groups"]]
    (2, ['matmul|cpu|direct', 'vector_add|cpu|direct'])
    >>> lc.runtime_trace_clear()
    """
    if not hasattr(hotspot_top_k, "__index__") or isinstance(hotspot_top_k, bool) or hotspot_top_k < 0:
        raise TypeError(f"hotspot_top_k must be a non-negative int, not {hotspot_top_k!r}")
    rows = _rows(_c.runtime_trace_events())
    groups, hotspots, window = [], [], 0
    if rows:
        _check("event_sort_by", event_sort_by, _EVENT_KEYS)
        _check("group_by", group_by, _GROUPS)
        _check("group_sort_by", group_sort_by, _GROUP_KEYS)
        window = rows[-1]["timestamp_ns"] - rows[0]["timestamp_ns"]
        members = {}
        for row in rows:
            members.setdefault(_GROUPS[group_by](row), []).append(row)
        groups = [_group(key, found, window) for key, found in members.items()]
        groups = _sorted(groups, group_sort_by, "key", bool(group_descending))
        hotspots = sorted(rows, key=lambda r: (-r["delta_next_ns"], r["index"]))[: hotspot_top_k or None]
        rows = _sorted(rows, event_sort_by, "index", bool(event_descending))
    return {
        "event_count": len(rows),
        "event_sort_by": event_sort_by,
        "event_descending": bool(event_descending),
        "group_by": group_by,
        "group_sort_by": group_sort_by,
        "group_descending": bool(group_descending),
        "hotspot_top_k": hotspot_top_k,
        "notes": _NOTES,
        "window_ns": window,
        "events": rows,
        "groups": groups,
        "hotspots": hotspots,
    }
