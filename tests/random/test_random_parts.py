"""Random geometries and arguments, good and bad, at ops that cut, copy, repeat and rearrange, against PyTorch."""

from hypothesis import given
from hypothesis import strategies as st

from tests.ops.test_random_operands import both, make, operand
from tests.properties import examples

DIM = st.integers(-4, 4)
FEW = st.integers(-2, 4)
SIZES = st.lists(st.sampled_from([-1, 1, 2, 3, 4, 6]), max_size=3).map(tuple)
COUNTS = st.lists(st.integers(0, 3), max_size=5).map(tuple)
INDICES = st.lists(st.integers(-5, 5), max_size=3)
OPTIONAL = st.none() | st.integers(-6, 6)
DIMS = st.lists(DIM, max_size=2).map(tuple)
ARGUMENTS = {
    "tril": (DIM,),
    "triu": (DIM,),
    "rot90": (DIM, st.tuples(DIM, DIM)),
    "roll": (st.tuples(FEW, FEW), st.tuples(DIM, DIM)),
    "flip": (DIMS,),
    "fliplr": (),
    "flipud": (),
    "tile": (COUNTS,),
    "repeat_interleave": (FEW, st.none() | DIM),
    "constant_pad_nd": (st.lists(st.integers(-2, 2), max_size=6), st.sampled_from([0, 2])),
    "diag": (DIM,),
    "diag_embed": (DIM, DIM, DIM),
    "diagonal_copy": (DIM, DIM, DIM),
    "view_copy": (SIZES,),
    "reshape": (SIZES,),
    "expand_copy": (SIZES,),
    "unfold_copy": (DIM, FEW, FEW),
    "slice_copy": (DIM, OPTIONAL, OPTIONAL, FEW),
    "select_copy": (DIM, DIM),
    "narrow_copy": (DIM, DIM, FEW),
    "squeeze_copy": (),
    "t_copy": (),
    "transpose_copy": (DIM, DIM),
    "permute_copy": (st.lists(DIM, max_size=4).map(tuple),),
    "unsqueeze_copy": (DIM,),
    "unbind_copy": (DIM,),
    "split_copy": (FEW, DIM),
    "tensor_split": (FEW | INDICES, DIM),
    "hsplit": (FEW | INDICES,),
    "vsplit": (FEW | INDICES,),
    "dsplit": (FEW | INDICES,),
    "unsafe_chunk": (FEW, DIM),
    "unsafe_split": (FEW, DIM),
    "atleast_1d": (),
    "atleast_2d": (),
    "atleast_3d": (),
    "ravel": (),
    "flatten": (DIM, DIM),
    "movedim": (DIM, DIM),
    "combinations": (st.integers(0, 3), st.booleans()),
}


@st.composite
def call(draw):
    name = draw(st.sampled_from(sorted(ARGUMENTS)))
    return name, [draw(a) for a in ARGUMENTS[name]]


@examples(800)
@given(call(), operand())
def test_parts(called, a):
    name, args = called
    both(lambda m: getattr(m, name)(make(m, a), *args))


@examples(300)
@given(st.sampled_from(["select", "slice", "diagonal"]), operand(3), st.booleans(), DIM, OPTIONAL, OPTIONAL)
def test_scatter(name, a, fits, dim, first, second):
    """src is what the view sees, doubled; or the input itself, which mostly does not fit."""
    args = {"select": (dim, first or 0), "slice": (dim, first, second, 2), "diagonal": (first or 0, dim, second or 0)}[name]

    def run(m):
        x = make(m, a)
        src = getattr(m, name + "_copy")(x, *args) if fits else x
        return getattr(m, name + "_scatter")(x, src + src if src.dtype != m.bool else src, *args)

    both(run)
