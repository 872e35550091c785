/* The softmax family on one line of n contiguous elements, in place: x is overwritten with the result. */
static T NAME(largest)(const T *x, int64_t n) /* NaN wins, whichever comes first */
{
    T part[8];
    if (n < 8) {
        T best = x[0];
        for (int64_t i = 1; i < n; i++) best = x[i] > best || x[i] != x[i] ? x[i] : best;
        return best;
    }
    for (int l = 0; l < 8; l++) part[l] = x[l];
    int64_t i = 8;
    for (; i + 8 <= n; i += 8)
        for (int l = 0; l < 8; l++) part[l] = x[i + l] > part[l] || x[i + l] != x[i + l] ? x[i + l] : part[l];
    for (; i < n; i++) part[0] = x[i] > part[0] || x[i] != x[i] ? x[i] : part[0];
    for (int l = 1; l < 8; l++) part[0] = part[l] > part[0] || part[l] != part[l] ? part[l] : part[0];
    return part[0];
}
static T NAME(total)(const T *x, int64_t n)
{
    T       part[8] = { 0 };
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int l = 0; l < 8; l++) part[l] += x[i + l];
    for (; i < n; i++) part[i & 7] += x[i];
    return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}
static void NAME(exp_of)(T *x, int64_t n)
{
    const void *in[] = { x };
    lc_cpu_loops[LC_OP_exp][DTYPE_ID](x, in, 0, n);
}

static void NAME(softmax_line)(T *x, int64_t n, UNUSED const T *y, UNUSED T *scratch)
{
    T top = NAME(largest)(x, n);
    for (int64_t i = 0; i < n; i++) x[i] -= top;
    NAME(exp_of)(x, n);
    T scale = 1 / NAME(total)(x, n);
    for (int64_t i = 0; i < n; i++) x[i] *= scale;
}
static void NAME(log_softmax_line)(T *x, int64_t n, UNUSED const T *y, T *scratch)
{
    T top = NAME(largest)(x, n);
    for (int64_t i = 0; i < n; i++) scratch[i] = x[i] -= top;
    NAME(exp_of)(scratch, n);
    T norm = LOG(NAME(total)(scratch, n));
    for (int64_t i = 0; i < n; i++) x[i] -= norm;
}
static void NAME(softmax_backward_line)(T *g, int64_t n, const T *y, T *scratch)
{
    for (int64_t i = 0; i < n; i++) scratch[i] = g[i] * y[i];
    T sum = NAME(total)(scratch, n);
    for (int64_t i = 0; i < n; i++) g[i] = y[i] * (g[i] - sum);
}
static void NAME(log_softmax_backward_line)(T *g, int64_t n, const T *y, T *scratch)
{
    T sum = NAME(total)(g, n);
    memcpy(scratch, y, (size_t)n * sizeof(T));
    NAME(exp_of)(scratch, n);
    for (int64_t i = 0; i < n; i++) g[i] -= scratch[i] * sum;
}

/* Lines that lie apart in memory are gathered into x and y, and scattered from x. */
static int NAME(rows)(void *ctx, char *const *ptr, const int64_t *stride, int64_t lines)
{
    const row_walk *w = ctx;
    T              *x = (T *)w->buffer, *y = x + w->n, *scratch = y + w->n;
    void (*const line[])(T *, int64_t, const T *, T *) = { NAME(softmax_line), NAME(log_softmax_line),
                                                           NAME(softmax_backward_line), NAME(log_softmax_backward_line) };
    for (int64_t l = 0; l < lines; l++) {
        char       *out = ptr[0] + l * stride[0];
        const char *in = ptr[1] + l * stride[1], *other = ptr[2] + l * stride[2];
        bool        direct = w->step[0] == sizeof(T);
        T          *to = direct ? (T *)out : x;
        if (w->step[1] == sizeof(T)) memmove(to, in, (size_t)w->n * sizeof(T));
        else
            for (int64_t i = 0; i < w->n; i++) to[i] = *(const T *)(in + i * w->step[1]);
        if (w->kind >= SOFTMAX_BACKWARD && w->step[2] != sizeof(T))
            for (int64_t i = 0; i < w->n; i++) y[i] = *(const T *)(other + i * w->step[2]);
        line[w->kind](to, w->n, w->step[2] == sizeof(T) ? (const T *)other : y, scratch);
        if (!direct)
            for (int64_t i = 0; i < w->n; i++) *(T *)(out + i * w->step[0]) = to[i];
    }
    return 0;
}
#undef T
#undef NAME
#undef LOG
#undef DTYPE_ID
