"""Write lucid/models/_names.py: which module of the zoo makes which name. Run it after a family has changed its names."""

import importlib
import inspect
import pathlib

import lucid
from lucid import models
from lucid.models import registry

ROOT = pathlib.Path(lucid.__file__).parent / "models"
ESSAY = '''"""The names that families make, by module. Written by `python -m tests.models.write_names`; a test compares."""

NAMES = {
'''


def made_by(module):
    """Configs, networks, outputs and schedulers that a module defines, and the factories that it registers."""
    kinds = [models.ModelConfig, models.PretrainedModel, models.ModelOutput]
    entries = {n for n, (f, *_) in registry._ENTRIES.items() if f.__module__ == module.__name__}
    listed = set(getattr(module, "PUBLIC", ()))
    classes = {
        n
        for n, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__ and issubclass(value, tuple(kinds))
    }
    return sorted(n for n in entries | classes | listed if not n.startswith("_"))


def table():
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if name.startswith(("vision.", "text.")) and not name.endswith("__init__"):
            module = importlib.import_module(f"lucid.models.{name}")
            if any(f.__module__ == module.__name__ for f, *_ in registry._ENTRIES.values()) or hasattr(module, "PUBLIC"):
                found[name] = made_by(module)
    return found


def text():
    lines = []
    for module, names in sorted(table().items()):
        lines.append(f'    "{module}": """')
        line = ""
        for name in names:
            if len(line) + len(name) > 116:
                lines.append(f"        {line.strip()}")
                line = ""
            line += f"{name} "
        lines.append(f'        {line.strip()}\n    """,')
    return ESSAY + "\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    (ROOT / "_names.py").write_text(text())
