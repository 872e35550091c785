"""Planning: where nodes run, which of them form a group, what that is estimated to cost. Plans are kept per graph and options.

A node runs on the preferred device if that computes it, else on the first of metal, cuda and cpu that does. A group is a run of
nodes on one device. The estimate adds the costs of compute, launches, transfers, synchronisation and boundaries; it is a model
for comparing plans of one graph, not a prediction of time.
"""

import hashlib
from math import prod

from lucid import _C

from . import fusion
from .schemas import SCHEMAS

_c = _C._lightning()
DEVICES = ("metal", "cuda", "cpu")
MODES = ("auto", "always", "never")
NAMED = {
    "preferred_device": "metal",
    "sync_mode": "auto",
    "trace_sync_boundary": False,
    "separate_fallback_segments": True,
    "insert_sync_on_device_change": True,
}
MORE = {
    "group_by_backend_capability": True,
    "enable_fusion_v1": True,
    "enable_fusion_pass_conv": True,
    "enable_fusion_pass_matmul": True,
    "enable_fusion_pass_attention": True,
    "enable_fusion_pass_attention_qkv": True,
    "fusion_pass_order": fusion.ORDER,
    "enable_fusion_cost_model_v1": True,
    "enable_fusion_cost_model_v2": True,
    "enable_plan_cache": True,
    "fusion_cost_min_speedup": 1.01,
    "cost_profile_signature": "auto",
    "cost_compute_per_kop_ns": 25.0,
    "cost_launch_ns": 300.0,
    "cost_transfer_per_kb_ns": 60.0,
    "cost_sync_ns": 200.0,
    "cost_boundary_ns": 100.0,
    "cost_memory_per_kb_ns": 30.0,
    "planner_cost_weight_compute": 1.0,
    "planner_cost_weight_transfer": 1.0,
    "planner_cost_weight_sync": 1.0,
}
_KEPT = 32  # plans per graph


def check_device(device):
    if not isinstance(device, str):
        raise TypeError(f"preferred_device must be a string, not {type(device).__name__}")
    if device not in DEVICES:
        raise ValueError(f"preferred_device must be metal, cpu or cuda, not {device!r}")
    return device


def read_options(named, more):
    """All options of a plan, checked."""
    if len(named) > len(NAMED):
        raise TypeError(f"at most {len(NAMED)} options may be given by position")
    options = NAMED | MORE
    for name, value in (*zip(NAMED, named), *more.items()):
        if name not in options:
            raise TypeError(f"a plan has no option {name!r}")
        preset = (NAMED | MORE)[name]
        if isinstance(preset, bool) and not isinstance(value, bool):
            raise TypeError(f"{name} must be a bool, not {value!r}")
        if isinstance(preset, float):
            if isinstance(value, (str, bool)) or not hasattr(value, "__float__"):
                raise TypeError(f"{name} must be a number, not {value!r}")
            if not float(value) >= 0:
                raise ValueError(f"{name} must not be negative")
            value = float(value)
        options[name] = value
    check_device(options["preferred_device"])
    if options["sync_mode"] not in MODES:
        raise ValueError(f"sync_mode must be auto, always or never, not {options['sync_mode']!r}")
    options["fusion_pass_order"] = fusion.read_order(options["fusion_pass_order"])
    if not isinstance(options["cost_profile_signature"], str):
        raise TypeError("cost_profile_signature must be a string")
    return options


def signature_of(options):
    """The given signature, or one that names the figures of the cost model."""
    if options["cost_profile_signature"] != "auto":
        return options["cost_profile_signature"]
    costs = ",".join(
        f"{k}={options[k]:g}" for k in MORE if k.startswith(("cost_", "planner_")) and k != "cost_profile_signature"
    )
    return f"cpu-{hashlib.sha256(costs.encode()).hexdigest()[:12]}"


def _assign(op, preferred):
    available = {d: _c.runtime_backend_capabilities(d)["available"] and SCHEMAS[op][f"supports_{d}"] for d in DEVICES}
    return next(d for d in (preferred, *DEVICES) if available[d])


def steps_of(nodes, preferred):
    assigned = {op: _assign(op, preferred) for op in {n["op"] for n in nodes}}
    return [
        {
            "node_id": n["id"],
            "op": n["op"],
            "assigned_device": assigned[n["op"]],
            "fallback": assigned[n["op"]] != preferred,
            **_reason(assigned[n["op"]], preferred),
        }
        for n in nodes
    ]


def _reason(device, preferred):
    if device == preferred:
        return {"fallback_reason_code": "none", "fallback_reason": ""}
    return {"fallback_reason_code": "backend_unavailable", "fallback_reason": f"{preferred} is not available here"}


def _groups(steps, options):
    groups = []
    for step in steps:
        key = step["assigned_device"], step["fallback"] if options["separate_fallback_segments"] else None
        alone = options["sync_mode"] == "always" or not options["group_by_backend_capability"]
        if not groups or alone or groups[-1]["key"] != key:
            groups.append(
                {
                    "key": key,
                    "group_id": len(groups),
                    "assigned_device": step["assigned_device"],
                    "fallback": step["fallback"],
                    "fallback_reason_code": step["fallback_reason_code"],
                    "fallback_reason": step["fallback_reason"],
                    "node_ids": [],
                }
            )
        groups[-1]["node_ids"].append(step["node_id"])
        step["group_id"] = groups[-1]["group_id"]
    for i, group in enumerate(groups):
        for name, other in (("before", i - 1), ("after", i + 1)):
            changes = 0 <= other < len(groups) and groups[other]["assigned_device"] != group["assigned_device"]
            wanted = options["sync_mode"] == "auto" and options["insert_sync_on_device_change"] and changes
            group[f"sync_boundary_{name}"] = options["sync_mode"] == "always" or wanted
    for group in groups:
        del group["key"]
    return groups


def work_of(node, shapes):
    """Multiply-adds, or elements."""
    inputs, out = [shapes[t] for t in node["inputs"]], prod(shapes[node["outputs"][0]])
    if node["op"] == "matmul":
        return out * inputs[0][1]
    if node["op"] == "attention_forward":
        return 2 * out * inputs[0][0]
    if node["op"].startswith("conv2d"):
        return out * prod(inputs[1][1:])
    return out


def _bytes(ids, tensors):
    return sum(prod(tensors[t]["shape"]) * (8 if tensors[t]["dtype"] == "float64" else 4) for t in ids)


def node_cost(node, tensors, shapes, options):
    """Compute: arithmetic, and reading and writing the operands."""
    moved = _bytes((*node["inputs"], *node["outputs"]), tensors)
    return work_of(node, shapes) / 1e3 * options["cost_compute_per_kop_ns"] + moved / 1e3 * options["cost_memory_per_kb_ns"]


def _summary(tensors, nodes, steps, groups, rows, options):
    shapes = [t["shape"] for t in tensors]
    switches = [i for i in range(1, len(steps)) if steps[i]["assigned_device"] != steps[i - 1]["assigned_device"]]
    saved = sum(r["end_node_id"] - r["start_node_id"] for r in rows if r["fused"])
    before, after = (sum(g[f"sync_boundary_{side}"] for g in groups) for side in ("before", "after"))
    weight = {k: options[f"planner_cost_weight_{k}"] for k in ("compute", "transfer", "sync")}
    compute = weight["compute"] * sum(node_cost(n, tensors, shapes, options) for n in nodes)
    launch = (len(nodes) - saved) * options["cost_launch_ns"]
    crossing = sum(_bytes(nodes[i]["inputs"], tensors) for i in switches)
    transfer = weight["transfer"] * crossing / 1e3 * options["cost_transfer_per_kb_ns"]
    sync, boundary = weight["sync"] * (before + after) * options["cost_sync_ns"], len(groups) * options["cost_boundary_ns"]
    totals = {
        "total_nodes": len(nodes),
        "total_groups": len(groups),
        "planned_dispatch_groups": len(nodes) - saved,
        "total_fallback_nodes": sum(s["fallback"] for s in steps),
        "total_fallback_groups": sum(g["fallback"] for g in groups),
        "sync_boundary_before_groups": before,
        "sync_boundary_after_groups": after,
        "device_switches": len(switches),
    }
    for device in ("cpu", "cuda", "metal"):
        totals[f"{device}_nodes"] = sum(s["assigned_device"] == device for s in steps)
        totals[f"{device}_groups"] = sum(g["assigned_device"] == device for g in groups)
    return totals | {
        "planner_score_model": "cost_v2" if options["enable_fusion_cost_model_v2"] else "cost_v1",
        "cost_profile_signature": signature_of(options),
        "estimated_total_cost_ns": compute + launch + transfer + sync + boundary,
        "estimated_compute_cost_ns": compute,
        "estimated_launch_cost_ns": launch,
        "estimated_transfer_cost_ns": transfer,
        "estimated_sync_cost_ns": sync,
        "estimated_boundary_cost_ns": boundary,
    }


def make(tensors, nodes, options):
    steps = steps_of(nodes, options["preferred_device"])
    groups = _groups(steps, options)
    rows = fusion.find(tensors, nodes, steps, options, node_cost, signature_of(options))
    summary = _summary(tensors, nodes, steps, groups, rows, options)
    boundaries = [(g["node_ids"][0], g["node_ids"][-1], g["sync_boundary_before"], g["sync_boundary_after"]) for g in groups]
    policy = options["sync_mode"], options["trace_sync_boundary"]
    return {
        "groups": groups,
        "steps": steps,
        "summary": summary,
        "fusion": rows,
        "boundaries": boundaries,
        "policy": policy,
        "requested": options["preferred_device"],
    }


def copied(found):
    """The public part of a plan, for the caller to change."""
    return {
        "groups": [{**g, "node_ids": list(g["node_ids"])} for g in found["groups"]],
        "steps": [dict(s) for s in found["steps"]],
        "summary": dict(found["summary"]),
    }


class PlanCache:
    """Plans by their options; the counts live as long as the graph."""

    def __init__(self):
        self.hits = self.misses = 0
        self.plans = {}

    def forget(self):
        self.plans.clear()

    def clear(self):
        self.__init__()

    def stats(self):
        asked = self.hits + self.misses
        return {
            "entries": len(self.plans),
            "hits_total": self.hits,
            "misses_total": self.misses,
            "hit_rate_pct": 100.0 * self.hits / asked if asked else 0.0,
        }

    def get(self, tensors, nodes, options):
        enabled, key = options["enable_plan_cache"], tuple(options.values())
        found = self.plans.get(key) if enabled else None
        hit = found is not None
        if not hit:
            found = make(tensors, nodes, options)
        if enabled:
            self.hits, self.misses = self.hits + hit, self.misses + (not hit)
            if not hit:
                if len(self.plans) >= _KEPT:
                    self.plans.pop(next(iter(self.plans)))
                self.plans[key] = found
        stats = self.stats()
        counts = {f"plan_cache_{k}": stats[k] for k in ("hits_total", "misses_total", "hit_rate_pct")}
        return found | {"summary": found["summary"] | {"plan_cache_enabled": enabled, "plan_cache_hit": hit, **counts}}
