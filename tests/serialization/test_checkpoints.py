"""save and load beside PyTorch's, in both directions."""

import collections
import io
import json
import os
import pathlib
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

import lucid
from lucid.serialization import CorruptFileError, NewerVersionError, versions
from lucid.serialization.archive import Writer

DTYPES = (
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex32 complex64 complex128"
).split()
DATA = pathlib.Path(__file__).parent / "data"


def values(dtype, lib):
    """Six numbers that every dtype has, 2 by 3."""
    plain = lib.tensor([0, 1, 2, 3, 5, 8]).view(2, 3)
    return (plain > 1) if dtype == "bool" else plain.to(lib.float32).to(getattr(lib, dtype))


def bytes_of(tensor):
    flat = tensor.detach().contiguous().view(-1)
    if isinstance(tensor, lucid.Tensor):
        return bytes(memoryview(flat.view(lucid.uint8)))
    return flat.view(torch.uint8).numpy().tobytes()


def saved(value, lib, **options):
    file = io.BytesIO()
    lib.save(value, file, **options)
    file.seek(0)
    return file


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", ["zip", "legacy", "mmap"])
def test_every_dtype_from_torch(dtype, form, tmp_path):
    there = values(dtype, torch)
    path = tmp_path / "file.pt"
    torch.save({"x": there, "t": there.t()}, path, _use_new_zipfile_serialization=form != "legacy")
    here = lucid.load(path, mmap=form == "mmap")
    assert here["x"].dtype == getattr(lucid, dtype) and here["t"].stride() == there.t().stride()
    assert bytes_of(here["x"]) == bytes_of(there) and bytes_of(here["t"]) == bytes_of(there.t())
    assert here["x"].untyped_storage() == here["t"].untyped_storage()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("form", ["zip", "legacy"])
def test_every_dtype_to_torch(dtype, form, weights_only):
    here = values(dtype, lucid)
    file = saved({"x": here, "t": here.t(), "part": here[1:]}, lucid, _use_new_zipfile_serialization=form == "zip")
    if form == "legacy":
        again = lucid.load(io.BytesIO(file.getvalue()), weights_only=weights_only)
        assert bytes_of(again["x"]) == bytes_of(here) and again["t"].stride() == here.t().stride()
        if dtype in ("uint16", "uint32", "uint64", "complex32"):  # PyTorch does not read its own files of these
            return
    there = torch.load(file, weights_only=weights_only)
    assert there["x"].dtype == getattr(torch, dtype) and there["t"].stride() == here.t().stride()
    assert bytes_of(there["x"]) == bytes_of(here) and bytes_of(there["part"]) == bytes_of(here[1:])
    assert there["part"].storage_offset() == 3
    assert there["x"].untyped_storage().data_ptr() == there["t"].untyped_storage().data_ptr()


PLAIN = {
    "numbers": [0, -1, 1 << 40, -(1 << 70), 1.5, float("inf"), True, None, 2 + 3j],
    "texts": ["", "Zürich", "\ud800", b"", b"\0\xff"],
    ("a", 1): {"set": {1, 2}, "frozen": frozenset({"x"}), "tuple": (1, (2, (3,)))},
    "ordered": collections.OrderedDict(b=1, a=2),
    "counter": collections.Counter("aab"),
    "bytes": bytearray(b"xyz"),
    "long": list(range(3000)),
}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_data(protocol):
    assert lucid.load(saved(PLAIN, lucid, pickle_protocol=protocol)) == PLAIN
    assert lucid.load(saved(PLAIN, lucid, pickle_protocol=protocol), weights_only=False) == PLAIN


def test_plain_data_beside_torch():
    assert torch.load(saved(PLAIN, lucid), weights_only=False) == PLAIN
    assert lucid.load(saved(PLAIN, torch)) == PLAIN


@pytest.mark.parametrize("source, target", [(torch, lucid), (lucid, torch), (lucid, lucid)])
def test_models_and_optimizers(source, target):
    def made(lib):
        lib.manual_seed(0)
        model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.BatchNorm1d(4), lib.nn.Linear(4, 1))
        return model, lib.optim.AdamW(model.parameters(), lr=0.01)

    def step(lib, model, optimizer, n):
        for i in range(n):
            optimizer.zero_grad()
            loss = model(lib.arange(12.0).view(4, 3) * (i + 1)).square().mean()
            loss.backward()
            optimizer.step()
        return loss.item()

    model, optimizer = made(source)
    step(source, model, optimizer, 3)
    file = saved({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, source)
    loaded = target.load(file)
    other, other_optimizer = made(target)
    other.load_state_dict(loaded["model"])
    other_optimizer.load_state_dict(loaded["optimizer"])
    assert loaded["model"]._metadata == model.state_dict()._metadata and loaded["epoch"] == 3
    expected, found = step(source, model, optimizer, 3), step(target, other, other_optimizer, 3)
    assert found == pytest.approx(expected, rel=1e-5)


def test_parameters_and_attributes():
    parameter = lucid.nn.Parameter(lucid.ones(2), requires_grad=False)
    parameter.tag = "kept"
    tensor = lucid.zeros(1, requires_grad=True)
    for there in (torch, lucid):
        loaded = there.load(saved([parameter, tensor, parameter], lucid))
        assert type(loaded[0]).__name__ == "Parameter" and not loaded[0].requires_grad and loaded[0].tag == "kept"
        assert loaded[1].requires_grad and loaded[0] is loaded[2]
    loaded = lucid.load(saved([torch.nn.Parameter(torch.ones(2)), torch.ones(2, dtype=torch.complex64).mul(1j).conj()], torch))
    assert isinstance(loaded[0], lucid.nn.Parameter) and loaded[1].tolist() == [-1j, -1j]


def test_views_of_two_dtypes_share_memory():
    whole = lucid.zeros(4)
    loaded = lucid.load(saved([whole, whole.view(lucid.int32)], lucid))
    loaded[1][0] = 1
    assert loaded[0][0] > 0
    there = torch.load(saved([whole, whole.view(lucid.int32)], lucid))
    there[1][0] = 1
    assert there[0][0] > 0


def test_kinds_that_are_not_tensors():
    value = [
        lucid.float16,
        lucid.device("cpu"),
        lucid.Size([1, 2]),
        lucid.ones(3).untyped_storage(),
        lucid.empty(2, device="meta"),
    ]
    there = torch.load(saved(value, lucid), weights_only=False)
    assert there[:3] == [torch.float16, torch.device("cpu"), torch.Size([1, 2])]
    assert there[3].nbytes() == 12 and there[4].device.type == "meta" and there[4].shape == (2,)
    here = lucid.load(saved(value, lucid))
    assert here[:3] == value[:3] and here[3].nbytes() == 12 and here[4].is_meta


def test_map_location():
    file = saved({"x": lucid.ones(2)}, lucid)
    seen = []

    def keep(storage, location):
        seen.append((storage.nbytes(), location))
        return storage

    for where in ("cpu", lucid.device("cpu"), {"cuda:0": "cpu"}, keep, lambda storage, location: None):
        file.seek(0)
        assert lucid.load(file, map_location=where)["x"].tolist() == [1, 1]
    assert seen == [(8, "cpu")]
    file.seek(0)
    assert lucid.load(file, map_location="meta")["x"].is_meta
    file.seek(0)
    with pytest.raises(RuntimeError, match="cuda:7, which is not here.*map_location='cpu'"):
        lucid.load(file, map_location={"cpu": "cuda:7"})


@pytest.mark.parametrize("where", [5, True, [], b"cpu", "zzz", {"cpu": 5}, {"cpu": None}, lambda s, at: 5, lambda s, at: 1 / 0])
def test_a_wrong_map_location_is_not_a_damaged_file(where):
    with pytest.raises((TypeError, ZeroDivisionError, RuntimeError)) as error:
        lucid.load(saved([lucid.ones(2)], lucid), map_location=where)
    assert not isinstance(error.value, pickle.UnpicklingError) and "damaged" not in str(error.value)


def test_mapped_tensors_do_not_write_the_file(tmp_path):
    path = tmp_path / "file.pt"
    lucid.save({"x": lucid.arange(1000.0)}, path)
    before = path.read_bytes()
    loaded = lucid.load(path, mmap=True)["x"]
    loaded += 1
    assert loaded[0] == 1 and path.read_bytes() == before
    with pytest.raises(ValueError, match="path"):
        lucid.load(io.BytesIO(before), mmap=True)


def test_files_of_every_kind(tmp_path):
    path = tmp_path / "file.pt"
    for f in (path, str(path)):
        lucid.save(lucid.ones(1), f)
        assert lucid.load(f).item() == 1
    with open(path, "wb") as file:
        lucid.save(lucid.zeros(1), file)
    with open(path, "rb") as file:
        assert lucid.load(file).item() == 0
    link = tmp_path / "link.pt"
    link.symlink_to(path)
    lucid.save(lucid.full((1,), 7.0), link)
    assert link.is_symlink() and lucid.load(path).item() == 7
    os.chmod(path, 0o640)
    lucid.save(lucid.ones(1), path)
    assert path.stat().st_mode & 0o777 == 0o640
    with pytest.raises(TypeError):
        lucid.save(lucid.ones(1), 3)
    with pytest.raises(FileNotFoundError):
        lucid.load(tmp_path / "none.pt")
    with pytest.raises(ValueError, match="pickle_protocol"):
        lucid.save(1, path, pickle_protocol=1)
    assert torch.load(saved([1], lucid, _disable_byteorder_record=True)) == [1]
    with pytest.raises(FileNotFoundError, match="none/x.pt"):
        lucid.save(1, tmp_path / "none" / "x.pt")
    long = tmp_path / ("ä" * 127)  # 254 bytes; names have at most 255
    lucid.save(1, long)
    long.unlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file.pt", "link.pt"]


def test_same_content_is_the_same_file():
    assert saved([lucid.ones(2), "a"], lucid).getvalue() == saved([lucid.ones(2), "a"], lucid).getvalue()


@pytest.mark.parametrize("save", [lucid.save, lucid.save_safetensors])
def test_large_files_by_several_threads_are_the_same_file(save, tmp_path):
    value = {"a": lucid.arange(700_003.0), "b": lucid.arange(900_001, dtype=lucid.int8), "c": lucid.ones(3)}
    memory, path, pipe = io.BytesIO(), tmp_path / "file", tmp_path / "pipe"
    save(value, memory)
    whole = memory.getvalue()
    save(value, path)
    assert path.read_bytes() == whole
    with open(path, "wb", buffering=0) as file:
        file.write(b"before")
        save(value, file)
        file.write(b"after")
    assert path.read_bytes() == b"before" + whole + b"after"
    with open(path, "ab", buffering=0) as file:  # which writes at the end only
        save(value, file)
    assert path.read_bytes() == b"before" + whole + b"after" + whole
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    save(value, pipe)
    reader.join()
    assert read == [whole]


def test_numpy_files(tmp_path):
    for dtype in DTYPES:
        here = values(dtype, lucid)
        if dtype in ("bfloat16", "complex32"):
            with pytest.raises(TypeError, match="NumPy has no type"):
                lucid.serialization.save_npy(here, tmp_path / "x.npy")
            continue
        lucid.serialization.save_npy(here, tmp_path / "x.npy")
        there = np.load(tmp_path / "x.npy")
        assert there.tobytes() == bytes_of(here) and there.shape == (2, 3)
        np.save(tmp_path / "y.npy", np.asfortranarray(there))
        assert lucid.load(tmp_path / "y.npy").tolist() == here.tolist()
    arrays = {"a": np.arange(5), "b": np.ones((2, 0)), "c": np.float32(3)}
    for write in (np.savez, np.savez_compressed):
        write(tmp_path / "x.npz", **arrays)
        loaded = lucid.load(tmp_path / "x.npz")
        assert {k: v.tolist() for k, v in loaded.items()} == {k: v.tolist() for k, v in arrays.items()}
    lucid.serialization.save_npz(loaded, tmp_path / "y.npz")
    assert {k: v.tolist() for k, v in np.load(tmp_path / "y.npz").items()} == {k: v.tolist() for k, v in arrays.items()}
    np.save(tmp_path / "o.npy", np.array([object()]), allow_pickle=True)
    with pytest.raises(TypeError, match="no dtype"):
        lucid.load(tmp_path / "o.npy")


def archive(version, data):
    """A file that says to be of a version, with a pickle of one's own."""
    file = io.BytesIO()
    writer = Writer(file)
    writer.add("data.pkl", data)
    writer.add(versions.RECORD, version)
    writer.close()
    return file.getvalue()


def test_newer_versions_are_refused_by_name():
    current, plain = versions.current(), pickle.dumps([1], 2)
    tensors = io.BytesIO()
    lucid.save_safetensors({"x": lucid.ones(1)}, tensors)
    assert current in saved([lucid.ones(1)], lucid).getvalue() and lucid.load(io.BytesIO(archive(current, plain))) == [1]
    for what, name in (("format", "format"), ("op schema", "ops")):
        newer = json.dumps({**json.loads(current), name: 9}).encode()
        with pytest.raises(NewerVersionError, match=f"{what} version 9"):
            lucid.load(io.BytesIO(archive(newer, plain)))
        quoted = [json.dumps(text.decode()).encode() for text in (current, newer)]
        changed = tensors.getvalue().replace(*quoted)
        assert changed != tensors.getvalue()
        with pytest.raises(NewerVersionError, match=f"{what} version 9"):
            lucid.load_safetensors(io.BytesIO(changed))
    for damaged in (b"", b"[]", b'{"format": "a", "ops": 1}', b'{"format": 0, "ops": 1}', b'{"format": 1}', b"[" * 4000):
        with pytest.raises(CorruptFileError):
            lucid.load(io.BytesIO(archive(damaged, plain)))


def test_files_of_version_1_are_migrated(monkeypatch):
    """In a plain pickle, as they were, and in an archive that says so; without the migration they cannot be read."""
    old = (DATA / "format1.pkl").read_bytes()
    for data in (old, archive(b'{"format": 1, "ops": 1}', old)):
        found = lucid.load(io.BytesIO(data))
        assert found["model"]["weight"].tolist() == [[1.0, 2.0], [3.0, 4.0]]
        assert isinstance(found["parameter"], lucid.nn.Parameter) and found["parameter"].requires_grad
        state = found["optimizer"]["state"][0]
        assert lucid.is_tensor(state["step"]) and state["step"].item() == 5 and state["exp_avg"].tolist() == [0, 0]
        with monkeypatch.context() as without:
            without.setitem(versions.MIGRATIONS, 1, versions.Migration())
            with pytest.raises(pickle.UnpicklingError, match="lucid._C._rebuild_tensor"):
                lucid.load(io.BytesIO(data))
    with pytest.raises(pickle.UnpicklingError, match="lucid._C._rebuild_tensor"):
        lucid.load(io.BytesIO(archive(versions.current(), old)))  # a name of version 1 is none of version 2


def test_whole_modules_need_the_explicit_word():
    file = saved(lucid.nn.Linear(2, 1), lucid)
    with pytest.raises(pickle.UnpicklingError, match="Linear"):
        lucid.load(file)
    file.seek(0)
    assert isinstance(lucid.load(file, weights_only=False), lucid.nn.Linear)


class Settings:
    """What a checkpoint of one's own may hold besides tensors."""

    def __init__(self, rate):
        self.rate = rate

    def __eq__(self, other):
        return self.__dict__ == other.__dict__


class Made(Settings):
    def __reduce__(self):
        return make, (self.rate,)


def make(rate):
    return Made(rate)


def test_allowed_names():
    """Classes, functions, and names of old, as PyTorch allows them."""
    value = {"settings": Settings(lucid.ones(1).item()), "made": Made(3)}
    for protocol in (2, 4):
        file = saved(value, lucid, pickle_protocol=protocol)
        for lib in (lucid, torch) if protocol == 2 else (lucid,):
            s, before = lib.serialization, lib.serialization.get_safe_globals()
            for allowed in ([], [Settings], [make], [Made]):
                file.seek(0)
                with s.safe_globals(allowed), pytest.raises(pickle.UnpicklingError, match="Settings|make"):
                    lib.load(file)
            file.seek(0)
            with s.safe_globals([Settings, make]):
                assert lib.load(file) == value and {Settings, make} <= set(s.get_safe_globals())
            assert set(s.get_safe_globals()) == set(before)
    moved = io.BytesIO(file.getvalue())
    with lucid.serialization.safe_globals([(Settings, f"{__name__}.Settings"), (make, f"{__name__}.make")]):
        assert lucid.load(moved) == value
    for wrong in (3, "a", (Settings, "name"), (3, "a.b")):
        with pytest.raises(TypeError, match="expected classes"):
            lucid.serialization.add_safe_globals([wrong])


def test_many_threads_load_at_once(tmp_path):
    path = tmp_path / "file.pt"
    lucid.save({str(i): lucid.full((1000,), float(i)) for i in range(20)}, path)
    wrong = []

    def work():
        for mapped in (False, True) * 3:
            loaded = lucid.load(path, mmap=mapped)
            if any(loaded[str(i)].sum().item() != 1000 * i for i in range(20)):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_no_numpy_no_torch_needed():
    code = "import io, sys, lucid; f = io.BytesIO(); lucid.save({'a': lucid.ones(2)}, f); f.seek(0); print(lucid.load(f)); "
    code += "assert 'numpy' not in sys.modules and 'torch' not in sys.modules and 'zipfile' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
