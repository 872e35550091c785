"""A progress bar, and a curve drawn to the terminal and to a PNG file: by tqdm and matplotlib where they are installed, else
with nothing but the standard library.
"""

import importlib
import pathlib
import struct
import sys
import zlib
from collections.abc import Sequence
from typing import Any

BARS = " ▏▎▍▌▋▊▉█"
_bar: Any = None  # tqdm's, while a terminal shows it


def installed(module: str) -> Any:
    """A module that need not be there, or None."""
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def progress(done: int, total: int, text: str, width: int = 30) -> None:
    """Redraw one line; only the last state is kept where the output is not a terminal."""
    global _bar
    tqdm = installed("tqdm") if sys.stdout.isatty() else None
    if tqdm:
        if _bar is None:
            _bar = tqdm.tqdm(total=total, file=sys.stdout)
        _bar.set_postfix_str(text, refresh=False)
        _bar.update(done - _bar.n)
        if done == total:
            _bar.close()
            _bar = None
        return
    eighths = round(8 * width * done / total)
    bar = "█" * (eighths // 8) + (BARS[eighths % 8] if eighths % 8 else "")
    if sys.stdout.isatty() or done == total:
        print(f"\r{bar:<{width}}▏ {done:3}/{total}  {text}", end="\n" if done == total else "", flush=True)


def scaled(values: Sequence[float], width: int, height: int) -> list[int]:
    """For each of `width` columns the height (0 ... height-1) of the curve there."""
    low, high = min(values), max(values)
    picked = [values[i * (len(values) - 1) // max(1, width - 1)] for i in range(width)]
    return [round((v - low) / ((high - low) or 1) * (height - 1)) for v in picked]


def draw(values: Sequence[float], width: int = 72, height: int = 12, title: str = "") -> str:
    """The curve as text. A character cell holds 2 x 4 Braille dots."""
    dots = [[0] * width for _ in range(height)]
    levels = scaled(values, 2 * width, 4 * height)
    previous = levels[0]
    for x, level in enumerate(levels):
        for y in range(min(previous, level), max(previous, level) + 1):
            row, dot = height - 1 - y // 4, 3 - y % 4
            dots[row][x // 2] |= ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))[x % 2][dot]
        previous = level
    labels = {0: f"{max(values):.3f}", height - 1: f"{min(values):.3f}"}
    lines = [f"{labels.get(i, ''):>8} ┤" + "".join(chr(0x2800 + d) for d in row) for i, row in enumerate(dots)]
    return "\n".join([f"{'':10}{title}", *lines, f"{'':9}└{'─' * width}"])


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write_png(path: str | pathlib.Path, width: int, height: int, pixels: bytes, colours: int = 1) -> None:
    """8-bit grey (colours=1) or RGB (colours=3) pixels, row by row."""
    row = width * colours
    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2}[colours], 0, 0, 0)
    packed = zlib.compress(b"".join(b"\0" + pixels[i : i + row] for i in range(0, row * height, row)), 9)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b""))


def save(values: Sequence[float], path: str | pathlib.Path, width: int = 640, height: int = 320, title: str = "") -> None:
    """The curve as a PNG of that many pixels."""
    matplotlib = installed("matplotlib.figure")
    if matplotlib is None:
        save_plain(values, path, width, height)
        return
    picture = matplotlib.Figure(figsize=(width / 100, height / 100), dpi=100, layout="constrained")
    axes = picture.subplots()
    axes.plot(values)
    axes.set_title(title)
    picture.savefig(path)


def save_plain(values: Sequence[float], path: str | pathlib.Path, width: int = 640, height: int = 320) -> None:
    """The curve as an 8-bit grey PNG."""
    margin = 10
    rows = [bytearray(b"\xff" * width) for _ in range(height)]
    for x in range(margin, width - margin):
        rows[height - margin][x] = 0x99
    for y in range(margin, height - margin):
        rows[y][margin] = 0x99
    levels = scaled(values, width - 2 * margin, height - 2 * margin)
    previous = levels[0]
    for x, level in enumerate(levels):
        for y in range(min(previous, level), max(previous, level) + 1):
            for thick in (0, 1):
                rows[height - margin - 1 - y][margin + x - thick] = 0x20
        previous = level
    write_png(path, width, height, b"".join(rows))
