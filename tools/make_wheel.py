#!/usr/bin/env python3
"""Build the wheel of lucid-dl for distribution.   usage: make_wheel.py [FOLDER]      default: dist

A wheel that is tagged `linux_x86_64` is for the machine that built it. One that is to run elsewhere names the oldest C
library that it runs with (PEP 600: `manylinux_2_28_x86_64` means glibc 2.28 or later). This program reads that from the built
libraries, as auditwheel does: the newest `GLIBC_x.y` symbol version that they ask for is the floor, and they may need no
libraries but glibc's. Then it names the wheel accordingly. Needs no network: the build tools are those of the Python that runs
this.
"""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
GLIBC = re.compile(r"lib(c|m|dl|pthread|rt)\.so\.\d+|ld-linux[\w-]*\.so\.\d+")
OURS = {"liblucid.so"}  # lies beside what needs it


def environment():
    """Without whatever would let a bare environment see other packages; with this Python's meson and ninja."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    return kept | {"PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}


def build(folder):
    """The wheel as the build makes it, for this machine."""
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT)], check=True, env=environment())
    (wheel,) = folder.glob("*.whl")
    return wheel


def read(library, *options):
    return subprocess.run(["readelf", "-W", *options, str(library)], check=True, capture_output=True, text=True).stdout


def floor(libraries):
    """(major, minor) of the oldest glibc that has all symbols the libraries ask for; exits if they need another library."""
    versions = set()
    for library in libraries:
        needed = re.findall(r"NEEDED.*\[(.*)\]", read(library, "-d"))
        foreign = [n for n in needed if n not in OURS and not GLIBC.fullmatch(n)]
        if foreign:
            sys.exit(f"{library.name} needs {', '.join(foreign)}: not allowed in a wheel")
        versions |= {(int(a), int(b)) for a, b in re.findall(r"GLIBC_(\d+)\.(\d+)", read(library, "-V"))}
    return max(versions)


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def retag(wheel, platform, folder):
    """The wheel in folder under the name for platform: the file WHEEL says it as well, and RECORD has that file's digest."""
    name, version, python, abi, old = wheel.stem.split("-")
    made = folder / f"{name}-{version}-{python}-{abi}-{platform}.whl"
    changed = {}
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as target:
        names = source.namelist()
        for item in sorted(names, key=lambda n: n.endswith(".dist-info/RECORD")):
            data = source.read(item)
            if item.endswith(".dist-info/WHEEL"):
                data = data.replace(f"-{old}".encode(), f"-{platform}".encode())
                changed[item] = f"{item},{digest(data)},{len(data)}"
            if item.endswith(".dist-info/RECORD"):
                rows = data.decode().splitlines()
                data = "".join(changed.get(row.split(",")[0], row) + "\n" for row in rows).encode()
            target.writestr(source.getinfo(item), data)
    return made


def make(folder):
    """Build the wheel into folder: its path and the glibc that it needs."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        made = build(pathlib.Path(name))
        inside = pathlib.Path(name) / "inside"
        with zipfile.ZipFile(made) as archive:
            archive.extractall(inside)
        libraries = sorted(p for p in inside.rglob("*.so*") if p.is_file())
        major, minor = floor(libraries)
        machine = os.uname().machine
        return retag(made, f"manylinux_{major}_{minor}_{machine}", folder), f"{major}.{minor}"


def main(folder="dist"):
    wheel, glibc = make(pathlib.Path(folder).resolve())
    unpacked = sum(i.file_size for i in zipfile.ZipFile(wheel).infolist())
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.2f} MB, {unpacked / 1e6:.2f} MB installed, glibc {glibc} or later")


if __name__ == "__main__":
    main(*sys.argv[1:])
