"""Patterns and the steps to execute one: parsed once and cached per pattern and shape.

A side of a pattern is a list of groups, one per dimension; a group is a list of axes. An axis is a name, or a `Length` for a
number in the pattern (no two are equal). A dimension of size one is the empty group. `...` stands for one axis per dimension
that it covers.
"""

import keyword
import warnings
from functools import lru_cache
from math import prod
from typing import NamedTuple

REDUCTIONS = ("min", "max", "sum", "mean", "prod", "any", "all")
ELLIPSIS = "…"


class EinopsError(RuntimeError):
    """A pattern that cannot be read, or that does not fit the tensor.

    >>> lucid.einops.rearrange(lucid.ones(2, 3), "a b c -> a b c")
    Traceback (most recent call last):
    lucid.einops.EinopsError: ...
    """


class Length:
    """An axis without a name. Each is an axis of its own.

    >>> from lucid.einops._plan import Length
    >>> Length(2).value, Length(2) == Length(2)
    (2, False)
    """

    def __init__(self, value):
        self.value = value


class Plan(NamedTuple):
    """Steps in order; None or empty: nothing to do.

    >>> from lucid.einops._plan import plan
    >>> plan("a b -> b a", "rearrange", (2, 3), ()).order
    (1, 0)
    """

    first_shape: tuple | None  # groups taken apart
    reduced: tuple  # dimensions, after that
    order: tuple | None
    added: tuple  # positions of new dimensions, ascending
    expanded: tuple | None
    last_shape: tuple | None  # groups put together


def _name_of(text, underscore=False):
    """The text as an axis; complains if it cannot be one."""
    if text.isdecimal():
        if int(text) < 1:
            raise EinopsError(f"Anonymous axis should have positive length, not {text}")
        return Length(int(text))
    if text == "_" and underscore:
        return text
    if not text.isidentifier() or text[0] == "_" or text[-1] == "_":
        raise EinopsError(f"Invalid axis identifier: {text}")
    if keyword.iskeyword(text):
        warnings.warn(f"It is discouraged to use axes names that are keywords: {text}", RuntimeWarning, stacklevel=2)
    return text


def _tokens(text):
    if "." in text:
        if text.count("...") != 1 or text.count(".") != 3:
            raise EinopsError("Expression may contain dots only inside ellipsis (...); only one ellipsis for tensor")
        text = text.replace("...", ELLIPSIS)
    for char in text:
        if not (char.isalnum() or char in "()_ " or char == ELLIPSIS):
            raise EinopsError(f"Unknown character '{char}'")
    return text.replace("(", " ( ").replace(")", " ) ").split()


def parse(text, underscore=False, duplicates=False):
    """One side of a pattern as a list of groups; ELLIPSIS stands for itself, alone or in a group.

    >>> from lucid.einops._plan import parse
    >>> parse("a (b c) 1 ...")
    [['a'], ['b', 'c'], [], '…']
    """
    groups, open_group, seen = [], None, set()
    for token in _tokens(text):
        if token == "(":
            if open_group is not None:
                raise EinopsError("Axis composition is one-level (brackets inside brackets not allowed)")
            open_group = []
        elif token == ")":
            if open_group is None:
                raise EinopsError("Brackets are not balanced")
            groups.append(open_group)
            open_group = None
        elif token == "1":
            if open_group is None:
                groups.append([])
        else:
            axis = ELLIPSIS if token == ELLIPSIS else _name_of(token, underscore)
            if axis in seen and not duplicates and axis != "_":
                raise EinopsError(f'Indexing expression contains duplicate dimension "{axis}"')
            seen.add(axis)
            if open_group is not None:
                open_group.append(axis)
            else:
                groups.append(ELLIPSIS if axis == ELLIPSIS else [axis])
    if open_group is not None:
        raise EinopsError(f'Imbalanced parentheses in expression: "{text}"')
    return groups


def _sides(pattern):
    if not isinstance(pattern, str) or pattern.count("->") != 1:
        raise EinopsError(f"A pattern has two sides, joined by one ->: {pattern!r}")
    left, right = (parse(side) for side in pattern.split("->"))
    if any(ELLIPSIS in group for group in left if group != ELLIPSIS):
        raise EinopsError(f"Ellipsis inside parenthesis in the left side is not allowed: {pattern}")
    if ELLIPSIS not in left and any(ELLIPSIS in group for group in right):
        raise EinopsError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    return left, right


def _spelled_out(groups, covered):
    """The groups with one axis for each dimension that an ellipsis covers."""
    axes = [f"{ELLIPSIS}{i}" for i in range(covered)]
    result = []
    for group in groups:
        if group == ELLIPSIS:
            result += [[axis] for axis in axes]
        else:
            result.append([a for axis in group for a in (axes if axis == ELLIPSIS else [axis])])
    return result


def _check(pattern, operation, left, right, named):
    """Axes appear on both sides, or on the side where the operation lets them."""
    on_left, on_right = ({a for group in side for a in group} for side in (left, right))
    numbers = [a for a in on_left | on_right if isinstance(a, Length)]
    if operation == "rearrange":
        if numbers:
            raise EinopsError("Non-unitary anonymous axes are not supported in rearrange (exception is length 1)")
        if on_left != on_right:
            raise EinopsError(f"Identifiers only on one side of expression (should be on both): {on_left ^ on_right}")
    elif operation == "repeat":
        if on_left - on_right:
            raise EinopsError(f"Unexpected identifiers on the left side of repeat: {on_left - on_right}")
        if unsized := {a for a in on_right - on_left if not isinstance(a, Length)} - set(named):
            raise EinopsError(f"Specify sizes for new axes in repeat: {unsized}")
    elif on_right - on_left:
        raise EinopsError(f"Unexpected identifiers on the right side of reduce {operation}: {on_right - on_left}")
    for axis in named:
        _name_of(axis)
        if axis not in on_left | on_right:
            raise EinopsError(f"Axis {axis} is not used in transform")


def _measured(left, shape, lengths):
    """The length of every axis: given, written in the pattern, or what is left of its dimension."""
    known = dict(lengths)
    for group in left:
        known.update({a: a.value for a in group if isinstance(a, Length)})
    for group, size in zip(left, shape):
        unknown = [a for a in group if a not in known]
        of_known = prod(known[a] for a in group if a in known)
        if len(unknown) > 1:
            raise EinopsError(f"Could not infer sizes for {set(unknown)}")
        if not unknown and size != of_known:
            raise EinopsError(f"Shape mismatch, {size} != {of_known}")
        if unknown:
            if of_known == 0 or size % of_known:
                raise EinopsError(f"Shape mismatch, can't divide axis of length {size} in chunks of {of_known}")
            known[unknown[0]] = size // of_known
    return known


@lru_cache(1024)
def plan(pattern, operation, shape, lengths):
    """What rearrange, repeat or a reduction does to a tensor of this shape. lengths: (name, length) pairs.

    >>> from lucid.einops._plan import plan
    >>> plan("(a b) -> b", "sum", (6,), (("a", 2),))[:2]
    ((2, 3), (0,))
    """
    left, right = _sides(pattern)
    covered = len(shape) - len(left) + 1 if ELLIPSIS in left else 0
    if covered < 0 or (ELLIPSIS not in left and len(shape) != len(left)):
        raise EinopsError(f"Wrong shape: the pattern has {len(left)} dimensions, the tensor {len(shape)}")
    left, right = _spelled_out(left, covered), _spelled_out(right, covered)
    _check(pattern, operation, left, right, [name for name, _ in lengths])
    size = _measured(left, shape, lengths)
    before, after = ([a for group in side for a in group] for side in (left, right))
    size.update({a: a.value for a in after if isinstance(a, Length)})
    kept = [a for a in before if a in after]
    order = tuple(kept.index(a) for a in after if a in before)
    added = tuple(i for i, a in enumerate(after) if a not in before)
    taken_apart = any(len(group) != 1 for group in left)
    put_together = any(len(group) != 1 for group in right)
    return Plan(
        tuple(size[a] for a in before) if taken_apart else None,
        tuple(i for i, a in enumerate(before) if a not in after),
        None if order == tuple(range(len(order))) else order,
        added,
        tuple(size[a] for a in after) if added else None,
        tuple(prod(size[a] for a in group) for group in right) if put_together else None,
    )
