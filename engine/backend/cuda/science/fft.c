/* Fourier transforms: one dimension after the other, as lines of complex numbers that are gathered, transformed and scattered. cuFFT transforms
 * them where it is installed, else our own passes (kernels/science/fft.cuh), of any length. A real transform is a complex one whose imaginary parts are
 * zero, or are not written. Plans of cuFFT are kept: the last 16 per process. */
#include "science.h"
#include "../../args_fft.h"
#include <string.h>

#define CUFFT_CALLS(X)                                                                                                         \
    X(cufftCreate, (int *plan))                                                                                                \
    X(cufftSetAutoAllocation, (int plan, int on))                                                                              \
    X(cufftMakePlanMany, (int plan, int rank, int *n, int *in_shape, int in_step, int in_line, int *out_shape, int out_step,   \
                          int out_line, int type, int batch, size_t *workspace))                                               \
    X(cufftSetWorkArea, (int plan, void *workspace))                                                                           \
    X(cufftExecC2C, (int plan, void *in, void *out, int direction))                                                            \
    X(cufftExecZ2Z, (int plan, void *in, void *out, int direction))                                                            \
    X(cufftSetStream, (int plan, cu_stream stream))                                                                            \
    X(cufftDestroy, (int plan))
static struct {
#define X(name, args) int(*name) args;
    CUFFT_CALLS(X)
#undef X
} cufft;
enum { DIMS = 12, PLANS = 16, C2C = 0x29, Z2Z = 0x69, FORWARD = -1, BACKWARD = 1, ALLOC_FAILED = 2, MOST_BYTES = 1 << 28 };

/* ---- plans: tables of cuFFT's own. Their workspace comes with each call, so streams and captured graphs share none. ---- */
typedef struct {
    int     device, type, plan;
    int64_t n, batch;
    size_t  workspace;
    bool    used, captured; /* captured: by a graph, whose replays read the tables: it is forgotten, not destroyed */
} fft_plan;
static fft_plan        plans[PLANS]; /* the last one used comes first */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int             available; /* 1: loaded, -1: not there */

static bool has_cufft(void)
{
    if (!available) {
        static const char *const names[] = { "libcufft.so.12", "libcufft.so.11", "libcufft.so", NULL };
#define X(name, args) #name,
        static const char *const symbols[] = { CUFFT_CALLS(X) };
#undef X
        available = cuda_load(names, "cuFFT", "cufft", symbols, (void **)&cufft, sizeof symbols / sizeof *symbols) < 0 ? -1 : 1;
        if (available < 0) lc_verbose_log("fft on cuda: own kernels: %s", lc_error());
    }
    return available > 0;
}
static int make_plan(fft_plan *p) /* as by_cufft */
{
    int length = (int)p->n, rc = cufft.cufftCreate(&p->plan);
    if (rc == 0) {
        rc = cufft.cufftSetAutoAllocation(p->plan, 0);
        if (rc == 0)
            rc = cufft.cufftMakePlanMany(p->plan, 1, &length, NULL, 1, length, NULL, 1, length, p->type, (int)p->batch,
                                         &p->workspace);
        if (rc) cufft.cufftDestroy(p->plan);
    }
    if (rc == ALLOC_FAILED) return lc_fail_int(LC_OutOfMemory, "cuFFT: no memory for a plan");
    if (rc) lc_verbose_log("fft on cuda: own kernels: a plan of cuFFT failed with status %d", rc);
    return rc != 0;
}
static int plan_for(const fft_plan *asked) /* comes first. 0; 1: none; -1 after lc_fail */
{
    fft_plan found = *asked;
    int      at = 0, rc = 0;
    while (at < PLANS && !(plans[at].used && plans[at].device == found.device && plans[at].type == found.type &&
                           plans[at].n == found.n && plans[at].batch == found.batch))
        at++;
    if (at < PLANS) found = plans[at];
    else {
        if (cuda_capturing()) return 1;    /* to make or to free one is no work of a stream */
        int before = cuda_relax_capture(); /* of another thread */
        at = PLANS - 1;
        if (plans[at].used && !plans[at].captured) cufft.cufftDestroy(plans[at].plan);
        plans[at].used = false, rc = make_plan(&found);
        cuda_restore_capture(before);
        if (rc) return rc;
    }
    memmove(plans + 1, plans, (size_t)at * sizeof *plans);
    found.used = true, found.captured |= cuda_capturing(), plans[0] = found;
    return 0;
}
/* Transforms `batch` lines of n in place of each other. 0; -1 after lc_fail; 1: cuFFT does not do it. */
static int by_cufft(int device, lc_dtype dtype, int64_t n, int64_t batch, void *from, void *to, bool backward)
{
    int          rc = 1;
    cuda_scratch scratch = { 0 };
    if (n >= INT32_MAX || batch >= INT32_MAX) return 1;
    cuda_lock(&lock);
    if (has_cufft())
        rc = plan_for(&(fft_plan){ .device = device, .type = dtype == LC_c64 ? C2C : Z2Z, .n = n, .batch = batch });
    if (rc == 0) {
        fft_plan *p = &plans[0];
        void     *space = p->workspace ? cuda_scratch_new(&scratch, device, p->workspace) : NULL;
        rc = p->workspace && !space ? -1 : 0;
        int status = rc ? 0 : cufft.cufftSetStream(p->plan, cuda_stream());
        if (rc == 0 && status == 0 && space) status = cufft.cufftSetWorkArea(p->plan, space);
        if (rc == 0 && status == 0)
            status =
                (p->type == C2C ? cufft.cufftExecC2C : cufft.cufftExecZ2Z)(p->plan, from, to, backward ? BACKWARD : FORWARD);
        if (status) rc = lc_fail_int(LC_LucidError, "cuFFT: a transform failed with status %d", status);
    }
    pthread_mutex_unlock(&lock);
    return cuda_scratch_free(&scratch), rc;
}

/* ---- lines ---- */
typedef struct {
    void   *to, *from, *roots, *in, *out;
    int64_t first, lines, n, L, radix, half;
    int     ndim, real, backward;
    int64_t shape[DIMS], step[DIMS], along, keep;
    double  scale;
} fft_args; /* as in kernels/science/fft.cuh */
CUDA_BODY(fft);

static int64_t next_radix(int64_t rest)
{
    if (rest % 4 == 0) return 4;
    for (int64_t r = 2; r * r <= rest; r++)
        if (rest % r == 0) return r;
    return rest;
}
/* Lines in p->from; the result may lie in either buffer: it is p->from again. */
static int transform_lines(fft_args *p, cuda_program *q, int device, lc_dtype dtype)
{
    int rc = p->n == 1 ? 0 : by_cufft(device, dtype, p->n, p->lines, p->from, p->to, p->backward);
    if (rc < 0) return rc;
    if (rc == 0 && p->n > 1) {
        void *made = p->to;
        p->to = p->from, p->from = made;
        return 0;
    }
    for (p->L = 1; rc >= 0 && p->L < p->n; p->L *= p->radix) {
        p->radix = next_radix(p->n / p->L);
        q->kernel = "pass", rc = cuda_map(q, p->lines * p->n, p);
        void *made = p->to;
        p->to = p->from, p->from = made;
    }
    return rc < 0 ? -1 : 0;
}
typedef struct {
    lc_tensor *tensor;
    bool       real;
} side;
/* Where the lines along dim begin: the other dimensions, those of size one left out. */
static int walk_of(fft_args *p, const side *s, int dim, const int64_t *sizes)
{
    const lc_tensor *t = s->tensor;
    p->ndim = 0, p->real = s->real, p->along = t->stride[dim];
    for (int d = 0; d < t->ndim; d++) {
        if (d == dim || sizes[d] == 1) continue;
        if (p->ndim == DIMS)
            return lc_fail_int(LC_NotImplementedError, "cuda: a Fourier transform in more than %d dimensions", DIMS);
        p->shape[p->ndim] = sizes[d], p->step[p->ndim++] = t->stride[d];
    }
    return 0;
}
/* Along dim: from in to out, which agree in all other dimensions (sizes). n: elements of a line; read and keep: those that are there. */
static int along(lc_dtype dtype, side in, side out, int dim, const int64_t *sizes, int64_t n, int64_t read, int64_t keep,
                 bool backward, double scale)
{
    int          device = out.tensor->device.index, rc = 0;
    int64_t      size = lc_size_of(dtype), lines = 1, group;
    fft_args     p = { .n = n, .half = read < n ? read : 0, .keep = keep, .backward = backward, .scale = scale };
    cuda_program q = { &fft_body, .type = { CUDA_TYPE(dtype) }, .variant = dtype == LC_c128 };
    cuda_scratch scratch = { 0 };
    for (int d = 0; d < out.tensor->ndim; d++) lines *= d == dim ? 1 : sizes[d];
    if (!lines || !n) return 0;
    group = MOST_BYTES / (n * size) < 1 ? 1 : MOST_BYTES / (n * size);
    if (group > lines) group = lines;
    char *memory = cuda_scratch_new(&scratch, device, (size_t)((2 * group + 1) * n * size));
    if (!memory) return -1;
    p.roots = memory + 2 * group * n * size, p.to = p.roots;
    if (n > 1) q.kernel = "make_roots", rc = cuda_map(&q, n, &p);
    for (p.first = 0; p.first < lines && rc == 0; p.first += group) {
        p.lines = lines - p.first < group ? lines - p.first : group;
        p.in = in.tensor->data, p.to = memory;
        if ((rc = walk_of(&p, &in, dim, sizes)) < 0) break;
        q.kernel = "gather", rc = cuda_map(&q, p.lines * n, &p);
        p.from = memory, p.to = memory + group * n * size;
        if (rc == 0) rc = transform_lines(&p, &q, device, dtype);
        p.out = out.tensor->data;
        if (rc == 0) rc = walk_of(&p, &out, dim, sizes);
        if (rc == 0) q.kernel = "scatter", rc = cuda_map(&q, p.lines * keep, &p);
    }
    return cuda_scratch_free(&scratch), rc;
}

static int fft(UNUSED lc_op_id op, lc_dtype dtype, const void *args)
{
    const lc_fft_args *a = args;
    lc_dtype           number = dtype == LC_f64 || dtype == LC_c128 ? LC_c128 : LC_c64;
    int                ndim = a->in->ndim, last = a->dims[a->n_dims - 1], front = a->n_dims - 1, rc = 0;
    lc_tensor         *made = NULL;
    side               in = { a->in, a->kind == LC_FFT_R2C }, out = { a->out, false };
    int64_t            sizes[LC_MAX_DIMS];
    if (cuda_use(a->out->device.index) < 0) return -1;
    for (int d = 0; d < ndim; d++) sizes[d] = a->in->shape[d];
    if (a->kind == LC_FFT_C2R && front) { /* the other dimensions are complex: in memory of their own */
        if (!(made = lc_tensor_new(number, a->in->device, ndim, sizes))) return -1;
        out.tensor = made;
    }
    if (a->kind == LC_FFT_R2C) {
        int64_t n = sizes[last], keep = a->whole ? n : n / 2 + 1;
        rc = along(number, in, out, last, sizes, n, n, keep, a->backward, front ? 1. : a->scale);
        sizes[last] = keep, in = out;
    }
    for (int k = (a->kind == LC_FFT_C2C ? a->n_dims : front) - 1; k >= 0 && rc == 0; k--, in = out) {
        int64_t n = sizes[a->dims[k]];
        rc = along(number, in, out, a->dims[k], sizes, n, n, n, a->backward, k == 0 && a->kind != LC_FFT_C2R ? a->scale : 1.);
    }
    if (a->kind == LC_FFT_C2R && rc == 0) {
        int64_t n = a->out->shape[last];
        rc = along(number, in, (side){ a->out, true }, last, sizes, n, n / 2 + 1, n, a->backward, a->scale);
    }
    if (made) lc_release(made);
    return rc;
}
CUDA_RUN(_fft_c2c, fft, 1u << LC_c64 | 1u << LC_c128)
CUDA_RUN(_fft_r2c, fft, CUDA_F32_F64)
CUDA_RUN(_fft_c2r, fft, 1u << LC_c64 | 1u << LC_c128)
