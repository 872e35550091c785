"""Text generation beside PyTorch: GPT-2 (124 million parameters, random weights), one text, float32.

usage: generate.py [--threads=2] [--rounds=9] [--markdown]

PyTorch runs transformers' GPT-2 if that package is installed, else the plain one below, which has less to do per layer. The two
libraries alternate in one process; each figure is the best of some. The floor is the time to read all weights once, at the
speed at which this machine reads a large tensor.
"""

import sys
import time

import torch
from compare import Row, show

import lucid
from lucid import generation, models

PROMPT, PREFILL = 32, 512


def best(functions, rounds):
    """The best time of each function; the functions alternate."""
    times = [float("inf")] * len(functions)
    for _ in range(rounds):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            function()
            times[i] = min(times[i], time.perf_counter() - start)
    return times


class PlainGPT2(torch.nn.Module):
    """GPT-2 as one writes it by hand: fused attention, caches in preallocated tensors."""

    def __init__(self, layers=12, width=768, heads=12, vocabulary=50257, positions=1024):
        super().__init__()
        make = torch.nn
        self.heads, self.wte, self.wpe = heads, make.Embedding(vocabulary, width), make.Embedding(positions, width)
        sizes = {"qkv": (width, 3 * width), "out": (width, width), "up": (width, 4 * width), "down": (4 * width, width)}
        self.layers = make.ModuleList(
            make.ModuleDict(
                {name: make.Linear(*size) for name, size in sizes.items()}
                | {"ln1": make.LayerNorm(width), "ln2": make.LayerNorm(width)}
            )
            for _ in range(layers)
        )
        self.last = make.LayerNorm(width)
        self.cache = [torch.zeros(2, 1, heads, positions, width // heads) for _ in range(layers)]

    def forward(self, ids, past):
        length = ids.shape[1]
        x = self.wte(ids) + self.wpe(torch.arange(past, past + length, device=ids.device))
        for layer, cache in zip(self.layers, self.cache):
            q, k, v = layer["qkv"](layer["ln1"](x)).view(1, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            cache[0, :, :, past : past + length], cache[1, :, :, past : past + length] = k, v
            keys, values = cache[:, :, :, : past + length]
            y = torch.nn.functional.scaled_dot_product_attention(q, keys, values, is_causal=length > 1)
            x = x + layer["out"](y.transpose(1, 2).reshape(1, length, -1))
            x = x + layer["down"](torch.nn.functional.gelu(layer["up"](layer["ln2"](x)), approximate="tanh"))
        return torch.nn.functional.linear(self.last(x)[:, -1], self.wte.weight)


def theirs(prompt, long):
    """(what it is, one token, a prompt) of PyTorch."""
    try:
        from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel
    except ImportError:
        model = PlainGPT2().eval()
        model(torch.tensor([prompt]), 0)
        token = torch.tensor([[5]])
        return "PyTorch, plain GPT-2", lambda: model(token, PROMPT), lambda: model(torch.tensor([long]), 0)
    model = GPT2LMHeadModel(GPT2Config()).eval()
    cache = DynamicCache()
    model(torch.tensor([prompt]), past_key_values=cache)
    token = torch.tensor([[5]])

    def one():
        model(token, past_key_values=cache)
        cache.crop(PROMPT)

    return "PyTorch, transformers", one, lambda: model(torch.tensor([long]), logits_to_keep=1)


def main(argv):
    options = dict(a[2:].split("=", 1) for a in argv if a.startswith("--") and "=" in a)
    threads, rounds = int(options.get("threads", 2)), int(options.get("rounds", 9))
    lucid.set_num_threads(threads)
    torch.set_num_threads(threads)
    prompt, long = [[i * 37 % 50257 for i in range(n)] for n in (PROMPT, PREFILL)]
    rows = []
    with lucid.no_grad(), torch.no_grad():
        what, their_token, their_prompt = theirs(prompt, long)
        model = models.gpt2_small_lm().eval()
        token = lucid.tensor([[5]])

        def one_token(model):
            cache = generation.Cache(capacity=256)
            model(lucid.tensor([prompt]), past_key_values=cache)

            def step():
                model(token, past_key_values=cache)
                cache.crop(PROMPT)

            return step

        ours = one_token(model)
        a, b = best([ours, their_token], rounds)
        rows.append(Row("decode, float32", a, b, ratio=1 / 1.5, unit="s"))
        c, d = best([lambda: model(lucid.tensor([long]), logits_to_keep=1), their_prompt], rounds)
        rows.append(Row(f"prompt of {PREFILL} tokens, float32", c, d, ratio=1 / 1.2, unit="s"))
        size = sum(p.numel() for p in model.parameters()) * 4
        values = lucid.zeros(1 << 26)
        (sweep,) = best([values.sum], 5)
        floor = sweep / (values.numel() * 4) * size
        for bits in (8, 4):
            coded = models.gpt2_small_lm().eval()
            generation.quantize(coded, bits)
            plain, less = best([ours, one_token(coded)], rounds)
            rows.append(
                Row(f"decode, int{bits} beside our float32", less, plain, ratio=1 / 1.8 if bits == 8 else None, unit="s")
            )
    print(
        f"GPT-2 124M, {threads} threads; beside it: {what}. Reading {size / 1e6:.0f} MB of weights takes {1e3 * floor:.1f} ms:"
    )
    print(f"decoding in float32 takes {a / floor:.2f} times that.")
    show(rows, "--markdown" in argv)


if __name__ == "__main__":
    main(sys.argv[1:])
