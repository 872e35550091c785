"""Uses of packages for images: segmentation, medical images, distances, diffusion. `uses.py` says how they are written."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from uses import steps


def segmentation_models_pytorch__unet():
    import segmentation_models_pytorch as smp

    model, loss = smp.Unet("resnet18", encoder_weights=None, classes=2), smp.losses.DiceLoss("multiclass")
    y = torch.randint(0, 2, (2, 64, 64))
    return steps(model, torch.randn(2, 3, 64, 64), lambda p: loss(p, y), n=2)


def segmentation_models_pytorch__losses():
    import segmentation_models_pytorch as smp

    losses, y = smp.losses, torch.randint(0, 3, (1, 64, 64))
    p = smp.FPN("mobilenet_v2", encoder_weights=None, classes=3).eval()(torch.randn(1, 3, 64, 64))
    kinds = losses.JaccardLoss, losses.FocalLoss, losses.LovaszLoss, losses.TverskyLoss
    counts = smp.metrics.get_stats(p.argmax(1), y, mode="multiclass", num_classes=3)
    return [p.abs().mean(), *(kind("multiclass")(p, y) for kind in kinds), smp.metrics.iou_score(*counts, reduction="micro")]


def monai__unet():
    from monai.losses import DiceCELoss, FocalLoss
    from monai.networks.nets import UNet

    model = UNet(spatial_dims=3, in_channels=1, out_channels=2, channels=(4, 8, 16), strides=(2, 2), num_res_units=1)
    y = torch.randint(0, 2, (2, 1, 16, 16, 16))
    dice, focal = DiceCELoss(to_onehot_y=True, softmax=True), FocalLoss(to_onehot_y=True)
    return steps(model, torch.randn(2, 1, 16, 16, 16), lambda p: dice(p, y) + focal(p, y))


def monai__transforms():
    from monai.data import MetaTensor
    from monai.inferers import sliding_window_inference
    from monai.metrics import DiceMetric, HausdorffDistanceMetric
    from monai.transforms import Compose, EnsureChannelFirst, GaussianSmooth, RandAffine, Resize, Rotate, ScaleIntensity

    chain = Compose(
        [
            EnsureChannelFirst(channel_dim="no_channel"),
            ScaleIntensity(),
            Resize((20, 16)),
            RandAffine(prob=1.0, rotate_range=0.5, padding_mode="zeros"),
            GaussianSmooth(1.0),
            Rotate(0.3),
        ]
    )
    chain.set_random_state(0)
    y = chain(MetaTensor(torch.rand(24, 24)))
    z = sliding_window_inference(y[None].as_tensor(), (8, 8), 2, nn.Conv2d(1, 2, 3, padding=1))
    a, b = ((torch.rand(2, 3, 8, 8) > 0.5).float() for _ in range(2))
    return [y.as_tensor(), y.affine, z, DiceMetric()(a, b), HausdorffDistanceMetric()(a, b)]


def monai__swin_unetr():
    from monai.networks.nets import SwinUNETR

    model = SwinUNETR(in_channels=1, out_channels=2, feature_size=12, spatial_dims=2).eval()
    x = torch.randn(1, 1, 64, 64, requires_grad=True)
    y = model(x)
    y.square().mean().backward()
    return [y.abs().mean(), x.grad.abs().sum()]


def lpips__distance():
    import lpips

    model = lpips.LPIPS(net="alex", pretrained=False, pnet_rand=True, verbose=False)
    a, b = torch.rand(2, 3, 64, 64, requires_grad=True), torch.rand(2, 3, 64, 64)
    d = model(a, b, normalize=True)
    d.sum().backward()
    return [d, a.grad.abs().sum()]


def pytorch_msssim__ssim():
    from pytorch_msssim import ms_ssim, ssim

    a, b = torch.rand(2, 3, 176, 176, requires_grad=True), torch.rand(2, 3, 176, 176)
    y = ssim(a, b, data_range=1.0) + ms_ssim(a, b, data_range=1.0)
    y.backward()
    return [y, a.grad.abs().sum()]


def lightly__losses():
    from lightly.loss import BarlowTwinsLoss, DCLLoss, NegativeCosineSimilarity, NTXentLoss, TiCoLoss, VICRegLoss

    a, b = torch.randn(8, 16, requires_grad=True), torch.randn(8, 16)
    found = []
    for kind in (NTXentLoss, BarlowTwinsLoss, NegativeCosineSimilarity, VICRegLoss, DCLLoss, TiCoLoss):
        value = kind()(a, b)
        found += [value, torch.autograd.grad(value, a)[0]]
    return found


def efficientnet_pytorch__steps():
    from efficientnet_pytorch import EfficientNet

    model = EfficientNet.from_name("efficientnet-b0", num_classes=4, image_size=64)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    return steps(model, torch.randn(4, 3, 64, 64), lambda p: p.square().mean(), optimizer, n=2)


def open_clip_torch__train():
    import open_clip
    from open_clip.model import CLIP

    vision = {"image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8}
    text = {"context_length": 8, "vocab_size": 64, "width": 32, "heads": 2, "layers": 2}
    model, loss = CLIP(embed_dim=16, vision_cfg=vision, text_cfg=text), open_clip.ClipLoss()
    images, words = torch.randn(4, 3, 32, 32), torch.randint(0, 63, (4, 8))
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=1e-3), []
    for _ in range(3):
        optimizer.zero_grad()
        losses.append(loss(*model(images, words)))
        losses[-1].backward()
        optimizer.step()
    return [losses, model.encode_image(images, normalize=True), open_clip.tokenize(["a picture of a cat"])]


def diffusers__unet():
    from diffusers import DDIMPipeline, DDIMScheduler, DDPMScheduler, UNet2DModel

    model = UNet2DModel(
        sample_size=16, in_channels=1, out_channels=1, layers_per_block=1, norm_num_groups=8, block_out_channels=(16, 32),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=8,
    )  # fmt: skip
    schedule, optimizer = DDPMScheduler(num_train_timesteps=100), torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, losses = torch.randn(2, 1, 16, 16), []
    for _ in range(2):
        noise, at = torch.randn_like(x), torch.randint(0, 100, (2,))
        loss = F.mse_loss(model(schedule.add_noise(x, noise, at), at).sample, noise)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss)
    pipeline = DDIMPipeline(model.eval(), DDIMScheduler(num_train_timesteps=100))
    pipeline.set_progress_bar_config(disable=True)
    images = pipeline(1, torch.Generator().manual_seed(0), num_inference_steps=4, output_type="np").images
    return [losses, torch.tensor(images)]


def diffusers__schedulers():
    import inspect

    import diffusers as d

    found = []
    for kind in (
        d.DDPMScheduler, d.DDIMScheduler, d.PNDMScheduler, d.LMSDiscreteScheduler, d.EulerAncestralDiscreteScheduler,
        d.DPMSolverMultistepScheduler, d.HeunDiscreteScheduler, d.UniPCMultistepScheduler, d.FlowMatchEulerDiscreteScheduler,
    ):  # fmt: skip
        schedule, generator = kind(), torch.Generator().manual_seed(3)
        schedule.set_timesteps(6)
        settings = {"generator": generator} if "generator" in inspect.signature(schedule.step).parameters else {}
        x = torch.randn(1, 2, 4, 4, generator=generator) * getattr(schedule, "init_noise_sigma", 1.0)
        for at in schedule.timesteps:
            y = schedule.scale_model_input(x, at) if hasattr(schedule, "scale_model_input") else x
            x = schedule.step(torch.tanh(y) * 0.3, at, x, **settings).prev_sample
        found.append(x)
    return found


def diffusers__autoencoder():
    from diffusers import AutoencoderKL

    kinds = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
    model = AutoencoderKL(3, 3, **kinds, block_out_channels=(16, 32), latent_channels=4, norm_num_groups=8)
    x = torch.randn(2, 3, 32, 32)
    posterior = model.encode(x).latent_dist
    loss = F.mse_loss(model.decode(posterior.mode()).sample, x) + 1e-3 * posterior.kl().mean()
    loss.backward()
    return [loss, posterior.mode(), sum(p.grad.double().abs().sum() for p in model.parameters())]


def diffusers__lora():
    from diffusers import UNet2DConditionModel
    from peft import LoraConfig

    model = UNet2DConditionModel(
        sample_size=16, layers_per_block=1, block_out_channels=(16, 32), cross_attention_dim=24, norm_num_groups=8,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        attention_head_dim=4,
    )  # fmt: skip
    model.requires_grad_(False)
    model.add_adapter(LoraConfig(r=4, lora_alpha=4, init_lora_weights="gaussian", target_modules=["to_k", "to_q", "to_v"]))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    x, at, words = torch.randn(2, 4, 16, 16), torch.tensor([3, 9]), torch.randn(2, 5, 24)
    losses = []
    for _ in range(3):
        loss = model(x, at, words).sample.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss)
    return losses


def denoising_diffusion_pytorch__steps():
    from denoising_diffusion_pytorch import GaussianDiffusion, Unet

    model = Unet(dim=16, dim_mults=(1, 2), channels=3, attn_dim_head=8, attn_heads=2)
    diffusion = GaussianDiffusion(model, image_size=16, timesteps=20, sampling_timesteps=4)
    loss = diffusion(torch.rand(2, 3, 16, 16))
    loss.backward()
    return [loss, sum(p.grad.abs().sum() for p in model.parameters()), diffusion.sample(batch_size=2)]


def torch_pruning__resnet():
    import torch_pruning
    from torchvision.models import resnet18

    model, x = resnet18(weights=None).eval(), torch.randn(1, 3, 64, 64)
    count = torch_pruning.utils.count_ops_and_params
    before = count(model, x)
    importance = torch_pruning.importance.MagnitudeImportance(p=2)
    torch_pruning.pruner.MagnitudePruner(model, x, importance, pruning_ratio=0.5, ignored_layers=[model.fc]).step()
    return [*before, *count(model, x), model(x).abs().mean()]


def torchinfo__summary():
    from torchinfo import summary

    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5))
    a, b = summary(model, (2, 3, 8, 8), verbose=0), summary(nn.LSTM(4, 8, 2, batch_first=True), (2, 5, 4), verbose=0)
    return [[s.total_params, s.trainable_params, s.total_mult_adds, s.total_output_bytes, len(str(s))] for s in (a, b)]


def pytorch_tabnet__classifier():
    from pytorch_tabnet.tab_model import TabNetClassifier

    rng = np.random.RandomState(0)
    x, y = rng.randn(64, 6).astype("float32"), rng.randint(0, 3, 64)
    model = TabNetClassifier(n_d=4, n_a=4, n_steps=2, seed=0, verbose=0, device_name="cpu")
    model.fit(x, y, max_epochs=2, batch_size=32, virtual_batch_size=16)
    return [torch.tensor(model.predict_proba(x)), torch.tensor(model.feature_importances_), model.history["loss"]]
