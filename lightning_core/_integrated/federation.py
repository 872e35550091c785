"""Which engine a request may be given to, as constant descriptions; and what of Core ML is not here."""

from .engines import ENGINES, resolve

_POLICY = {
    "keys": ["preferred", "fallback", "stages"],
    "engines": list(ENGINES),
    "available": ["lightning", "torch"],
}


def engine_federation_policy_schema():
    """The keys and engines of a federation policy.

    >>> engine_federation_policy_schema()["available"]
    ['lightning', 'torch']
    """
    return {key: list(value) for key, value in _POLICY.items()}


def engine_federation_policy_v3_schema():
    """The same, of version 3: engines by stage.

    >>> engine_federation_policy_v3_schema()["version"]
    3
    """
    return engine_federation_policy_schema() | {"version": 3, "stages": ["conv", "attention", "graph"]}


def resolve_engine_federation_policy_v3(policy=None, *, device="metal"):
    """{stage: engine} for a dict of engines by stage; "auto" is the chosen engine.

    >>> resolve_engine_federation_policy_v3({"conv": "lightning"}, device="cpu")
    {'conv': 'lightning', 'attention': 'lightning', 'graph': 'lightning'}
    """
    from .routes import validate_route_policy

    normalized = validate_route_policy(policy, strict=True)["normalized"]
    return {key: resolve(None if value == "auto" else value, device) for key, value in normalized.items()}


def import_export_compatibility_matrix():
    """What can be read from, and written for, other libraries.

    >>> import_export_compatibility_matrix()["coreml"]
    {'import': False, 'export': False}
    """
    there = {"numpy": True, "torch": True, "lucid": True, "tf": False, "coreml": False, "mlx": False}
    return {name: {"import": yes, "export": yes} for name, yes in there.items()}


def coreml_roundtrip_schema():
    """The fields of a round trip's report.

    >>> coreml_roundtrip_schema()["required"]
    ['ok', 'status', 'message']
    """
    return {"required": ["ok", "status", "message"]}


def coreml_roundtrip_beta_report(*args, **kwargs):
    """Not supported: Core ML is part of macOS.

    >>> coreml_roundtrip_beta_report()["status"]
    'not supported'
    """
    return {"ok": False, "status": "not supported", "message": "Core ML is part of macOS"}
