#!/usr/bin/env python3
"""Build the wheel of lucid-dl for distribution.   usage: make_wheel.py [FOLDER [all]]      default: dist

A wheel that is tagged `linux_x86_64` is for the machine that built it. One that is to run elsewhere names the oldest C
library that it runs with (PEP 600: `manylinux_2_28_x86_64` means glibc 2.28 or later). This program reads that from the built
libraries, as auditwheel does: the newest `GLIBC_x.y` symbol version that they ask for is the floor, and they may need no
libraries but glibc's. Then it names the wheel accordingly. Needs no network: the build tools are those of the Python that runs
this. With `all` it makes a wheel for every Python of this machine that the README names: the engine is built once.
"""

import base64
import hashlib
import os
import pathlib
import re
import shutil
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


def stripped(data):
    """A library without the names of its static functions, which meson's --strip leaves."""
    if not data.startswith(b"\x7fELF"):
        return data
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(data)
        file.flush()
        subprocess.run(["strip", file.name], check=True)
        return pathlib.Path(file.name).read_bytes()


def rewrite(wheel, tags, folder, extension=None):
    """The wheel in folder with other tags (Python, ABI, platform), and with another extension: (its name, its bytes).

    The file WHEEL says the tags as well, and RECORD has the digests of both.
    """
    name, version, *old = wheel.stem.split("-")
    made = folder / f"{'-'.join([name, version, *tags])}.whl"
    rows = {}
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as target:
        for item in sorted(source.infolist(), key=lambda i: i.filename.endswith(".dist-info/RECORD")):
            data, before = source.read(item), item.filename
            if before.endswith(".dist-info/WHEEL"):
                data = data.replace("-".join(old).encode(), "-".join(tags).encode())
            elif extension and before.startswith("lucid/_C."):
                item.filename, data = extension
            if item.filename.endswith(".so"):
                data = stripped(data)
            if before.endswith(".dist-info/RECORD"):
                lines = data.decode().splitlines()
                data = "".join(rows.get(line.split(",")[0], line) + "\n" for line in lines).encode()
            rows[before] = f"{item.filename},{digest(data)},{len(data)}"
            target.writestr(item, data, zipfile.ZIP_DEFLATED, 9)
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
        *tags, _ = made.stem.split("-")[2:]
        return rewrite(made, [*tags, f"manylinux_{major}_{minor}_{os.uname().machine}"], folder), f"{major}.{minor}"


def facts_of(python):
    """(3, minor), the suffix of extensions and whether there are headers; None if this is no Python that runs."""
    header = "os.path.exists(os.path.join(c.get_path('include'), 'Python.h'))"
    ask = f"import os, sys, sysconfig as c; print(*sys.version_info[:2], c.get_config_var('EXT_SUFFIX'), {header})"
    try:
        ran = subprocess.run([str(python), "-c", ask], capture_output=True, text=True, env=environment())
    except OSError:
        return None
    if ran.returncode:
        return None
    major, minor, suffix, headers = ran.stdout.split()
    return (int(major), int(minor)), suffix, headers == "True"


def other_pythons():
    """{(3, 10): its path, ...}: the other Pythons of this machine that Lucid is for, as far as they have headers."""
    found = {}
    for minor in range(10, 20):
        version = (3, minor)
        installed = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"), "versions").glob(
            f"3.{minor}.*/bin/python3"
        )
        for path in [shutil.which(f"python3.{minor}"), *sorted(installed)]:
            facts = facts_of(path) if path and version != sys.version_info[:2] else None
            if facts and facts[0] == version and facts[2]:
                found[version] = pathlib.Path(path)
                break
    return found


def for_python(wheel, python, folder):
    """The same wheel for another Python: the engine is the same, so only the extension is built. Returns its path."""
    (_, minor), suffix, _ = facts_of(python)
    with tempfile.TemporaryDirectory() as name:
        built = pathlib.Path(name, "build")
        with zipfile.ZipFile(wheel) as archive:
            archive.extract("lucid/liblucid.so", name)
        native = pathlib.Path(name, "native.ini")
        native.write_text(f"[binaries]\npython = '{python}'\n")
        command = ["meson", "setup", "--werror", "--native-file", native, f"-Dliblucid={name}/lucid/liblucid.so", built, ROOT]
        subprocess.run([str(c) for c in command], check=True, env=environment(), stdout=subprocess.DEVNULL)
        extension = f"_C{suffix}"
        subprocess.run(["ninja", "-C", str(built), "--quiet", extension], check=True, env=environment())
        tags = [f"cp3{minor}", f"cp3{minor}", wheel.stem.split("-")[-1]]
        return rewrite(wheel, tags, folder, (f"lucid/{extension}", (built / extension).read_bytes()))


def main(folder="dist", which=""):
    folder = pathlib.Path(folder).resolve()
    wheel, glibc = make(folder)
    unpacked = sum(i.file_size for i in zipfile.ZipFile(wheel).infolist())
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.2f} MB, {unpacked / 1e6:.2f} MB installed, glibc {glibc} or later")
    for _, python in other_pythons().items() if which == "all" else ():
        print(for_python(wheel, python, folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
