"""How noise is added step by step, and taken away: the schedules of diffusion. Names and numbers are diffusers'.

A scheduler knows the betas of all training steps. `add_noise` makes what a network learns from; `set_timesteps` chooses the
steps that images are made in; `step` goes from one to the one before it: DDPM (Ho et al., 2020) at random, DDIM (Song et
al., 2020) without chance if eta is 0.
"""

import math

from .... import _C
from ...outputs import ModelOutput

PUBLIC = ("DDIMScheduler", "DDPMScheduler", "DiffusionScheduler")


class SchedulerOutput(ModelOutput):
    """One step back: the image before, and what the last image would be if the network were right.

    >>> lucid.models.SchedulerOutput(prev_sample=1).prev_sample
    1
    """

    fields = ("prev_sample", "pred_original_sample")


def betas_of(schedule, count, start, end):
    """The variance of the noise of every training step.

    >>> from lucid.models.vision.generative.schedulers import betas_of
    >>> betas_of("linear", 3, 0.1, 0.3)
    tensor([0.1000, 0.2000, 0.3000])
    """
    if schedule == "linear":
        return _C.linspace(start, end, count, dtype=_C.float32)
    if schedule == "scaled_linear":
        return _C.linspace(start**0.5, end**0.5, count, dtype=_C.float32) ** 2
    if schedule in ("squaredcos_cap_v2", "cosine"):
        left = lambda t: math.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2
        return _C.tensor([min(1 - left((i + 1) / count) / left(i / count), 0.999) for i in range(count)])
    raise ValueError(f"beta_schedule is linear, scaled_linear, squaredcos_cap_v2 or cosine, not {schedule!r}")


class DiffusionScheduler:
    """What schedulers share; prediction_type: what the network gives, "epsilon", "sample" or "v_prediction".

    >>> scheduler = lucid.models.DDPMScheduler(num_train_timesteps=10)
    >>> scheduler.set_timesteps(5)
    >>> scheduler.timesteps.tolist()
    [8, 6, 4, 2, 0]
    """

    def __init__(
        self,
        num_train_timesteps=1000,
        beta_start=0.0001,
        beta_end=0.02,
        beta_schedule="linear",
        clip_sample=True,
        clip_sample_range=1.0,
        prediction_type="epsilon",
    ):
        if prediction_type not in ("epsilon", "sample", "v_prediction"):
            raise ValueError(f"prediction_type is epsilon, sample or v_prediction, not {prediction_type!r}")
        self.num_train_timesteps, self.prediction_type = num_train_timesteps, prediction_type
        self.clip = clip_sample_range if clip_sample else None
        self.betas = betas_of(beta_schedule, num_train_timesteps, beta_start, beta_end)
        self.alphas_cumprod = (1.0 - self.betas).cumprod(0)
        self.set_timesteps(num_train_timesteps)

    def set_timesteps(self, num_inference_steps):
        if not 1 <= num_inference_steps <= self.num_train_timesteps:
            raise ValueError(f"steps are 1 to {self.num_train_timesteps}, not {num_inference_steps}")
        self.num_inference_steps = num_inference_steps
        self.stride = self.num_train_timesteps // num_inference_steps
        self.timesteps = _C.tensor([i * self.stride for i in reversed(range(num_inference_steps))])

    def add_noise(self, original_samples, noise, timesteps):
        """Images with the noise of their steps.

        >>> scheduler = lucid.models.DDPMScheduler()
        >>> x = lucid.ones(1, 1, 2, 2)
        >>> scheduler.add_noise(x, lucid.zeros(1, 1, 2, 2), lucid.tensor([0])).flatten().round()
        tensor([1., 1., 1., 1.])
        """
        kept = self.alphas_cumprod.to(device=original_samples.device, dtype=original_samples.dtype)[timesteps]
        kept = kept.view(-1, *[1] * (original_samples.ndim - 1))
        return kept.sqrt() * original_samples + (1 - kept).sqrt() * noise

    def _kept(self, t):
        return float(self.alphas_cumprod[t]) if t >= 0 else 1.0

    def original(self, output, kept, sample):
        """(the image without noise, the noise) as the network says."""
        if self.prediction_type == "epsilon":
            image = (sample - (1 - kept) ** 0.5 * output) / kept**0.5
        elif self.prediction_type == "sample":
            image = output
        else:
            image = kept**0.5 * sample - (1 - kept) ** 0.5 * output
        noise = output if self.prediction_type == "epsilon" else (sample - kept**0.5 * image) / (1 - kept) ** 0.5
        return (image if self.clip is None else image.clamp(-self.clip, self.clip)), noise


def _noise_like(sample, generator):
    return _C.randn(sample.shape, generator=generator).to(device=sample.device, dtype=sample.dtype)


class DDPMScheduler(DiffusionScheduler):
    """Steps of the denoising diffusion model, each with fresh noise.

    >>> scheduler = lucid.models.DDPMScheduler()
    >>> x = lucid.ones(1, 3, 2, 2)
    >>> tuple(scheduler.step(lucid.zeros(1, 3, 2, 2), 999, x).prev_sample.shape)
    (1, 3, 2, 2)
    """

    def step(self, model_output, timestep, sample, generator=None):
        before = timestep - self.stride
        kept, kept_before = self._kept(timestep), self._kept(before)
        alpha = kept / kept_before
        image, _ = self.original(model_output, kept, sample)
        mean = kept_before**0.5 * (1 - alpha) / (1 - kept) * image + alpha**0.5 * (1 - kept_before) / (1 - kept) * sample
        if timestep > 0:
            variance = max((1 - kept_before) / (1 - kept) * (1 - alpha), 1e-20)
            mean = mean + variance**0.5 * _noise_like(sample, generator)
        return SchedulerOutput(prev_sample=mean, pred_original_sample=image)


class DDIMScheduler(DiffusionScheduler):
    """Steps of the denoising diffusion implicit model: few, and without chance if eta is 0.

    >>> scheduler = lucid.models.DDIMScheduler()
    >>> scheduler.set_timesteps(50)
    >>> tuple(scheduler.step(lucid.zeros(1, 3, 2, 2), 980, lucid.ones(1, 3, 2, 2)).prev_sample.shape)
    (1, 3, 2, 2)
    """

    def step(self, model_output, timestep, sample, eta=0.0, generator=None):
        before = timestep - self.stride
        kept, kept_before = self._kept(timestep), self._kept(before)
        image, noise = self.original(model_output, kept, sample)
        spread = eta * ((1 - kept_before) / (1 - kept) * (1 - kept / kept_before)) ** 0.5
        result = kept_before**0.5 * image + (1 - kept_before - spread**2) ** 0.5 * noise
        if eta > 0:
            result = result + spread * _noise_like(sample, generator)
        return SchedulerOutput(prev_sample=result, pred_original_sample=image)
