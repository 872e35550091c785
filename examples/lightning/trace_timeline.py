"""Trace a small program of lightning_core and draw its timeline.   usage: python examples/lightning/trace_timeline.py [PICTURE]

A convolution, attention, some products: lightning_core records when each operator was dispatched, and
`runtime_trace_timeline` says how long it took until the next. The picture is an SVG, a lane per operator, written here
without a plotting library.
"""

import pathlib
import sys
from html import escape
from typing import Any

import numpy as np

import lightning_core as lc

WIDTH, LEFT, LANE, TOP = 860, 170, 34, 58
INK, MUTED, GRID = "#21262f", "#737a8a", "#e4e7ed"
COLOURS = {"conv2d_nchw": "#1f61b8", "attention_forward": "#c2571a", "matmul": "#3c8d57", "vector_add": "#8a5cb8"}


def program() -> None:
    """An image through a convolution, attention over its numbers, a linear layer; three times."""
    draw = np.random.default_rng(0)
    arrays = ((1, 3, 24, 24), (16, 3, 3, 3), (16,), (48, 48), (48 * 48,))
    image, weight, bias, linear, shift = (draw.standard_normal(s).astype(np.float32) for s in arrays)
    for _ in range(3):
        mixed = lc.lightning_conv_attention_torchstrong_nchw(image, weight, bias, 48, 48, 1, 1, 1, 1, "cpu")
        projected = lc.matmul2d(mixed.reshape(48, 48), linear, "cpu")
        lc.vector_add(projected, shift, "cpu")


def traced() -> dict[str, Any]:
    program()  # memory, threads and names are there when the clock runs
    lc.backend_name()
    lc.runtime_trace_clear()
    lc.runtime_trace_enable(True)
    program()
    lc.backend_name()  # the last event ends the last operator
    lc.runtime_trace_enable(False)
    return lc.runtime_trace_timeline(group_by="op")


def text(x: float, y: float, words: str, colour: str = INK, size: int = 13, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}" text-anchor="{anchor}">{escape(words)}</text>'


def picture(timeline: dict[str, Any]) -> str:
    """The timeline as SVG: a bar from each event to the next."""
    events = [e for e in timeline["events"] if e["op"]]
    lanes = list(dict.fromkeys(e["op"] for e in events))
    window, height = timeline["window_ns"], TOP + LANE * len(lanes) + 34

    def place(ns: float) -> float:
        return LEFT + (WIDTH - LEFT - 20) * ns / window

    parts = [text(16, 26, f"Trace of {len(events)} operators in {window / 1e3:.0f} µs", size=16)]
    step = 10 ** (len(str(window)) - 1)
    step = next(s for s in (step // 5, step // 2, step, 2 * step) if window / s <= 9)
    for ns in range(0, window + 1, step):
        parts.append(f'<line x1="{place(ns):.1f}" x2="{place(ns):.1f}" y1="{TOP - 8}" y2="{height - 26}" stroke="{GRID}"/>')
        parts.append(text(place(ns), height - 10, f"{ns / 1e3:g} µs", MUTED, 12, "middle"))
    for i, lane in enumerate(lanes):
        share = next(g["window_share_pct"] for g in timeline["groups"] if g["key"] == lane)
        parts.append(text(16, TOP + LANE * i + 14, lane))
        parts.append(text(16, TOP + LANE * i + 28, f"{share:.0f} % of the time", MUTED, 11))
    for e in events:
        x, y = place(e["offset_ns"]), TOP + LANE * lanes.index(e["op"])
        wide = max(1.5, place(e["offset_ns"] + e["delta_next_ns"]) - x)
        parts.append(f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="22" rx="2" fill="{COLOURS[e["op"]]}"/>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{height}" fill="white"/>', *parts, "</svg>"]) + "\n"


def main(argv: list[str]) -> None:
    timeline = traced()
    for group in timeline["groups"]:
        print(f"{group['key']:18s} {group['count']:3d} x  {group['avg_delta_next_ns'] / 1e3:8.1f} µs")
    if argv:
        pathlib.Path(argv[0]).write_text(picture(timeline))


if __name__ == "__main__":
    main(sys.argv[1:])
