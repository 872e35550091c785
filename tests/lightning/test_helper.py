"""lightning_core_integrated_api: engines, routes, blocks, checkpoints, autograd, runner, adapters; lc-run."""

import json
import zipfile

import numpy as np
import pytest

import lc_run
import lightning_core as lc
import lightning_core_api
import lightning_core_integrated_api as h

from .reference import attention, conv, pipeline, random


@pytest.fixture(autouse=True)
def lightning_engine():
    h.set_engine("lightning")
    yield
    h.set_engine("lightning")


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("engine", ["lightning", "Torch", "AUTO"])
def test_engines_agree(engine):
    h.set_engine(engine)
    assert h.get_engine() == h.get_backend() == engine.lower() == lc.api.get_engine()
    a, b, q, x, w, bias = random(4, 3), random(3, 5), random(6, 4), random(1, 2, 6, 6), random(3, 2, 3, 3), random(3)
    close(h.lightning_matmul(a, b), a @ b)
    for out in (np.empty((4, 5), "f"), np.empty(20, "f")):
        result = h.lightning_matmul_into(a, b, out)
        assert result.shape == (4, 5) and np.shares_memory(result, out)
        close(result, a @ b)
    wanted = attention(q, q, q)
    for shape in ((24,), (6, 4), (1, 6, 4)):
        result = h.lightning_attention(*[q.reshape(shape)] * 3, 6, 4)
        assert result.shape == shape
        close(result, wanted.reshape(shape))
    close(h.lightning_attention(q, q, q, 6, 4, "cpu", True), attention(q, q, q, True))
    heads = random(3, 6, 4)
    close(h.lightning_attention(heads, heads, heads, 6, 4), [attention(k, k, k) for k in heads])
    wanted = conv(x, w, bias, (1, 2), (1, 0), relu=True)
    close(h.lightning_conv_relu_nchw(x, w, bias, 1, 2, 1), wanted)
    out = np.empty(wanted.shape, "f")
    assert h.lightning_conv_relu_torchstrong_nchw(x, w, bias, 1, 2, 1, out=out, workspace_cache={}, cache_key="k") is out
    close(out, wanted)
    for mode in ("eager", "graph"):
        close(
            h.lightning_conv_attention_torchstrong_nchw(x, w, bias, 4, 3, execution_mode=mode),
            pipeline(x, w, bias, 4, 3).ravel(),
        )
    report = h.lightning_conv_attention_torchstrong_nchw_ab_report(x, w, bias, 4, 3, repeat=1)
    assert report["allclose"] and report["conv_policy"] == "auto"
    close(lc.api.attention(q, q, q, 6, 4), attention(q, q, q))
    assert lc.api.attention_lightning_direct(q, q, q, 6, 4).shape == (24,)
    out = np.empty((6, 4), "f")
    lc.api.attention_into(q, q, q, out, 6, 4, causal=True)
    close(out, attention(q, q, q, True))
    for bad in (np.empty((6, 4)), np.empty((6, 8), "f")[:, ::2]):
        with pytest.raises(ValueError):
            lc.api.attention_into(q, q, q, bad, 6, 4)
        with pytest.raises(ValueError):
            h.lightning_matmul_into(a, b, bad)
    policy = {"conv": "torch", "attention": "lightning"}
    close(lc.api.conv_attention_torchstrong_nchw(x, w, bias, 4, 3, route_policy=policy), pipeline(x, w, bias, 4, 3).ravel())
    out = np.empty(12, "f")
    lc.api.conv_attention_torchstrong_nchw_into(x, w, bias, out, 4, 3, route_policy=policy)
    close(out, pipeline(x, w, bias, 4, 3).ravel())
    assert lc.api.conv_attention_torchstrong_nchw_ab_report(x, w, bias, 4, 3, repeat=1)["allclose"]


def test_engine_errors(monkeypatch):
    for name, error in (
        ("abacus", ValueError),
        ("tf", RuntimeError),
        ("coreml", RuntimeError),
        ("mlx", RuntimeError),
        (1, TypeError),
    ):
        with pytest.raises(error):
            h.set_engine(name)
    from lightning_core._integrated import engines

    monkeypatch.setattr(engines, "torch_is_here", lambda: False)
    with pytest.raises(RuntimeError):
        h.set_backend("torch")
    h.set_engine("auto")
    assert engines.resolve(device="metal") == "lightning"


def test_routes():
    x, w = random(1, 1, 5, 5), random(2, 1, 3, 3)
    for policy, code in (([], "type"), ({"pool": "torch"}, "key"), ({"conv": "abacus"}, "value"), ({"conv": 1}, "value")):
        found = h.validate_route_policy(policy)
        assert not found["ok"] and found["code"] == f"interop_route_policy_invalid_{code}" and found["message"]
        with pytest.raises(h.RoutePolicyValidationError) as caught:
            h.validate_route_policy(policy, strict=True)
        assert caught.value.code == found["code"] and isinstance(caught.value, ValueError)
        with pytest.raises(ValueError):
            lc.api.conv_attention_torchstrong_nchw(x, w, None, 2, 2, route_policy=policy)
    report = lambda *args, **kwargs: h.lightning_conv_attention_torchstrong_nchw_route_report(x, *args, **kwargs)
    assert report(w, None, 2, 2, execution_mode="graph")["resolved_execution_mode"] == "graph"
    found = report(w, None, 2, 2, execution_mode="graph", route_policy={"graph": "torch", "attention": "torch"})
    assert found["graph_fallback_reason_code"] == "graph_engine_not_lightning" and found["resolved_execution_mode"] == "eager"
    assert found["boundary_crosses_engines"] and not found["zero_copy_eligible"]
    assert len([key for key in found if key.startswith("boundary_")]) == 12
    small = random(2, 1, 2, 2)
    found = lc.api.conv_attention_torchstrong_nchw_route_report(x, small, None, 2, 2, execution_mode="graph")
    assert found["graph_fallback_reason_code"] == "graph_shape_unsupported" and found["conv_output_shape"] == [1, 2, 4, 4]


def test_blocks():
    layer = h.Linear(3, 2)
    layer.bias[:] = 1
    x = random(5, 3)
    close(layer(x), x @ layer.weight + 1)
    assert h.Linear(3, 2, bias=False).bias is None
    with pytest.raises(ValueError):
        layer(x[0])
    other = h.Linear(3, 2)
    other.load_state_dict(layer.state_dict("a."), prefix="a.")
    close(other(x), layer(x))
    for state in ({}, layer.state_dict() | {"more": 1}, {"weight": np.ones((2, 2)), "bias": np.ones(2)}):
        with pytest.raises(ValueError):
            other.load_state_dict(state)
    other.load_state_dict({}, strict=False)
    model, copy = h.TinyMLPModel(3, 4, 2), h.TinyMLPModel(3, 4, 2)
    copy.load_state_dict(model.state_dict())
    close(copy(x), model(x))
    image, w, bias = random(1, 2, 5, 5), random(3, 2, 3, 3), random(3)
    block = h.ConvReLUResidentBlock(w, bias, pad_h=1)
    first = block.run(image)
    close(first, conv(image, w, bias, (1, 1), (1, 0), relu=True))
    assert block.run(2 * image) is first
    out = np.empty_like(first)
    assert block.run(image, out) is out
    block.w *= -1
    close(block.run(image), conv(image, -w, bias, (1, 1), (1, 0), relu=True))
    for wrong in (out[0], out.astype("f8"), out.ravel()):
        with pytest.raises(ValueError):
            block.run(image, wrong)
    attend, q = h.AttentionResidentBlock(4, 3, causal=True), random(4, 3)
    result = attend.run(q, q, q)
    close(result, attention(q, q, q, True))
    assert attend.run(q, q, q) is result and attend.run(*[q.ravel()] * 3).shape == (12,)
    assert attend.run(*[q[None]] * 3).shape == (1, 4, 3)
    heads = random(2, 4, 3)
    several = attend.run(heads, heads, heads)
    close(several, np.stack([attention(head, head, head, True) for head in heads]))
    assert attend.run(-heads, heads, heads) is several
    close(several[1], attention(-heads[1], heads[1], heads[1], True))
    with pytest.raises(ValueError):
        attend.run(heads, heads[:1], heads)
    again = h.AttentionResidentBlock(1, 1)
    again.load_state_dict(attend.state_dict())
    close(again.run(q, q, q), attention(q, q, q, True))
    whole = h.ConvAttentionResidentPipeline(w, bias, seq=4, head_dim=3, conv_pad_w=1)
    close(whole.run(image), pipeline(image, w, bias, 4, 3, (1, 1), (0, 1)).ravel())
    close(whole.run(image, "graph"), whole.run(image))
    h.clear_attention_session_cache()


def test_checkpoints(tmp_path):
    state = {"a": np.arange(6.0).reshape(2, 3), "deep": {"b": np.int32(4), "c": np.ones(2, "f2")}}
    path = h.save_checkpoint(tmp_path / "x", state, metadata={"epoch": 3})
    assert path.endswith("x.npz")
    found = h.load_checkpoint(path)
    assert sorted(found["state"]) == ["a", "deep.b", "deep.c"] and found["state"]["deep.c"].dtype == np.float16
    meta = found["meta"]
    assert meta["format"] == "lc_checkpoint_v1_2" and meta["user_metadata"] == {"epoch": 3} and meta["num_tensors"] == 3
    assert meta["integrity_signature"] == "lc_integrity_sha256_v1" and set(meta["tensor_manifest"]["a"]) == {
        "dtype",
        "shape",
        "nbytes",
        "sha256",
    }
    target = {}
    h.load_checkpoint(path, into=target)
    np.testing.assert_array_equal(target["a"], state["a"])
    model, copy = h.TinyMLPModel(2, 3, 1), h.TinyMLPModel(2, 3, 1)
    path = h.save_model_checkpoint(tmp_path / "m.npz", model, compressed=False)
    assert sorted(h.load_model_checkpoint(path, into=copy)["model_state"]) == sorted(model.state_dict())
    close(copy(np.ones((1, 2))), model(np.ones((1, 2))))
    runner, other = (h.TinyTransformerRunner(seq_len=2, d_model=4, d_ff=4, vocab_size=3, seed=s) for s in (1, 2))
    path = h.save_runner_checkpoint_v2(tmp_path / "r", runner, optimizer_state={"m": np.ones(2)}, graph_manifest={"n": 1})
    optimizer = {}
    found = h.load_runner_checkpoint(path, into_runner=other, optimizer_into=optimizer)
    assert found["format"] == "lc_checkpoint_v2" and found["manifest"] == {"n": 1} and optimizer["m"].tolist() == [1, 1]
    close(other.run([0, 1]), runner.run([0, 1]))
    assert lightning_core_api.checkpoint.validate_checkpoint(path)["ok"]
    for wrong in ({"a": object()}, {1: np.ones(1)}):
        with pytest.raises(TypeError):
            h.save_checkpoint(tmp_path / "bad", wrong)
    assert not list(tmp_path.glob("*bad*"))


def rewritten(path, change):
    """The archive with its arrays and metadata changed, and packed again."""
    with np.load(path) as archive:
        arrays = dict(archive)
    meta = json.loads(arrays["__lc_checkpoint_meta__"].tobytes())
    change(arrays, meta)
    if "__lc_checkpoint_meta__" in arrays:
        arrays["__lc_checkpoint_meta__"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    np.savez(path, **arrays)


CHANGES = {
    "checkpoint_tensor_hash_mismatch": lambda a, m: a.update(a=a["a"] + 1),
    "checkpoint_num_tensors_mismatch": lambda a, m: a.pop("a"),
    "checkpoint_manifest_missing_tensor": lambda a, m: a.update(z=a.pop("a")),
    "checkpoint_manifest_hash_mismatch": lambda a, m: m["tensor_manifest"]["a"].update(shape=[3]),
    "checkpoint_signature_mismatch": lambda a, m: m.update(integrity_signature="x"),
    "checkpoint_format_unsupported": lambda a, m: m.update(format="lc_checkpoint_v9"),
    "checkpoint_meta_invalid": lambda a, m: m.clear(),
    "checkpoint_meta_missing": lambda a, m: a.pop("__lc_checkpoint_meta__"),
}


@pytest.mark.parametrize("code", CHANGES)
def test_changed_checkpoints_are_found(tmp_path, code):
    path = h.save_checkpoint(tmp_path / "x", {"a": np.ones(2), "b": np.zeros(3)})
    assert h.validate_checkpoint(path, strict=True)["ok"]
    rewritten(path, CHANGES[code])
    found = h.validate_checkpoint(path)
    assert not found["ok"] and found["code"] == code and found["message"]
    for call in (lambda: h.load_checkpoint(path), lambda: h.validate_checkpoint(path, strict=True)):
        with pytest.raises(h.CheckpointValidationError) as caught:
            call()
        assert caught.value.code == code


def test_damaged_checkpoints_are_read_errors(tmp_path):
    import torch

    path = h.save_checkpoint(tmp_path / "x", {"a": np.arange(500)})
    data = open(path, "rb").read()
    broken = [data[:100], data[: len(data) // 2], b"", b"text", data[:60] + b"\xff" * 40 + data[100:]]
    for content in broken:
        with open(path, "wb") as file:
            file.write(content)
        assert h.validate_checkpoint(path)["code"] == "checkpoint_read_error"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "a.npy",
            b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(128) + b"\x80\x04N.",
        )
    assert not h.validate_checkpoint(path)["ok"]
    report = h.checkpoint_conversion_diagnostics({"a": np.ones(2), "b": np.array([np.nan])})
    assert [i["code"] for i in report["issues"]] == ["checkpoint_conversion_not_finite"]
    half = h.checkpoint_conversion_diagnostics({"a": torch.ones(2, dtype=torch.bfloat16), "b": torch.ones(2)})
    assert half["keys"] == ["b"] and [i["code"] for i in half["issues"]] == ["checkpoint_conversion_not_an_array"]
    with pytest.raises(h.CheckpointValidationError):
        h.validate_checkpoint_conversion({"a": "text"}, strict=True)


def test_autograd_agrees_with_pytorch():
    import torch

    x, w, b, q = random(2, 1, 5, 5), random(2, 1, 3, 3), random(2), random(4, 3)
    ours = [h.ag_parameter(v) for v in (x, w, b, q)]
    theirs = [torch.tensor(v, requires_grad=True) for v in (x, w, b, q)]
    y = h.ag_relu(h.ag_conv2d(*ours[:3], 2, 1, 1, 0))
    attended = h.ag_attention(ours[3], ours[3], ours[3], causal=True)
    loss = h.ag_add(
        h.ag_mse_loss(y, np.zeros(y.shape)),
        h.ag_mse_loss(h.ag_matmul(attended, h.ag_reshape(ours[3], (3, 4))), np.ones((4, 4))),
    )
    loss.backward()
    ty = torch.nn.functional.conv2d(*theirs[:3], (2, 1), (1, 0)).relu()
    tq = theirs[3]
    mixed = torch.nn.functional.scaled_dot_product_attention(tq[None], tq[None], tq[None], is_causal=True)[0]
    total = (ty**2).mean() + ((mixed @ tq.reshape(3, 4) - 1) ** 2).mean()
    total.backward()
    assert loss.data.item() == pytest.approx(total.item(), rel=1e-4)
    for mine, his in zip(ours, theirs):
        close(mine.grad, his.grad.numpy())
    norm = float(torch.stack([t.grad.norm() for t in theirs]).norm())
    assert h.ag_clip_grad_norm(ours, norm / 2) == pytest.approx(norm, rel=1e-4)
    assert h.ag_grad_norm(ours) == pytest.approx(norm / 2, rel=1e-4)
    before = ours[1].data.copy()
    h.ag_sgd_step(ours, 0.1)
    close(ours[1].data, before - 0.1 * ours[1].grad)
    h.ag_zero_grad(ours)
    assert ours[0].grad is None


def test_training():
    x, y, said = random(8, 3), random(8, 1), []
    hooks = {
        name: lambda step, *rest, name=name: said.append((name, step))
        for name in ("on_step_begin", "on_after_backward", "on_after_step")
    }
    result = h.autograd_train_loop(h.TinyAutogradMLP(3, 16, 1, seed=1), x, y, steps=5, lr=0.1, grad_clip_norm=1.0, hooks=hooks)
    assert result["loss_decreased"] and len(result["losses"]) == len(result["step_summaries"]) == 5
    assert said[:3] == [("on_step_begin", 0), ("on_after_backward", 0), ("on_after_step", 0)] and len(said) == 15
    scaled = h.autograd_train_loop(
        h.TinyAutogradMLP(3, 16, 1, seed=1), x, y, steps=5, lr=0.1, grad_clip_norm=1.0, loss_scale=128.0
    )
    np.testing.assert_allclose(scaled["losses"], result["losses"], rtol=1e-4)
    model = h.TinyAutogradConvAttention(seed=0)
    losses = [model.train_step(np.ones((1, 1, 8, 8)), np.zeros((8, 8)), lr=0.1) for _ in range(4)]
    assert losses[-1] < losses[0]
    with pytest.raises(ValueError):
        h.autograd_train_loop(model, x, y, steps=0)


def test_the_runner():
    runner = h.TinyTransformerRunner(seq_len=5, d_model=6, d_ff=7, vocab_size=11, seed=3)
    ids = np.array([1, 10, 0, 4, 4])
    x = runner.embedding[ids]
    mixed = attention(*(x @ w for w in (runner.w_q, runner.w_k, runner.w_v))) @ runner.w_o
    wanted = (np.maximum(mixed @ runner.w_up + runner.b_up, 0) @ runner.w_down + runner.b_down) @ runner.w_logits
    for mode in ("eager", "graph", "interop"):
        close(runner.run(ids, mode=mode), wanted)
        close(runner.run(x, mode=mode, device="metal"), wanted)
    logits, metadata = runner.run(ids, mode="interop", route_policy={"attention": "torch"}, return_metadata=True)
    close(logits, wanted)
    assert metadata["attention_engine"] == "torch" and metadata["requested_device"] == "auto"
    for error, call in (
        (ValueError, lambda: runner.run(ids[:3])),
        (ValueError, lambda: runner.run(ids + 5)),
        (ValueError, lambda: runner.run(ids, mode="fast")),
        (ValueError, lambda: runner.run(ids, device="tpu")),
        (ValueError, lambda: runner.run_tokens([0.5])),
        (ValueError, lambda: h.TinyTransformerRunner(seq_len=0)),
    ):
        with pytest.raises(error):
            call()
    assert h.runner_replay_report(runner, ids, mode="graph")["replayable"]
    config = {"mode": "eager", "device": "auto", "seed": 1, "layout": "seq_dmodel_2d", "dtype": "float32", "route_policy": {}}
    assert h.validate_runner_config(config)["ok"]
    for change, code in (
        ({"mode": "x"}, "invalid_value"),
        ({"seed": -1}, "invalid_value"),
        ({"seed": "1"}, "invalid_type"),
        ({"more": 1}, "unknown_key"),
        ({"route_policy": {"x": "y"}}, "invalid_route_policy"),
    ):
        assert h.validate_runner_config(config | change)["code"] == f"runner_config_{code}"
        with pytest.raises(ValueError):
            h.validate_runner_config(config | change, strict=True)
    assert h.runner_contract_manifest() == h.runner_contract_manifest()


def test_adapters():
    import torch

    runner = h.TinyTransformerRunner(seq_len=2, d_model=4, d_ff=4, vocab_size=3)
    module = h.create_torch_module_wrapper(runner)
    assert isinstance(module, torch.nn.Module)
    close(module(torch.tensor([0, 2])).numpy(), runner.run([0, 2]))
    with pytest.raises(ValueError):
        module(torch.tensor([0]))
    row = h.get_torch_wrapper_telemetry(module)
    assert (row["calls"], row["failures"], row["output_shape"]) == (1, 1, [2, 3]) and "ValueError" in row["last_error"]
    assert set(row) == set(h.torch_runner_adapter_schema()["required_fields"])

    class Fake:
        convert_to_tensor = staticmethod(lambda y: ("tensor", y))

    for make, read in (
        (h.create_tf_keras_layer_wrapper, h.get_tf_wrapper_telemetry),
        (h.create_tf_model_runner_adapter, h.get_tf_wrapper_telemetry),
        (h.create_mlx_model_runner_adapter, h.get_mlx_wrapper_telemetry),
        (h.create_coreml_model_runner_adapter, h.get_coreml_wrapper_telemetry),
    ):
        adapter = make(runner)
        close(adapter([0, 2]), runner.run([0, 2]))
        assert read(adapter)["runtime_tag"] == "numpy_shim" and read(adapter)["calls"] == 1
    given = h.create_tf_keras_layer_wrapper(runner, tf_module=Fake)
    assert given([0, 2])[0] == "tensor" and h.get_tf_wrapper_telemetry(given)["runtime_tag"] == "tensorflow"
    assert h.coreml_roundtrip_beta_report()["status"] == "not supported"


@pytest.mark.parametrize("command", [["infer", "--mode", "graph"], ["train", "--steps", "3"], ["bench", "--repeats", "2"]])
def test_lc_run(tmp_path, command):
    sizes = ["--seq-len", "3", "--d-model", "4", "--d-ff", "8", "--vocab-size", "9", "--seed", "5"]
    path = tmp_path / "out.json"
    assert lc_run.main([*command, *sizes, "--out-json", str(path), "--repro-pack"]) == 0
    result, pack = (json.loads((tmp_path / name).read_text()) for name in ("out.json", "out.repro.json"))
    assert result["ok"] and result["command"] == command[0] and result["config"]["seed"] == 5
    assert pack["schema"] == "lc_run_repro_pack_v1" and pack["command"][1] == command[0]
    import hashlib

    assert pack["artifact_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix == ".json") == ["out.json", "out.repro.json"]
    assert lc_run.main([command[0], "--out-json", str(tmp_path / "x.json"), "--seq-len", "0"]) == 1
    with pytest.raises(SystemExit):
        lc_run.main([command[0]])
