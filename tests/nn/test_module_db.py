"""Every module of PyTorch's own module database: from the same seed the same weights, results and gradients."""

import copy
import pickle
import warnings

import pytest
import torch
from torch.testing._internal.common_modules import module_db

import lucid
from tests.compat.exchange import Exchange, to_torch

DTYPE = torch.float64
MATCHED = "<All keys matched successfully>"
WIDE = {"rtol": 1e-6, "atol": 1e-8}


class ToLucid(Exchange):
    """Arguments of PyTorch's for Lucid's: modules and functions by name too."""

    def __call__(self, value):
        if isinstance(value, torch.nn.Module):
            return ours_of(value)
        if callable(value) and getattr(value, "__module__", "").startswith("torch"):
            return getattr(lucid.nn.functional, value.__name__, None) or getattr(lucid, value.__name__)
        if callable(value) and hasattr(value, "__name__") and value is getattr(torch, value.__name__, None):
            return getattr(lucid, value.__name__)
        if isinstance(value, (torch.nn.utils.rnn.PackedSequence)):
            return lucid.nn.utils.rnn.PackedSequence(*[v if v is None else self.tensor(v) for v in value])
        return super().__call__(value)


def ours_of(module):
    """A module given as an argument: of the same class and settings, with the same weights."""
    mine = {
        "TransformerEncoderLayer": lambda: lucid.nn.TransformerEncoderLayer(
            module.self_attn.embed_dim,
            module.self_attn.num_heads,
            module.linear1.out_features,
            module.dropout.p,
            getattr(lucid.nn.functional, module.activation.__name__),
            layer_norm_eps=module.norm1.eps,
            batch_first=module.self_attn.batch_first,
            norm_first=module.norm_first,
            bias=module.linear1.bias is not None,
            dtype=lucid.float64,
        ),
        "PairwiseDistance": lambda: lucid.nn.PairwiseDistance(module.norm, module.eps, module.keepdim),
    }[type(module).__name__]()
    exchange = ToLucid(True)
    mine.load_state_dict({k: exchange(v) for k, v in module.state_dict().items()})
    return mine


def flat(value):
    """All tensors of a result, in order."""
    if isinstance(value, (torch.Tensor, lucid.Tensor)):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in flat(v)]
    return []


def assert_alike(mine, theirs, what):
    assert len(mine) == len(theirs), what
    for a, b in zip(mine, theirs):
        torch.testing.assert_close(to_torch(a), b.detach(), equal_nan=True, msg=lambda m: f"{what}: {m}", **WIDE)


def assert_same_state(mine, theirs):
    a, b = mine.state_dict(), theirs.state_dict()
    assert list(a) == list(b)
    assert_alike(list(a.values()), list(b.values()), "state")


def run(m, module, args, kwargs):
    m.manual_seed(7)
    result = module(*args, **kwargs)
    total = sum(
        (t.to(m.float64) * (i + 1)).sum() for i, t in enumerate(flat(result)) if t.is_floating_point() and t.requires_grad
    )
    if hasattr(total, "backward"):
        total.backward()
    return result


def check(info, sample, training):
    torch.manual_seed(3)
    theirs = info.module_cls(*sample.constructor_input.args, **{**sample.constructor_input.kwargs, **DTYPES(info)})
    exchange = ToLucid(True)
    args, kwargs = exchange(sample.constructor_input.args), exchange(sample.constructor_input.kwargs)
    kind = getattr(lucid.nn, info.module_cls.__name__)
    lucid.manual_seed(3)
    mine = kind(*args, **{**kwargs, **{k: lucid.float64 for k in DTYPES(info)}})
    theirs.train(training), mine.train(training)
    lazy = info.module_cls.__name__.startswith("Lazy")
    assert repr(mine).replace("lucid.", "torch.") == repr(theirs)
    if not lazy:
        assert_same_state(mine, theirs)
        copied = kind(*args, **{**kwargs, **{k: lucid.float64 for k in DTYPES(info)}})  # of other weights; PyTorch's are loaded
        assert repr(copied.load_state_dict({k: exchange(v) for k, v in theirs.state_dict().items()})) == MATCHED
        assert_same_state(copied, theirs)
    sides = []
    for m, module, convert in ((lucid, mine, ToLucid(True)), (torch, theirs, Exchange(False))):
        given = convert((sample.forward_input.args, sample.forward_input.kwargs))
        result = run(m, module, *given)
        sides.append((result, convert.leaves, list(module.parameters())))
    (a, a_in, a_p), (b, b_in, b_p) = sides
    assert_alike(flat(a), flat(b), "result")
    for mine_, theirs_, what in ((a_in, b_in, "gradient of an input"), (a_p, b_p, "gradient of a parameter")):
        assert [t.grad is None for t in mine_] == [t.grad is None for t in theirs_], what
        assert_alike([t.grad for t in mine_ if t.grad is not None], [t.grad for t in theirs_ if t.grad is not None], what)
    assert_same_state(mine, theirs)
    if not any(callable(v) and not isinstance(v, type) for v in (*args, *kwargs.values())):
        for other in (copy.deepcopy(mine), pickle.loads(pickle.dumps(mine))):
            assert repr(other) == repr(mine)
            assert list(other.state_dict()) == list(mine.state_dict())


def DTYPES(info):
    """{"dtype": ...} for modules that take one."""
    import inspect

    takes = info.module_cls.__init__
    names = inspect.signature(takes).parameters
    return {"dtype": DTYPE} if "dtype" in names or issubclass(info.module_cls, torch.nn.RNNBase) else {}


@pytest.mark.few(per=lambda info, training: info.formatted_name)
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("info", module_db, ids=lambda info: info.formatted_name)
def test_module(info, training):
    assert hasattr(lucid.nn, info.module_cls.__name__)
    samples = info.module_inputs_func(info, device="cpu", dtype=DTYPE, requires_grad=True, training=training)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, sample in enumerate(samples):
            if sample.forward_input is None:
                continue
            try:
                check(info, sample, training)
            except Exception as error:
                error.add_note(f"sample {i}: {sample.constructor_input} {sample.desc}") if hasattr(error, "add_note") else None
                raise


def _parameters(kind):
    import inspect

    def plain(default):
        return (
            default.__name__
            if callable(default) and hasattr(default, "__name__") and default is not inspect._empty
            else default
        )

    return [(p.name, p.kind, plain(p.default)) for p in inspect.signature(kind.__init__).parameters.values()]


# Not here: containers of old, several processes, and what PyTorch itself keeps for old models.
ABSENT = {"Container", "DataParallel", "SyncBatchNorm", "CrossMapLRN2d"}


def test_constructors_are_pytorchs():
    kinds = {n: k for n, k in vars(torch.nn).items() if isinstance(k, type) and issubclass(k, torch.nn.Module)}
    missing = [n for n in kinds if not hasattr(lucid.nn, n) and n not in ABSENT]
    assert missing == []
    differ = [n for n, k in kinds.items() if n not in ABSENT and _parameters(k) != _parameters(getattr(lucid.nn, n))]
    assert differ == []
