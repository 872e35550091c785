"""The table and the picture of docs/gpu.md from a file of `gpu.py --json FILE`.   usage: gpu_table.py FILE WHERE_AND_WHEN"""

import json
import pathlib
import re
import sys

import summary

PAGE, PICTURE = summary.ROOT / "docs/gpu.md", summary.ROOT / "docs/images/gpu-speed.svg"
TABLE = re.compile(r"^`benchmarks/gpu.py`, .*?\n\n(?:\|.*\n)+", re.MULTILINE)


def powers(name):
    """4096^2 with a raised number."""
    raised = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
    return re.sub(r"\^(\d+)", lambda found: found[1].translate(raised), name)


def section(rows, where):
    lines = [
        f"`benchmarks/gpu.py`, both alternating in one process; microseconds per call, best of five turns. {where}.",
        "",
    ]
    lines += ["| case | Lucid | PyTorch | ratio |", "|---|---:|---:|---:|"]
    lines += [f"| {powers(name)} | {a:.1f} | {b:.1f} | {a / b:.2f} |" for name, (a, b) in rows.items()]
    return "\n".join(lines) + "\n"


def main(path, where):
    rows = json.loads(pathlib.Path(path).read_text())
    page, found = TABLE.subn(lambda _: section(rows, where), PAGE.read_text())
    assert found == 1, "the page has one table of speed"
    PAGE.write_text(page)
    times = {powers(name): (a * 1e-6, b * 1e-6) for name, (a, b) in rows.items()}
    PICTURE.write_text(summary.picture(times, "Time of one call on the GPU (shorter is better)"))


if __name__ == "__main__":
    main(*sys.argv[1:])
