"""`torch.utils.collect_env`: what a bug report needs."""


def get_env_info():
    """Pairs of a name and what it is on this machine, as a dict.

    >>> "lucid" in lucid.utils.collect_env.get_env_info()
    True
    """
    from ..__main__ import report

    return dict(report())


def get_pretty_env_info():
    """The same as lines.

    >>> "lucid" in lucid.utils.collect_env.get_pretty_env_info()
    True
    """
    return "\n".join(f"{name}: {value}" for name, value in get_env_info().items())


def main():
    print(get_pretty_env_info())
