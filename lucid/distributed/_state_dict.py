"""State dicts of models and optimizers in one process: `torch.distributed.checkpoint.state_dict`."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@runtime_checkable
class Stateful(Protocol):
    """Anything with `state_dict` and `load_state_dict`.

    >>> isinstance(lucid.nn.Linear(1, 1), lucid.distributed._state_dict.Stateful)
    True
    """

    def state_dict(self): ...
    def load_state_dict(self, state_dict): ...


@dataclass
class StateDictOptions:
    """How state dicts are made.

    >>> lucid.distributed._state_dict.StateDictOptions(strict=False).strict
    False
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False


def _plain(name):
    return name.removeprefix("module.").replace("_orig_mod.", "").replace("_checkpoint_wrapped_module.", "")


def _refuse_parts(submodules):
    if submodules:
        raise NotImplementedError("state of submodules alone is not supported: ask for the state of the submodule itself")


def get_model_state_dict(model, *, submodules=None, options=None):
    """The state of a model by the names of the plain model, without what wrappers put in front.

    >>> list(lucid.distributed._state_dict.get_model_state_dict(lucid.nn.Linear(1, 1)))
    ['weight', 'bias']
    """
    _refuse_parts(submodules)
    frozen = {n for n, p in model.named_parameters() if not p.requires_grad} if options and options.ignore_frozen_params else ()
    return {_plain(name): value for name, value in model.state_dict().items() if name not in frozen}


def set_model_state_dict(model, model_state_dict, *, options=None):
    """Load what `get_model_state_dict` gave.

    >>> layer = lucid.nn.Linear(1, 1)
    >>> get, put = lucid.distributed._state_dict.get_model_state_dict, lucid.distributed._state_dict.set_model_state_dict
    >>> put(layer, get(layer))
    <All keys matched successfully>
    """
    names = {_plain(name): name for name in model.state_dict()}
    state = {names.get(name, name): value for name, value in model_state_dict.items()}
    return model.load_state_dict(state, strict=options.strict if options else True)


def _parameter_names(model, optimizer):
    names = {parameter: _plain(name) for name, parameter in model.named_parameters()}
    return [[names[p] for p in group["params"]] for group in optimizer.param_groups]


def _optimizers(optimizers):
    return [optimizers] if hasattr(optimizers, "param_groups") else list(optimizers)


def get_optimizer_state_dict(model, optimizers, *, submodules=None, options=None):
    """The state of optimizers, by the names of parameters instead of their numbers.

    >>> layer = lucid.nn.Linear(1, 1)
    >>> sgd = lucid.optim.SGD(layer.parameters(), lr=0.1)
    >>> lucid.distributed._state_dict.get_optimizer_state_dict(layer, sgd)["param_groups"][0]["params"]
    ['weight', 'bias']
    """
    _refuse_parts(submodules)
    whole = {"state": {}, "param_groups": []}
    for optimizer in _optimizers(optimizers):
        state, names = optimizer.state_dict(), _parameter_names(model, optimizer)
        flat = [name for group in names for name in group]
        whole["state"] |= {flat[number]: value for number, value in state["state"].items()}
        whole["param_groups"] += [{**group, "params": own} for group, own in zip(state["param_groups"], names)]
    return whole


def set_optimizer_state_dict(model, optimizers, optim_state_dict, *, options=None):
    """Load what `get_optimizer_state_dict` gave.

    >>> layer = lucid.nn.Linear(1, 1)
    >>> sgd = lucid.optim.SGD(layer.parameters(), lr=0.1)
    >>> state = lucid.distributed._state_dict.get_optimizer_state_dict(layer, sgd)
    >>> lucid.distributed._state_dict.set_optimizer_state_dict(layer, sgd, state)
    """
    groups = list(optim_state_dict["param_groups"])
    for optimizer in _optimizers(optimizers):
        names = _parameter_names(model, optimizer)
        flat = [name for group in names for name in group]
        mine, groups = groups[: len(names)], groups[len(names) :]
        number = {name: i for i, name in enumerate(flat)}
        state = {number[name]: value for name, value in optim_state_dict["state"].items() if name in number}
        own = [{**group, "params": [number[name] for name in group["params"]]} for group in mine]
        optimizer.load_state_dict({"state": state, "param_groups": own})


def get_state_dict(model, optimizers, *, submodules=None, options=None):
    """Both state dicts.

    >>> layer = lucid.nn.Linear(1, 1)
    >>> len(lucid.distributed._state_dict.get_state_dict(layer, lucid.optim.SGD(layer.parameters(), lr=0.1)))
    2
    """
    _refuse_parts(submodules)
    return get_model_state_dict(model, options=options), get_optimizer_state_dict(model, optimizers, options=options)


def set_state_dict(model, optimizers, *, model_state_dict, optim_state_dict, options=None):
    """Load both state dicts.

    >>> layer = lucid.nn.Linear(1, 1)
    >>> sgd = lucid.optim.SGD(layer.parameters(), lr=0.1)
    >>> a, b = lucid.distributed._state_dict.get_state_dict(layer, sgd)
    >>> lucid.distributed._state_dict.set_state_dict(layer, sgd, model_state_dict=a, optim_state_dict=b)
    <All keys matched successfully>
    """
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
