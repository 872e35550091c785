"""What the configs of networks that make images share."""

import dataclasses
from typing import Literal, get_args

from ....nn import functional as F
from ...base import ModelConfig

PUBLIC = ("BetaSchedule", "GenerativeActivation")
BetaSchedule = Literal["linear", "scaled_linear", "squaredcos_cap_v2", "cosine"]
# the activations that a config of such a network may name, as TextActivation is for text; swish is another name of silu
GenerativeActivation = Literal["silu", "swish", "relu", "gelu"]


def activation(name):
    """The function that a GenerativeActivation names.

    >>> from lucid.models.vision.generative.configs import activation
    >>> activation("relu")(lucid.tensor([-1.0, 1.0]))
    tensor([0., 1.])
    """
    if name not in get_args(GenerativeActivation):
        raise ValueError(f"an activation is one of {', '.join(get_args(GenerativeActivation))}, not {name!r}")
    return getattr(F, "silu" if name == "swish" else name)


@dataclasses.dataclass(frozen=True)
class GenerativeModelConfig(ModelConfig):
    """Square images of sample_size pixels with in_channels channels.

    >>> isinstance(lucid.models.VAEConfig(), lucid.models.GenerativeModelConfig)
    True
    """

    sample_size: int = 32
    in_channels: int = 3

    def __post_init__(self):
        for name in ("sample_size", "in_channels"):
            if getattr(self, name) < 1:
                raise ValueError(f"{type(self).__name__}: {name} is at least 1, not {getattr(self, name)}")


@dataclasses.dataclass(frozen=True)
class DiffusionModelConfig(GenerativeModelConfig):
    """The noise that a network of diffusion learns from, step by step; prediction_type: what the network gives.

    >>> lucid.models.DDPMConfig(num_train_timesteps=50).scheduler().num_train_timesteps
    50
    """

    num_train_timesteps: int = dataclasses.field(default=1000, kw_only=True)
    beta_start: float = dataclasses.field(default=0.0001, kw_only=True)
    beta_end: float = dataclasses.field(default=0.02, kw_only=True)
    beta_schedule: BetaSchedule = dataclasses.field(default="linear", kw_only=True)
    prediction_type: str = dataclasses.field(default="epsilon", kw_only=True)

    _noise = ("num_train_timesteps", "beta_start", "beta_end", "beta_schedule", "prediction_type")

    def scheduler(self):
        """DDPM's scheduler with these settings."""
        from .schedulers import DDPMScheduler

        return DDPMScheduler(**{name: getattr(self, name) for name in self._noise})

    def to_hub(self):
        return {name: value for name, value in super().to_hub().items() if name not in self._noise}  # a file of its own there
