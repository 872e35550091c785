"""What peft computes for the cases: `python reference.py numbers.json` keeps numbers, `python reference.py FOLDER` writes an
adapter per case with its outputs, and with a second folder reads those that Lucid wrote. Needs torch and peft.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cases  # noqa: E402
import peft  # noqa: E402
import torch  # noqa: E402


def run(name):
    config = peft.LoraConfig(**cases.config_of(name))
    model = cases.fill(torch, peft.get_peft_model(cases.network(torch.nn), config))
    out = model(torch.tensor(cases.IDS))
    out.square().sum().backward()
    norms = {key: float(p.grad.norm()) for key, p in model.named_parameters() if p.grad is not None}
    result = {"keys": {k: list(v.shape) for k, v in model.state_dict().items()}, "out": out.tolist(), "norms": norms}
    return model, result


def merged(name):
    model = run(name)[0].merge_and_unload()
    return {key: float(value.abs().sum()) for key, value in model.state_dict().items()}


if __name__ == "__main__":
    if sys.argv[1].endswith(".json"):
        lines = [f"{json.dumps(n)}: {json.dumps({**run(n)[1], 'merged': merged(n)})}" for n in cases.CASES if n != "own biases"]
        lines += [f"{json.dumps('own biases')}: {json.dumps(run('own biases')[1])}"]
        pathlib.Path(sys.argv[1]).write_text("{\n" + ",\n".join(lines) + "\n}\n")
    for number, name in enumerate(cases.CASES if not sys.argv[1].endswith(".json") else ()):
        if len(sys.argv) > 2:  # what Lucid wrote, read here
            base = cases.fill(torch, cases.network(torch.nn))
            read = peft.PeftModel.from_pretrained(base, f"{sys.argv[2]}/{number}")
            (pathlib.Path(sys.argv[2]) / f"{number}.json").write_text(json.dumps(read(torch.tensor(cases.IDS)).tolist()))
        else:
            run(name)[0].save_pretrained(f"{sys.argv[1]}/{number}")
