/* Folds over one element type: the includer defines SFX. Complex types are folded as pairs of reals where that is equivalent
 * (sums). */
#define STATE(type, s, which) ((type *)(s)->which)
#define ROW_AT(r)             ((const T *)((const char *)in + (r)*row_bytes))

/* ---- sums of a function of each element ---- */
#if KIND != COMPLEX
#define FOLD          sum
#define FINISH(total) (total)
#include "fold_sum.inc.c"
#endif
#if KIND == FLOATING
static void CAT(mean_finish, SFX)(const lc_fold_state *s, int64_t n, double parameter, void *value, UNUSED void *index)
{
    for (int64_t c = 0; c < n; c++) ((T *)value)[c] = (T)(CAT(sum_total, SFX)(s, c) / parameter);
}
static void CAT(mean_rows, SFX)(const void *in, int64_t in_step, void *value, int64_t value_step, int64_t rows, int64_t n,
                                double parameter)
{
    for (int64_t r = 0; r < rows; r++) {
        CAT(sum_sums, SFX) sum = CAT(sum_row, SFX)((const T *)((const char *)in + r * in_step), n);
        *(T *)((char *)value + r * value_step) = (T)((sum.even + sum.odd) / parameter);
    }
}
static const lc_fold CAT(mean, SFX) = { CAT(sum_start, SFX), CAT(sum_inner, SFX),   CAT(sum_outer, SFX),
                                        CAT(sum_merge, SFX), CAT(mean_finish, SFX), CAT(mean_rows, SFX) };
#define FOLD          nansum
#define LOAD(x)       ((x) == (x) ? (x) : (T)0)
#define OF_PARTS(x)   ((__typeof__(x))((__typeof__((x) == (x)))(x) & ((x) == (x))))
#define FINISH(total) (total)
#include "fold_sum.inc.c"
#define FOLD          norm_one
#define LOAD(x)       m_abs(x)
#define OF_PARTS(x)   ((__typeof__(x))((__typeof__((x) == (x)))(x) & (__typeof__((x) == (x)))(-(x))))
#define FINISH(total) (total)
#include "fold_sum.inc.c"
#define FOLD          norm_two
#define LOAD(x)       ((x) * (x))
#define OF_PARTS(x)   ((x) * (x))
#define FINISH(total) sqrt(total)
#include "fold_sum.inc.c"
#endif
#if KIND == FLOATING
#define FOLD          _count_numbers
#define LOAD(x)       ((x) == (x))
#define FINISH(total) (total)
#define COUNTS
#include "fold_sum.inc.c"
#endif
#define FOLD          count_nonzero
#define LOAD(x)       ((x) != 0)
#define FINISH(total) (total)
#define COUNTS
#include "fold_sum.inc.c"

/* ---- folds with one accumulator: prod, amax, amin, any, all ---- */
#define FOLD       prod
#define A          PRODUCT
#define EMPTY      1
#define STEP(m, x) ((PRODUCT)(m) * (PRODUCT)(x))
#if KIND == FLOATING /* four in the element's own type, then the accumulator */
#define FOUR(x0, x1, x2, x3) (((x0) * (x1)) * ((x2) * (x3)))
#endif
#define RESULT T
#include "fold.inc.c"
#if KIND != COMPLEX
#define FOLD amax
#define LARGEST
#define EMPTY LOWEST
#include "fold.inc.c"
#define FOLD amin
#define SMALLEST
#define EMPTY HIGHEST
#include "fold.inc.c"
#endif
#define FOLD       any
#define A          uint8_t
#define LOAD(x)    ((x) != 0)
#define EMPTY      0
#define STEP(m, x) ((uint8_t)((m) | (x)))
#define RESULT     lc_b8
#include "fold.inc.c"
#define FOLD       all
#define A          uint8_t
#define LOAD(x)    ((x) != 0)
#define EMPTY      1
#define STEP(m, x) ((uint8_t)((m) & (x)))
#define RESULT     lc_b8
#include "fold.inc.c"

#if KIND != COMPLEX
/* ---- extremes with their index: the first one wins, a NaN wins over everything. a: value, b: index, -1 while there is none
 * ---- */
#define FOLD         max_dim
#define VALUE_FOLD   amax
#define BETTER(x, m) (((x) > (m)) | (((x) != (x)) & ((m) == (m))))
#include "fold_index.inc.c"
#define FOLD         min_dim
#define VALUE_FOLD   amin
#define BETTER(x, m) (((x) < (m)) | (((x) != (x)) & ((m) == (m))))
#include "fold_index.inc.c"
#endif

#if KIND != COMPLEX
/* ---- both extremes: the minimum and the maximum, each fold in its half of the state, while the elements are in L1 ---- */
#define BESIDE(s) ((lc_fold_state *)(s)->b) /* a state whose a is b: the folds of extremes use only a */
static SMALL void CAT(aminmax_start, SFX)(lc_fold_state *s, int64_t n)
{
    CAT(amin_start, SFX)(s, n);
    CAT(amax_start, SFX)(BESIDE(s), n);
}
static void CAT(aminmax_inner, SFX)(lc_fold_state *s, const void *in, int64_t n, int64_t first)
{
    enum { BLOCK = 8192 / sizeof(T) };
    const T *p = in;
    for (int64_t m; n; p += m, n -= m) {
        m = n < BLOCK ? n : BLOCK;
        CAT(amin_inner, SFX)(s, p, m, first);
        CAT(amax_inner, SFX)(BESIDE(s), p, m, first);
    }
}
static void CAT(aminmax_outer, SFX)(lc_fold_state *s, const void *in, int64_t rows, int64_t row_bytes, int64_t n, int64_t first)
{
    for (int64_t r = 0, m; r < rows; r += m) {
        m = rows - r < 8 ? rows - r : 8;
        CAT(amin_outer, SFX)(s, ROW_AT(r), m, row_bytes, n, first);
        CAT(amax_outer, SFX)(BESIDE(s), ROW_AT(r), m, row_bytes, n, first);
    }
}
static SMALL void CAT(aminmax_merge, SFX)(lc_fold_state *to, const lc_fold_state *from, int64_t n)
{
    CAT(amin_merge, SFX)(to, from, n);
    CAT(amax_merge, SFX)(BESIDE(to), BESIDE(from), n);
}
static SMALL void CAT(aminmax_finish, SFX)(const lc_fold_state *s, int64_t n, double parameter, void *value, void *index)
{
    if (value) CAT(amin_finish, SFX)(s, n, parameter, value, NULL);
    if (index) CAT(amax_finish, SFX)(BESIDE(s), n, parameter, index, NULL);
}
static const lc_fold CAT(aminmax, SFX) = { CAT(aminmax_start, SFX), CAT(aminmax_inner, SFX),  CAT(aminmax_outer, SFX),
                                           CAT(aminmax_merge, SFX), CAT(aminmax_finish, SFX), NULL };
#undef BESIDE
#endif

#if KIND == FLOATING
#define FOLD norm_max
#define LARGEST
#define LOAD(x) m_abs(x)
#define EMPTY   0
#include "fold.inc.c"
#define FOLD norm_min
#define SMALLEST
#define LOAD(x) m_abs(x)
#define EMPTY   HIGHEST
#include "fold.inc.c"
#include "fold_variance.inc.c"
#include "fold_logsumexp.inc.c"
#endif
#undef SFX
