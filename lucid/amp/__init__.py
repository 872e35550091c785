"""Mixed precision: autocast chooses the dtype of each op, and a scaled loss keeps small gradients from underflowing.

>>> model = lucid.nn.Linear(4, 2)
>>> optimizer = lucid.optim.SGD(model.parameters(), lr=0.1)
>>> scaler = lucid.amp.GradScaler("cpu")
>>> with lucid.autocast("cpu"):
...     output = model(lucid.ones(3, 4))
...     loss = lucid.nn.functional.mse_loss(output, lucid.zeros(3, 2))
>>> output.dtype, loss.dtype
(lucid.bfloat16, lucid.float32)
>>> scaler.scale(loss).backward()
>>> scaler.step(optimizer)
>>> scaler.update()
>>> model.weight.grad.dtype
lucid.float32
"""

from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
