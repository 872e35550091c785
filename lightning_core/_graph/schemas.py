"""The operators of a graph: how many tensors they take and give, of which ranks and dtypes, which attributes they know."""

ANY = -1  # rank


def _schema(name, inputs, outputs, *, least=None, doubles=True, attributes=()):
    return {
        "op": name,
        "name": name,
        "min_inputs": len(inputs) if least is None else least,
        "max_inputs": len(inputs),
        "min_outputs": len(outputs),
        "max_outputs": len(outputs),
        "supports_cpu": True,
        "supports_cuda": True,
        "supports_metal": False,
        "input_ranks": list(inputs),
        "output_ranks": list(outputs),
        "allow_float32": True,
        "allow_float64": doubles,
        "require_contiguous_layout": True,
        "allowed_attributes": list(attributes),
    }


WINDOW = ("stride_h", "stride_w", "pad_h", "pad_w")
SCHEMAS = {
    s["op"]: s
    for s in (
        _schema("matmul", (2, 2), (2,)),
        _schema("vector_add", (ANY, ANY), (ANY,)),
        _schema("matrix_sub", (2, 2), (2,)),
        _schema("matrix_div", (2, 2), (2,)),
        _schema("attention_forward", (2, 2, 2), (2,), doubles=False, attributes=("causal",)),
        _schema("conv2d_nchw3x3s1p1", (4, 4, 1), (4,), least=2, doubles=False, attributes=("apply_relu",)),
        _schema("conv2d_nchw3x3", (4, 4, 1), (4,), least=2, doubles=False, attributes=(*WINDOW, "apply_relu")),
        _schema("relu", (ANY,), (ANY,)),
        _schema("qkv_pack_repeat", (4,), (2, 2, 2)),
    )
}


def _copy(schema):
    return {key: list(value) if isinstance(value, list) else value for key, value in schema.items()}


def graph_registry_size():
    """How many operators a graph may use.

    >>> graph_registry_size()
    9
    """
    return len(SCHEMAS)


def graph_registry_schemas():
    """The schemas of all operators.

    >>> [s["op"] for s in graph_registry_schemas()][:3]
    ['matmul', 'vector_add', 'matrix_sub']
    """
    return [_copy(s) for s in SCHEMAS.values()]


def graph_registry_schema(op):
    """The schema of one operator.

    >>> graph_registry_schema("attention_forward")["allowed_attributes"]
    ['causal']
    """
    return _copy(SCHEMAS[known_op(op)])


def known_op(op):
    if not isinstance(op, str):
        raise TypeError(f"op must be a string, not {type(op).__name__}")
    if op not in SCHEMAS:
        raise ValueError(f"unknown op {op!r}: a graph knows {', '.join(SCHEMAS)}")
    return op


def window_of(node):
    """(stride_h, stride_w, pad_h, pad_w) of a convolution."""
    if node["op"] == "conv2d_nchw3x3s1p1":
        return 1, 1, 1, 1
    get = node["attributes"].get
    return get("stride_h", 1), get("stride_w", 1), get("pad_h", 0), get("pad_w", 0)
