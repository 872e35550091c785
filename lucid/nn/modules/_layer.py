"""Layers that are a function and its settings are rows of a table: `layer` makes a class of one."""

from .. import functional as F
from .module import Module


def _names(parameters):
    return [p.split("=")[0].strip() for p in parameters.split(",") if "=" in p or p.strip() not in ("", "*", "/")]


def layer(name, function, parameters="", shown="", doc="", *, inputs="input", call=None, kept=None):
    """A module class with settings of these names and defaults, whose forward calls a function of nn.functional.

    `shown` is a format string over the settings for `repr`; a field `{inplace}` says ", inplace=True" or nothing.
    `call`: the arguments of the function, if they are not the inputs and then the settings by position.
    `kept`: an expression for a setting that is kept as something else than it was given.
    The methods are compiled from text, as those of a named tuple are: they are as fast as written ones and have signatures.
    """
    names = _names(parameters)
    arguments = call or ", ".join([inputs, *(f"self.{n}" for n in names)])
    lines = [f"def __init__(self{', ' if parameters else ''}{parameters}):", "    super(cls, self).__init__()"]
    lines += [f"    self.{n} = {(kept or {}).get(n, n)}" for n in names]
    lines += [f"def forward(self, {inputs}):", f"    return F.{function}({arguments})"]
    scope = {"F": F}
    exec("\n".join(lines), scope)  # noqa: S102 (text of this file's rows only)

    def extra_repr(self):
        values = {n: getattr(self, n) for n in names}
        if "inplace" in values:
            values["inplace"] = ", inplace=True" if self.inplace else ""
        return shown.format(**values).removeprefix(", ")

    members = {"__doc__": doc, "__constants__": names, "forward": scope["forward"]}
    if names:
        members["__init__"] = scope["__init__"]
    if shown:
        members["extra_repr"] = extra_repr
    for key in members.keys() & {"forward", "__init__"}:
        members[key].__qualname__ = f"{name}.{key}"
    cls = type(name, (Module,), members)
    cls.__module__ = "lucid.nn.modules"
    scope["cls"] = cls
    return cls
