/* Activations of neural networks. As Tensor methods for now; nn.functional takes the same ops with all their arguments.
 *
 * Gradients in one pass where they are an expression of the input: each has a kernel, <name>_backward, with a gradient of its own. */
#include "rules.h"

#define METHOD .method = true, .function = false, .shape = same, .run = elementwise

GRAD(relu6) { dx[0] = lc_where(lc_logical_and(lc_gt(in(0), LC_INTEGER(0)), lc_lt(in(0), LC_INTEGER(6))), g[0], LC_INTEGER(0)); }
LC_OP(relu6, .sig = "relu6(input: Tensor) -> Tensor", .doc = "input within [0, 6].", METHOD, .grad = relu6_grad,
      .saves = IN(0));

GRAD(hard_sigmoid)
{
    lc_tensor *inside = lc_logical_and(lc_gt(in(0), LC_INTEGER(-3)), lc_lt(in(0), LC_INTEGER(3)));
    dx[0] = lc_where(inside, lc_div(g[0], LC_INTEGER(6)), LC_INTEGER(0));
}
LC_OP(hard_sigmoid, .sig = "hard_sigmoid(input: Tensor) -> Tensor", .doc = "relu6(input + 3) / 6.", METHOD,
      .grad = hard_sigmoid_grad, .saves = IN(0));

GRAD(hard_swish)
{
    lc_tensor *x = in(0), *slope = lc_add(lc_div(x, LC_INTEGER(3)), LC_NUMBER(0.5));
    lc_tensor *rising = lc_where(lc_lt(x, LC_INTEGER(3)), lc_mul(g[0], slope), g[0]);
    dx[0] = lc_where(lc_le(x, LC_INTEGER(-3)), LC_INTEGER(0), rising);
}
LC_OP(hard_swish, .sig = "hard_swish(input: Tensor) -> Tensor", .doc = "input * relu6(input + 3) / 6.", METHOD,
      .grad = hard_swish_grad, .saves = IN(0));

/* selu: scale * (x > 0 ? x : alpha * (exp(x) - 1)) */
#define SELU_ALPHA 1.6732632423543772848170429916717
#define SELU_SCALE 1.0507009873554804934193349852946
GRAD(selu)
{
    lc_tensor *below = lc_mul(lc_exp(in(0)), LC_NUMBER(SELU_SCALE * SELU_ALPHA));
    dx[0] = lc_mul(g[0], lc_where(lc_gt(in(0), LC_INTEGER(0)), LC_NUMBER(SELU_SCALE), below));
}
LC_OP(selu, .sig = "selu(input: Tensor) -> Tensor", .doc = "The self-normalising exponential linear unit.", .method = true,
      .inplace = true, .shape = same, .run = elementwise, .grad = selu_grad, .saves = IN(0));

/* silu(x) = x s, with s = sigmoid(x). silu_backward(g, x) = g s (1 + x (1 - s)). */
GRAD(silu_backward)
{
    lc_tensor *x = in(1), *s = lc_sigmoid(x), *t = lc_sub(LC_INTEGER(1), s), *st = lc_mul(s, t);
    if (need[0]) dx[0] = lc_silu_backward(g[0], x);
    if (need[1]) { /* s t (2 + x (1 - 2 s)) */
        lc_tensor *bend = lc_add(lc_mul(x, lc_sub(t, s)), LC_INTEGER(2));
        dx[1] = lc_mul(lc_mul(g[0], in(0)), lc_mul(st, bend));
    }
}
LC_OP(silu_backward, .sig = "silu_backward(grad_output: Tensor, input: Tensor) -> Tensor", .doc = "Gradient of silu.",
      .hidden = true, .shape = broadcast, .run = elementwise, .grad = silu_backward_grad, .saves = IN(0) | IN(1));
GRAD(silu) { dx[0] = lc_silu_backward(g[0], in(0)); }
LC_OP(silu, .sig = "silu(input: Tensor) -> Tensor", .doc = "input * sigmoid(input).", METHOD, .grad = silu_grad,
      .saves = IN(0));

/* mish(x) = x tanh(log(1 + exp(x))) */
GRAD(mish)
{
    lc_tensor *x = in(0), *t = lc_tanh(lc_softplus(x, LC_F(1), LC_F(20))), *s = lc_sigmoid(x);
    dx[0] = lc_mul(g[0], lc_add(t, lc_mul(lc_mul(x, s), lc_sub(LC_INTEGER(1), lc_mul(t, t)))));
}
LC_OP(mish, .sig = "mish(input: Tensor) -> Tensor", .doc = "input * tanh(softplus(input)).", METHOD, .grad = mish_grad,
      .saves = IN(0));

/* softplus: log(1 + exp(beta x)) / beta, the identity where beta x is above the threshold. */
static int softplus_run(const lc_record *call)
{
    lc_tensor *in[] = { call->in[0], number_operand(&call->args[1]), number_operand(&call->args[2]) };
    return elementwise_as(call, LC_OP_softplus, in, 3);
}
GRAD(softplus)
{
    lc_tensor *scaled = lc_mul(in(0), number_operand(&in[1]));
    dx[0] = lc_where(lc_gt(scaled, number_operand(&in[2])), g[0], lc_mul(g[0], lc_sigmoid(scaled)));
}
LC_OP(softplus, .sig = "softplus(input: Tensor, beta: Number = 1, threshold: Number = 20) -> Tensor",
      .doc = "log(1 + exp(beta * input)) / beta; input itself where beta * input > threshold.", .method = true,
      .function = false, .shape = same, .run = softplus_run, .grad = softplus_grad, .saves = IN(0));

/* gelu(x) = x P(X <= x) for a standard normal X; approximate='tanh' has the older formula. */
static int gelu_kernel(const lc_record *call, lc_op_id exact, lc_op_id tanh, int argument)
{
    const char *how = call->args[argument].s;
    if (strcmp(how, "none") && strcmp(how, "tanh"))
        return lc_fail_int(LC_LucidError, "approximate argument must be either none or tanh.");
    return elementwise_as(call, *how == 'n' ? exact : tanh, call->in, call->n_in);
}
static int gelu_run(const lc_record *call) { return gelu_kernel(call, LC_OP_gelu, LC_OP_gelu_tanh, 1); }
static int gelu_backward_run(const lc_record *call)
{
    return gelu_kernel(call, LC_OP_gelu_backward, LC_OP_gelu_tanh_backward, 2);
}
GRAD(gelu_backward)
{
    lc_tensor *x = in(1), *xx = lc_mul(x, x), *bend;
    bool       exact = *in[2].s == 'n';
    if (need[0]) dx[0] = lc_gelu_backward(g[0], x, in[2].s);
    if (!need[1]) return;
    if (exact) { /* phi(x) (2 - x x) */
        lc_tensor *phi = lc_mul(lc_exp(lc_mul(xx, LC_NUMBER(-0.5))), LC_NUMBER(0.39894228040143267794));
        bend = lc_mul(phi, lc_sub(LC_INTEGER(2), xx));
    } else { /* with u = k (x + c x^3), t = tanh u: (1 - t t) (u' + x u'' / 2 - x t u' u') */
        double     k = 0.79788456080286535588, c = 0.044715;
        lc_tensor *u = lc_mul(lc_add(x, lc_mul(lc_mul(xx, x), LC_NUMBER(c))), LC_NUMBER(k)), *t = lc_tanh(u);
        lc_tensor *u1 = lc_mul(lc_add(lc_mul(xx, LC_NUMBER(3 * c)), LC_INTEGER(1)), LC_NUMBER(k));
        lc_tensor *half = lc_mul(xx, LC_NUMBER(3 * c * k)); /* x u'' / 2 */
        lc_tensor *sum = lc_sub(lc_add(u1, half), lc_mul(lc_mul(x, t), lc_mul(u1, u1)));
        bend = lc_mul(lc_sub(LC_INTEGER(1), lc_mul(t, t)), sum);
    }
    dx[1] = lc_mul(lc_mul(g[0], in(0)), bend);
}
LC_OP(gelu_backward, .sig = "gelu_backward(grad_output: Tensor, input: Tensor, approximate: str = 'none') -> Tensor",
      .doc = "Gradient of gelu.", .hidden = true, .shape = broadcast, .run = gelu_backward_run, .grad = gelu_backward_grad,
      .saves = IN(0) | IN(1));
GRAD(gelu) { dx[0] = lc_gelu_backward(g[0], in(0), in[1].s); }
LC_OP(gelu, .sig = "gelu(input: Tensor, *, approximate: str = 'none') -> Tensor",
      .doc = "input times the probability that a standard normal number is below it.", .method = true, .function = false,
      .shape = same, .run = gelu_run, .grad = gelu_grad, .saves = IN(0));
LC_OP(gelu_tanh, .sig = "gelu_tanh(input: Tensor) -> Tensor", .doc = "The kernel of gelu(approximate='tanh').", .hidden = true,
      .shape = same, .run = elementwise);
LC_OP(gelu_tanh_backward, .sig = "gelu_tanh_backward(grad_output: Tensor, input: Tensor) -> Tensor",
      .doc = "The kernel of its gradient.", .hidden = true, .shape = broadcast, .run = elementwise);

/* cube_ is Lucid's; PyTorch has pow_(3). */
GRAD(cube) { dx[0] = lc_mul(g[0], lc_mul(conj_of(lc_mul(in(0), in(0))), LC_INTEGER(3))); }
LC_OP(cube, .sig = "cube(input: Tensor) -> Tensor", .doc = "input ** 3.", .function = false, .inplace = true, .shape = same,
      .run = elementwise, .grad = cube_grad, .saves = IN(0));
