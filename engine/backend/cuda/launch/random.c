/* Random fills: the device's Philox generator, in the layout of PyTorch's kernels (kernels/random.cuh). */
#include "../science/science.h"

enum { UNIFORM, NORMAL, EXPONENTIAL, CAUCHY, LOG_NORMAL, GEOMETRIC, BERNOULLI, BERNOULLI_EACH, INTEGERS, SLOPES, KEYS };
typedef struct {
    void         *out, *single, *twofold;
    int64_t       n, threads;
    cuda_drawn    by;
    double        a, b;
    int64_t       low;
    uint64_t      range;
    int           pairs;
    cuda_trouble *word;
} random_args; /* as in kernels/random.cuh */
CUDA_BODY(random);

static int reserve(lc_generator *g, int device, random_args *p) /* the next numbers of the device's stream */
{
    static int most[CUDA_DEVICES]; /* threads of a launch; the same whoever writes it */
    if (!most[device]) most[device] = 256 * cuda_attribute(device, 16) * (cuda_attribute(device, 39) / 256);
    int64_t wanted = (p->n + 255) / 256 * 256, each = p->pairs ? 2 : 4;
    p->threads = wanted < most[device] ? wanted : most[device];
    return cuda_draw(g, device, (uint64_t)((p->n - 1) / (p->threads * each) + 1) * 4, &p->by);
}
static int drawn(int kind, lc_generator *g, lc_tensor *out, random_args p)
{
    int          device = out->device.index;
    cuda_program q = { &random_body, "fill", .type = { CUDA_TYPE(out->dtype) }, .variant = (int16_t)kind };
    p.out = out->data, p.n = out->numel, p.word = cuda_trouble_word(device);
    if (reserve(g, device, &p) < 0) return -1;
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
static int fill(lc_op_id op, UNUSED lc_dtype dtype, const void *args)
{
    const lc_random_args *a = args;
    lc_tensor            *out = a->out, *through = NULL, *each = NULL;
    int                   kind = kind_of(op), rc = 0;
    random_args p = { .a = a->a, .b = a->b, .low = a->low, .range = a->any ? any_range((lc_dtype)out->dtype) : a->range };
    if (!out->numel) return 0;
    if (cuda_use(out->device.index) < 0) return -1;
    p.pairs = out->dtype == LC_f64 || (kind == INTEGERS && (p.range == 0 || p.range > UINT32_MAX));
    if (kind == INTEGERS && out->dtype == LC_f64 && !a->any) p.pairs = p.range == 0 || p.range > UINT32_MAX;
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

static int randperm(UNUSED lc_op_id op, UNUSED lc_dtype dtype,
                    const void *args) /* out int64, contiguous: the order of random keys */
{
    const lc_random_args *a = args;
    if (!a->out->numel) return 0;
    if (cuda_use(a->out->device.index) < 0) return -1;
    lc_tensor *keys = lc_tensor_new(LC_i64, a->out->device, 1, a->out->shape);
    int        rc = keys ? drawn(KEYS, a->generator, keys, (random_args){ .pairs = 1 }) : -1;
    if (rc == 0)
        rc = lc_cuda_runs[LC_OP_sort](LC_OP_sort, LC_i64,
                                      &(lc_sort_args){ .indices = a->out, .in = keys, .k = keys->numel, .ordered = true });
    if (keys) lc_release(keys);
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
