"""Draw what a window does to a spectrum: two tones, one a thousand times weaker, seen through three windows.

usage: python examples/spectra.py [IMAGE.svg]
"""

import sys
from collections.abc import Callable

import lucid
from lucid import Tensor

WINDOWS: list[tuple[str, str, Callable[[int], Tensor]]] = [
    ("rectangular", "#b8bfca", lambda n: lucid.ones(n, dtype=lucid.float64)),
    ("Hann", "#e08a1e", lambda n: lucid.hann_window(n, dtype=lucid.float64)),
    ("Blackman", "#1f61b8", lambda n: lucid.blackman_window(n, dtype=lucid.float64)),
]
WIDTH, HEIGHT, LEFT, TOP, FLOOR = 720, 300, 60, 40, -120


def decibels(n: int = 256) -> tuple[Tensor, dict[str, Tensor]]:
    """The frequencies of n samples of two tones, and for each window the level at each of them."""
    t = lucid.arange(n, dtype=lucid.float64)
    tones = lucid.sin(2 * lucid.pi * 40.5 / n * t) + 1e-3 * lucid.sin(2 * lucid.pi * 75 / n * t)
    levels = {}
    for name, _, window in WINDOWS:
        spectrum = lucid.fft.rfft(tones * window(n)).abs()
        levels[name] = (20 * lucid.log10(spectrum / spectrum.max())).clamp(min=FLOOR)
    return lucid.fft.rfftfreq(n, dtype=lucid.float64), levels


def draw(path: str, frequencies: Tensor, levels: dict[str, Tensor]) -> None:
    across, down = WIDTH - LEFT - 20, HEIGHT - TOP - 40
    text = '<text x="{}" y="{}" fill="#737a8a" font-size="13" text-anchor="{}">{}</text>'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="Helvetica, Arial, sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for level in range(0, FLOOR - 1, -40):
        y = TOP + down * level // FLOOR
        lines += [f'<path d="M{LEFT} {y}h{across}" stroke="#e4e8ef"/>', text.format(LEFT - 8, y + 4, "end", f"{level} dB")]
    lines += [text.format(LEFT + round(across * f / 0.5), HEIGHT - 16, "middle", f) for f in (0, 0.1, 0.2, 0.3, 0.4, 0.5)]
    for i, (name, colour, _) in enumerate(WINDOWS):
        points = " ".join(
            f"{LEFT + across * f / 0.5:.1f},{TOP + down * level / FLOOR:.1f}"
            for f, level in zip(frequencies.tolist(), levels[name].tolist())
        )
        lines += [f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>']
        lines += [f'<rect x="{LEFT + 130 * i}" y="14" width="12" height="12" rx="2" fill="{colour}"/>']
        lines += [text.format(LEFT + 18 + 130 * i, 25, "start", name)]
    with open(path, "w") as file:
        file.write("\n".join([*lines, "</svg>"]) + "\n")


if __name__ == "__main__":
    draw(sys.argv[1] if len(sys.argv) > 1 else "spectra.svg", *decibels())
