"""The examples do what they say, at a small size."""

import gzip
import io
import json
import pathlib
import struct
import subprocess
import sys
import threading
import types
import urllib.error
import urllib.request
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))
import cartpole  # noqa: E402
import char_gpt  # noqa: E402
import curve  # noqa: E402
import ddpm  # noqa: E402
import digits  # noqa: E402
import figure  # noqa: E402
import gan  # noqa: E402
import lenet  # noqa: E402
import lstm  # noqa: E402
import mnist  # noqa: E402
import server  # noqa: E402
import transfer  # noqa: E402
import vae  # noqa: E402

import lucid  # noqa: E402


@pytest.fixture(autouse=True)
def nothing_else_installed(monkeypatch):
    """The examples draw and count by themselves, whatever this environment has."""
    for name in ("tqdm", "matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)


def test_digits_learns(tmp_path, capsys):
    image = tmp_path / "curve.png"
    assert digits.main(epochs=6, image=str(image)) > 0.9
    text = capsys.readouterr().out
    assert "test accuracy" in text and "training loss" in text
    assert pixels_of(image)[:3] == (640, 320, 1)


def pixels_of(path):
    """(width, height, bytes per pixel, rows without their filter bytes) of a PNG as the examples write them"""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    start = data.index(b"IDAT")
    (length,) = struct.unpack(">I", data[start - 4 : start])
    raw = zlib.decompress(data[start + 4 : start + 4 + length])
    row = width * {0: 1, 2: 3}[kind]
    assert depth == 8 and len(raw) == height * (row + 1)
    return width, height, row // width, [raw[i + 1 : i + 1 + row] for i in range(0, len(raw), row + 1)]


def test_lenet_learns_and_draws(tmp_path, capsys):
    image = tmp_path / "demo.png"
    assert lenet.main(epochs=4, image=str(image)) > 0.85
    text = capsys.readouterr().out
    assert "images/s" in text and "accuracy" in text and "61,706 weights" in text
    width, height, colours, rows = pixels_of(image)
    assert (width, height, colours) == (1120, 780, 3)
    blue = bytes(round(255 * c) for c in figure.BLUE)
    assert any(blue in row for row in rows)  # the curve, and full cells of the confusion matrix


def test_canvas_cuts_off_what_lies_outside(tmp_path):
    canvas = figure.Canvas(20, 10)
    canvas.box(-5, -5, 10, 10, (1.0, 0.0, 0.0))
    canvas.box(18, 8, 10, 10, (0.0, 0.0, 1.0))
    canvas.path([(-5, 5), (25, 5)], figure.INK)
    canvas.text(15, 4, "abc?")
    canvas.save(tmp_path / "c.png")
    width, height, colours, rows = pixels_of(tmp_path / "c.png")
    assert (width, height, colours) == (20, 10, 3)
    assert rows[0][:3] == b"\xff\0\0" and rows[9][-3:] == b"\0\0\xff" and rows[0][-3:] == b"\xff\xff\xff"


def test_letters_can_be_told_apart():
    assert len(set(figure.LETTERS.values())) == len(figure.LETTERS)
    assert all(len(dots) in (14, 18) and max(bytes.fromhex(dots)) < 32 for dots in figure.LETTERS.values())


def test_mnist_learns_the_digits_that_come_along(capsys):
    assert mnist.main(["--epochs", "2"]) > 0.75
    assert "epoch 2" in capsys.readouterr().out


def idx(kind, *shape, data):
    return struct.pack(f">HBB{len(shape)}I", 0, kind, len(shape), *shape) + data


def test_mnist_reads_idx_files(tmp_path, capsys):
    for part, n in (("train", 3), ("t10k", 2)):
        (tmp_path / f"{part}-images-idx3-ubyte").write_bytes(idx(8, n, 28, 28, data=bytes(range(196)) * 4 * n))
        (tmp_path / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(8, n, data=bytes(range(n)))))
    (images, labels), (test, _) = mnist.load_mnist(tmp_path)
    assert tuple(images.shape) == (3, 1, 28, 28) and tuple(test.shape) == (2, 1, 28, 28) and labels.tolist() == [0, 1, 2]
    assert abs(images[0, 0, 0, 5].item() - (5 / 255 - mnist.MEAN) / mnist.DEVIATION) < 1e-6
    mnist.main(["--data", str(tmp_path), "--dry-run", "--save-model", str(tmp_path / "model.pt")])
    assert lucid.load(tmp_path / "model.pt").keys() == mnist.Net().state_dict().keys()
    assert "/2 right" in capsys.readouterr().out
    (tmp_path / "train-images-idx3-ubyte").write_bytes(b"not such a file")
    with pytest.raises(ValueError, match="IDX"):
        list(mnist.load_mnist(tmp_path))


def test_char_gpt_learns_and_writes(capsys):
    settings = ["--steps", "80", "--batch", "8", "--context", "32", "--width", "32", "--layers", "2", "--length", "40"]
    losses = char_gpt.main([*settings, "--start", "Alice "])
    assert sum(losses[-5:]) / 5 < losses[0] - 1.0
    written = capsys.readouterr().out.split("letters/s\n")[1]
    assert written.startswith("Alice ") and len(written) == len("Alice ") + 40 + 1


def test_lstm_goes_on_better_than_silence(capsys):
    losses, error = lstm.main(60)
    assert losses[-1] < 0.5 * losses[0] and error < 1.0
    assert "mean squared error" in capsys.readouterr().out


def test_vae_learns_and_draws(tmp_path):
    losses = vae.main(10, str(tmp_path / "vae.png"))
    assert losses[-1] < 0.75 * losses[0] and pixels_of(tmp_path / "vae.png")[:3] == (436, 148, 3)


def test_ddpm_learns_and_draws(tmp_path):
    losses = ddpm.main(250, str(tmp_path / "ddpm.png"))
    assert sum(losses[-20:]) / 20 < 0.75 * losses[0] and pixels_of(tmp_path / "ddpm.png")[:3] == (436, 148, 3)
    x, noise = lucid.ones(2, 64), lucid.zeros(2, 64)
    assert lucid.allclose(ddpm.noisy(x, lucid.tensor([0, 99]), noise)[:, 0], ddpm.KEPT[[0, 99]].sqrt())


def test_gan_plays_and_draws(tmp_path):
    losses = gan.main(200, str(tmp_path / "gan.png"))
    assert losses[-1][1] < losses[0][1] and pixels_of(tmp_path / "gan.png")[:3] == (436, 148, 3)


def test_the_pole_stays_up_longer():
    lengths = cartpole.main(90)
    assert sum(lengths[-15:]) > 2 * sum(lengths[:15])
    game = cartpole.CartPole()
    game.reset()
    over = [game.step(True)[1] for _ in range(20)]
    assert over.index(True) in range(7, 12), "pushed to one side, the pole falls"


def test_transfer_helps(capsys, tmp_path):
    with_it, without = transfer.main(str(tmp_path / "c.pt"))
    assert with_it > max(without - 0.02, 0.8) and "saved in" in capsys.readouterr().out
    assert transfer.main(str(tmp_path / "c.pt"))[0] > 0.8 and "saved in" not in capsys.readouterr().out


def test_server_answers_several_threads():
    model = server.trained(8)
    (x, labels), _ = digits.load()
    with server.serve(model, 0) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()

        def ask(rows):
            request = urllib.request.Request(f"http://127.0.0.1:{running.server_port}", json.dumps(rows).encode())
            return json.load(urllib.request.urlopen(request))

        with ThreadPoolExecutor(8) as pool:
            said = [a["digit"] for part in pool.map(ask, [p.tolist() for p in (x[:160] * 16).split(10)]) for a in part]
        assert sum(a == b for a, b in zip(said, labels.tolist())) > 130
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask([[1, 2]])
        assert "rows of 64 numbers" in json.load(refused.value)["error"]
        running.shutdown()


def test_png_rows_are_complete(tmp_path):
    curve.save([3.0, 2.0, 1.0], tmp_path / "c.png", width=40, height=30)
    assert pixels_of(tmp_path / "c.png")[:3] == (40, 30, 1)


def module(name, **members):
    made = types.ModuleType(name)
    made.__dict__.update(members)
    return made


def test_progress_is_tqdms_in_a_terminal(monkeypatch):
    bars = []

    class Bar:
        n, closed = 0, False

        def __init__(self, total, file):
            self.total, self.texts = total, []
            bars.append(self)

        def set_postfix_str(self, text, refresh):
            self.texts.append(text)

        def update(self, by):
            self.n += by

        def close(self):
            self.closed = True

    monkeypatch.setitem(sys.modules, "tqdm", module("tqdm", tqdm=Bar))
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stdout", terminal)
    for done in (1, 5, 8):
        curve.progress(done, 8, f"loss {done}")
    assert [(b.n, b.total, b.closed, b.texts) for b in bars] == [(8, 8, True, ["loss 1", "loss 5", "loss 8"])]
    curve.progress(1, 2, "")
    curve.progress(2, 2, "")
    assert len(bars) == 2 and not terminal.getvalue()
    monkeypatch.setattr(sys, "stdout", io.StringIO())  # a file gets the last state as a plain line
    curve.progress(1, 2, "first")
    curve.progress(2, 2, "last")
    assert len(bars) == 2 and "last" in sys.stdout.getvalue() and "first" not in sys.stdout.getvalue()


def test_curves_are_matplotlibs_where_it_is(monkeypatch, tmp_path):
    calls = []

    class Figure:
        def __init__(self, **settings):
            calls.append(settings["figsize"])

        def subplots(self):
            return types.SimpleNamespace(plot=calls.append, set_title=calls.append)

        def savefig(self, path):
            calls.append(path)

    monkeypatch.setitem(sys.modules, "matplotlib", module("matplotlib"))
    monkeypatch.setitem(sys.modules, "matplotlib.figure", module("matplotlib.figure", Figure=Figure))
    curve.save([1.0, 2.0], tmp_path / "c.png", title="loss")
    assert calls == [(6.4, 3.2), [1.0, 2.0], "loss", tmp_path / "c.png"]


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
    ran = subprocess.run([str(program)], capture_output=True, text=True, cwd=ROOT)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_c_lenet_is_short():
    assert len((ROOT / "examples/c/lenet.c").read_text().splitlines()) <= 150


def test_config_prints_flags():
    ran = subprocess.run([sys.executable, "-m", "lucid.config", "--libs"], capture_output=True, text=True, cwd=ROOT)
    assert "-llucid" in ran.stdout
    ran = subprocess.run([sys.executable, "-m", "lucid.config", "--bogus"], capture_output=True, text=True, cwd=ROOT)
    assert ran.returncode != 0 and "usage" in ran.stderr
    assert lucid.__name__ == "lucid"
