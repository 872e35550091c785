"""Readers of files that the tests write, grids and PNG files."""

import gzip
import pickle
import struct
import zlib

import pytest

import lucid
from lucid.utils.data import DataLoader
from lucid.vision import datasets, make_grid, save_image
from lucid.vision.utils import png


def idx(*shape, data):
    return struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape) + bytes(data)


def test_mnist(tmp_path):
    folder = tmp_path / "MNIST/raw"
    folder.mkdir(parents=True)
    (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(3, 2, 2, data=range(12))))
    (folder / "train-labels-idx1-ubyte").write_bytes(idx(3, data=[7, 0, 9]))
    data = datasets.MNIST(tmp_path, image="tensor", transform=lambda p: p.float(), target_transform=lambda t: -t)
    assert len(data) == 3 and data[1][0].tolist() == [[[4.0, 5.0], [6.0, 7.0]]] and data[2][1] == -9
    assert data.data.shape == (3, 2, 2) and data.class_to_idx["9 - nine"] == 9
    ((x, y),) = DataLoader(data, batch_size=3)
    assert x.shape == (3, 1, 2, 2) and y.tolist() == [-7, 0, -9]
    with pytest.raises(FileNotFoundError, match="t10k-images-idx3-ubyte.*get the four files"):
        datasets.MNIST(tmp_path, train=False)
    with pytest.raises(NotImplementedError, match="downloads nothing"):
        datasets.MNIST(tmp_path, download=True)
    (folder / "train-labels-idx1-ubyte").write_bytes(idx(3, data=[7, 0]))
    with pytest.raises(ValueError, match="incomplete"):
        datasets.MNIST(tmp_path)
    (folder / "train-labels-idx1-ubyte").write_bytes(b"xx")
    with pytest.raises(ValueError, match="not an IDX file"):
        datasets.MNIST(tmp_path)


def cifar_rows(n):
    return lucid.randint(0, 256, (n, 3072), dtype=lucid.uint8)


def test_cifar_in_both_formats(tmp_path):
    rows = cifar_rows(6)
    (tmp_path / "py/cifar-10-batches-py").mkdir(parents=True)
    (tmp_path / "bin/cifar-10-batches-bin").mkdir(parents=True)
    for i in range(1, 6):
        entry = {b"data": rows.numpy(), b"labels": [0, 1, 2, 3, 4, i]}
        (tmp_path / f"py/cifar-10-batches-py/data_batch_{i}").write_bytes(pickle.dumps(entry, protocol=2))
        labelled = lucid.cat([lucid.tensor([0, 1, 2, 3, 4, i], dtype=lucid.uint8)[:, None], rows], 1)
        (tmp_path / f"bin/cifar-10-batches-bin/data_batch_{i}.bin").write_bytes(labelled.numpy().tobytes())
    a, b = (datasets.CIFAR10(tmp_path / kind, image="tensor") for kind in ("py", "bin"))
    assert len(a) == len(b) == 30 and a.targets == b.targets and lucid.equal(a.pictures, b.pictures)
    assert lucid.equal(a[7][0].reshape(-1), rows[1]) and a[29][1] == 5 and a.data.shape == (30, 32, 32, 3)
    with pytest.raises(FileNotFoundError, match="MD5"):
        datasets.CIFAR100(tmp_path)
    (tmp_path / "bin/cifar-10-batches-bin/data_batch_1.bin").write_bytes(b"123")
    with pytest.raises(ValueError, match="no whole number of rows"):
        datasets.CIFAR10(tmp_path / "bin")


class Evil:
    def __reduce__(self):
        return print, ("this ran",)


def test_a_pickle_runs_nothing(tmp_path, capsys):
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for i in range(1, 6):
        (folder / f"data_batch_{i}").write_bytes(pickle.dumps({b"data": Evil()}))
    with pytest.raises(pickle.UnpicklingError, match="print is not part of a data set"):
        datasets.CIFAR10(tmp_path)
    assert capsys.readouterr().out == ""


def test_image_folder(tmp_path):
    for name, value in (("cat", 10), ("dog", 200)):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "1.png").write_bytes(png(lucid.full((3, 4, 5), value, dtype=lucid.uint8)))
        (tmp_path / name / "deep/2.PNG").write_bytes(png(lucid.full((1, 4, 5), value + 1, dtype=lucid.uint8)))
        (tmp_path / name / "notes.txt").write_text("no picture")
    data = datasets.ImageFolder(tmp_path, image="tensor")
    assert data.classes == ["cat", "dog"] and data.targets == [0, 0, 1, 1]
    pytest.importorskip("PIL")
    assert [(p.shape, int(p.max()), label) for p, label in (data[i] for i in range(4))] == [
        ((3, 4, 5), v, label) for v, label in ((10, 0), (11, 0), (200, 1), (201, 1))
    ]
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="classes empty"):
        datasets.ImageFolder(tmp_path)


def pixels(data):
    """(width, height, rows) of a PNG whose rows have no filter"""
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    (length,) = struct.unpack(">I", data[33:37])
    raw = zlib.decompress(data[41 : 41 + length])
    row = width * {0: 1, 2: 3}[kind] + 1
    return width, height, [list(raw[i + 1 : i + row]) for i in range(0, len(raw), row)]


def test_grids_and_files(tmp_path):
    images = lucid.arange(5.0).view(5, 1, 1, 1).expand(5, 1, 2, 3) / 4
    grid = make_grid(images, nrow=2, padding=1, pad_value=0.5)
    assert (
        grid.shape == (3, 10, 9)
        and grid[:, 1, 1].tolist() == [0.0] * 3
        and grid[0, 7, 1].item() == 1.0
        and grid[0, 7, 5].item() == 0.5
    )
    assert make_grid(images * 8 - 4, normalize=True).max().item() == 1.0
    each = make_grid(
        lucid.rand(3, 1, 4, 4) * lucid.tensor([1.0, 9.0, 100.0]).view(3, 1, 1, 1), normalize=True, scale_each=True, padding=0
    )
    assert each[0, :, :4].max() == each[0, :, 4:8].max() == each[0, :, 8:].max() == 1.0
    save_image(images, tmp_path / "g.png", nrow=5, padding=0)
    width, height, rows = pixels((tmp_path / "g.png").read_bytes())
    assert (width, height) == (15, 2) and rows[0][::9] == [0, 64, 128, 191, 255]
    for bad in (lambda: make_grid(3), lambda: make_grid([])):
        with pytest.raises(TypeError):
            bad()
    with pytest.raises(ValueError, match="nrow"):
        make_grid(images, nrow=0)


def test_against_torchvision():
    import sys
    import types

    sys.modules.setdefault("torchvision._meta_registrations", types.ModuleType("torchvision._meta_registrations"))
    theirs = pytest.importorskip("torchvision.utils")
    import torch

    x = lucid.rand(7, 3, 4, 5)
    t = torch.from_numpy(x.numpy())
    for settings in (
        {},
        {"nrow": 3, "padding": 1, "pad_value": 0.3},
        {"normalize": True, "value_range": (0.2, 0.7)},
        {"normalize": True, "scale_each": True},
    ):
        assert (torch.from_numpy(make_grid(x, **settings).numpy()) - theirs.make_grid(t, **settings)).abs().max() < 1e-6
