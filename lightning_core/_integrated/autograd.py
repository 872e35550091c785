"""A small interface to automatic differentiation: arrays in and out, gradients by Lucid's autograd."""

import numpy as np

import lucid
from lucid.nn import functional


class AutoTensor:
    """An array that may want a gradient.

    >>> x = AutoTensor([1.0, 2.0], requires_grad=True)
    >>> ag_mse_loss(x, AutoTensor([0.0, 0.0])).backward()
    >>> x.grad.tolist()
    [1.0, 2.0]
    """

    def __init__(self, data, *, requires_grad=False):
        if isinstance(data, lucid.Tensor):
            self._tensor = data
        else:
            self._tensor = lucid.tensor(np.array(data, np.float32), requires_grad=bool(requires_grad))

    @property
    def data(self):
        """The numbers, an array on the tensor's memory."""
        return self._tensor.detach().numpy()

    @data.setter
    def data(self, value):
        with lucid.no_grad():
            self._tensor.copy_(lucid.tensor(np.array(value, np.float32)))

    @property
    def grad(self):
        """The gradient as an array, or None."""
        return None if self._tensor.grad is None else self._tensor.grad.numpy()

    @property
    def shape(self):
        """The sizes."""
        return tuple(self._tensor.shape)

    @property
    def requires_grad(self):
        """Whether it wants a gradient."""
        return self._tensor.requires_grad

    def backward(self, grad=None):
        """Adds to the gradients of everything this was computed from."""
        self._tensor.backward(None if grad is None else lucid.tensor(np.array(grad, np.float32)))

    def zero_grad(self):
        """Forget the gradient."""
        self._tensor.grad = None

    def __repr__(self):
        return f"AutoTensor({self.data!r}, requires_grad={self.requires_grad})"


def _lower(x):
    return x._tensor if isinstance(x, AutoTensor) else lucid.tensor(np.array(x, np.float32))


def ag_tensor(data, *, requires_grad=False):
    """An AutoTensor.

    >>> ag_tensor([1.0]).requires_grad
    False
    """
    return AutoTensor(data, requires_grad=requires_grad)


def ag_parameter(data):
    """An AutoTensor that wants a gradient.

    >>> ag_parameter([1.0]).requires_grad
    True
    """
    return AutoTensor(data, requires_grad=True)


def ag_matmul(a, b):
    """The product of two matrices.

    >>> ag_matmul([[1.0, 2.0]], [[3.0], [4.0]]).data.tolist()
    [[11.0]]
    """
    return AutoTensor(_lower(a) @ _lower(b))


def ag_add(a, b):
    """The sum; sizes of 1 expand.

    >>> ag_add([1.0, 2.0], [3.0]).data.tolist()
    [4.0, 5.0]
    """
    return AutoTensor(_lower(a) + _lower(b))


def ag_relu(x):
    """max(0, x).

    >>> ag_relu([-1.0, 2.0]).data.tolist()
    [0.0, 2.0]
    """
    return AutoTensor(_lower(x).relu())


def ag_reshape(x, shape):
    """The same numbers in another shape.

    >>> ag_reshape([1.0, 2.0], (2, 1)).shape
    (2, 1)
    """
    return AutoTensor(_lower(x).reshape(shape))


def ag_conv2d(x, w, bias=None, stride_h=1, stride_w=1, pad_h=0, pad_w=0):
    """The convolution of (N, C, H, W) with (O, C, KH, KW).

    >>> ag_conv2d(np.ones((1, 1, 2, 2)), np.ones((1, 1, 2, 2))).data.item()
    4.0
    """
    bias = None if bias is None else _lower(bias)
    return AutoTensor(functional.conv2d(_lower(x), _lower(w), bias, (stride_h, stride_w), (pad_h, pad_w)))


def ag_attention(q, k, v, causal=False):
    """Attention of matrices (seq, dim).

    >>> ag_attention([[1.0]], [[1.0]], [[3.0]]).data.tolist()
    [[3.0]]
    """
    q, k, v = (_lower(x)[None, None] for x in (q, k, v))
    return AutoTensor(functional.scaled_dot_product_attention(q, k, v, is_causal=bool(causal))[0, 0])


def ag_mse_loss(prediction, target):
    """The mean of squared differences.

    >>> ag_mse_loss([1.0, 3.0], [1.0, 1.0]).data.item()
    2.0
    """
    return AutoTensor(functional.mse_loss(_lower(prediction), _lower(target)))


def ag_zero_grad(parameters):
    """Forget the gradients.

    >>> ag_zero_grad([ag_parameter([1.0])])
    """
    for p in parameters:
        p.zero_grad()


def ag_grad_norm(parameters):
    """The Euclidean norm of all gradients together.

    >>> ag_grad_norm([ag_parameter([1.0])])
    0.0
    """
    return float(np.sqrt(sum(float((p.grad.astype(np.float64) ** 2).sum()) for p in parameters if p.grad is not None)))


def ag_clip_grad_norm(parameters, max_norm):
    """Scales the gradients so that their norm is at most max_norm; the norm before.

    >>> x = ag_parameter([3.0])
    >>> ag_mse_loss(x, [0.0]).backward()
    >>> ag_clip_grad_norm([x], 1.0), x.grad.tolist()
    (6.0, [1.0])
    """
    parameters = list(parameters)
    if not max_norm > 0:
        raise ValueError(f"max_norm must be positive, not {max_norm!r}")
    norm = ag_grad_norm(parameters)
    if norm > max_norm:
        for p in parameters:
            if p.grad is not None:
                p._tensor.grad.mul_(max_norm / norm)
    return norm


def ag_sgd_step(parameters, lr):
    """p -= lr * gradient.

    >>> x = ag_parameter([3.0])
    >>> ag_mse_loss(x, [0.0]).backward()
    >>> ag_sgd_step([x], 0.25)
    >>> x.data.tolist()
    [1.5]
    """
    if not lr > 0:
        raise ValueError(f"lr must be positive, not {lr!r}")
    with lucid.no_grad():
        for p in parameters:
            if p.grad is not None:
                p._tensor.sub_(p._tensor.grad, alpha=float(lr))


class _Trainable:
    def parameters(self):
        """The tensors that training changes."""
        return list(self._parameters)

    def __call__(self, x):
        return self.forward(x)

    def train_step(self, x, y, lr=0.01, grad_clip_norm=None, loss_scale=1.0):
        """One step of gradient descent on the mean squared error; the loss before it."""
        return _step(self, x, y, lr, grad_clip_norm, loss_scale)[0]


class TinyAutogradMLP(_Trainable):
    """Two layers with ReLU between them.

    >>> model = TinyAutogradMLP(2, 8, 1, seed=0)
    >>> x, y = np.ones((4, 2)), np.ones((4, 1))
    >>> first = model.train_step(x, y, lr=0.1)
    >>> model.train_step(x, y, lr=0.1) < first
    True
    """

    def __init__(self, d_in, d_hidden, d_out, *, seed=0):
        draw = np.random.default_rng(seed)
        weight = lambda rows, columns: ag_parameter(draw.standard_normal((rows, columns)) / np.sqrt(rows))
        self.w1, self.b1 = weight(d_in, d_hidden), ag_parameter(np.zeros(d_hidden))
        self.w2, self.b2 = weight(d_hidden, d_out), ag_parameter(np.zeros(d_out))
        self._parameters = [self.w1, self.b1, self.w2, self.b2]

    def forward(self, x):
        """The prediction for rows of x."""
        hidden = ag_relu(ag_add(ag_matmul(x, self.w1), self.b1))
        return ag_add(ag_matmul(hidden, self.w2), self.b2)


class TinyAutogradConvAttention(_Trainable):
    """A 3 x 3 convolution of a (1, 1, 8, 8) image, ReLU, and attention over its first numbers as q, k, v of (8, 8).

    >>> model = TinyAutogradConvAttention(seed=0)
    >>> model.forward(np.ones((1, 1, 8, 8))).shape
    (8, 8)
    """

    def __init__(self, *, seed=0):
        draw = np.random.default_rng(seed)
        self.w, self.b = ag_parameter(draw.standard_normal((3, 1, 3, 3)) / 3), ag_parameter(np.zeros(3))
        self._parameters = [self.w, self.b]

    def forward(self, x):
        """Attention over the three channels as q, k and v."""
        image = ag_relu(ag_conv2d(x, self.w, self.b, 1, 1, 1, 1))
        if image.shape != (1, 3, 8, 8):
            raise ValueError("x must be (1, 1, 8, 8)")
        return ag_attention(*(AutoTensor(part) for part in image._tensor[0].unbind(0)))


def _step(model, x, y, lr, clip, scale, hooks=None, number=0):
    if not scale > 0:
        raise ValueError(f"loss_scale must be positive, not {scale!r}")
    parameters = model.parameters()
    ag_zero_grad(parameters)
    loss = ag_mse_loss(model.forward(x), y)
    (loss if scale == 1 else AutoTensor(loss._tensor * scale)).backward()
    if scale != 1:
        for p in parameters:
            if p.grad is not None:
                p._tensor.grad.div_(scale)
    _tell(hooks, "on_after_backward", number, model)
    norm = ag_grad_norm(parameters) if clip is None else ag_clip_grad_norm(parameters, clip)
    ag_sgd_step(parameters, lr)
    return loss.data.item(), norm


def _tell(hooks, name, *args):
    hook = hooks.get(name) if isinstance(hooks, dict) else getattr(hooks, name, None)
    if hook is not None:
        hook(*args)


def autograd_train_loop(model, x, y, *, steps=4, lr=0.01, grad_clip_norm=None, loss_scale=1.0, hooks=None):
    """Trains a model on one batch: {losses, step_summaries, loss_decreased}.

    hooks is a dict or an object of on_step_begin(step, model), on_after_backward(step, model), on_after_step(step, model,
    loss).

    >>> model = TinyAutogradMLP(2, 8, 1, seed=0)
    >>> autograd_train_loop(model, np.ones((4, 2)), np.ones((4, 1)), steps=3, lr=0.1)["loss_decreased"]
    True
    """
    if isinstance(steps, bool) or not hasattr(steps, "__index__") or steps < 1:
        raise ValueError(f"steps must be a positive int, not {steps!r}")
    losses, summaries = [], []
    for number in range(steps):
        _tell(hooks, "on_step_begin", number, model)
        loss, norm = _step(model, x, y, lr, grad_clip_norm, loss_scale, hooks, number)
        losses.append(loss)
        clipped = grad_clip_norm is not None and norm > grad_clip_norm
        summaries.append({"step": number, "loss": loss, "grad_norm": norm, "clipped": clipped, "lr": lr})
        _tell(hooks, "on_after_step", number, model, loss)
    return {"losses": losses, "step_summaries": summaries, "loss_decreased": losses[-1] < losses[0]}
