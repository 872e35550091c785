/* Attention over a few dense float32 rows, on this thread, without a workspace: where the tiles of attention_tiles.inc.c spend most of
 * their time on their set-up. Lanes are queries, so the maximum and the sum of powers need no sum over lanes. */
#include "attention.h"
#include <string.h>

#if defined __AVX512F__
#define LANES 16
#elif defined __AVX__
#define LANES 8
#else
#define LANES 4
#endif
enum { MOST = ATTENTION_FEW };
typedef float   row __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t ints __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

INLINE row each(float x) { return (row){ 0 } + x; }
INLINE row larger(row a, row b) /* b if one is NaN */
{
    ints more = (ints)(a > b);
    return (row)(((ints)a & more) | ((ints)b & ~more));
}
/* e^x for x <= 0: 2^n times a polynomial of what is left, |r| <= ln(2) / 2; underflow flushes to zero, NaN stays. */
INLINE row power(row x)
{
    ints below = (ints)(x < -87.0f);
    x = larger(each(-87.0f), x);
    row  n = x * each(1.44269504f) + each(12582912.0f); /* 1.5 * 2^23: the integer is in the low bits */
    ints shift = (ints)n << 23;
    n -= each(12582912.0f);
    row r = x - n * each(0.693359375f) - n * each(-2.12194440e-4f);
    row p = each(1.9875691500e-4f) * r + each(1.3981999507e-3f);
    p = p * r + each(8.3334519073e-3f), p = p * r + each(4.1665795894e-2f), p = p * r + each(1.6666665459e-1f);
    p = p * r + each(5.0000001201e-1f);
    return (row)(((ints)(p * r * r + r + each(1.0f)) + shift) & ~below);
}

static void attend(const float *q, const float *k, const float *v, float *out, int64_t seq, int64_t dim, float scale,
                   bool causal)
{
    row   transposed[MOST], score[MOST], sum;
    float share[LANES];
    for (int64_t first = 0; first < seq; first += LANES) {
        int64_t n = seq - first < LANES ? seq - first : LANES, keys = causal ? first + n : seq;
        for (int64_t d = 0; d < dim; d++) {
            float *line = (float *)&transposed[d];
            transposed[d] = each(0);
            for (int64_t i = 0; i < n; i++) line[i] = q[(first + i) * dim + d] * scale;
        }
        int64_t j = 0;
        for (; j + 4 <= keys; j += 4) {
            const float *at = k + j * dim;
            row          a = each(0), b = a, c = a, e = a;
            for (int64_t d = 0; d < dim; d++) {
                a += each(at[d]) * transposed[d], b += each(at[dim + d]) * transposed[d];
                c += each(at[2 * dim + d]) * transposed[d], e += each(at[3 * dim + d]) * transposed[d];
            }
            score[j] = a, score[j + 1] = b, score[j + 2] = c, score[j + 3] = e;
        }
        for (; j < keys; j++) {
            score[j] = each(0);
            for (int64_t d = 0; d < dim; d++) score[j] += each(k[j * dim + d]) * transposed[d];
        }
        ints lane; /* the query of each */
        for (int i = 0; i < LANES; i++) lane[i] = (int32_t)first + i;
        for (j = first + 1; causal && j < keys; j++) {
            ints after = (ints)(lane < (int32_t)j);
            score[j] = (row)(((ints)each(-1e30f) & after) | ((ints)score[j] & ~after));
        }
        row top = score[0];
        for (j = 1; j < keys; j++) top = larger(score[j], top);
        sum = each(0);
        for (j = 0; j < keys; j++) score[j] = power(score[j] - top), sum += score[j];
        sum = each(1) / sum;
        memcpy(share, &sum, sizeof share);
        for (int64_t i = 0; i < n; i++) {
            const float *weight = (const float *)score + i;
            float       *to = out + (first + i) * dim;
            int64_t      d = 0;
            for (; d + LANES <= dim; d += LANES) {
                row total = each(0);
                for (j = 0; j < keys; j++) total += each(weight[j * LANES]) * *(const row *)(v + j * dim + d);
                *(row *)(to + d) = total * each(share[i]);
            }
            for (; d < dim; d++) {
                float total = 0;
                for (j = 0; j < keys; j++) total += weight[j * LANES] * v[j * dim + d];
                to[d] = total * share[i];
            }
        }
    }
}
const attention_few_fn CAT(lc_cpu_attention_few, LC_ISA) = attend;
