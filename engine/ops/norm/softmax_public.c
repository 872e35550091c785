/* nn.functional's softmax family: over softmax and log_softmax, with arguments of their own. */
#include "../rules.h"

/* Without dim: PyTorch's legacy choice, with its warning. */
static int64_t chosen_dim(const lc_value *dim, const lc_tensor *x, const char *name)
{
    if (dim->tag == LC_IS_int) return dim->i;
    lc_warn("Implicit dimension choice for %s has been deprecated. Change the call to include dim=X as an argument.", name);
    return x->ndim == 0 || x->ndim == 1 || x->ndim == 3 ? 0 : 1;
}
#define SPACE .ns = "nn.functional", .amp = LC_AMP_GPU_FP32
static int nn_softmax_call(const lc_value *in, lc_tensor **out)
{
    return (out[0] = lc_softmax(in(0), chosen_dim(&in[1], in(0), "softmax"), in[3])) ? 0 : -1;
}
LC_OP(nn_softmax, .py = "softmax",
      .sig = "nn_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None) -> Tensor",
      .doc = "exp(input), scaled so that it sums to one along dim.", SPACE, .call = nn_softmax_call);
static int nn_log_softmax_call(const lc_value *in, lc_tensor **out)
{
    return (out[0] = lc_log_softmax(in(0), chosen_dim(&in[1], in(0), "log_softmax"), in[3])) ? 0 : -1;
}
LC_OP(
    nn_log_softmax, .py = "log_softmax",
    .sig = "nn_log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None) -> Tensor",
    .doc = "The logarithm of softmax, computed without underflow.", SPACE, .call = nn_log_softmax_call);
static int softmin_call(const lc_value *in, lc_tensor **out)
{
    return (out[0] = lc_softmax(lc_neg(in(0)), chosen_dim(&in[1], in(0), "softmin"), in[3])) ? 0 : -1;
}
LC_OP(softmin,
      .sig = "softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None) -> Tensor",
      .doc = "softmax(-input): small elements get large probabilities.", SPACE, .call = softmin_call);

static int gumbel_softmax_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0);
    int64_t    dim = in[4].i;
    lc_value   format = { .tag = LC_IS_format, .fmt = LC_CONTIGUOUS_FORMAT };
    if (in[3].f != 1e-10) lc_warn("`eps` parameter is deprecated and has no effect.");
    lc_tensor *drawn = lc_exponential_(lc_empty_like(x, LC_ABSENT, LC_ABSENT, format), 1, NULL);
    lc_tensor *soft = lc_softmax(lc_div(lc_sub(x, lc_log(drawn)), LC_NUMBER(in[1].f)), dim, LC_ABSENT);
    if (!soft || !in[2].b) return (out[0] = soft) ? 0 : -1;
    /* one-hot of the largest, with the gradient of the softmax */
    lc_tensor *index = lc_max_dim(lc_detach(soft), dim, true).indices, *zeros = lc_zeros_like(x, LC_ABSENT, LC_ABSENT, format);
    if (!index || !zeros) return -1;
    lc_tensor *hard = lc_scatter_value_(lc_detach(zeros), dim, index, LC_NUMBER(1), NULL);
    return (out[0] = lc_add(lc_sub(hard, lc_detach(soft)), soft)) ? 0 : -1;
}
LC_OP(
    gumbel_softmax,
    .sig = "gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: truth = False, eps: float = 1e-10, dim: int = -1) -> Tensor",
    .doc = "softmax of logits with Gumbel noise: a random choice that has gradients; hard: as one-hot vectors.",
    .ns = "nn.functional", .random = true, .call = gumbel_softmax_call);
