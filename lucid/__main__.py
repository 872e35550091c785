"""`python -m lucid`: what a bug report needs. `python -m lucid program.py …` runs a PyTorch program; `import torch` is Lucid.

usage: python -m lucid [--missing] program.py | -m module | -c code [arguments ...]
       python -m lucid               versions, instruction set, threads, devices, libraries
       python -m lucid --startup     the folder for PYTHONPATH that turns the switch on where LUCID_AS_TORCH=1 is set
"""

import os
import platform
import sys

import lucid

PACKAGES = {  # optional, and what they are for
    "numpy": "Tensor.numpy(), from_numpy() and .npy files",
    "tokenizers": "a faster models.Tokenizer",
    "einops": "einops of its own; lucid.einops needs no package",
    "tqdm": "progress bars of examples",
}


def packages():
    """Pairs of an optional package and its version, or how to get it.

    >>> from lucid.__main__ import packages
    >>> "numpy" in dict(packages())
    True
    """
    from importlib import metadata

    for name, use in PACKAGES.items():
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            yield name, f"not installed: for {use} (pip install {name})"


def cuda_driver():
    """Why there is no CUDA device, as the error of asking for one says it; None if there is one.

    >>> from lucid.__main__ import cuda_driver
    >>> (cuda_driver() is None) == lucid.cuda.is_available()
    True
    """
    try:
        lucid.empty(0, device="cuda")
    except (RuntimeError, NotImplementedError) as error:
        return str(error)
    return None


def report():
    """Pairs of a name and what it is on this machine.

    >>> from lucid.__main__ import report
    >>> dict(report())["lucid"].startswith(lucid.version.LUCID)
    True
    """
    yield "lucid", f"{lucid.version.LUCID} ({os.path.dirname(lucid.__file__)})"
    yield "Python", f"{platform.python_version()} ({sys.executable})"
    yield "system", f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield "instruction set", lucid._C._isa()
    yield "threads", str(lucid.get_num_threads())
    yield "CUDA devices", str(lucid.cuda.device_count())
    for i in range(lucid.cuda.device_count()):
        device = lucid.cuda.get_device_properties(i)
        yield f"cuda:{i}", f"{device.name}, {device.total_memory / 2**30:.0f} GiB, sm_{device.major}{device.minor}"
    if not lucid.cuda.device_count():
        yield "CUDA", cuda_driver() or "no device"
    for library in lucid._C._cuda_libraries() if lucid.cuda.device_count() else ():
        yield tuple(library.split(": ", 1))
    yield "LAPACK", lucid._C._lapack_path() or "none: own kernels; install scipy-openblas32, or set LUCID_LAPACK"
    yield from packages()


def main():
    if len(sys.argv) > 1:
        from lucid._as_torch.run import run

        return run(sys.argv[1:], __doc__)
    for name, value in report():
        print(f"{name + ':':17}{value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
