"""What the emulation (emulator/races.cpp) says of small kernels with and without data races, and of launches that a driver
refuses. The kernels of the backend run under the same detector in test_emulated.py."""

import re
import subprocess
import sys

import pytest

from tests.gpu.test_emulated import COMPILER, HERE, emulator  # noqa: F401  a fixture

pytestmark = pytest.mark.skipif(not COMPILER, reason="no C++ compiler")

# Of two blocks of 64 threads. x: 1024 floats, zeros. Name: (the body, what the detector says of it; "": nothing).
KERNELS = {
    "own_elements": ("x[blockIdx.x * 64 + t] = t;", ""),
    "own_bytes": ("((char *)x)[blockIdx.x * 64 + t] = 1;", ""),
    "own_halves": ("((short *)x)[blockIdx.x * 64 + t] += 1;", ""),
    "one_element": ("x[0] = t;", "writes, .* writes device memory, 0 of"),
    "one_value": ("if (t < 2) x[3] = 1;", "writes, .* writes device memory, 12 of"),
    "neighbours": ("x[OWN] = 1; x[512 + OWN] = x[OWN ^ 1];", "(reads|writes), "),
    "a_wide_load": (
        "struct alignas(16) four { float v[4]; }; if (t == 0) ((four *)x)[2 + blockIdx.x] = *(four *)x;"
        "if (t == 1 && blockIdx.x == 0) x[3] = 2;",
        "(reads|writes), .*device memory, 12 of",
    ),
    "two_blocks": ("if (t == 0) x[1] = blockIdx.x;", "thread 0 of block . writes, thread 0 of block . writes"),
    "many_readers": ("float v = x[0]; if (v == 5) x[1] = v;", ""),
    "atomics": ("atomicAdd(x + 5, 1.f); atomicMax((int *)x + 6, t);", ""),
    "an_atomic_and_a_read": ("atomicAdd(x + 5, 1.f); if (x[5] == -1) x[64] = 1;", "atomically"),
    "an_atomic_and_a_volatile_read": ("atomicAdd(x + 5, 1.f); if (*(volatile float *)(x + 5) == -1) x[64] = 1;", ""),
    # barriers
    "shared": ("S; s[t] = x[t]; __syncthreads(); OUT = s[63 - t];", ""),
    "shared_without_a_barrier": (
        "S; s[t] = x[t]; OUT = s[63 - t];",
        "static shared memory",
    ),
    "shared_again_too_early": (
        "S; for (int i = 0; i < 2; i++) { s[t] = i; __syncthreads(); OUT += s[63 - t]; }",
        "static shared memory",
    ),
    "a_sum_over_halves": (
        "S; s[t] = x[t]; for (int h = 32; h; h /= 2) { __syncthreads(); if (t < h) s[t] += s[t + h]; }"
        "if (t == 0) x[64 + blockIdx.x] = s[0];",
        "",
    ),
    "device_memory_and_a_barrier": (
        "x[64 * blockIdx.x + t] = t; __syncthreads(); x[256 + 64 * blockIdx.x + t] = x[64 * blockIdx.x + 63 - t];",
        "",
    ),
    "a_barrier_between_blocks": ("if (!blockIdx.x) x[t] = 1; __syncthreads(); if (blockIdx.x) OUT = x[t];", "block"),
    # warps
    "a_warp": ("S; s[t] = t; __syncwarp(); OUT = s[t ^ 1];", ""),
    "a_warp_without_a_barrier": (
        "S; s[t] = t; float v = __shfl_xor_sync(0xffffffffu, 1.f, 1); OUT = s[t ^ 1] + v;",
        "static shared memory",
    ),
    "a_barrier_of_warps_for_two_warps": (
        "S; s[t] = t; __syncwarp(); OUT = s[t ^ 32];",
        "static shared memory",
    ),
    # the last block
    "the_last_block": ("LAST(__threadfence(), __threadfence())", ""),
    "the_last_block_without_a_fence": ("LAST(, __threadfence())", "block"),
    "the_last_block_does_not_wait": ("LAST(__threadfence(), )", "block"),
    "the_last_block_reads_all": (
        "x[256 + 64 * blockIdx.x + t] = 1; __syncthreads(); LAST(__threadfence(), __threadfence())"
        "if (*last) x[512 + t] = x[256 + t] + x[320 + t];",
        "",
    ),
    # shared memory that the launch asks for
    "dynamic": ("extern __shared__ float s[]; s[t] = t; __syncthreads(); OUT = s[63 - t];", ""),
    "dynamic_without_a_barrier": ("extern __shared__ float s[]; s[t] = t; OUT = s[63 - t];", "dynamic shared memory"),
}  # fmt: skip
# Each block leaves a number; thread 0 of the one that counts to 2 tells its block.
LAST = """
#define LAST(before, after) __shared__ int last[1]; if (t == 0) { x[64 + blockIdx.x] = 1; before; \\
        *last = atomicAdd((int *)x + 127, 1) == 1; after; } \\
    __syncthreads(); if (*last && t < 2) x[160 + t] = x[64 + t]; __syncthreads();
"""
SHORT = """
#define OWN 64 * blockIdx.x + t
#define OUT x[64 + OWN]
#define S   __shared__ float s[64]
"""
SOURCE = (
    SHORT
    + LAST
    + "\n".join(
        f'extern "C" __global__ void {name}(float *x) {{ int t = threadIdx.x; {body} }}' for name, (body, _) in KERNELS.items()
    )
)
RACES = """
import lucid
from tests.gpu.test_races import KERNELS, SOURCE
for name in KERNELS:
    lucid.cuda.run_kernel(SOURCE, name, 2, 64, (lucid.zeros(1024, device="cuda"),), shared_memory=1024)
lucid.cuda.synchronize()
print("done", flush=True)
"""


def run(code, environment, status=0):
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=HERE.parents[1])
    assert done.returncode == status, done.stderr
    return done


def test_races(emulator, tmp_path):  # noqa: F811
    environment = emulator | {"EMULATOR_RACES": "all", "LUCID_CACHE_DIR": str(tmp_path)}
    done = run(RACES, environment, status=86)
    assert done.stdout == "done\n", done.stderr
    for name, (_, wanted) in KERNELS.items():
        said = " ".join(re.findall(rf"emulator: race in {name}: (.*)", done.stderr))
        assert re.search(wanted, said) if wanted else not said, (name, wanted, said)


def test_the_first_race_ends_the_process(emulator, tmp_path):  # noqa: F811
    done = run(RACES, emulator | {"LUCID_CACHE_DIR": str(tmp_path)}, status=-6)
    assert done.stderr.count("emulator: race in") == 1 and "done" not in done.stdout


def test_programs_of_the_cache_without_the_detector_are_compiled_again(emulator, tmp_path):  # noqa: F811
    code = """
import lucid
source = 'extern "C" __global__ void same(float *x) { *x = threadIdx.x; }'
lucid.cuda.run_kernel(source, "same", 1, 2, lucid.ones(1, device="cuda"))
lucid.cuda.synchronize()
"""
    environment = emulator | {"LUCID_CACHE_DIR": str(tmp_path)}
    run(code, environment | {"EMULATOR_RACES": ""})
    run(code, environment, status=-6)


LIMITS = """
import lucid
def refused(grid, block, shared=0, fixed=1):
    body = f"__shared__ char s[{fixed}]; s[threadIdx.x % {fixed}] = 1; x[s[(int)*x]] = 1;"
    source = 'extern "C" __global__ void limits(float *x) { ' + body + " }"
    x = lucid.zeros(2, device="cuda")
    try:
        lucid.cuda.run_kernel(source, "limits", grid, block, x, shared_memory=shared)
    except lucid.LucidError:
        return True
    return False
K = 1024
print(refused(1, 1024), refused(1, 1025), refused(1, (1, 1, 64)), refused(1, (1, 1, 65)), refused(1, (32, 32, 2)))
print(refused((1, 65535, 1), 1), refused((1, 65536, 1), 1), refused((1, 1, 65536), 1), refused((65536, 1, 1), 1))
print(refused(1, 1, 226 * K), refused(1, 1, 228 * K), refused(1, 1, 48 * K), refused(1, 1, 0, 47 * K), refused(1, 1, 0, 49 * K))
"""


def test_limits(emulator, tmp_path):  # noqa: F811
    """Threads, blocks, and shared memory of blocks; run_kernel sets the attribute that more than 48 KB need."""
    done = run(LIMITS, emulator | {"LUCID_CACHE_DIR": str(tmp_path)})
    assert done.stdout.split() == "False True False True True False True True False False True False False True".split()
