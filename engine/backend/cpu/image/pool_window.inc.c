/* The two steps of folding a window with OP, whose neutral element is START. */
static void STEP(fill)(T *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = START;
}

/* to (size[2]): the rows under the windows of output row (od, oh). Three at a time; `to` is the first of them once it is
 * initialised. */
static void STEP(down)(const pool_plan *p, const T *in, T *to, int64_t od, int64_t oh)
{
    const lc_pool_args *a = p->args;
    int64_t             w = a->size[2];
    const T            *row[3];
    int                 n = 0;
    for (int64_t y = p->first[0][od]; y < p->past[0][od]; y += a->dilation[0])
        for (int64_t x = p->first[1][oh]; x < p->past[1][oh]; x += a->dilation[1]) {
            row[n++] = in + (y * a->size[1] + x) * w;
            if (n < 3) continue;
            INDEPENDENT
            for (int64_t i = 0; i < w; i++) {
                T v = OP(row[0][i], row[1][i]);
                to[i] = OP(v, row[2][i]);
            }
            row[0] = to, n = 1;
        }
    if (n == 0) STEP(fill)(to, w);
    if (n == 1 && row[0] != to) memcpy(to, row[0], (size_t)w * sizeof(T));
    if (n == 2) INDEPENDENT
    for (int64_t i = 0; i < w; i++) to[i] = OP(row[0][i], row[1][i]);
}

/* out[i] = the fold of the k elements of line from i s on, d apart. s is constant where it is called. */
INLINE void STEP(steps)(T *out, const T *line, int64_t n, int64_t s, int64_t k, int64_t d)
{
    if (k == 1) INDEPENDENT
    for (int64_t i = 0; i < n; i++) out[i] = line[i * s];
    else if (k == 2) INDEPENDENT for (int64_t i = 0; i < n; i++) out[i] = OP(line[i * s], line[i * s + d]);
    else INDEPENDENT for (int64_t i = 0; i < n; i++)
    {
        T v = OP(line[i * s], line[i * s + d]);
        out[i] = OP(v, line[i * s + 2 * d]);
    }
    for (int64_t j = 3; j < k; j++) INDEPENDENT
    for (int64_t i = 0; i < n; i++) out[i] = OP(out[i], line[i * s + j * d]);
}
static void STEP(across)(const pool_plan *p, T *out, const T *line)
{
    const lc_pool_args *a = p->args;
    int64_t             n = a->result[2], s = a->stride[2], k = a->kernel[2], d = a->dilation[2];
    if (p->clipped)
        for (int64_t i = 0; i < n; i++) {
            T v = START;
            for (int64_t j = p->first[2][i]; j < p->past[2][i]; j += a->dilation[2]) v = OP(v, line[j]);
            out[i] = v;
        }
    else if (s == 1 && d == 1) STEP(steps)(out, line, n, 1, k, 1);
    else if (s == 2 && d == 1) STEP(steps)(out, line, n, 2, k, 1);
    else STEP(steps)(out, line, n, s, k, d);
}
#undef OP
#undef START
#undef STEP
