"""Families of the zoo beside torchvision, timm and transformers on PyTorch: forward passes, training steps, loading.

`python benchmarks/zoo.py [--only resnet] [--batch 1 8] [--threads 1 2] [--layout plain] [--work forward] [--side 224]
[--page docs/models.md]`

Each side has the same weights; the sides take turns, and the best time of each counts: CPU time with one thread, which other
programs disturb less, else time by the clock. Families whose library does not import are left out. `--load` times reading
ResNet-50 from a .pth file, and the memory it takes, in processes of their own.
"""

import argparse
import functools
import importlib.util
import itertools
import math
import pathlib
import subprocess
import sys
import tempfile
import time

FAMILIES = {  # ours: the library, its name
    "resnet_18_cls": ("torchvision", "resnet18"),
    "resnet_50_cls": ("torchvision", "resnet50"),
    "resnext_50_32x4d_cls": ("torchvision", "resnext50_32x4d"),
    "se_resnet_50_cls": ("timm", "seresnet50"),
    "vgg_11_bn_cls": ("torchvision", "vgg11_bn"),
    "densenet_121_cls": ("torchvision", "densenet121"),
    "googlenet_cls": ("torchvision", "googlenet"),
    "mobilenet_v2_cls": ("torchvision", "mobilenet_v2"),
    "mobilenet_v3_large_cls": ("torchvision", "mobilenet_v3_large"),
    "mobilenet_v4_conv_small_cls": ("timm", "mobilenetv4_conv_small"),
    "efficientnet_b0_cls": ("torchvision", "efficientnet_b0"),
    "efficientnet_v2_s_cls": ("torchvision", "efficientnet_v2_s"),
    "convnext_tiny_cls": ("torchvision", "convnext_tiny"),
    "vit_base_16_cls": ("torchvision", "vit_b_16"),
    "deit_tiny_16_cls": ("timm", "deit_tiny_patch16_224"),
    "swin_tiny_cls": ("torchvision", "swin_t"),
    "fcn_resnet50": ("torchvision.segmentation", "fcn_resnet50"),
    "bert_base": ("transformers", "BertModel"),
    "gpt2_small_lm": ("transformers", "GPT2LMHeadModel"),
    "t5_small_encoder": ("transformers", "T5EncoderModel"),
}


FIXED = {  # names of the side of the images, of networks for one size alone
    "vit_base_16_cls": ("image_size", "image_size"),
    "deit_tiny_16_cls": ("image_size", "img_size"),
}


@functools.cache
def ready_torchvision():
    """torchvision's wheel may be built for another PyTorch: its Python part then lacks ops that it asks for when imported."""
    import torch

    found = importlib.util.find_spec("torchvision")
    try:
        for path in pathlib.Path(found.origin).parent.glob("_C*.so") if found else ():
            torch.ops.load_library(path)
    except OSError:
        for op in ("nms", "qnms"):
            torch.library.define(f"torchvision::{op}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def theirs(library, name, options):
    ready_torchvision()
    if library == "timm":
        import timm

        return timm.create_model(name, **options)
    if library == "transformers":
        import transformers

        kind = getattr(transformers, name)
        return kind(kind.config_class())
    import torchvision

    rooms = {"torchvision": torchvision.models, "torchvision.segmentation": torchvision.models.segmentation}
    options |= {"googlenet": {"init_weights": False}, "fcn_resnet50": {"weights_backbone": None}}.get(name, {})
    return getattr(rooms[library], name)(**options)


def sides(ours, library, name, size, batch, layout):
    """((model, input) of Lucid, the same of PyTorch) with the same weights."""
    import torch

    import lucid

    own, their = FIXED.get(ours, (None, None))
    reference = theirs(library, name, {their: size} if their else {})
    model = lucid.models.create_model(ours, **({own: size} if own else {}))
    state = {key: lucid.from_numpy(value.numpy().copy()) for key, value in reference.state_dict().items()}
    model.load_state_dict({key: value for key, value in state.items() if key in model.state_dict()})
    if library == "transformers":
        x = torch.randint(0, 1000, (batch, size))
    else:
        x = torch.randn(batch, 3, size, size)
    own = lucid.from_numpy(x.numpy().copy())
    if layout == "channels_last":
        reference, x = reference.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
        model, own = model.to(memory_format=lucid.channels_last), own.to(memory_format=lucid.channels_last)
    return (lucid, model, own), (torch, reference, x)


def number_of(out):
    if hasattr(out, "sum"):
        return out.sum()
    if isinstance(out, tuple) and hasattr(out, "_fields"):
        return sum(value.sum() for value in out if value is not None)
    if isinstance(out, dict) and "out" in out:
        return out["out"].sum()
    return (out.logits if getattr(out, "logits", None) is not None else out.last_hidden_state).sum()


def turn(lib, model, x, step):
    if not step:
        with lib.no_grad():
            return model(x)
    model.zero_grad()
    return number_of(model(x)).backward()


def measured(pair, step, batch, seconds, clock):
    """Best times of both, by turns. A step with one image keeps the statistics of normalisation: there are none of one."""
    for _, model, _ in pair:
        model.train(step and batch > 1)
    best, started = [math.inf, math.inf], time.perf_counter()
    for lib, model, x in pair:
        turn(lib, model, x, step)
    while time.perf_counter() - started < seconds or math.inf in best:
        for i, (lib, model, x) in enumerate(pair):
            before = clock()
            turn(lib, model, x, step)
            best[i] = min(best[i], clock() - before)
    return best


LOAD = {
    "Lucid": "import lucid; m = lucid.models.resnet50(weights={path!r}).eval()\nm(lucid.zeros(1, 3, 64, 64))",
    "PyTorch": "import sys; sys.path.insert(0, {here!r})\nimport zoo; zoo.ready_torchvision()\n"
    "import torch\nfrom timm import create_model\nm = create_model('resnet50')\n"
    "m.load_state_dict(torch.load({path!r})); m.eval()(torch.zeros(1, 3, 64, 64))",
}
CHILD = """
import resource, time
start = time.perf_counter()
{code}
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def loading():
    """Seconds and MiB from a fresh Python to the first result, the best of three."""
    import lucid

    print("| ResNet-50 from a .pth | seconds | peak MiB |\n|---|---:|---:|")
    with tempfile.NamedTemporaryFile(suffix=".pth") as file:
        lucid.save(lucid.models.resnet50().state_dict(), file.name)
        for side, code in LOAD.items():
            text = CHILD.format(code=code.format(path=file.name, here=str(pathlib.Path(__file__).parent)))
            runs = [subprocess.run([sys.executable, "-c", text], capture_output=True, text=True) for _ in range(3)]
            if any(run.returncode for run in runs):
                print(f"| {side} | not installed | |")
                continue
            seconds, memory = (min(values) for values in zip(*(map(float, run.stdout.split()) for run in runs)))
            print(f"| {side} | {seconds:.2f} | {memory:.0f} |")


BEGIN, END = "<!-- speed -->\n", "<!-- end of speed -->\n"


def write_page(page, rows, ratios, chosen):
    """Put the ratios of one thread, a line per family and batch, between two marks of a page."""
    columns = [(work, layout, 1) for layout in ("plain", "channels_last") for work in ("forward", "step")]
    means = [f"{work} {math.exp(sum(map(math.log, r)) / len(r)):.2f} (largest {max(r):.2f})" for work, r in ratios.items()]
    lines = [
        f"One thread, images of {chosen.side} pixels, texts of {chosen.tokens} tokens; {time.strftime('%d %B %Y')}, on a",
        f"shared machine: rough figures. Geometric means: {', '.join(means)}. A step is forward and backward.",
        "",
        "| family | batch | forward | step | forward, channels last | step, channels last |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for (family, batch), found in rows.items():
        cells = [f"{found[column]:.2f}" if column in found else "" for column in columns]
        lines.append(f"| {family} | {batch} | {' | '.join(cells)} |")
    before, rest = page.read_text().split(BEGIN)
    page.write_text(before + BEGIN + "\n".join(lines) + "\n" + END + rest.split(END)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--batch", type=int, nargs="*", default=[1, 8])
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--layout", nargs="*", default=["plain", "channels_last"], choices=["plain", "channels_last"])
    parser.add_argument("--work", nargs="*", default=["forward", "step"], choices=["forward", "step"])
    parser.add_argument("--side", type=int, default=96, help="pixels of the images' sides")
    parser.add_argument("--tokens", type=int, default=64, help="length of the texts")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--load", action="store_true")
    parser.add_argument("--page", default="", help="docs/models.md: write the table of ratios into it")
    chosen = parser.parse_args()
    if chosen.load:
        return loading()
    import torch

    import lucid

    ratios, rows = {}, {}
    print("| family | work | batch | layout | threads | Lucid ms | PyTorch ms | ratio |")
    print("|---|---|---:|---|---:|---:|---:|---:|")
    for ours, (library, name) in FAMILIES.items():
        if chosen.only not in ours:
            continue
        text = library == "transformers"
        for batch, layout in itertools.product(chosen.batch, ["plain"] if text else chosen.layout):
            try:
                pair = sides(ours, library, name, chosen.tokens if text else chosen.side, batch, layout)
            except ImportError as missing:
                print(f"| {ours} | | | | | | {missing.name} is not installed | |")
                continue
            for work, threads in itertools.product(chosen.work, chosen.threads):
                lucid.set_num_threads(threads)
                torch.set_num_threads(threads)
                clock = time.process_time if threads == 1 else time.perf_counter
                a, b = measured(pair, work == "step", batch, chosen.seconds, clock)
                ratios.setdefault(work, []).append(a / b)
                rows.setdefault((ours, batch), {})[work, layout, threads] = a / b
                cells = ours, work, batch, layout, threads, f"{a * 1e3:.2f}", f"{b * 1e3:.2f}", f"{a / b:.2f}"
                print(f"| {' | '.join(map(str, cells))} |", flush=True)
    for work, found in ratios.items():
        mean = math.exp(sum(map(math.log, found)) / len(found))
        print(f"\n{work}: geometric mean of {len(found)} ratios {mean:.2f}, the largest {max(found):.2f}")
    if chosen.page:
        write_page(pathlib.Path(chosen.page), rows, ratios, chosen)


if __name__ == "__main__":
    main()
