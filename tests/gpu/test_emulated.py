"""The CUDA backend without a GPU: the same kernel texts compiled as C++ behind a driver that queues work (emulator/). The
tests of kernel families run on it in a process of their own, and the launches of training steps are counted."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
COMPILER = shutil.which("g++")
pytestmark = pytest.mark.skipif(not COMPILER, reason="no C++ compiler")
FAMILIES = [
    "softmax", "softmax of long rows", "softmax of very long rows", "layer_norm of long rows", "rms_norm of long rows",
    "cross_entropy of long rows", "cross_entropy of few", "layer_norm", "batch_norm", "cross_entropy", "sum of all",
    "batch_norm, channels last", "batch_norm of wide images", "conv2d, channels last",
    "sum of columns", "var", "max", "logsumexp", "embedding", "scatter_add", "x[i, j]",
    "x[mask]", "conv2d", "conv_transpose2d", "max_pool", "avg_pool",
    "attention, causal", "lstm", "gru", "mm", "linear", "linear, layouts",
    "fused_linear", "lora_linear", "addmm", "sum of many", "triangles", "turned", "sort, stable", "cumsum",
    "interpolate", "grid_sample", "unique rows", "histograms", "isin", "ctc_loss", "complex arithmetic", "complex reductions",
    "fft", "fft of real numbers", "lu", "qr", "eigh", "svd", "lstsq", "sparse products",
]  # fmt: skip


@pytest.fixture(scope="module")
def emulator(tmp_path_factory):
    """The environment of a process that finds the emulation instead of a driver."""
    folder = tmp_path_factory.mktemp("emulator")
    library = folder / "libcuda.so.1"
    source = HERE / "emulator/emulator.cpp"
    subprocess.run([COMPILER, "-std=c++17", "-shared", "-fPIC", "-O1", source, "-o", library, "-ldl"], check=True)
    (folder / "libnvrtc.so.13").symlink_to(library)
    return os.environ | {
        "LUCID_CUDA_PATH": str(folder),
        "LUCID_CACHE_DIR": str(folder),
        "EMULATOR_CC": COMPILER,
        "EMULATOR_PRELUDE": str(HERE / "emulator/prelude.h"),
    }


def run(command, environment):
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, cwd=HERE.parents[1])
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_kernel_families(emulator):
    cases = [f"tests/gpu/test_families.py::test_like_the_cpu[{name}]" for name in FAMILIES]
    others = ["random_numbers", "bad_indices_raise_at_the_next_wait", "training[Adam]", "mixed_precision", "bfloat16[softmax]"]
    cases += [f"tests/gpu/test_families.py::test_{name}" for name in others]
    out = run(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *cases], emulator)
    assert f"{len(cases)} passed" in out or out.count(".") >= len(cases), out


def test_runtime(emulator):
    out = run(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "tests/gpu/test_runtime.py"], emulator)
    assert " passed" in out or "...." in out, out


COUNT = """
import ctypes, os, lucid
from lucid import nn
driver = ctypes.CDLL(os.environ["LUCID_CUDA_PATH"] + "/libcuda.so.1")
driver.emulated_launches.restype = ctypes.c_int64
nets = {
    "MLP": (nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)), (8, 784)),
    "LeNet-5": (nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                              nn.AvgPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                              nn.Linear(84, 10)), (2, 1, 28, 28)),
}
for name, (net, shape) in nets.items():
    net.cuda()
    x, y = lucid.randn(*shape).cuda(), (lucid.arange(shape[0]) % 10).cuda()
    optimizer = lucid.optim.Adam(net.parameters())
    for _ in range(2):
        before = driver.emulated_launches()
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    print(name, driver.emulated_launches() - before)
"""


def test_launches_of_training_steps(emulator):
    counts = dict(line.rsplit(" ", 1) for line in run(["-c", COUNT], emulator).splitlines())
    assert int(counts["MLP"]) <= MOST["MLP"] and int(counts["LeNet-5"]) <= MOST["LeNet-5"], counts


MOST = {"MLP": 14, "LeNet-5": 38}  # a step that needs more fails


def test_a_fresh_process_and_a_forked_one(emulator):
    assert run(["-c", "import lucid; print(lucid.ones(2).to('cuda').sum().item())"], emulator).strip() == "2.0"
    forked = """
import os, lucid
lucid.ones(1).cuda()
if os.fork() == 0:
    try:
        lucid.ones(1).cuda()
    except lucid.LucidError as error:
        os._exit(0 if "forked" in str(error) else 2)
    os._exit(3)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    assert run(["-c", forked], emulator).strip() == "0"


def test_a_thread_of_its_own(emulator):
    threads = """
import threading, lucid
results = []
work = lambda: results.append(lucid.ones(3, device="cuda").exp().sum().item())
for thread in [threading.Thread(target=work) for _ in range(3)]:
    thread.start(); thread.join()
print(len(results))
"""
    assert run(["-c", threads], emulator).strip() == "3"


def test_no_device_says_what_was_looked_for(tmp_path):
    code = (
        "import lucid\ntry: lucid.ones(1).to('cuda')\nexcept lucid.GpuNotAvailable as e: print(e)\nelse: print('there is one')"
    )
    out = run(["-c", code], os.environ | {"LUCID_CUDA_PATH": str(tmp_path)})
    assert "libcuda" in out or "there is one" in out or "no CUDA device" in out
