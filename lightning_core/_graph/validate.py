"""The validation passes. Each yields issues; later passes skip nodes whose tensors earlier ones could not find."""

from math import prod

from .schemas import ANY, SCHEMAS, window_of

PASSES = ("schema_contract", "topology", "alias_lifetime", "layout_flow", "backend_capability")


def graph_validation_passes():
    """The names of the passes, in order.

    >>> graph_validation_passes()[0]
    'schema_contract'
    """
    return list(PASSES)


def _issue(reason, message, node=-1, tensor=-1, status="invalid value"):
    return {"status": status, "node_id": node, "tensor_id": tensor, "message": message, "reason_code": reason}


def _ids_fit(node, count):
    return all(i < count for i in (*node["inputs"], *node["outputs"]))


def _schema_contract(tensors, nodes):
    for t in tensors:
        if not t["shape"] or 0 in t["shape"]:
            yield _issue("invalid_tensor_spec", f"shape {t['shape']} must hold positive sizes", tensor=t["id"])
    for n in nodes:
        schema, i = SCHEMAS[n["op"]], n["id"]
        fits = True
        for what in ("inputs", "outputs"):
            low, high = schema[f"min_{what}"], schema[f"max_{what}"]
            if not low <= len(n[what]) <= high:
                fits = False
                yield _issue("arity_mismatch", f"{n['op']} takes {low} to {high} {what}, not {len(n[what])}", i)
        for t in (*n["inputs"], *n["outputs"]):
            if t >= len(tensors):
                yield _issue("tensor_out_of_range", f"there is no tensor {t}", i, t)
        for name in n["attributes"]:
            if name not in schema["allowed_attributes"]:
                yield _issue("attribute_unsupported", f"{n['op']} has no attribute {name!r}", i)
        if fits and _ids_fit(n, len(tensors)):
            yield from _node_contract(tensors, n, schema)


def _node_contract(tensors, n, schema):
    i, ranks_fit = n["id"], True
    for what in ("input", "output"):
        for t, rank in zip(n[f"{what}s"], schema[f"{what}_ranks"]):
            if rank not in (ANY, len(tensors[t]["shape"])):
                ranks_fit = False
                yield _issue("rank_mismatch", f"an {what} of {n['op']} has {rank} dimensions, tensor {t} others", i, t)
    dtypes = {tensors[t]["dtype"] for t in (*n["inputs"], *n["outputs"])}
    if len(dtypes) > 1 or not all(schema[f"allow_{dtype}"] for dtype in dtypes):
        yield _issue("dtype_mismatch", f"{n['op']} does not take {' and '.join(sorted(dtypes))}", i)
    if ranks_fit and not _shapes_fit(n, *([tensors[t]["shape"] for t in n[k]] for k in ("inputs", "outputs"))):
        yield _issue("shape_constraint_violation", f"the shapes of {n['op']} do not fit", i)


def _conv_fits(n, inputs, out):
    x, w, *bias = inputs
    sh, sw, ph, pw = window_of(n)
    if sh < 1 or sw < 1 or ph < 0 or pw < 0 or w[1:] != [x[1], 3, 3] or (bias and bias[0] != [w[0]]):
        return False
    size = [(x[2] + 2 * ph - 3) // sh + 1, (x[3] + 2 * pw - 3) // sw + 1]
    return min(size) > 0 and out == [x[0], w[0], *size]


def _shapes_fit(n, inputs, outputs):
    op, out = n["op"], outputs[0]
    if op == "matmul":
        (m, k), (k2, columns) = inputs
        return k == k2 and out == [m, columns]
    if op == "vector_add":
        return prod(inputs[0]) == prod(inputs[1]) == prod(out)
    if op in ("matrix_sub", "matrix_div", "attention_forward"):
        return all(shape == out for shape in inputs)
    if op == "relu":
        return inputs[0] == out
    if op == "qkv_pack_repeat":
        return outputs[1:] == [out, out]
    return _conv_fits(n, inputs, out)


def _topology(tensors, nodes):
    for n in nodes:
        for d in n["control_deps"]:
            if d >= n["id"]:
                yield _issue("control_dependency_invalid", f"node {d} does not run before this one", n["id"])


def _alias_lifetime(tensors, nodes):
    writer = {}
    for n in nodes:
        for t in n["outputs"]:
            if t >= len(tensors):
                continue
            if t in writer or tensors[t]["constant"] or t in n["inputs"]:
                why = "is constant" if tensors[t]["constant"] else "has another value already"
                yield _issue("alias_lifetime_violation", f"tensor {t} cannot be written: it {why}", n["id"], t)
            writer.setdefault(t, n["id"])
    for n in nodes:
        for t in n["inputs"]:
            if writer.get(t, -1) > n["id"]:
                yield _issue("alias_lifetime_violation", f"tensor {t} is read before node {writer[t]} writes it", n["id"], t)


def _layout_flow(tensors, nodes):
    for n in nodes:
        for t in (*n["inputs"], *n["outputs"]):
            if t < len(tensors) and tensors[t]["layout"] != "contiguous" and SCHEMAS[n["op"]]["require_contiguous_layout"]:
                yield _issue("layout_mismatch", f"{n['op']} takes contiguous tensors", n["id"], t)


def _backend_capability(tensors, nodes):
    for n in nodes:
        if not any(SCHEMAS[n["op"]][f"supports_{device}"] for device in ("cpu", "cuda", "metal")):
            yield _issue("backend_unavailable", f"no device computes {n['op']}", n["id"], status="not supported")


def report(tensors, nodes):
    found = []
    for name in PASSES:
        for issue in globals()[f"_{name}"](tensors, nodes):
            found.append({"pass": name, **issue})
    return {"ok": not found, "status": found[0]["status"] if found else "success", "issues": found}
