"""`torch._tensor_str`: the settings of printing as an object, and the text of a tensor."""

from .. import _print
from .._print import get_printoptions, set_printoptions


class _PrintOptions:
    """The settings of `set_printoptions` as attributes."""

    def __getattr__(self, name):
        options = get_printoptions()
        if name in options:
            return options[name]
        raise AttributeError(name)

    def __setattr__(self, name, value):
        set_printoptions(**{name: value})


PRINT_OPTS = _PrintOptions()


def _str_intern(self, *, tensor_contents=None):
    return _print.tensor_repr(self)


def _tensor_str(self, indent):
    text = _print.tensor_repr(self.detach())
    inner = text[text.index("(") + 1 : text.rindex(")")]
    return inner.partition(", dtype=")[0]


def _add_suffixes(tensor_str, suffixes, indent, force_newline):
    line = max(map(len, tensor_str.split("\n")[-1:])) + indent + 1
    parts = [tensor_str]
    for suffix in suffixes:
        if force_newline or line + len(suffix) + 2 > PRINT_OPTS.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            line, force_newline = indent + len(suffix), False
        else:
            parts.append(", " + suffix)
            line += len(suffix) + 2
    return "".join(parts) + ")"
