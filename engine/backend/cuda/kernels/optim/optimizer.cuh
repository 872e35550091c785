/* Optimizer steps over many parameters at once (args.h: lc_step_args); formulas as in cpu/optim. T: parameters, U: gradients, V:
 * states. VARIANT: the algorithm. A block has 1024 elements of one parameter. Coefficients come with the call, or `coefficients`
 * computes them from counts and learning rates that lie on the device. */
#include "../../../math/step_types.h"
#define FN __device__ inline
#include "../../../math/steps.inc.c"
#undef FN
typedef acc_of<T>::type A;
enum { MOST = 20, PIECE = 1024 };
struct steps_args {
    int              n;
    i64              block[MOST + 1]; /* the first block of each parameter */
    i64              elements[MOST];
    char            *lists[5][MOST];
    lc_step_numbers  by[MOST];
    lc_step_numbers *made[MOST]; /* in place of `by`: what `coefficients` has computed; or NULL */
};
/* What changes from step to step, of up to MOST parameters: read and counted on here, so that a captured graph does. */
struct counts_args {
    int              n, count;
    lc_step_formula  formula;
    lc_step_numbers *made;
    void            *lr; /* or NULL; numbers are float32, or float64 where a bit of `wide` is set */
    void            *steps[MOST], *kept[LC_STEP_KEPT][MOST];
    u32              lr_wide, steps_wide, kept_wide[LC_STEP_KEPT];
};
__device__ inline double get(const void *p, u32 wide) { return wide & 1 ? *(const double *)p : (double)*(const float *)p; }
__device__ inline void   put(void *p, u32 wide, double v)
{
    if (wide & 1) *(double *)p = v;
    else *(float *)p = (float)v;
}
KERNEL(coefficients, counts_args, p)
{
    EACH(t, p.n)
    {
        double step = 0, kept[LC_STEP_KEPT], lr = p.lr ? get(p.lr, p.lr_wide) : p.formula.fixed.lr;
        if (p.steps[t]) step = get(p.steps[t], p.steps_wide >> t) + p.count;
        if (p.steps[t] && p.count) put(p.steps[t], p.steps_wide >> t, step), step = get(p.steps[t], p.steps_wide >> t);
        for (int k = 0; k < LC_STEP_KEPT; k++)
            if (p.kept[k][t]) kept[k] = get(p.kept[k][t], p.kept_wide[k] >> t);
        p.made[t] = step_numbers(&p.formula, lr, step, kept, !(p.kept_wide[0] >> t & 1));
        for (int k = 0; k < LC_STEP_KEPT; k++)
            if (p.kept[k][t]) put(p.kept[k][t], p.kept_wide[k] >> t, kept[k]);
    }
}
__device__ inline A towards(A x, A to, A w) { return w < (A)0.5 ? x + w * (to - x) : to - (to - x) * (1 - w); }
#define STATE(k)  ((V *)p.lists[k][t])
#define GET(k)    ((A)value(STATE(k)[i]))
#define PUT(k, v) (STATE(k)[i] = made<V>::of(v))
KERNEL(step, steps_args, p)
{
    int t = 0;
    while (t + 1 < p.n && blockIdx.x >= p.block[t + 1]) t++;
    const lc_step_numbers &c = p.made[t] ? *p.made[t] : p.by[t];
    A   sign = (A)c.sign, decay = (A)c.decay, lr = (A)c.lr, shrink = (A)c.shrink, eps = (A)c.eps, scale = (A)c.scale;
    i64 begin = (blockIdx.x - p.block[t]) * PIECE, end = begin + PIECE < p.elements[t] ? begin + PIECE : p.elements[t];
    for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x) {
        T *at = (T *)p.lists[0][t] + i;
        A  x = (A)value(*at), g = sign * (A)value(((const U *)p.lists[1][t])[i]);
        if (c.variant & LC_STEP_L2) g += decay * x;
        if (VARIANT == LC_STEP_SGD) {
            if (c.variant & LC_STEP_MOMENTUM) {
                A b = c.variant & LC_STEP_FIRST ? g : GET(2) * (A)c.beta1 + (A)c.beta2 * g;
                PUT(2, b);
                g = c.variant & LC_STEP_NESTEROV ? g + (A)c.beta1 * b : b;
            }
            x -= lr * g;
        } else if (VARIANT == LC_STEP_ADAM || VARIANT == LC_STEP_NADAM || VARIANT == LC_STEP_RADAM) {
            A first = towards(GET(2), g, (A)(1 - c.beta1)), second = GET(3) * (A)c.beta2 + (A)(1 - c.beta2) * g * g;
            PUT(2, first), PUT(3, second);
            if (VARIANT == LC_STEP_ADAM) {
                if (c.variant & LC_STEP_AMSGRAD) second = larger(GET(4), second), PUT(4, second);
                x = x * shrink - lr * first / (sqrt(second) * scale + eps);
            } else if (VARIANT == LC_STEP_NADAM) x = x * shrink - (lr * g + (A)c.extra * first) / (sqrt(second * scale) + eps);
            else x = x * shrink - (c.variant & LC_STEP_RECTIFIED ? lr * first * scale / (sqrt(second) + eps) : lr * first);
        } else if (VARIANT == LC_STEP_ADAMAX) {
            A first = towards(GET(2), g, (A)(1 - c.beta1)), norm = larger(GET(3) * (A)c.beta2, (g < 0 ? -g : g) + eps);
            PUT(2, first), PUT(3, norm);
            x -= lr * first / norm;
        } else if (VARIANT == LC_STEP_ADAGRAD) {
            A s = GET(2) + g * g;
            PUT(2, s);
            x -= lr * g / (sqrt(s) + eps);
        } else if (VARIANT == LC_STEP_RMSPROP) {
            A rest = (A)(1 - c.beta1), second = GET(2) * (A)c.beta1 + rest * g * g, variance = second;
            PUT(2, second);
            if (c.variant & LC_STEP_CENTERED) {
                A average = towards(GET(3), g, rest);
                PUT(3, average);
                variance = second - average * average;
            }
            A moved = g / (sqrt(variance) + eps);
            if (c.variant & LC_STEP_MOMENTUM) moved = GET(4) * (A)c.beta2 + moved, PUT(4, moved);
            x -= lr * moved;
        } else if (VARIANT == LC_STEP_ADADELTA) {
            A rest = (A)(1 - c.beta1), second = GET(2) * (A)c.beta1 + rest * g * g, before = GET(3);
            A moved = sqrt(before + eps) / sqrt(second + eps) * g;
            PUT(2, second), PUT(3, before * (A)c.beta1 + rest * moved * moved);
            x -= lr * moved;
        } else if (VARIANT == LC_STEP_ASGD) {
            A a = GET(2);
            x = x * shrink - lr * g;
            PUT(2, c.extra == 1 ? x : a + (x - a) * (A)c.extra);
        } else {
            A agreement = g * GET(2), s = GET(3) * (agreement > 0 ? (A)c.beta2 : agreement < 0 ? (A)c.beta1 : (A)1);
            s = s < eps ? eps : s;
            s = s > (A)c.extra ? (A)c.extra : s;
            g = agreement < 0 ? (A)0 : g;
            PUT(3, s), PUT(2, g);
            x -= g > 0 ? s : g < 0 ? -s : (A)0;
        }
        *at = made<T>::of(x);
    }
}
