"""Results that are objects: what a traced function made itself is made again after every run of its plan."""

import collections
import dataclasses
import functools
import warnings

import pytest

import lucid
from lucid.models import CausalLMOutput


@dataclasses.dataclass
class Pair:
    first: lucid.Tensor
    second: object = None
    scale: float = 2.0

    def total(self):
        return (self.first + self.second).sum() * self.scale


class Named(collections.OrderedDict):
    """A dict whose items are attributes, too, as transformers' outputs are."""

    def __init__(self, **values):
        super().__init__()
        for name, value in values.items():
            self[name] = value
            setattr(self, name, value)


class Plain:
    kind = "plain"

    def __init__(self, x):
        self.x, self.many = x, [x, {"twice": x + x}]


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


def same(a, b):
    assert type(a) is type(b)
    if isinstance(a, lucid.Tensor):
        assert a.equal(b) and a.requires_grad == b.requires_grad
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        [same(x, y) for x, y in zip(a, b)]
    elif isinstance(a, dict):
        assert list(a) == list(b)
        [same(a[k], b[k]) for k in a]
    if hasattr(a, "__dict__") and not isinstance(a, lucid.Tensor):
        same(vars(a), vars(b))


FUNCTIONS = {
    "dataclass": lambda x: Pair(x + 1, x * 2),
    "a dataclass in a list": lambda x: [Pair(x.sin(), None, 3.0), x.cos()],
    "nested": lambda x: Pair(Plain(x * 3), {"a": Pair(x, x + 1)}),
    "ordered dict with attributes": lambda x: Named(logits=x * 2, loss=x.sum()),
    "plain": lambda x: Plain(x.exp()),
    "its methods run": lambda x: Pair(x, x * x).total(),
    "a model's output": lambda x: CausalLMOutput(logits=x * 2, loss=x.mean()),
}


@pytest.mark.parametrize("wants", [False, True], ids=["plain", "gradient"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bits(name, wants):
    fn = FUNCTIONS[name]
    compiled = lucid.compile(fn, fullgraph=True)
    for k in range(3):
        x = lucid.randn(3, 4, generator=lucid.Generator().manual_seed(k)).requires_grad_(wants)
        same(compiled(x), fn(x))
    assert compiled.cache_info().hits == 2


def test_every_call_makes_its_own():
    compiled = lucid.compile(FUNCTIONS["plain"], fullgraph=True)
    x = lucid.ones(2)
    a, b, c = (compiled(x) for _ in range(3))
    assert len({id(o) for o in (a, b, c)}) == len({id(o.many) for o in (a, b, c)}) == 3
    assert b.x is b.many[0] and b.x is not c.x
    b.x.zero_()
    assert c.x.equal(x.exp())


def test_attributes_of_the_class_are_watched():
    def fn(x):
        made = Pair(x, x)
        return made.first * Plain.__dict__["factor"] if "factor" in vars(Plain) else Plain(x * len(Plain.kind)).x

    compiled = lucid.compile(fn, fullgraph=True)
    assert compiled(lucid.ones(1)).item() == compiled(lucid.ones(1)).item() == 5
    Plain.kind = "longer"
    try:
        assert compiled(lucid.ones(1)).item() == 6
    finally:
        Plain.kind = "plain"


KEPT, MADE = [], Pair(1, 2)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: MADE,  # made before: the same object every time
        lambda x: Slotted(x),
        lambda x: KEPT.append(Plain(x)) or KEPT[-1],  # somebody else has it
    ],
    ids=["made before", "slots", "kept"],
)
def test_other_objects_run_eagerly(fn):
    compiled = lucid.compile(fn)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = [compiled(lucid.full((1,), float(k))) for k in range(3)]
    assert "runs eagerly" in str(caught[0].message)
    if isinstance(results[0], Pair):
        assert results[0] is results[1]
    else:
        assert [r.x.item() for r in results] == [0, 1, 2]
    KEPT.clear()


def test_an_object_that_was_there_is_not_born():
    """__init__ of an object that the function did not make."""
    made = Plain.__new__(Plain)

    def fn(x):
        made.__init__(x * 2)
        return made.x + 1

    compiled = lucid.compile(fn)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(3):
            assert compiled(lucid.full((1,), float(k))).item() == 2 * k + 1 and made.x.item() == 2 * k


class Owner:
    """An object that a function from outside changes."""

    def __init__(self):
        self.factor = 2

    @functools.cached_property
    def table(self):
        return lucid.arange(3.0) * self.factor


def test_a_new_attribute_is_a_change():
    owner = Owner()

    def fn(x):
        owner.last = x * owner.factor
        return owner.last + 1

    compiled = lucid.compile(fn)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(4):
            assert compiled(lucid.full((1,), float(k))).item() == 2 * k + 1 and owner.last.item() == 2 * k
    assert "changes an attribute of Owner" in str(caught[0].message)


def test_what_is_made_at_the_first_use_does_not_stop_compilation():
    owner = Owner()
    compiled = lucid.compile(lambda x: x + owner.table, fullgraph=True)
    for k in range(4):
        assert compiled(lucid.full((3,), float(k))).equal(lucid.full((3,), float(k)) + owner.table)
    assert compiled.cache_info()[:2] == (2, 1)
