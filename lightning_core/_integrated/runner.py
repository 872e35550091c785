"""TinyTransformerRunner: one attention head and a feed-forward layer, without norms or residuals, that shows a model on every
path: "eager" calls the operators, "graph" runs a GraphIR, "interop" lets a route policy choose who computes attention.
"""

import hashlib
import json

import numpy as np

from lucid import _C

from .._graph import GraphIR
from .blocks import _Stateful
from .engines import attention, resolve, tensor
from .routes import validate_route_policy

_c = _C._lightning()
MODES, DEVICES = ("eager", "graph", "interop"), ("auto", "metal", "cpu", "cuda")
FREEZE_ID = "v0.4.0-rc0"


def _check(name, value, known):
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {type(value).__name__}")
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, not {value!r}")


class TinyTransformerRunner(_Stateful):
    """Token ids, or (seq_len, d_model) numbers, to logits (seq_len, vocab_size).

    >>> runner = TinyTransformerRunner(seq_len=3, d_model=4, d_ff=8, vocab_size=5, seed=1)
    >>> runner.run_tokens([1, 2, 3]).shape
    (3, 5)
    >>> bool(np.allclose(runner.run([1, 2, 3], mode="graph"), runner.run([1, 2, 3])))
    True
    """

    _state = ("embedding", "w_q", "w_k", "w_v", "w_o", "w_up", "b_up", "w_down", "b_down", "w_logits")

    def __init__(self, *, seq_len=48, d_model=48, d_ff=128, vocab_size=256, seed=0):
        for name, value in (("seq_len", seq_len), ("d_model", d_model), ("d_ff", d_ff), ("vocab_size", vocab_size)):
            if isinstance(value, bool) or not hasattr(value, "__index__") or value < 1:
                raise ValueError(f"{name} must be a positive int, not {value!r}")
        self.seq_len, self.d_model, self.d_ff, self.vocab_size, self.seed = seq_len, d_model, d_ff, vocab_size, seed
        draw = np.random.default_rng(seed)
        weight = lambda rows, columns: (draw.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)
        self.embedding = draw.standard_normal((vocab_size, d_model)).astype(np.float32)
        self.w_q, self.w_k, self.w_v, self.w_o = (weight(d_model, d_model) for _ in range(4))
        self.w_up, self.b_up = weight(d_model, d_ff), np.zeros(d_ff, np.float32)
        self.w_down, self.b_down = weight(d_ff, d_model), np.zeros(d_model, np.float32)
        self.w_logits = weight(d_model, vocab_size)
        self._graph = None

    def config_contract(self):
        """What a copy of this runner needs to be made.

        >>> TinyTransformerRunner(seq_len=2).config_contract()["seq_len"]
        2
        """
        sizes = ("seq_len", "d_model", "d_ff", "vocab_size", "seed")
        return {name: getattr(self, name) for name in sizes} | {
            "layout": "seq_dmodel_2d",
            "dtype": "float32",
            "modes": list(MODES),
            "freeze_id": FREEZE_ID,
        }

    def _input(self, x):
        x = np.asarray(x)
        if x.ndim == 1 and x.dtype.kind in "iu":
            if x.size != self.seq_len:
                raise ValueError(f"{self.seq_len} token ids are expected, not {x.size}")
            if x.size and not 0 <= x.min() <= x.max() < self.vocab_size:
                raise ValueError(f"token ids must be less than {self.vocab_size}")
            return self.embedding[x]
        if x.shape != (self.seq_len, self.d_model):
            raise ValueError(f"x must be {self.seq_len} token ids or ({self.seq_len}, {self.d_model}), not {x.shape}")
        return tensor(x)

    def _eager(self, x, device, engine=None):
        multiply = lambda a, b: _c.matmul2d(a, b, device)
        q, k, v = (multiply(x, w) for w in (self.w_q, self.w_k, self.w_v))
        mixed = attention(q, k, v, self.seq_len, self.d_model, False, device, engine or "lightning")
        hidden = multiply(multiply(mixed, self.w_o), self.w_up) + self.b_up
        np.maximum(hidden, 0, out=hidden)
        return multiply(multiply(hidden, self.w_down) + self.b_down, self.w_logits)

    def _build(self):
        graph, names = GraphIR(), {}
        seq, model, ff, vocab = self.seq_len, self.d_model, self.d_ff, self.vocab_size

        def add(name, *shape):
            names[name] = graph.add_tensor(shape, name=name)
            return names[name]

        x = add("x", seq, model)
        parts = []
        for name in ("w_q", "w_k", "w_v"):
            parts.append(add(f"by_{name}", seq, model))
            graph.add_node("matmul", [x, add(name, model, model)], [parts[-1]])
        mixed, out = add("mixed", seq, model), add("projected", seq, model)
        graph.add_node("attention_forward", parts, [mixed])
        graph.add_node("matmul", [mixed, add("w_o", model, model)], [out])
        for name, rows, columns in (("up", model, ff), ("down", ff, model)):
            product, biased = add(f"product_{name}", seq, columns), add(f"biased_{name}", seq, columns)
            graph.add_node("matmul", [out, add(f"w_{name}", rows, columns)], [product])
            graph.add_node("vector_add", [product, add(f"b_{name}", seq, columns)], [biased])
            out = biased
            if name == "up":
                out = add("hidden", seq, columns)
                graph.add_node("relu", [biased], [out])
        logits = add("logits", seq, vocab)
        graph.add_node("matmul", [out, add("w_logits", model, vocab)], [logits])
        graph.validate()
        return graph, names

    def _by_graph(self, x, device):
        if self._graph is None:
            self._graph = self._build()
        graph, names = self._graph
        feeds = {names[name]: getattr(self, name) for name in self._state if name.startswith("w_")}
        feeds |= {names[name]: np.tile(getattr(self, name), (self.seq_len, 1)) for name in ("b_up", "b_down")}
        values = graph.execute_f32(feeds | {names["x"]: x}, device)["values"]
        return values[names["logits"]].reshape(self.seq_len, self.vocab_size)

    def run(self, x, *, mode="eager", device="auto", route_policy=None, return_metadata=False):
        """The logits; with return_metadata also a dict of what was asked for and what ran.

        >>> runner = TinyTransformerRunner(seq_len=2, d_model=4, d_ff=4, vocab_size=3)
        >>> runner.run([0, 2], return_metadata=True)[1]["resolved_device"]
        'cpu'
        """
        _check("mode", mode, MODES)
        _check("device", device, DEVICES)
        policy = validate_route_policy(route_policy, strict=True)["normalized"]
        here = "cpu" if device == "auto" else device
        x = self._input(x)
        engine = "lightning"
        if mode == "interop" and policy["attention"] != "auto":
            engine = resolve(policy["attention"], here)
        logits = self._by_graph(x, here) if mode == "graph" else self._eager(x, here, engine)
        if not return_metadata:
            return logits
        return logits, {
            "mode": mode,
            "requested_device": device,
            "resolved_device": "cpu",
            "attention_engine": engine,
            "route_policy": policy,
            "output_shape": list(logits.shape),
        }

    def run_tokens(self, tokens, **options):
        """`run` of token ids.

        >>> TinyTransformerRunner(seq_len=1, d_model=4, d_ff=4, vocab_size=3).run_tokens([2]).shape
        (1, 3)
        """
        ids = np.asarray(tokens)
        if ids.dtype.kind not in "iu" or ids.ndim != 1:
            raise ValueError("token ids must be a list of ints")
        return self.run(ids, **options)


def runner_replay_report(runner, x, *, mode="eager", device="auto", route_policy=None, repeats=3, atol=1e-6, rtol=1e-6):
    """Whether a runner gives the same result again: {repeats, replayable, max_abs_diff, output_sha256, ...}.

    >>> runner = TinyTransformerRunner(seq_len=2, d_model=4, d_ff=4, vocab_size=3)
    >>> runner_replay_report(runner, [0, 1])["replayable"]
    True
    """
    if isinstance(repeats, bool) or not hasattr(repeats, "__index__") or repeats < 1:
        raise ValueError(f"repeats must be a positive int, not {repeats!r}")
    results = [runner.run(x, mode=mode, device=device, route_policy=route_policy) for _ in range(repeats + 1)]
    worst = max(float(np.abs(r - results[0]).max()) for r in results[1:])
    return {
        "mode": mode,
        "device": device,
        "repeats": repeats,
        "atol": atol,
        "rtol": rtol,
        "replayable": all(np.allclose(r, results[0], atol=atol, rtol=rtol) for r in results[1:]),
        "max_abs_diff": worst,
        "output_shape": list(results[0].shape),
        "output_sha256": hashlib.sha256(results[0].tobytes()).hexdigest(),
    }


# ---- the contract ----
_SCHEMA = {
    "required": ["mode", "device", "seed", "layout", "dtype", "route_policy"],
    "properties": {
        "mode": {"type": "string", "enum": list(MODES)},
        "device": {"type": "string", "enum": list(DEVICES)},
        "seed": {"type": "integer", "minimum": 0},
        "layout": {"type": "string", "enum": ["seq_dmodel_2d"]},
        "dtype": {"type": "string", "enum": ["float32"]},
        "route_policy": {"type": "object"},
    },
}


def _copy(value):
    return json.loads(json.dumps(value))


def runner_config_schema():
    """The schema of a runner's configuration.

    >>> runner_config_schema()["required"][:2]
    ['mode', 'device']
    """
    return _copy(_SCHEMA)


def runner_contract_manifest():
    """The frozen schema by its hash: sha256 over compact JSON with sorted keys.

    >>> runner_contract_manifest()["freeze_id"]
    'v0.4.0-rc0'
    """
    digest = hashlib.sha256(json.dumps(_SCHEMA, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    return {"freeze_id": FREEZE_ID, "schema_sha256": digest, "schema": runner_config_schema()}


def runner_artifact_schema():
    """What lc-run writes.

    >>> "artifact_sha256" in runner_artifact_schema()["repro_pack"]["required"]
    True
    """
    return {
        "result": {"required": ["command", "ok", "config", "results"]},
        "repro_pack": {"schema": "lc_run_repro_pack_v1", "required": ["schema", "command", "env", "artifact_sha256"]},
    }


def _config_problem(config):
    if not isinstance(config, dict):
        return "type", f"a configuration is a dict, not {type(config).__name__}"
    for name in _SCHEMA["required"]:
        if name not in config:
            return "missing_key", f"{name} is missing"
    for name, value in config.items():
        rule = _SCHEMA["properties"].get(name)
        if rule is None:
            return "unknown_key", f"there is no {name!r}"
        kind = {"string": str, "integer": int, "object": dict}[rule["type"]]
        if name == "route_policy" and value is None:
            continue
        if not isinstance(value, kind) or isinstance(value, bool):
            return "invalid_type", f"{name} must be a {rule['type']}, not {value!r}"
        if value not in rule.get("enum", [value]) or (kind is int and value < rule["minimum"]):
            return "invalid_value", f"{name} must not be {value!r}"
    policy = validate_route_policy(config["route_policy"])
    return None if policy["ok"] else ("invalid_route_policy", policy["message"])


def validate_runner_config(config, *, strict=False):
    """Whether a dict configures a runner: {ok, code, message, normalized}; strict raises ValueError.

    >>> validate_runner_config({})["code"]
    'runner_config_missing_key'
    """
    found = _config_problem(config)
    if found and strict:
        raise ValueError(f"runner_config_{found[0]}: {found[1]}")
    if found:
        return {"ok": False, "code": f"runner_config_{found[0]}", "message": found[1], "normalized": None}
    policy = validate_route_policy(config["route_policy"])["normalized"]
    return {"ok": True, "code": "ok", "message": "", "normalized": {**config, "route_policy": policy}}
