"""Everything that matters, in a Python that has no NumPy."""

import subprocess
import sys

BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("numpy", "torch"):
            raise ImportError(f"{name} is blocked")

sys.path[:0] = PATH
sys.meta_path.insert(0, Blocked())
"""
PROGRAM = """
import copy, io, pickle
try:
    import numpy
except ImportError:
    pass
else:
    raise SystemExit("NumPy is not blocked")
import lucid

x = lucid.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
y = (x * x + x.exp()).sum()
y.backward()
assert repr(x) == "tensor([[1., 2.],\\n        [3., 4.]], requires_grad=True)", repr(x)
assert [round(v, 3) for v in x.grad.reshape(-1).tolist()] == [4.718, 11.389, 26.086, 62.598], x.grad
assert repr(y).endswith("grad_fn=<SumBackward0>)"), repr(y)
assert x[1, :1].tolist() == [3.0] and (x > 1.5).tolist() == [[False, True], [True, True]]

p = lucid.nn.Parameter(lucid.tensor([1.0, 2.0]))
for thing in (x.detach(), p, lucid.float32, lucid.device("cpu"), x.shape):
    again = pickle.loads(pickle.dumps(thing))
    assert type(again) is type(thing)
    same = again == thing
    assert same if isinstance(same, bool) else bool(same.all())
    copy.deepcopy(thing)

z = lucid.tensor([0.5], dtype=lucid.float64, requires_grad=True)
assert lucid.autograd.gradcheck(lambda z: z * z.exp(), z)
assert lucid.autograd.functional.hessian(lambda z: (z * z * z).sum(), z).tolist() == [[3.0]]
lucid.testing.assert_close(lucid.ones(2), lucid.ones(2))
lucid.manual_seed(0)
lucid.rand(3), lucid.randn(3), lucid.randint(0, 5, (3,))
try:
    x.detach().numpy()
except (ImportError, RuntimeError):
    pass
else:
    raise SystemExit("numpy() worked without NumPy")
assert "numpy" not in sys.modules
print("done")
"""


def test_without_numpy():
    code = BLOCK.replace("PATH", repr([p for p in sys.path if p])) + PROGRAM
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "done"
