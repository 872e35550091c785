"""Checkpoints: an .npz archive of named arrays, with an entry of metadata that holds a hash per array and one over all of them.
Reading runs no code (no pickles); validation says what does not fit.

The hash of an array covers its description (compact JSON with sorted keys of dtype, nbytes, shape) and then its bytes.
"""

import datetime
import hashlib
import io
import json
import os
import zipfile

import numpy as np

META = "__lc_checkpoint_meta__"
SIGNATURE = "lc_integrity_sha256_v1"
FORMATS = ("lc_checkpoint_v1", "lc_checkpoint_v1_1", "lc_checkpoint_v1_2", "lc_checkpoint_v2")
_HASHED = FORMATS[2:]


class CheckpointValidationError(ValueError):
    """A checkpoint that does not fit, with its code and details.

    >>> raise CheckpointValidationError("checkpoint_read_error", "no such file", {})
    Traceback (most recent call last):
    lightning_core._integrated.checkpoints.CheckpointValidationError: no such file
    """

    def __init__(self, code, message, details):
        super().__init__(message)
        self.code, self.details = code, details


def _json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _describe(array):
    described = {"dtype": str(array.dtype), "nbytes": int(array.nbytes), "shape": list(array.shape)}
    digest = hashlib.sha256(_json(described))
    digest.update(np.ascontiguousarray(array).tobytes())
    return described | {"sha256": digest.hexdigest()}


def flatten(state, prefix=""):
    """Nested dicts as one dict of arrays, keys joined by dots.

    >>> sorted(flatten({"a": {"b": [1.0], "c": 2}}))
    ['a.b', 'a.c']
    """
    flat = {}
    for key, value in state.items():
        if not isinstance(key, str):
            raise TypeError(f"keys must be strings, not {key!r}")
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
            continue
        array = np.asarray(value)
        if array.dtype.kind not in "biufcSU":
            raise TypeError(f"{prefix}{key} is no array of numbers or text: {type(value).__name__}")
        flat[prefix + key] = array
    if META in flat:
        raise ValueError(f"the key {META} belongs to the format")
    return flat


def _state_of(thing):
    state = thing if isinstance(thing, dict) else thing.state_dict() if hasattr(thing, "state_dict") else None
    if state is None:
        raise TypeError(f"a dict or an object with state_dict() is expected, not {type(thing).__name__}")
    return flatten(state)


def _write(path, state, form, compressed, metadata, model_class="", **more):
    from .engines import get_engine

    manifest = {key: _describe(array) for key, array in state.items()}
    meta = {
        "format": form,
        "format_version": form.removeprefix("lc_checkpoint_v").replace("_", "."),
        "compat_read": list(FORMATS),
        "compat_write": list(FORMATS[2:]),
        "saved_at_utc": datetime.datetime.now(datetime.timezone.utc).isoformat(),
        "engine": get_engine(),
        "model_class": model_class,
        "num_tensors": len(state),
        "keys": sorted(state),
        "integrity_signature": SIGNATURE,
        "manifest_hash": hashlib.sha256(_json(manifest)).hexdigest(),
        "tensor_hashes": {key: entry["sha256"] for key, entry in manifest.items()},
        "tensor_manifest": manifest,
        "user_metadata": dict(metadata or {}),
        **more,
    }
    path = os.fspath(path)
    path = path if path.endswith(".npz") else f"{path}.npz"
    entries = state | {META: np.frombuffer(json.dumps(meta).encode(), np.uint8)}
    fresh = f"{path}.{os.getpid()}.tmp"
    try:
        with open(fresh, "wb") as file:
            (np.savez_compressed if compressed else np.savez)(file, **entries)
        os.replace(fresh, path)  # a reader sees the old file or the new one
    finally:
        if os.path.exists(fresh):
            os.unlink(fresh)
    return path


def save_checkpoint(path, state, *, metadata=None, compressed=True):
    """Writes a dict of arrays (nested dicts are flattened), or an object with state_dict(); the path.

    >>> import tempfile
    >>> path = save_checkpoint(os.path.join(tempfile.mkdtemp(), "x"), {"a": {"b": np.ones(2)}})
    >>> load_checkpoint(path)["state"]["a.b"].tolist()
    [1.0, 1.0]
    """
    name = "" if isinstance(state, dict) else type(state).__name__
    return _write(path, _state_of(state), "lc_checkpoint_v1_2", compressed, metadata, name)


def _read(path):
    """(meta or None, arrays); raises OSError or ValueError for what is no archive."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, ValueError, OSError, KeyError, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(str(error)) from None
    except Exception as error:  # zlib.error and struct.error, which share no base
        raise ValueError(str(error)) from None
    meta = arrays.pop(META, None)
    return (None if meta is None else meta.tobytes()), arrays


def _problem(path, formats, require_signature):
    """(code, message, details, meta, arrays); code "ok" if nothing is wrong."""
    try:
        raw, arrays = _read(path)
    except (OSError, ValueError) as error:
        return "checkpoint_read_error", f"{path} cannot be read: {error}", {}, None, {}
    if raw is None:
        return "checkpoint_meta_missing", f"{path} has no entry {META}", {}, None, arrays
    try:
        meta = json.loads(raw)
        if not isinstance(meta, dict) or not isinstance(meta.get("format"), str):
            raise ValueError("no format")
    except ValueError as error:
        return "checkpoint_meta_invalid", f"the metadata cannot be read: {error}", {}, None, arrays
    known = FORMATS if formats is None else (formats,) if isinstance(formats, str) else tuple(formats)
    if meta["format"] not in known:
        details = {"format": meta["format"], "expected": list(known)}
        return "checkpoint_format_unsupported", f"the format {meta['format']!r} is not expected", details, meta, arrays
    if require_signature and meta["format"] in _HASHED and meta.get("integrity_signature") != SIGNATURE:
        details = {"signature": meta.get("integrity_signature")}
        return "checkpoint_signature_mismatch", "the integrity signature is another", details, meta, arrays
    if meta.get("num_tensors", len(arrays)) != len(arrays):
        details = {"expected": meta["num_tensors"], "found": len(arrays)}
        return "checkpoint_num_tensors_mismatch", "the number of arrays is another", details, meta, arrays
    manifest = meta.get("tensor_manifest")
    if meta["format"] in _HASHED and isinstance(manifest, dict):
        found = _manifest_problem(meta, manifest, arrays)
        if found:
            return *found, meta, arrays
    elif meta["format"] in _HASHED:
        return "checkpoint_meta_invalid", "there is no tensor_manifest", {}, meta, arrays
    return "ok", "", {}, meta, arrays


def _manifest_problem(meta, manifest, arrays):
    if hashlib.sha256(_json(manifest)).hexdigest() != meta.get("manifest_hash"):
        return "checkpoint_manifest_hash_mismatch", "the manifest was changed", {}
    missing = sorted(set(manifest) ^ set(arrays))
    if missing:
        return "checkpoint_manifest_missing_tensor", f"not in both manifest and archive: {missing}", {"keys": missing}
    changed = sorted(key for key, array in arrays.items() if _describe(array) != manifest[key])
    if changed:
        return "checkpoint_tensor_hash_mismatch", f"arrays were changed: {changed}", {"keys": changed}
    return None


def validate_checkpoint(path, *, expected_formats=None, strict=False, require_signature=True):
    """Whether a file is a whole checkpoint: {path, ok, code, message, details, meta}.

    >>> validate_checkpoint("nowhere.npz")["code"]
    'checkpoint_read_error'
    """
    return _validated(path, expected_formats, strict, require_signature)[0]


def _validated(path, formats, strict, require_signature=True):
    path = os.fspath(path)
    code, message, details, meta, arrays = _problem(path, formats, require_signature)
    if strict and code != "ok":
        raise CheckpointValidationError(code, message, details)
    report = {"path": path, "ok": code == "ok", "code": code, "message": message, "details": details, "meta": meta}
    return report, arrays


def _load_into(into, state, strict):
    if hasattr(into, "load_state_dict"):
        into.load_state_dict(state, strict=strict)
    elif isinstance(into, dict):
        into.update(state)
    else:
        raise TypeError(f"a dict or an object with load_state_dict() is expected, not {type(into).__name__}")


def load_checkpoint(path, *, into=None, strict=True, validate=True, expected_formats=None):
    """Reads a checkpoint: {path, meta, state, validation}; into is a dict or an object with load_state_dict().

    >>> load_checkpoint("nowhere.npz")
    Traceback (most recent call last):
    lightning_core._integrated.checkpoints.CheckpointValidationError: nowhere.npz cannot be read
    """
    if validate:
        report, state = _validated(path, expected_formats, strict)
    else:
        try:
            raw, state = _read(path)
            report = {"meta": json.loads(raw) if raw else None}
        except (OSError, ValueError) as error:
            raise CheckpointValidationError("checkpoint_read_error", f"{path} cannot be read: {error}", {}) from None
    if into is not None:
        _load_into(into, state, strict)
    return {"path": os.fspath(path), "meta": report["meta"], "state": state, "validation": report if validate else None}


def _below(state, prefix):
    return {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}


def _above(state, prefix):
    return {prefix + key: value for key, value in state.items()}


def save_model_checkpoint(path, model, *, metadata=None, compressed=True):
    """Writes a model's state under the prefix "model."; the path.

    >>> import tempfile
    >>> from lightning_core._integrated.blocks import Linear
    >>> path = save_model_checkpoint(os.path.join(tempfile.mkdtemp(), "m"), Linear(2, 1))
    >>> sorted(load_model_checkpoint(path)["model_state"])
    ['bias', 'weight']
    """
    state = _above(_state_of(model), "model.")
    return _write(path, state, "lc_checkpoint_v1_2", compressed, metadata, type(model).__name__)


def load_model_checkpoint(path, *, into=None, strict=True, validate=True):
    """`load_checkpoint` with the model's own state as model_state, loaded into a model if one is given.

    >>> load_model_checkpoint("nowhere.npz")
    Traceback (most recent call last):
    lightning_core._integrated.checkpoints.CheckpointValidationError: nowhere.npz cannot be read
    """
    found = load_checkpoint(path, strict=strict, validate=validate)
    found["model_state"] = _below(found["state"], "model.")
    if into is not None:
        _load_into(into, found["model_state"], strict)
    return found


def save_runner_checkpoint_v2(path, runner, *, optimizer_state=None, metadata=None, graph_manifest=None, compressed=True):
    """Writes a runner, its optimizer's state and a description of its graph; the path.

    >>> import tempfile
    >>> from lightning_core._integrated.runner import TinyTransformerRunner
    >>> runner = TinyTransformerRunner(seq_len=2, d_model=4, d_ff=4, vocab_size=5)
    >>> path = save_runner_checkpoint_v2(os.path.join(tempfile.mkdtemp(), "r"), runner, optimizer_state={"step": 3})
    >>> load_runner_checkpoint(path)["optimizer_state"]["step"].item()
    3
    """
    state = _above(_state_of(runner), "runner.") | _above(flatten(optimizer_state or {}), "optimizer.")
    contract = runner.config_contract() if hasattr(runner, "config_contract") else {}
    more = {"graph_manifest": graph_manifest or {}, "runner_config": contract}
    return _write(path, state, "lc_checkpoint_v2", compressed, metadata, type(runner).__name__, **more)


def load_runner_checkpoint(path, *, into_runner=None, optimizer_into=None, strict=True, validate=True):
    """Reads a runner: {path, meta, format, manifest, runner_state, optimizer_state}.

    >>> load_runner_checkpoint("nowhere.npz")
    Traceback (most recent call last):
    lightning_core._integrated.checkpoints.CheckpointValidationError: nowhere.npz cannot be read
    """
    found = load_checkpoint(path, strict=strict, validate=validate)
    meta = found["meta"] or {}
    runner, optimizer = (_below(found["state"], f"{name}.") for name in ("runner", "optimizer"))
    if into_runner is not None:
        _load_into(into_runner, runner, strict)
    if optimizer_into is not None:
        _load_into(optimizer_into, optimizer, strict)
    return {
        "path": found["path"],
        "meta": found["meta"],
        "format": meta.get("format"),
        "manifest": meta.get("graph_manifest", {}),
        "runner_state": runner,
        "optimizer_state": optimizer,
    }


# ---- states of other libraries ----
def checkpoint_conversion_diagnostics(state, *, source_format="auto"):
    """What a state dict of another library becomes here: {ok, source_format, num_tensors, keys, issues}.

    >>> checkpoint_conversion_diagnostics({"a": np.ones(2), "b": object()})["issues"][0]["code"]
    'checkpoint_conversion_not_an_array'
    """
    if not isinstance(state, dict):
        raise TypeError(f"state must be a dict, not {type(state).__name__}")
    if source_format not in ("auto", "numpy", "torch", "lucid"):
        raise ValueError(f"source_format must be auto, numpy, torch or lucid, not {source_format!r}")
    kinds = {type(v).__module__.split(".")[0] for v in state.values()}
    if source_format == "auto":
        source_format = next((name for name in ("torch", "lucid") if name in kinds), "numpy")
    issues, converted = [], {}
    for key, value in state.items():
        try:
            array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
        except (TypeError, ValueError, RuntimeError):  # a dtype or a layout that NumPy lacks
            array = np.array(None)
        if array.dtype.kind not in "biufc":
            issues.append({"key": str(key), "code": "checkpoint_conversion_not_an_array", "message": type(value).__name__})
        elif not isinstance(key, str):
            issues.append({"key": str(key), "code": "checkpoint_conversion_key_not_a_string", "message": repr(key)})
        else:
            converted[key] = str(array.dtype)
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                issues.append({"key": key, "code": "checkpoint_conversion_not_finite", "message": "NaN or infinity"})
    return {
        "ok": not issues,
        "source_format": source_format,
        "num_tensors": len(converted),
        "keys": sorted(converted),
        "dtypes": converted,
        "issues": issues,
    }


def validate_checkpoint_conversion(state, *, source_format="auto", strict=False):
    """The diagnostics; strict raises CheckpointValidationError for the first issue.

    >>> validate_checkpoint_conversion({"a": np.ones(2)})["ok"]
    True
    """
    report = checkpoint_conversion_diagnostics(state, source_format=source_format)
    if strict and report["issues"]:
        first = report["issues"][0]
        raise CheckpointValidationError(first["code"], f"{first['key']}: {first['message']}", first)
    return report


def checkpoint_compatibility_matrix():
    """Which formats are read and written.

    >>> checkpoint_compatibility_matrix()["lc_checkpoint_v1"]
    {'read': True, 'write': False, 'integrity': False}
    """
    written = ("lc_checkpoint_v1_2", "lc_checkpoint_v2")
    return {form: {"read": True, "write": form in written, "integrity": form in _HASHED} for form in FORMATS}


def runner_checkpoint_compatibility_matrix():
    """Which formats of runners are read and written.

    >>> sorted(runner_checkpoint_compatibility_matrix())
    ['lc_checkpoint_v2']
    """
    return {"lc_checkpoint_v2": {"read": True, "write": True, "integrity": True, "prefixes": ["runner.", "optimizer."]}}
