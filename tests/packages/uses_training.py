"""Uses of packages for training: reinforcement learning, loops, losses, optimizers. `uses.py` says how they are written."""

import tempfile

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from uses import steps


def _agent(kind, world, turns, **settings):
    import stable_baselines3

    small = {"net_arch": [16, 16]}
    agent = getattr(stable_baselines3, kind)("MlpPolicy", world, seed=0, device="cpu", policy_kwargs=small, **settings)
    agent.learn(turns)
    action, _ = agent.predict(np.ones_like(agent.env.reset()), deterministic=True)
    return [sum(p.double().abs().sum() for p in agent.policy.parameters()), torch.as_tensor(action)]


def stable_baselines3__ppo():
    return _agent("PPO", "CartPole-v1", 128, n_steps=64, batch_size=32, n_epochs=3)


def stable_baselines3__dqn():
    return _agent("DQN", "CartPole-v1", 200, learning_starts=50, buffer_size=500)


def stable_baselines3__sac():
    return _agent("SAC", "Pendulum-v1", 80, learning_starts=50, buffer_size=500)


def stable_baselines3__save_and_load():
    import stable_baselines3

    agent = stable_baselines3.PPO("MlpPolicy", "CartPole-v1", seed=0, device="cpu", n_steps=32, batch_size=32)
    agent.learn(32)
    with tempfile.TemporaryDirectory() as folder:
        agent.save(f"{folder}/agent")
        again = stable_baselines3.PPO.load(f"{folder}/agent", device="cpu")
    return list(again.policy.parameters())[:2]


def pytorch_metric_learning__losses():
    from pytorch_metric_learning import losses

    x, y, found = torch.randn(12, 8, requires_grad=True), torch.randint(0, 3, (12,)), []
    plain = (
        "TripletMarginLoss ContrastiveLoss NTXentLoss SupConLoss CircleLoss MultiSimilarityLoss AngularLoss LiftedStructureLoss"
    )
    plain += " FastAPLoss TupletMarginLoss GeneralizedLiftedStructureLoss IntraPairVarianceLoss PNPLoss DynamicSoftMarginLoss"
    of_classes = "ArcFaceLoss CosFaceLoss ProxyAnchorLoss ProxyNCALoss SoftTripleLoss NormalizedSoftmaxLoss SphereFaceLoss"
    kinds = [getattr(losses, name)() for name in plain.split()]
    for loss in [*kinds, *(getattr(losses, name)(3, 8) for name in of_classes.split())]:
        value = loss(x, y)
        found += [value, torch.autograd.grad(value, x)[0]]
    return found


def pytorch_metric_learning__miners():
    from pytorch_metric_learning import distances, losses, miners

    x, y = F.normalize(torch.randn(12, 8)), torch.randint(0, 3, (12,))
    kinds = miners.TripletMarginMiner, miners.BatchHardMiner, miners.MultiSimilarityMiner, miners.PairMarginMiner
    found = [torch.cat(list(kind()(x, y))) for kind in kinds]
    hard = losses.TripletMarginLoss(distance=distances.CosineSimilarity())(x, y, kinds[0]()(x, y))
    memory = losses.CrossBatchMemory(losses.NTXentLoss(), 8, 32)
    return [*found, hard, memory(x, y), memory(x * 0.5, y)]


def fastai__learner():
    from fastai.basics import DataLoaders, Learner
    from fastai.callback.schedule import fit_one_cycle  # noqa: F401  (makes it a method)
    from fastai.data.load import DataLoader

    samples = [(torch.randn(4), torch.randint(0, 3, ())) for _ in range(32)]
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    loaders = DataLoaders(*(DataLoader(samples, bs=8, device="cpu") for _ in range(2)), device="cpu")
    learner = Learner(loaders, model, loss_func=nn.CrossEntropyLoss())
    with learner.no_bar(), learner.no_logging():
        learner.fit_one_cycle(2, 1e-2)
    return [list(map(list, learner.recorder.values)), list(model.parameters())]


def fastai__tabular():
    import pandas
    from fastai.tabular.all import Categorify, FillMissing, Normalize, TabularDataLoaders, tabular_learner

    rng = np.random.RandomState(0)
    letters, classes = rng.choice(list("xyz"), 64), rng.choice(["p", "q"], 64)
    table = pandas.DataFrame({"a": rng.randn(64), "b": rng.randn(64), "c": letters, "y": classes})
    how = {
        "procs": [Categorify, FillMissing, Normalize],
        "bs": 16,
        "device": "cpu",
        "seed": 0,
        "valid_idx": list(range(48, 64)),
    }
    loaders = TabularDataLoaders.from_df(table, y_names="y", cat_names=["c"], cont_names=["a", "b"], **how)
    learner = tabular_learner(loaders, layers=[8], n_out=2)
    with learner.no_bar(), learner.no_logging():
        learner.fit(2, 1e-2)
    return list(map(list, learner.recorder.values))


def _steps_of(make, n=4):
    """Losses of a small model and its weights, after steps with an optimizer of its parameters."""
    model, x = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)), torch.randn(16, 6)
    optimizer, losses = make(model.parameters()), []
    if hasattr(optimizer, "train"):
        optimizer.train()
    for _ in range(n):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    if hasattr(optimizer, "eval"):
        optimizer.eval()
    return [losses, list(model.parameters())]


def schedulefree__steps():
    import schedulefree as s

    kinds = s.AdamWScheduleFree, s.SGDScheduleFree, s.RAdamScheduleFree, s.AdamWScheduleFreeReference
    return [_steps_of(lambda p, kind=kind: kind(p, lr=1e-2)) for kind in kinds]


def prodigyopt__steps():
    from prodigyopt import Prodigy

    more = {"slice_p": 3, "use_bias_correction": True, "safeguard_warmup": True}
    return [_steps_of(lambda p: Prodigy(p, weight_decay=0.01)), _steps_of(lambda p: Prodigy(p, **more))]


def lion_pytorch__steps():
    from lion_pytorch import Lion

    return _steps_of(lambda p: Lion(p, lr=1e-3, weight_decay=1e-2))


def pytorch_optimizer__steps():
    from pytorch_optimizer import load_optimizer

    names = "adabelief adabound adafactor adamp adan adopt ademamix came diffgrad grokfastadamw lamb lars lion madgrad mars"
    names += " novograd padam qhadam radam ranger sgdp shampoo sm3 stableadamw tiger yogi"
    return {name: _steps_of(load_optimizer(name), 3) for name in names.split()}


def torch_optimizer__steps():
    import torch_optimizer

    names = "AccSGD AdaBelief AdaBound AdaMod AdamP AggMo Apollo DiffGrad Lamb MADGRAD NovoGrad PID QHAdam RAdam RangerQH"
    return {name: _steps_of(lambda p, name=name: getattr(torch_optimizer, name)(p, lr=1e-3)) for name in names.split()}


def backpack__extensions():
    from backpack import backpack, extend
    from backpack.extensions import KFLR, BatchGrad, BatchL2Grad, DiagGGNExact, DiagHessian, SumGradSquared, Variance

    model = extend(nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 16, 3)))
    loss = extend(nn.CrossEntropyLoss())(model(torch.randn(4, 1, 6, 6)), torch.randint(0, 3, (4,)))
    with backpack(BatchGrad(), BatchL2Grad(), DiagGGNExact(), DiagHessian(), KFLR(), Variance(), SumGradSquared()):
        loss.backward()
    names = "grad grad_batch batch_l2 diag_ggn_exact diag_h variance sum_grad_squared kflr".split()
    return [[getattr(p, name) for name in names] for p in model.parameters()]


def higher__inner_loop():
    import higher

    model, x, found = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), torch.randn(8, 3), []
    for optimizer in (torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), torch.optim.Adam(model.parameters(), lr=0.1)):
        with higher.innerloop_ctx(model, optimizer, copy_initial_weights=False) as (inner, update):
            for _ in range(3):
                update.step(inner(x).square().mean())
            loss = inner(x).sum()
            loss.backward()
        found += [loss, [p.grad.clone() for p in model.parameters()]]
    return found


def torchopt__steps():
    import torchopt

    model, x = nn.Linear(3, 1), torch.randn(4, 3)
    optimizer, first = torchopt.MetaSGD(model, lr=0.1), list(model.parameters())
    optimizer.step(model(x).square().mean())
    loss = model(x).square().mean()
    return [_steps_of(lambda p: torchopt.Adam(p, lr=0.01)), loss, torch.autograd.grad(loss, first)]


def torchbnn__steps():
    import torchbnn

    model = nn.Sequential(torchbnn.BayesLinear(0, 0.1, 4, 8), nn.ReLU(), torchbnn.BayesLinear(0, 0.1, 8, 3))
    divergence, y = torchbnn.BKLLoss(), torch.randint(0, 3, (8,))
    return steps(model, torch.randn(8, 4), lambda p: F.cross_entropy(p, y) + 0.1 * divergence(model).sum())


def pytorch_forecasting__nbeats():
    import pandas
    from pytorch_forecasting import NBeats, TimeSeriesDataSet
    from pytorch_forecasting.metrics import SMAPE

    values = np.sin(np.arange(80) / 5.0)
    table = pandas.DataFrame({"t": list(range(40)) * 2, "g": ["a"] * 40 + ["b"] * 40, "v": values})
    lengths = {"max_encoder_length": 10, "max_prediction_length": 4, "randomize_length": None}
    series = TimeSeriesDataSet(table, "t", "v", ["g"], **lengths, time_varying_unknown_reals=["v"])
    model = NBeats.from_dataset(series, learning_rate=1e-3, widths=[8, 16], backcast_loss_ratio=0.1)
    x, y = next(iter(series.to_dataloader(train=True, batch_size=8, shuffle=False)))
    predicted = model(x)["prediction"]
    loss = SMAPE()(predicted, y)
    loss.backward()
    return [predicted, loss, [p.grad for p in model.parameters() if p.grad is not None]]
