"""safetensors files, alone, sharded, and beside the format's own library where it is installed."""

import io
import json

import pytest

import lucid

DTYPES = "bool uint8 int8 int16 uint16 float16 bfloat16 int32 uint32 float32 float64 int64 uint64 complex64".split()


def tensors():
    base = lucid.tensor([0.0, 1.0, 2.0, 3.0]).view(2, 2)
    return {name: base.to(getattr(lucid, name)) for name in DTYPES} | {"empty": lucid.empty(2, 0), "number": lucid.tensor(3.0)}


@pytest.mark.parametrize("mmap", [True, False])
def test_every_dtype(mmap, tmp_path):
    path, before = tmp_path / "x.safetensors", tensors()
    lucid.save_safetensors(before, path, metadata={"format": "pt"})
    after = lucid.load_safetensors(path, mmap=mmap)
    assert set(after) == set(before)
    for name, tensor in before.items():
        assert (
            after[name].dtype == tensor.dtype and after[name].tolist() == tensor.tolist() and after[name].shape == tensor.shape
        )
    assert lucid.serialization.safetensors_metadata(path) == {"format": "pt"}
    after["float32"] += 1  # a private copy of the page
    assert lucid.load_safetensors(path)["float32"].tolist() == before["float32"].tolist()


def test_layout():
    """Widest first, packed, header padded to 8 bytes: as the format asks."""
    file = io.BytesIO()
    lucid.save_safetensors({"b": lucid.ones(3, dtype=lucid.uint8), "a": lucid.ones(1, 2).t()}, file)
    data = file.getvalue()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    assert length % 8 == 0 and len(data) == 8 + length + 11
    assert header["a"] == {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]}
    assert header["b"] == {"dtype": "U8", "shape": [3], "data_offsets": [8, 11]}


def test_refused_content():
    with pytest.raises(RuntimeError, match="share memory"):
        x = lucid.ones(2)
        lucid.save_safetensors({"a": x, "b": x}, io.BytesIO())
    with pytest.raises(RuntimeError, match="share memory"):
        lucid.save_safetensors({"a": x[:2], "b": lucid.ones(1), "c": x[1:]}, io.BytesIO())
    whole = lucid.arange(6.0).view(2, 3)
    lucid.save_safetensors({"a": whole[0], "b": whole[1], "none": whole[:0]}, io.BytesIO())  # beside each other
    with pytest.raises(TypeError, match="complex128"):
        lucid.save_safetensors({"a": lucid.ones(2, dtype=lucid.complex128)}, io.BytesIO())
    with pytest.raises(TypeError, match="texts"):
        lucid.save_safetensors({}, io.BytesIO(), metadata={"a": 1})
    with pytest.raises(ValueError, match="named"):
        lucid.save_safetensors({"__metadata__": lucid.ones(1)}, io.BytesIO())


@pytest.mark.parametrize("size", [1, 16, "1KB", "5GB"])
def test_sharded(size, tmp_path):
    before = {f"layer.{i}": lucid.full((4,), float(i)) for i in range(5)}
    names = lucid.save_sharded(before, tmp_path, max_shard_size=size)
    assert len(names) == (5 if size in (1, 16) else 1)
    after = lucid.load_sharded(tmp_path)
    assert list(after) == list(before) and all(after[k].tolist() == before[k].tolist() for k in before)
    for wrong in ("5XB", 0, -1, "a lot"):
        with pytest.raises(ValueError, match="bytes"):
            lucid.save_sharded(before, tmp_path, max_shard_size=wrong)
    (tmp_path / names[0]).unlink()
    with pytest.raises(FileNotFoundError):
        lucid.load_sharded(tmp_path)


def test_one_file_without_an_index(tmp_path):
    lucid.save_safetensors({"a": lucid.ones(2)}, tmp_path / "model.safetensors")
    assert lucid.load_sharded(tmp_path)["a"].tolist() == [1, 1]


@pytest.mark.parametrize("mmap", [True, False])
def test_beside_the_package(mmap, tmp_path):
    theirs = pytest.importorskip("safetensors.torch", reason="the safetensors package is not installed")
    import torch

    path = tmp_path / "x.safetensors"
    lucid.save_safetensors(tensors(), path)
    there = theirs.load_file(path)
    assert {k: v.tolist() for k, v in there.items()} == {k: v.tolist() for k, v in tensors().items()}
    theirs.save_file({k: v for k, v in there.items()}, tmp_path / "y.safetensors")
    here = lucid.load_safetensors(tmp_path / "y.safetensors", mmap=mmap)
    assert {k: v.tolist() for k, v in here.items()} == {k: v.tolist() for k, v in there.items()}
    assert here["bfloat16"].dtype == lucid.bfloat16 and there["bfloat16"].dtype == torch.bfloat16
