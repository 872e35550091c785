"""The six rows of the README and their picture.   usage: python benchmarks/summary.py [--recorded] [PICTURE]

Measures one thread of each library and draws the times as bars, PyTorch's as the whole. --recorded takes the figures from
docs/performance.md, the tables of the last quiet run. The picture is an SVG written here: no plotting library is needed.
"""

import pathlib
import re
import sys
from html import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/images/speed.svg"
ROWS = {  # title in the tables: title in the README
    "`x + y`, 64 floats": "`x + y`, 64 floats",
    "tiny MLP 4-16-3 b16 step, 1 thread": "training step, MLP 4-16-3, batch 16",
    "LeNet-5 b64 step, 1 thread": "training step, LeNet-5, batch 64",
    "LSTM 32-64 b16 t32 step, 1 thread": "training step, LSTM 32-64, batch 16 × 32",
    "GPT 4x128 b8 t64 step, 1 thread": "training step, GPT 4 × 128, batch 8 × 64",
    "ResNet-18 b8 3x64x64 step, 1 thread": "training step, ResNet-18, batch 8 × 64²",
}
UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
WIDTH, LEFT, BAR, ROW, TOP = 850, 320, 340, 44, 46
INK, MUTED, OURS, THEIRS = "#21262f", "#737a8a", "#1f61b8", "#d5dae3"


def seconds(text):
    number, unit = text.split()
    return float(number) * UNITS[unit]


def recorded():
    """{title: (ours, theirs)} of the tables in docs/performance.md."""
    text = (ROOT / "docs/performance.md").read_text()
    found = {c[0]: c[1:3] for c in re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|", text, re.MULTILINE)}
    return {title: tuple(map(seconds, found[title])) for title in ROWS}


def measured():
    """The same, measured now."""
    import dispatch
    import models

    (call,) = (row for row in dispatch.calls("`x + y`, 64 floats"))
    times = {call.title: (call.ours, call.theirs)}
    for title in list(ROWS)[1:]:
        name = title.removesuffix(", 1 thread")
        row = next(models.measured(name, None, tuple(models.prepared(models.CASES[name])), 2.0))
        times[row.title] = row.ours, row.theirs
    return times


def shown(value):
    from compare import shown

    return shown(value, "s")


def table(times):
    """The rows in Markdown, for the README."""
    lines = ["| one thread | Lucid | PyTorch | speed-up |", "|---|---:|---:|---:|"]
    for title, (ours, theirs) in times.items():
        lines.append(f"| {ROWS[title]} | {shown(ours)} | {shown(theirs)} | {theirs / ours:.1f} × |")
    return "\n".join(lines)


def text(x, y, words, colour=INK, size=14, anchor="start"):
    return f'<text x="{x}" y="{y}" fill="{colour}" font-size="{size}" text-anchor="{anchor}">{escape(words)}</text>'


def box(x, y, width, height, colour):
    return f'<rect x="{x}" y="{y}" width="{width:.1f}" height="{height}" rx="2" fill="{colour}"/>'


def picture(times, heading="Time of one call, one thread (shorter is better)"):
    """Bars of {title: (ours, theirs)}: Lucid's time as a fraction of PyTorch's."""
    height = TOP + ROW * len(times) + 8
    whole = BAR / max(1, *(ours / theirs for ours, theirs in times.values()))
    parts = [text(16, 26, heading, size=16)]
    parts += [box(LEFT + BAR - 66, 14, 12, 12, OURS), text(LEFT + BAR - 48, 25, "Lucid", MUTED)]
    parts += [box(LEFT + BAR + 12, 14, 12, 12, THEIRS), text(LEFT + BAR + 30, 25, "PyTorch", MUTED)]
    for i, (title, (ours, theirs)) in enumerate(times.items()):
        y = TOP + ROW * i
        parts.append(text(LEFT - 12, y + 19, title.replace("`", ""), anchor="end"))
        parts += [box(LEFT, y, whole, 12, THEIRS), box(LEFT, y + 14, whole * ours / theirs, 12, OURS)]
        parts.append(text(LEFT + BAR + 12, y + 11, shown(theirs), MUTED))
        parts.append(text(LEFT + BAR + 12, y + 26, f"{shown(ours)}, {theirs / ours:.1f} × as fast"))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    paper = f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head + ' font-family="Helvetica, Arial, sans-serif">', paper, *parts, "</svg>", ""])


def main(*arguments):
    paths = [a for a in arguments if not a.startswith("--")]
    times = recorded() if "--recorded" in arguments else measured()
    path = pathlib.Path(paths[0]) if paths else PICTURE
    path.write_text(picture({ROWS[title]: pair for title, pair in times.items()}))
    print(table(times))
    print(f"the picture is in {path}")


if __name__ == "__main__":
    main(*sys.argv[1:])
