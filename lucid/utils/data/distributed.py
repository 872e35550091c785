"""`DistributedSampler`, where PyTorch has it.

>>> list(lucid.utils.data.distributed.DistributedSampler(range(4), num_replicas=2, rank=1, shuffle=False))
[1, 3]
"""

from .sampler import DistributedSampler

__all__ = ["DistributedSampler"]
