"""Downloads of weights, cached in a folder.

>>> import lucid
>>> lucid.hub.get_dir().endswith("hub")
True
"""

import hashlib
import os
import pathlib
import re
import sys
import tempfile
from urllib.parse import urlparse
from urllib.request import Request, urlopen

__all__ = ["download_url_to_file", "get_dir", "load_state_dict_from_url", "set_dir"]

_HASH = re.compile(r"-([a-f0-9]*)\.")  # of model-5c106cde.pth
_dir = None


def get_dir():
    """The cache folder: the one set by `set_dir`, else `hub` in $TORCH_HOME, else in ~/.cache/torch.

    >>> isinstance(lucid.hub.get_dir(), str)
    True
    """
    if _dir is not None:
        return _dir
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.join(os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch"))), "hub")


def set_dir(d):
    """Keep files in another folder.

    >>> before = lucid.hub.get_dir()
    >>> lucid.hub.set_dir("weights")
    >>> lucid.hub.get_dir()
    'weights'
    >>> lucid.hub.set_dir(before)
    """
    global _dir
    _dir = os.path.expanduser(d)


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    """Download a file. It appears under its name when it is complete and, if hash_prefix is given, its SHA-256 starts with it.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source, copy = (pathlib.Path(folder, name) for name in ("a", "b"))
    ...     _ = source.write_text("weights")
    ...     lucid.hub.download_url_to_file(source.as_uri(), copy, progress=False)
    ...     copy.read_text()
    'weights'
    """
    dst = pathlib.Path(os.path.expanduser(dst))
    digest, done = hashlib.sha256(), 0
    with urlopen(Request(url, headers={"User-Agent": "lucid.hub"})) as source:
        total = int(source.headers.get("Content-Length") or 0)
        part = tempfile.NamedTemporaryFile(dir=dst.parent, prefix=dst.name + ".", suffix=".partial", delete=False)
        try:
            with part:
                while block := source.read(1 << 17):
                    part.write(block)
                    digest.update(block)
                    done += len(block)
                    if progress:
                        print(f"\r{done / 1e6:.1f} of {total / 1e6:.1f} MB", end="", file=sys.stderr, flush=True)
            if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
            os.replace(part.name, dst)
        finally:
            pathlib.Path(part.name).unlink(missing_ok=True)
            if progress:
                print(file=sys.stderr)


def load_state_dict_from_url(
    url, model_dir=None, map_location=None, progress=True, check_hash=False, file_name=None, weights_only=False
):
    """Download a file once and read it with `lucid.load`. It is cached in model_dir, else in `checkpoints` of `get_dir()`.
    check_hash: names such as model-5c106cde.pth say how the file's SHA-256 starts.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source = pathlib.Path(folder, "model.pth")
    ...     lucid.save({"weight": lucid.ones(2)}, source)
    ...     lucid.hub.load_state_dict_from_url(source.as_uri(), folder + "/kept", progress=False)
    {'weight': tensor([1., 1.])}
    """
    from .serialization import load

    folder = pathlib.Path(os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir)
    folder.mkdir(parents=True, exist_ok=True)
    name = os.path.basename(urlparse(url).path) if file_name is None else file_name
    kept = folder / name
    if not kept.exists():
        if progress:
            print(f'Downloading: "{url}" to {kept}', file=sys.stderr)
        found = _HASH.search(name) if check_hash else None
        download_url_to_file(url, kept, found.group(1) if found else None, progress)
    return load(kept, map_location=map_location, weights_only=weights_only)
