/* Random fills: the device's Philox generator, in the layout of PyTorch's kernels (kernels/random.cuh). */
#include "../science/science.h"
#include <math.h>

enum { UNIFORM, NORMAL, EXPONENTIAL, CAUCHY, LOG_NORMAL, GEOMETRIC, BERNOULLI, BERNOULLI_EACH, INTEGERS, SLOPES, KEYS };
typedef struct {
    void         *out, *single, *twofold;
    int64_t       n, threads;
    cuda_drawn    by;
    double        a, b;
    int64_t       low;
    uint64_t      range, bits;
    int           pairs;
    cuda_trouble *word;
} random_args; /* as in kernels/random.cuh */
CUDA_BODY(random);

static int64_t threads_for(int device, int64_t n) /* a thread per element, as many as the device holds at once */
{
    static int most[CUDA_DEVICES]; /* the same whoever writes it */
    if (!most[device]) most[device] = 256 * cuda_attribute(device, 16) * (cuda_attribute(device, 39) / 256);
    int64_t wanted = (n + 255) / 256 * 256;
    return wanted < most[device] ? wanted : most[device];
}
enum { ADVANCE_EACH = 12 }; /* of draws with a probability per element: PyTorch's 10, in whole fours */
static int drawn(int kind, lc_generator *g, lc_tensor *out, random_args p)
{
    int          device = out->device.index, each = p.pairs ? 2 : 4;
    cuda_program q = { &random_body, "fill", .type = { CUDA_TYPE(out->dtype) }, .variant = (int16_t)kind };
    p.out = out->data, p.n = out->numel, p.word = cuda_trouble_word(device);
    p.threads = kind == BERNOULLI_EACH ? (p.n + 1023) / 1024 * 256 : threads_for(device, p.n);
    uint64_t advance = (uint64_t)((p.n - 1) / (p.threads * each) + 1) * 4;
    if (cuda_draw(g, device, kind == BERNOULLI_EACH ? ADVANCE_EACH : advance, &p.by) < 0) return -1;
    return cuda_blocks(&q, p.threads / 256, 256, &p);
}

static uint64_t any_range(lc_dtype dtype) /* every integer that the dtype represents exactly */
{
    switch (dtype) {
    case LC_b8:
        return 2;
    case LC_u8:
        return 1u << 8;
    case LC_i8:
        return 1u << 7;
    case LC_i16:
        return 1u << 15;
    case LC_u16:
        return 1u << 16;
    case LC_i32:
        return 1u << 31;
    case LC_u32:
        return (uint64_t)1 << 32;
    case LC_f16:
        return (1u << 11) + 1;
    case LC_bf16:
        return (1u << 8) + 1;
    case LC_f32:
        return (1u << 24) + 1;
    case LC_f64:
        return ((uint64_t)1 << 53) + 1;
    default:
        return (uint64_t)1 << 63;
    }
}
static int kind_of(lc_op_id op)
{
    static const struct {
        lc_op_id op;
        int      kind;
    } kinds[] = { { LC_OP_uniform_, UNIFORM },         { LC_OP_normal_, NORMAL },
                  { LC_OP_exponential_, EXPONENTIAL }, { LC_OP_cauchy_, CAUCHY },
                  { LC_OP_log_normal_, LOG_NORMAL },   { LC_OP_geometric_, GEOMETRIC },
                  { LC_OP_bernoulli_, BERNOULLI },     { LC_OP__bernoulli_each, BERNOULLI_EACH },
                  { LC_OP__rrelu_noise, SLOPES },      { LC_OP_random_, INTEGERS } };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].op == op) return kinds[i].kind;
    return -1;
}
static int wide_range(uint64_t range, bool any) { return !any && (range == 0 || range >= 1u << 28); } /* as PyTorch since 2.7 */
static int fill(lc_op_id op, UNUSED lc_dtype dtype, const void *args)
{
    const lc_random_args *a = args;
    lc_tensor            *out = a->out, *through = NULL, *each = NULL;
    int                   kind = kind_of(op), rc = 0;
    random_args p = { .a = a->a, .b = a->b, .low = a->low, .range = a->any ? any_range((lc_dtype)out->dtype) : a->range };
    if (!out->numel) return 0;
    if (cuda_use(out->device.index) < 0) return -1;
    p.pairs = kind == INTEGERS ? wide_range(p.range, a->any) : out->dtype == LC_f64 && kind != BERNOULLI_EACH;
    if (kind == INTEGERS && a->any) p.pairs = out->dtype == LC_f64 || out->dtype == LC_i64;
    if (a->any) p.low = 0;
    if (!out->is_contiguous) { /* drawn in the order of the elements */
        if (!(through = lc_tensor_new((lc_dtype)out->dtype, out->device, out->ndim, out->shape))) return -1;
        out = through;
    }
    if (a->parameters[0]) {
        lc_dtype work = a->parameters[0]->dtype == LC_f64 ? LC_f64 : LC_f32;
        if (!(each = lc_tensor_new(work, out->device, out->ndim, out->shape)) || cuda_copy(each, a->parameters[0]) < 0) rc = -1;
        else *(work == LC_f64 ? &p.twofold : &p.single) = each->data;
    }
    if (rc == 0) rc = drawn(kind, a->generator, out, p);
    if (rc == 0 && through) rc = cuda_copy(a->out, through);
    if (through) lc_release(through);
    if (each) lc_release(each);
    return rc;
}
CUDA_RUN(uniform_, fill, CUDA_FLOATS | CUDA_COMPLEX) /* complex numbers arrive as pairs of reals */
CUDA_RUN(normal_, fill, CUDA_FLOATS | CUDA_COMPLEX)
CUDA_RUN(exponential_, fill, CUDA_FLOATS)
CUDA_RUN(cauchy_, fill, CUDA_FLOATS)
CUDA_RUN(log_normal_, fill, CUDA_FLOATS)
CUDA_RUN(geometric_, fill, CUDA_FLOATS | CUDA_INTS)
CUDA_RUN(bernoulli_, fill, CUDA_FLOATS | CUDA_INTS | 1u << LC_b8)
CUDA_RUN(_bernoulli_each, fill, CUDA_F32_F64)
CUDA_RUN(_rrelu_noise, fill, CUDA_FLOATS)
CUDA_RUN(random_, fill, ~CUDA_COMPLEX)

typedef struct {
    void      *keys, *numbers;
    int64_t    n;
    cuda_drawn by;
} island_args;
/* out int64, contiguous: the order of random keys. The keys have as many bits as make equal ones unlikely; those are shuffled. */
static int randperm(UNUSED lc_op_id op, UNUSED lc_dtype dtype, const void *args)
{
    const lc_random_args *a = args;
    int64_t               n = a->out->numel;
    int                   device = a->out->device.index;
    double                few = ceil(log2((double)n - (6 * (double)n * (double)n + 1) / (12 * log(0.9))));
    random_args           p = { .pairs = 1, .bits = few < 32 ? ((uint64_t)1 << (int)few) - 1 : UINT64_MAX };
    if (!n) return 0;
    if (cuda_use(device) < 0) return -1;
    if (few <= 32) p.low = INT32_MIN, p.range = UINT32_MAX;
    else p.low = INT64_MIN, p.range = UINT64_MAX, p.bits = few < 64 ? ((uint64_t)1 << (int)few) - 1 : UINT64_MAX;
    lc_tensor   *keys = lc_tensor_new(LC_i64, a->out->device, 1, a->out->shape);
    lc_tensor   *ordered = keys ? lc_tensor_new(LC_i64, a->out->device, 1, a->out->shape) : NULL;
    int          rc = ordered ? drawn(KEYS, a->generator, keys, p) : -1;
    lc_sort_args by_key = { .values = ordered, .indices = a->out, .in = keys, .k = n, .ordered = true };
    if (rc == 0) rc = lc_cuda_runs[LC_OP_sort](LC_OP_sort, LC_i64, &by_key);
    if (rc == 0) {
        island_args  islands = { .keys = ordered->data, .numbers = a->out->data, .n = n };
        cuda_program q = { &random_body, "shuffle_islands", .type = { CUDA_TYPE(LC_i64) }, .variant = KEYS };
        rc = cuda_draw(a->generator, device, (uint64_t)(n + 3) / 4 * 4, &islands.by);
        if (rc == 0 && n > 1) rc = cuda_map(&q, n - 1, &islands);
    }
    if (keys) lc_release(keys);
    if (ordered) lc_release(ordered);
    return rc;
}
CUDA_RUN(randperm, randperm, 1u << LC_i64)

typedef struct {
    void         *out, *weights, *drawn;
    int64_t       rows, categories, samples;
    cuda_trouble *word;
} multinomial_args;
CUDA_BODY(multinomial);
static int multinomial(UNUSED lc_op_id op, lc_dtype dtype, const void *args)
{
    const lc_random_args *a = args;
    const lc_tensor      *weights = a->parameters[0];
    int                   device = a->out->device.index;
    if (!a->out->numel) return 0;
    if (cuda_use(device) < 0) return -1;
    lc_tensor       *u = lc_tensor_new(LC_f64, a->out->device, a->out->ndim, a->out->shape);
    multinomial_args p = { a->out->data,
                           weights->data,
                           u ? u->data : NULL,
                           weights->ndim > 1 ? weights->shape[0] : 1,
                           weights->shape[weights->ndim - 1],
                           a->out->shape[a->out->ndim - 1],
                           cuda_trouble_word(device) };
    cuda_program     q = { &multinomial_body, "accumulate", .type = { CUDA_TYPE(dtype) } };
    int              rc = u ? drawn(UNIFORM, a->generator, u, (random_args){ .pairs = 1, .b = 1 }) : -1;
    if (rc == 0) rc = cuda_map(&q, p.rows, &p);
    if (rc == 0) q.kernel = "choose", rc = cuda_map(&q, p.rows * p.samples, &p);
    if (u) lc_release(u);
    return rc;
}
CUDA_RUN(multinomial, multinomial, CUDA_F32_F64)

/* ---- dropout: parameters are the input and the mask of kept elements; a is the probability to drop ---- */
typedef struct {
    void      *in, *out, *mask;
    int64_t    n, threads;
    cuda_drawn by;
    double     keep;
} dropout_args; /* as in kernels/science/dropout.cuh */
CUDA_BODY(dropout);
/* As many neighbours as PyTorch's kernel takes at a time: the number decides which draw an element meets. */
enum { DROPOUT_BYTES = 16 };
static int neighbours(const lc_tensor *x, int64_t n)
{
    int most = DROPOUT_BYTES / (int)lc_size_of(x->dtype);
    while (most > 1 && (n % most || (uintptr_t)x->data % ((size_t)most * lc_size_of(x->dtype)))) most /= 2;
    return most;
}
static int fused_dropout(UNUSED lc_op_id op, lc_dtype dtype, const void *args)
{
    const lc_random_args *a = args;
    const lc_tensor      *x = a->parameters[0], *mask = a->parameters[1];
    int                   device = x->device.index, vector = a->apart ? 1 : neighbours(x, x->numel);
    dropout_args          p = { x->data, a->out->data, mask->data, x->numel, .keep = 1 - a->a };
    cuda_program          q = { &dropout_body, "drop", .type = { CUDA_TYPE(dtype) }, .variant = (int16_t)vector };
    if (!p.n) return 0;
    if (cuda_use(device) < 0) return -1;
    p.threads = threads_for(device, p.n);
    if (cuda_draw(a->generator, device, (uint64_t)((p.n - 1) / (p.threads * 4) + 1) * 4, &p.by) < 0) return -1;
    return cuda_blocks(&q, p.threads / 256, 256, &p);
}
CUDA_RUN(_fused_dropout, fused_dropout, CUDA_FLOATS)
