"""Layers that are a function and its settings are rows of a table: `layer` makes a class of one."""

from ... import functional as F
from ..module import Module


def names_of(parameters):
    """The names in a list of parameters that is text.

    >>> from lucid.nn.modules._base.layer import names_of
    >>> names_of("n, dim=1")
    ['n', 'dim']
    """
    return [p.split("=")[0].strip() for p in parameters.split(",") if "=" in p or p.strip() not in ("", "*", "/")]


def layer(name, function, parameters="", shown="", doc="", *, inputs="input", call=None, kept=None, base=Module, to_base=()):
    """A module class with settings of these names and defaults, whose forward calls a function of nn.functional.

    `shown` is a format string over the settings for `repr`; a field `{inplace}` says ", inplace=True" or nothing.
    `call`: the arguments of the function, if they are not the inputs and then the settings by position.
    `kept`: an expression for a setting that is kept as something else than it was given.
    `base`: the class it extends, whose __init__ takes the settings `to_base`.
    The methods are compiled from text, as those of a named tuple are: they are as fast as written ones and have signatures.

    >>> from lucid.nn.modules._base.layer import layer
    >>> Scaled = layer("Scaled", "hardtanh", "low=-1.0, high=1.0", "{low}, {high}")
    >>> Scaled(high=0.5), Scaled(high=0.5)(lucid.tensor([2.0]))
    (Scaled(-1.0, 0.5), tensor([0.5000]))
    """
    names = names_of(parameters)
    arguments = call or ", ".join([inputs, *(f"self.{n}" for n in names)])
    given = ", ".join(f"{n}={n}" for n in to_base)
    lines = [f"def __init__(self{', ' if parameters else ''}{parameters}):", f"    super(cls, self).__init__({given})"]
    lines += [f"    self.{n} = {(kept or {}).get(n, n)}" for n in names if n not in to_base]
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
    cls = type(name, (base,), members)
    cls.__module__ = "lucid.nn.modules"
    scope["cls"] = cls
    return cls
