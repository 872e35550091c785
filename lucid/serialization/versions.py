"""Versions of files, and migrations of old ones.

Every file carries the version of its format and of the op schemas it was written with. A newer file than this code is refused;
an older one is migrated: a migration maps names that only old files use to today's, and may change the object that was read.
To change the format: raise FORMAT, add the migration of the version that was current, and keep a file of that version in
tests/serialization/data.

1  a plain pickle, as `pickle.dump` wrote tensors before there was `save`: values as bytes, no shared storages
2  PyTorch's zip archive, with a record `.lucid/version`; safetensors files, with the same among their metadata
"""

import json

from .. import _C
from ..version import __version__, op_schema
from .errors import CorruptFileError, NewerVersionError

FORMAT = 2
RECORD = ".lucid/version"


class Migration:
    """From one version to the next: callables that stand for old names, and a function over what was read.

    >>> Migration(change=lambda value: value + 1).change(1)
    2
    """

    def __init__(self, callables=None, change=None):
        self.callables, self.change = callables or {}, change or (lambda value: value)


def _tensor_of_bytes(cls, data, shape, stride, dtype, device, requires_grad):
    if device.type not in ("cpu", "meta"):
        device = _C.device("cpu")
    return _C._rebuild_tensor(cls, data, shape, stride, dtype, device, requires_grad)


def _step_of_numbers(value):
    """Convert step counts that are Python scalars, as old PyTorch optimizers saved them, to tensors."""
    if isinstance(value, dict) and isinstance(value.get("state"), dict) and "param_groups" in value:
        for state in value["state"].values():
            if isinstance(state, dict) and isinstance(state.get("step"), (int, float)):
                state["step"] = _C.tensor(float(state["step"]), device="cpu")
    elif isinstance(value, dict):
        for part in value.values():
            _step_of_numbers(part)
    return value


MIGRATIONS = {1: Migration({"lucid._C _rebuild_tensor": _tensor_of_bytes}, _step_of_numbers)}


def old_names(version):
    """The meaning of names that only files of this version, or a later one, use.

    >>> list(old_names(1)), list(old_names(FORMAT))
    (['lucid._C _rebuild_tensor'], [])
    """
    names = {}
    for step in range(FORMAT - 1, version - 1, -1):
        names |= MIGRATIONS[step].callables
    return names


def current():
    """The record that identifies the writer of a file.

    >>> check(current()) == FORMAT
    True
    """
    return json.dumps({"format": FORMAT, "ops": op_schema, "lucid": __version__}).encode()


def check(record):
    """The format version of a record, refused if it or the op schemas are newer than this code.

    >>> check(b'{"format": 1, "ops": 1}')
    1
    """
    try:
        stated = json.loads(record)
        versions = stated["format"], stated["ops"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise CorruptFileError("the version record of the file is damaged") from None
    if not all(type(v) is int and v > 0 for v in versions):
        raise CorruptFileError("the version record of the file is damaged")
    for what, stated_version, known in (("format", versions[0], FORMAT), ("op schema", versions[1], op_schema)):
        if stated_version > known:
            by = f" (by Lucid {stated['lucid']})" if isinstance(stated.get("lucid"), str) else ""
            raise NewerVersionError(
                f"the file was written with {what} version {stated_version}{by}; this is Lucid {__version__}, "
                f"which knows {what} versions up to {known}"
            )
    return versions[0]


def migrate(value, version):
    """Migrate an object of an older version.

    >>> old = {"state": {0: {"step": 3}}, "param_groups": []}
    >>> migrate(old, 1)["state"][0]["step"]
    tensor(3.)
    """
    for step in range(version, FORMAT):
        value = MIGRATIONS[step].change(value)
    return value
