"""The CUDA backend without a GPU: the same kernel texts compiled as C++ behind a driver that queues work (emulator/). The
tests of kernel families run on it in a process of their own, and the launches of training steps are counted."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import lucid
from lucid import config

HERE = pathlib.Path(__file__).parent
COMPILER = shutil.which("g++")
pytestmark = pytest.mark.skipif(not COMPILER, reason="no C++ compiler")


@pytest.fixture(scope="module")
def emulator(tmp_path_factory):
    """The environment of a process that finds the emulation instead of a driver. Data races abort it (emulator/races.cpp)."""
    folder = tmp_path_factory.mktemp("emulator")
    parts = {
        "libcuda.so.1": ("emulator", "blocks", "compiler", "races"),
        "libcupti.so.13": ("cupti",),
        "libnvidia-ml.so.1": ("nvml",),
    }
    for library, sources in parts.items():
        made = [*(HERE / f"emulator/{source}.cpp" for source in sources), "-o", folder / library]
        subprocess.run([COMPILER, "-std=c++17", "-shared", "-fPIC", "-O2", *made, "-ldl"], check=True)
    (folder / "libnvrtc.so.13").symlink_to(folder / "libcuda.so.1")
    return os.environ | {
        "LUCID_CUDA_PATH": str(folder),
        "LUCID_CACHE_DIR": str(folder),
        "EMULATOR_CC": COMPILER,
        "EMULATOR_PRELUDE": str(HERE / "emulator/prelude.h"),
        "EMULATOR_RACES": "1",
    }


@pytest.fixture(scope="module")
def libraries(emulator, tmp_path_factory):
    """The same with stand-ins of cuBLASLt, cuBLAS and cuFFT beside the driver. Other tests go without, by own kernels."""
    folder = tmp_path_factory.mktemp("libraries")
    for name in ("libcuda.so.1", "libnvrtc.so.13"):
        (folder / name).symlink_to(pathlib.Path(emulator["LUCID_CUDA_PATH"], "libcuda.so.1"))
    for source, library in (("cublas", "libcublasLt.so.13"), ("cufft", "libcufft.so.12")):
        made = [HERE / f"emulator/{source}.cpp", "-o", folder / library]
        subprocess.run([COMPILER, "-std=c++17", "-shared", "-fPIC", "-O2", *made], check=True)
    (folder / "libcublas.so.13").symlink_to(folder / "libcublasLt.so.13")
    return emulator | {"LUCID_CUDA_PATH": str(folder)}


def run(command, environment):
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, cwd=HERE.parents[1])
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_kernel_families(emulator):
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "tests/gpu/test_families.py"]
    out = run(command, emulator)
    assert " passed" in out or "...." in out, out


# Samples whose kernels once gave other values than the CPU, and those whose sizes the host reads.
SAMPLES = "rnn:30 or (pow and binary and int64) or (det and float64) or (kthvalue and int64) or tensor_split"
SAMPLES += " or (reduce and float64-complex64) or alpha-2-bool or (norm:3 and float32) or (topk and sort:25) or ldl"
SAMPLES += " or matmul:5 or matmul:130 or linear:11"


GAP = """
import sys
from tests.gpu.coverage import gap
for name, missing, present in gap(sys.argv[1]):
    if not present:
        print(name)
print("all")
"""


def test_what_has_no_kernel_is_documented():
    """An op that only the CPU has is named in the table of docs/gpu.md."""
    documented = (HERE.parents[1] / "docs/gpu.md").read_text()
    *rows, last = run(["-c", GAP, str(pathlib.Path(lucid.__file__).parents[2])], os.environ).splitlines()
    assert last == "all" and [row for row in rows if f"`{row.strip('_')}`" not in documented] == []


def test_samples(emulator):
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "tests/gpu/test_samples.py", "-k", SAMPLES]
    out = run(command, emulator)
    assert " passed" in out or "...." in out, out


# A text model whose layers share a weight, and an image model: on a GPU all families run.
ZOO = "test_texts and qwen2 or test_images and lenet and not mobile"


def test_zoo(emulator):
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "tests/gpu/test_zoo.py", "-k", ZOO]
    out = run(command, emulator)
    assert " passed" in out or "...." in out, out


@pytest.mark.parametrize(
    "file",
    [
        "runtime",
        "products",
        "generation",
        "random",
        "lightning",
        "deterministic",
        "capturable",
        "compiled",
        "default_device",
        "rows",
        "profiler",
    ],
)
def test_other_files(emulator, file):
    out = run(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"tests/gpu/test_{file}.py"], emulator)
    assert " passed" in out or "...." in out, out


@pytest.mark.parametrize("devices", [1, 2])
def test_what_python_does(emulator, devices):
    cases = ["tests/gpu/python"] if devices == 1 else ["tests/gpu/python/test_modules.py", "-k", "parallel or between"]
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *cases]
    out = run(command, emulator | {"EMULATOR_DEVICES": str(devices)})
    assert " passed" in out or "..." in out, out


PRODUCTS = ["mm", "linear", "linear, layouts", "fused_linear", "lora_linear", "addmm", "attention, added mask", "lstm", "gru"]


def test_products_of_libraries(libraries):
    cases = [f"tests/gpu/test_families.py::test_like_the_cpu[{name}]" for name in PRODUCTS]
    cases += ["tests/gpu/test_families.py::test_mixed_precision", "tests/gpu/test_products.py"]
    cases += ["tests/gpu/libraries/test_library_products.py", "tests/gpu/libraries/test_library_gradients.py"]
    command = ["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-p", "no:xdist", *cases]
    out = run(command, libraries | {"EMULATOR_DEVICES": "2"})
    assert (" passed" in out or "...." in out) and "SKIPPED" not in out, out


def test_transforms_of_a_library(libraries):
    """By plans of cuFFT, also beside graphs that use them."""
    cases = [f"tests/gpu/test_families.py::test_like_the_cpu[{name}]" for name in ("fft", "fft of real numbers")]
    cases += ["tests/gpu/libraries/test_library_fft.py"]
    out = run(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-p", "no:xdist", *cases], libraries)
    assert (" passed" in out or "...." in out) and "SKIPPED" not in out, out


def test_products_of_libraries_stay_within_their_memory(libraries):
    """Workspaces and matrices end where memory ends that faults."""
    files = [f"tests/gpu/libraries/test_library_{name}.py" for name in ("products", "gradients")]
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *files]
    guarded = libraries | {"LUCID_CUDA_CACHE": "0", "EMULATOR_GUARD": "1"}
    some = "test_lengths or test_layers or test_odd_layers or test_stand_in or threads or test_any_shape"
    out = run([*command, "-k", some], guarded)
    assert " passed" in out or "...." in out, out


FIRST_IN_A_GRAPH = """
import lucid
import lucid.nn.functional as F
x, w, b = (lucid.ones(*shape, device="cuda", dtype=lucid.bfloat16) for shape in ((64, 32), (48, 32), (48,)))
graph = lucid.cuda.CUDAGraph()
with lucid.cuda.graph(graph):
    y = F.linear(x, w, b)
graph.replay()
print((y == 33).all().item())
"""


def test_a_product_may_be_the_first_work_of_a_graph(libraries):
    """What the libraries allocate at first use is no part of it, and breaks no capture."""
    assert run(["-c", FIRST_IN_A_GRAPH], libraries).strip() == "True"


def test_threads_of_a_c_program(libraries, tmp_path):
    """They run calls of one plan side by side; under Python's lock they would take turns."""
    program = tmp_path / "threads"
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", *config.cflags()]
    subprocess.run(["cc", *flags, HERE / "libraries/threads.c", "-o", program, *config.libs(), "-lpthread"], check=True)
    done = subprocess.run([program], env=libraries, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "right\n", done.stdout + done.stderr


ATTENTION = """
import lucid
q = [lucid.randn(1, 2, 40, 64) for _ in range(3)]
f = lucid.nn.functional.scaled_dot_product_attention
print(float((f(*[t.cuda() for t in q], is_causal=True).cpu() - f(*q, is_causal=True)).abs().max()) < 1e-5)
"""


@pytest.mark.parametrize("kilobytes", [227, 99, 64])
def test_attention_where_blocks_have_less_memory(emulator, kilobytes):
    """The kernel of whole tiles needs 107 KB; elsewhere products and a softmax answer."""
    assert run(["-c", ATTENTION], emulator | {"EMULATOR_SHARED": str(kilobytes << 10)}) == "True\n"


WITHOUT_COMPILER = """
import lightning_core as lc, lucid
print(lucid.cuda.device_count(), lc.cuda_available(), lc.backend_name(), lc.matmul2d([[2.0]], [[3.0]], "cuda").item())
print(lc.vector_add([1.0], [2.0]), lc.runtime_backend_capabilities("cuda")["available"])
"""


def test_lightning_core_beside_a_driver_that_has_no_compiler(emulator, tmp_path):
    """A device that cannot compute is none: calls go to the CPU."""
    (tmp_path / "libcuda.so.1").symlink_to(pathlib.Path(emulator["LUCID_CUDA_PATH"], "libcuda.so.1"))
    environment = emulator | {"LUCID_CUDA_PATH": str(tmp_path), "LUCID_CACHE_DIR": str(tmp_path), "EMULATOR_CC": "false"}
    environment |= {name: str(tmp_path / name) for name in ("CJ_MATMUL_TUNE_CACHE_FILE", "CJ_MATMUL_SMALL_TUNE_CACHE_FILE")}
    assert run(["-c", WITHOUT_COMPILER], environment) == "1 False cpu 6.0\n[3.0] False\n"


REFUSED = """
import warnings, lucid
x = lucid.ones(3, device="cuda")
p = lucid.profiler.profile(schedule=lucid.profiler.schedule(wait=0, warmup=1, active=1, repeat=2))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with p:
        for _ in range(4):
            x.exp()
            p.step()
(warning,) = caught
assert "aten::exp" in p.key_averages().table() and "CUDA" not in str(p.events())
with lucid.profiler.profile(activities=[lucid.profiler.ProfilerActivity.CPU]):
    print(warning.message)
"""


def test_without_cupti_the_calls_are_recorded(emulator, tmp_path):
    """It refuses; it is another library; it is not there (or is NVIDIA's, which refuses to watch an emulation)."""
    refused = run(["-W", "error", "-c", REFUSED], emulator | {"EMULATOR_CUPTI_REFUSES": "1"})
    assert refused == "CUPTI does not record: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35); disabling CUDA profiling\n"
    for name in ("libcuda.so.1", "libnvrtc.so.13"):
        (tmp_path / name).symlink_to(pathlib.Path(emulator["LUCID_CUDA_PATH"], "libcuda.so.1"))
    missing = run(["-c", REFUSED], emulator | {"LUCID_CUDA_PATH": str(tmp_path)})
    assert "CUPTI" in missing and missing.endswith("; disabling CUDA profiling\n")
    assert "was not found" not in missing or "pip install nvidia-cuda-cupti" in missing
    (tmp_path / "libcupti.so.13").symlink_to(tmp_path / "libcuda.so.1")
    assert "CUPTI lacks cuptiActivityRegisterCallbacks" in run(["-c", REFUSED], emulator | {"LUCID_CUDA_PATH": str(tmp_path)})


BETWEEN = """
import ctypes, os, lucid
x = lucid.ones(1000, device="cuda:0")
with lucid.profiler.profile() as p:
    y = x.to("cuda:1")
    y.exp()
on_device = [e for e in p.events() if e.device_type == lucid.profiler.DeviceType.CUDA]
for e in on_device:
    print(e.name, e.device_index, bool(e.linked_correlation_id))
cupti = ctypes.CDLL(os.environ["LUCID_CUDA_PATH"] + "/libcupti.so.13")
print(cupti.emulated_pushed())
"""


def test_two_devices_are_recorded(emulator):
    copy, kernel, pushed = run(["-c", BETWEEN], emulator | {"EMULATOR_DEVICES": "2"}).splitlines()
    assert copy.startswith("Memcpy PtoP (Device -> Device)") and copy.endswith("True")
    assert kernel.endswith("1 True") and pushed == "0"


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


TOKENS = """
import ctypes, os, lucid
from lucid import generation, models
driver = ctypes.CDLL(os.environ["LUCID_CUDA_PATH"] + "/libcuda.so.1")
driver.emulated_launches.restype = ctypes.c_int64
shape = dict(vocab_size=50, hidden_size=64, num_attention_heads=4)
kinds = {
    "GPT-2": lambda n: models.GPT2LMHeadModel(models.GPT2Config(num_hidden_layers=n, **shape)),
    "Llama": lambda n: models.LlamaForCausalLM(models.LlamaConfig(num_hidden_layers=n, intermediate_size=128, **shape)),
}
for name, make in kinds.items():
    counts = []
    for layers in (1, 3):
        model = make(layers).eval().to("cuda", lucid.bfloat16)
        run = generation.Generation(model, [[1, 2, 3]], max_new_tokens=8, eos_token_id=None)
        run.step()
        before = driver.emulated_launches()
        run.step()
        counts.append(driver.emulated_launches() - before)
    print(name, (counts[1] - counts[0]) / 2)
"""


def test_launches_of_a_token(emulator):
    """Of one layer, in bfloat16: normalisations, products with what follows them, the cache and its answer."""
    counts = dict(line.rsplit(" ", 1) for line in run(["-c", TOKENS], emulator).splitlines())
    assert float(counts["GPT-2"]) <= 8 and float(counts["Llama"]) <= 15, counts


def test_a_fresh_process_and_a_forked_one(emulator):
    assert run(["-c", "import lucid; print(lucid.ones(2).to('cuda').sum().item())"], emulator).strip() == "2.0"
    forked = """
import os, lucid
lucid.ones(1).cuda()
if os.fork() == 0:
    for call in (lucid.cuda.init, lucid.ones(1).cuda):
        try:
            call()
        except lucid.LucidError as error:
            if "forked" not in str(error):
                os._exit(2)
        else:
            os._exit(3)
    os._exit(0 if lucid.cuda._is_in_bad_fork() else 4)
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


TWO_DEVICES = """
import lucid
cuda = lucid.cuda
assert cuda.device_count() == 2 and cuda.can_device_access_peer(0, 1)
x = lucid.arange(100000.0, device="cuda:1")
assert cuda.memory_allocated(1) >= 400000 and cuda.memory_allocated(0) == 0
side = cuda.Stream(1)
side.wait_stream(cuda.current_stream(1))
with cuda.stream(side):
    assert cuda.current_device() == 1 and lucid.ones(1, device="cuda").device.index == 1
    y = x * 2
    z = y.to("cuda:0")  # waits for the stream of y
assert cuda.current_device() == 0 and z.device.index == 0
assert z.sum().item() == 2 * x.sum().item()
w = lucid.ones(100000, device="cuda:0", requires_grad=True)
with cuda.stream(side):
    loss = (w.to("cuda:1") * y).sum()
loss.backward()
assert lucid.equal(w.grad.cpu(), y.cpu()) and w.grad.device.index == 0
with cuda.device(1):
    assert cuda.current_device() == 1 and lucid.zeros(2).cuda().device.index == 1
try:
    cuda.set_device(7)
except lucid.GpuNotAvailable:
    print("two devices")
"""
FIRST_USE = """
import threading, lucid
start, results = threading.Barrier(6), []
def first_use(k):
    start.wait()
    results.append((lucid.full((64, 64), 1.0, device="cuda") @ lucid.ones(64, 64, device="cuda")).sum().item())
threads = [threading.Thread(target=first_use, args=(k,), daemon=True) for k in range(6)]
[t.start() for t in threads]
[t.join(60) for t in threads]
print(len(results), set(results))
"""


def test_two_devices(emulator):
    assert run(["-c", TWO_DEVICES], emulator | {"EMULATOR_DEVICES": "2"}).strip() == "two devices"


def test_first_use_from_several_threads(emulator, tmp_path):
    assert run(["-c", FIRST_USE], emulator | {"LUCID_CACHE_DIR": str(tmp_path)}).strip() == "6 {262144.0}"


def test_damaged_files_of_the_cache_are_made_again(emulator, tmp_path):
    """A cut file, a changed byte, an empty file and another library's: each is compiled anew and replaced."""
    environment = emulator | {"LUCID_CACHE_DIR": str(tmp_path), "LUCID_VERBOSE": "1"}
    command = [sys.executable, "-c", "import lucid; print((lucid.ones(3, device='cuda') + 1).sum().item())"]

    def made_again():
        done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=HERE.parents[1])
        assert done.returncode == 0 and "6.0" in done.stdout, done.stderr
        return (done.stdout + done.stderr).count("is made again")

    assert made_again() == 0
    files = sorted(tmp_path.glob("*.cubin"))
    whole = [f.read_bytes() for f in files]
    assert len(files) >= 3 and made_again() == 0
    files[0].write_bytes(whole[0][: len(whole[0]) // 2])
    files[1].write_bytes(whole[1][:-1] + bytes([whole[1][-1] ^ 1]))
    files[2].write_bytes(b"not a cubin")
    assert made_again() == 3 and [f.read_bytes()[:8] for f in files] == [b"LUCIDBIN"] * len(files)
    assert made_again() == 0 and not [f for f in tmp_path.iterdir() if f not in files]


def test_no_device_says_what_was_looked_for(tmp_path):
    code = (
        "import lucid\ntry: lucid.ones(1).to('cuda')\nexcept lucid.GpuNotAvailable as e: print(e)\nelse: print('there is one')"
    )
    out = run(["-c", code], os.environ | {"LUCID_CUDA_PATH": str(tmp_path)})
    assert "libcuda" in out or "there is one" in out or "no CUDA device" in out
