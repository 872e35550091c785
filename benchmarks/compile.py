"""lucid.compile beside Lucid's and PyTorch's eager execution, JAX if it is installed, and torch.compile if asked for.

usage: compile.py [--seconds=S] [--torch-compile] [--large] [--markdown] [FILTER...]      a filter is a part of a title

--torch-compile also compiles with PyTorch (needs a C++ compiler; every case takes seconds to minutes to compile). --large adds
the 12-layer GPT-2 step. Targets name what they are compared with.
"""

import sys
import time
from dataclasses import dataclass

import torch
from compare import best_times, nothing, shown, timer
from nets import networks, training_step

import lucid

try:
    import jax
except ImportError:
    jax = None

N = 4 << 20
NETS = {lib: networks(lib) for lib in (lucid, torch)}


# --- plain ops, for any of the libraries ---
def chain(x, y):
    return ((x * y + x) * 0.5 - y) * x


def layer_norm(x):
    mean = x.mean(-1, keepdim=True)
    centred = x - mean
    return centred * ((centred * centred).mean(-1, keepdim=True) + 1e-5) ** -0.5


def masked_softmax(lib):
    def f(x, mask):
        x = lib.where(mask, x, -1e9)
        e = (x - x.amax(-1, keepdim=True)).exp()
        return e / e.sum(-1, keepdim=True)

    return f


def gelu(x):
    return 0.5 * x * (1 + (0.7978845608 * (x + 0.044715 * x * x * x)).tanh())


def adam(p, g, m, v):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - 0.001 * (m / 0.5) / ((v / 0.3).sqrt() + 1e-8), m, v


@dataclass
class Row:
    """Seconds (or bytes) of each: None where there is nothing to compare."""

    title: str
    compiled: float
    eager: float | None = None
    torch_eager: float | None = None
    torch_compiled: float | None = None
    jax: float | None = None
    target: tuple = ()  # (what it is compared with: a field or "absolute", the most)
    unit: str = "s"

    def cells(self):
        figures = [self.compiled, self.eager, self.torch_eager, self.torch_compiled, self.jax]
        return [self.title, *["" if f is None else shown(f, self.unit) for f in figures], *self.verdict()]

    def verdict(self):
        if not self.target:
            return "", ""
        against, most = self.target
        if against == "absolute":
            return f"≤ {shown(most, self.unit)}", "pass" if self.compiled <= most else "MISS"
        other = getattr(self, against)
        if other is None:
            return f"≤ {most} x {against}", "not measured"
        ratio = self.compiled / other
        return f"≤ {most} x {against.replace('_', ' ')}", f"{ratio:.2f} {'pass' if ratio <= most else 'MISS'}"


def on_threads(n):
    def switch():
        lucid.set_num_threads(n)
        torch.set_num_threads(n)

    return switch


def functions(chosen, seconds):
    """Functions of plain ops on 4M floats: yields rows."""
    rows = N // 512
    shapes = {"x": (rows, 512), "y": (rows, 512)}
    cases = {
        "chain of 5 elementwise ops, 4M": (lambda lib: chain, ("x", "y"), ("jax", 1.25)),
        "layer norm by hand, 4M": (lambda lib: layer_norm, ("x",), ("torch_eager", 0.2)),
        "softmax with mask by hand, 4M": (masked_softmax, ("x", "mask"), ("torch_eager", 0.2)),
        "gelu by hand, 4M": (lambda lib: gelu, ("x",), ("torch_eager", 0.2)),
        "Adam by hand, 4M": (lambda lib: adam, ("x", "y", "m", "v"), ("torch_eager", 0.2)),
    }
    data = {name: torch.randn(shapes.get(name, (rows, 512))) for name in ("x", "y", "m", "v")}
    data["v"].square_()
    data["mask"] = data["x"] > -1
    for title, (make, names, target) in cases.items():
        for threads in (1, 2):
            full = f"{title}, {threads} thread{'s' if threads > 1 else ''}"
            if not chosen.wanted(full):
                continue
            ours = [lucid.from_numpy(data[n].numpy().copy()) for n in names]
            theirs = [data[n] for n in names]
            compiled, eager, reference = lucid.compile(make(lucid)), make(lucid), make(torch)
            calls = {"compiled": (compiled, ours), "eager": (eager, ours), "torch_eager": (reference, theirs)}
            if chosen.torch_compile:
                calls["torch_compiled"] = (torch.compile(make(torch)), theirs)
            if jax and title.startswith("chain"):
                mine = [jax.numpy.asarray(data[n].numpy()) for n in names]
                run = jax.jit(chain)
                calls["jax"] = ((lambda *a, run=run: run(*a).block_until_ready()), mine)
            yield row(full, calls, threads, seconds, target)


def row(title, calls, threads, seconds, target):
    turns = [(on_threads(threads), timer("f(*a)", {"f": f, "a": a})) for f, a in calls.values()]
    return Row(title, target=target, **dict(zip(calls, best_times(turns, seconds))))


def inputs_of(name, batch):
    if name.startswith("gpt"):
        tokens = torch.randint(0, 65, (batch, 65))
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    shapes = {"tiny": (4,), "mlp": (784,), "lenet": (1, 28, 28), "resnet_18": (3, 64, 64)}
    return torch.randn(batch, *shapes[name]), torch.randint(0, 3, (batch,))


def ours_of(t):
    return lucid.from_numpy(t.numpy().copy())


def flat_loss(lib):
    return lambda y, t: lib.nn.functional.cross_entropy(y.flatten(0, -2), t.flatten())


KINDS = {"compiled": lucid, "eager": lucid, "torch_eager": torch, "torch_compiled": torch}


def step_calls(name, batch, chosen, kinds=tuple(KINDS), **settings):
    """Training steps of each kind, ready to be called."""
    x, t = inputs_of(name, batch)
    calls = {}
    for kind in kinds:
        lib = KINDS[kind]
        if kind == "torch_compiled" and not chosen.torch_compile:
            continue
        lib.manual_seed(0)
        net = getattr(NETS[lib], name)(**settings)
        optimizer = lib.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
        data = (x, t) if lib is torch else (ours_of(x), ours_of(t))
        if kind == "compiled":
            step = lucid.compile_step(net, flat_loss(lucid), optimizer)
            calls[kind] = (step, data)
        else:
            step = training_step(lib, net, optimizer, *data)
            calls[kind] = (torch.compile(step) if kind == "torch_compiled" else step, ())
    return calls


def steps(chosen, seconds):
    cases = {
        "tiny MLP 4-16-3 b16 step": ("tiny", 16, ("absolute", 6e-6)),
        "MLP 784-256-10 b64 step": ("mlp", 64, ("eager", 0.9)),
        "LeNet-5 b64 step": ("lenet", 64, ("eager", 0.85)),
        "GPT 4x128 b8 t64 step": ("gpt", 8, ("eager", 0.9)),
        "ResNet-18 b8 3x64x64 step": ("resnet_18", 8, ("eager", 0.95)),
    }
    for title, (name, batch, target) in cases.items():
        for threads in (1, 2):
            full = f"{title}, {threads} thread{'s' if threads > 1 else ''}"
            if chosen.wanted(full):
                yield row(full, step_calls(name, batch, chosen), threads, seconds, target)
    if chosen.wanted("tiny MLP 4-16-3 b16 forward"):
        x = inputs_of("tiny", 16)[0]
        nets = {lib: NETS[lib].tiny().requires_grad_(False) for lib in (lucid, torch)}
        calls = {
            "compiled": (lucid.compile(nets[lucid]), (ours_of(x),)),
            "eager": (nets[lucid], (ours_of(x),)),
            "torch_eager": (nets[torch], (x,)),
        }
        yield row("tiny MLP 4-16-3 b16 forward", calls, 1, seconds, ("absolute", 1.2e-6))
    if chosen.wanted("overhead of a call over its plan, 1 input"):
        x, f = lucid.ones(4), lucid.compile(lambda x: x + 1)
        f(x)
        plan = f._traced[-1][0]
        whole, alone = best_times(
            [(nothing, timer("f(x)", {"f": f, "x": x})), (nothing, timer("p(a)", {"p": plan.run, "a": [x]}))], seconds
        )
        yield Row("overhead of a call over its plan, 1 input", max(whole - alone, 0.0), target=("absolute", 0.42e-6))


def seconds_of(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def first_steps(chosen):
    """What the first compiled step costs beyond an eager one, in a process that has run both kinds before."""
    cases = {"lenet": ("first compiled LeNet-5 step, beyond an eager one", 64, 0.020, {})}
    if chosen.large:
        settings = dict(vocabulary=1000, width=768, layers=12, heads=12)
        cases["gpt"] = ("first compiled 12-layer GPT-2 step, beyond an eager one", 1, 0.300, settings)
    for name, (title, batch, most, settings) in cases.items():
        if not chosen.wanted(title):
            continue
        traced = eager = float("inf")
        for _ in range(3):
            step, data = step_calls(name, batch, chosen, ["compiled"], **settings)["compiled"]
            step(*data)  # eager: it makes the optimizer's state
            traced = min(traced, seconds_of(lambda step=step, data=data: step(*data)))
            eager = min([eager] + [seconds_of(lambda step=step, data=data: step._eager(*data)) for _ in range(5)])
        yield Row(title, max(traced - eager, 0.0), target=("absolute", most))


def peak_of(kind, chosen):
    """Megabytes at the worst moment of a step: parameters, gradients, state, activations, arena."""
    start = lucid.memory_stats()["allocated_bytes"]
    step, data = step_calls("gpt", 8, chosen, [kind])[kind]
    for _ in range(3):
        step(*data)
    lucid.reset_peak_memory_stats()
    step(*data)
    return (lucid.memory_stats()["peak_bytes"] - start) / 1e6


def memory(chosen):
    title = "peak memory of a GPT 4x128 b8 t64 step"
    if chosen.wanted(title):
        eager, compiled = peak_of("eager", chosen), peak_of("compiled", chosen)
        yield Row(title, compiled, eager, target=("eager", 0.8), unit="MB")


class Chosen:
    def __init__(self, arguments):
        self.filters = [a for a in arguments if not a.startswith("--")]
        self.torch_compile, self.large = "--torch-compile" in arguments, "--large" in arguments

    def wanted(self, title):
        return not self.filters or any(f in title for f in self.filters)


HEAD = ["case", "compiled", "eager", "PyTorch eager", "torch.compile", "JAX", "target", ""]


def main(arguments):
    seconds = next((float(a[10:]) for a in arguments if a.startswith("--seconds=")), 1.5)
    chosen = Chosen(arguments)
    rows = [*first_steps(chosen), *steps(chosen, seconds), *functions(chosen, seconds), *memory(chosen)]
    table = [HEAD] + [r.cells() for r in rows]
    if "--markdown" in arguments:
        table.insert(1, ["---"] * len(HEAD))
        print("\n".join("| " + " | ".join(cells) + " |" for cells in table))
        return
    widths = [max(len(c[i]) for c in table) for i in range(len(HEAD))]
    for cells in table:
        print("  ".join(c.ljust(w) for c, w in zip(cells, widths)))


if __name__ == "__main__":
    main(sys.argv[1:])
