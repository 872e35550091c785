"""Padding layers."""

from .. import functional as F
from ._base.sizes import sizes
from .module import Module


class _Pad(Module):
    """Values added around the last dimensions."""

    def __init__(self, padding):
        super().__init__()
        self.padding = self._sized(padding)

    def forward(self, input):  # noqa: A002
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):  # noqa: A002
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class _CircularPad(_Pad):
    def forward(self, input):  # noqa: A002
        n = len(self.padding) // 2
        if input.dim() not in (n + 1, n + 2):
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {input.dim()}D input)")
        return super().forward(input)


_KINDS = {
    "ConstantPad": (_ConstantPad, "constant", "one value"),
    "ZeroPad": (_ZeroPad, "constant", "zeros"),
    "ReflectionPad": (_Pad, "reflect", "the values mirrored at the border"),
    "ReplicationPad": (_Pad, "replicate", "the value at the border"),
    "CircularPad": (_CircularPad, "circular", "the values of the other end"),
}
globals().update(
    {
        f"{kind}{n}d": type(
            f"{kind}{n}d",
            (base,),
            {
                "__doc__": f"Adds {what} around the last {n} dimensions; padding: one number, or one per side."
                f"\n\n>>> tuple(lucid.nn.{kind}{n}d({'1, 0.5' if kind == 'ConstantPad' else 1})"
                f"(lucid.ones{(1, 2, *[4] * n)}).shape)"
                f"\n{(1, 2, *[6] * n)}",
                "_mode": mode,
                "_sized": staticmethod(sizes(2 * n)),
                "__module__": __name__,
                "__constants__": ["padding"],
            },
        )
        for kind, (base, mode, what) in _KINDS.items()
        for n in (1, 2, 3)
    }
)
__all__ = [f"{kind}{n}d" for kind in _KINDS for n in (1, 2, 3)]
