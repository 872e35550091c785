"""Fusion: chains of nodes that are dispatched as one. A pass knows one pattern; a chain's inner results have no other reader.

    conv          conv2d -> relu                                  conv_relu_v1
    matmul        matmul -> vector_add -> relu                    matmul_bias_relu_v1
    attention_qkv q, k, v by matmul -> attention -> matmul        attention_qkv_proj_v1
    attention     attention -> matmul                             attention_proj_v1

The cost model fuses a chain if the launches and the memory traffic that go away are worth it (`fusion_cost_min_speedup`). Every
tensor's value is computed and returned either way.
"""

from math import prod

ORDER = ("conv", "matmul", "attention_qkv", "attention")


def read_order(order):
    names = tuple(order.replace(" ", "").split(",")) if isinstance(order, str) else tuple(order)
    wrong = [n for n in names if n not in ORDER]
    if wrong or len(set(names)) != len(names):
        raise ValueError(f"fusion_pass_order must hold some of {', '.join(ORDER)}, each once, not {order!r}")
    return names


class _Uses:
    """Who writes and who reads each tensor."""

    def __init__(self, nodes):
        self.nodes, self.writer, self.readers = nodes, {}, {}
        for n in nodes:
            for t in n["outputs"]:
                self.writer[t] = n
            for t in n["inputs"]:
                self.readers.setdefault(t, []).append(n)

    def next(self, node, op, most_inputs=None):
        """The only reader of a node's only result, if it is the very next node and that op."""
        readers = self.readers.get(node["outputs"][0], []) if node else []
        if len(readers) == 1 and readers[0]["op"] == op and readers[0]["id"] == node["id"] + 1:
            return readers[0]
        return None


def _conv(uses, node):
    last = uses.next(node, "relu") if node["op"].startswith("conv2d") else None
    return [node, last] if last else None


def _matmul(uses, node):
    add = uses.next(node, "vector_add") if node["op"] == "matmul" else None
    last = uses.next(add, "relu")
    return [node, add, last] if last else None


def _attention(uses, node):
    last = uses.next(node, "matmul") if node["op"] == "attention_forward" else None
    return [node, last] if last else None


def _attention_qkv(uses, node):
    tail = _attention(uses, node)
    if not tail or node["id"] < 3:
        return None
    products = [uses.writer.get(t) for t in node["inputs"]]
    fits = [p and p["op"] == "matmul" and len(uses.readers[p["outputs"][0]]) == 1 for p in products]
    ids = [p["id"] for p in products if p]
    if all(fits) and sorted(ids) == [node["id"] - 3, node["id"] - 2, node["id"] - 1]:
        return sorted(products, key=lambda p: p["id"]) + tail
    return None


PASSES = {
    "conv": (_conv, "conv_relu_v1"),
    "matmul": (_matmul, "matmul_bias_relu_v1"),
    "attention_qkv": (_attention_qkv, "attention_qkv_proj_v1"),
    "attention": (_attention, "attention_proj_v1"),
}


def _inner_bytes(chain, tensors):
    made = {t for n in chain[:-1] for t in n["outputs"]}
    return sum(prod(tensors[t]["shape"]) * (8 if tensors[t]["dtype"] == "float64" else 4) for t in made)


def find(tensors, nodes, steps, options, node_cost, signature):
    """A row per chain, in the order in which passes found them."""
    if not options["enable_fusion_v1"]:
        return []
    uses, shapes, taken, rows = _Uses(nodes), [t["shape"] for t in tensors], set(), []
    for order, name in enumerate(options["fusion_pass_order"]):
        match, pattern = PASSES[name]
        if not options[f"enable_fusion_pass_{name}"]:
            continue
        for node in nodes:
            chain = match(uses, node)
            if not chain or taken & {n["id"] for n in chain} or len({steps[n["id"]]["assigned_device"] for n in chain}) > 1:
                continue
            single = sum(node_cost(n, tensors, shapes, options) for n in chain) + len(chain) * options["cost_launch_ns"]
            traffic = 2 * _inner_bytes(chain, tensors) / 1e3 * options["cost_memory_per_kb_ns"]
            saved = (len(chain) - 1) * options["cost_launch_ns"]
            saved += traffic if options["enable_fusion_cost_model_v2"] else 0
            together = max(single - saved, options["cost_launch_ns"], 1e-9)
            judged = options["enable_fusion_cost_model_v1"] or options["enable_fusion_cost_model_v2"]
            fused = not judged or single / together >= options["fusion_cost_min_speedup"]
            if fused:
                taken |= {n["id"] for n in chain}
            rows.append(
                {
                    "pattern": pattern,
                    "pass_id": name,
                    "pass_order": order,
                    "start_node_id": chain[0]["id"],
                    "end_node_id": chain[-1]["id"],
                    "assigned_device": steps[chain[0]["id"]]["assigned_device"],
                    "fused": fused,
                    "cost_model_applied": judged,
                    "estimated_unfused_cost_ns": single,
                    "estimated_fused_cost_ns": together,
                    "estimated_speedup": single / together,
                    "cost_profile_signature": signature,
                    "reason": "pattern_matched" if not judged else "cost_model_accepted" if fused else "cost_model_rejected",
                }
            )
    return rows
