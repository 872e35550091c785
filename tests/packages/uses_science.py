"""Uses of packages for science: graphs, Gaussian processes, equations, flows, transport. `uses.py` says how to write one."""

import torch
from torch import nn
from torch.nn import functional as F
from uses import steps


def _graph():
    return torch.randn(6, 4), torch.tensor([[0, 1, 1, 2, 3, 4, 5, 0, 2], [1, 0, 2, 1, 4, 3, 0, 5, 5]])


def torch_geometric__convolutions():
    from torch_geometric import nn as g

    x, edges = _graph()
    layers = [
        g.GCNConv(4, 3), g.GATConv(4, 3, heads=2), g.GATv2Conv(4, 3), g.SAGEConv(4, 3), g.GINConv(nn.Linear(4, 3)),
        g.GraphConv(4, 3), g.ChebConv(4, 3, K=2), g.TransformerConv(4, 3), g.EdgeConv(nn.Linear(8, 3)),
        g.SAGEConv(4, 3, aggr="max"), g.PNAConv(4, 3, ["mean", "std"], ["identity"], deg=torch.tensor([0, 3, 2, 1])),
    ]  # fmt: skip
    found = []
    for layer in layers:
        leaf = x.clone().requires_grad_()
        y = layer(leaf, edges)
        y.square().sum().backward()
        found += [y, leaf.grad]
    return found


def torch_geometric__batches():
    from torch_geometric.data import Batch, Data
    from torch_geometric.loader import DataLoader
    from torch_geometric.nn import GCNConv, TopKPooling, global_max_pool, global_mean_pool
    from torch_geometric.utils import degree, scatter, softmax, to_dense_adj, to_undirected

    sizes = (3, 4, 5, 6)
    graphs = [Data(x=torch.randn(n, 4), edge_index=torch.randint(0, n, (2, 2 * n)), y=torch.tensor([n % 2])) for n in sizes]
    first, second, losses = GCNConv(4, 8), nn.Linear(8, 2), []
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=1e-2)
    for batch in DataLoader(graphs, batch_size=2):
        y = second(global_mean_pool(first(batch.x, batch.edge_index).relu(), batch.batch))
        loss = F.cross_entropy(y, batch.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    b = Batch.from_data_list(graphs)
    x, edges, _, chosen, _, _ = TopKPooling(4, 0.5)(b.x, b.edge_index, None, b.batch)
    more = [to_dense_adj(b.edge_index, b.batch), to_undirected(b.edge_index), degree(b.edge_index[0]), softmax(b.x, b.batch)]
    return [losses, x, edges, chosen, global_max_pool(b.x, b.batch), scatter(b.x, b.batch, reduce="min"), *more]


def torch_geometric__models():
    from torch_geometric.data import HeteroData
    from torch_geometric.nn import GIN, HeteroConv, MessagePassing, SAGEConv

    class Products(MessagePassing):
        def __init__(self):
            super().__init__(aggr="max")

        def forward(self, x, edges):
            return self.propagate(edges, x=x)

        def message(self, x_i, x_j):
            return x_i * x_j

    data, forth, back = HeteroData(), ("u", "to", "v"), ("v", "rev", "u")
    data["u"].x, data["v"].x = torch.randn(4, 3), torch.randn(5, 3)
    data[forth].edge_index = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    data[back].edge_index = data[forth].edge_index.flip(0)
    both = HeteroConv({forth: SAGEConv((3, 3), 2), back: SAGEConv((3, 3), 2)})(data.x_dict, data.edge_index_dict)
    x, edges = _graph()
    return [both["u"], both["v"], GIN(4, 8, 2)(x, edges), Products()(x, edges)]


def botorch__gp():
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    x = torch.rand(12, 2, dtype=torch.double)
    model = SingleTaskGP(x, (x * 3).sin().sum(-1, keepdim=True))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model), optimizer_kwargs={"options": {"maxiter": 20}})
    posterior = model.posterior(torch.rand(4, 2, dtype=torch.double))
    return [posterior.mean, posterior.variance]


def botorch__acquisition():
    from botorch.acquisition import LogExpectedImprovement, UpperConfidenceBound, qExpectedImprovement
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from botorch.sampling import SobolQMCNormalSampler

    x = torch.rand(8, 2, dtype=torch.double)
    y = (x * 3).sin().sum(-1, keepdim=True)
    model, sampler = SingleTaskGP(x, y), SobolQMCNormalSampler(torch.Size([32]), seed=1)
    at = torch.rand(3, 2, 2, dtype=torch.double, requires_grad=True)
    improvement = qExpectedImprovement(model, best_f=y.max(), sampler=sampler)(at)
    (gradient,) = torch.autograd.grad(improvement.sum(), at)
    bounds, upper = torch.tensor([[0.0, 0], [1, 1]], dtype=torch.double), UpperConfidenceBound(model, 0.2)
    best = optimize_acqf(upper, bounds, q=1, num_restarts=2, raw_samples=8, options={"seed": 3, "maxiter": 10})
    return [improvement, gradient, LogExpectedImprovement(model, y.max())(at[:, :1]), *best]


def torchsde__solve():
    import torchsde

    class Equation(nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

        def f(self, t, y):
            return torch.tanh(self.a(y))

        def g(self, t, y):
            return torch.sigmoid(self.b(y))

    equation, times, start, found = Equation(), torch.linspace(0, 1, 5), torch.ones(3, 2), []
    for method in ("euler", "milstein", "srk"):
        noise = torchsde.BrownianInterval(0.0, 1.0, size=(3, 2), entropy=7, levy_area_approximation="space-time")
        found.append(torchsde.sdeint(equation, start, times, method=method, dt=0.1, bm=noise))
    y = torchsde.sdeint_adjoint(equation, start, times, method="euler", dt=0.1, bm=noise)
    y.square().sum().backward()
    return [*found, y, *(p.grad for p in equation.parameters())]


def torchcde__solve():
    import torchcde

    class Field(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 12)

        def forward(self, t, z):
            return self.layer(z).tanh().view(*z.shape, 3)

    field = Field()
    path = torchcde.CubicSpline(torchcde.natural_cubic_coeffs(torch.randn(2, 10, 3)))
    z = torchcde.cdeint(path, field, torch.ones(2, 4), path.interval, method="rk4", options={"step_size": 0.5})
    z.sum().backward()
    return [z, path.derivative(torch.tensor(1.3)), [p.grad for p in field.parameters()]]


def e3nn__layers():
    from e3nn import o3
    from e3nn.nn import Gate

    kinds = o3.Irreps("2x0e + 1x1o + 1x2e")
    linear, x = o3.Linear(kinds, "3x0e + 2x1o"), kinds.randn(5, -1)
    product = o3.FullyConnectedTensorProduct("2x0e + 1x1o", "1x0e + 1x1o", "2x0e + 1x1o")
    y = product(product.irreps_in1.randn(5, -1), product.irreps_in2.randn(5, -1))
    y.square().sum().backward()
    harmonics = o3.spherical_harmonics([0, 1, 2, 3], torch.randn(5, 3), normalize=True, normalization="component")
    gate = Gate("2x0e", [torch.tanh], "1x0e", [torch.sigmoid], "1x1o")
    return [linear(x), y, [p.grad for p in product.parameters()], harmonics, gate(gate.irreps_in.randn(3, -1))]


def e3nn__rotations():
    from e3nn import o3

    rotation = o3.angles_to_matrix(torch.tensor(0.3), torch.tensor(0.7), torch.tensor(-0.2))
    of_kinds = o3.Irreps("1x0e+1x1o+1x2e").D_from_matrix(rotation)
    return [rotation, of_kinds, o3.wigner_3j(1, 1, 2), o3.matrix_to_quaternion(rotation), list(o3.matrix_to_angles(rotation))]


def nflows__maf():
    from nflows.distributions.normal import StandardNormal
    from nflows.flows.base import Flow
    from nflows.transforms import CompositeTransform, LULinear, MaskedAffineAutoregressiveTransform, ReversePermutation
    from nflows.transforms import MaskedPiecewiseRationalQuadraticAutoregressiveTransform as Spline

    parts = [ReversePermutation(2), MaskedAffineAutoregressiveTransform(2, 8), LULinear(2), Spline(2, 8, tails="linear")]
    flow, x = Flow(CompositeTransform(parts), StandardNormal([2])), torch.randn(16, 2)
    return steps(_Of(flow, "log_prob"), x, lambda p: -p.mean())


class _Of(nn.Module):
    """A module whose call is one of another's methods."""

    def __init__(self, module, method):
        super().__init__()
        self.module, self.method = module, method

    def forward(self, x):
        return getattr(self.module, self.method)(x)


def normflows__flow():
    import normflows as nf

    flows = [nf.flows.AffineCouplingBlock(nf.nets.MLP([1, 8, 2])), nf.flows.Permute(2, mode="swap")]
    flows += [nf.flows.AutoregressiveRationalQuadraticSpline(2, 1, 8), nf.flows.LULinearPermute(2)]
    model = nf.NormalizingFlow(nf.distributions.base.DiagGaussian(2), flows)
    return [steps(_Of(model, "forward_kld"), torch.randn(16, 2), lambda loss: loss), *model.sample(4)]


def zuko__flows():
    import zuko

    x, c, found, sizes = torch.randn(16, 3), torch.randn(16, 2), [], {"hidden_features": (8,)}
    kinds = zuko.flows
    for flow in (kinds.MAF(3, 2, **sizes), kinds.NSF(3, 2, **sizes), kinds.GMM(3, 2, components=2), kinds.CNF(3, 2, **sizes)):
        loss = -flow(c).log_prob(x).mean()
        loss.backward()
        found += [loss, sum(p.grad.abs().sum() for p in flow.parameters() if p.grad is not None)]
    return [*found, kinds.MAF(3, 2)(c).rsample((2,))]


def geomloss__samples():
    from geomloss import SamplesLoss

    x, y, found = torch.randn(10, 3, requires_grad=True), torch.randn(12, 3), []
    for kind in ("sinkhorn", "gaussian", "energy", "laplacian"):
        loss = SamplesLoss(kind, p=2, blur=0.1, backend="tensorized")(x, y)
        found += [loss, torch.autograd.grad(loss, x)[0]]
    return found


def pot__transport():
    import ot

    x, y = torch.randn(8, 2, requires_grad=True), torch.randn(9, 2)
    a, b, costs = torch.full((8,), 1 / 8), torch.full((9,), 1 / 9), ot.dist(x, y)
    losses = [ot.emd2(a, b, costs), ot.sinkhorn2(a, b, costs, 0.5), ot.unbalanced.sinkhorn_unbalanced2(a, b, costs, 0.5, 1.0)]
    (gradient,) = torch.autograd.grad(sum(loss.sum() for loss in losses), x)
    return [losses, gradient, ot.sinkhorn(a, b, costs.detach(), 0.5), ot.sliced_wasserstein_distance(x, y, seed=0)]


def tensorly__decompositions():
    import tensorly
    from tensorly.decomposition import parafac, tensor_train, tucker

    tensorly.set_backend("pytorch")
    x = torch.randn(4, 5, 6)
    a, b = parafac(x, rank=2, n_iter_max=5, init="svd"), tucker(x, rank=[2, 2, 2], n_iter_max=3)
    c = tensor_train(x, rank=[1, 2, 2, 1])
    return [tensorly.cp_to_tensor(a), tensorly.tucker_to_tensor(b), tensorly.tt_to_tensor(c), tensorly.unfold(x, 1)]


def ncps__cells():
    from ncps.torch import LTC, CfC
    from ncps.wirings import AutoNCP

    models, x, found = [LTC(3, AutoNCP(8, 2)), CfC(3, AutoNCP(8, 2)), CfC(3, 8, mixed_memory=True)], torch.randn(2, 5, 3), []
    for model in models:
        y, _ = model(x)
        y.square().sum().backward()
        found += [y, [p.grad.abs().sum() for p in model.parameters() if p.grad is not None]]
    return found


def torchdyn__node():
    from torchdyn.core import NeuralODE

    field = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
    model = NeuralODE(field, sensitivity="adjoint", solver="rk4", atol=1e-4, rtol=1e-4)
    _, y = model(torch.randn(4, 2), torch.linspace(0, 1, 5))
    y[-1].square().sum().backward()
    return [y, [p.grad for p in field.parameters()]]
