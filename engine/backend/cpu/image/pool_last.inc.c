/* Pooling of images with the channels last, (images, rows, columns, channels), of elements T: vectors run over channels. The
 * elements of a window inside the image are listed, and the list serves all positions of a row whose windows are as wide; a
 * block of channels stays in registers while the list is walked. */

/* One position: where its window starts, and its list relative to that. */
typedef struct {
    const T       *in, *grad;
    T             *out;
    int64_t       *index;
    const int64_t *at, *place; /* of elements; of pixels */
    int64_t        taps, start;
    T              divisor;
} NAME(window);

/* The block of Q vectors from channel c on. kind is constant where it is called. Without elements (a window in the padding)
 * the maximum's place is listed all the same. */
#define EACH_OF(Q) _Pragma("GCC unroll 4") for (int q = 0; q < (Q); q++)
#define BLOCK(W, Q, BYTES)                                                                                                     \
    typedef T   CAT(NAME(lanes), W) __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));                        \
    typedef I   CAT(NAME(marks), W) __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));                        \
    INLINE void CAT(NAME(block), W)(pool_kind kind, const NAME(window) * w, int64_t c)                                         \
    {                                                                                                                          \
        typedef CAT(NAME(lanes), W) vector;                                                                                    \
        typedef CAT(NAME(marks), W) bits;                                                                                      \
        enum { LANES = (BYTES) / sizeof(T) };                                                                                  \
        vector best[Q];                                                                                                        \
        bits   mark[Q];                                                                                                        \
        if (kind == POOL_AVERAGE_BACKWARD) {                                                                                   \
            EACH_OF(Q) best[q] = *(const vector *)(w->grad + c + q * LANES) / w->divisor;                                      \
            for (int64_t k = 0; k < w->taps; k++) EACH_OF(Q) * (vector *)(w->out + w->at[k] + c + q * LANES) += best[q];       \
            return;                                                                                                            \
        }                                                                                                                      \
        T start = kind == POOL_AVERAGE ? (T)0 : LEAST;                                                                         \
        I home = kind == POOL_MAX_INDEX ? (I)w->place[0] : 0;                                                                  \
        EACH_OF(Q) best[q] = start - (vector){ 0 }, mark[q] = home - (bits){ 0 };                                              \
        for (int64_t k = 0; k < w->taps; k++) EACH_OF(Q)                                                                       \
            {                                                                                                                  \
                vector v = *(const vector *)(w->in + w->at[k] + c + q * LANES);                                                \
                if (kind == POOL_AVERAGE) {                                                                                    \
                    best[q] += v;                                                                                              \
                    continue;                                                                                                  \
                }                                                                                                              \
                bits better = (v > best[q]) | (v != v), here = (kind == POOL_MAX_INDEX ? (I)w->place[k] : (I)k) - (bits){ 0 }; \
                best[q] = (vector)(((bits)v & better) | ((bits)best[q] & ~better));                                            \
                if (kind != POOL_MAX) mark[q] = (here & better) | (mark[q] & ~better);                                         \
            }                                                                                                                  \
        if (kind == POOL_MAX_GRADIENT) {                                                                                       \
            for (int64_t k = 0; k < w->taps || k == 0; k++) EACH_OF(Q)                                                         \
                {                                                                                                              \
                    bits given = *(const bits *)(w->grad + c + q * LANES);                                                     \
                    *(vector *)(w->out + w->at[k] + c + q * LANES) += (vector)(given & (mark[q] == (I)k));                     \
                }                                                                                                              \
            return;                                                                                                            \
        }                                                                                                                      \
        if (kind == POOL_AVERAGE) EACH_OF(Q) best[q] /= w->divisor;                                                            \
        EACH_OF(Q) * (vector *)(w->out + c + q * LANES) = best[q];                                                             \
        if (kind == POOL_MAX_INDEX) EACH_OF(Q)                                                                                 \
        for (int l = 0; l < LANES; l++) w->index[c + q * LANES + l] = mark[q][l] + w->start;                                   \
    }
BLOCK(wide, 4, LAST_BYTES)
BLOCK(one, 1, LAST_BYTES)
BLOCK(single, 1, sizeof(T))
#undef BLOCK
#undef EACH_OF

INLINE void NAME(blocks)(pool_kind kind, const NAME(window) * w, int64_t c, int64_t end)
{
    enum { LANES = LAST_BYTES / sizeof(T) };
    for (; c + 4 * LANES <= end; c += 4 * LANES) CAT(NAME(block), wide)(kind, w, c);
    for (; c + LANES <= end; c += LANES) CAT(NAME(block), one)(kind, w, c);
    for (; c < end; c++) CAT(NAME(block), single)(kind, w, c);
}
/* Lists the elements of a window of row `row` that is `across` elements wide; returns their number. list: (2, p->taps). If
 * there are none, the place of a maximum is listed: the window's first element. */
static int64_t NAME(list)(const pool_plan *p, int64_t row, int64_t first, int64_t across, int64_t *list)
{
    const lc_pool_args *a = p->args;
    int64_t             h = a->size[1], w = a->size[2], d = row / a->result[1], r = row % a->result[1], n = 0;
    int64_t            *place = list + p->taps, home = (p->first[0][d] * h + p->first[1][r]) * w, last = a->size[0] * h * w - 1;
    place[0] = home + first < last ? home : last - first, list[0] = place[0] * a->channels;
    for (int64_t z = p->first[0][d]; z < p->past[0][d]; z += a->dilation[0])
        for (int64_t y = p->first[1][r]; y < p->past[1][r]; y += a->dilation[1])
            for (int64_t x = 0; x < across; x++, n++)
                place[n] = (z * h + y) * w + x * a->dilation[2], list[n] = place[n] * a->channels;
    return n;
}
/* One row of positions of an image, channels c to end - 1. A backward kernel adds to the elements under its windows. */
static void NAME(last_row)(const pool_plan *p, pool_kind kind, int64_t image, int64_t row, int64_t c, int64_t end,
                           int64_t *list)
{
    const lc_pool_args *a = p->args;
    int64_t             channels = a->channels, n = a->result[2], d = row / a->result[1], r = row % a->result[1], across = -1;
    int64_t             at = (image * a->result[0] * a->result[1] + row) * n * channels; /* of a result */
    int64_t             base = image * a->size[0] * a->size[1] * a->size[2] * channels;
    bool                scatters = kind == POOL_AVERAGE_BACKWARD || kind == POOL_MAX_GRADIENT;
    NAME(window) w = { .at = list, .place = list + p->taps };
    for (int64_t i = 0; i < n; i++, at += channels) {
        int64_t first = p->first[2][i], step = a->dilation[2], wide = (p->past[2][i] - first + step - 1) / step;
        if (wide < 0) wide = 0;
        if (wide != across || !wide) across = wide, w.taps = NAME(list)(p, row, first, across, list);
        int64_t from = base + first * channels;
        w.start = first, w.in = (const T *)a->in->data + from, w.out = (T *)a->out->data + (scatters ? from : at);
        w.divisor = a->divisor ? (T)a->divisor : (T)(p->count[0][d] * p->count[1][r]) * (T)p->count[2][i];
        if (scatters) w.grad = (const T *)(kind == POOL_MAX_GRADIENT ? a->grad : a->in)->data + at;
        if (kind == POOL_MAX) NAME(blocks)(POOL_MAX, &w, c, end);
        else if (kind == POOL_MAX_INDEX) w.index = (int64_t *)a->index->data + at, NAME(blocks)(POOL_MAX_INDEX, &w, c, end);
        else if (kind == POOL_AVERAGE) NAME(blocks)(POOL_AVERAGE, &w, c, end);
        else if (kind == POOL_AVERAGE_BACKWARD) NAME(blocks)(POOL_AVERAGE_BACKWARD, &w, c, end);
        else NAME(blocks)(POOL_MAX_GRADIENT, &w, c, end);
    }
}
