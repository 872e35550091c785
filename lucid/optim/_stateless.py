"""An optimizer with temporarily replaced parameters and state."""

from collections import defaultdict
from contextlib import contextmanager

_NAME = "swap_in_optimizer_params_and_state"


def _need(holds, what):
    if not holds:
        raise RuntimeError(f"{_NAME} requires {what}")


def _checked(optimizer, parameters, given):
    """(live group, its replacement, its new parameters) for every group."""
    _need(optimizer.state, "initialized optimizer state.")
    _need(isinstance(given, dict), "an optimizer state_dict.")
    state, groups = given.get("state"), given.get("param_groups")
    _need(isinstance(state, dict), f"swapin_optim_state['state'] to be a dict, got {type(state).__name__}.")
    _need(all(isinstance(v, dict) for k, v in state.items() if isinstance(k, int)), "dictionaries as states of parameters.")
    _need(isinstance(groups, list), f"swapin_optim_state['param_groups'] to be a list, got {type(groups).__name__}.")
    _need(len(groups) == len(optimizer.param_groups), "as many parameter groups as the live optimizer has.")
    left, known, infos = list(parameters.values()), set(), []
    for i, (live, group) in enumerate(zip(optimizer.param_groups, groups)):
        _need(isinstance(group, dict), "each optimizer param group to be a dictionary.")
        numbers = group.get("params")
        _need(
            isinstance(numbers, list) and all(isinstance(n, int) for n in numbers),
            "param_groups[*]['params'] entries keyed by packed parameter ids.",
        )
        _need(len(numbers) == len(live["params"]), f"as many params in group {i} as the live optimizer has there.")
        _need(live.keys() == group.keys(), f"the live optimizer's keys in group {i}; differing: {live.keys() ^ group.keys()}.")
        _need(len(numbers) <= len(left), "the parameters to match the order of optimizer.param_groups.")
        infos.append((live, group, left[: len(numbers)]))
        left = left[len(numbers) :]
        known.update(numbers)
    _need(
        state.keys() <= known, f"states of packed parameter ids alone; got extra keys {[k for k in state if k not in known]}."
    )
    return infos


@contextmanager
def swap_in_optimizer_params_and_state(optimizer, swapin_parameters, swapin_optim_state):
    """Inside the block the optimizer works on these parameters (a dict, in the order of its own) with this state, what
    `optimizer.state_dict()` gives. In-place changes of these tensors last; everything else is as before afterwards.

    >>> p, other = lucid.ones(1, requires_grad=True), lucid.zeros(1, requires_grad=True)
    >>> optimizer = lucid.optim.SGD([p], lr=0.5, momentum=0.9)
    >>> p.grad = other.grad = lucid.ones(1)
    >>> optimizer.step()
    >>> with lucid.optim.swap_in_optimizer_params_and_state(optimizer, {"p": other}, optimizer.state_dict()):
    ...     optimizer.step()
    >>> p.item(), round(other.item(), 2)
    (0.5, -0.95)
    """
    infos = _checked(optimizer, swapin_parameters, swapin_optim_state)
    before, groups = optimizer.state, [dict(group) for group in optimizer.param_groups]
    try:
        state = defaultdict(dict)
        for live, group, params in infos:
            live.update(group, params=params)
            for p, number in zip(params, group["params"]):
                state[p] = dict(swapin_optim_state["state"].get(number, {}))
        optimizer.state = state
        yield
    finally:
        for live, group in zip(optimizer.param_groups, groups):
            live.clear()
            live.update(group)
        optimizer.state = before


__all__ = ["swap_in_optimizer_params_and_state"]
