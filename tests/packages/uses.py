"""Uses of packages that are written for PyTorch: each function gives numbers that must be PyTorch's.

Run by `compare.py` in two processes, one in which `torch` is PyTorch and one in which it is Lucid. Names are
<package>__<use>; a function gives a tensor, a number, or a list or dict of these.
Weights come from the seed, which is set before each use.
"""

import os
import tempfile

import torch
from torch import nn
from torch.nn import functional as F

os.environ.setdefault("HF_HUB_OFFLINE", "1")


def steps(model, inputs, loss_of, optimizer=None, n=3):
    """Losses of some steps of training, and a sum of the weights afterwards."""
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(n):
        optimizer.zero_grad()
        loss = loss_of(model(inputs))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [*losses, sum(p.detach().double().abs().sum().item() for p in model.parameters()) / 1e3]


# ---- files, shapes, sums ----
def safetensors__save_and_load():
    from safetensors.torch import load_file, save_file

    model = nn.Linear(4, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.safetensors")
        save_file(model.state_dict(), path)
        found = load_file(path)
    return [found["weight"], found["bias"]]


def safetensors__save_model():
    from safetensors.torch import load_model, save_model

    a, b = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)), nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.safetensors")
        save_model(a, path)
        load_model(b, path)
    return b(torch.ones(1, 4))


def einops__rearrange():
    from einops import einsum, rearrange, reduce, repeat

    x = torch.randn(2, 3, 4, 4)
    return [
        rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=2, q=2),
        reduce(x, "b c h w -> b c", "mean"),
        repeat(x[0, 0], "h w -> h w k", k=2),
        einsum(x, x, "b c h w, b d h w -> b c d"),
    ]


def einops__layers():
    from einops.layers.torch import Rearrange, Reduce

    model = nn.Sequential(Rearrange("b c h w -> b (c h w)"), nn.Linear(48, 8), Reduce("b (k l) -> b k", "max", l=2))
    return steps(model, torch.randn(2, 3, 4, 4), lambda y: y.square().mean())


def einx__mean_and_dot():
    import einx

    x = torch.randn(2, 3, 4)
    return [einx.mean("a [b] c", x), einx.dot("a b c, c d -> a b d", x, torch.randn(4, 5))]


def einx__sums_and_layers():
    import einx

    x, w = torch.randn(2, 3, 4, requires_grad=True), torch.randn(4, 5)
    y = einx.add("a b c, c -> a b c", einx.sum("a b [c]", x)[..., None].expand(2, 3, 4), torch.arange(4.0))
    loss = einx.dot("a b c, c d -> a b d", y.tanh(), w).square().sum()
    loss.backward()
    return [loss, x.grad, einx.softmax("a [b c]", x), einx.where("a b c, , a b c", x > 0, torch.tensor(0.0), x)]


def opt_einsum__expression_and_gradient():
    import opt_einsum

    a, b, c = (torch.randn(4, 4, requires_grad=True) for _ in range(3))
    expression = opt_einsum.contract_expression("ij,jk,kl->il", (4, 4), (4, 4), (4, 4))
    y = expression(a, b, c)
    y.square().sum().backward()
    return [y, a.grad, c.grad, opt_einsum.contract("ab,bc,ca->", a, b, c)]


def opt_einsum__contract():
    import opt_einsum

    a, b, c = torch.randn(3, 4), torch.randn(4, 5), torch.randn(5, 2)
    return opt_einsum.contract("ij,jk,kl->il", a, b, c)


# ---- metrics and training ----
def torchmetrics__classification():
    import torchmetrics

    p, y = torch.randn(32, 5).softmax(-1), torch.randint(0, 5, (32,))
    metrics = torchmetrics.MetricCollection(
        [
            torchmetrics.Accuracy(task="multiclass", num_classes=5),
            torchmetrics.F1Score(task="multiclass", num_classes=5, average="macro"),
            torchmetrics.AUROC(task="multiclass", num_classes=5),
            torchmetrics.ConfusionMatrix(task="multiclass", num_classes=5),
        ]
    )
    metrics.update(p[:16], y[:16])
    metrics.update(p[16:], y[16:])
    return metrics.compute()


def torchmetrics__regression():
    import torchmetrics

    p, y = torch.randn(64), torch.randn(64)
    kinds = [torchmetrics.MeanSquaredError, torchmetrics.R2Score, torchmetrics.PearsonCorrCoef, torchmetrics.SpearmanCorrCoef]
    return [kind()(p, y) for kind in kinds] + [torchmetrics.functional.cosine_similarity(p.view(8, 8), y.view(8, 8))]


def skorch__classifier():
    import numpy as np
    from skorch import NeuralNetClassifier

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 3)

        def forward(self, x):
            return self.b(F.relu(self.a(x))).softmax(-1)

    rng = np.random.RandomState(0)
    x, y = rng.randn(40, 6).astype("float32"), rng.randint(0, 3, 40)
    net = NeuralNetClassifier(Net, max_epochs=3, lr=0.1, verbose=0, train_split=None)
    net.fit(x, y)
    return [torch.tensor(net.predict_proba(x)), net.history[:, "train_loss"]]


def skorch__regressor():
    import numpy as np
    from skorch import NeuralNetRegressor

    rng = np.random.RandomState(0)
    x, y = rng.randn(40, 4).astype("float32"), rng.randn(40, 1).astype("float32")
    net = NeuralNetRegressor(nn.Linear, module__in_features=4, module__out_features=1, max_epochs=3, lr=0.05, verbose=0)
    net.set_params(train_split=None)
    net.fit(x, y)
    return torch.tensor(net.predict(x))


def accelerate__training():
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    data = torch.utils.data.TensorDataset(torch.randn(16, 4), torch.randn(16, 1))
    loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), loader)
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        losses.append(accelerator.gather(loss.detach()).mean())
    return losses


def accelerate__save_and_load():
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model = nn.Linear(4, 2)
    model, optimizer = accelerator.prepare(model, torch.optim.Adam(model.parameters()))
    accelerator.backward(model(torch.ones(1, 4)).sum())
    optimizer.step()
    with tempfile.TemporaryDirectory() as folder:
        accelerator.save_state(folder)
        with torch.no_grad():
            model.weight.zero_()
        accelerator.load_state(folder)
    return model.weight


def accelerate__mixed_precision():
    """On the GPU, if there is one."""
    from accelerate import Accelerator

    accelerator = Accelerator(mixed_precision="bf16")
    model = nn.Linear(4, 2)
    data = torch.utils.data.TensorDataset(torch.randn(8, 4), torch.randint(0, 2, (8,)))
    model, optimizer, loader = accelerator.prepare(
        model, torch.optim.AdamW(model.parameters(), lr=0.1), torch.utils.data.DataLoader(data, batch_size=4)
    )
    losses = []
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = F.cross_entropy(model(x), y)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(round(loss.item(), 2))  # bfloat16 has eight bits
    return losses


def lightning__fit():
    import warnings

    import lightning

    warnings.filterwarnings("ignore")

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net, self.seen = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)), []

        def training_step(self, batch, index):
            x, y = batch
            loss = F.mse_loss(self.net(x), y)
            self.seen.append(loss.item())
            self.log("loss", loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=1e-2)

    data = torch.utils.data.TensorDataset(torch.randn(16, 4), torch.randn(16, 1))
    model = Model()
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", devices=1, **quiet)
    trainer.fit(model, torch.utils.data.DataLoader(data, batch_size=4, shuffle=True))
    return model.seen


def lightning__fit_on_the_accelerator():
    """With validation, on the GPU, if there is one."""
    import warnings

    import lightning

    warnings.filterwarnings("ignore")

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net, self.seen = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)), []

        def training_step(self, batch, index):
            loss = F.mse_loss(self.net(batch[0]), batch[1])
            self.seen.append(loss.item())
            return loss

        def validation_step(self, batch, index):
            self.log("worst", F.mse_loss(self.net(batch[0]), batch[1]))

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-2, momentum=0.9)

    data = torch.utils.data.TensorDataset(torch.randn(16, 4), torch.randn(16, 1))
    loader, model = torch.utils.data.DataLoader(data, batch_size=8), Model()
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = lightning.Trainer(max_epochs=2, accelerator="auto", devices=1, gradient_clip_val=1.0, **quiet)
    trainer.fit(model, loader, loader)
    return [*model.seen, trainer.callback_metrics["worst"]]


def lightning__checkpoint():
    import lightning

    class Model(lightning.LightningModule):
        def __init__(self, width=3):
            super().__init__()
            self.save_hyperparameters()
            self.layer = nn.Linear(2, width)

    model = Model(width=4)
    trainer = lightning.Trainer(accelerator="cpu", devices=1, logger=False, enable_progress_bar=False)
    trainer.strategy.connect(model)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.ckpt")
        trainer.save_checkpoint(path)
        again = Model.load_from_checkpoint(path)
    return [again.layer.weight, float(again.hparams.width)]


def _logged(folder):
    """The bytes of all values in the event files of a folder, in the order of their tags."""
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event

    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            for record in RawEventFileLoader(os.path.join(path, name)).Load():
                event = Event.FromString(record)
                for value in event.summary.value:
                    key = f"{os.path.relpath(path, folder)} {value.tag} {event.step} {len(found)}"
                    content = value.SerializeToString()
                    found[key] = sorted(content) if "_hparams_" in key else list(content)  # maps have no order
    return found


def tensorboard__scalars_and_histograms():
    from torch.utils.tensorboard import SummaryWriter

    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1))
    with tempfile.TemporaryDirectory() as folder:
        with SummaryWriter(folder) as writer:
            for step, loss in enumerate(steps(model, torch.randn(5, 4), lambda y: y.square().mean())):
                writer.add_scalar("loss", round(loss, 3), step)
            writer.add_scalar("new", torch.tensor(0.5), 1, new_style=True)
            writer.add_scalars("both", {"a": 1, "b": 2.5}, 3)
            x = torch.arange(-8.0, 8.0) / 4
            writer.add_histogram("x", x, 1)
            writer.add_histogram("few bins", x, 1, bins="auto", max_bins=3)
            writer.add_tensor("tensor", x.view(2, 8), 2)
            writer.add_pr_curve("curve", (x > 0).long(), (x + 2) / 4, 0)
            writer.add_hparams({"lr": 0.1, "name": "sgd", "nesterov": True}, {"accuracy": 0.5}, run_name="run", global_step=4)
            writer.add_custom_scalars({"all": {"chart": ["Multiline", ["loss", "both"]], "band": ["Margin", ["a", "b", "c"]]}})
        return _logged(folder)


def tensorboardX__writer():
    from tensorboardX import SummaryWriter

    with tempfile.TemporaryDirectory() as folder:
        writer = SummaryWriter(folder)
        for step in range(3):
            writer.add_scalar("loss", torch.tensor(1.0 / (step + 1)), step)
        writer.add_histogram("x", torch.arange(-8.0, 8.0) / 4, 1)
        writer.add_image("image", torch.arange(192.0).view(3, 8, 8) / 191)
        writer.add_text("words", "**bold**", 2)
        writer.close()
        return _logged(folder)


def tensorboardX__through_a_model():
    from tensorboardX import SummaryWriter

    model, numbers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)), []
    with tempfile.TemporaryDirectory() as folder:
        with SummaryWriter(folder) as writer:
            numbers = steps(model, torch.randn(5, 4), lambda y: y.square().mean())
            writer.add_scalars("losses", {str(i): round(n, 3) for i, n in enumerate(numbers)}, 1)
            writer.add_pr_curve("curve", torch.tensor([0, 1, 1]), torch.tensor([0.2, 0.7, 0.9]), 0)
        return {"losses": numbers, **_logged(folder)}


def tensorboard__images_and_text():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from torch.utils.tensorboard import SummaryWriter

    x = torch.arange(192.0).view(3, 8, 8) / 191
    figure = pyplot.figure(figsize=(1, 1), dpi=20)
    figure.gca().plot([0, 1], [1, 0])
    with tempfile.TemporaryDirectory() as folder:
        with SummaryWriter(folder, purge_step=2) as writer:
            writer.add_image("image", x)
            writer.add_image("last", (x * 255).to(torch.uint8).permute(1, 2, 0), dataformats="HWC")
            writer.add_image("gray", x[0], dataformats="HW")
            writer.add_images("grid", x.view(3, 1, 8, 8).repeat(4, 1, 1, 1), 5)
            writer.add_figure("figure", figure, 1)
            writer.add_text("words", "**bold**", 2)
            writer.add_audio("sound", torch.linspace(-1, 1, 20), 3, sample_rate=8000)
        return _logged(folder)


# ---- vision ----
def timm__resnet():
    import timm

    model = timm.create_model("resnet18", num_classes=10)
    x = torch.randn(2, 3, 64, 64)
    return [model.eval()(x), *steps(model.train(), x, lambda y: y.square().mean(), n=2)]


def timm__vit():
    import timm

    model = timm.create_model("vit_tiny_patch16_224", img_size=32, num_classes=5, depth=3)
    x = torch.randn(2, 3, 32, 32)
    return [model.eval()(x), *steps(model.train(), x, lambda y: y.logsumexp(-1).mean(), n=2)]


def timm__features():
    import timm

    model = timm.create_model("convnext_atto", features_only=True).eval()
    return [f.mean() for f in model(torch.randn(1, 3, 64, 64))]


def timm__channels_last():
    import timm

    model = timm.create_model("resnet18", num_classes=10).to(memory_format=torch.channels_last)
    x = torch.randn(1, 3, 64, 64).to(memory_format=torch.channels_last)
    return [model.eval()(x), *steps(model, x, lambda y: y.square().mean(), n=2)]


def torchvision__resnet():
    import torchvision

    model = torchvision.models.resnet18(num_classes=10).eval()
    return model(torch.randn(1, 3, 64, 64))


def torchvision__feature_extraction():
    import torchvision
    from torchvision.models.feature_extraction import create_feature_extractor

    model = torchvision.models.mobilenet_v3_small(num_classes=4).eval()
    found = create_feature_extractor(model, {"features.3": "early", "avgpool": "late"})(torch.randn(1, 3, 64, 64))
    return {name: value.mean() for name, value in found.items()}


def vit_pytorch__vit():
    from vit_pytorch import ViT

    model = ViT(image_size=32, patch_size=8, num_classes=4, dim=32, depth=2, heads=2, mlp_dim=64)
    return steps(model, torch.randn(2, 3, 32, 32), lambda y: y.square().mean())


def vit_pytorch__simple_vit():
    from vit_pytorch import SimpleViT

    model = SimpleViT(image_size=32, patch_size=8, num_classes=4, dim=32, depth=2, heads=2, mlp_dim=64)
    return model(torch.randn(2, 3, 32, 32))


def kornia__filters():
    import kornia

    x = torch.rand(1, 3, 16, 16)
    return [
        kornia.filters.gaussian_blur2d(x, (3, 3), (1.0, 1.0)),
        kornia.filters.sobel(x),
        kornia.color.rgb_to_hsv(x),
        kornia.color.rgb_to_grayscale(x),
    ]


def kornia__geometry():
    import kornia

    x = torch.rand(1, 1, 12, 12, requires_grad=True)
    y = kornia.geometry.transform.rotate(x, torch.tensor([30.0]))
    y.sum().backward()
    return [y, x.grad, kornia.geometry.transform.resize(x.detach(), (6, 6))]


# ---- language ----
def transformers__bert():
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
    model = BertForSequenceClassification(config)
    ids, labels = torch.randint(0, 100, (2, 8)), torch.tensor([0, 1])
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=1e-3), []
    model.eval()
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def transformers__gpt2_generate():
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2)).eval()
    out = model.generate(torch.tensor([[1, 2, 3]]), max_new_tokens=8, do_sample=False, pad_token_id=0)
    return [out.float(), model(out).logits]


def transformers__llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2
    )
    model = LlamaForCausalLM(config)
    ids = torch.randint(0, 64, (1, 10))
    out = model(input_ids=ids, labels=ids)
    out.loss.backward()
    return [out.loss, out.logits, model.model.layers[0].self_attn.q_proj.weight.grad]


def transformers__trainer():
    """On the GPU, if there is one."""
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    quiet = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "bos_token_id": 0, "eos_token_id": 0}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=37, n_embd=16, n_layer=1, n_head=2, n_positions=16, **quiet))
    rows = [{"input_ids": torch.arange(i, i + 8) % 37, "labels": torch.arange(i, i + 8) % 37} for i in range(16)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            num_train_epochs=1,
            per_device_train_batch_size=4,
            report_to=[],
            logging_steps=1,
            save_strategy="epoch",
            eval_strategy="epoch",
            disable_tqdm=True,
        )
        trainer = Trainer(model=model, args=arguments, train_dataset=rows, eval_dataset=rows[:4])
        trainer.train()
        kept = sorted(os.listdir(os.path.join(folder, "checkpoint-4")))
    history = [row.get("loss", row.get("eval_loss")) for row in trainer.state.log_history]
    return [*(loss for loss in history if loss is not None), float(len(kept))]


def peft__lora():
    from peft import LoraConfig, get_peft_model

    base = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    model = get_peft_model(base, LoraConfig(r=2, target_modules=["0", "2"]))
    return [*steps(model, torch.randn(4, 8), lambda y: y.square().mean()), model.merge_and_unload()(torch.ones(1, 8))]


def peft__lora_on_a_transformer():
    from peft import LoraConfig, get_peft_model
    from transformers import GPT2Config, GPT2LMHeadModel

    base = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2))
    model = get_peft_model(base, LoraConfig(r=4, target_modules=["c_attn"], fan_in_fan_out=True, task_type="CAUSAL_LM"))
    ids = torch.randint(0, 64, (2, 8))
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    grads = [p.grad.abs().sum() for _, p in model.named_parameters() if p.grad is not None]
    return [loss, *grads]


def x_transformers__decoder():
    from x_transformers import Decoder, TransformerWrapper

    model = TransformerWrapper(num_tokens=64, max_seq_len=32, attn_layers=Decoder(dim=32, depth=2, heads=2))
    ids = torch.randint(0, 64, (2, 16))
    return steps(model, ids, lambda y: F.cross_entropy(y.transpose(1, 2), ids))


def x_transformers__autoregressive():
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

    net = TransformerWrapper(num_tokens=32, max_seq_len=32, attn_layers=Decoder(dim=32, depth=2, heads=2, rotary_pos_emb=True))
    model = AutoregressiveWrapper(net)
    ids = torch.randint(0, 32, (1, 12))
    return [model(ids), model.generate(ids[:, :4], 6, temperature=0.0).float()]


# ---- science ----
def torchdiffeq__odeint():
    from torchdiffeq import odeint

    class Spiral(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))

        def forward(self, t, y):
            return self.net(y**3)

    model = Spiral()
    y = odeint(model, torch.tensor([[2.0, 0.0]]), torch.linspace(0, 1, 5), method="rk4")
    y.sum().backward()
    return [y, model.net[0].weight.grad]


def torchdiffeq__adjoint():
    from torchdiffeq import odeint_adjoint

    model = nn.Linear(2, 2)

    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, t, y):
            return torch.tanh(self.inner(y))

    y = odeint_adjoint(Wrapped(), torch.tensor([1.0, -1.0]), torch.tensor([0.0, 1.0]), rtol=1e-6, atol=1e-8)
    y[-1].sum().backward()
    return [y, model.weight.grad]


def gpytorch__regression():
    import gpytorch

    class GP(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    x = torch.linspace(0, 1, 20)
    y = torch.sin(6 * x)
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = GP(x, y, likelihood)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.1), []
    for _ in range(3):
        optimizer.zero_grad()
        loss = -objective(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        prediction = likelihood(model(torch.linspace(0, 1, 7)))
    return [losses, prediction.mean, prediction.variance]


def gpytorch__kernels():
    import gpytorch

    x = torch.randn(6, 2)
    kinds = [gpytorch.kernels.RBFKernel(), gpytorch.kernels.MaternKernel(nu=2.5), gpytorch.kernels.PeriodicKernel()]
    return [kernel(x).to_dense() for kernel in kinds]


def pyro__svi():
    import pyro
    from pyro import distributions as dist

    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    data = torch.randn(20) + 2

    def model(data):
        mean = pyro.sample("mean", dist.Normal(0.0, 5.0))
        with pyro.plate("data", len(data)):
            pyro.sample("x", dist.Normal(mean, 1.0), obs=data)

    def guide(data):
        loc, scale = pyro.param("loc", torch.tensor(0.0)), pyro.param("scale", torch.tensor(1.0))
        pyro.sample("mean", dist.Normal(loc, scale.exp()))

    svi = pyro.infer.SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), loss=pyro.infer.Trace_ELBO())
    return [svi.step(data) for _ in range(5)] + [pyro.param("loc"), pyro.param("scale")]


def pyro__distributions():
    import pyro
    from pyro import distributions as dist

    pyro.set_rng_seed(1)
    p = dist.Normal(torch.zeros(3), 1.0).to_event(1)
    x = p.sample((4,))
    mixture = dist.MixtureSameFamily(dist.Categorical(logits=torch.zeros(2)), dist.Normal(torch.tensor([-1.0, 1.0]), 0.5))
    return [x, p.log_prob(x), mixture.log_prob(torch.linspace(-2, 2, 5))]


def captum__integrated_gradients():
    from captum.attr import IntegratedGradients, Saliency

    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
    x = torch.randn(2, 5)
    return [IntegratedGradients(model).attribute(x, target=1), Saliency(model).attribute(x.requires_grad_(), target=0)]


def captum__layers():
    from captum.attr import DeepLift, LayerGradCam

    model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3 * 36, 2))
    x = torch.randn(2, 1, 8, 8)
    return [LayerGradCam(model, model[0]).attribute(x, target=1), DeepLift(model).attribute(x, torch.zeros_like(x), target=0)]
