"""`torch.torch_version` and `torch.__config__`."""

__all__ = ["TorchVersion", "parallel_info", "show"]


class TorchVersion(str):
    """A version that compares by its numbers, with strings and tuples too.

    >>> from lucid.torch_version import TorchVersion
    >>> TorchVersion("2.13.0") > "2.9", TorchVersion("2.13.0+cpu") >= (2, 1)
    (True, True)
    """

    @staticmethod
    def _numbers(version):
        if isinstance(version, str):
            version = version.split("+")[0].split(".")
        numbers = []
        for part in version:
            digits = ""
            for letter in str(part):
                if not letter.isdigit():
                    break
                digits += letter
            numbers.append(int(digits or 0))
        while numbers and numbers[-1] == 0:
            numbers.pop()
        return numbers

    def _ordered(self, other, how):
        if not isinstance(other, (str, tuple, list)):
            other = str(other)
        return how(self._numbers(self), self._numbers(other))

    def __lt__(self, other):
        return self._ordered(other, list.__lt__)

    def __le__(self, other):
        return self._ordered(other, list.__le__)

    def __gt__(self, other):
        return self._ordered(other, list.__gt__)

    def __ge__(self, other):
        return self._ordered(other, list.__ge__)

    def __eq__(self, other):
        return str.__eq__(self, other) if isinstance(other, str) else self._ordered(other, list.__eq__)

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__


def show():
    """What this build is, in words.

    >>> "Lucid" in lucid.__config__.show()
    True
    """
    from .. import _C, version

    lines = (f"Lucid {version.LUCID}", f"CPU capability usage: {_C._isa().upper()}", f"LAPACK: {_C._lapack_path() or 'own'}")
    return "Lucid built with:\n" + "".join(f"  - {line}\n" for line in lines)


def parallel_info():
    """The numbers of threads, in words.

    >>> "get_num_threads" in lucid.__config__.parallel_info()
    True
    """
    import os

    from .. import _C

    return (
        f"Lucid parallel backend: own threads\n\tlucid.get_num_threads() : {_C.get_num_threads()}\n\tCPUs : {os.cpu_count()}\n"
    )
