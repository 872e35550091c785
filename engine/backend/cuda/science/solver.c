/* Factorisations by cuSOLVER: one matrix after the other, where they are large enough to fill the device. It is loaded at the first call that it
 * takes; a device without it, or an old one without general eigenvalues, uses our own kernels. */
#include "linalg.h"
#include <stdlib.h>

typedef int   status;
typedef void *handle;
typedef struct {
    size_t device, host; /* bytes of workspace */
    void  *there, *here;
} space;
#define TYPED     int type, void *a, int64_t lda
#define WORKSPACE void *there, size_t device, void *here, size_t host, void *info
#define SIZES     size_t *device, size_t *host
#define SOLVER_CALLS(X)                                                                                                        \
    X(cusolverDnCreate, (handle * h))                                                                                          \
    X(cusolverDnSetStream, (handle h, cu_stream stream))                                                                       \
    X(cusolverDnCreateParams, (handle * params))                                                                               \
    X(cusolverDnXgetrf_bufferSize, (handle h, handle params, int64_t m, int64_t n, TYPED, int compute, SIZES))                 \
    X(cusolverDnXgetrf, (handle h, handle params, int64_t m, int64_t n, TYPED, int64_t * piv, int compute, WORKSPACE))         \
    X(cusolverDnXpotrf_bufferSize, (handle h, handle params, int uplo, int64_t n, TYPED, int compute, SIZES))                  \
    X(cusolverDnXpotrf, (handle h, handle params, int uplo, int64_t n, TYPED, int compute, WORKSPACE))                         \
    X(cusolverDnXgeqrf_bufferSize,                                                                                             \
      (handle h, handle params, int64_t m, int64_t n, TYPED, int type_tau, void *tau, int compute, SIZES))                     \
    X(cusolverDnXgeqrf,                                                                                                        \
      (handle h, handle params, int64_t m, int64_t n, TYPED, int type_tau, void *tau, int compute, WORKSPACE))                 \
    X(cusolverDnXsyevd_bufferSize,                                                                                             \
      (handle h, handle params, int vectors, int uplo, int64_t n, TYPED, int type_w, void *w, int compute, SIZES))             \
    X(cusolverDnXsyevd,                                                                                                        \
      (handle h, handle params, int vectors, int uplo, int64_t n, TYPED, int type_w, void *w, int compute, WORKSPACE))         \
    X(cusolverDnXgesvd_bufferSize,                                                                                             \
      (handle h, handle params, signed char left, signed char right, int64_t m, int64_t n, TYPED, int type_s, void *s,         \
       int type_u, void *u, int64_t ldu, int type_v, void *v, int64_t ldv, int compute, SIZES))                                \
    X(cusolverDnXgesvd,                                                                                                        \
      (handle h, handle params, signed char left, signed char right, int64_t m, int64_t n, TYPED, int type_s, void *s,         \
       int type_u, void *u, int64_t ldu, int type_v, void *v, int64_t ldv, int compute, WORKSPACE))
#define GEEV_CALLS(X)                                                                                                          \
    X(cusolverDnXgeev_bufferSize, (handle h, handle params, int left, int right, int64_t n, TYPED, int type_w, void *w,        \
                                   int type_l, void *l, int64_t ldl, int type_r, void *r, int64_t ldr, int compute, SIZES))    \
    X(cusolverDnXgeev, (handle h, handle params, int left, int right, int64_t n, TYPED, int type_w, void *w, int type_l,       \
                        void *l, int64_t ldl, int type_r, void *r, int64_t ldr, int compute, WORKSPACE))
#define SLOT(name, args) status(*name) args;
static struct {
    SOLVER_CALLS(SLOT)
} cusolver;
static struct {
    GEEV_CALLS(SLOT)
} geev;
#define SYMBOL(name, args) #name,
static const char *const names[] = { "libcusolver.so.12", "libcusolver.so.11", "libcusolver.so", NULL };
static pthread_mutex_t   lock = PTHREAD_MUTEX_INITIALIZER;
static int               available, has_geev; /* 1: there, -1: not, 0: nobody asked */
static handle            params;

static status create(void **h) { return cusolver.cusolverDnCreate(h); }
static status follow(void *h, cu_stream stream) { return cusolver.cusolverDnSetStream(h, stream); }
static handle open_here(void) /* for this thread, on its device and stream; NULL: there is none */
{
    static const char *const      symbols[] = { SOLVER_CALLS(SYMBOL) };
    static const cuda_handle_kind kind = { create, follow };
    cuda_lock(&lock);
    if (!available) {
        available = cuda_load(names, "cuSOLVER", "cusolver", symbols, (void **)&cusolver, sizeof symbols / sizeof *symbols) < 0
                        ? -1
                        : 1;
        if (available < 0) lc_verbose_log("linalg on cuda: own kernels: %s", lc_error());
        if (available > 0 && cusolver.cusolverDnCreateParams(&params) != 0) available = -1;
    }
    pthread_mutex_unlock(&lock);
    return available > 0 ? cuda_handle(CUDA_HANDLE_SOLVER, &kind) : NULL;
}
bool solver_takes(const linalg_call *c, int64_t n)
{
    enum {
        FEW = 8,
        SMALL = 32,
        LARGE = 128
    }; /* matrices; rows that a block of our own is enough for, alone and beside others */
    if (c->rc < 0 || n <= (c->batch < FEW ? SMALL : LARGE)) return false;
    return open_here() != NULL;
}

static int  code(lc_dtype dtype) { return dtype == LC_f32 ? 0 : dtype == LC_f64 ? 1 : dtype == LC_c64 ? 4 : 5; }
static bool take(linalg_call *c, status asked, space *s)
{
    if (c->rc == 0 && asked)
        c->rc = lc_fail_int(LC_LucidError, "%s: cuSOLVER: a workspace was refused with status %d", c->a->name, asked);
    if (c->rc == 0 && c->n_pieces == LINALG_PIECES) c->rc = lc_fail_int(LC_LucidError, "%s: too many workspaces", c->a->name);
    if (c->rc == 0 && !(s->there = cuda_scratch_new(&c->piece[c->n_pieces++], c->device, s->device))) c->rc = -1;
    if (c->rc == 0 && !(s->here = malloc(s->host ? s->host : 1)))
        c->rc = lc_fail_int(LC_OutOfMemory, "%s: no memory for cuSOLVER's workspace", c->a->name);
    return c->rc == 0;
}
static void give(linalg_call *c, space *s, status rc)
{
    if (s->host && c->rc == 0) c->rc = cuda_wait(); /* work may still read it */
    free(s->here);
    if (c->rc == 0 && rc) c->rc = lc_fail_int(LC_LucidError, "%s: cuSOLVER failed with status %d", c->a->name, rc);
}
/* What the following share: a handle, the size of an element, the matrices one after the other. */
#define START                                                                                                                  \
    space   s = { 0 };                                                                                                         \
    status  rc = 0;                                                                                                            \
    int     type = code(c->dtype), real = code(c->real);                                                                       \
    int64_t size = lc_size_of(c->dtype), narrow = lc_size_of(c->real);                                                         \
    (void)real, (void)narrow;                                                                                                  \
    handle h = open_here()
#define EACH        for (int64_t i = 0; i < c->batch && rc == 0; i++)
#define AT(d)       ((d).data + i * (d).rows * (d).cols * size)
#define REALS(p, n) ((char *)(p) + i * (n)*narrow)
#define INFO        ((int32_t *)info + i)
#define LD(d)       ((d).rows > 0 ? (d).rows : 1)

void solver_getrf(linalg_call *c, dense a, void *piv, void *info)
{
    int64_t few = a.rows < a.cols ? a.rows : a.cols;
    char   *wide = linalg_memory(c, few, 8);
    START;
    if (take(c, cusolver.cusolverDnXgetrf_bufferSize(h, params, a.rows, a.cols, type, a.data, LD(a), type, &s.device, &s.host),
             &s))
        EACH rc = cusolver.cusolverDnXgetrf(h, params, a.rows, a.cols, type, AT(a), LD(a), (int64_t *)wide + i * few, type,
                                            s.there, s.device, s.here, s.host, INFO);
    give(c, &s, rc);
    linalg_narrow(c, piv, wide, c->batch * few);
}
void solver_potrf(linalg_call *c, dense a, bool upper, void *info)
{
    START;
    if (take(c, cusolver.cusolverDnXpotrf_bufferSize(h, params, upper, a.rows, type, a.data, LD(a), type, &s.device, &s.host),
             &s))
        EACH rc = cusolver.cusolverDnXpotrf(h, params, upper, a.rows, type, AT(a), LD(a), type, s.there, s.device, s.here,
                                            s.host, INFO);
    give(c, &s, rc);
}
void solver_geqrf(linalg_call *c, dense a, void *tau)
{
    int64_t few = a.rows < a.cols ? a.rows : a.cols;
    void   *info = linalg_memory(c, 1, 4);
    dense   t = { tau, few, 1 };
    START;
    if (take(c,
             cusolver.cusolverDnXgeqrf_bufferSize(h, params, a.rows, a.cols, type, a.data, LD(a), type, tau, type, &s.device,
                                                  &s.host),
             &s))
        EACH rc = cusolver.cusolverDnXgeqrf(h, params, a.rows, a.cols, type, AT(a), LD(a), type, AT(t), type, s.there, s.device,
                                            s.here, s.host, INFO);
    give(c, &s, rc);
}
void solver_eigh(linalg_call *c, dense a, void *w, bool vectors, void *info)
{
    START;
    if (take(c,
             cusolver.cusolverDnXsyevd_bufferSize(h, params, vectors, 0, a.rows, type, a.data, LD(a), real, w, type, &s.device,
                                                  &s.host),
             &s))
        EACH rc = cusolver.cusolverDnXsyevd(h, params, vectors, 0, a.rows, type, AT(a), LD(a), real, REALS(w, a.rows), type,
                                            s.there, s.device, s.here, s.host, INFO);
    give(c, &s, rc);
}
void solver_svd(linalg_call *c, dense a, dense u, void *values, dense vh, bool vectors, void *info)
{
    signed char left = !vectors ? 'N' : u.cols > a.cols ? 'A' : 'S', right = vectors ? 'S' : 'N';
    START;
    if (take(c,
             cusolver.cusolverDnXgesvd_bufferSize(h, params, left, right, a.rows, a.cols, type, a.data, LD(a), real, values,
                                                  type, u.data, LD(a), type, vh.data, a.cols, type, &s.device, &s.host),
             &s))
        EACH rc = cusolver.cusolverDnXgesvd(h, params, left, right, a.rows, a.cols, type, AT(a), LD(a), real,
                                            REALS(values, a.cols), type, vectors ? AT(u) : NULL, LD(a), type,
                                            vectors ? AT(vh) : NULL, a.cols, type, s.there, s.device, s.here, s.host, INFO);
    give(c, &s, rc);
}
bool solver_eig(linalg_call *c, dense a, void *w, dense v, bool vectors, void *info)
{
    static const char *const symbols[] = { GEEV_CALLS(SYMBOL) };
    dense                    values = { w, a.rows, 1 };
    START;
    cuda_lock(&lock);
    if (!has_geev)
        has_geev =
            cuda_load(names, "cuSOLVER", "cusolver", symbols, (void **)&geev, sizeof symbols / sizeof *symbols) < 0 ? -1 : 1;
    pthread_mutex_unlock(&lock);
    if (has_geev < 0) return false;
    if (take(c,
             geev.cusolverDnXgeev_bufferSize(h, params, 0, vectors, a.rows, type, a.data, LD(a), type, w, type, NULL, LD(a),
                                             type, v.data, LD(a), type, &s.device, &s.host),
             &s))
        EACH rc = geev.cusolverDnXgeev(h, params, 0, vectors, a.rows, type, AT(a), LD(a), type, AT(values), type, NULL, LD(a),
                                       type, AT(v), LD(a), type, s.there, s.device, s.here, s.host, INFO);
    give(c, &s, rc);
    return true;
}
