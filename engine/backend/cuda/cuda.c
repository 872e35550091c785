/* The CUDA backend: the same op ids, the same scalar.def rows, compiled from text for the dtypes of a call. Where the CPU
 * goes through tiles, a thread computes its element's offsets and converts on load and store. Complex types have no rows
 * here yet: `has` says so, and the op layer raises an error that names the op. */
#include "driver.h"
#include "../../tensor/iter.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIMS = 24, OPERANDS = 5, THREADS = 256, LINES_ROOM = 4096 };
typedef struct {
    char   *data;
    int64_t stride[DIMS];
    double  f;
    int64_t i;
} operand;
typedef struct {
    int64_t n;
    int     ndim;
    int64_t shape[DIMS];
    operand op[OPERANDS];
} walk; /* as in kernels/math.cuh */

/* A program is math.cuh, a few lines that define the types and the expression, and one of the other texts. */
extern const char lc_cuda_text_math[], lc_cuda_text_elementwise[], lc_cuda_text_reduce[],
    lc_cuda_text_matmul[]; /* by tools/embed.py */
static char *program(const char *body, const char *lines, ...) __attribute__((format(printf, 2, 3)));
static char *program(const char *body, const char *lines, ...) /* malloc'd; NULL: out of memory */
{
    va_list list, again;
    va_start(list, lines);
    va_copy(again, list);
    int    n = vsnprintf(NULL, 0, lines, list);
    size_t first = strlen(lc_cuda_text_math), last = strlen(body) + 1;
    char  *text = n < 0 ? NULL : malloc(first + (size_t)n + last);
    if (text) {
        memcpy(text, lc_cuda_text_math, first);
        vsnprintf(text + first, (size_t)n + 1, lines, again);
        memcpy(text + first + n, body, last);
    }
    va_end(list), va_end(again);
    return text;
}

static const char *const type_names[] = {
#define DTYPE(name, ctype, acc, py, class) #name,
#include "../../core/dtype.def"
#undef DTYPE
};

typedef struct {
    lc_op_id    op;
    uint32_t    types;
    bool        select; /* x is a bool, whatever T is */
    const char *result, *expression;
} row;
#define BIT(op, dt)                             | 1u << LC_##dt
#define TEXT(name, types, select, result, expr) { LC_OP_##name, 0 LC_EACH_##types(BIT, _), select, result, #expr },
#define ROW(kind, name, types, pays, expr)      TEXT(name, types, false, "T", expr)
#define SELECT(name, types, pays, expr)         TEXT(name, types, true, "T", expr)
#define PREDICATE(name, types, pays, expr)      TEXT(name, types, false, "bool", expr)
#define COMPARE(name, types, pays, expr)        TEXT(name, types, false, "bool", expr)
#define UNARY_REAL(name, types, pays, expr)
static const row rows[] = {
#include "../scalar.def"
};

static const row identity = { .result = "T", .expression = "x" }; /* copies */

static lc_dtype computed_in(lc_dtype dtype) { return lc_working_dtype(dtype); }

static const row *row_of(lc_op_id op, lc_dtype compute)
{
    if (lc_is_complex(compute)) return NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].op == op && rows[i].types >> compute & 1) return &rows[i];
    return NULL;
}

static int as_walk(const lc_iter *it, walk *w)
{
    if (it->ndim > DIMS)
        return lc_fail_int(LC_NotImplementedError, "cuda: more than %d dimensions that cannot be merged", DIMS);
    w->n = it->numel, w->ndim = it->ndim;
    for (int d = 0; d < it->ndim; d++) w->shape[d] = it->shape[d];
    for (int k = 0; k < it->operands; k++) {
        w->op[k].data = it->ptr[k];
        for (int d = 0; d < it->ndim; d++) w->op[k].stride[d] = it->stride[k][d];
    }
    return 0;
}

static void put_number(operand *o, const lc_tensor *t) /* a scalar, or a 0-d tensor on the CPU, by value */
{
    switch (t->dtype) {
#define CASE(dt, ctype, read)                                                                                                  \
    case LC_##dt:                                                                                                              \
        o->f = (double)read(*(const ctype *)t->data), o->i = (int64_t)read(*(const ctype *)t->data);                           \
        break;
        CASE(b8, uint8_t, )
        CASE(u8, uint8_t, )
        CASE(u16, uint16_t, )
        CASE(u32, uint32_t, )
        CASE(u64, uint64_t, )
        CASE(i8, int8_t, )
        CASE(i16, int16_t, )
        CASE(i32, int32_t, )
        CASE(i64, int64_t, )
        CASE(f16, uint16_t, lc_f16_to_f32) CASE(bf16, uint16_t, lc_bf16_to_f32) CASE(f32, float, ) CASE(f64, double, )
#undef CASE
    }
}

/* The parts of an elementwise program: enough to write its text, and its key. */
typedef struct {
    const row  *row;
    const char *compute, *out, *in[OPERANDS - 1];
    bool        number[OPERANDS - 1];
    int         n_in;
} elementwise_text;

static char *elementwise_source(const void *ctx)
{
    const elementwise_text *e = ctx;
    char                    lines[LINES_ROOM];
    int n = sprintf(lines, "typedef %s T; typedef %s OUT; enum { N_IN = %d };\n", strcmp(e->compute, "b8") ? e->compute : "u8",
                    e->out, e->n_in);
    for (int k = 1; k < OPERANDS; k++) {
        const char *type = k == 1 && e->row->select ? "bool" : "T";
        if (k > e->n_in) n += sprintf(lines + n, "#define LOAD_%d (T)0\n", k);
        else if (e->number[k - 1])
            n += sprintf(lines + n, "#define LOAD_%d number<%s>(w.op[%d].f, w.op[%d].i)\n", k, type, k, k);
        else
            n += sprintf(lines + n, "#define LOAD_%d (%s)value(*(const %s *)(w.op[%d].data + offset[%d]))\n", k, type,
                         e->in[k - 1], k, k);
    }
    return program(lc_cuda_text_elementwise, "%s__device__ inline %s f(%s x, T y, T z, T w) { return (%s)(%s); }\n", lines,
                   e->row->result, e->row->select ? "bool" : "T", e->row->result, e->row->expression);
}

static int launch_elementwise(const row *r, lc_dtype compute, lc_tensor *out, lc_tensor *const *in, int n_in)
{
    lc_iter          it;
    walk             w;
    elementwise_text e = { .row = r, .compute = type_names[compute], .out = type_names[out->dtype], .n_in = n_in };
    char             key[160];
    int64_t          none[LC_MAX_DIMS] = { 0 };
    if (out->numel == 0) return 0;
    if (cuda_use(out->device.index) < 0) return -1;
    lc_iter_start(&it, out->ndim, out->shape);
    lc_iter_add(&it, out);
    int n = sprintf(key, "e%d.%d.%d", r == &identity ? -1 : (int)(r - rows), (int)compute, out->dtype);
    for (int k = 0; k < n_in; k++) {
        e.number[k] = in[k]->device.kind == LC_CPU;
        e.in[k] = type_names[in[k]->dtype];
        if (e.number[k]) lc_iter_add_raw(&it, NULL, none), put_number(&w.op[k + 1], in[k]);
        else lc_iter_add(&it, in[k]);
        n += sprintf(key + n, ".%d%s", in[k]->dtype, e.number[k] ? "n" : "");
    }
    lc_iter_prepare(&it, true);
    if (as_walk(&it, &w) < 0) return -1;
    cu_function f = cuda_kernel(key, elementwise_source, &e);
    int64_t     blocks = (w.n + THREADS - 1) / THREADS;
    return f ? cuda_launch(f, blocks < 4096 ? blocks : 4096, THREADS, &w) : -1;
}

static int cuda_elementwise(lc_op_id op, lc_dtype compute, lc_tensor *out, lc_tensor *const *in, int n_in)
{
    const row *r = row_of(op, computed_in(compute));
    if (!r || n_in >= OPERANDS) return LC_NO_KERNEL;
    for (int k = 0; k < n_in; k++)
        if (lc_is_complex(in[k]->dtype)) return LC_NO_KERNEL;
    return launch_elementwise(r, computed_in(compute), out, in, n_in);
}

static int cuda_copy(lc_tensor *to, const lc_tensor *from)
{
    lc_dtype compute =
        computed_in(lc_class_of(to->dtype) > lc_class_of(from->dtype) ? (lc_dtype)to->dtype : (lc_dtype)from->dtype);
    if (lc_is_complex(to->dtype) || lc_is_complex(from->dtype))
        return lc_fail_int(LC_NotImplementedError, "copy is not implemented for complex types on cuda");
    return launch_elementwise(&identity, compute, to, &(lc_tensor *){ (lc_tensor *)from }, 1);
}

static int cuda_fill(lc_tensor *to, const lc_tensor *number) { return cuda_copy(to, number); }

static int cuda_transfer(lc_tensor *to, const lc_tensor *from)
{
    size_t bytes = (size_t)(to->numel * lc_size_of(to->dtype));
    bool   here = to->device.kind == LC_CUDA;
    if (cuda_use(here ? to->device.index : from->device.index) < 0) return -1;
    if (bytes == 0) return 0;
    return cuda_check(here ? cuda.cuMemcpyHtoD_v2((cu_pointer)(uintptr_t)to->data, from->data, bytes)
                           : cuda.cuMemcpyDtoH_v2(to->data, (cu_pointer)(uintptr_t)from->data, bytes),
                      "cuMemcpy");
}

/* Reductions: how to start and to fold. */
typedef struct {
    lc_op_id    op;
    const char *start, *fold;
} fold_row;
static const fold_row folds[] = {
    { LC_OP_sum, "0", "a + b" },
    { LC_OP_prod, "1", "a * b" },
};
typedef struct {
    const fold_row *fold;
    const char     *acc, *out, *in;
} reduce_text;

static char *reduce_source(const void *ctx)
{
    const reduce_text *r = ctx;
    return program(lc_cuda_text_reduce,
                   "typedef %s ACC; typedef %s OUT; typedef %s IN0;\n#define START %s\n"
                   "__device__ inline ACC fold(ACC a, ACC b) { return %s; }\n",
                   r->acc, r->out, r->in, r->fold->start, r->fold->fold);
}

static int cuda_reduce(lc_op_id op, lc_dtype compute, const lc_reduce_args *args)
{
    struct {
        walk kept, reduced;
    } walks;
    char             key[96];
    const fold_row  *fold = NULL;
    const lc_tensor *x = args->in;
    for (size_t i = 0; i < sizeof folds / sizeof *folds; i++)
        if (folds[i].op == op) fold = &folds[i];
    if (!fold || args->index || lc_is_complex(compute)) return LC_NO_KERNEL;
    if (args->value->numel == 0) return 0;
    if (cuda_use(x->device.index) < 0) return -1;
    for (int part = 0; part < 2; part++) { /* kept dimensions, then reduced ones */
        int64_t shape[LC_MAX_DIMS], in[LC_MAX_DIMS], out[LC_MAX_DIMS];
        int     n = 0;
        for (int d = 0; d < x->ndim; d++)
            if ((args->mask >> d & 1) == (uint64_t)part) {
                shape[n] = x->shape[d];
                in[n] = x->stride[d] * lc_size_of(x->dtype);
                out[n++] = args->value_stride[d] * lc_size_of(args->value->dtype);
            }
        lc_iter it;
        lc_iter_start(&it, n, shape);
        lc_iter_add_raw(&it, args->value->data, out);
        lc_iter_add_raw(&it, x->data, in);
        lc_iter_prepare(&it, true);
        if (as_walk(&it, part ? &walks.reduced : &walks.kept) < 0) return -1;
    }
    lc_dtype    acc = compute == LC_f64 ? LC_f64 : lc_is_floating(compute) ? LC_f32 : LC_i64;
    reduce_text text = { fold, type_names[acc], type_names[args->value->dtype], type_names[x->dtype] };
    sprintf(key, "r%d.%d.%d.%d", (int)op, (int)acc, args->value->dtype, x->dtype);
    cu_function f = cuda_kernel(key, reduce_source, &text);
    return f ? cuda_launch(f, walks.kept.n, 512, &walks) : -1;
}

static bool cuda_has(lc_op_id op, lc_dtype compute)
{
    for (size_t i = 0; i < sizeof folds / sizeof *folds; i++)
        if (folds[i].op == op) return !lc_is_complex(compute);
    return op == LC_OP_mm || row_of(op, computed_in(compute));
}

static int cuda_synchronize(int index)
{
    return cuda_use(index) < 0 ? -1 : cuda_check(cuda.cuCtxSynchronize(), "cuCtxSynchronize");
}

static char *matmul_source(const void *ctx)
{
    const lc_dtype *dtype = ctx;
    const char     *acc = *dtype == LC_f64 ? "f64" : lc_is_floating(*dtype) ? "f32" : "i64", *type = type_names[*dtype];
    return program(lc_cuda_text_matmul, "typedef %s ACC; typedef %s OUT; typedef %s IN0;\n", acc, type, type);
}

static int matmul_any(lc_dtype dtype, const lc_matmul_args *a)
{
    struct {
        char   *out, *a, *b;
        int64_t batch, m, n, k, ob, orow, ocol, ab, arow, acol, bb, brow, bcol;
    } p = { a->out->data, a->a->data, a->b->data, a->batch, a->m,     a->n,       a->k,     a->out_batch,
            a->out_row,   a->out_col, a->a_batch, a->a_row, a->a_col, a->b_batch, a->b_row, a->b_col };
    char key[32];
    sprintf(key, "m%d", (int)dtype);
    cu_function f = cuda_kernel(key, matmul_source, &dtype);
    return f ? cuda_launch(f, (a->batch * a->m * a->n + THREADS - 1) / THREADS, THREADS, &p) : -1;
}

/* cuBLAS is column-major: the row-major product out = a b is out^T = b^T a^T there. An operand fits if one of its strides is
 * 1. */
static bool fits_blas(int64_t row, int64_t col, int64_t rows, int64_t cols, int *transposed, int *ld)
{
    bool plain = col == 1 && row >= cols, flipped = row == 1 && col >= rows;
    *transposed = !plain, *ld = (int)(plain ? row : col);
    return (plain || flipped) && *ld<INT32_MAX && * ld> 0;
}

static int cuda_matmul(lc_dtype dtype, const lc_matmul_args *a)
{
    int code = dtype == LC_f32 ? 0 : dtype == LC_f64 ? 1 : dtype == LC_f16 ? 2 : dtype == LC_bf16 ? 14 : -1;
    int ta, tb, tc, lda, ldb, ldc;
    if (a->batch * a->m * a->n == 0) return 0;
    if (cuda_use(a->out->device.index) < 0) return -1;
    bool fits = code >= 0 && a->k > 0 && fits_blas(a->a_row, a->a_col, a->m, a->k, &ta, &lda) &&
                fits_blas(a->b_row, a->b_col, a->k, a->n, &tb, &ldb) &&
                fits_blas(a->out_row, a->out_col, a->m, a->n, &tc, &ldc) && !tc && a->m < INT32_MAX && a->n < INT32_MAX &&
                a->k < INT32_MAX && a->batch < INT32_MAX;
    cublas_handle blas = fits ? cuda_blas(a->out->device.index) : NULL;
    if (!blas) return lc_tell("matmul on cuda: no cuBLAS call for these strides or dtype"), matmul_any(dtype, a);
    float       one = 1, zero = 0;
    double      one64 = 1, zero64 = 0;
    bool        wide = dtype == LC_f64;
    const void *alpha = wide ? (void *)&one64 : &one, *beta = wide ? (void *)&zero64 : &zero;
    int         compute = wide ? 70 : 68; /* CUBLAS_COMPUTE_64F, _32F */
    int rc = cuda.cublasGemmStridedBatchedEx(blas, tb, ta, (int)a->n, (int)a->m, (int)a->k, alpha, a->b->data, code, ldb,
                                             a->b_batch, a->a->data, code, lda, a->a_batch, beta, a->out->data, code, ldc,
                                             a->out_batch, (int)a->batch, compute, -1);
    return rc == 0 ? 0 : lc_fail_int(LC_LucidError, "cuBLAS: the product failed with status %d", rc);
}

static int cuda_run(lc_op_id op, lc_dtype compute, const void *args)
{
    if (op == LC_OP_mm && !lc_is_complex(compute)) return cuda_matmul(compute, args);
    return LC_NO_KERNEL;
}

static const lc_backend lc_cuda = {
    .name = "cuda",
    .can = { .values = true, .image_format = LC_CONTIGUOUS_FORMAT },
    .has = cuda_has,
    .elementwise = cuda_elementwise,
    .reduce = cuda_reduce,
    .copy = cuda_copy,
    .fill = cuda_fill,
    .run = cuda_run,
    .memory = &cuda_memory,
    .transfer = cuda_transfer,
    .synchronize = cuda_synchronize,
    .device_count = cuda_device_count,
};

/* Every possible program with operands of one dtype, for a test that they all compile: malloc'd, NULL past the last. */
char *lc_cuda_kernel_text(int i)
{
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int dt = 0; dt < LC_DTYPE_COUNT; dt++) {
            if (!(rows[r].types >> dt & 1) || lc_is_complex(dt) || i-- > 0) continue;
            const char      *name = type_names[dt];
            elementwise_text e = {
                .row = &rows[r], .compute = name, .out = strcmp(rows[r].result, "T") ? "b8" : name, .n_in = 4
            };
            for (int k = 0; k < 4; k++) e.in[k] = k == 0 && rows[r].select ? "b8" : name, e.number[k] = k == 2;
            return elementwise_source(&e);
        }
    for (int dt = 0; dt < LC_c32; dt++) {
        const char *acc = dt == LC_f64 ? "f64" : lc_is_floating(dt) ? "f32" : "i64";
        for (size_t f = 0; f < sizeof folds / sizeof *folds; f++)
            if (i-- == 0)
                return reduce_source(
                    &(reduce_text){ &folds[f], acc, lc_is_floating(dt) ? type_names[dt] : "i64", type_names[dt] });
        if (i-- == 0) return matmul_source(&(lc_dtype){ (lc_dtype)dt });
    }
    return NULL;
}

static const lc_backend                 *open_cuda(void) { return cuda_use(0) < 0 ? NULL : &lc_cuda; }
static __attribute__((constructor)) void register_cuda(void) { lc_backend_openers[LC_CUDA] = open_cuda; }
