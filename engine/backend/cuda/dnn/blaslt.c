/* Products with an epilogue by cuBLASLt: bias, ReLU, GELU (tanh) and residual in one launch; the gradients of a weight and of a
 * bias in one call. The choice of an algorithm is kept
 * per shape, in memory and on disk (choices.c): it depends on the key alone, so any call may have made it. One from disk that the
 * library refuses is made again. What cuBLASLt does not take goes on in matmul.c. Numbers are those of cuBLASLt's ABI.
 *
 * A plan's first call runs under the lock, so that its choice can still be replaced. Later ones take the lock only to get a
 * description of their own and to give it back: threads multiply side by side. */
#include "blaslt.h"
#include <pthread.h>
#include <stdlib.h>

typedef struct { /* cublasLtMatmulHeuristicResult_t */
    lt_algorithm by;
    size_t       workspace;
    int          status;
    float        waves;
    int          reserved[4];
} choice;
#define LT_CALLS(X)                                                                                                            \
    X(size_t, cublasLtGetVersion, (void))                                                                                      \
    X(size_t, cublasLtGetCudartVersion, (void))                                                                                \
    X(int, cublasLtCreate, (void **handle))                                                                                    \
    X(int, cublasLtMatmulDescCreate, (void **d, int compute, int scale))                                                       \
    X(int, cublasLtMatmulDescSetAttribute, (void *d, int name, const void *value, size_t bytes))                               \
    X(int, cublasLtMatmulDescDestroy, (void *d))                                                                               \
    X(int, cublasLtMatrixLayoutDestroy, (void *layout))                                                                        \
    X(int, cublasLtMatrixLayoutCreate, (void **layout, int type, uint64_t rows, uint64_t cols, int64_t lead))                  \
    X(int, cublasLtMatmulPreferenceCreate, (void **preference))                                                                \
    X(int, cublasLtMatmulPreferenceDestroy, (void *preference))                                                                \
    X(int, cublasLtMatmulPreferenceSetAttribute, (void *preference, int name, const void *value, size_t bytes))                \
    X(int, cublasLtMatmulAlgoGetHeuristic,                                                                                     \
      (void *handle, void *d, void *a, void *b, void *c, void *out, void *preference, int asked, choice *found, int *n))       \
    X(int, cublasLtMatmul,                                                                                                     \
      (void *handle, void *d, const void *alpha, const void *a, void *la, const void *b, void *lb, const void *beta,           \
       const void *c, void *lc, void *out, void *lout, const lt_algorithm *by, void *workspace, size_t bytes, void *stream))
static struct {
#define X(result, name, args) result(*name) args;
    LT_CALLS(X)
#undef X
} lt;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool            missing, works;

static int load(void) /* with the lock */
{
    static const char *const names[] = { "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so", NULL };
    static const char *const symbols[] = {
#define X(result, name, args) #name,
        LT_CALLS(X)
#undef X
    };
    return lt.cublasLtMatmul ? 0
                             : cuda_load(names, "cuBLASLt", "cublas", symbols, (void **)&lt, sizeof symbols / sizeof *symbols);
}
static int create(void **handle)
{
    cuda_lock(&lock);
    int rc = load();
    if (rc == 0) cuda_choices_of(lt.cublasLtGetVersion(), lt.cublasLtGetCudartVersion());
    if (rc == 0) rc = lt.cublasLtCreate(handle);
    if (rc != 0) lc_verbose_log("products on cuda: no cuBLASLt, epilogues are steps of their own");
    missing = rc != 0 && !works, works |= rc == 0; /* one thread's may fail for want of memory */
    pthread_mutex_unlock(&lock);
    return rc;
}
static int   has_no_stream(UNUSED void *handle, UNUSED cu_stream stream) { return 0; } /* every call names it */
static void *handle_of_thread(void)
{
    static const cuda_handle_kind kind = { create, has_no_stream };
    return missing ? NULL : cuda_handle(CUDA_HANDLE_LT, &kind);
}

enum {
    EPILOGUE_NONE = 1,
    EPILOGUE_RELU = 2,
    EPILOGUE_BIAS = 4,
    EPILOGUE_GELU = 32,
    EPILOGUE_SUMS_A = 256, /* BGRADA, BGRADB: of the library's operands, which are ours exchanged */
    EPILOGUE_SUMS_B = 512,
    EPILOGUES_WITH_VECTOR = EPILOGUE_BIAS | EPILOGUE_SUMS_A | EPILOGUE_SUMS_B
};
enum { DESC_TRANS_A = 3, DESC_TRANS_B = 4, DESC_EPILOGUE = 7, DESC_BIAS = 8, MAX_WORKSPACE = 1, MIN_ALIGNMENT = 5 };

static description *described(const product_key *k) /* NULL: cuBLASLt does not take it */
{
    int          ta = (int)k->flip_b, tb = (int)k->flip_a, epilogue = (int)k->epilogue, type = (int)k->type, to = (int)k->to;
    uint64_t     m = (uint64_t)k->m, n = (uint64_t)k->n, d = (uint64_t)k->k;
    int          compute = k->tf32 ? 77 : 68;
    description *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    int rc = lt.cublasLtMatmulDescCreate(&x->operation, compute, 0);
    if (rc == 0) rc = lt.cublasLtMatmulDescSetAttribute(x->operation, DESC_TRANS_A, &ta, sizeof ta);
    if (rc == 0) rc = lt.cublasLtMatmulDescSetAttribute(x->operation, DESC_TRANS_B, &tb, sizeof tb);
    if (rc == 0) rc = lt.cublasLtMatmulDescSetAttribute(x->operation, DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (rc == 0) rc = lt.cublasLtMatrixLayoutCreate(&x->b, type, ta ? d : n, ta ? n : d, k->lead_b);
    if (rc == 0) rc = lt.cublasLtMatrixLayoutCreate(&x->a, type, tb ? m : d, tb ? d : m, k->lead_a);
    if (rc == 0) rc = lt.cublasLtMatrixLayoutCreate(&x->out, to, n, m, k->lead_c);
    if (rc == 0) rc = lt.cublasLtMatrixLayoutCreate(&x->residual, to, n, m, k->lead_residual ? k->lead_residual : k->lead_c);
    if (rc == 0) return x;
    lc_verbose_log("products on cuda: cuBLASLt takes no description (status %d)", rc);
    if (x->operation) lt.cublasLtMatmulDescDestroy(x->operation);
    void *const layouts[] = { x->b, x->a, x->out, x->residual };
    for (int i = 0; i < 4; i++)
        if (layouts[i]) lt.cublasLtMatrixLayoutDestroy(layouts[i]);
    return free(x), NULL;
}
static description *take(product_plan *p)
{
    description *x = p->unused;
    if (!x) return described(&p->key);
    p->unused = x->next;
    return x;
}
static void give(product_plan *p, description *x)
{
    if (x) x->next = p->unused, p->unused = x;
}

/* By what the key promises and by no pointer of this call: the vector (a bias, or its gradient) is an address that only has its
 * alignment. */
static bool choose(product_plan *p, const description *x, void *handle)
{
    void       *preference = NULL;
    int         found = 0;
    size_t      workspace = LT_MOST_WORKSPACE;
    uint32_t    alignment = (uint32_t)p->key.alignment;
    const void *bias = p->key.epilogue & EPILOGUES_WITH_VECTOR ? (const void *)(uintptr_t)alignment : NULL;
    choice      best = { 0 };
    int         rc = lt.cublasLtMatmulDescSetAttribute(x->operation, DESC_BIAS, &bias, sizeof bias);
    if (rc == 0) rc = lt.cublasLtMatmulPreferenceCreate(&preference);
    if (rc == 0) rc = lt.cublasLtMatmulPreferenceSetAttribute(preference, MAX_WORKSPACE, &workspace, sizeof workspace);
    for (int i = 0; i < 4 && rc == 0; i++)
        rc = lt.cublasLtMatmulPreferenceSetAttribute(preference, MIN_ALIGNMENT + i, &alignment, sizeof alignment);
    if (rc == 0)
        rc = lt.cublasLtMatmulAlgoGetHeuristic(handle, x->operation, x->b, x->a, x->residual, x->out, preference, 1, &best,
                                               &found);
    if (preference) lt.cublasLtMatmulPreferenceDestroy(preference);
    if (rc == 0) rc = found < 1 ? -1 : best.status;
    if (rc != 0) lc_verbose_log("products on cuda: cuBLASLt takes no epilogue %d here (status %d)", (int)p->key.epilogue, rc);
    p->by = best.by, p->workspace = best.workspace, p->state = rc == 0 ? PLAN_CHOSEN : PLAN_REFUSED;
    return rc == 0;
}
static __attribute__((destructor)) void write_at_exit(void)
{
    if (!cuda_usable() || pthread_mutex_trylock(&lock) != 0) return;
    cuda_choices_write();
    pthread_mutex_unlock(&lock);
}

static int code_of(lc_dtype dtype) { return dtype == LC_f32 ? 0 : dtype == LC_f16 ? 2 : dtype == LC_bf16 ? 14 : -1; }
/* Row-major with one stride of 1: how it lies, and its other stride. */
static bool lies(int64_t rows, int64_t cols, int64_t row, int64_t col, int64_t *flipped, int64_t *lead)
{
    *flipped = !((col == 1 || cols == 1) && row >= cols);
    *lead = *flipped ? col : row;
    return !*flipped || ((row == 1 || rows == 1) && col >= rows);
}
static int64_t alignment_of(const void *const *p, int n)
{
    uintptr_t all = 256;
    for (int i = 0; i < n; i++) all |= (uintptr_t)p[i];
    int64_t to = (int64_t)(all & -all);
    return to > 256 ? 256 : to;
}

/* What a call has besides its plan. */
typedef struct {
    void       *handle;
    const void *a, *b, *bias, *residual; /* NULL: none. bias: or where sums go */
    void       *out;
    float       scale;
} product_call;
/* 0; 1: refused; -1 after lc_fail */
static int multiply(const product_plan *p, const description *x, const product_call *c)
{
    float       beta = c->residual != NULL;
    const void *added = c->residual ? c->residual : c->out;
    void       *space = p->workspace ? cuda_workspace(p->workspace) : NULL;
    if (p->workspace && !space) return -1;
    if (c->bias && lt.cublasLtMatmulDescSetAttribute(x->operation, DESC_BIAS, &c->bias, sizeof c->bias) != 0) return 1;
    int rc = lt.cublasLtMatmul(c->handle, x->operation, &c->scale, c->b, x->b, c->a, x->a, &beta, added,
                               c->residual ? x->residual : x->out, c->out, x->out, &p->by, space, p->workspace, cuda_stream());
    if (rc != 0) lc_verbose_log("products on cuda: cuBLASLt refused with status %d", rc);
    return rc != 0;
}
static int prove(product_plan *p, const description *x, const product_call *c) /* with the lock: the first call of a plan */
{
    int rc = p->state == PLAN_RESTORED ? multiply(p, x, c) : 1;
    if (rc == 0) p->state = PLAN_PROVEN;
    if (rc != 1) return rc;
    if (p->state == PLAN_RESTORED) lc_verbose_log("products on cuda: a choice from disk is made again");
    if (choose(p, x, c->handle) && (rc = multiply(p, x, c)) == 0) p->state = PLAN_PROVEN, cuda_choice_made(p);
    return rc;
}
static int run_plan(const product_key *key, const product_call *c)
{
    cuda_lock(&lock);
    product_plan *p = cuda_product_plan(key);
    description  *x = p && p->state != PLAN_REFUSED ? take(p) : NULL;
    int           rc = 1;
    if (x && p->state == PLAN_PROVEN) {
        pthread_mutex_unlock(&lock);
        rc = multiply(p, x, c);
        cuda_lock(&lock);
    } else if (x) rc = prove(p, x, c);
    if (p) give(p, x);
    if (p && rc == 1) p->state = PLAN_REFUSED;
    pthread_mutex_unlock(&lock);
    return rc;
}
static bool has_key(const lc_matmul_args *a, product_key *key) /* without epilogue and alignment */
{
    int64_t flipped = 0;
    *key = (product_key){ .model = cuda_model(a->out->device.index),
                          .type = code_of((lc_dtype)a->a->dtype),
                          .to = code_of((lc_dtype)a->out->dtype),
                          .m = a->m,
                          .n = a->n,
                          .k = a->k,
                          .epilogue = EPILOGUE_NONE,
                          .tf32 = a->a->dtype == LC_f32 && lc_cuda_tf32 };
    return a->batch == 1 && !a->accumulate && key->type >= 0 && key->type == code_of((lc_dtype)a->b->dtype) &&
           a->out->dtype == a->a->dtype && a->m > 1 && a->n > 1 && a->k > 0 &&
           lies(a->m, a->k, a->a_row, a->a_col, &key->flip_a, &key->lead_a) &&
           lies(a->k, a->n, a->b_row, a->b_col, &key->flip_b, &key->lead_b) &&
           lies(a->m, a->n, a->out_row, a->out_col, &flipped, &key->lead_c) && !flipped;
}
int cuda_lt_product(const lc_matmul_args *a, lc_dtype dtype)
{
    const lc_matmul_epilogue *e = a->epilogue;
    product_key               key;
    if (dtype != LC_f32 || !has_key(a, &key)) return 1;
    const void *bias = NULL, *residual = NULL;
    if (e->addend) {
        if (e->addend->dtype != a->out->dtype || e->addend_scale != 1 || e->addend_stride[1] != 0 || e->addend_stride[2] != 1)
            return 1;
        bias = e->addend->data, key.epilogue = EPILOGUE_BIAS;
    }
    if (e->residual) { /* C of the product: added before an activation, so there must be none */
        if (e->residual->dtype != a->out->dtype || e->activation != LC_OP_COUNT || e->residual_stride[2] != 1 ||
            e->residual_stride[1] < a->n)
            return 1;
        residual = e->residual->data, key.lead_residual = e->residual_stride[1];
    }
    if (e->activation == LC_OP_relu) key.epilogue = bias ? EPILOGUE_RELU | EPILOGUE_BIAS : EPILOGUE_RELU;
    else if (e->activation == LC_OP_gelu_tanh) key.epilogue = bias ? EPILOGUE_GELU | EPILOGUE_BIAS : EPILOGUE_GELU;
    else if (e->activation != LC_OP_COUNT) return 1;
    key.alignment = alignment_of((const void *const[]){ a->a->data, a->b->data, a->out->data, bias, residual }, 5);
    if (key.alignment < 16) return 1;
    key.alignment = 16;
    void *handle = handle_of_thread();
    if (!handle) return 1;
    return run_plan(&key, &(product_call){ handle, a->a->data, a->b->data, bias, residual, a->out->data, (float)e->scale });
}

/* The library sums the rows of its left operand if that is not transposed, the columns of its right one if that is: those that
 * lie beside each other in memory. It has kernels that do both in float16, and on Ampere and Ada in bfloat16; elsewhere it launches one
 * of its own behind the product. Large products have faster kernels without: there a pass over the gradient costs less than
 * what they lose, and this is left to two calls (benchmarks/gpu_runtime.py times both). */
int64_t lc_cuda_sums_up_to = (int64_t)1 << 30; /* multiplications. Tests change it */

int cuda_lt_sums(const lc_matmul_args *asked)
{
    enum { UNIT = 8 }; /* elements of 16 bytes: the kernels read no other rows */
    lc_matmul_args a = *asked;
    product_key    key;
    bool           turned = a.out_col != 1; /* then out^T = b^T a^T is the product, and a its right operand */
    if (turned) {
        a.a = asked->b, a.a_row = asked->b_col, a.a_col = asked->b_row, a.m = asked->n;
        a.b = asked->a, a.b_row = asked->a_col, a.b_col = asked->a_row, a.n = asked->m;
        a.out_row = asked->out_col, a.out_col = asked->out_row;
    }
    if (!has_key(&a, &key) || (turned ? key.flip_b : !key.flip_a) || a.a->dtype == LC_f32 || a.sums->dtype != a.out->dtype ||
        (a.m | a.n | key.lead_a | key.lead_b | key.lead_c) % UNIT != 0 || a.m * a.n > lc_cuda_sums_up_to / a.k)
        return 1;
    key.epilogue = turned ? EPILOGUE_SUMS_A : EPILOGUE_SUMS_B;
    key.alignment = alignment_of((const void *const[]){ a.a->data, a.b->data, a.out->data, a.sums->data }, 4);
    if (key.alignment < 16) return 1;
    key.alignment = 16;
    void *handle = handle_of_thread();
    if (!handle) return 1;
    return run_plan(&key, &(product_call){ handle, a.a->data, a.b->data, a.sums->data, NULL, a.out->data, 1 });
}
