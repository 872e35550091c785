"""Matrix products: their rates, as fractions of the peak of one core that peak.py measures at the same time.

usage: gemm_lab.py [THREADS]

A product of small matrices is also shown without the overhead of a call, which a 2 x 2 product measures.
"""

import sys

from lab import best, peak_now, table

import lucid

SHAPES = [(1, n, n, n) for n in (16, 32, 64, 128, 256, 512, 1024)]
SHAPES += [(1, 16, 1024, 1024), (1, 128, 512, 512), (64, 128, 64, 128), (1, 1024, 64, 1024), (1, 64, 1024, 64)]


def rate(batch, m, k, n, dtype=lucid.float32, transposed=False):
    """Seconds of one product; transposed: b is transposed, as the weight of a linear layer is."""
    a = lucid.randn(batch, m, k).to(dtype)
    b = lucid.randn(batch, n, k).to(dtype).mT if transposed else lucid.randn(batch, k, n).to(dtype)
    if batch == 1:
        a, b = a[0], b[0]
    return best(lambda: a @ b)


def main(threads=1):
    lucid.set_num_threads(threads)
    call = rate(1, 2, 2, 2)
    rows = []
    for shape in SHAPES:
        work = 2 * shape[0] * shape[1] * shape[2] * shape[3]
        peak = peak_now() * threads
        for name, dtype in (("float32", lucid.float32), ("bfloat16", lucid.bfloat16), ("float16", lucid.float16)):
            for transposed in (False, True):
                seconds = rate(*shape, dtype, transposed)
                title = f"{name} {'x'.join(map(str, shape))}" + (", b transposed" if transposed else "")
                rows.append([title, seconds, work / seconds, work / seconds / peak, work / max(seconds - call, 1e-9) / peak])
    table(["product", "time", "GFLOP/s", "of peak", "without the call"], rows)
    print(f"a call: {call * 1e9:.0f} ns")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
