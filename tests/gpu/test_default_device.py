"""What happens under `lucid.set_default_device("cuda")`: new tensors lie on the device; files, keys of data loaders, lengths
and counts that the host reads stay where it can read them."""

import io

import pytest

import lucid
from lucid import nn

if not lucid.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)


@pytest.fixture(autouse=True)
def on_cuda():
    lucid.set_default_device("cuda")
    yield
    lucid.set_default_device("cpu")


@pytest.mark.parametrize("zipped", [True, False])
def test_files(zipped):
    kept = {
        "a": lucid.arange(3.0),
        "none": lucid.empty(0),
        "bools": [lucid.ones(2, dtype=lucid.bool)],
        "cpu": lucid.ones(2, device="cpu"),
    }
    file = io.BytesIO()
    lucid.save(kept, file, _use_new_zipfile_serialization=zipped)
    for where in (None, "cpu"):
        file.seek(0)
        found = lucid.load(file, map_location=where)
        assert found["a"].device.type == found["bools"][0].device.type == (where or "cuda")
        assert found["cpu"].device.type == "cpu" and found["a"].tolist() == [0, 1, 2] and found["bools"][0].all()


def test_safetensors():
    file = io.BytesIO()
    lucid.save_safetensors({"a": lucid.arange(3.0), "none": lucid.empty(0)}, file)
    file.seek(0)
    found = lucid.load_safetensors(file)
    assert found["a"].tolist() == [0, 1, 2] and found["a"].device.type == found["none"].device.type == "cpu"


@pytest.mark.parametrize("given", [None, "cpu", "cuda"])
def test_data(given):
    generator = None if given is None else lucid.Generator(given).manual_seed(1)
    data = lucid.utils.data
    rows = data.TensorDataset(lucid.arange(6))
    batches = list(data.DataLoader(rows, batch_size=4, shuffle=True, generator=generator))
    assert batches[0][0].device.type == "cuda" and sorted(lucid.cat([b[0] for b in batches]).tolist()) == list(range(6))
    parts = data.random_split(rows, [2, 4], generator=generator) if generator else data.random_split(rows, [2, 4])
    assert sorted(parts[0].indices + parts[1].indices) == list(range(6))
    keys = list(data.RandomSampler(rows, replacement=True, num_samples=40, generator=generator))
    assert len(keys) == 40 and set(keys) <= set(range(6))
    assert sorted(data.SubsetRandomSampler([3, 4, 5], generator)) == [3, 4, 5]


def test_training_on_either_device():
    for device in ("cpu", "cuda"):
        net = nn.Linear(3, 2, device=device)
        for kind in (lucid.optim.Adam, lucid.optim.Adagrad, lucid.optim.NAdam, lucid.optim.Rprop, lucid.optim.ASGD):
            optimizer = kind(net.parameters(), lr=0.1)
            before = net.weight.detach().clone()
            net(lucid.ones(4, 3, device=device)).sum().backward()
            optimizer.step()
            optimizer.load_state_dict(optimizer.state_dict())
            optimizer.step()
            assert net.weight.device.type == device and not lucid.equal(before, net.weight)


def test_sequences():
    packed = nn.utils.rnn.pack_sequence([lucid.arange(3.0), lucid.arange(2.0)])
    assert packed.data.device.type == "cuda" and packed.batch_sizes.device.type == "cpu"
    padded, lengths = nn.utils.rnn.pad_packed_sequence(packed)
    assert padded.device.type == "cuda" and lengths.tolist() == [3, 2] and lengths.device.type == "cpu"
    layer = nn.LSTM(1, 2)
    y, _ = layer(nn.utils.rnn.pack_padded_sequence(lucid.randn(3, 2, 1), [3, 2]))
    assert y.data.device.type == "cuda" and y.data.shape == (5, 2)
