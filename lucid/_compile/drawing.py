"""A plan as a picture: a box per step, the steps of a fused region in one box, an arc from where memory is written to where it
is read."""

import re
from html import escape

_LINE, _GAP, _LEFT, _LETTER = 17, 12, 70, 7.3
_STYLE = {"given": "#5b7db1", "result": "#2e7d4f", "block": "#a0603f", "arena": "#b1795b", "register": "#8a8a8a"}


def _steps_of(text):
    """Lists of lines: those of a fused region belong to one step."""
    steps = []
    for line in text.splitlines():
        if re.match(r"\s*\d+  ", line):
            steps.append([line.strip()])
        elif steps and line.strip():
            steps[-1].append("    " + line.strip())
    return steps


def _coloured(line):
    """Names of buffers in the colour of what they are."""
    return re.sub(
        r"%\d+:(\w+)",
        lambda m: f'<tspan fill="{_STYLE.get(m[1], "#000")}">{m[0]}</tspan>',
        escape(line).replace("  ", "&#160; "),
    )


def _ends_of(step):
    """Buffers that a step writes and reads."""
    written, read = set(), set()
    for line in step:
        left, equals, right = line.partition(" = ")
        written |= set(re.findall(r"%(\d+)", left)) if equals else set()
        read |= set(re.findall(r"%(\d+)", right if equals else line))
    return written, read - written


def drawing(text):
    """The text of a plan as an SVG.

    >>> lucid._compile.drawing.drawing("   0  %1:result float32[2] = sin(%0:given float32[2])")[:4]
    '<svg'
    """
    steps = _steps_of(text)
    width = int(_LEFT + 24 + _LETTER * max([20, *(len(line) for step in steps for line in step)]))
    top, boxes, middles = 8, [], []
    for step in steps:
        height = _LINE * len(step) + 8
        fill = "#fdf3e7" if len(step) > 1 else "#eef3fb"
        boxes.append(
            f'<rect x="{_LEFT}" y="{top}" width="{width - _LEFT - 8}" height="{height}" rx="5" fill="{fill}" stroke="#5b7db1"/>'
        )
        for i, line in enumerate(step):
            boxes.append(f'<text x="{_LEFT + 8}" y="{top + 17 + _LINE * i}">{_coloured(line)}</text>')
        middles.append(top + height / 2)
        top += height + _GAP
    last, arcs = {}, []
    for k, step in enumerate(steps):
        written, read = _ends_of(step)
        for source in sorted({last[b] for b in read if b in last}):
            bend = _LEFT - min(60, 12 + 10 * (k - source))
            arcs.append(
                f'<path d="M {_LEFT} {middles[source]} C {bend} {middles[source]}, {bend} {middles[k]}, {_LEFT} {middles[k]}"/>'
            )
        last.update(dict.fromkeys(written, k))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top}" font-family="monospace" font-size="12">'
        '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="3" orient="auto">'
        '<path d="M0,0 L7,3 L0,6 z" fill="#5b7db1"/></marker></defs>'
        f'<rect width="{width}" height="{top}" fill="white"/>'
        f'<g fill="none" stroke="#5b7db1" marker-end="url(#head)">{"".join(arcs)}</g>{"".join(boxes)}</svg>\n'
    )
