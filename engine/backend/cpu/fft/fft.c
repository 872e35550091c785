/* Fourier transforms of tensors: over one dimension after the other, lines of it in groups, groups shared between threads.
 *
 * A group is a vector's worth of lines side by side, or a single line where that is at least as good: lines that lie in memory one after the
 * other and whose length is a multiple of 256 fill vectors by themselves and need a sixteenth of the workspace. Lines above LONGEST go one at a time
 * through memory (fft_long.c). The last dimension of a real transform is a complex one of half the length if it is even; an odd one takes its imaginary
 * parts as zero. (Two real lines as the parts of one complex line would save that half too, but a NaN in one would reach the other.)
 *
 * After the first dimension a transform works in place on its result: a group is loaded whole before it is stored. */
#include "../cpu.h"
#include "fft.h"

enum { LONGEST = 1 << 15, GROUP_BYTES = 1 << 20 };

typedef struct { /* one dimension of a tensor's lines; steps in numbers */
    lc_fft_kind        kind;
    const fft_kernels *run;
    const fft_plan    *plan, *halves;
    lc_dtype           real;
    int64_t            size, n, half; /* half: elements of the complex side of a real transform, n / 2 + 1 */
    int                lanes;
    bool               backward;
    double             scale;
    fft_lines          in, out; /* offset: unset */
    int                n_outer;
    int64_t            outer[LC_MAX_DIMS], in_step[LC_MAX_DIMS], out_step[LC_MAX_DIMS], lines;
    size_t             bytes;
    atomic_int         failed;
} fft_job;

static bool is_even(const fft_job *job) { return job->kind != LC_FFT_C2C && job->n % 2 == 0; }
static void swap_parts(fft_planes *p)
{
    void *re = p->re;
    p->re = p->im, p->im = re;
}
/* The lines of a job one after the other. */
typedef struct {
    int64_t at[LC_MAX_DIMS], in, out;
} line_walk;
static void walk_from(const fft_job *job, int64_t line, line_walk *w)
{
    w->in = w->out = 0;
    for (int d = job->n_outer - 1; d >= 0; d--) {
        w->at[d] = line % job->outer[d], line /= job->outer[d];
        w->in += w->at[d] * job->in_step[d], w->out += w->at[d] * job->out_step[d];
    }
}
static void walk_on(const fft_job *job, line_walk *w)
{
    for (int d = job->n_outer - 1; d >= 0; d--) {
        w->in += job->in_step[d], w->out += job->out_step[d];
        if (++w->at[d] < job->outer[d]) return;
        w->in -= job->outer[d] * job->in_step[d], w->out -= job->outer[d] * job->out_step[d], w->at[d] = 0;
    }
}
/* Lines `step` apart along a dimension of complex or real elements; pairs: two real ones are the parts of one. */
static fft_lines lines_of(char *base, int64_t step, bool complex, bool pairs)
{
    return (fft_lines){
        .base = base, .step = complex || pairs ? 2 * step : step, .apart = complex ? 1 : step, .real = !complex && !pairs
    };
}

/* What is above the middle of a Hermitian spectrum of odd length. */
#define MIRROR(T)                                                                                                              \
    {                                                                                                                          \
        T *re = p.re, *im = p.im;                                                                                              \
        for (int l = 0; l < lanes; l++) im[l] = 0;                                                                             \
        for (int64_t k = 1; k <= n / 2; k++)                                                                                   \
            for (int l = 0; l < lanes; l++)                                                                                    \
                re[(n - k) * lanes + l] = re[k * lanes + l], im[(n - k) * lanes + l] = -im[k * lanes + l];                     \
    }
static void mirror(lc_dtype real, fft_planes p, int lanes, int64_t n)
{
    if (real == LC_f64) MIRROR(double)
    else MIRROR(float)
}
static int64_t loaded(const fft_job *job) /* elements that a line has when it is read */
{
    return job->kind == LC_FFT_C2R ? job->half : is_even(job) ? job->n / 2 : job->n;
}
static int64_t stored(const fft_job *job) { return job->kind == LC_FFT_R2C ? job->half : is_even(job) ? job->n / 2 : job->n; }
/* What comes before a complex transform and after it. p[0]: the line or lines, before and after. */
static void prepare(const fft_job *job, int lanes, fft_planes *p)
{
    if (job->kind == LC_FFT_C2R && is_even(job)) {
        fft_planes made = p[1];
        job->run->join(p[1], p[0], lanes, job->n / 2, job->halves->halves);
        p[1] = p[0], p[0] = made;
    } else if (job->kind == LC_FFT_C2R) mirror(job->real, p[0], lanes, job->n);
}
static void conclude(const fft_job *job, int lanes, fft_planes *p)
{
    if (job->kind == LC_FFT_R2C && is_even(job)) {
        fft_planes made = p[1];
        job->run->split(p[1], p[0], lanes, job->n / 2, job->halves->halves);
        p[1] = p[0], p[0] = made;
    }
}
static void group_chunk(void *ctx, int64_t begin, int64_t end)
{
    fft_job  *job = ctx;
    char     *scratch = cpu_scratch(job->bytes);
    const int lanes = job->lanes;
    int64_t   in[FFT_LANES], out[FFT_LANES];
    if (!scratch) {
        job->failed = 1;
        return;
    }
    line_walk walk;
    walk_from(job, begin * lanes, &walk);
    for (int64_t group = begin; group < end; group++) {
        const int64_t first = group * lanes;
        const int     count = (int)(job->lines - first < lanes ? job->lines - first : lanes);
        fft_planes    p[3];
        fft_lines     from = job->in, to = job->out;
        fft_planes_at(scratch, job->plan, lanes, p);
        for (int l = 0; l < count; l++, walk_on(job, &walk)) in[l] = walk.in, out[l] = walk.out;
        from.offset = in, to.offset = out;
        job->run->load(p[0], lanes, &from, loaded(job), count);
        prepare(job, lanes, p);
        if (job->backward) swap_parts(&p[0]), swap_parts(&p[1]);
        job->run->run(job->plan, lanes, &p[0], &p[1], &p[2]);
        if (job->backward) swap_parts(&p[0]), swap_parts(&p[1]);
        conclude(job, lanes, p);
        job->run->store(&to, lanes, p[0], stored(job), count, job->scale);
    }
    cpu_scratch_free(scratch, job->bytes);
}

/* A long line: planes of it before and after where it is no contiguous complex line. */
static int long_line(fft_job *job, int64_t line)
{
    const fft_plan *plan = job->plan;
    const int64_t   n = plan->n, plane = (job->n + 1 + 2 * FFT_PAD) / 16 * 16 + 16, z = 2 * n * job->size;
    const bool      direct_in = job->kind != LC_FFT_C2R && job->in.step == 2 && job->in.apart == 1 && !job->in.real;
    const bool      direct_out = job->kind != LC_FFT_R2C && !job->out.real;
    const bool      planes = !direct_in || !direct_out;
    const size_t    bytes = (size_t)((fft_long_work(plan) + 4 * n + (planes ? 4 * plane : 0)) * job->size);
    int64_t         in, out, zero = 0;
    line_walk       walk;
    char *work = cpu_scratch(bytes), *before = work + fft_long_work(plan) * job->size, *after = before + z, *at = after + z;
    if (!work) return -1;
    fft_planes p[2] = { { at, at + plane * job->size }, { at + 2 * plane * job->size, at + 3 * plane * job->size } };
    fft_lines  from = job->in, to = job->out, mine = { .base = before, .offset = &zero, .step = 2, .apart = 1 };
    walk_from(job, line, &walk), in = walk.in, out = walk.out;
    from.offset = &in, to.offset = &out;
    if (!direct_in) {
        job->run->load(p[0], 1, &from, loaded(job), 1);
        prepare(job, 1, p);
        job->run->store(&mine, 1, p[0], n, 1, 1.0);
    }
    const char *source = direct_in ? from.base + in * job->size : before;
    int         rc = direct_out
                         ? fft_long_run(plan, to.base + out * job->size, to.step, to.apart, source, work, job->backward, job->scale)
                         : fft_long_run(plan, after, 2, 1, source, work, job->backward, 1.0);
    if (!direct_out && rc == 0) {
        mine.base = after;
        job->run->load(p[0], 1, &mine, n, 1);
        conclude(job, 1, p);
        job->run->store(&to, 1, p[0], stored(job), 1, job->scale);
    }
    cpu_scratch_free(work, bytes);
    return rc;
}

/* Lines of a dimension: how many lanes, which plan. */
static fft_role role_of(const fft_job *job, int64_t n)
{
    const bool    fills = n % 256 == 0;
    const int64_t group = n * job->run->lanes * job->size * 4;
    const bool    packed = job->kind == LC_FFT_R2C ? job->in.step <= 2 : job->in.step == 2;
    if (n > LONGEST) return FFT_LONG;
    if (fills && packed) return FFT_SINGLE;
    const bool few = group > GROUP_BYTES || job->lines * 4 <= job->run->lanes;
    return few && fft_single_fits(n, job->run->lanes) ? FFT_SINGLE : FFT_GROUP;
}
static int run_lines(fft_job *job)
{
    const int64_t n = is_even(job) ? job->n / 2 : job->n;
    if (!job->lines || !job->n) return 0;
    job->plan = fft_plan_get(role_of(job, n), n, job->real);
    if (job->plan && is_even(job)) job->halves = fft_plan_get(FFT_HALVES, n, job->real);
    int rc = job->plan && (job->halves || !is_even(job)) ? 0 : -1;
    if (rc == 0 && job->plan->role == FFT_LONG) {
        for (int64_t line = 0; line < job->lines && rc == 0; line++) rc = long_line(job, line);
    } else if (rc == 0) {
        job->lanes = job->plan->role == FFT_SINGLE ? 1 : job->run->lanes;
        job->bytes = (size_t)(fft_workspace(job->plan, job->lanes) * job->size);
        const int64_t groups = (job->lines + job->lanes - 1) / job->lanes, grain = CPU_GRAIN / 2 / (n * job->lanes) + 1;
        cpu_parallel(groups, grain, job->lines * n, group_chunk, job);
        if (job->failed) rc = lc_fail_int(LC_OutOfMemory, "fft: no memory for lines of %lld", (long long)n);
    }
    fft_plan_put(job->plan), fft_plan_put(job->halves);
    return rc;
}

/* Along dim of two tensors that agree in all others; outer dimensions in the order of the input's strides, so that neighbours go together.
 * sizes: of all dimensions, but dim. */
typedef struct {
    char          *data;
    const int64_t *stride;
    bool           complex;
} side;
static int along(const lc_fft_args *a, lc_dtype real, lc_fft_kind kind, int dim, const int64_t *sizes, int ndim, side in,
                 side out, int64_t n, double scale)
{
    fft_job       job = { .kind = kind,
                          .run = fft_kernels_of(real),
                          .real = real,
                          .size = lc_size_of(real),
                          .n = n,
                          .half = n / 2 + 1,
                          .backward = a->backward,
                          .scale = scale,
                          .lines = 1 };
    const int64_t x = in.complex ? 2 : 1, y = out.complex ? 2 : 1;
    job.in = lines_of(in.data, in.stride[dim], in.complex, kind == LC_FFT_R2C && n % 2 == 0);
    job.out = lines_of(out.data, out.stride[dim], out.complex, kind == LC_FFT_C2R && n % 2 == 0);
    for (int d = 0; d < ndim; d++) {
        if (d == dim) continue;
        int at = job.n_outer++;
        for (; at > 0 && job.in_step[at - 1] < in.stride[d] * x; at--)
            job.outer[at] = job.outer[at - 1], job.in_step[at] = job.in_step[at - 1], job.out_step[at] = job.out_step[at - 1];
        job.outer[at] = sizes[d], job.in_step[at] = in.stride[d] * x, job.out_step[at] = out.stride[d] * y;
        job.lines *= sizes[d];
    }
    return run_lines(&job);
}

/* The frequencies above the middle of the last of dims, from those below: conjugates at the opposite place. */
typedef struct {
    const lc_fft_args *args;
    int                last, n_outer;
    int64_t            outer[LC_MAX_DIMS], step[LC_MAX_DIMS];
    bool               opposite[LC_MAX_DIMS], wide;
} fill_job;
#define FILL(T)                                                                                                                \
    {                                                                                                                          \
        T       *y = (T *)out->data + 2 * to;                                                                                  \
        const T *x = (const T *)out->data + 2 * from;                                                                          \
        for (int64_t k = n / 2 + 1; k < n; k++)                                                                                \
            y[2 * k * step] = x[2 * (n - k) * step], y[2 * k * step + 1] = -x[2 * (n - k) * step + 1];                         \
    }
static void fill_chunk(void *ctx, int64_t begin, int64_t end)
{
    const fill_job  *job = ctx;
    const lc_tensor *out = job->args->out;
    const int64_t    n = out->shape[job->last], step = out->stride[job->last];
    for (int64_t line = begin; line < end; line++) {
        int64_t rest = line, to = 0, from = 0;
        for (int d = job->n_outer - 1; d >= 0; d--) {
            const int64_t size = job->outer[d], at = rest % size;
            rest /= size, to += at * job->step[d], from += (job->opposite[d] ? (size - at) % size : at) * job->step[d];
        }
        if (job->wide) FILL(double)
        else FILL(float)
    }
}
static void fill_whole(const lc_fft_args *a, lc_dtype real)
{
    fill_job job = { .args = a, .last = a->dims[a->n_dims - 1], .wide = real == LC_f64 };
    int64_t  lines = 1, n = a->out->shape[job.last];
    for (int d = 0; d < a->out->ndim; d++) {
        if (d == job.last) continue;
        job.outer[job.n_outer] = a->out->shape[d], job.step[job.n_outer] = a->out->stride[d], lines *= a->out->shape[d];
        for (int k = 0; k < a->n_dims; k++) job.opposite[job.n_outer] |= a->dims[k] == d;
        job.n_outer++;
    }
    cpu_parallel(lines, CPU_GRAIN / (n + 1) + 1, lines * n, fill_chunk, &job);
}

static int cpu_fft(lc_dtype dtype, const void *args)
{
    const lc_fft_args *a = args;
    const lc_dtype     real = lc_real_of(dtype);
    const int          ndim = a->in->ndim, last = a->dims[a->n_dims - 1], front = a->n_dims - 1;
    lc_tensor         *made = NULL;
    side               in = { a->in->data, a->in->stride, a->kind != LC_FFT_R2C }, out = { a->out->data, a->out->stride, true };
    int64_t            sizes[LC_MAX_DIMS];
    int                rc = 0;
    for (int d = 0; d < ndim; d++) sizes[d] = a->in->shape[d];
    if (a->kind == LC_FFT_C2R && front) { /* the other dimensions are complex: in memory of their own */
        if (!(made = lc_tensor_new((lc_dtype)a->in->dtype, a->in->device, ndim, sizes))) return -1;
        out = (side){ made->data, made->stride, true };
    }
    if (a->kind == LC_FFT_R2C) {
        rc = along(a, real, LC_FFT_R2C, last, sizes, ndim, in, out, sizes[last], front ? 1.0 : a->scale);
        sizes[last] = sizes[last] / 2 + 1, in = out;
    }
    const int complex = a->kind == LC_FFT_C2C ? a->n_dims : front;
    for (int k = complex - 1; k >= 0 && rc == 0; k--, in = out) {
        const int d = a->dims[k];
        rc = along(a, real, LC_FFT_C2C, d, sizes, ndim, in, out, sizes[d], k == 0 && a->kind != LC_FFT_C2R ? a->scale : 1.0);
    }
    if (a->kind == LC_FFT_C2R && rc == 0) {
        out = (side){ a->out->data, a->out->stride, false };
        rc = along(a, real, LC_FFT_C2R, last, sizes, ndim, in, out, a->out->shape[last], a->scale);
    }
    if (a->whole && rc == 0) fill_whole(a, real);
    lc_release(made);
    return rc;
}
#define COMPLEX (1u << LC_c64 | 1u << LC_c128)
LC_CPU_RUN(_fft_c2c, cpu_fft, COMPLEX)
LC_CPU_RUN(_fft_r2c, cpu_fft, 1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(_fft_c2r, cpu_fft, COMPLEX)
