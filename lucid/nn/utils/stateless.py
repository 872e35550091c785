"""A module called with other parameters and buffers than its own."""

import warnings

from ..._C import Tensor

_NOTHING = object()


def _swap(owner, name, value):
    """Put a value where a module has a tensor of this name; returns what was there, _NOTHING if there was nothing."""
    for members in (owner._parameters, owner._buffers):
        if name in members:
            old = members[name]
            if value is _NOTHING:
                del members[name]
            else:
                members[name] = value
            return old
    old = getattr(owner, name, _NOTHING)
    if old is not _NOTHING and old is not None and not isinstance(old, Tensor):
        raise TypeError(f"attribute `{name}`: {old} is not an instance of lucid.Tensor")
    if value is not _NOTHING:
        setattr(owner, name, value)
    elif old is not _NOTHING:
        delattr(owner, name)
    return old


def _owner(module, path):
    for part in path.split(".") if path else ():
        inner = getattr(module, part, _NOTHING)
        if inner is _NOTHING:
            raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
        if not hasattr(inner, "_parameters"):
            raise TypeError(f"submodule `{path}`: {inner} is not an instance of lucid.nn.Module")
        module = inner
    return module


def _named_tensors(module):
    return {**dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers(remove_duplicate=False))}


def _with_tied(module, given):
    """A replacement given for one name of a tied tensor applies to all its names."""
    names = {}
    for name, tensor in _named_tensors(module).items():
        names.setdefault(id(tensor), []).append(name)
    result = dict(given)
    for tied in names.values():
        chosen = [name for name in tied if name in given]
        if len(tied) > 1 and chosen:
            if any(given[name] is not given[chosen[0]] for name in chosen):
                raise ValueError(
                    f"functional_call got multiple values for keys {sorted(tied)}, which are tied. Consider using "
                    "tie_weights=False"
                )
            result.update(dict.fromkeys(tied, given[chosen[0]]))
    return result


def _check_names(module, given):
    own = _named_tensors(module)
    problems = (("Unexpected", sorted(set(given) - set(own))), ("Missing", sorted(set(own) - set(given))))
    lines = [f"{kind} key(s): {', '.join(map(repr, names))}." for kind, names in problems if names]
    if lines:
        listed = "\n\t".join(lines)
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t{listed}")


class _Swapped:
    """Other tensors in a module, until the end of a `with` block. What the module itself writes goes into the given dict."""

    def __init__(self, module, given, tie_weights, strict):
        self.module, self.given = module, given
        self.values = _with_tied(module, given) if tie_weights else dict(given)
        if strict:
            _check_names(module, self.values)
        for value in self.values.values():
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"{value} is not an instance of lucid.Tensor")
        self.places = []

    def _put_back(self):
        while self.places:
            owner, name, key, old = self.places.pop()
            now = _swap(owner, name, old)
            if key in self.given and now is not _NOTHING:
                self.given[key] = now

    def __enter__(self):
        try:
            for key, value in self.values.items():
                path, _, name = key.rpartition(".")
                owner = _owner(self.module, path)
                self.places.append((owner, name, key, _swap(owner, name, value)))
        except BaseException:
            self._put_back()
            raise

    def __exit__(self, *error):
        self._put_back()


def _reparametrize_module(module, parameters_and_buffers, tie_weights=False, strict=False, stack_weights=False):
    """A block in which a module has other parameters and buffers. What it writes goes into the given dict. The order in which
    names come back (stack_weights) is always that of a stack.

    >>> layer = lucid.nn.PReLU()
    >>> with lucid.nn.utils.stateless._reparametrize_module(layer, {"weight": lucid.tensor([2.0])}):
    ...     layer(lucid.tensor([-1.0]))
    tensor([-2.])
    """
    return _Swapped(module, parameters_and_buffers, tie_weights, strict)


def call_with(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """`lucid.func.functional_call` for one dict of tensors.

    >>> from lucid.nn.utils.stateless import call_with
    >>> call_with(lucid.nn.PReLU(), {"weight": lucid.tensor([2.0])}, lucid.tensor([-1.0, 1.0]))
    tensor([-2.,  1.])
    """
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _Swapped(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """The older place of `lucid.func.functional_call`.

    >>> x = lucid.tensor([-1.0, 1.0])
    >>> lucid.nn.utils.stateless.functional_call(lucid.nn.PReLU(), {"weight": lucid.tensor([2.0])}, x)
    tensor([-2.,  1.])
    """
    warnings.warn(
        "`lucid.nn.utils.stateless.functional_call` is deprecated: use `lucid.func.functional_call`, which takes the same "
        "arguments.",
        FutureWarning,
        stacklevel=2,
    )
    return call_with(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


__all__ = ["functional_call"]
