"""`python -m lucid`: what a bug report needs. `python -m lucid program.py …` runs a PyTorch program; `import torch` is Lucid.

usage: python -m lucid [--missing] program.py | -m module | -c code [arguments ...]
       python -m lucid               versions, instruction set, threads, devices, libraries
       python -m lucid --startup     the folder for PYTHONPATH that turns the switch on where LUCID_AS_TORCH=1 is set
"""

import platform
import sys

import lucid


def report():
    """Pairs of a name and what it is on this machine.

    >>> from lucid.__main__ import report
    >>> dict(report())["lucid"] == lucid.version.LUCID
    True
    """
    yield "lucid", lucid.version.LUCID
    yield "Python", f"{platform.python_version()} ({sys.executable})"
    yield "system", f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield "instruction set", lucid._C._isa()
    yield "threads", str(lucid.get_num_threads())
    yield "CUDA devices", str(lucid.cuda.device_count())
    for i in range(lucid.cuda.device_count()):
        device = lucid.cuda.get_device_properties(i)
        yield f"cuda:{i}", f"{device.name}, {device.total_memory / 2**30:.0f} GiB, sm_{device.major}{device.minor}"
    for library in lucid._C._cuda_libraries() if lucid.cuda.device_count() else ():
        yield tuple(library.split(": ", 1))
    yield "LAPACK", lucid._C._lapack_path() or "none: own kernels; install scipy-openblas32, or set LUCID_LAPACK"


def main():
    if len(sys.argv) > 1:
        from lucid._as_torch.run import run

        return run(sys.argv[1:], __doc__)
    for name, value in report():
        print(f"{name + ':':17}{value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
