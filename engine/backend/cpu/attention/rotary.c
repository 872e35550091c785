/* Rotary positions on the CPU (args.h: lc_rotary_args): threads share the rows. */
#include "../cpu.h"

#define ROTATE(T)                                                                                                              \
    static void rotate_##T(const lc_rotary_args *a, const int64_t from[4])                                                     \
    {                                                                                                                          \
        int64_t  n = a->shape[3] / 2, s[4];                                                                                    \
        const T *x = (const T *)a->in->data + from[0], *c = (const T *)a->cos->data + from[1],                                 \
                *z = (const T *)a->sin->data + from[2];                                                                        \
        T *y = (T *)a->out->data + from[3];                                                                                    \
        for (int k = 0; k < 4; k++) s[k] = a->at[k][3];                                                                        \
        if (s[0] == 1 && s[1] == 1 && s[2] == 1 && s[3] == 1)                                                                  \
            for (int64_t i = 0; i < n; i++) {                                                                                  \
                T first = x[i], second = x[i + n];                                                                             \
                y[i] = first * c[i] + -second * z[i], y[i + n] = second * c[i + n] + first * z[i + n];                         \
            }                                                                                                                  \
        else                                                                                                                   \
            for (int64_t i = 0; i < n; i++) {                                                                                  \
                int64_t j = i + n;                                                                                             \
                T       first = x[i * s[0]], second = x[j * s[0]];                                                             \
                y[i * s[3]] = first * c[i * s[1]] + -second * z[i * s[2]];                                                     \
                y[j * s[3]] = second * c[j * s[1]] + first * z[j * s[2]];                                                      \
            }                                                                                                                  \
    }
ROTATE(float)
ROTATE(double)

static void rotate_rows(void *ctx, int64_t begin, int64_t end)
{
    const lc_rotary_args *a = ctx;
    for (int64_t row = begin; row < end; row++) {
        int64_t at[3] = { row / a->shape[2] / a->shape[1], row / a->shape[2] % a->shape[1], row % a->shape[2] },
                from[4] = { 0 };
        for (int k = 0; k < 4; k++)
            for (int d = 0; d < 3; d++) from[k] += at[d] * a->at[k][d];
        if (a->out->dtype == LC_f32) rotate_float(a, from);
        else rotate_double(a, from);
    }
}
static int cpu_rotary(lc_dtype dtype, const void *args)
{
    lc_rotary_args a = *(const lc_rotary_args *)args;
    (void)dtype;
    lc_parallel_for(a.shape[0] * a.shape[1] * a.shape[2], CPU_GRAIN / (a.shape[3] + 1) + 1, rotate_rows, &a);
    return 0;
}
LC_CPU_RUN(_rotary, cpu_rotary, 1u << LC_f32 | 1u << LC_f64)
