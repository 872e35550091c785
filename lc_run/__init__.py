"""lc-run: infer, train or measure with the small models, into a JSON file.

    lc-run infer --out-json result.json --mode graph --seed 3
    lc-run train --out-json result.json --steps 8 --repro-pack
    lc-run bench --out-json result.json --repeats 20

`--repro-pack` writes `<stem>.repro.json` beside it: the command, the environment, the hash of the result.

>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp(), "x.json")
>>> main(["infer", "--out-json", str(path), "--seq-len", "2", "--d-model", "4", "--d-ff", "4", "--vocab-size", "3"])
0
>>> json.loads(path.read_text())["results"]["output_shape"]
[2, 3]
"""

import argparse
import hashlib
import json
import os
import pathlib
import platform
import sys
import time


def _parser():
    parser = argparse.ArgumentParser(prog="lc-run", description="Infer, train or measure with Lightning Core's small models.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, what in (("infer", "run the transformer once"), ("train", "train the two-layer model"), ("bench", "time runs")):
        command = commands.add_parser(name, help=what)
        command.add_argument("--out-json", required=True, type=pathlib.Path)
        command.add_argument("--repro-pack", action="store_true")
        command.add_argument("--seed", type=int, default=0)
        command.add_argument("--device", choices=("auto", "metal", "cpu", "cuda"), default="auto")
        command.add_argument("--mode", choices=("eager", "graph", "interop"), default="eager")
        for size, preset in (("seq-len", 48), ("d-model", 48), ("d-ff", 128), ("vocab-size", 256)):
            command.add_argument(f"--{size}", type=int, default=preset)
        if name == "train":
            command.add_argument("--steps", type=int, default=4)
            command.add_argument("--lr", type=float, default=0.01)
        if name == "bench":
            command.add_argument("--repeats", type=int, default=10)
            command.add_argument("--warmup", type=int, default=2)
    return parser


def _runner(args):
    import numpy as np

    from lightning_core._integrated.runner import TinyTransformerRunner

    runner = TinyTransformerRunner(
        seq_len=args.seq_len, d_model=args.d_model, d_ff=args.d_ff, vocab_size=args.vocab_size, seed=args.seed
    )
    ids = np.random.default_rng(args.seed).integers(0, args.vocab_size, args.seq_len)
    return runner, lambda: runner.run(ids, mode=args.mode, device=args.device, return_metadata=True)


def _infer(args):
    logits, metadata = _runner(args)[1]()
    return metadata | {"output_sha256": hashlib.sha256(logits.tobytes()).hexdigest(), "logits_mean": float(logits.mean())}


def _train(args):
    import numpy as np

    from lightning_core._integrated.autograd import TinyAutogradMLP, autograd_train_loop

    draw = np.random.default_rng(args.seed)
    x, y = draw.standard_normal((args.seq_len, args.d_model)), draw.standard_normal((args.seq_len, 1))
    model = TinyAutogradMLP(args.d_model, args.d_ff, 1, seed=args.seed)
    return autograd_train_loop(model, x, y, steps=args.steps, lr=args.lr)


def _bench(args):
    run, times = _runner(args)[1], []
    if args.repeats < 1 or args.warmup < 0:
        raise ValueError("--repeats must be positive, --warmup not negative")
    for _ in range(args.warmup):
        run()
    for _ in range(args.repeats):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    times.sort()
    return {"repeats": args.repeats, "median_ms": times[len(times) // 2], "best_ms": times[0], "worst_ms": times[-1]}


def _write(path, value):
    fresh = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    text = json.dumps(value, indent=2, sort_keys=True) + "\n"
    fresh.write_text(text)
    os.replace(fresh, path)
    return text


def main(arguments=None):
    """Runs one command; 0 if it worked, 1 if it was refused."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    args = _parser().parse_args(arguments)
    config = {k: str(v) if isinstance(v, pathlib.Path) else v for k, v in vars(args).items()}
    sizes = {k: v for k, v in config.items() if isinstance(v, int) and not isinstance(v, bool) and k not in ("seed", "warmup")}
    try:
        for name, value in sizes.items():
            if value < 1:
                raise ValueError(f"--{name.replace('_', '-')} must be positive, not {value}")
        results = {"infer": _infer, "train": _train, "bench": _bench}[args.command](args)
        text = _write(args.out_json, {"command": args.command, "ok": True, "config": config, "results": results})
    except (ValueError, RuntimeError, TypeError, OSError) as error:
        print(f"lc-run: {error}", file=sys.stderr)
        return 1
    if args.repro_pack:
        env = {k: v for k, v in os.environ.items() if k.startswith(("CJ_", "LC_", "LUCID_"))}
        pack = {
            "schema": "lc_run_repro_pack_v1",
            "command": ["lc-run", *arguments],
            "env": {"python": platform.python_version(), "machine": platform.machine(), "variables": env},
            "artifact": args.out_json.name,
            "artifact_sha256": hashlib.sha256(text.encode()).hexdigest(),
        }
        _write(args.out_json.with_name(f"{args.out_json.stem}.repro.json"), pack)
    return 0
