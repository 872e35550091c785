"""How long a call takes, compiled and eager, and each step of its plan, for `explain`."""

import time

from .arguments import flatten
from .check import Memory

_SECONDS = 0.05  # per side
_SHOWN, _ROUNDS = 12, 3


def step_times(plan, tensors):
    """Seconds of every step of a plan: the best of many runs.

    >>> f = lucid.compile(lambda x: x @ x)
    >>> x = lucid.ones(3, 3)
    >>> _ = f(x)
    >>> len(lucid._compile.timing.step_times(f._traced[-1][0], [x]))
    1
    """
    best, rounds, until = None, 0, time.perf_counter() + _SECONDS
    while rounds < _ROUNDS or time.perf_counter() < until:
        rounds += 1
        seconds = plan.times(tensors)
        if seconds is None:
            return []
        best = seconds if best is None else [min(a, b) for a, b in zip(best, seconds)]
    return best


def step_lines(plan, seconds):
    """The steps that take most of a plan's time, as lines.

    >>> f = lucid.compile(lambda x: x @ x)
    >>> _ = f(lucid.ones(3, 3))
    >>> lucid._compile.timing.step_lines(f._traced[-1][0], [2e-6])
    ['     2.00 µs 100 %  step 0: mm -> float32[3, 3]']
    """
    if not seconds:
        return []
    steps, whole = [], sum(seconds) or 1.0
    for line in plan.text().splitlines():
        written, _, call = line[6:].rpartition(" = ")
        name, made = call.split("(")[0].strip(), written.strip().split(" ", 1)[-1].split(", %")[0]
        if line[:4].strip():
            steps.append((line[:4], name, made))
        else:  # a part of a fused step
            number, before, _ = steps[-1]
            steps[-1] = (number, f"{before} {name}", made)
    slowest = sorted(range(len(seconds)), key=lambda i: -seconds[i])[:_SHOWN]
    lines = []
    for i in slowest:
        number, name, made = steps[i]
        share = round(100 * seconds[i] / whole)
        lines.append(f"{seconds[i] * 1e6:9.2f} µs {share:3d} %  step {number.strip()}: {name}{' -> ' + made if made else ''}")
    return lines


def call_times(compiled, eager, args, kwargs):
    """Seconds of a call of each: the best of many, in turns; lines about the steps of its plan. What they write in the
    arguments and the generator is put back.

    >>> a, b, lines = lucid._compile.timing.call_times(abs, abs, (lucid.ones(3),), {})
    >>> a > 0 and b > 0
    True
    """
    tensors = []
    flatten((args, kwargs), tensors)
    outside = getattr(compiled, "_roots", ())
    state = [t for module in outside for t in (*module.parameters(), *module.buffers())]
    before = Memory([*tensors, *state])
    best = [float("inf")] * 2
    try:
        for fn in (compiled, compiled, eager):  # the first call traces
            fn(*args, **kwargs)
        until = time.perf_counter() + 2 * _SECONDS
        while time.perf_counter() < until:
            for k, fn in enumerate((compiled, eager)):
                start = time.perf_counter()
                fn(*args, **kwargs)
                best[k] = min(best[k], time.perf_counter() - start)
        plan = compiled.plan_for(tensors) if hasattr(compiled, "plan_for") else None
        lines = step_lines(plan, step_times(plan, tensors)) if plan else []
    finally:
        before.restore()
    return *best, lines
