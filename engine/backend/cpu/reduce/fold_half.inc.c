/* Sums of float16 and bfloat16 in place: like fold_sum.inc.c, widened on the way into registers; states and results are
 * those of float32. The includer (folds.isa.c) defines SFX, LOAD of one element and EIGHT_AT of eight. */
#define NAME(part) CAT(CAT(sum, part), SFX)
#define ACC        SUM
#define PARTS_AT   EIGHT_AT
INLINE void NAME(add)(double *total, double *lost, double x) { sum_add_f32(total, lost, x); }
#include "fold_lanes.inc.c"
static void NAME(inner)(lc_fold_state *s, const void *in, int64_t n, UNUSED int64_t first)
{
    const T *p = in;
    for (; n > FOLD_ROW; p += FOLD_ROW, n -= FOLD_ROW) NAME(chunk)(s, p, FOLD_ROW, 1);
    NAME(chunk)(s, p, n, 1);
}
static void NAME(outer)(lc_fold_state *s, const void *in, int64_t rows, int64_t row_bytes, int64_t n, UNUSED int64_t first)
{
    typedef double totals __attribute__((vector_size(64), aligned(8)));
    double        *total = STATE(double, s, a);
    for (int64_t r = 0, m; r < rows; r += m) {
        int64_t c = 0;
        m = rows - r < 8 ? rows - r : 8;
        for (; c + 8 <= n; c += 8) {
            NAME(parts) part = EIGHT_AT(ROW_AT(r) + c);
            for (int64_t k = 1; k < m; k++) part += EIGHT_AT(ROW_AT(r + k) + c);
            *(totals *)(total + c) += __builtin_convertvector(part, totals);
        }
        for (; c < n; c++) {
            float part = LOAD(ROW_AT(r)[c]);
            for (int64_t k = 1; k < m; k++) part += LOAD(ROW_AT(r + k)[c]);
            total[c] += (double)part;
        }
    }
}
static const lc_fold CAT(sum, SFX) = { sum_start_f32, NAME(inner), NAME(outer), sum_merge_f32, sum_finish_f32, NULL };
static const lc_fold CAT(mean, SFX) = { sum_start_f32, NAME(inner), NAME(outer), sum_merge_f32, mean_finish_f32, NULL };
#undef NAME
#undef ACC
#undef LOAD
#undef EIGHT_AT
#undef SFX
