"""Every family of lucid.models, compiled: the bits of eager, forward, gradients and whole training steps."""

import copy
import warnings

import pytest

import lucid
from lucid import models
from lucid._compile.check import difference
from lucid.models import registry

TEXT = dict(vocab_size=37, hidden_size=16, num_hidden_layers=2, num_attention_heads=4)
MORE = dict(num_key_value_heads=2, intermediate_size=24, head_dim=8, pad_token_id=0)  # of those that have it
FAMILIES = sorted({family for name in models.list_models() for family in [registry._ENTRIES[name][2]] if family})


def smallest(family):
    """A model per task of a family of text models, at a small size."""
    found = {}
    for name in models.list_models(family=family):
        _, task, _ = registry._ENTRIES[name]
        found.setdefault(task, name)
    return sorted(found.values())


def is_text(family):
    """Whether its models are called with ids alone; tests/models compiles those that take images, sound or two texts."""
    known = vars(registry._CONFIGS[family]()) if family in registry._CONFIGS else {}
    return known.keys() >= TEXT.keys() and "num_decoder_layers" not in known


def tensors_of(out):
    return [t for t in vars(out).values() if isinstance(t, lucid.Tensor)] if not isinstance(out, lucid.Tensor) else [out]


@pytest.mark.parametrize("name", [n for f in FAMILIES if is_text(f) for n in smallest(f)])
def test_text_models(name):
    lucid.manual_seed(0)
    known = vars(registry._CONFIGS[registry._ENTRIES[name][2]]())
    model = models.create_model(name, **TEXT, **{field: value for field, value in MORE.items() if field in known})
    compare(model, [lucid.randint(1, 37, (2, 9)), lucid.randint(1, 37, (2, 9))])


def compare(model, inputs):
    twin = copy.deepcopy(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a model that ran eagerly would warn
        compiled = lucid.compile(model)
        for mode in (False, True):
            model.train(mode), twin.train(mode)
            for k, x in enumerate([inputs[0], *inputs]):
                lucid.manual_seed(k)
                ours = compiled(x)
                lucid.manual_seed(k)
                theirs = twin(x)
                assert type(ours) is type(theirs)
                pairs = list(zip(tensors_of(ours), tensors_of(theirs)))
                assert pairs and all(difference(a, b) is None for a, b in pairs)
                if not mode:
                    continue
                for side, m in ((ours, model), (theirs, twin)):
                    m.zero_grad()
                    sum(t.float().square().sum() for t in tensors_of(side) if t.requires_grad).backward()
                for (key, p), q in zip(model.named_parameters(), twin.parameters()):
                    assert (p.grad is None) == (q.grad is None), key
                    assert p.grad is None or difference(p.grad, q.grad) is None, key
        assert compiled.cache_info().hits == 4


def test_gpt2_trains_compiled_in_place():
    lucid.manual_seed(0)
    model = models.create_model("gpt2_small_lm", **TEXT)
    twin = copy.deepcopy(model)
    assert model.compile() is model
    ids = lucid.randint(0, 37, (2, 9))

    def loss_fn(out, target):
        return lucid.nn.functional.cross_entropy(out.logits[:, :-1].flatten(0, 1), target[:, 1:].flatten())

    ours, theirs = (lucid.optim.AdamW(m.parameters(), lr=0.01) for m in (model, twin))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step = lucid.compile_step(model, loss_fn, ours, grad_clip=1.0)
        for k in range(4):
            lucid.manual_seed(k)
            loss = step(ids, ids)
            lucid.manual_seed(k)
            theirs.zero_grad()
            expected = loss_fn(twin(ids), ids)
            expected.backward()
            lucid.nn.utils.clip_grad_norm_(twin.parameters(), 1.0)
            theirs.step()
            assert loss.equal(expected)
            assert all(p.equal(q) for p, q in zip(model.parameters(), twin.parameters()))
    assert step.cache_info().hits == 2
