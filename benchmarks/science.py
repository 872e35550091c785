"""Packages of scientific programs beside PyTorch: one table per package.

usage: python benchmarks/science.py [--markdown] [--threads N] [FILTER]
"""

import argparse

import torch
from compare import Row, alternate, show

import lucid

# package -> (names(m), [(title, statement, ratio at most)])
SECTIONS = {}


def section(name, cases):
    """Register a package: the decorated function maps a library to the names that its statements use."""

    def enter(names):
        SECTIONS[name] = (names, cases)
        return names

    return enter


@section(
    "func",
    [
        ("gradients of 64 examples, LeNet-5", "each(params, x, labels)", None),
        ("8 networks at once, 64 images", "ensemble(stacked)", None),
    ],
)
def functions(m):
    def network():
        nn = m.nn
        return nn.Sequential(
            nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.AvgPool2d(2),
            nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
        )  # fmt: skip

    net, func = network(), m.func
    x, labels = m.randn(64, 1, 28, 28), m.randint(0, 10, (64,))

    def loss(params, image, label):
        return m.nn.functional.cross_entropy(func.functional_call(net, params, (image[None],)), label[None])

    stacked, _ = func.stack_module_state([network() for _ in range(8)])
    return {
        "each": func.vmap(func.grad(loss), in_dims=(None, 0, 0)),
        "params": {name: p.detach() for name, p in net.named_parameters()},
        "ensemble": func.vmap(lambda params: func.functional_call(net, params, (x,))),
        "stacked": {name: p.detach() for name, p in stacked.items()},
        "x": x,
        "labels": labels,
    }


@section(
    "sparse",
    [
        ("CSR 10,000² with 1e6 entries @ dense 64", "csr @ wide", 0.6),
        ("the same, COO", "coo @ wide", 0.6),
        ("CSR @ vector", "csr @ vector", None),
        ("COO coalesce of 1e6", "scattered.coalesce()", 0.6),
        ("COO to CSR, 1e6 entries", "coo.to_sparse_csr()", None),
        ("sparse embedding step: forward, backward, SparseAdam", "embedding_step()", 0.6),
        ("the same with SGD", "sgd_step()", 0.6),
        ("COO 64 x 64 with 256 entries @ dense 8", "small @ few", 0.6),
    ],
)
def sparse(m):
    def same(function, *args):
        """The same values in both libraries."""
        made = function(*args, generator=torch.Generator().manual_seed(len(args)))
        return made if m is torch else lucid.from_numpy(made.numpy())

    n = 10_000
    index, values = same(torch.randint, 0, n, (2, 1_000_000)), same(torch.randn, 1_000_000)
    scattered = m.sparse_coo_tensor(index, values, (n, n))
    coo = scattered.coalesce()
    small = m.sparse_coo_tensor(index[:, :256] % 64, values[:256], (64, 64)).coalesce()
    ids = same(torch.randint, 0, 100_000, (4096,))

    def stepper(kind, **options):
        table = m.nn.Embedding(100_000, 64, sparse=True)
        optimizer = getattr(m.optim, kind)(table.parameters(), **options)

        def step():
            optimizer.zero_grad()
            table(ids).pow(2).sum().backward()
            optimizer.step()

        return step

    return {
        "csr": coo.to_sparse_csr(), "coo": coo, "scattered": scattered, "wide": same(torch.randn, n, 64), "small": small,
        "few": same(torch.randn, 64, 8), "vector": same(torch.randn, n),
        "embedding_step": stepper("SparseAdam"), "sgd_step": stepper("SGD", lr=0.1),
    }  # fmt: skip


SPECIAL = {  # the arguments of each function: 1M floats each, or a degree
    "wide": "bessel_j0 bessel_j1 spherical_bessel_j0 i0 i0e i1 i1e modified_bessel_i0 modified_bessel_i1 airy_ai erf erfc "
    "erfcx ndtr log_ndtr expit exp2 expm1 sinc",
    "positive": "bessel_y0 bessel_y1 modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 "
    "entr digamma gammaln log1p",
    "unit": "erfinv ndtri logit",
    "above, positive": "gammainc gammaincc zeta xlogy xlog1py",
    "unit, 5": "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w "
    "shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v "
    "shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p",
}


@section(
    "special",
    [(name, f"special.{name}({args})", 0.5) for args, names in SPECIAL.items() for name in names.split()]
    + [
        ("polygamma(1, x)", "special.polygamma(1, positive)", 0.5),
        ("polygamma(3, x)", "special.polygamma(3, positive)", 0.5),
        ("multigammaln(x, 3)", "special.multigammaln(above, 3)", 0.5),
    ],
)
def special(m):
    def spread(low, high):
        values = torch.rand(1_000_000, generator=torch.Generator().manual_seed(1)) * (high - low) + low
        return values if m is torch else lucid.from_numpy(values.numpy())

    arguments = {"wide": spread(-20, 20), "positive": spread(0.01, 20), "unit": spread(0.001, 0.999), "above": spread(1.1, 9)}
    return {"special": m.special, **arguments}


@section(
    "distributions",
    [
        ("Normal: construct, log_prob, sample of 64", "normal()", 0.15),
        ("Categorical, 64 of 8: construct, log_prob, sample", "categorical()", 0.15),
        ("Gamma: construct, log_prob, sample of 64", "gamma()", 0.15),
        ("Gamma: rsample of 10,000 and backward", "implicit()", None),
        ("Normal, Normal: kl_divergence of 64", "divergence()", None),
    ],
)
def distributions(m):
    d, zeros, ones = m.distributions, m.zeros(64), m.ones(64)
    logits, first = m.zeros(64, 8), m.zeros(64, dtype=m.int64)
    concentration = m.full((10_000,), 1.5, requires_grad=True)

    def used(family, parameters, value):
        def use():
            made = family(**parameters)
            return made.log_prob(value), made.sample()

        return use

    return {
        "normal": used(d.Normal, {"loc": zeros, "scale": ones}, zeros),
        "categorical": used(d.Categorical, {"logits": logits}, first),
        "gamma": used(d.Gamma, {"concentration": ones * 2, "rate": ones}, ones),
        "implicit": lambda: d.Gamma(concentration, 1.0).rsample().sum().backward(),
        "divergence": lambda: d.kl_divergence(d.Normal(zeros, ones), d.Normal(ones, ones)),
    }


def _matrices():
    few = ("solve", "inv", "cholesky", "lu", "qr")
    calls = {
        "solve": "L.solve({a}, {b})", "inv": "L.inv({a})", "cholesky": "L.cholesky({s})", "lu": "L.lu_factor({a})",
        "qr": "L.qr({a})", "svd": "L.svd({a})", "eigh": "L.eigh({s})", "det": "L.det({a})",
    }  # fmt: skip
    sizes = [
        ("10,000 of 4x4", 4, few, 0.15), ("10,000 of 3x3", 3, ("det",), 0.15), ("1,000 of 16x16", 16, few, 0.35),
        ("10,000 of 3x3", 3, ("eigh", "svd"), 0.35), ("one 32x32", 32, ("solve", "cholesky", "qr", "svd", "eigh"), 0.6),
        ("one 1024x1024", 1024, ("solve", "cholesky", "qr", "svd", "eigh"), 1.05),
    ]  # fmt: skip
    for title, n, names, ratio in sizes:
        for name in names:
            yield f"{name} of {title}", calls[name].format(a=f"a{n}", b=f"b{n}", s=f"s{n}"), ratio


@section("linalg", list(_matrices()))
def linalg(m):
    names = {"L": m.linalg}
    for n, batch in ((3, (10_000,)), (4, (10_000,)), (16, (1_000,)), (32, ()), (1024, ())):
        generator = torch.Generator().manual_seed(n)
        a, b = torch.randn(*batch, n, n, generator=generator), torch.randn(*batch, n, 2, generator=generator)
        s = a @ a.mT + n * torch.eye(n)
        for name, t in (("a", a), ("b", b), ("s", s)):
            names[f"{name}{n}"] = t if m is torch else lucid.from_numpy(t.numpy())
    return names


@section(
    "fft",
    [
        ("fft 256 x 4096 complex64", "f.fft(x)", 0.7),
        ("ifft of the same", "f.ifft(x)", 0.7),
        ("rfft 256 x 4096 float32", "f.rfft(real)", 0.7),
        ("irfft of its result", "f.irfft(half)", None),
        ("fft2 512 x 512", "f.fft2(square)", 0.7),
        ("fft of a prime length, 1009", "f.fft(prime)", 0.7),
        ("the same, 256 lines", "f.fft(primes)", 0.7),
        ("fft of length 2^20", "f.fft(long)", 1.0),
        ("fft of 10,000 lines of 8", "f.fft(short)", None),
        ("fft of one line of 64", "f.fft(one)", None),
        ("fft along dim 0 of 256 x 256 x 16", "f.fft(cube, dim=0)", None),
        ("stft 16 x 48000, window 1024", "m.stft(sound, 1024, window=window, return_complex=True)", 0.7),
        ("istft of its result", "m.istft(spectra, 1024, window=window)", None),
    ],
)
def fft(m):
    def noise(*shape, dtype=torch.complex64):
        made = torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(16))
        return made if m is torch else lucid.from_numpy(made.numpy())

    real, sound, window = noise(256, 4096, dtype=torch.float32), noise(16, 48000, dtype=torch.float32), m.hann_window(1024)
    return {
        "m": m, "f": m.fft, "x": noise(256, 4096), "real": real, "half": m.fft.rfft(real), "square": noise(512, 512),
        "prime": noise(1009), "primes": noise(256, 1009), "long": noise(1 << 20), "short": noise(10_000, 8), "one": noise(64),
        "cube": noise(256, 256, 16), "sound": sound, "window": window,
        "spectra": m.stft(sound, 1024, window=window, return_complex=True),
    }  # fmt: skip


def rows(wanted, threads):
    lucid.set_num_threads(threads)
    torch.set_num_threads(threads)
    for package, (names, cases) in SECTIONS.items():
        chosen = [c for c in cases if wanted in f"{package} {c[0]}"]
        if not chosen:
            continue
        ours, theirs = names(lucid), names(torch)
        for title, statement, ratio in chosen:
            mine, other = alternate(statement, ours, theirs)
            yield Row(title, mine, other, ratio, None, "s")


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("filter", nargs="?", default="")
    given = parser.parse_args()
    show(list(rows(given.filter, given.threads)), given.markdown)
