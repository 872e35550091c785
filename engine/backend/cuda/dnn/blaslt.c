/* Products with an epilogue by cuBLASLt: bias, ReLU, GELU (tanh) and residual in one launch. The choice of an algorithm is kept
 * per shape; what cuBLASLt does not take goes on in matmul.c. Numbers are those of cuBLASLt's ABI. */
#include "products.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t data[8];
} algorithm;
typedef struct { /* cublasLtMatmulHeuristicResult_t */
    algorithm by;
    size_t    workspace;
    int       status;
    float     waves;
    int       reserved[4];
} choice;
#define LT_CALLS(X)                                                                                                            \
    X(cublasLtCreate, (void **handle))                                                                                         \
    X(cublasLtMatmulDescCreate, (void **d, int compute, int scale))                                                            \
    X(cublasLtMatmulDescSetAttribute, (void *d, int name, const void *value, size_t bytes))                                    \
    X(cublasLtMatrixLayoutCreate, (void **layout, int type, uint64_t rows, uint64_t cols, int64_t lead))                       \
    X(cublasLtMatrixLayoutSetAttribute, (void *layout, int name, const void *value, size_t bytes))                             \
    X(cublasLtMatmulPreferenceCreate, (void **preference))                                                                     \
    X(cublasLtMatmulPreferenceSetAttribute, (void *preference, int name, const void *value, size_t bytes))                     \
    X(cublasLtMatmulAlgoGetHeuristic,                                                                                          \
      (void *handle, void *d, void *a, void *b, void *c, void *out, void *preference, int asked, choice *found, int *n))       \
    X(cublasLtMatmul,                                                                                                          \
      (void *handle, void *d, const void *alpha, const void *a, void *la, const void *b, void *lb, const void *beta,           \
       const void *c, void *lc, void *out, void *lout, const algorithm *by, void *workspace, size_t bytes, void *stream))
static struct {
#define X(name, args) int(*name) args;
    LT_CALLS(X)
#undef X
} lt;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool            missing;

static int load(void) /* with the lock */
{
    static const char *const names[] = { "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so", NULL };
    static const char *const symbols[] = {
#define X(name, args) #name,
        LT_CALLS(X)
#undef X
    };
    return lt.cublasLtMatmul ? 0
                             : cuda_load(names, "cuBLASLt", "cublas", symbols, (void **)&lt, sizeof symbols / sizeof *symbols);
}
static int create(void **handle)
{
    cuda_lock(&lock);
    int rc = load() == 0 ? lt.cublasLtCreate(handle) : -1;
    if (rc != 0) lc_verbose_log("products on cuda: no cuBLASLt, epilogues are steps of their own");
    missing = rc != 0;
    pthread_mutex_unlock(&lock);
    return rc;
}
static int   has_no_stream(UNUSED void *handle, UNUSED cu_stream stream) { return 0; } /* every call names it */
static void *handle_of_thread(void)
{
    static const cuda_handle_kind kind = { create, has_no_stream };
    return missing ? NULL : cuda_handle(CUDA_HANDLE_LT, &kind);
}

typedef struct { /* of the column-major product: out^T (n x m) = b^T a^T. Hashed as bytes: no padding */
    int64_t device, type, to, m, n, k, lead_a, lead_b, lead_c, lead_residual, alignment, flip_a, flip_b, epilogue, tf32;
} product_key;
typedef struct plan {
    struct plan *next;
    product_key  key;
    void        *operation, *a, *b, *out, *residual;
    choice       by;
    bool         no_use;
} plan;
enum { SLOTS = 256, MOST_WORKSPACE = 32 << 20 };
static plan *plans[SLOTS];

enum { EPILOGUE_NONE = 1, EPILOGUE_RELU = 2, EPILOGUE_BIAS = 4, EPILOGUE_GELU = 32 };
enum { DESC_TRANS_A = 3, DESC_TRANS_B = 4, DESC_EPILOGUE = 7, DESC_BIAS = 8, MAX_WORKSPACE = 1, MIN_ALIGNMENT = 5 };

/* The choice depends on the key alone: the bias is as aligned as the key says, whatever this call's is. */
static void choose(plan *p, void *handle)
{
    const product_key *k = &p->key;
    void              *preference = NULL;
    int                ta = (int)k->flip_b, tb = (int)k->flip_a, epilogue = (int)k->epilogue, found = 0;
    size_t             workspace = MOST_WORKSPACE;
    uint32_t           alignment = (uint32_t)k->alignment;
    int                compute = k->tf32 ? 77 : 68;
    int                rc = lt.cublasLtMatmulDescCreate(&p->operation, compute, 0);
    if (rc == 0) rc = lt.cublasLtMatmulDescSetAttribute(p->operation, DESC_TRANS_A, &ta, sizeof ta);
    if (rc == 0) rc = lt.cublasLtMatmulDescSetAttribute(p->operation, DESC_TRANS_B, &tb, sizeof tb);
    if (rc == 0) rc = lt.cublasLtMatmulDescSetAttribute(p->operation, DESC_EPILOGUE, &epilogue, sizeof epilogue);
    const void *bias = epilogue & EPILOGUE_BIAS ? (const void *)(uintptr_t)k->alignment : NULL; /* only its alignment is read */
    if (rc == 0) rc = lt.cublasLtMatmulDescSetAttribute(p->operation, DESC_BIAS, &bias, sizeof bias);
    if (rc == 0)
        rc = lt.cublasLtMatrixLayoutCreate(&p->b, (int)k->type, (uint64_t)(ta ? k->k : k->n), (uint64_t)(ta ? k->n : k->k),
                                           k->lead_b);
    if (rc == 0)
        rc = lt.cublasLtMatrixLayoutCreate(&p->a, (int)k->type, (uint64_t)(tb ? k->m : k->k), (uint64_t)(tb ? k->k : k->m),
                                           k->lead_a);
    if (rc == 0) rc = lt.cublasLtMatrixLayoutCreate(&p->out, (int)k->to, (uint64_t)k->n, (uint64_t)k->m, k->lead_c);
    if (rc == 0)
        rc = lt.cublasLtMatrixLayoutCreate(&p->residual, (int)k->to, (uint64_t)k->n, (uint64_t)k->m,
                                           k->lead_residual ? k->lead_residual : k->lead_c);
    if (rc == 0) rc = lt.cublasLtMatmulPreferenceCreate(&preference);
    if (rc == 0) rc = lt.cublasLtMatmulPreferenceSetAttribute(preference, MAX_WORKSPACE, &workspace, sizeof workspace);
    for (int i = 0; i < 4 && rc == 0; i++)
        rc = lt.cublasLtMatmulPreferenceSetAttribute(preference, MIN_ALIGNMENT + i, &alignment, sizeof alignment);
    if (rc == 0)
        rc = lt.cublasLtMatmulAlgoGetHeuristic(handle, p->operation, p->b, p->a, p->residual, p->out, preference, 1, &p->by,
                                               &found);
    p->no_use = rc != 0 || found < 1 || p->by.status != 0;
    if (p->no_use) lc_verbose_log("products on cuda: cuBLASLt takes no epilogue %d here (status %d)", epilogue, rc);
}
static plan *plan_of(const product_key *key, void *handle)
{
    plan **slot = &plans[cuda_hash(CUDA_HASH_START, key, sizeof *key) % SLOTS], *p;
    for (p = *slot; p && memcmp(&p->key, key, sizeof *key); p = p->next)
        ;
    if (p || !(p = calloc(1, sizeof *p))) return p;
    p->key = *key, p->next = *slot, *slot = p;
    choose(p, handle);
    return p;
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

int cuda_lt_product(const lc_matmul_args *a, lc_dtype dtype)
{
    const lc_matmul_epilogue *e = a->epilogue;
    int64_t                   flipped = 0;
    product_key               key = { .device = a->out->device.index,
                                      .type = code_of((lc_dtype)a->a->dtype),
                                      .to = code_of((lc_dtype)a->out->dtype),
                                      .m = a->m,
                                      .n = a->n,
                                      .k = a->k,
                                      .epilogue = EPILOGUE_NONE,
                                      .tf32 = a->a->dtype == LC_f32 && lc_cuda_tf32 };
    if (dtype != LC_f32 || a->batch != 1 || a->accumulate || key.type < 0 || key.type != code_of((lc_dtype)a->b->dtype) ||
        a->out->dtype != a->a->dtype || a->m < 2 || a->n < 2 || a->k < 1)
        return 1;
    if (!lies(a->m, a->k, a->a_row, a->a_col, &key.flip_a, &key.lead_a) ||
        !lies(a->k, a->n, a->b_row, a->b_col, &key.flip_b, &key.lead_b) ||
        !lies(a->m, a->n, a->out_row, a->out_col, &flipped, &key.lead_c) || flipped)
        return 1;
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
    cuda_lock(&lock);
    plan *p = plan_of(&key, handle);
    int   rc = 1;
    if (p && !p->no_use) {
        float alpha = (float)e->scale, beta = residual != NULL;
        void *space = p->by.workspace ? cuda_workspace(p->by.workspace) : NULL;
        rc = p->by.workspace && !space ? -1 : 0;
        if (rc == 0 && bias && lt.cublasLtMatmulDescSetAttribute(p->operation, DESC_BIAS, &bias, sizeof bias) != 0) rc = 1;
        if (rc == 0 && lt.cublasLtMatmul(handle, p->operation, &alpha, a->b->data, p->b, a->a->data, p->a, &beta,
                                         residual ? residual : a->out->data, residual ? p->residual : p->out, a->out->data,
                                         p->out, &p->by.by, space, p->by.workspace, cuda_stream()) != 0) {
            lc_verbose_log("products on cuda: cuBLASLt refused, steps follow");
            rc = 1, p->no_use = true;
        }
    }
    pthread_mutex_unlock(&lock);
    return rc;
}
