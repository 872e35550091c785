"""The examples do what they say."""

import pathlib
import struct
import subprocess
import sys
import zlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))
import curve  # noqa: E402
import digits  # noqa: E402

import lucid  # noqa: E402


def test_digits_learns(tmp_path, capsys):
    image = tmp_path / "curve.png"
    assert digits.main(epochs=6, image=str(image)) > 0.9
    text = capsys.readouterr().out
    assert "test accuracy" in text and "training loss" in text
    data = image.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", data[16:24]) == (640, 320)


def test_png_rows_are_complete(tmp_path):
    curve.save([3.0, 2.0, 1.0], tmp_path / "c.png", width=40, height=30)
    data = (tmp_path / "c.png").read_bytes()
    start = data.index(b"IDAT")
    (length,) = struct.unpack(">I", data[start - 4 : start])
    assert len(zlib.decompress(data[start + 4 : start + 4 + length])) == 30 * 41


def test_drawing_shows_both_ends():
    text = curve.draw([4.0, 1.0], width=10, height=3)
    assert "4.000" in text and "1.000" in text


@pytest.mark.parametrize("example", sorted(p.stem for p in (ROOT / "examples/c").glob("*.c")))
def test_c_example_compiles_against_the_library(tmp_path, example):
    """As a user would: with the flags that lucid.config prints."""
    from lucid import config

    program = tmp_path / example
    source = ROOT / "examples/c" / f"{example}.c"
    compile = [
        "cc",
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror",
        str(source),
        "-o",
        str(program),
        *config.cflags(),
        *config.libs(),
    ]
    subprocess.run(compile, check=True)
    ran = subprocess.run([str(program)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_config_prints_flags():
    ran = subprocess.run([sys.executable, "-m", "lucid.config", "--libs"], capture_output=True, text=True, cwd=ROOT)
    assert "-llucid" in ran.stdout
    ran = subprocess.run([sys.executable, "-m", "lucid.config", "--bogus"], capture_output=True, text=True, cwd=ROOT)
    assert ran.returncode != 0 and "usage" in ran.stderr
    assert lucid.__name__ == "lucid"
