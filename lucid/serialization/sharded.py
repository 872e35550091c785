"""A state dict over several safetensors files with an index, as large models are published."""

import json
import os
import re

from .errors import CorruptFileError
from .files import written_at_once
from .safetensors import load_safetensors, save_safetensors

_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}
_INDEX_LIMIT = 100_000_000


def _bytes(size):
    match = size if isinstance(size, int) else re.fullmatch(r"(\d+)\s*([KMG]I?B)?", size.upper())
    if isinstance(match, int) or not match:
        if isinstance(size, int) and size > 0:
            return size
        raise ValueError(f"expected a number of bytes or a text as '5GB', not {size!r}")
    return int(match[1]) * _UNITS[match[2] or ""]


def save_sharded(state_dict, folder, max_shard_size="5GB", name="model"):
    """Write a state dict as safetensors files of at most max_shard_size each, and the index that says what is where.

    The index is written last: until then a folder that held an older checkpoint is read as before. Files carry the number of
    shards in their name, so shards of different numbers do not replace each other.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lucid.save_sharded({"a": lucid.ones(4), "b": lucid.zeros(4)}, folder, max_shard_size=16)
    ...     lucid.load_sharded(folder)["a"]
    ['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors']
    tensor([1., 1., 1., 1.])
    """
    limit = _bytes(max_shard_size)
    shards, left = [], 0
    for key, tensor in state_dict.items():
        size = tensor.numel() * tensor.element_size()
        if not shards or size > left:
            shards.append({})
            left = limit
        shards[-1][key] = tensor
        left -= size
    os.makedirs(folder, exist_ok=True)
    names = [f"{name}-{i:05}-of-{len(shards):05}.safetensors" for i in range(1, len(shards) + 1)]
    where = {}
    for file, tensors in zip(names, shards, strict=True):
        save_safetensors(tensors, os.path.join(folder, file), metadata={"format": "pt"})
        where.update(dict.fromkeys(tensors, file))
    total = sum(t.numel() * t.element_size() for t in state_dict.values())
    with written_at_once(os.path.join(folder, f"{name}.safetensors.index.json")) as file:
        file.write(json.dumps({"metadata": {"total_size": total}, "weight_map": where}, indent=2).encode())
    return names


def load_sharded(folder, device="cpu", mmap=True, name="model"):
    """The state dict of a folder that save_sharded, or another library in the same form, has written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = lucid.save_sharded({"a": lucid.ones(2)}, folder)
    ...     lucid.load_sharded(folder)
    {'a': tensor([1., 1.])}
    """
    index = os.path.join(folder, f"{name}.safetensors.index.json")
    if not os.path.exists(index) and os.path.exists(os.path.join(folder, f"{name}.safetensors")):
        return load_safetensors(os.path.join(folder, f"{name}.safetensors"), device, mmap)
    with open(index, "rb") as file:
        text = file.read(_INDEX_LIMIT + 1)
    try:
        if len(text) > _INDEX_LIMIT:
            raise ValueError(f"more than {_INDEX_LIMIT} bytes")
        where = json.loads(text)["weight_map"]
        items = list(where.items())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptFileError(f"the index {index} is damaged: {error}") from None
    files = {}
    for key, file in items:
        if not isinstance(file, str) or os.path.basename(file) != file or file in ("", ".", ".."):
            raise CorruptFileError(f"the index names {file!r}, which is not a file of its own folder")
        files.setdefault(file, []).append(key)
    found = {}
    for file, keys in files.items():
        tensors = load_safetensors(os.path.join(folder, file), device, mmap)
        missing = [key for key in keys if key not in tensors]
        if missing:
            raise CorruptFileError(f"{file} has no tensor {missing[0]!r}, which the index promises")
        found.update({key: tensors[key] for key in keys})
    return {key: found[key] for key, _ in items}
