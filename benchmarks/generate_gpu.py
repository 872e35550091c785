#!/usr/bin/env python3
"""GPT-2 (124 million parameters, random weights) on one GPU beside PyTorch, one text.

usage: generate_gpu.py [--dtype=bfloat16] [--markdown]

A token is timed as a program meets it: the step, the choice of the likeliest token, and reading it on the host. Beside it:
transformers' GPT-2 in eager PyTorch, if that package is installed, and a GPT-2 as one writes it by hand. Figures are the best
of several turns of 64 tokens; the libraries alternate. At the end both generate with the same weights, and must agree.
"""

import sys
import time

import torch
from compare import Row, show
from generate import PlainGPT2

import lucid
from lucid import generation, models

PROMPT, TOKENS, PREFILL, TURNS = 32, 64, 512, 5


def ours(model, prompt, cuda_graph=True):
    """A turn: seconds per token after the first few, in which kernels are compiled and the graph is captured."""

    def turn():
        run = generation.Generation(model, [prompt], max_new_tokens=TOKENS + 8, eos_token_id=None, cuda_graph=cuda_graph)
        for _ in range(8):
            run.step()
        start = time.perf_counter()
        for _ in range(TOKENS):
            run.step()
        return (time.perf_counter() - start) / TOKENS

    return turn


def greedy(step, prompt):
    """The same for PyTorch: step(ids, past) gives logits of the last token."""

    def turn():
        ids, past = torch.tensor([prompt], device="cuda"), 0
        for i in range(8 + TOKENS):
            if i == 8:
                start = time.perf_counter()
            logits = step(ids, past)
            past += ids.shape[1]
            ids = logits.argmax(-1, keepdim=True)
            int(ids)
        return (time.perf_counter() - start) / TOKENS

    return turn


def of_transformers(model):
    from transformers import DynamicCache

    cache = None

    def step(ids, past):
        nonlocal cache
        cache = cache if past else DynamicCache()
        return model(ids, past_key_values=cache, use_cache=True).logits[:, -1]

    return step


def timed(function, wait):
    def turn():
        start = time.perf_counter()
        for _ in range(10):
            function()
        wait()
        return (time.perf_counter() - start) / 10

    return turn


def best(turns):
    times = [float("inf")] * len(turns)
    for _ in range(TURNS):
        for i, turn in enumerate(turns):
            times[i] = min(times[i], turn())
    return times


def same_tokens(model, other, prompt):
    """Both with the same float32 weights: the tokens must agree."""
    state = {k: lucid.tensor(v.detach().float().cpu().numpy()) for k, v in other.state_dict().items()}
    model = model.float()
    model.load_state_dict({k: v for k, v in state.items() if k in model.state_dict()})
    mine = generation.generate(model, [prompt], max_new_tokens=40, eos_token_id=None)[0, len(prompt) :].tolist()
    with torch.no_grad():
        theirs = other.float().generate(
            torch.tensor([prompt], device="cuda"), max_new_tokens=40, do_sample=False, eos_token_id=None, pad_token_id=0
        )
    theirs = theirs[0, len(prompt) :].tolist()
    return mine == theirs


def main(argv):
    options = dict(a[2:].split("=", 1) for a in argv if a.startswith("--") and "=" in a)
    dtype = options.get("dtype", "bfloat16")
    prompt, long = [[i * 37 % 50257 for i in range(n)] for n in (PROMPT, PREFILL)]
    model = models.gpt2_small_lm().eval().to(device="cuda", dtype=getattr(lucid, dtype))
    plain = PlainGPT2().eval().to("cuda", getattr(torch, dtype))
    plain.cache = [c.to("cuda", getattr(torch, dtype)) for c in plain.cache]
    names, theirs, other = ["PyTorch, a plain GPT-2"], [greedy(plain, prompt)], None
    try:
        from transformers import GPT2Config, GPT2LMHeadModel

        other = GPT2LMHeadModel(GPT2Config()).eval().to("cuda", getattr(torch, dtype))
        names.insert(0, "PyTorch, transformers")
        theirs.insert(0, greedy(of_transformers(other), prompt))
    except ImportError:
        print("transformers is not installed")
    rows = []
    with lucid.no_grad(), torch.no_grad():
        graphed, eager, *others = best([ours(model, prompt), ours(model, prompt, False), *theirs])
        for name, value in zip(names, others):
            rows.append(Row(f"a token, {dtype}; beside {name}", graphed, value, ratio=0.5, unit="s"))
        rows.append(Row("a token without a graph; beside it with one", eager, graphed, unit="s"))
        for bits in (8, 4):
            coded = models.gpt2_small_lm().eval().to(device="cuda", dtype=getattr(lucid, dtype))
            generation.quantize(coded, bits)
            less, again = best([ours(coded, prompt), ours(model, prompt)])
            rows.append(Row(f"a token, int{bits}; beside our {dtype}", less, again, unit="s"))
        ids, torch_ids = lucid.tensor([long], device="cuda"), torch.tensor([long], device="cuda")
        their_model = (lambda: other(torch_ids, logits_to_keep=1)) if other is not None else (lambda: plain(torch_ids, 0))
        a, b = best(
            [
                timed(lambda: model(ids, logits_to_keep=1), lucid.cuda.synchronize),
                timed(their_model, torch.cuda.synchronize),
            ]
        )
        rows.append(Row(f"a prompt of {PREFILL} tokens, {dtype}; beside {names[0]}", a, b, unit="s"))
        size = sum(p.numel() for p in model.parameters()) * 2
        print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; the weights are {size / 1e6:.0f} MB in {dtype}")
        show(rows, "--markdown" in argv)
        if other is not None:
            same = same_tokens(model, other, prompt)
            print(f"the same 40 tokens in float32 with the same weights: {same}")


if __name__ == "__main__":
    main(sys.argv[1:])
