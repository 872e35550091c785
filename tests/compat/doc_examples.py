"""The examples of PyTorch's documentation, run with PyTorch and with Lucid under its name; prints what differs.

They are read from the docstrings of the PyTorch that is installed. Every statement runs after manual_seed(0) in both libraries:
what it raises, prints and shows is compared, and the variables there are at the end. What PyTorch itself cannot run (undefined
names, no GPU) is counted apart, and so is text that differs while values agree. What differs between two runs of PyTorch
(uninitialised memory, filled differently) is not compared.

    PYTHONPATH=build/release/pkg python tests/compat/doc_examples.py [part of a name ...]
"""

import ast
import collections
import contextlib
import importlib
import inspect
import io
import os
import pathlib
import pickle
import pkgutil
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import warnings

SPACES = """Tensor nn nn.functional nn.init nn.utils nn.utils.rnn nn.utils.parametrize nn.utils.parametrizations nn.utils.prune
nn.utils.stateless nn.attention nn.parameter optim optim.lr_scheduler optim.swa_utils utils.data utils.checkpoint utils.dlpack
autograd autograd.functional autograd.graph autograd.grad_mode autograd.function autograd.gradcheck autograd.anomaly_mode
special amp linalg distributions func testing serialization random hub overrides""".split()
OUT = re.compile(  # not Lucid's, or not yet: counted nowhere
    r"torch\.(sparse|compile|export|jit|fx|fft|cuda|distributed|quantiz|ao|onnx|nested|masked|library|cond|stft|istft|Stream|Event)"
    r"|quantize|sparse|_compressed|\.stft|\.istft|\.q_|int_repr"
)
PRELUDE = """
import copy, math, os, warnings
import numpy as np
import torch
from torch import Tensor, nn, optim
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset
"""
MADE = {  # names that examples use without defining them, in an order in which they can be made
    "model": "nn.Linear(3, 2)",
    "net": "nn.Linear(3, 2)",
    "optimizer": "torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)",
    "loss_fn": "nn.MSELoss()",
    "input": "torch.arange(12.0).reshape(4, 3) / 10",
    "target": "torch.ones(4, 2)",
    "dataset": "[(torch.full((3,), float(i)), torch.full((2,), float(i))) for i in range(8)]",
    "loader": "DataLoader(dataset, batch_size=2)",
    "train": "lambda *a, **k: None",
    "validate": "lambda *a, **k: 1.0",
    "device": "'cpu'",
    "x": "torch.arange(12.0).reshape(4, 3)",
    "m": "nn.Linear(3, 2)",
}
# modules of the names that examples use without importing them
HOMES = """nn nn.utils nn.utils.rnn nn.utils.prune nn.utils.parametrizations nn.init optim optim.lr_scheduler optim.swa_utils
utils.data autograd autograd.function distributions""".split()
UNRUNNABLE = re.compile(r"cuda|xpu|No module named|C\+\+ compiler|not compiled|No such file|accelerator|internet", re.I)


def blocks(doc):
    """The parts of a docstring that are code: after >>>, or indented below a line that ends with ::"""
    lines, at = inspect.cleandoc(doc).split("\n"), 0
    while at < len(lines):
        line = lines[at]
        if re.match(r"\s*>>>", line):
            start = at
            while at < len(lines) and re.match(r"\s*(>>>|\.\.\.( |$))", lines[at]):
                at += 1
            yield "\n".join(text.strip()[3:].removeprefix(" ") for text in lines[start:at])
            continue
        at += 1
        if re.search(r"::\s*(python)?\s*$", line) and not re.match(r"\s*\.\. (?!code)", line):
            start, depth = at, len(line) - len(line.lstrip())
            while at < len(lines) and (not lines[at].strip() or len(lines[at]) - len(lines[at].lstrip()) > depth):
                at += 1
            if any(">>>" in text for text in lines[start:at]):
                at = start
            else:
                yield textwrap.dedent("\n".join(lines[start:at]))


def statements(doc):
    found, waiting = [], ""
    for block in blocks(doc):  # a statement may go on after text between
        for source in (waiting + block, block):
            with contextlib.suppress(SyntaxError):
                found += map(ast.unparse, ast.parse(textwrap.dedent(source)).body)
                waiting = ""
                break
        else:
            waiting = block + "\n"
    return found


def collect(words):
    """name -> statements of all examples"""
    seen, found = set(), {}

    def take(name, thing):
        doc = getattr(thing, "__doc__", None)
        if isinstance(doc, str) and doc not in seen and not OUT.search(name) and any(w in name for w in words or ("",)):
            seen.add(doc)
            if code := statements(doc):
                found[name] = code

    import torch

    for space in ("", *SPACES):
        home = torch.Tensor if space == "Tensor" else importlib.import_module(f"torch.{space}".rstrip("."))
        for name in sorted(n for n in dir(home) if not n.startswith("_")):
            thing, full = getattr(home, name, None), f"torch.{space}.{name}".replace("..", ".")
            if inspect.ismodule(thing) or not (getattr(thing, "__module__", None) or "torch").startswith("torch"):
                continue
            take(full, thing)
            if inspect.isclass(thing) and not issubclass(thing, torch.Tensor):
                for method, value in vars(thing).items():
                    if not method.startswith("_"):
                        take(f"{full}.{method}", value)
    return found


def clean(text):
    return re.sub(r"0x[0-9a-f]{6,}", "0x", re.sub(r"\blucid\b", "torch", text))


def plain(x, depth=0):
    """What is compared of a value: nothing of either library's types."""
    import torch

    if depth > 4:
        return "..."
    if isinstance(x, torch.Tensor):
        kind = "tensor", clean(str(x.dtype)), tuple(x.shape), bool(x.requires_grad)
        with contextlib.suppress(Exception):  # some have no values to look at
            y = x.detach().float() if x.dtype == torch.bfloat16 else x.detach()
            y = y.resolve_conj().resolve_neg().numpy().reshape(-1)
            return (*kind, y[:: max(1, y.size // 500)].tolist())
        return kind
    if isinstance(x, torch.nn.Module):
        return "module", clean(repr(x)), plain(dict(x.state_dict()), depth + 1)
    if isinstance(x, (bool, int, float, complex, str, bytes, type(None))):
        return clean(x) if isinstance(x, str) else x
    if isinstance(x, dict):
        return {clean(str(k)): plain(v, depth + 1) for k, v in x.items()}
    if isinstance(x, (tuple, list)):
        return "named" if hasattr(x, "n_fields") else type(x).__name__, [plain(v, depth + 1) for v in x]
    return "callable" if callable(x) or inspect.ismodule(x) or inspect.isgenerator(x) else type(x).__name__


def supply(name, space):
    """Make a name that an example takes for granted."""
    if name in MADE:
        for other, source in MADE.items():
            if other not in space and (other == name or re.search(rf"\b{other}\b", MADE[name])):
                space[other] = eval(source, space)  # noqa: S307 (of this file)
        return True
    homes = [sys.modules.get(f"torch.{h}") for h in HOMES]
    found = [getattr(h, name) for h in homes if name and h and hasattr(h, name)]
    space.update({name: found[0]} if found else {})
    return bool(found)


def run_one(code):
    """What each statement printed, showed and raised; the variables at the end."""
    import torch

    space, results = {"__name__": "__main__"}, []
    exec(PRELUDE, space)  # noqa: S102 (of this file)
    known = {*space, *MADE, "_", "__builtins__", "__warningregistry__"}
    torch.manual_seed(0)
    for source in code:
        for _ in range(8):
            out, shown, error = io.StringIO(), [], None
            sys.displayhook = lambda value, shown=shown: value is None or (shown.append(plain(value)), print(repr(value)))
            try:
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                    exec(compile(ast.Interactive(ast.parse(source).body), "<example>", "single"), space)  # noqa: S102
            except Exception as raised:  # noqa: BLE001 (whatever PyTorch raises is the specification)
                if isinstance(raised, NameError) and raised.name not in space and supply(raised.name, space):
                    known.add(raised.name)
                    continue
                error = [k.__name__ for k in type(raised).__mro__], clean(str(raised))[:200]
            break
        results.append((clean(out.getvalue()), shown, error))
    return results, {n: plain(v) for n, v in space.items() if n not in known}


def serve(library, source, target):
    """Run examples in this process; what is done is in `target`, so that a crash costs one example."""
    warnings.simplefilter("ignore")
    if library == "lucid":
        import lucid

        sys.modules["torch"] = lucid
        for info in pkgutil.walk_packages(lucid.__path__, "lucid.", onerror=lambda n: None):
            with contextlib.suppress(Exception):
                sys.modules["torch." + info.name[6:]] = importlib.import_module(info.name)
    import torch

    for home in HOMES:
        importlib.import_module(f"torch.{home}")
    torch.set_num_threads(1)
    examples, done = pickle.loads(pathlib.Path(source).read_bytes()), load(target)
    os.chdir(tempfile.mkdtemp(prefix="examples"))

    def late(*_):
        raise TimeoutError("too long")

    signal.signal(signal.SIGALRM, late)
    with open(target, "ab") as f:
        for name in [n for n in examples if n not in done]:
            place = f.tell()
            pickle.dump((name, None), f)
            f.flush()
            signal.alarm(30)
            answer = None
            with contextlib.suppress(Exception):
                answer = run_one(examples[name])
            signal.alarm(0)
            f.seek(place)
            f.truncate()
            pickle.dump((name, answer), f)
            f.flush()
            torch.set_default_dtype(torch.float32)
            torch.set_printoptions(profile="default", sci_mode=None)
            torch.set_grad_enabled(True)
            torch.set_default_device(None)
            torch.use_deterministic_algorithms(False)
            torch.autograd.set_detect_anomaly(False)


def load(target):
    found = {}
    with contextlib.suppress(EOFError, FileNotFoundError), open(target, "rb") as f:
        while True:
            found.update([pickle.load(f)])
    return found


def near(a, b):
    if isinstance(a, bool) or isinstance(b, bool) or not isinstance(a, (int, float, complex)):
        if type(a) is not type(b):
            return False
        if isinstance(a, (list, tuple)):
            return len(a) == len(b) and all(map(near, a, b))
        return list(a) == list(b) and all(near(a[k], b[k]) for k in a) if isinstance(a, dict) else a == b
    if not isinstance(b, (int, float, complex)):
        return False
    return a == b or (a != a and b != b) or abs(a - b) <= 1e-5 + 1e-4 * abs(b)


def judge(code, theirs, again, ours):
    """(equal, text, differ or unrunnable; what differs)"""
    if theirs is None or ours is None or again is None:
        return ("differ", ["crashed, or took too long"]) if ours is None else ("unrunnable", [])
    wrong, text, ran = [], [], 0
    for source, (out, shown, error), (out2, _, _), (mine, seen, raised) in zip(code, theirs[0], again[0], ours[0]):
        if error and (error[0][0] in ("NameError", "ModuleNotFoundError", "FileNotFoundError") or UNRUNNABLE.search(error[1])):
            continue
        ran += 1
        if error and not (raised and error[0][0] in raised[0]):
            wrong.append(f"{source}\n    raises {error[0][0]} ({error[1]}), here {raised and raised[0][0]}")
        elif raised and not error:
            wrong.append(f"{source}\n    {raised[0][0]}: {raised[1]}")
        elif out == out2 and not near(shown, seen):
            wrong.append(f"{source}\n    shows\n{out[:600]}    here\n{mine[:600]}")
        elif out == out2 and out != mine:
            text.append(f"{source}\n    shows\n{out[:600]}    here\n{mine[:600]}")
    for name, value in theirs[1].items() if not wrong else ():
        if near(value, again[1].get(name)) and not near(value, ours[1].get(name)):
            wrong.append(f"{name} is {str(value)[:300]}\n    here {str(ours[1].get(name))[:300]}")
    return "differ" if wrong else "text" if text else "equal" if ran else "unrunnable", wrong + text


def main(words):
    counts, me = collections.Counter(), [sys.executable, __file__]
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "examples")
        subprocess.run([*me, "--collect", source, *words], check=True, stderr=subprocess.DEVNULL)
        examples, answers = pickle.loads(source.read_bytes()), []
        for library, fill in (("torch", "1"), ("torch", "77"), ("lucid", "1")):
            target = pathlib.Path(folder, library + fill)
            environment = {**os.environ, "MALLOC_PERTURB_": fill, "OMP_NUM_THREADS": "1"}
            while len(done := load(target)) < len(examples):
                subprocess.run([*me, "--serve", library, source, target], env=environment, stdin=subprocess.DEVNULL)
                if len(load(target)) == len(done):
                    sys.exit(f"{library} cannot be run")
            answers.append(done)
    for name, code in examples.items():
        kind, notes = judge(code, *(answer[name] for answer in answers))
        counts[kind] += 1
        if kind in ("differ", "text"):
            print(f"{kind}: {name}", *(textwrap.indent(note, "  ") for note in notes), sep="\n")
    print(f"{len(examples)} examples:", ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--collect"]:
        pathlib.Path(sys.argv[2]).write_bytes(pickle.dumps(collect(sys.argv[3:])))
    elif sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:])
    else:
        main(sys.argv[1:])
