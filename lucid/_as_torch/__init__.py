"""`import torch` gives Lucid: the switch behind `python -m lucid program.py` and `lucid.as_torch()`.

>>> import subprocess, sys
>>> program = "import lucid; lucid.as_torch(); import torch, torch.nn.functional as F; print(torch is lucid, torch.float64)"
>>> print(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip())
True torch.float64
"""

from .switch import as_torch

__all__ = ["as_torch"]
