"""GraphIR and the pipeline that it runs."""

import numpy as np
import pytest

import lightning_core as lc

from .reference import DEVICES, attention, conv, pipeline, random


def graph_of(*shapes, dtype="float32"):
    graph = lc.GraphIR()
    return graph, [graph.add_tensor(list(shape), dtype) for shape in shapes]


def run(graph, feeds, out, dtype="float32", **options):
    result = (graph.execute_f32 if dtype == "float32" else graph.execute_f64)(feeds, **options)
    return result["values"][out]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", ["matmul", "vector_add", "matrix_sub", "matrix_div", "relu"])
def test_every_operator(op, dtype, device):
    a, b = (np.random.default_rng(i).standard_normal((4, 4)) for i in range(2))
    wanted = {"matmul": a @ b, "vector_add": a + b, "matrix_sub": a - b, "matrix_div": a / b, "relu": np.maximum(a, 0)}[op]
    graph, (x, y, z) = graph_of((4, 4), (4, 4), (4, 4), dtype=dtype)
    graph.add_node(op, [x] if op == "relu" else [x, y], [z])
    got = run(graph, {x: a, y: b}, z, dtype, preferred_device=device)
    assert got.dtype == dtype and got.shape == (16,)
    np.testing.assert_allclose(
        got, wanted.ravel(), rtol=1e-12 if dtype == "float64" else 1e-4, atol=1e-8 if dtype == "float64" else 1e-5
    )


@pytest.mark.parametrize("causal", [0, 1])
def test_attention_obeys_causal(causal):
    q, k, v = (random(5, 4, seed=i) for i in range(3))
    graph, ids = graph_of(*[(5, 4)] * 4)
    graph.add_node("attention_forward", ids[:3], ids[3:], attributes={"causal": causal})
    np.testing.assert_allclose(
        run(graph, dict(zip(ids, (q, k, v))), ids[3]), attention(q, k, v, causal).ravel(), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("op,window,relu", [("conv2d_nchw3x3s1p1", (1, 1, 1, 1), 0), ("conv2d_nchw3x3", (2, 1, 0, 1), 1)])
def test_convolutions(op, window, relu):
    x, w, bias = random(1, 2, 6, 5), random(3, 2, 3, 3), random(3)
    wanted = conv(x, w, bias, window[:2], window[2:], relu)
    graph, ids = graph_of(x.shape, w.shape, (3,), wanted.shape)
    names = dict(zip(("stride_h", "stride_w", "pad_h", "pad_w"), window)) if op == "conv2d_nchw3x3" else {}
    graph.add_node(op, ids[:3], ids[3:], attributes=names | {"apply_relu": relu})
    np.testing.assert_allclose(run(graph, dict(zip(ids, (x, w, bias))), ids[3]), wanted.ravel(), rtol=1e-4, atol=1e-4)


def reasons(graph):
    report = graph.validate_report()
    assert report["ok"] is not bool(report["issues"])
    if report["issues"]:
        with pytest.raises(RuntimeError, match="invalid value"):
            graph.validate()
        with pytest.raises(RuntimeError):
            graph.plan()
    return {(i["pass"], i["reason_code"]) for i in report["issues"]}


def test_validation():
    assert lc.graph_validation_passes() == [
        "schema_contract",
        "topology",
        "alias_lifetime",
        "layout_flow",
        "backend_capability",
    ]
    cases = [
        (lambda g, x, y, z: g.add_node("matmul", [x], [z]), "schema_contract", "arity_mismatch"),
        (lambda g, x, y, z: g.add_node("matmul", [x, 99], [z]), "schema_contract", "tensor_out_of_range"),
        (lambda g, x, y, z: g.add_node("matmul", [x, y], [z]), "schema_contract", "shape_constraint_violation"),
        (lambda g, x, y, z: g.add_node("relu", [x], [x]), "alias_lifetime", "alias_lifetime_violation"),
        (
            lambda g, x, y, z: g.add_node("relu", [x], [g.add_tensor([2, 3], constant=True)]),
            "alias_lifetime",
            "alias_lifetime_violation",
        ),
        (
            lambda g, x, y, z: g.add_node("relu", [x], [g.add_tensor([2, 3], layout="strided")]),
            "layout_flow",
            "layout_mismatch",
        ),
        (lambda g, x, y, z: g.add_node("relu", [x], [g.add_tensor([2, 3], "float64")]), "schema_contract", "dtype_mismatch"),
        (lambda g, x, y, z: g.add_node("matmul", [x, g.add_tensor([3])], [z]), "schema_contract", "rank_mismatch"),
        (lambda g, x, y, z: g.add_node("relu", [x], [z], attributes={"odd": 1}), "schema_contract", "attribute_unsupported"),
        (lambda g, x, y, z: g.add_node("relu", [x], [y], [0]), "topology", "control_dependency_invalid"),
        (lambda g, x, y, z: g.add_tensor([0, 2]), "schema_contract", "invalid_tensor_spec"),
    ]
    for add, where, reason in cases:
        graph, ids = graph_of((2, 3), (2, 3), (2, 2))
        assert reasons(graph) == set()
        add(graph, *ids)
        assert (where, reason) in reasons(graph), reason
    graph, (x, y, z) = graph_of((2, 2), (2, 2), (2, 2))
    graph.add_node("relu", [y], [z])
    graph.add_node("relu", [x], [y])
    assert reasons(graph) == {("alias_lifetime", "alias_lifetime_violation")}


def test_bad_arguments():
    graph, (x, y) = graph_of((2, 2), (2, 2))
    for error, call in (
        (ValueError, lambda: graph.add_node("conv3d", [x], [y])),
        (ValueError, lambda: graph.add_tensor([2], "int8")),
        (ValueError, lambda: graph.add_tensor([2], layout="odd")),
        (TypeError, lambda: graph.add_tensor([-1])),
        (TypeError, lambda: graph.add_tensor([1.5])),
        (TypeError, lambda: graph.add_node("relu", [x], [y], attributes={"a": "b"})),
        (ValueError, lambda: graph.plan("auto")),
        (ValueError, lambda: graph.plan_groups(sync_mode="often")),
        (TypeError, lambda: graph.plan_groups(unknown=True)),
        (TypeError, lambda: graph.plan_groups(enable_fusion_v1=1)),
        (ValueError, lambda: graph.plan_groups(fusion_pass_order="conv,odd")),
        (TypeError, lambda: graph.execute_f32([1])),
        (RuntimeError, lambda: graph.execute_f32({5: [1]})),
        (RuntimeError, lambda: graph.execute_f32({x: [1]})),
        (RuntimeError, lambda: graph.execute_f64({})),
    ):
        with pytest.raises(error):
            call()
    graph.add_node("relu", [x], [y])
    for feeds in ({}, {y: np.zeros(4)}, {x: np.zeros(4), y: np.zeros(4)}):
        with pytest.raises(RuntimeError, match="invalid value"):
            graph.execute_f32(feeds)


def layered():
    """conv -> relu, and q, k, v -> attention -> projection, and a linear layer with ReLU."""
    graph = lc.GraphIR()
    t = lambda *shape: graph.add_tensor(list(shape))
    x, w, image, hot = t(1, 1, 4, 4), t(2, 1, 3, 3), t(1, 2, 4, 4), t(1, 2, 4, 4)
    graph.add_node("conv2d_nchw3x3s1p1", [x, w], [image])
    graph.add_node("relu", [image], [hot])
    s, weights, qkv, mixed, out = t(4, 4), [t(4, 4) for _ in range(4)], [t(4, 4) for _ in range(3)], t(4, 4), t(4, 4)
    for weight, part in zip(weights, qkv):
        graph.add_node("matmul", [s, weight], [part])
    graph.add_node("attention_forward", qkv, [mixed])
    graph.add_node("matmul", [mixed, weights[3]], [out])
    weight, bias, hidden, added, last = t(4, 4), t(4, 4), t(4, 4), t(4, 4), t(4, 4)
    graph.add_node("matmul", [out, weight], [hidden])
    graph.add_node("vector_add", [hidden, bias], [added])
    graph.add_node("relu", [added], [last])
    return graph


def test_plans_and_fusion():
    graph = layered()
    steps = graph.plan("cpu")
    assert [s["node_id"] for s in steps] == list(range(10))
    assert all(s["assigned_device"] == "cpu" and not s["fallback"] for s in steps)
    assert all(s["fallback"] and s["fallback_reason_code"] != "none" for s in graph.plan("metal"))
    found = graph.plan_groups()
    assert len(found["groups"]) == 1 and found["groups"][0]["node_ids"] == list(range(10))
    assert not found["groups"][0]["sync_boundary_before"]
    each = graph.plan_groups(sync_mode="always")
    assert len(each["groups"]) == 10 and all(g["sync_boundary_before"] and g["sync_boundary_after"] for g in each["groups"])
    rows = graph.fusion_report()
    assert rows == graph.fusion_report() == layered().fusion_report()
    assert [(r["pattern"], r["start_node_id"], r["end_node_id"]) for r in rows if r["fused"]] == [
        ("conv_relu_v1", 0, 1),
        ("matmul_bias_relu_v1", 7, 9),
        ("attention_qkv_proj_v1", 2, 6),
    ]
    summary = graph.plan_summary()
    assert summary["total_nodes"] == 10 and summary["planned_dispatch_groups"] == 3 and summary["cpu_nodes"] == 10
    assert graph.plan_summary(enable_fusion_v1=False)["planned_dispatch_groups"] == 10
    without = graph.fusion_report(enable_fusion_pass_attention_qkv=False)
    assert "attention_proj_v1" in {r["pattern"] for r in without}
    dear = graph.fusion_report(fusion_cost_min_speedup=1e9)
    assert dear and not any(r["fused"] for r in dear) and {r["reason"] for r in dear} == {"cost_model_rejected"}
    parts = ("compute", "launch", "transfer", "sync", "boundary")
    assert summary["estimated_total_cost_ns"] == pytest.approx(sum(summary[f"estimated_{p}_cost_ns"] for p in parts))


def test_the_plan_cache():
    graph = layered()
    assert not graph.plan_summary()["plan_cache_hit"]
    again = graph.plan_summary()
    assert again["plan_cache_hit"] and again["plan_cache_hits_total"] == 1 and again["plan_cache_hit_rate_pct"] == 50
    assert not graph.plan_summary("cpu")["plan_cache_hit"]
    graph.add_tensor([1])
    assert not graph.plan_summary()["plan_cache_hit"]
    assert graph.plan_cache_stats()["misses_total"] == 3
    graph.clear_plan_cache()
    assert graph.plan_cache_stats()["misses_total"] == 0
    assert not graph.plan_summary(enable_plan_cache=False)["plan_cache_enabled"]


def test_values_are_copies_with_the_feeds():
    graph, (x, y) = graph_of((2, 2), (2, 2))
    graph.add_node("relu", [x], [y])
    given = np.array([[1, -1], [2, -2]], np.float32)
    values = graph.execute_f32({x: given})["values"]
    assert set(values) == {x, y}
    values[x][:] = 0
    assert given[0, 0] == 1


PIPELINES = [((1, 3, 8, 8), (16, 3, 3, 3), (1, 1), (1, 1), 48, 48), ((2, 2, 5, 6), (3, 2, 3, 3), (2, 1), (0, 1), 4, 3)]


@pytest.mark.parametrize("shape,kernel,stride,pad,seq,dim", PIPELINES)
@pytest.mark.parametrize("biased", [True, False])
def test_the_pipeline(shape, kernel, stride, pad, seq, dim, biased):
    x, w, bias = random(*shape), random(*kernel, seed=3), random(kernel[0]) if biased else None
    wanted = pipeline(x, w, bias, seq, dim, stride, pad).ravel()
    run, into = lc.lightning_conv_attention_torchstrong_nchw, lc.api.conv_attention_torchstrong_nchw_into
    for mode in ("eager", "graph"):
        for device in DEVICES:
            got = run(x, w, bias, seq, dim, *stride, *pad, device, mode)
            assert got.shape == (seq * dim,)
            np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4)
        out = np.zeros((dim, seq), np.float32)
        assert into(x, w, bias, out, seq, dim, *stride, *pad, execution_mode=mode) is None
        np.testing.assert_allclose(out.ravel(), wanted, rtol=1e-3, atol=1e-4)
    report = lc.api.conv_attention_torchstrong_nchw_ab_report(x, w, bias, seq, dim, *stride, *pad, repeat=2)
    assert report["allclose"] and len(report) == 16
    assert report["graph_over_eager"] == pytest.approx(report["graph_ms"] / report["eager_ms"])


def test_graph_mode_falls_back(monkeypatch):
    x, w = random(1, 1, 4, 4), random(1, 1, 2, 2)
    run = lc.lightning_conv_attention_torchstrong_nchw
    np.testing.assert_array_equal(run(x, w, None, 2, 2, execution_mode="graph"), run(x, w, None, 2, 2))
    monkeypatch.setenv("LC_GRAPH_MODE_STRICT", "yes")
    with pytest.raises(ValueError):
        run(x, w, None, 2, 2, execution_mode="graph")
    with pytest.raises(ValueError):
        run(x, w, None, 2, 2, execution_mode="fast")
    with pytest.raises(ValueError):
        lc.api.conv_attention_torchstrong_nchw_ab_report(x, w, None, 2, 2, repeat=0)
    lc.api.clear_attention_session_cache()
