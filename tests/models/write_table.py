"""Write the table of families in docs/models.md: `python -m tests.models.write_table`. A test compares."""

import json
import pathlib

import lucid
from lucid.models import registry
from lucid.models._names import NAMES

from . import cases as text_cases
from . import vision_cases

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "models.md"
BEGIN, END = "<!-- families -->\n", "<!-- end of families -->\n"
OWN = ("rcnn", "fast_rcnn", "transformer", "zfnet", "vae", "hvae", "ncsn", "attention_unet")
ZOOS = {  # whose keys, by the end of a module's name; by the config's type where a module has several
    **dict.fromkeys(("resnet", "vgg", "densenet", "inception", "mobilenet", "efficientnet", "convnext"), "torchvision"),
    **dict.fromkeys(("swin", "fcn", "rcnn", "vit"), "torchvision"),
    **dict.fromkeys(("resnet_kin", "mobilenet_timm", "seresnet", "deit-timm", "xception", "inception_next", "pvt_v2"), "timm"),
    **dict.fromkeys(("inception_resnet", "maxvit", "coatnet", "crossvit", "efficientformer"), "timm"),
    **dict.fromkeys(("ddpm", "autoencoder"), "diffusers"),
    "detr": "facebookresearch/detr",
    "efficientdet": "effdet",
    "pvt": "whai362/PVT",
    "unet": "milesial/Pytorch-UNet",
    "lenet": "own",
    "yolo": "own",
}


def families():
    """(config's type, names of its factories, the module), as the modules are ordered."""
    registry._load_all()
    found = {}
    for name, (factory, task, family) in registry._ENTRIES.items():
        if task not in ("plain-tensors", "toy") and family != "toys":
            found.setdefault((factory.__module__.removeprefix("lucid.models."), family), []).append(name)
    order = [*NAMES, "lenet"]
    return sorted(found.items(), key=lambda item: order.index(item[0][0]) if item[0][0] in order else len(order))


def zoo_of(module, family):
    last = module.rpartition(".")[2]
    if family in OWN:
        return "own"
    return ZOOS.get(family) or ZOOS.get(last) or "transformers"


def millions(count):
    return f"{count / 1e6:,.1f}" if count < 1e8 else f"{count / 1e6:,.0f}"


def text():
    numbers = json.loads((HERE / "vision.json").read_text())
    checked = {made: name for name, (made, *_rest) in vision_cases.CASES.items()}
    checked |= {made: name for name, made in vision_cases.DETECTORS.items()} | {
        "detr_resnet50": "detr",
        "efficientdet_d0": "efficientdet",
    }
    kinds = {kind for kind, _fields in text_cases.CASES.values()}
    lines = [
        "| family | keys of | models | parameters in millions | values and gradients | published sizes |",
        "|---|---|---|---|---|---:|",
    ]
    for (module, family), names in families():
        with lucid.device("meta"):
            models = {name: lucid.models.create_model(name) for name in names}
        counts = sorted({model.num_parameters() for model in models.values()})
        span = millions(counts[0]) if len(counts) == 1 else f"{millions(counts[0])} to {millions(counts[-1])}"
        tried = any(name in checked for name in names) or any(type(m).__name__ in kinds for m in models.values())
        full = sum(name in numbers["full"] for name in names)
        shown = f"`{names[0]}`" if len(names) == 1 else f"`{min(names, key=len)}`, ... ({len(names)})"
        family = family.removesuffix("-torchvision").removesuffix("-timm")
        lines.append(
            f"| {family} | {zoo_of(module, family)} | {shown} | {span} | {'yes' if tried else 'shapes'} | {full or ''} |"
        )
    return "\n".join(lines) + "\n"


def page():
    before, rest = PAGE.read_text().split(BEGIN)
    return before + BEGIN + text() + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page())
