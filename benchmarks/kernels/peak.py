"""The peak of one core of this machine: fused multiply-adds from registers, and bytes read from memory.

usage: peak.py

The labs beside this file import `multiply_adds` and show their rates as fractions of it. The loop is compiled here, with the
widest vectors of the machine, and does nothing but independent multiply-adds: no loads, no stores. On AMD's Zen 4 a vector of
512 bits takes both pipes, so its peak is 32 float operations a cycle, half of what two full pipes would do.
"""

import ctypes
import os
import subprocess
import tempfile
import time

SOURCE = """
typedef TYPE v __attribute__((vector_size(BYTES)));
#ifdef __FMA__ /* explicit: compilers insert copies between them */
#define ADD_PRODUCT(s, a, b) __asm__ volatile("vfmadd213" SUFFIX " %2, %1, %0" : "+v"(s) : "v"(a), "v"(b))
#else
#define ADD_PRODUCT(s, a, b) s = s * a + b
#endif
TYPE fma_loop(long n, TYPE x, TYPE y)
{
    v s[CHAINS], a = x - (v){0}, b = y - (v){0};
#pragma GCC unroll 24
    for (int i = 0; i < CHAINS; i++) s[i] = a * (TYPE)i;
    for (; n > 0; n--)
#pragma GCC unroll 24
        for (int i = 0; i < CHAINS; i++) ADD_PRODUCT(s[i], a, b);
    TYPE t = 0;
#pragma GCC unroll 24
    for (int i = 0; i < CHAINS; i++) t += s[i][0];
    return t;
}
float read_loop(const float *p, long n)
{
    typedef float w __attribute__((vector_size(BYTES)));
    w s[8] = {0};
    for (long i = 0; i < n; i += 8 * BYTES / 4)
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++) s[j] += *(const w *)(p + i + j * BYTES / 4);
    return (s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7])[0];
}
"""


def vector_bytes():
    with open("/proc/cpuinfo") as f:
        flags = f.read()
    return 64 if "avx512f" in flags else 32 if "avx2" in flags else 16


def chains():
    """Independent sums: enough to hide the latency, fewer than registers."""
    return 24 if vector_bytes() == 64 else 12


def compiled(ctype):
    """The library for one element type; its folder is removed with it."""
    folder = tempfile.TemporaryDirectory()
    source, library = os.path.join(folder.name, "peak.c"), os.path.join(folder.name, "peak.so")
    with open(source, "w") as f:
        f.write(SOURCE)
    flags = ["-O2", "-march=native", "-ffp-contract=fast", f"-DTYPE={ctype}", f"-DBYTES={vector_bytes()}"]
    flags.append(f"-DCHAINS={chains()}")
    flags.append(f'-DSUFFIX="{"ps" if ctype == "float" else "pd"}"')
    subprocess.run([os.environ.get("CC", "cc"), *flags, "-shared", "-fPIC", source, "-o", library], check=True)
    return ctypes.CDLL(library), folder


def multiply_adds(ctype="float", seconds=0.3):
    """Float operations per second of one core (a multiply-add is two), the best of many short runs."""
    library, folder = compiled(ctype)
    kind, size = (ctypes.c_float, 4) if ctype == "float" else (ctypes.c_double, 8)
    library.fma_loop.argtypes, library.fma_loop.restype = [ctypes.c_long, kind, kind], kind
    n = 20_000
    work, best, until = n * chains() * 2 * vector_bytes() / size, float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < until:
        start = time.perf_counter()
        library.fma_loop(n, 0.5, 0.25)
        best = min(best, time.perf_counter() - start)
    folder.cleanup()
    return work / best


def reads(megabytes=256, rounds=8):
    """Bytes per second that one core reads from memory in order."""
    library, folder = compiled("float")
    library.read_loop.argtypes, library.read_loop.restype = [ctypes.c_void_p, ctypes.c_long], ctypes.c_float
    n = megabytes << 18
    block = (ctypes.c_float * (n + 16))()
    at = (ctypes.addressof(block) + 63) // 64 * 64
    best = 0.0
    for _ in range(rounds):
        start = time.perf_counter()
        library.read_loop(at, n)
        best = max(best, 4 * n / (time.perf_counter() - start))
    folder.cleanup()
    return best


if __name__ == "__main__":
    print(f"float32: {multiply_adds() / 1e9:.1f} GFLOP/s on one core, vectors of {8 * vector_bytes()} bits")
    print(f"float64: {multiply_adds('double') / 1e9:.1f} GFLOP/s")
    print(f"memory:  {reads() / 1e9:.1f} GB/s read")
