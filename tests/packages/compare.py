"""Runs one use of a package in this process and writes what it gave: `python compare.py USE RESULT.json [DEVICE]`.

With `python -m lucid compare.py …` the same file runs on Lucid. DEVICE becomes the default device; random numbers are drawn on
the CPU all the same, so that they are those of a run without it.
"""

import importlib
import json
import random
import sys
import time
import warnings


def numbers(value):
    """A result as nested lists of floats."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().cpu().double().tolist()
    if isinstance(value, dict):
        return {str(key): numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [numbers(item) for item in value]
    return float(value)


def draw_on_the_cpu(torch):
    """What functions and methods draw is moved to where it was asked for."""

    def of_function(draw):
        def drawn(*args, device=None, requires_grad=False, **kwargs):
            if any(isinstance(a, torch.Tensor) for a in args):
                return draw(*args, **kwargs)
            made = draw(*args, device="cpu", **kwargs)
            return made.to(device or torch.get_default_device()).requires_grad_(requires_grad)

        return drawn

    def of_method(draw):
        def drawn(self, *args, generator=None, **kwargs):
            if self.device.type == "cpu" or generator is not None:
                return draw(self, *args, generator=generator, **kwargs)
            with torch.no_grad():
                return self.copy_(draw(torch.empty(self.shape, dtype=self.dtype, device="cpu"), *args, **kwargs))

        return drawn

    for name in ("rand", "randn", "randint", "randperm"):
        setattr(torch, name, of_function(getattr(torch, name)))
    for name in ("normal_", "uniform_", "random_", "exponential_", "bernoulli_"):
        setattr(torch.Tensor, name, of_method(getattr(torch.Tensor, name)))


def main(name, path, device=None):
    warnings.simplefilter("ignore")
    import numpy
    import torch

    if (
        "lucid" not in torch.__version__
    ):  # torchvision's library is built for another PyTorch; its Python part asks for these ops
        for op in ("nms", "qnms"):
            torch.library.define(f"torchvision::{op}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    from pairs import home

    uses = importlib.import_module(home(name))
    torch.set_num_threads(1)
    if device:
        draw_on_the_cpu(torch)
        torch.set_default_device(device)
    use, times, result = getattr(uses, name), [], None
    while len(times) < 3 or (len(times) < 8 and sum(times) < 2):  # the first one imports; more of the short ones
        torch.manual_seed(0)
        random.seed(0)  # packages draw from the generators of Python and NumPy, too
        numpy.random.seed(0)
        begin = time.process_time()
        given = use()
        times.append(time.process_time() - begin)
        result = given if len(times) <= 3 else result  # of the same run on both sides
    with open(path, "w") as file:
        json.dump({"version": torch.__version__, "seconds": min(times[1:]), "result": numbers(result)}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
