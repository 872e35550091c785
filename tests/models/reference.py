"""What transformers computes for the cases: `python reference.py numbers.json` keeps small numbers for the tests,
`python reference.py FOLDER` writes a folder per case as the Hub has them, with the outputs. Needs torch and transformers.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cases  # noqa: E402


def build(kind, fields):
    import torch
    import transformers

    model_class = getattr(transformers, kind)
    config = model_class.config_class(**fields)
    if kind == "BertLMHeadModel":
        config.is_decoder = True
    config._attn_implementation = "eager"
    model = model_class(config).eval()
    state = model.state_dict()
    tied = {}
    with torch.no_grad():
        for key, tensor in state.items():
            if tensor.data_ptr() in tied:
                continue
            tied[tensor.data_ptr()] = key
            if tensor.is_floating_point():
                tensor.copy_(torch.tensor(cases.values(key, tensor.numel()), dtype=torch.float64).view(tensor.shape))
    return model, {key: list(t.shape) for key, t in state.items()}


def outputs_of(name):
    import torch

    kind, fields = cases.CASES[name]
    model, keys = build(kind, fields)
    ids, mask = torch.tensor(cases.IDS), torch.tensor(cases.MASK)
    out = model(ids, attention_mask=mask)
    result = {"keys": keys, "count": sum(p.numel() for p in model.parameters()), "config": model.config.to_dict()}
    for field in cases.FIELDS:
        value = getattr(out, field, None)
        if value is not None:
            result[field] = value.detach()
    extra = {key: torch.tensor(value) for key, value in cases.labels_for(kind).items()}
    if extra:
        out = model(ids, attention_mask=mask, **extra)
        loss = out.loss
        if getattr(out, "mc_loss", None) is not None:
            result["mc_loss"] = out.mc_loss.detach()
            (loss + out.mc_loss).backward()
        else:
            loss.backward()
        result["loss"] = float(loss)
        result["norms"] = {key: float(p.grad.norm()) for key, p in model.named_parameters() if p.grad is not None}
    return model, result


def numbers(path, *anew):
    """Of the outputs: the first row's last token and the second row's last real one. Cases that are there stay."""
    path = pathlib.Path(path)
    kept = json.loads(path.read_text()) if path.exists() else {}
    for name in cases.CASES:
        if name in kept and name not in anew:
            continue
        _, result = outputs_of(name)
        for field, value in list(result.items()):
            if hasattr(value, "shape"):
                picked = value[:, (-1, -3)] if value.ndim == 3 else value
                result[field] = [round(float(v), 7) for v in picked.flatten()]
        result["norms"] = {key: round(v, 6) for key, v in result.get("norms", {}).items()}
        result.pop("config")
        kept[name] = result
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(result)}" for name, result in kept.items())
    path.write_text("{\n" + lines + "\n}\n")


def folders(root):
    for number, name in enumerate(cases.CASES):
        model, result = outputs_of(name)
        folder = pathlib.Path(root) / f"case{number}"
        model.save_pretrained(folder)
        arrays = {field: value.tolist() for field, value in result.items() if hasattr(value, "shape")}
        (folder / "outputs.json").write_text(json.dumps({**arrays, "loss": result.get("loss")}))


if __name__ == "__main__":
    numbers(*sys.argv[1:]) if sys.argv[1].endswith(".json") else folders(sys.argv[1])
