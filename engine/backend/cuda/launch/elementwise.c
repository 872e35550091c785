/* Elementwise calls, copies and fills: a row of scalar.def in the dtypes of the call. Where the CPU goes through tiles, a
 * thread computes its element's offsets and converts on load and store. */
#include "../driver.h"
#include "../../../tensor/iter.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIMS = 24, NEAR_DIMS = 8, OPERANDS = 5 };
typedef struct {
    int64_t n;
    char   *data[OPERANDS];
    double  f[OPERANDS];
    int64_t i[OPERANDS];
} flat_args; /* these three as in kernels/elementwise.cuh */
typedef struct {
    uint32_t n;
    int      ndim;
    uint32_t shape[NEAR_DIMS];
    int32_t  stride[OPERANDS][NEAR_DIMS];
    char    *data[OPERANDS];
    double   f[OPERANDS];
    int64_t  i[OPERANDS];
} near_args;
typedef struct {
    int64_t n;
    int     ndim;
    int64_t shape[DIMS], stride[OPERANDS][DIMS];
    char   *data[OPERANDS];
    double  f[OPERANDS];
    int64_t i[OPERANDS];
} far_args;

static const char *const type_names[] = {
#define DTYPE(name, ctype, acc, py, class) #name,
#include "../../../core/dtype.def"
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
#define ROW(kind, name, types, pays, expr)      TEXT(name, types, false, "R", expr)
#define SELECT(name, types, pays, expr)         TEXT(name, types, true, "R", expr)
#define PREDICATE(name, types, pays, expr)      TEXT(name, types, false, "bool", expr)
#define COMPARE(name, types, pays, expr)        TEXT(name, types, false, "bool", expr)
#define UNARY_REAL(name, types, pays, expr)     TEXT(name, types, false, "Q", expr)
static const row rows[] = {
#include "../../scalar.def"
};
enum { ROWS = sizeof rows / sizeof *rows };
static const row identity = { .result = "R", .expression = "x" }; /* copies */

static const row *row_of(lc_op_id op, lc_dtype compute) /* NULL: none */
{
    static int16_t first[LC_OP_COUNT]; /* index + 1; filled at the first call: the same values whoever writes */
    if (!first[rows[0].op])
        for (int i = ROWS - 1; i >= 0; i--) first[rows[i].op] = (int16_t)(i + 1);
    if (!first[op]) return NULL;
    for (size_t i = (size_t)first[op] - 1; i < ROWS; i++)
        if (rows[i].op == op && rows[i].types >> compute & 1) return &rows[i];
    /* PYTORCH-QUIRK: uint64 has these ops only, as on the CPU; bitwise they equal int64's. */
    if (compute == LC_u64 && (op == LC_OP_mul || op == LC_OP_eq || op == LC_OP_ne || op == LC_OP_bitwise_and ||
                              op == LC_OP_bitwise_or || op == LC_OP_bitwise_xor || op == LC_OP_where))
        return row_of(op, LC_i64);
    return NULL;
}
bool cuda_has_row(lc_op_id op, lc_dtype compute) { return row_of(op, lc_working_dtype(compute)); }

/* A scalar, or a 0-d tensor on the CPU, by value. */
static void put_number(double *f, int64_t *i, const lc_tensor *t, lc_dtype compute)
{
    double im = 0;
    switch (t->dtype) {
    case LC_c64:
        *f = (double)((const float *)t->data)[0], im = (double)((const float *)t->data)[1];
        break;
    case LC_c128:
        *f = ((const double *)t->data)[0], im = ((const double *)t->data)[1];
        break;
#define CASE(dt, ctype, read)                                                                                                  \
    case LC_##dt:                                                                                                              \
        *f = (double)read(*(const ctype *)t->data), *i = (int64_t)read(*(const ctype *)t->data);                               \
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
    if (compute == LC_b8) *f = *f != 0, *i = *f != 0;      /* the rows of bools combine bits */
    if (lc_is_complex(compute)) memcpy(i, &im, sizeof im); /* kernels/science/complex.cuh: number */
}

/* The variant of a program: how it walks, its row (0: identity) and which inputs are numbers. One program has one kernel: that
 * compiles fastest. Types: T computing, U output, then inputs. */
enum { FLAT, FLAT_WIDE, NEAR_WALK, FAR_WALK };
static const char *const walks[] = { "flat", "flat_wide", "near_walk", "far_walk" };
enum { ROW_BITS = 9 };
static int16_t variant_of(int walk, int64_t row, unsigned numbers)
{
    return (int16_t)(walk << (ROW_BITS + 4) | (int)row << 4 | (int)numbers);
}
_Static_assert(ROWS < 1 << ROW_BITS, "a row fits the variant");
/* Elements that a thread of flat_wide moves at once: 16 bytes of the widest operand, at least four. */
static int at_once(const cuda_program *p)
{
    for (int k = 1; k < CUDA_TYPES && p->type[k]; k++)
        if (lc_size_of(p->type[k] - 1) > 2) return 4;
    return 8;
}
static int lines(const cuda_program *p, char *to, size_t room)
{
    int         at = p->variant >> 4 & ((1 << ROW_BITS) - 1);
    const row  *r = at ? &rows[at - 1] : &identity;
    const char *work = type_names[p->type[0] - 1];
    int         n_in = 0, n = 0;
    while (n_in < 4 && p->type[2 + n_in]) n_in++;
    bool halves = p->type[1] == CUDA_TYPE(LC_f16) || p->type[1] == CUDA_TYPE(LC_bf16);
    if (halves && !strcmp(work, "f32"))
        n = snprintf(to, room, "#undef m_gelu\n#define m_gelu half_gelu\n#define m_gelu_slope half_gelu_slope\n");
    n += snprintf(to + n, room - (size_t)n, "#define WALK %d\ntypedef %s R; typedef %s Q; enum { N_IN = %d, AT_ONCE = %d };\n",
                  p->variant >> (ROW_BITS + 4) & 3, strcmp(work, "b8") ? work : "u8", type_names[lc_real_of(p->type[0] - 1)],
                  n_in, at_once(p));
    for (int k = 1; k < OPERANDS; k++) {
        bool number = k > n_in || p->variant >> (k - 1) & 1;
        n += snprintf(to + n, room - (size_t)n, "typedef %s IN_%d; typedef %s SEEN_%d; enum { IS_NUMBER_%d = %d };\n",
                      k > n_in ? "u8" : type_names[p->type[1 + k] - 1], k, k == 1 && r->select ? "bool" : "R", k, k, number);
    }
    /* A row's expression says T. */
    n += snprintf(to + n, room - (size_t)n,
                  "#define T R\n__device__ inline %s f(%s x, R y, R z, R w) { return (%s)(%s); }\n#undef T\n", r->result,
                  r->select ? "bool" : "R", r->result, r->expression);
    return n;
}
extern const char      lc_cuda_text_elementwise[];
static const cuda_body body = { .text = lc_cuda_text_elementwise, .math = true, .lines = lines };

static bool is_flat(const lc_iter *it, int k, int64_t size) { return it->ndim == 0 || it->stride[k][0] == size; }

static int launch(const row *r, lc_dtype compute, lc_tensor *out, lc_tensor *const *in, int n_in)
{
    lc_iter      it;
    int64_t      none[LC_MAX_DIMS] = { 0 }, size[OPERANDS] = { lc_size_of(out->dtype) };
    unsigned     numbers = 0;
    double       f[OPERANDS] = { 0 };
    int64_t      i[OPERANDS] = { 0 };
    cuda_program p = { &body, .type = { CUDA_TYPE(compute), CUDA_TYPE(out->dtype) } };
    if (out->numel == 0) return 0;
    if (cuda_use(out->device.index) < 0) return -1;
    lc_iter_start(&it, out->ndim, out->shape);
    lc_iter_add(&it, out);
    for (int k = 0; k < n_in; k++) {
        p.type[2 + k] = CUDA_TYPE(in[k]->dtype), size[k + 1] = lc_size_of(in[k]->dtype);
        if (in[k]->device.kind == LC_CPU) {
            numbers |= 1u << k;
            lc_iter_add_raw(&it, NULL, none), put_number(&f[k + 1], &i[k + 1], in[k], compute);
        } else lc_iter_add(&it, in[k]);
    }
    lc_iter_prepare(&it, true);
    int64_t row = r == &identity ? 0 : r - rows + 1;
    bool    flat = it.ndim <= 1, aligned = true;
    int     wide = at_once(&p);
    int64_t extent = 0;
    for (int k = 0; k <= n_in; k++) {
        if (k && numbers >> (k - 1) & 1) continue;
        flat = flat && is_flat(&it, k, size[k]);
        aligned = aligned && (uintptr_t)it.ptr[k] % (uintptr_t)(wide * size[k]) == 0;
        int64_t last = size[k];
        for (int d = 0; d < it.ndim; d++) last += (it.shape[d] - 1) * llabs(it.stride[k][d]);
        if (last > extent) extent = last;
    }
    if (flat) {
        flat_args a = { .n = it.numel };
        for (int k = 0; k <= n_in; k++) a.data[k] = it.ptr[k];
        memcpy(a.f, f, sizeof f), memcpy(a.i, i, sizeof i);
        int walk = aligned ? FLAT_WIDE : FLAT;
        p.kernel = walks[walk], p.variant = variant_of(walk, row, numbers);
        return cuda_map(&p, aligned ? (it.numel + wide - 1) / wide : it.numel, &a);
    }
    if (it.ndim <= NEAR_DIMS && extent < INT32_MAX && it.numel < INT32_MAX) {
        near_args a = { .n = (uint32_t)it.numel, .ndim = it.ndim };
        for (int d = 0; d < it.ndim; d++) a.shape[d] = (uint32_t)it.shape[d];
        for (int k = 0; k <= n_in; k++) {
            a.data[k] = it.ptr[k];
            for (int d = 0; d < it.ndim; d++) a.stride[k][d] = (int32_t)it.stride[k][d];
        }
        memcpy(a.f, f, sizeof f), memcpy(a.i, i, sizeof i);
        p.kernel = walks[NEAR_WALK], p.variant = variant_of(NEAR_WALK, row, numbers);
        return cuda_map(&p, it.numel, &a);
    }
    if (it.ndim > DIMS) return lc_fail_int(LC_NotImplementedError, "cuda: more than %d dimensions that cannot be merged", DIMS);
    far_args a = { .n = it.numel, .ndim = it.ndim };
    for (int d = 0; d < it.ndim; d++) a.shape[d] = it.shape[d];
    for (int k = 0; k <= n_in; k++) {
        a.data[k] = it.ptr[k];
        for (int d = 0; d < it.ndim; d++) a.stride[k][d] = it.stride[k][d];
    }
    memcpy(a.f, f, sizeof f), memcpy(a.i, i, sizeof i);
    p.kernel = walks[FAR_WALK], p.variant = variant_of(FAR_WALK, row, numbers);
    return cuda_map(&p, it.numel, &a);
}

int cuda_elementwise(lc_op_id op, lc_dtype compute, lc_tensor *out, lc_tensor *const *in, int n_in)
{
    const row *r = row_of(op, lc_working_dtype(compute));
    if (!r || n_in >= OPERANDS) return LC_NO_KERNEL;
    return launch(r, lc_working_dtype(compute), out, in, n_in);
}

int cuda_copy(lc_tensor *to, const lc_tensor *from)
{
    lc_tensor *in = (lc_tensor *)from;
    bool       float8 = lc_is_float8(to->dtype) || lc_is_float8(from->dtype);
    if (to->dtype == from->dtype && from->device.kind == LC_CUDA) {
        int rc = cuda_strided_copy(to, from);
        if (rc != LC_NO_KERNEL) return rc;
    }
    if (to->dtype == from->dtype && (to->dtype == LC_u64 || float8) && from->device.kind == LC_CUDA) {
        lc_tensor moved[2] = { *to, *from }; /* as it is: no row computes in it */
        moved[0].dtype = moved[1].dtype = float8 ? LC_u8 : LC_i64;
        return launch(&identity, (lc_dtype)moved[0].dtype, &moved[0], &(lc_tensor *){ &moved[1] }, 1);
    }
    if (float8)
        return lc_fail_int(LC_NotImplementedError, "copy is not implemented between %s and %s on cuda",
                           lc_dtypes[from->dtype].name, lc_dtypes[to->dtype].name);
    lc_dtype wide = lc_class_of(to->dtype) > lc_class_of(from->dtype) ? (lc_dtype)to->dtype : (lc_dtype)from->dtype;
    return launch(&identity, lc_working_dtype(wide), to, &in, 1);
}

char *cuda_elementwise_text(int *i)
{
    for (size_t r = 0; r < ROWS; r++)
        for (int dt = 0; dt < LC_DTYPE_COUNT; dt++) {
            if (!(rows[r].types >> dt & 1) || (*i)-- > 0) continue;
            int8_t       t = CUDA_TYPE(dt), result = *rows[r].result == 'R'   ? t
                                                     : *rows[r].result == 'Q' ? CUDA_TYPE(lc_real_of(dt))
                                                                              : CUDA_TYPE(LC_b8);
            int          walk = (int)((r + (size_t)dt) % 4); /* every walk with many rows and types */
            cuda_program p = { &body, walks[walk], .variant = variant_of(walk, (int64_t)r + 1, 4) };
            const int8_t types[CUDA_TYPES] = { t, result, rows[r].select ? CUDA_TYPE(LC_b8) : t, t, t, t };
            memcpy(p.type, types, sizeof types);
            return cuda_program_text(&p);
        }
    return NULL;
}
