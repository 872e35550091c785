"""A canvas with lines, text, images and tables of numbers, drawn with tensors and saved as a PNG: no plotting library."""

import math
from collections.abc import Sequence

import curve

import lucid
from lucid import Tensor

Colour = tuple[float, float, float]
Series = tuple[list[float], Colour, float]  # values, colour, thickness
F = lucid.nn.functional
INK, FAINT, PAPER = (0.13, 0.15, 0.19), (0.86, 0.87, 0.90), (1.0, 1.0, 1.0)
MUTED, BLUE, RED, GREEN = (0.45, 0.48, 0.54), (0.12, 0.38, 0.72), (0.82, 0.20, 0.18), (0.15, 0.55, 0.30)

# A letter is seven rows of five dots, two hexadecimal digits a row; some go two rows further down.
LETTERS = {
    " ": "00000000000000", "!": "04040404040004", "%": "18190204081303", "'": "04040800000000", "(": "02040808080402",
    ")": "08040202020408", "+": "0004041f040400", ",": "00000000000c0c0408", "-": "0000001f000000", ".": "00000000000c0c",
    "/": "00010204081000", "0": "0e11131519110e", "1": "040c040404040e", "2": "0e11010204081f", "3": "1f02040201110e",
    "4": "02060a121f0202", "5": "1f101e0101110e", "6": "0608101e11110e", "7": "1f010204080808", "8": "0e11110e11110e",
    "9": "0e11110f01020c", ":": "000c0c000c0c00", "=": "00001f001f0000", "A": "0e1111111f1111", "B": "1e11111e11111e",
    "C": "0e11101010110e", "D": "1c12111111121c", "E": "1f10101e10101f", "F": "1f10101e101010", "G": "0e11101711110f",
    "H": "1111111f111111", "I": "0e04040404040e", "J": "0702020202120c", "K": "11121418141211", "L": "1010101010101f",
    "M": "111b1515111111", "N": "11111915131111", "O": "0e11111111110e", "P": "1e11111e101010", "Q": "0e11111115120d",
    "R": "1e11111e141211", "S": "0f10100e01011e", "T": "1f040404040404", "U": "1111111111110e", "V": "11111111110a04",
    "W": "1111111515150a", "X": "11110a040a1111", "Y": "1111110a040404", "Z": "1f01020408101f", "a": "00000e010f110f",
    "b": "1010161911111e", "c": "00000e1010110e", "d": "01010d1311110f", "e": "00000e111f100e", "f": "0609081c080808",
    "g": "00000f1111110f010e", "h": "10101619111111", "i": "04000c0404040e", "j": "02000602020202120c", "k": "10101214181412",
    "l": "0c04040404040e", "m": "00001a15151111", "n": "00001619111111", "o": "00000e1111110e", "p": "00001e1111111e1010",
    "q": "00000f1111110f0101", "r": "00001619101010", "s": "00000e100e011e", "t": "08081c08080906", "u": "0000111111130d",
    "v": "00001111110a04", "w": "0000111115150a", "x": "0000110a040a11", "y": "0000111111110f010e", "z": "00001f0204081f",
}  # fmt: skip


def letter_dots(letter: str) -> list[list[float]]:
    """(9, 5) of 0 and 1."""
    rows = bytes.fromhex(LETTERS.get(letter, "1f11111111111f")).ljust(9, b"\0")
    return [[float(row >> (4 - i) & 1) for i in range(5)] for row in rows]


def text_mask(text: str, size: int) -> Tensor:
    """How much ink each pixel gets: dots are blurred into strokes and cut off sharply, which rounds the corners."""
    fine = 4
    dots = lucid.zeros(1, 1, 11, 6 * len(text) + 1)
    for i, letter in enumerate(text):
        dots[0, 0, 1:10, 6 * i + 1 : 6 * i + 6] = lucid.tensor(letter_dots(letter))
    large = F.interpolate(dots, scale_factor=float(fine * size), mode="bilinear")
    return F.avg_pool2d(((large - 0.42) * 12).clamp(0, 1), fine)[0, 0]


class Canvas:
    """Colours between 0 and 1; x to the right, y down."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.pixels = lucid.ones(3, height, width)

    def blend(self, mask: Tensor, x: float, y: float, colour: Colour) -> None:
        """Ink of a colour where mask (h, w) says, its corner at (x, y); what lies outside is cut off."""
        x, y = round(x), round(y)
        left, top = max(0, -x), max(0, -y)
        mask = mask[top : max(top, self.height - y), left : max(left, self.width - x)]
        h, w = mask.shape
        place = self.pixels[:, y + top : y + top + h, x + left : x + left + w]
        place += (lucid.tensor(colour).view(3, 1, 1) - place) * mask

    def box(self, x: float, y: float, w: float, h: float, colour: Colour) -> None:
        self.blend(lucid.ones(max(1, round(h)), max(1, round(w))), x, y, colour)

    def frame(self, x: float, y: float, w: float, h: float, colour: Colour, thick: float = 1) -> None:
        for place in ((x, y, w, thick), (x, y + h - thick, w, thick), (x, y, thick, h), (x + w - thick, y, thick, h)):
            self.box(*place, colour)

    def text(self, x: float, y: float, text: str, colour: Colour = INK, size: int = 2, align: str = "left") -> None:
        """Letters are 9 * size high, with a margin; align: the point is their left end, middle or right end."""
        mask = text_mask(text, size)
        self.blend(mask, x - {"left": 0, "middle": mask.shape[1] / 2, "right": mask.shape[1]}[align], y, colour)

    def path(self, points: Sequence[tuple[float, float]], colour: Colour, thick: float = 2.0) -> None:
        """Straight lines from point to point: the ink of a pixel is how near the line is to it."""
        xs, ys = [p[0] for p in points], [p[1] for p in points]
        x0, y0 = math.floor(min(xs) - thick - 1), math.floor(min(ys) - thick - 1)
        w, h = math.ceil(max(xs) + thick + 2) - x0, math.ceil(max(ys) + thick + 2) - y0
        ink = lucid.zeros(h, w)
        for (ax, ay), (bx, by) in zip(points, points[1:]):
            left, top = math.floor(min(ax, bx) - thick) - x0, math.floor(min(ay, by) - thick) - y0
            right, bottom = math.ceil(max(ax, bx) + thick) + 1 - x0, math.ceil(max(ay, by) + thick) + 1 - y0
            px, py = lucid.arange(left, right) + (x0 - ax), (lucid.arange(top, bottom) + (y0 - ay)).unsqueeze(1)
            dx, dy = bx - ax, by - ay
            along = ((px * dx + py * dy) / ((dx * dx + dy * dy) or 1)).clamp(0, 1)
            distance = lucid.hypot(px - along * dx, py - along * dy)
            place = ink[top:bottom, left:right]
            place.copy_(lucid.maximum(place, (thick / 2 + 0.5 - distance).clamp(0, 1)))
        self.blend(ink, x0, y0, colour)

    def image(self, x: float, y: float, grey: Tensor, size: int) -> None:
        """A picture (h, w) of values between 0, paper, and 1, ink."""
        self.blend(F.interpolate(grey[None, None], size=(size, size), mode="nearest")[0, 0], x, y, INK)

    def save(self, path: str) -> None:
        pixels = (self.pixels.clamp(0, 1) * 255).round().to(lucid.uint8).permute(1, 2, 0).contiguous()
        curve.write_png(path, self.width, self.height, bytes(memoryview(pixels)), colours=3)


def nice_step(span: float, steps: int = 5) -> float:
    """A round number that divides a span into about so many parts."""
    raw = span / steps
    unit = 10.0 ** math.floor(math.log10(raw))
    return next(unit * k for k in (1, 2, 5, 10) if unit * k >= raw)


def plot(canvas: Canvas, x: float, y: float, w: float, h: float, series: Sequence[Series], title: str, label: str) -> None:
    """Curves over a frame with round numbers at its sides. series: (values, colour, thickness); values are equally spaced."""
    canvas.text(x, y - 30, title)
    most = max(max(values) for values, _, _ in series)
    longest = max(len(values) for values, _, _ in series)
    step = nice_step(most)
    top = step * math.ceil(most / step)
    for k in range(round(top / step) + 1):
        level = y + h - h * k * step / top
        canvas.box(x, level, w, 1, FAINT)
        canvas.text(x - 10, level - 9, f"{k * step:.{max(0, -math.floor(math.log10(step)))}f}", MUTED, align="right")
    step = nice_step(longest)
    for k in range(int(longest / step) + 1):
        canvas.text(x + w * k * step / longest, y + h + 8, f"{k * step:.0f}", MUTED, align="middle")
    canvas.text(x + w / 2, y + h + 30, label, MUTED, align="middle")
    for values, colour, thick in series:
        each = max(1, len(values) // int(w))  # no more points than pixels
        picked = [(i, values[i]) for i in range(0, len(values), each)]
        canvas.path([(x + w * (i + 0.5) / longest, y + h - h * v / top) for i, v in picked], colour, thick)
    canvas.box(x, y + h, w, 1, MUTED)


def confusion(canvas: Canvas, x: float, y: float, cell: int, counts: list[list[int]], title: str) -> None:
    """A square of counts (true class, predicted class): right answers on a blue diagonal, wrong ones red."""
    canvas.text(x, y - 30, title)
    most = max(max(row) for row in counts)
    for i, row in enumerate(counts):
        canvas.text(x - 10, y + cell * i + cell / 2 - 9, str(i), MUTED, align="right")
        canvas.text(x + cell * i + cell / 2, y + cell * len(counts) + 8, str(i), MUTED, align="middle")
        for j, n in enumerate(row):
            strength = n / most if i == j else min(1.0, 0.25 + 0.25 * n) if n else 0.0
            red, green, blue = BLUE if i == j else RED
            colour = (1 - strength * (1 - red), 1 - strength * (1 - green), 1 - strength * (1 - blue))
            canvas.box(x + cell * j + 1, y + cell * i + 1, cell - 2, cell - 2, colour if n else (0.96, 0.965, 0.975))
            if n:
                ink = PAPER if strength > 0.5 else INK
                canvas.text(x + cell * j + cell / 2 + 1, y + cell * i + cell / 2 - 9, str(n), ink, align="middle")
    canvas.text(x + cell * len(counts) / 2, y + cell * len(counts) + 30, "predicted", MUTED, align="middle")


def samples(
    canvas: Canvas, x: float, y: float, size: int, rows: int, columns: int, shown: Sequence[tuple[Tensor, int, int]], title: str
) -> None:
    """Pictures with what was predicted below, and the truth beside a mistake: shown holds (picture, predicted, true)."""
    canvas.text(x, y - 30, title)
    gap, high = size + 12, size + 34
    for k, (picture, predicted, true) in enumerate(shown[: rows * columns]):
        left, top = x + gap * (k % columns), y + high * (k // columns)
        canvas.image(left, top, picture, size)
        right = predicted == true
        canvas.frame(left - 1, top - 1, size + 2, size + 2, FAINT if right else RED, 1 if right else 2)
        said = str(predicted) if right else f"{predicted}({true})"
        canvas.text(left + size / 2, top + size + 4, said, GREEN if right else RED, align="middle")
