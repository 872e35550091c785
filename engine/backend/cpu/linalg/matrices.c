/* Copies between layouts, and the walk over a batch. */
#include "lanes.h"
#include <limits.h>

typedef struct {
    uint64_t half[2];
} wide;
enum { TILE = 16 };
#define COPY(name, E)                                                                                                          \
    static void name(E *restrict dst, int64_t dr, int64_t dc, const E *restrict src, int64_t sr, int64_t sc, int64_t rows,     \
                     int64_t cols)                                                                                             \
    {                                                                                                                          \
        for (int64_t r0 = 0; r0 < rows; r0 += TILE)                                                                            \
            for (int64_t c0 = 0; c0 < cols; c0 += TILE) {                                                                      \
                int64_t r1 = r0 + TILE < rows ? r0 + TILE : rows, c1 = c0 + TILE < cols ? c0 + TILE : cols;                    \
                for (int64_t c = c0; c < c1; c++)                                                                              \
                    for (int64_t r = r0; r < r1; r++) dst[r * dr + c * dc] = src[r * sr + c * sc];                             \
            }                                                                                                                  \
    }
COPY(copy_4, uint32_t)
COPY(copy_8, uint64_t)
COPY(copy_16, wide)

void copy_matrix(void *dst, int64_t dst_row, int64_t dst_col, const void *src, int64_t src_row, int64_t src_col, int64_t rows,
                 int64_t cols, int64_t size)
{
    if (dst_row == 1 && src_row == 1)
        for (int64_t c = 0; c < cols; c++)
            memcpy((char *)dst + c * dst_col * size, (const char *)src + c * src_col * size, (size_t)(rows * size));
    else if (size == 4) copy_4(dst, dst_row, dst_col, src, src_row, src_col, rows, cols);
    else if (size == 8) copy_8(dst, dst_row, dst_col, src, src_row, src_col, rows, cols);
    else copy_16(dst, dst_row, dst_col, src, src_row, src_col, rows, cols);
}

static void walk_chunk(void *ctx, int64_t begin, int64_t end)
{
    linalg_job *j = ctx;
    char       *work = cpu_scratch(j->workspace + 64);
    if (!work) {
        j->no_memory = true;
        return;
    }
    for (int64_t i = begin; i < end && !j->group; i++) j->one(j, i, work);
    for (int64_t g = begin; g < end && j->group; g++) {
        int64_t first = g * j->width, rest = j->a->batch - first, count = rest < j->width ? rest : j->width;
        j->group(j->a, first, count, work);
        for (int64_t i = 0; i < count && j->may_refuse && !*(bool *)work; i++) {
            j->one(j, first + i, work);
            *(bool *)work = false;
        }
    }
    cpu_scratch_free(work, j->workspace + 64);
}

/* One large matrix after the other with the library's threads, or many on ours with one of its threads each. */
int linalg_walk(linalg_job *j, double cost)
{
    enum { LARGE = 1 << 23, CHUNK = 1 << 16 };
    int64_t batch = j->group ? (j->a->batch + j->width - 1) / j->width : j->a->batch;
    if (j->group) {
        size_t lanes = (size_t)(LANES_WORK + 1) * 64;
        cost *= j->width;
        j->workspace = j->workspace > lanes ? j->workspace : lanes;
    }
    int64_t grain = cost >= CHUNK ? 1 : (int64_t)(CHUNK / (cost + 64)) + 1;
    double  all = cost * (double)batch;
    for (int k = 0; k < LC_LINALG_OPERANDS; k++)
        if (j->a->m[k].rows > INT_MAX || j->a->m[k].cols > INT_MAX)
            return lc_fail_int(LC_ShapeMismatch, "%s: a matrix has more than %d rows or columns", j->a->name, INT_MAX);
    if (!batch) return 0;
    bool one_by_one = cost >= LARGE && j->lapack;
    if (j->lapack) lapack_threads(one_by_one ? lc_num_threads() : 1);
    void *host = all >= 1 << 16 && lc_host_unlock ? lc_host_unlock() : NULL;
    if (one_by_one || batch <= grain) walk_chunk(j, 0, batch);
    else lc_parallel_for(batch, grain, walk_chunk, j);
    if (host) lc_host_relock(host);
    return j->no_memory ? lc_fail_int(LC_OutOfMemory, "%s: no memory for the workspace of a matrix of %lld by %lld", j->a->name,
                                      (long long)j->a->m[0].rows, (long long)j->a->m[0].cols)
                        : 0;
}
