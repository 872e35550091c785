#!/usr/bin/env python3
"""Lucid beside PyTorch on one GPU: the same calls, alternating in one run.   usage: gpu.py [--json FILE] [case ...]

A time is the wall clock of many calls that end in a synchronisation, over their number; the best of five turns. Buffers of the
large cases exceed the L2 cache.
"""

import argparse
import json
import time

import nets
import torch

import lucid


def lenet(m):
    return m.nn.Sequential(
        m.nn.Conv2d(1, 6, 5, padding=2), m.nn.ReLU(), m.nn.AvgPool2d(2),
        m.nn.Conv2d(6, 16, 5), m.nn.ReLU(), m.nn.AvgPool2d(2), m.nn.Flatten(),
        m.nn.Linear(400, 120), m.nn.ReLU(), m.nn.Linear(120, 84), m.nn.ReLU(), m.nn.Linear(84, 10),
    ).to("cuda")  # fmt: skip


def mlp(m):
    return m.nn.Sequential(m.nn.Linear(784, 256), m.nn.ReLU(), m.nn.Linear(256, 10)).to("cuda")


def step(m, net, shape):
    x, y = m.randn(*shape, device="cuda"), m.randint(0, 10, (shape[0],), device="cuda")
    optimizer = m.optim.Adam(net.parameters(), lr=1e-3)

    def run():
        optimizer.zero_grad()
        m.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()

    return run


def forward(m, net, shape):
    x = m.randn(*shape, device="cuda")

    def run():
        with m.no_grad():
            return net(x)

    return run


def unary(name, *shape, dtype="float32"):
    def make(m):
        x = m.randn(*shape, device="cuda").to(getattr(m, dtype))
        function = getattr(m.nn.functional, name)
        return lambda: function(x, -1) if name == "softmax" else function(x, (shape[-1],))

    return make


def binary(n):
    def make(m):
        x, y = m.randn(n, device="cuda"), m.randn(n, device="cuda")
        return lambda: x + y

    return make


def total(n):
    def make(m):
        x = m.randn(n, device="cuda")
        return lambda: x.sum()

    return make


def product(n, dtype):
    def make(m):
        x, y = (m.randn(n, n, device="cuda").to(getattr(m, dtype)) for _ in range(2))
        return lambda: x @ y

    return make


def attention(causal, backward, dtype="bfloat16"):
    def make(m):
        q, k, v = (m.randn(8, 16, 1024, 64, device="cuda").to(getattr(m, dtype)).requires_grad_(backward) for _ in range(3))

        def run():
            y = m.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
            if backward:
                y.sum().backward()

        return run

    return make


def gpt2(vocabulary, fused, **settings):
    """GPT-2 of 124M parameters, 16 rows of 1024 tokens, bfloat16 by autocast."""

    def make(m):
        net = nets.networks(m).gpt(vocabulary, 768, 12, 12, 1024, **settings).to("cuda")
        tokens, labels = (m.randint(0, 50257, (16, 1024), device="cuda") for _ in range(2))
        optimizer = m.optim.AdamW(net.parameters(), lr=1e-4, fused=fused)

        def run():
            optimizer.zero_grad()
            with m.autocast("cuda", dtype=m.bfloat16):
                loss = m.nn.functional.cross_entropy(net(tokens).flatten(0, 1), labels.flatten())
            loss.backward()
            optimizer.step()

        return run

    return make


def resnet50(m):
    """ResNet-50, 64 images of 224 x 224, channels last, bfloat16 by autocast."""
    net = nets.networks(m).resnet_50().to("cuda").to(memory_format=m.channels_last)
    x = m.randn(64, 3, 224, 224, device="cuda").to(memory_format=m.channels_last)
    y = m.randint(0, 1000, (64,), device="cuda")
    optimizer = m.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def run():
        optimizer.zero_grad()
        with m.autocast("cuda", dtype=m.bfloat16):
            loss = m.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()

    return run


def lora(rows, width, rank):
    def make(m):
        x, w, b = m.randn(rows, width, device="cuda"), m.randn(width, width, device="cuda"), m.randn(width, device="cuda")
        down, up = m.randn(width, rank, device="cuda"), m.randn(rank, width, device="cuda")
        F = m.nn.functional

        def run():
            with m.no_grad():
                if hasattr(F, "lora_linear"):
                    return F.lora_linear(x, w, b, down, up, 0.5)
                return F.linear(x, w, b) + 0.5 * (x @ down @ up)

        return run

    return make


def lstm(m):
    net = nets.networks(m).lstm().to("cuda")
    return step(m, net, (16, 32, 32))


CASES = {
    "add of 64 floats": (binary(64), 2000),
    "add of 2^26 floats": (binary(1 << 26), 20),
    "sum of 2^26 floats": (total(1 << 26), 20),
    "softmax 4096^2 float32": (unary("softmax", 4096, 4096), 50),
    "softmax 4096^2 bfloat16": (unary("softmax", 4096, 4096, dtype="bfloat16"), 50),
    "layer_norm 4096^2 bfloat16": (unary("layer_norm", 4096, 4096, dtype="bfloat16"), 50),
    "rms_norm 4096^2 bfloat16": (unary("rms_norm", 4096, 4096, dtype="bfloat16"), 50),
    "product 4096^3 bfloat16": (product(4096, "bfloat16"), 20),
    "product 4096^3 float32": (product(4096, "float32"), 10),
    "MLP 784-256-10, 64 rows: Adam step": (lambda m: step(m, mlp(m), (64, 784)), 100),
    "LeNet-5, 64 images: forward": (lambda m: forward(m, lenet(m), (64, 1, 28, 28)), 100),
    "LeNet-5, 64 images: Adam step": (lambda m: step(m, lenet(m), (64, 1, 28, 28)), 100),
    "attention 8x16x1024x64 bfloat16": (attention(False, False), 10),
    "attention, causal": (attention(True, False), 10),
    "attention, causal, with backward": (attention(True, True), 10),
    "attention 8x16x1024x64 float32": (attention(False, False, "float32"), 10),
    "LoRA, 1 row, 512-8-512": (lora(1, 512, 8), 1000),
    "LoRA, 32 rows, 1024-8-1024": (lora(32, 1024, 8), 500),
    "LSTM 32-64, 16 x 32: Adam step": (lstm, 20),
    # as llm.c and the published figures have it: a vocabulary of a multiple of 128, shared with the output layer
    "GPT-2 124M, 16 x 1024 bfloat16: fused AdamW step": (gpt2(50304, True, gelu="tanh", tied=True), 5),
    "GPT-2 124M, 50257 words, exact GELU: AdamW step": (gpt2(50257, False), 5),
    "ResNet-50, 64 images bfloat16: SGD step": (resnet50, 5),
}


def timed(run, m, count):
    m.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        run()
    m.cuda.synchronize()
    return (time.perf_counter() - start) / count * 1e6


def compared(make, count, turns=5):
    """The best times in microseconds: Lucid's, PyTorch's."""
    runs = [(make(m), m) for m in (lucid, torch)]
    for run, m in runs:
        timed(run, m, 3)
    times = [[timed(run, m, count) for run, m in runs] for _ in range(turns)]
    return [min(column) for column in zip(*times)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    rows = {}
    print(f"Lucid {lucid.__version__}, PyTorch {torch.__version__}, {torch.cuda.get_device_name()}")
    for name, (make, count) in CASES.items():
        if options.cases and not any(word in name for word in options.cases):
            continue
        try:
            ours, theirs = compared(make, count)
        except Exception as error:  # a case that fails is a row too
            print(f"{name:40} {type(error).__name__}: {error}", flush=True)
            continue
        rows[name] = [ours, theirs]
        print(f"{name:40} Lucid {ours:9.1f} us   PyTorch {theirs:9.1f} us   {ours / theirs:6.2f}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
