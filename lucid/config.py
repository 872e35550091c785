"""Where the C library and its headers are.

`cc program.c $(python -m lucid.config --cflags --libs)` builds a C program that includes <lucid.h>. For builds that ask
pkg-config, put `python -m lucid.config --pkg-config > lucid.pc` in a folder of their `PKG_CONFIG_PATH`.

>>> import os
>>> from lucid import config
>>> os.path.isfile(os.path.join(config.include_path(), "lucid.h"))
True
"""

import os
import sys


def include_path():
    """The folder of lucid.h: beside this file when installed, the engine's own in a source tree.

    >>> os.path.isdir(include_path())
    True
    """
    here = os.path.dirname(os.path.realpath(__file__))
    installed = os.path.join(here, "engine", "include")
    return installed if os.path.isdir(installed) else os.path.join(os.path.dirname(here), "engine", "include")


def library_path():
    """The folder of liblucid.so.

    >>> os.path.isfile(os.path.join(library_path(), "liblucid.so"))
    True
    """
    return os.path.dirname(os.path.realpath(os.path.join(os.path.dirname(__file__), "liblucid.so")))


def cflags():
    """Options for compiling.

    >>> all(option.startswith("-I") for option in cflags())
    True
    """
    paths = dict.fromkeys((include_path(), library_path()))  # in a source tree the generated headers are in the build folder
    return [f"-I{p}" for p in paths]


def libs():
    """Options for linking; the program finds liblucid where it is now.

    >>> "-llucid" in libs()
    True
    """
    return [f"-L{library_path()}", f"-Wl,-rpath,{library_path()}", "-llucid", "-lm"]


def pkg_config():
    """The text of a file lucid.pc, for builds that ask pkg-config.

    >>> "Libs: -L" in pkg_config()
    True
    """
    from .version import LUCID

    head = f"Name: lucid\nDescription: tensors, autograd and neural networks in C\nVersion: {LUCID}\n"
    return head + f"Cflags: {' '.join(cflags())}\nLibs: {' '.join(libs())}"


def main(arguments):
    known = {"--cflags": cflags, "--libs": libs}
    if arguments == ["--pkg-config"]:
        print(pkg_config())
        return
    if not arguments or any(a not in known for a in arguments):
        sys.exit("usage: python -m lucid.config [--cflags] [--libs], or --pkg-config > lucid.pc")
    print(" ".join(option for a in arguments for option in known[a]()))


if __name__ == "__main__":
    main(sys.argv[1:])
