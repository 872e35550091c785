"""Recurrent layers."""

import math
import numbers
import warnings

from ... import _C
from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module


def _is_autocast():  # the ops then convert what they are given
    from ...amp._state import is_any_autocast_enabled

    return is_any_autocast_enabled()


class RNNBase(Module):
    """Layers over whole sequences: parameters by layer and direction, under PyTorch's names.

    >>> isinstance(lucid.nn.LSTM(2, 3), lucid.nn.RNNBase), list(lucid.nn.LSTM(2, 3).state_dict())[:2]
    (True, ['weight_ih_l0', 'weight_hh_l0'])
    """

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]

    def __init__(
        self,
        mode,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self._check_settings(dropout)
        gates = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}.get(mode)
        if gates is None:
            raise ValueError("Unrecognized RNN mode: " + mode)
        directions, out_size = 2 if bidirectional else 1, proj_size or hidden_size
        self._flat_weights_names = []
        for at in range(num_layers):
            in_size = input_size if at == 0 else out_size * directions
            for suffix in ("", "_reverse")[:directions]:
                shapes = {"weight_ih": (gates * hidden_size, in_size), "weight_hh": (gates * hidden_size, out_size)}
                if bias:
                    shapes |= {"bias_ih": (gates * hidden_size,), "bias_hh": (gates * hidden_size,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for kind, shape in shapes.items():
                    name = f"{kind}_l{at}{suffix}"
                    setattr(self, name, Parameter(_C.empty(shape, device=device, dtype=dtype)))
                    self._flat_weights_names.append(name)
        self.reset_parameters()

    def _check_settings(self, dropout):
        if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
                f"greater than 1, but got dropout={dropout} and num_layers={self.num_layers}",
                stacklevel=4,
            )
        for name, kind in (("bias", bool), ("batch_first", bool), ("input_size", int), ("hidden_size", int)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(getattr(self, name)).__name__}")
        if self.input_size <= 0:
            raise ValueError("input_size must be greater than zero")
        if self.hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")

    @property
    def _flat_weights(self):
        return [getattr(self, name) for name in self._flat_weights_names]

    @property
    def all_weights(self):
        """The parameters, a list per layer and direction."""
        each = 2 + 2 * self.bias + (self.proj_size > 0)
        flat = self._flat_weights
        return [flat[i : i + each] for i in range(0, len(flat), each)]

    def flatten_parameters(self):
        """Parameters need no order of their own in memory here: nothing to do."""

    def reset_parameters(self):
        """Draw all parameters anew."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def check_input(self, input, batch_sizes):  # noqa: A002
        """Raise for an input of the wrong shape or dtype."""
        weight = getattr(self, self._flat_weights_names[0])
        if input.dtype != weight.dtype and not _is_autocast():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
                f"input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}")

    def _state_shape(self, input, batch_sizes, size):  # noqa: A002
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.size(0 if self.batch_first else 1)
        return (self.num_layers * (2 if self.bidirectional else 1), batch, size)

    def get_expected_hidden_size(self, input, batch_sizes):  # noqa: A002
        """The shape of the hidden state."""
        return self._state_shape(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        """Complain about a state of the wrong shape."""
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input, hidden, batch_sizes):  # noqa: A002
        """Complain about an input or a state of the wrong shape."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation):
        """The state in another order of the batch."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def _zero_state(self, input, shape):  # noqa: A002
        return _C.zeros(shape, dtype=input.dtype, device=input.device)

    def _start(self, input, batch_sizes, hx, sorted_indices, batched):  # noqa: A002
        """The state a call begins with, with a batch dimension and in the order of the input."""
        if hx is None:
            return self._zero_state(input, self.get_expected_hidden_size(input, batch_sizes))
        return self.permute_hidden(hx if batched else hx.unsqueeze(1), sorted_indices)

    def _check_unbatched(self, hx, batched):
        if hx.dim() != (3 if batched else 2):
            kind, n = ("batched 3-D", "3-D") if batched else ("unbatched 2-D", "2-D")
            raise RuntimeError(f"For {kind} input, hx should also be {n} but got {hx.dim()}-D tensor")

    def _rest(self):
        return (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)

    def _end(self, hidden, unsorted_indices, batched):
        hidden = self.permute_hidden(hidden, unsorted_indices)
        return hidden if batched else hidden.squeeze(1)

    def _run(self, input, hx, batch_sizes):  # noqa: A002
        function = getattr(_C, self.mode.lower())
        if batch_sizes is None:
            return function(input, hx, self._flat_weights, *self._rest(), self.batch_first)
        return function(input, batch_sizes, hx, self._flat_weights, *self._rest())

    def forward(self, input, hx=None):  # noqa: A002
        packed, batched = input if isinstance(input, PackedSequence) else None, True
        batch_sizes = sorted_indices = unsorted_indices = None
        if packed is not None:
            input, batch_sizes, sorted_indices, unsorted_indices = packed  # noqa: A001
        else:
            batched = input.dim() == 3
            if not batched:
                if input.dim() != 2:
                    raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D instead")
                input = input.unsqueeze(0 if self.batch_first else 1)  # noqa: A001
            if hx is not None:
                self._check_unbatched(hx, batched)
        hx = self._start(input, batch_sizes, hx, sorted_indices, batched)
        self.check_forward_args(input, hx, batch_sizes)
        output, *state = self._run(input, hx, batch_sizes)
        if not batched or unsorted_indices is not None:
            state = [self._end(s, unsorted_indices, batched) for s in state]
        hidden = state[0] if len(state) == 1 else tuple(state)
        if packed is not None:
            return PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices), hidden
        return output if batched else output.squeeze(0 if self.batch_first else 1), hidden

    def extra_repr(self):
        said = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            said += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            said += f", num_layers={self.num_layers}"
        if self.bias is not True:
            said += f", bias={self.bias}"
        if self.batch_first is not False:
            said += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            said += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            said += f", bidirectional={self.bidirectional}"
        return said


class RNN(RNNBase):
    """The plain recurrent layer: h = tanh(W x + b + U h + c), or relu.

    >>> output, h = lucid.nn.RNN(10, 20, 2)(lucid.ones(5, 3, 10))
    >>> tuple(output.shape), tuple(h.shape)
    ((5, 3, 20), (2, 3, 20))
    """

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if len(args) > 3:
            nonlinearity, args = args[3], args[:3] + args[4:]
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        self.__dict__["nonlinearity"] = nonlinearity
        super().__init__("RNN_" + nonlinearity.upper(), *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent units.

    >>> output, h = lucid.nn.GRU(10, 20, 2)(lucid.ones(5, 3, 10))
    >>> tuple(output.shape), tuple(h.shape)
    ((5, 3, 20), (2, 3, 20))
    """

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory.

    >>> output, (h, c) = lucid.nn.LSTM(10, 20, 2)(lucid.ones(5, 3, 10))
    >>> tuple(output.shape), tuple(c.shape)
    ((5, 3, 20), (2, 3, 20))
    """

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input, batch_sizes):  # noqa: A002
        """The shape of the cell state."""
        return self._state_shape(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input, hidden, batch_sizes):  # noqa: A002
        """Complain about an input or a state of the wrong shape."""
        self.check_input(input, batch_sizes)
        hidden_size, cell_size = self.get_expected_hidden_size, self.get_expected_cell_size
        self.check_hidden_size(hidden[0], hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hidden[1], cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx, permutation):
        """The states in another order of the batch."""
        if permutation is None:
            return hx
        return tuple(h.index_select(1, permutation) for h in hx) if isinstance(hx, tuple) else hx.index_select(1, permutation)

    def _start(self, input, batch_sizes, hx, sorted_indices, batched):  # noqa: A002
        if hx is None:
            zeros = self._zero_state(input, self.get_expected_hidden_size(input, batch_sizes))
            return zeros, self._zero_state(input, self.get_expected_cell_size(input, batch_sizes)) if self.proj_size else zeros
        return self.permute_hidden(tuple(hx) if batched else tuple(h.unsqueeze(1) for h in hx), sorted_indices)

    def _check_unbatched(self, hx, batched):
        if any(h.dim() != (3 if batched else 2) for h in hx):
            kind, n = ("batched 3-D", "3-D") if batched else ("unbatched 2-D", "2-D")
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {n} but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )


class RNNCellBase(Module):
    """One step of a recurrent layer.

    >>> isinstance(lucid.nn.GRUCell(2, 3), lucid.nn.RNNCellBase)
    True
    """

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(_C.empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(_C.empty((rows, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(_C.empty(rows, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw all parameters anew."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self):
        said = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            said += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            said += f", nonlinearity={self.nonlinearity}"
        return said

    def _weights(self):
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _checked(self, input, hx):  # noqa: A002
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for i, h in enumerate(hx if isinstance(hx, tuple) else () if hx is None else (hx,)):
            if h.dim() not in (1, 2):
                which = f"hx[{i}]" if isinstance(hx, tuple) else "hidden"
                raise ValueError(f"{name}: Expected {which} to be 1D or 2D, got {h.dim()}D instead")

    def _step(self, function, input, hx):  # noqa: A002
        """The new state or states; vectors are batches of one."""
        self._checked(input, hx)
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)  # noqa: A001
        several = function is _C.lstm_cell
        if hx is None:
            zeros = _C.zeros((input.size(0), self.hidden_size), dtype=input.dtype, device=input.device)
            hx = (zeros, zeros) if several else zeros
        elif not batched:
            hx = tuple(h.unsqueeze(0) for h in hx) if several else hx.unsqueeze(0)
        result = function(input, hx, *self._weights())
        if batched:
            return result
        return tuple(r.squeeze(0) for r in result) if several else result.squeeze(0)


class RNNCell(RNNCellBase):
    """One step of the plain recurrent layer.

    >>> tuple(lucid.nn.RNNCell(10, 20)(lucid.ones(3, 10)).shape)
    (3, 20)
    """

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):  # noqa: A002
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(getattr(_C, f"rnn_{self.nonlinearity}_cell"), input, hx)


class LSTMCell(RNNCellBase):
    """One step of long short-term memory.

    >>> h, c = lucid.nn.LSTMCell(10, 20)(lucid.ones(3, 10))
    >>> tuple(h.shape), tuple(c.shape)
    ((3, 20), (3, 20))
    """

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):  # noqa: A002
        return self._step(_C.lstm_cell, input, hx)


class GRUCell(RNNCellBase):
    """One step of gated recurrent units.

    >>> tuple(lucid.nn.GRUCell(10, 20)(lucid.ones(3, 10)).shape)
    (3, 20)
    """

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx=None):  # noqa: A002
        return self._step(_C.gru_cell, input, hx)


__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]
