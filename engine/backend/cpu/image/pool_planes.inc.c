/* Pooling of elements T, with indices I as wide as T. */
#define OP      MAX
#define START   LEAST
#define STEP(f) CAT(NAME(f), max)
#include "pool_window.inc.c"
#define OP      PLUS
#define START   0
#define STEP(f) CAT(NAME(f), sum)
#include "pool_window.inc.c"

static void NAME(max_planes)(const pool_plan *p, int64_t begin, int64_t end, void *scratch)
{
    const lc_pool_args *a = p->args;
    int64_t             area = a->size[0] * a->size[1] * a->size[2], rows = a->result[0] * a->result[1], n = a->result[2];
    T                  *line = scratch, *out = (T *)a->out->data + begin * rows * n;
    CAT(NAME(fill), max)(line, p->line);
    for (int64_t plane = begin; plane < end; plane++)
        for (int64_t r = 0; r < rows; r++, out += n) {
            CAT(NAME(down), max)
            (p, (const T *)a->in->data + plane * area, line + p->left, r / a->result[1], r % a->result[1]);
            CAT(NAME(across), max)(p, out, line);
        }
}

/* The divisors of a row's sums, unless a->divisor is set: share (result[2]) times the count of rows. */
static void NAME(shares)(const pool_plan *p, T *share)
{
    for (int64_t i = 0; i < p->args->result[2]; i++) share[i] = (T)p->count[2][i];
}
static void NAME(divide)(const pool_plan *p, T *to, const T *from, const T *share, int64_t od, int64_t oh)
{
    int64_t n = p->args->result[2];
    T       rows = (T)(p->count[0][od] * p->count[1][oh]), divisor = (T)p->args->divisor;
    if (p->args->divisor) INDEPENDENT
    for (int64_t i = 0; i < n; i++) to[i] = from[i] / divisor;
    else INDEPENDENT for (int64_t i = 0; i < n; i++) to[i] = from[i] / (rows * share[i]); }
static void NAME(average_planes)(const pool_plan *p, int64_t begin, int64_t end, void *scratch)
{
    const lc_pool_args *a = p->args;
    int64_t             area = a->size[0] * a->size[1] * a->size[2], rows = a->result[0] * a->result[1], n = a->result[2];
    T                  *line = scratch, *share = line + p->line, *out = (T *)a->out->data + begin * rows * n;
    CAT(NAME(fill), sum)(line, p->line);
    NAME(shares)(p, share);
    for (int64_t plane = begin; plane < end; plane++)
        for (int64_t r = 0; r < rows; r++, out += n) {
            int64_t od = r / a->result[1], oh = r % a->result[1];
            CAT(NAME(down), sum)(p, (const T *)a->in->data + plane * area, line + p->left, od, oh);
            CAT(NAME(across), sum)(p, out, line);
            NAME(divide)(p, out, out, share, od, oh);
        }
}

/* The transposed average: each gradient, divided, goes to all elements of its window; across into a line, then down its
 * rows. */
static void NAME(scatter_row)(const pool_plan *p, T *line, const T *g)
{
    const lc_pool_args *a = p->args;
    int64_t             n = a->result[2], s = a->stride[2];
    if (p->clipped) {
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = p->first[2][i]; j < p->past[2][i]; j += a->dilation[2]) line[j] += g[i];
        return;
    }
    for (int64_t k = 0; k < a->kernel[2]; k++) {
        T *to = line + k;
        if (s == 1) INDEPENDENT
        for (int64_t i = 0; i < n; i++) to[i] += g[i];
        else for (int64_t i = 0; i < n; i++) to[i * s] += g[i]; }
}
static void NAME(average_backward_planes)(const pool_plan *p, int64_t begin, int64_t end, void *scratch)
{
    const lc_pool_args *a = p->args;
    int64_t             h = a->size[1], w = a->size[2], area = a->size[0] * h * w, n = a->result[2];
    int64_t             rows = a->result[0] * a->result[1];
    T                  *line = scratch, *share = line + p->line, *g = share + n, *middle = line + p->left;
    const T            *in = (const T *)a->in->data + begin * rows * n;
    NAME(shares)(p, share);
    for (int64_t plane = begin; plane < end; plane++) {
        T *out = (T *)a->out->data + plane * area;
        memset(out, 0, (size_t)area * sizeof(T));
        for (int64_t r = 0; r < rows; r++, in += n) {
            int64_t od = r / a->result[1], oh = r % a->result[1];
            memset(line, 0, (size_t)p->line * sizeof(T));
            NAME(divide)(p, g, in, share, od, oh);
            NAME(scatter_row)(p, line, g);
            for (int64_t y = p->first[0][od]; y < p->past[0][od]; y++)
                for (int64_t x = p->first[1][oh]; x < p->past[1][oh]; x++) {
                    T *to = out + (y * h + x) * w;
                    INDEPENDENT
                    for (int64_t i = 0; i < w; i++) to[i] += middle[i];
                }
        }
    }
}

/* ---- with indices ---- */
#define TAKE(v, at)                                                                                                            \
    do {                                                                                                                       \
        bool better = (v) > best || IS_NAN(v);                                                                                 \
        best = better ? (v) : best, where = better ? (at) : where;                                                             \
    } while (0)
/* One row of the window against the best so far: element j of the line has index base + j. k is constant where it is called. */
INLINE void NAME(take_row)(T *value, I *index, const T *line, I base, int64_t n, int64_t s, int64_t k, int64_t d)
{
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        T best = value[i];
        I where = index[i];
        for (int64_t j = 0; j < k; j++) TAKE(line[i * s + j * d], (I)(base + (I)(i * s + j * d)));
        value[i] = best, index[i] = where;
    }
}
INLINE void NAME(take_steps)(T *value, I *index, const T *line, I base, int64_t n, int64_t s, int64_t k, int64_t d)
{
    if (k == 2) NAME(take_row)(value, index, line, base, n, s, 2, d);
    else if (k == 3) NAME(take_row)(value, index, line, base, n, s, 3, d);
    else
        for (int64_t j = 0; j < k; j++) NAME(take_row)(value, index, line + j * d, (I)(base + (I)(j * d)), n, s, 1, 0);
}
static void NAME(take)(const pool_plan *p, T *value, I *index, const T *line, I base)
{
    const lc_pool_args *a = p->args;
    int64_t             n = a->result[2], s = a->stride[2], k = a->kernel[2], d = a->dilation[2];
    if (p->clipped)
        for (int64_t i = 0; i < n; i++) {
            T best = value[i];
            I where = index[i];
            for (int64_t j = p->first[2][i]; j < p->past[2][i]; j += a->dilation[2]) TAKE(line[j], (I)(base + (I)j));
            value[i] = best, index[i] = where;
        }
    else if (s == 1) NAME(take_steps)(value, index, line, base, n, 1, k, d);
    else if (s == 2) NAME(take_steps)(value, index, line, base, n, 2, k, d);
    else NAME(take_steps)(value, index, line, base, n, s, k, d);
}
/* The maxima under row r of the output, and their indices in the plane. line: already padded at its ends. */
static void NAME(find_row)(const pool_plan *p, const T *in, T *value, I *where, T *line, int64_t r)
{
    const lc_pool_args *a = p->args;
    int64_t             h = a->size[1], w = a->size[2], n = a->result[2], od = r / a->result[1], oh = r % a->result[1];
    int64_t             y0 = p->first[0][od], x0 = p->first[1][oh], last = a->size[0] * h * w - 1;
    CAT(NAME(fill), max)(value, n);
    for (int64_t i = 0; i < n; i++) { /* the default if nothing is larger: the window's first element */
        int64_t first = (y0 * h + x0) * w + p->first[2][i];
        where[i] = (I)(first < last ? first : last);
    }
    for (int64_t y = y0; y < p->past[0][od]; y += a->dilation[0])
        for (int64_t x = x0; x < p->past[1][oh]; x += a->dilation[1]) {
            int64_t row = (y * h + x) * w;
            memcpy(line + p->left, in + row, (size_t)w * sizeof(T));
            NAME(take)(p, value, where, line, (I)(row - p->left));
        }
}
static void NAME(index_planes)(const pool_plan *p, int64_t begin, int64_t end, void *scratch)
{
    const lc_pool_args *a = p->args;
    int64_t             area = a->size[0] * a->size[1] * a->size[2], rows = a->result[0] * a->result[1], n = a->result[2];
    T                  *line = scratch, *out = (T *)a->out->data + begin * rows * n;
    I                  *where = (I *)(line + p->line);
    int64_t            *index = (int64_t *)a->index->data + begin * rows * n;
    CAT(NAME(fill), max)(line, p->line);
    for (int64_t plane = begin; plane < end; plane++)
        for (int64_t r = 0; r < rows; r++, out += n, index += n) {
            NAME(find_row)(p, (const T *)a->in->data + plane * area, out, where, line, r);
            for (int64_t i = 0; i < n; i++) index[i] = where[i];
        }
}
#undef TAKE

/* ---- the gradient of the maximum: each goes to its maximum's position ---- */
#if HAS_GRADIENT
/* LANES adjacent 2 x 2 windows: the gradient of each goes to its largest element, zero to the others. */
#define LOAD(v, from) memcpy(&(v), from, sizeof(v)) /* one vector each: a copy of two would go through memory */
#define PAIRS(LANES, UNZIP, ZIP)                                                                                               \
    INLINE void CAT(NAME(pairs), LANES)(T * to, const T *in, const T *g, int64_t w)                                            \
    {                                                                                                                          \
        typedef T vector __attribute__((vector_size(LANES * sizeof(T))));                                                      \
        typedef I bits __attribute__((vector_size(LANES * sizeof(T))));                                                        \
        vector    p, q, r, s, given, a, b, c, d;                                                                               \
        LOAD(p, in), LOAD(q, in + LANES), LOAD(r, in + w), LOAD(s, in + w + LANES), LOAD(given, g);                            \
        a = UNZIP(p, q, 0), b = UNZIP(p, q, 1), c = UNZIP(r, s, 0), d = UNZIP(r, s, 1);                                        \
        bits   right = (b > a) | (b != b), lower_right = (d > c) | (d != d);                                                   \
        vector above = (vector)(((bits)b & right) | ((bits)a & ~right));                                                       \
        vector lower = (vector)(((bits)d & lower_right) | ((bits)c & ~lower_right));                                           \
        bits   down = (lower > above) | (lower != lower), here = (bits)given & ~down, there = (bits)given & down;              \
        a = (vector)(here & ~right), b = (vector)(here & right);                                                               \
        c = (vector)(there & ~lower_right), d = (vector)(there & lower_right);                                                 \
        p = ZIP(a, b, 0), q = ZIP(a, b, LANES / 2), r = ZIP(c, d, 0), s = ZIP(c, d, LANES / 2);                                \
        memcpy(to, &p, sizeof p), memcpy(to + LANES, &q, sizeof q);                                                            \
        memcpy(to + w, &r, sizeof r), memcpy(to + w + LANES, &s, sizeof s);                                                    \
    }
/* The maximum of each window. */
#define LARGEST(LANES, UNZIP)                                                                                                  \
    INLINE void CAT(NAME(largest), LANES)(T * to, const T *in, int64_t w)                                                      \
    {                                                                                                                          \
        typedef T vector __attribute__((vector_size(LANES * sizeof(T))));                                                      \
        typedef I bits __attribute__((vector_size(LANES * sizeof(T))));                                                        \
        vector    p, q, r, s, a, b;                                                                                            \
        LOAD(p, in), LOAD(q, in + LANES), LOAD(r, in + w), LOAD(s, in + w + LANES);                                            \
        bits lower = (r > p) | (r != r), lower_next = (s > q) | (s != s);                                                      \
        p = (vector)(((bits)r & lower) | ((bits)p & ~lower)), q = (vector)(((bits)s & lower_next) | ((bits)q & ~lower_next));  \
        a = UNZIP(p, q, 0), b = UNZIP(p, q, 1);                                                                                \
        bits right = (b > a) | (b != b);                                                                                       \
        a = (vector)(((bits)b & right) | ((bits)a & ~right));                                                                  \
        memcpy(to, &a, sizeof a);                                                                                              \
    }
LARGEST(8, UNZIP8)
LARGEST(4, UNZIP4)
LARGEST(2, UNZIP2)
#undef LARGEST
PAIRS(8, UNZIP8, ZIP8)
PAIRS(4, UNZIP4, ZIP4)
PAIRS(2, UNZIP2, ZIP2)
#undef PAIRS
/* A row of n windows; the last vector may overlap its predecessor and write the same values again. */
static void NAME(pairs)(T *to, const T *in, const T *g, int64_t w, int64_t n)
{
    int64_t i = 0;
    if (n >= 8) {
        for (; i + 8 < n; i += 8) CAT(NAME(pairs), 8)(to + 2 * i, in + 2 * i, g + i, w);
        i = n - 8, CAT(NAME(pairs), 8)(to + 2 * i, in + 2 * i, g + i, w);
    } else if (n >= 4) {
        CAT(NAME(pairs), 4)(to, in, g, w);
        i = n - 4, CAT(NAME(pairs), 4)(to + 2 * i, in + 2 * i, g + i, w);
    } else if (n >= 2) {
        CAT(NAME(pairs), 2)(to, in, g, w);
        i = n - 2, CAT(NAME(pairs), 2)(to + 2 * i, in + 2 * i, g + i, w);
    } else {
        T   edge[4] = { in[0], in[1], in[w], in[w + 1] };
        int best = 0;
        for (int k = 1; k < 4; k++) best = edge[k] > edge[best] || IS_NAN(edge[k]) ? k : best;
        for (int k = 0; k < 4; k++) to[k / 2 * w + k % 2] = k == best ? g[0] : 0;
    }
}
#undef LOAD
static void NAME(pair_planes)(const pool_plan *p, int64_t begin, int64_t end, void *scratch)
{
    const lc_pool_args *a = p->args;
    int64_t             h = a->size[1], w = a->size[2], n = a->result[2], deep = a->result[0], i;
    T                  *to = (T *)a->out->data + begin * deep * a->result[1] * n;
    (void)scratch;
    for (int64_t k = begin * deep; k < end * deep; k++) /* no window is more than one deep */
        for (int64_t oh = 0; oh < a->result[1]; oh++, to += n) {
            const T *in = (const T *)a->in->data + (k * h + 2 * oh) * w;
            if (n >= 8) {
                for (i = 0; i + 8 < n; i += 8) CAT(NAME(largest), 8)(to + i, in + 2 * i, w);
                i = n - 8, CAT(NAME(largest), 8)(to + i, in + 2 * i, w);
            } else if (n >= 4) CAT(NAME(largest), 4)(to, in, w), i = n - 4, CAT(NAME(largest), 4)(to + i, in + 2 * i, w);
            else if (n >= 2) CAT(NAME(largest), 2)(to, in, w), i = n - 2, CAT(NAME(largest), 2)(to + i, in + 2 * i, w);
            else if (n) {
                T above = MAX(in[0], in[1]), lower = MAX(in[w], in[w + 1]);
                to[0] = MAX(above, lower);
            }
        }
}
static void NAME(gradient_planes)(const pool_plan *p, int64_t begin, int64_t end, void *scratch)
{
    const lc_pool_args *a = p->args;
    int64_t  h = a->size[1], w = a->size[2], area = a->size[0] * h * w, n = a->result[2], rows = a->result[0] * a->result[1];
    T       *line = scratch, *value = line + p->line;
    I       *where = (I *)(value + n);
    const T *g = (const T *)a->grad->data + begin * rows * n;
    if (!p->paired) CAT(NAME(fill), max)(line, p->line);
    for (int64_t plane = begin; plane < end; plane++) {
        const T *in = (const T *)a->in->data + plane * area;
        T       *to = (T *)a->out->data + plane * area;
        if (!p->paired || w != 2 * n || h != 2 * a->result[1]) memset(to, 0, (size_t)area * sizeof(T));
        for (int64_t od = 0; p->paired && od < a->result[0]; od++)
            for (int64_t oh = 0; oh < a->result[1]; oh++, g += n) {
                int64_t at = (od * h + 2 * oh) * w;
                NAME(pairs)(to + at, in + at, g, w, n);
            }
        for (int64_t r = 0; !p->paired && r < rows; r++, g += n) {
            NAME(find_row)(p, in, value, where, line, r);
            for (int64_t i = 0; i < n; i++) to[where[i]] += g[i];
        }
    }
}
#include "pool_last.inc.c"
#endif
#undef HAS_GRADIENT
#undef T
#undef I
#undef LEAST
#undef IS_NAN
#undef MAX
#undef NAME
