"""Bugs planted on purpose, and whether the emulation (emulator/) shows them: what it can be trusted with.

A bug is an edit of a kernel's text, or something that the driver leaves out as if the runtime had not asked for it. The check
that the kernel or the runtime has in the other files then runs in a process of its own. It must fail: by values, by a fault
that the emulation reports, by a race that its detector finds, or by a launch that the driver refuses. The detector is on where
a race is expected: elsewhere it would come first. What the emulation cannot show stands in the same table with the reason, and
must pass: a bug that begins to be caught fails here until the table says so. docs/gpu.md has the counts.
"""

import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass

import pytest

from tests.gpu.test_emulated import COMPILER, HERE, emulator  # noqa: F401  a fixture

pytestmark = [pytest.mark.skipif(not COMPILER, reason="no C++ compiler"), pytest.mark.xdist_group("planted")]  # one fixture
KERNELS = HERE.parents[1] / "engine/backend/cuda/kernels"
GUARDED = {"LUCID_CUDA_CACHE": "0", "EMULATOR_GUARD": "1"}
WATCHED = GUARDED | {"EMULATOR_RACES": "1"}


def family(name):
    return f"from tests.gpu import test_families as t; t.test_like_the_cpu({name!r})"


def runtime(call):
    return f"from tests.gpu import test_runtime as t; t.test_{call}"


@dataclass
class Kernel:
    """In `file`, `old` becomes `new`; `shows` is "values", "fault", "race", "refused" or "nothing"."""

    file: str
    old: str
    new: str
    check: str
    shows: str
    why_not: str = ""

    def environment(self):
        watch = WATCHED if self.shows == "race" else GUARDED
        return watch | {"EMULATOR_PLANT_OLD": self.old, "EMULATOR_PLANT_NEW": self.new}


@dataclass
class Driver:
    """The driver leaves out a call."""

    omitted: str
    check: str
    shows: str = "values"
    why_not: str = ""

    def environment(self):
        return {"EMULATOR_OMIT": self.omitted}


@dataclass
class Host:
    """The host does what it must not; `check` is right, `planted` is not."""

    check: str
    planted: str
    shows: str
    why_not: str = ""

    def environment(self):
        return {}


HOME = "__shared__ V part[32];\n    for"
FOLD = HOME + " (int d = 16; d; d /= 2) v = f(v, __shfl_xor_sync(0xffffffffu"
ALIGNED = "(i64)((16 - (u64)row % 16) % 16 / sizeof(S))"
HEAD = "const S *row, i64 n, F f)\n{\n    enum { WIDE = 16 / sizeof(S) };\n    i64 head = " + ALIGNED
HERE_TOO = "(p.partial) { p.partial[blockIdx.x] = s; if (p.partial[(blockIdx.x + 1) % gridDim.x].n == -7) return; }"
READ = "import ctypes, lucid; x = lucid.ones(3, device='cuda'); lucid.cuda.synchronize(); assert {} == 1"
BUGS = {
    # barriers
    "a missing barrier: partial sums are read before they are written": Kernel(
        "types.cuh", "part[warp] = v;\n    __syncthreads();", "part[warp] = v;", family("sum of all"), "values"
    ),
    "a missing barrier: shared memory is used again too early": Kernel(
        "scan.cuh",
        "before = joined(before, shared[now][255]);\n        __syncthreads();",
        "before = joined(before, shared[now][255]);",
        family("cumsum"),
        "values",
    ),
    "a barrier that some threads never reach": Kernel(
        "softmax.cuh",
        "line l = line_at(p, blockIdx.x);",
        "line l = line_at(p, blockIdx.x); if (threadIdx.x >= 200) return;",
        family("softmax of very long rows"),
        "fault",
    ),
    # warps
    "an exchange that leaves out half of the warp": Kernel(
        "types.cuh", FOLD, FOLD.replace("16", "8"), family("sum of all"), "values"
    ),
    "a mask without all threads that take part": Kernel(
        "types.cuh", FOLD, FOLD.replace("ffffffff", "ffff"), family("sum of all"), "fault"
    ),
    # copies into shared memory that go on while a thread computes
    "values that are used before they have arrived": Kernel(
        "flash.cuh", "copies_wait<1>();", "", family("attention, tiles"), "values"
    ),
    # ends, strides, starts
    "a tail that is not masked": Kernel(
        "elementwise.cuh", "if (i < p.n) ((U *)p.data[0])[i]", "((U *)p.data[0])[i]", family("maps"), "fault"
    ),
    "a read one element past the end": Kernel(
        "softmax.cuh",
        "for (i64 i = 0; i < p.n; i++) sum += power(",
        "for (i64 i = 0; i <= p.n; i++) sum += power(",
        family("softmax of columns"),
        "values",
    ),
    "a write one row past the end": Kernel(
        "small_product.cuh",
        "i64 i = i0 + e / TILE, j = j0 + e % TILE;\n        if (i >= p.m",
        "i64 i = i0 + e / TILE, j = j0 + e % TILE;\n        if (i > p.m",
        family("linear, layouts"),
        "fault",
    ),
    "the stride of another operand": Kernel(
        "elementwise.cuh",
        "offset[k] += (i32)index * p.stride[k][d]",
        "offset[k] += (i32)index * p.stride[0][d]",
        family("flipped and rolled"),
        "values",
    ),
    "a row of shared memory that nobody wrote": Kernel(
        "types.cuh",
        "if ((lane ^ d) < warps) v = f(v, other);",
        "v = f(v, d < warps ? other : part[warps]);",
        family("sum of all"),
        "values",
    ),
    "sixteen bytes at once from where rows are not aligned": Kernel(
        "types.cuh", HEAD, HEAD.replace(ALIGNED, "0"), family("cross_entropy of long rows"), "fault"
    ),
    # the runtime's order of things
    "a grid with a block too few": Driver("the last block", family("cumsum")),
    "a stream that does not wait for another": Driver("cuStreamWaitEvent", runtime("streams_wait_for_each_other()")),
    "a block given out again while another stream reads it": Driver(
        "cuEventQuery", runtime("a_block_waits_for_other_streams()")
    ),
    "page-locked memory given out again while it is copied": Driver("cuEventQuery", runtime("copies(65536)")),
    "a host that does not wait before it reads": Driver("cuStreamSynchronize", runtime("copies(3)")),
    "a host that reads device memory": Host(
        READ.format("x[0].item()"), READ.format("ctypes.c_float.from_address(x.data_ptr()).value"), "fault"
    ),
    # races that change no value here: a thread runs from wait to wait, a block to its end
    "an addition at repeated indices that is not atomic": Kernel(
        "index.cuh",
        "update<f32>(f32 *p, f32 v) { atomicAdd(p, v); }",
        "update<f32>(f32 *p, f32 v) { *p += v; }",
        family("scatter_add"),
        "race",
    ),
    "a missing barrier before what all have read is overwritten": Kernel(
        "linalg.cuh",
        "T by = T(1) / (alpha - number_of(beta, 0));\n            __syncthreads();",
        "T by = T(1) / (alpha - number_of(beta, 0));",
        family("qr"),
        "race",
    ),
    "a lane that reads what another lane of its warp writes": Kernel(
        "linalg.cuh", "sum = lane == 0 ? col[0] : T(0);", "sum = col[0] * T(lane == 0);", family("qr"), "race"
    ),
    "a block that reads what another one writes": Kernel(
        "reduce.cuh", "(p.partial) p.partial[blockIdx.x] = s;", HERE_TOO, family("sum of all"), "race"
    ),
    # shared memory
    "more shared memory than a block may have": Kernel(
        "types.cuh", HOME, HOME.replace("32", "33000"), family("sum of all"), "refused"
    ),
    "more shared memory than the driver was told": Driver("cuFuncSetAttribute", family("attention, tiles"), "refused"),
    "a write past the shared memory that the launch asked for": Kernel(
        "flash.cuh",
        "weights[(y + 16 * i) * P_STEP + x + 8 * j] = e;",
        "weights[(y + 16 * i + 16) * P_STEP + x + 8 * j] = e;",
        family("attention, tiles"),
        "fault",
    ),
    # what it cannot show
    "32-bit offsets in a tensor of 2**31 elements": Kernel(
        "norm.cuh",
        "if (p.rows * p.inner >= 1ll << 31)",
        "if (false)",
        family("batch_norm"),
        "nothing",
        "nothing so large is run",
    ),
}  # fmt: skip


def ran(code, environment):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=HERE.parents[1], timeout=300)


@pytest.fixture(scope="module")
def planted(emulator, tmp_path_factory):  # noqa: F811
    """The environment of planted bugs, once all checks have passed without: what they compile is kept for all."""
    kept = tmp_path_factory.mktemp("kept")
    environment = emulator | {"EMULATOR_KEPT": str(kept), "EMULATOR_RACES": ""}
    kernels = {bug.check for bug in BUGS.values() if isinstance(bug, Kernel)}
    races = {bug.check for bug in BUGS.values() if bug.shows == "race"}
    others = {bug.check for bug in BUGS.values() if not isinstance(bug, Kernel)}
    for checks, more in ((kernels, GUARDED), (races, WATCHED), (others, {})):
        done = ran("\n".join(sorted(checks)), environment | more | {"LUCID_CACHE_DIR": str(kept)})
        assert done.returncode == 0 and "planted" not in done.stderr, done.stderr[-3000:]
    return environment


@pytest.mark.parametrize("name", BUGS)
def test_planted(planted, name, tmp_path):
    bug = BUGS[name]
    if isinstance(bug, Kernel):
        texts = [re.sub(r" */\*.*?\*/", "", path.read_text(), flags=re.DOTALL) for path in KERNELS.rglob(bug.file)]
        assert [text.count(bug.old) for text in texts] == [1], "the text to plant in has changed"
    done = ran(getattr(bug, "planted", bug.check), planted | bug.environment() | {"LUCID_CACHE_DIR": str(tmp_path)})
    assert isinstance(bug, Host) or "emulator: planted" in done.stderr, done.stderr[-3000:]
    assert "NVRTC" not in done.stderr, done.stderr[-3000:]
    said = re.search(r"^emulator: (?!planted).*", done.stderr, re.MULTILINE)
    if done.returncode < 0:
        shown = "race" if said and said[0].startswith("emulator: race in ") else "fault"
    elif "LucidError: CUDA: cuLaunchKernel failed" in done.stderr:
        shown = "refused"
    elif done.returncode:
        assert "AssertionError" in done.stderr, done.stderr[-3000:]
        shown = "values"
    else:
        shown = "nothing"
    assert shown == bug.shows, (said and said[0], done.stderr[-1500:])


def test_the_counts_in_the_docs():
    caught = sum(bug.shows != "nothing" for bug in BUGS.values())
    assert all(bool(bug.why_not) == (bug.shows == "nothing") for bug in BUGS.values())
    page = (pathlib.Path(HERE).parents[1] / "docs/gpu.md").read_text()
    assert f"catches {caught} of {len(BUGS)} planted bugs" in page
