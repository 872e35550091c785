/* Interpolated rows of elements T, with integers I as wide. */
#ifdef PERMUTES
typedef T NAME(vector) __attribute__((vector_size(VECTOR_BYTES)));
typedef I NAME(places) __attribute__((vector_size(VECTOR_BYTES)));

/* taps: a compile-time constant in some calls. */
INLINE void NAME(permuted)(const interpolate_blocks *b, T *line, const T *row, int64_t taps)
{
    enum { LANES = VECTOR_BYTES / sizeof(T) };
    const NAME(places) *place = b->place;
    const NAME(vector) *weight = b->weight;
    for (int64_t i = 0; i < b->blocks; i++, line += LANES, place += taps, weight += taps) {
        NAME(vector) low, high, sum = { 0 };
        memcpy(&low, row + b->base[i], sizeof low);
        memcpy(&high, row + b->base[i] + LANES, sizeof high);
        for (int64_t k = 0; k < taps; k++) {
            NAME(vector) v = __builtin_shuffle(low, high, place[k]);
            if (taps > 2) v = (NAME(vector))((NAME(places))v & (place[k] >= 0)); /* a missing tap */
            sum = taps == 1 ? v * weight[k] : sum + v * weight[k];
        }
        memcpy(line, &sum, sizeof sum);
    }
}
static void NAME(blocks)(const interpolate_blocks *b, T *line, const T *row)
{
    if (b->taps == 1) NAME(permuted)(b, line, row, 1);
    else if (b->taps == 2) NAME(permuted)(b, line, row, 2);
    else if (b->taps == 4) NAME(permuted)(b, line, row, 4);
    else NAME(permuted)(b, line, row, b->taps);
}
#endif

static void NAME(across)(const interpolate_plan *p, void *to, const void *from)
{
    const interpolate_axis *a = &p->axis[2];
    int64_t                 inner = p->inner;
    T                      *line = to;
    const T                *row = from;
#ifdef PERMUTES
    if (p->block.lanes) {
        NAME(blocks)(&p->block, line, row);
        return;
    }
#endif
    if (a->copies && inner == 1)
        for (int64_t i = 0; i < a->n; i++) line[i] = row[a->index[i]];
    else if (inner == 1)
        for (int64_t i = 0; i < a->n; i++) {
            T sum = 0;
            for (int64_t j = a->start[i]; j < a->start[i + 1]; j++) sum += (T)a->weight[j] * row[a->index[j]];
            line[i] = sum;
        }
    else
        for (int64_t i = 0; i < a->n; i++, line += inner) {
            int64_t  j = a->start[i], end = a->start[i + 1];
            T        w = j < end ? (T)a->weight[j] : 0;
            const T *x = row + (j < end ? a->index[j] : 0) * inner;
            if (j == end) memset(line, 0, (size_t)inner * sizeof(T));
            else if (a->copies) memcpy(line, x, (size_t)inner * sizeof(T));
            else if (end - j == 2) { /* linear */ T v = (T)a->weight[j + 1];
                const T                            *y = row + a->index[j + 1] * inner;
                INDEPENDENT
                for (int64_t c = 0; c < inner; c++) line[c] = w * x[c] + v * y[c];
            } else {
                INDEPENDENT
                for (int64_t c = 0; c < inner; c++) line[c] = w * x[c];
                while (++j < end) {
                    w = (T)a->weight[j], x = row + a->index[j] * inner;
                    INDEPENDENT
                    for (int64_t c = 0; c < inner; c++) line[c] += w * x[c];
                }
            }
        }
}

static void NAME(down)(void *to, const void *const *lines, const double *weights, int64_t m, int64_t n, UNUSED int bits)
{
    T       *out = to;
    const T *l[4];
    T        w[4];
    for (int64_t j = 0, group; j < m || j == 0; j += group) {
        group = m - j < 4 ? m - j : 4;
        for (int k = 0; k < group; k++) l[k] = lines[j + k], w[k] = (T)weights[j + k];
        if (group == 0) memset(out, 0, (size_t)n * sizeof(T)), group = 1;
        else if (j == 0 && group == 2) INDEPENDENT
        for (int64_t i = 0; i < n; i++) out[i] = w[0] * l[0][i] + w[1] * l[1][i];
        else if (j == 0 && group == 4) INDEPENDENT for (int64_t i = 0; i < n; i++) out[i] =
            (w[0] * l[0][i] + w[1] * l[1][i]) + (w[2] * l[2][i] + w[3] * l[3][i]);
        else if (group == 4) INDEPENDENT for (int64_t i = 0; i < n; i++) out[i] +=
            (w[0] * l[0][i] + w[1] * l[1][i]) + (w[2] * l[2][i] + w[3] * l[3][i]);
        else
        {
            if (j == 0) INDEPENDENT
            for (int64_t i = 0; i < n; i++) out[i] = w[0] * l[0][i];
            for (int k = j == 0; k < group; k++) INDEPENDENT
            for (int64_t i = 0; i < n; i++) out[i] += w[k] * l[k][i];
        }
    }
}
#undef T
#undef I
#undef NAME
