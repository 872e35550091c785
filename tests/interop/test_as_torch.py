"""The switch: `python -m lucid program.py`, `-m`, `-c`, `lucid.as_torch()`, the start-up hook. In processes of their own."""

import os
import subprocess
import sys
import textwrap

import pytest

import lucid

PATH = os.path.dirname(os.path.dirname(os.path.abspath(lucid.__file__)))


def python(*args, **environment):
    env = {k: v for k, v in os.environ.items() if k not in ("LUCID_AS_TORCH", "PYTHONPATH")}
    env |= {"PYTHONPATH": PATH, "OMP_NUM_THREADS": "1"} | environment
    return subprocess.run([sys.executable, *map(str, args)], capture_output=True, text=True, env=env, timeout=300)


def output(*args, **environment):
    done = python(*args, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def program(tmp_path, text, name="program.py"):
    path = tmp_path / name
    path.write_text(textwrap.dedent(text))
    return path


IDENTITY = """
import sys
import torch, torch.nn.functional as F
from torch.utils.data import DataLoader
import lucid
assert torch is lucid and F is lucid.nn.functional and DataLoader is lucid.utils.data.DataLoader
assert sys.modules["torch.nn"] is lucid.nn and torch.Tensor is lucid.Tensor and torch.__name__ == "torch"
import importlib.metadata
assert importlib.metadata.version("torch") == torch.__version__ and torch.__version__ >= (2, 1) and "2.0" < torch.__version__
x = torch.ones(2, 3)
print(torch.float64, x.shape, type(x), x.type(), torch.tensor([1.0], dtype=torch.float64))
"""


def test_script_module_and_code(tmp_path):
    path = program(tmp_path, IDENTITY + "print(sys.argv[1:], __name__, __file__ == sys.argv[0])\n")
    wanted = "torch.float64 torch.Size([2, 3]) <class 'torch.Tensor'> torch.FloatTensor "
    wanted += "tensor([1.], dtype=torch.float64)\n"
    assert output("-m", "lucid", path, "a", "-b") == wanted + "['a', '-b'] __main__ True\n"
    assert output("-m", "lucid", "-c", IDENTITY) == wanted
    (tmp_path / "package").mkdir()
    program(tmp_path / "package", IDENTITY + "print(sys.argv[1:], __name__)\n", "__main__.py")
    done = subprocess.run(
        [sys.executable, "-m", "lucid", "-m", "package", "x"],
        capture_output=True, text=True, cwd=tmp_path, env=os.environ | {"PYTHONPATH": PATH},
    )  # fmt: skip
    assert done.stdout == wanted + "['x'] __main__\n", done.stderr


def test_inspect_knows_the_module_that_runs_the_program(tmp_path):
    text = "import inspect, lucid.__main__\n"
    text += "print([inspect.getmodule(f.frame).__name__ for f in inspect.stack() if f.filename.endswith('__main__.py')])\n"
    assert output("-m", "lucid", program(tmp_path, text)) == "['lucid.__main__', 'lucid.__main__']\n"


def test_without_arguments_it_reports():
    assert "instruction set:" in output("-m", "lucid")
    assert "usage" in output("-m", "lucid", "--help")
    assert python("-m", "lucid", "--nonsense").returncode == 2


def test_in_code_and_back():
    assert output(
        "-c",
        textwrap.dedent("""
        import sys, lucid
        with lucid.as_torch() as torch_again:
            import torch.linalg
            with lucid.as_torch():  # on already: the inner block changes nothing
                pass
            assert torch.linalg is lucid.linalg and lucid.as_torch.installed and torch_again is lucid
            print(torch.float32, lucid.version.__version__)
        left = [m for m in sys.modules if m.startswith("torch")]
        print(lucid.float32, lucid.__name__, lucid.version.__version__, lucid.__version__, left)
        lucid.as_torch()
        import torch
        assert torch is lucid
        lucid.as_torch.undo()
        assert "torch" not in sys.modules and not hasattr(lucid, "nothing")
        """),
    ).splitlines() == ["torch.float32 2.13.0+lucid", f"lucid.float32 lucid {lucid.__version__} {lucid.__version__} []"]


def test_refuses_beside_pytorch():
    done = python("-c", "import torch, lucid; lucid.as_torch()")
    assert done.returncode == 1 and "PyTorch is imported already" in done.stderr


def test_startup_hook_and_children(tmp_path):
    folder = output("-m", "lucid", "--startup").strip()
    both = {"PYTHONPATH": os.pathsep.join([folder, PATH])}
    assert output("-c", "import torch; print(torch.__version__)", LUCID_AS_TORCH="1", **both) == "2.13.0+lucid\n"
    assert "+lucid" not in output("-c", "import torch; print(torch.__version__)", **both)
    path = program(
        tmp_path,
        """
        import torch, torch.multiprocessing as mp

        def work(rank, queue):
            queue.put((rank, torch.__version__))

        if __name__ == "__main__":
            queue = mp.get_context("spawn").SimpleQueue()
            mp.spawn(work, (queue,), nprocs=2)
            print(sorted(queue.get() for _ in range(2)))
        """,
    )
    assert output("-m", "lucid", path) == "[(0, '2.13.0+lucid'), (1, '2.13.0+lucid')]\n"


def test_missing_names(tmp_path):
    path = program(
        tmp_path,
        """
        import torch
        from torch.nothing import Thing

        class Mine(Thing):
            pass

        @torch.jit.nonsense
        def f(x):
            return x + 1

        print(f(1), hasattr(torch, "npu"), torch.nn.Nonsense(3))
        """,
    )
    done = python("-m", "lucid", path)
    assert "torch.nothing is not in Lucid (asked for at" in done.stderr and f"{path}:3" in done.stderr
    done = python("-m", "lucid", "-c", "import torch\ntorch.nn.Nonsense")
    assert "AttributeError: torch.nn.Nonsense is not in Lucid (asked for at <string>:2)" in done.stderr
    done = python("-m", "lucid", "--missing", path)
    assert done.returncode == 0 and done.stdout.startswith("2 False"), done.stderr
    listed = [line.split()[0] for line in done.stderr.splitlines() if line.startswith("  torch")]
    assert listed == ["torch.jit.nonsense", "torch.nn.Nonsense", "torch.nothing"]
    assert f"({path}:12)" in done.stderr and "3 names" in done.stderr


PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
import torch.nn.functional as F

torch.manual_seed(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.drop, self.fc = nn.Conv2d(1, 8, 3), nn.Dropout(0.25), nn.Linear(8 * 9, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2)
        return F.log_softmax(self.fc(torch.flatten(self.drop(x), 1)), dim=1)


data = TensorDataset(torch.randn(64, 1, 8, 8), torch.randint(0, 10, (64,)))
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Net().to(device)
optimizer = optim.Adadelta(model.parameters(), lr=1.0)
scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
for epoch in range(2):
    model.train()
    for i, (x, y) in enumerate(DataLoader(data, batch_size=16, shuffle=True)):
        optimizer.zero_grad()
        loss = F.nll_loss(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch} batch {i} loss {loss.item():.4f}")
    scheduler.step()
model.eval()
with torch.no_grad():
    out = model(data.tensors[0])
print(model)
print("accuracy", (out.argmax(1) == data.tensors[1]).float().mean().item(), out.shape, out.dtype)
"""


def test_a_program_prints_what_it_prints_on_pytorch(tmp_path):
    path = program(tmp_path, PROGRAM)
    assert output("-m", "lucid", path) == output(path)


@pytest.mark.parametrize("writer", ["PyTorch", "Lucid"])
def test_checkpoints_load_either_way(tmp_path, writer):
    write = "import torch; torch.manual_seed(0); torch.save(torch.nn.Linear(2, 2).state_dict(), 'm.pt')"
    read = "import torch; print([p.tolist() for p in torch.load('m.pt').values()])"

    def run(library, code):
        on = ["-m", "lucid"] if library == "Lucid" else []
        env = os.environ | {"PYTHONPATH": PATH}
        return subprocess.run([sys.executable, *on, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)

    assert run(writer, write).returncode == 0
    seen = [run(library, read).stdout for library in ("PyTorch", "Lucid")]
    assert seen[0] == seen[1] and seen[0].startswith("[[[")
