"""`python -m lucid`: what a bug report needs: versions, instruction set, threads, devices, libraries."""

import platform
import sys

import lucid


def report():
    """Pairs of a name and what it is on this machine.

    >>> from lucid.__main__ import report
    >>> dict(report())["lucid"] == lucid.__version__
    True
    """
    yield "lucid", lucid.__version__
    yield "Python", f"{platform.python_version()} ({sys.executable})"
    yield "system", f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield "instruction set", lucid._C._isa()
    yield "threads", str(lucid.get_num_threads())
    yield "CUDA devices", str(lucid.cuda.device_count())
    yield "LAPACK", lucid._C._lapack_path() or "none: own kernels; install scipy-openblas32, or set LUCID_LAPACK"


def main():
    for name, value in report():
        print(f"{name + ':':17}{value}")


if __name__ == "__main__":
    main()
