#!/usr/bin/env python3
"""Make a virtual environment that holds these requirements, if it does not yet.

usage: make_venv.py FOLDER REQUIREMENTS [PIP OPTIONS...]
"""

import importlib.metadata
import pathlib
import re
import subprocess
import sys
import venv


def wanted(path):
    for line in pathlib.Path(path).read_text().splitlines():
        line = line.split("#")[0].strip()
        if line.startswith("-r "):
            yield from wanted(pathlib.Path(path).parent / line[3:])
        elif line:
            yield line


def installed(folder):
    (site,) = pathlib.Path(folder).glob("lib/python*/site-packages")
    found = importlib.metadata.distributions(path=[str(site)])
    return {re.sub("[-_.]+", "-", d.name).lower(): d.version.split("+")[0] for d in found}


def main(folder, requirements, *options):
    if not pathlib.Path(folder, "bin/python").exists():
        venv.create(folder, with_pip=True)
    have = installed(folder)
    missing = [w for w in wanted(requirements) if have.get(re.sub("[-_.]+", "-", w.split("==")[0]).lower()) != w.split("==")[1]]
    if missing:
        print("installing", *missing)
        command = [f"{folder}/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        sys.exit(subprocess.run([*command, *options, "-r", requirements]).returncode)


if __name__ == "__main__":
    main(*sys.argv[1:])
