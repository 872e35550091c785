/* Walks an elementwise loop over tensors.
 *
 * The plain case (every operand contiguous in the loop's dtype, or a single element) is one call of the loop, or one per
 * chunk of a thread split. Otherwise lc_iter yields rows; an operand whose row is contiguous or constant is used in place,
 * any other passes through a tile in L1. */
#include "../cpu.h"
#include "../../../tensor/iter.h"
#include <string.h>

LC_SHORT_LOOPS

enum { TILE = 512, OPERANDS = 5 }; /* elements: five operands of complex128 take 40 KiB, the usual three of float32 take 6 */

static bool    selects[LC_OP_COUNT], divides[LC_OP_COUNT];
static uint8_t rounds[LC_OP_COUNT]; /* operands, as bits */
static uint8_t simple[LC_OP_COUNT]; /* for run_small: 1: the result is T, 2: it is bool, 0: unsupported */
static __attribute__((constructor)) void read_row_kinds(void)
{
#define ROW(kind, op, ...)  simple[LC_OP_##op] = 1;
#define PREDICATE(op, ...)  simple[LC_OP_##op] = 2;
#define COMPARE(op, ...)    simple[LC_OP_##op] = 2;
#define UNARY_REAL(op, ...) /* the other rows of this op are UNARY: only complex types differ, and they are excluded below */
#define SELECT(op, ...)     selects[LC_OP_##op] = true;
#define NONZERO(op)         divides[LC_OP_##op] = true;
#define ROUNDS(op, mask)    rounds[LC_OP_##op] = mask;
#include "../../scalar.def"
    for (int op = 0; op < LC_OP_COUNT; op++)
        if (divides[op]) simple[op] = 0;
}

typedef struct {
    lc_cpu_loop loop;
    int         n_in;
    lc_dtype    from[OPERANDS], want[OPERANDS]; /* operand 0 is the output */
    unsigned    scalars, rough;                 /* rough: operands that are rounded to `half` on the way */
    lc_dtype    half;
    char       *data[OPERANDS]; /* the plain case */
    lc_iter    *it;
    _Alignas(16) char number[OPERANDS][16]; /* single elements in the loop's dtype */
} job;

/* ---- the plain case ---- */

static void run_plain(const job *j, int64_t begin, int64_t end)
{
    const void *in[OPERANDS];
    for (int k = 0; k < j->n_in; k++) in[k] = j->data[k + 1] + (j->scalars >> k & 1 ? 0 : begin * lc_size_of(j->want[k + 1]));
    j->loop(j->data[0] + begin * lc_size_of(j->want[0]), in, j->scalars, end - begin);
}
static void plain_chunk(void *ctx, int64_t begin, int64_t end) { run_plain(ctx, begin, end); }

/* ---- rows ---- */

typedef struct {
    const job *j;
    _Alignas(64) char tile[OPERANDS][TILE * 16];
} tiles;

static void run_tile(const job *j, char *tile, char *const *ptr, const int64_t *stride, int64_t start, int64_t n)
{
    const void *in[OPERANDS];
    unsigned    scalars = 0;
    for (int k = 1; k <= j->n_in; k++) {
        int64_t     size = lc_size_of(j->want[k]);
        const char *p = ptr[k] + start * stride[k];
        bool        direct = j->from[k] == j->want[k] && (stride[k] == size || stride[k] == 0);
        char       *t = tile + k * TILE * 16;
        if (__builtin_expect(j->rough >> (k - 1) & 1, 0)) {
            cpu_move(j->half, t + TILE * 8, 2, j->from[k], p, stride[k], stride[k] ? n : 1);
            cpu_move(j->want[k], t, size, j->half, t + TILE * 8, 2, stride[k] ? n : 1);
        } else if (!direct) cpu_move(j->want[k], t, size, j->from[k], p, stride[k], stride[k] ? n : 1);
        in[k - 1] = direct ? p : t;
        scalars |= (unsigned)(stride[k] == 0) << (k - 1);
    }
    int64_t size = lc_size_of(j->want[0]);
    char   *p = ptr[0] + start * stride[0];
    bool    direct = j->from[0] == j->want[0] && (stride[0] == size || n == 1);
    j->loop(direct ? p : tile, in, scalars, n);
    if (!direct) cpu_move(j->from[0], p, stride[0], j->want[0], tile, size, n);
}

static int tiled_row(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    tiles *t = ctx;
    for (int64_t start = 0; start < n; start += TILE)
        run_tile(t->j, t->tile[0], ptr, stride, start, n - start < TILE ? n - start : TILE);
    return 0;
}

/* The rows of every operand have the loop's layout: broadcasting a row or a column costs one call of the loop per row. */
static int direct_row(void *ctx, char *const *ptr, UNUSED const int64_t *stride, int64_t n)
{
    const job *j = ctx;
    j->loop(ptr[0], (const void *const *)ptr + 1, j->scalars, n);
    return 0;
}
static void direct_chunk(void *ctx, int64_t begin, int64_t end)
{
    lc_iter_range(((job *)ctx)->it, begin, end, direct_row, ctx);
}

static void tiled_chunk(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    tiles      t; /* not cleared: tiles are written before they are read */
    t.j = j;
    lc_iter_range(j->it, begin, end, tiled_row, &t);
}

static COLD void tell_tiles(const job *j)
{
    for (int k = 0; k <= j->n_in; k++) {
        int64_t step = lc_iter_step(j->it, k);
        if (j->from[k] != j->want[k])
            lc_log_line("  through tiles: %s %d is %s, the loop wants %s", k ? "operand" : "output", k ? k - 1 : 0,
                        lc_dtypes[j->from[k]].name, lc_dtypes[j->want[k]].name);
        else if (step != lc_size_of(j->want[k]) && (k == 0 || step != 0))
            lc_log_line("  through tiles: %s %d steps by %lld bytes", k ? "operand" : "output", k ? k - 1 : 0, (long long)step);
    }
}

static bool rows_are_direct(job *j)
{
    j->scalars = 0; /* of a row, from here on */
    for (int k = 0; k <= j->n_in; k++) {
        int64_t step = lc_iter_step(j->it, k);
        if (j->from[k] != j->want[k] || (step != lc_size_of(j->want[k]) && (k == 0 || step != 0))) return false;
        if (k) j->scalars |= (unsigned)(step == 0) << (k - 1);
    }
    return true;
}

static int run_rows(job *j, lc_tensor *out, lc_tensor *const *in)
{
    lc_iter it;
    lc_iter_start(&it, out->ndim, out->shape);
    lc_iter_add(&it, out);
    for (int k = 0; k < j->n_in; k++)
        if (j->scalars >> k & 1) lc_iter_add_raw(&it, j->data[k + 1], (int64_t[LC_MAX_DIMS]){ 0 });
        else lc_iter_add(&it, in[k]);
    lc_iter_prepare(&it, true);
    j->it = &it;
    bool direct = rows_are_direct(j);
    if (__builtin_expect(lc_verbose, 0) && !direct) tell_tiles(j);
    cpu_parallel(it.numel, CPU_GRAIN, it.numel, direct ? direct_chunk : tiled_chunk, j);
    return 0;
}

/* ---- the call ---- */

typedef struct {
    lc_dtype from;
    int64_t  kept; /* the bits that remain in the computing dtype: 256 is 0 in uint8 */
} divisor;
static int has_zero(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    const divisor *d = ctx;
    int64_t        value[TILE];
    for (int64_t start = 0, m; start < n; start += m) {
        m = n - start < TILE ? n - start : TILE;
        cpu_move(LC_i64, (char *)value, 8, d->from, ptr[0] + start * stride[0], stride[0], m);
        for (int64_t i = 0; i < m; i++)
            if ((value[i] & d->kept) == 0) return 1;
    }
    return 0;
}
static int check_divisor(const lc_tensor *y, lc_dtype compute) /* before anything is written */
{
    lc_iter it;
    int     bits = 8 * (int)lc_size_of(cpu_working_dtype(compute));
    divisor d = { (lc_dtype)y->dtype, bits < 64 ? (1LL << bits) - 1 : -1 };
    lc_iter_start(&it, y->ndim, y->shape);
    lc_iter_add(&it, y);
    lc_iter_prepare(&it, true);
    if (lc_iter_range(&it, 0, it.numel, has_zero, &d)) return lc_fail_int(LC_LucidError, "ZeroDivisionError");
    return 0;
}

/* Operands of half-precision loops: contiguous float16 or bfloat16, and single elements, which are passed as float32. */
static bool as_they_lie(lc_dtype half, const lc_tensor *out, lc_tensor *const *in, int n_in)
{
    bool plain = out->dtype == half && out->is_contiguous;
    for (int k = 0; k < n_in; k++)
        plain &= in[k]->numel == 1 || (in[k]->dtype == half && in[k]->is_contiguous && in[k]->numel == out->numel);
    return plain;
}

static __attribute__((noinline)) int walk(lc_op_id op, lc_dtype compute, lc_tensor *out, lc_tensor *const *in, int n_in)
{
    bool half_loop = compute != cpu_working_dtype(compute) && lc_cpu_loops[op][compute] && as_they_lie(compute, out, in, n_in);
    lc_dtype work = half_loop ? compute : cpu_working_dtype(compute);
    job      j; /* not cleared: every member is written before it is read */
    bool     plain = out->is_contiguous, half = compute == LC_f16 || compute == LC_bf16;
    if (!(j.loop = lc_cpu_loops[op][work])) return LC_NO_KERNEL;
    if (lc_is_float8(work)) work = LC_f32;
    j.n_in = n_in;
    j.scalars = j.rough = 0, j.half = compute;
    j.want[0] = lc_result_dtype(op, work);
    j.from[0] = (lc_dtype)out->dtype;
    j.data[0] = out->data;
    plain &= j.from[0] == j.want[0];
    for (int k = 0; k < n_in; k++) {
        lc_tensor *t = in[k];
        lc_dtype   want = k == 0 && selects[op] ? LC_b8 : half_loop && t->numel == 1 && out->numel != 0 ? LC_f32 : work;
        j.from[k + 1] = (lc_dtype)t->dtype;
        j.want[k + 1] = want;
        j.data[k + 1] = t->data;
        bool rough = rounds[op] >> k & 1 && half && t->dtype != compute;
        if ((t->numel == 1 || lc_is_expanded_scalar(t)) && out->numel != 0) {
            j.scalars |= 1u << k;
            if (rough) {
                char rounded[16];
                cpu_move(compute, rounded, 0, (lc_dtype)t->dtype, t->data, 0, 1);
                cpu_move(want, j.number[k], 0, compute, rounded, 0, 1);
                j.data[k + 1] = j.number[k];
                j.from[k + 1] = want;
            } else if (t->dtype != want) {
                cpu_move(want, j.number[k], 0, (lc_dtype)t->dtype, t->data, 0, 1);
                j.data[k + 1] = j.number[k];
                j.from[k + 1] = want;
            } else if (t->data == out->data || out->numel > 1) { /* the output may overwrite a scalar operand */
                memcpy(j.number[k], t->data, (size_t)lc_size_of(want));
                j.data[k + 1] = j.number[k];
            }
        } else {
            plain &= t->dtype == want && t->is_contiguous && t->numel == out->numel;
            j.rough |= (unsigned)rough << k;
        }
    }
    if (out->numel == 0) return 0;
    if (__builtin_expect(divides[op], 0) && lc_class_of(compute) == LC_INT && check_divisor(in[1], compute) < 0) return -1;
    if (!plain) return run_rows(&j, out, in);
    if (out->numel < CPU_GRAIN) j.loop(j.data[0], (const void *const *)j.data + 1, j.scalars, out->numel);
    else cpu_parallel(out->numel, CPU_GRAIN, out->numel, plain_chunk, &j);
    return 0;
}

/* Small tensors of one dtype and shape, the case that dispatch time is measured by: nothing to decide, nothing to split. */
static inline bool run_small(lc_op_id op, lc_dtype compute, lc_tensor *out, lc_tensor *const *in, int n_in)
{
    const void *data[OPERANDS];
    lc_cpu_loop loop = lc_cpu_loops[op][compute];
    if (!loop || !simple[op] || out->dtype != (simple[op] == 1 ? compute : LC_b8)) return false;
    if (out->numel >= CPU_GRAIN || !out->is_contiguous || compute > LC_f64) return false;
    for (int k = 0; k < n_in; k++) {
        const lc_tensor *t = in[k];
        if (t->dtype != compute || t->numel != out->numel || !t->is_contiguous) return false;
        data[k] = t->data;
    }
    loop(out->data, data, 0, out->numel);
    return true;
}

int cpu_elementwise(lc_op_id op, lc_dtype compute, lc_tensor *out, lc_tensor *const *in, int n_in)
{
    if (run_small(op, compute, out, in, n_in)) return 0;
    return walk(op, compute, out, in, n_in);
}

bool cpu_row_loop(lc_op_id op, lc_dtype compute, int n_in, bool half, cpu_row *row)
{
    bool     halves = compute == LC_f16 || compute == LC_bf16;
    lc_dtype work = halves && !half ? LC_f32 : compute;
    if ((cpu_working_dtype(compute) != compute && !halves) || lc_is_float8(compute)) return false;
    if ((half && !halves) || n_in >= OPERANDS || !(row->loop = lc_cpu_loops[op][work])) return false;
    if (divides[op] && lc_class_of(compute) == LC_INT) return false; /* the divisor is checked before anything is written */
    row->want[0] = lc_result_dtype(op, work), row->scalar = half ? LC_f32 : work, row->rough = halves ? rounds[op] : 0;
    for (int k = 0; k < n_in; k++) row->want[k + 1] = k == 0 && selects[op] ? LC_b8 : work;
    return true;
}
