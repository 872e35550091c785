"""Runs one use of a package in this process and writes what it gave: `python compare.py USE RESULT.json`.

With `python -m lucid compare.py …` the same file runs on Lucid.
"""

import json
import sys
import time
import warnings


def numbers(value):
    """A result as nested lists of floats."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().double().tolist()
    if isinstance(value, dict):
        return {str(key): numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [numbers(item) for item in value]
    return float(value)


def main(name, path):
    warnings.simplefilter("ignore")
    import torch

    if (
        "lucid" not in torch.__version__
    ):  # torchvision's library is built for another PyTorch; its Python part asks for these ops
        for op in ("nms", "qnms"):
            torch.library.define(f"torchvision::{op}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import uses

    torch.set_num_threads(1)
    use, times, result = getattr(uses, name), [], None
    while len(times) < 3 or (len(times) < 8 and sum(times) < 2):  # the first one imports; more of the short ones
        torch.manual_seed(0)
        begin = time.process_time()
        given = use()
        times.append(time.process_time() - begin)
        result = given if len(times) <= 3 else result  # of the same run on both sides
    with open(path, "w") as file:
        json.dump({"version": torch.__version__, "seconds": min(times[1:]), "result": numbers(result)}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
