/* Plans of products by cuBLASLt: blaslt.c makes and runs them, choices.c finds them again and keeps what was chosen on disk.
 * Callers hold the lock of blaslt.c. */
#pragma once
#include "products.h"

enum { LT_MOST_WORKSPACE = 32 << 20 };
typedef struct {
    uint64_t data[8];
} lt_algorithm;  /* cublasLtMatmulAlgo_t: may be stored, for the same version of the library */
typedef struct { /* of the column-major product: out^T (n x m) = b^T a^T. Hashed and stored as bytes: no padding */
    int64_t model, type, to, m, n, k, lead_a, lead_b, lead_c, lead_residual, alignment, flip_a, flip_b, epilogue, tf32;
} product_key;
typedef struct description { /* of a plan to the library. The bias is a part of it, so one call uses it at a time */
    struct description *next;
    void               *operation, *a, *b, *out, *residual;
} description;
typedef struct product_plan {
    struct product_plan *next;
    product_key          key;
    lt_algorithm         by; /* of a proven plan it does not change any more */
    uint64_t             workspace;
    description         *unused; /* as many as calls ran at once */
    enum {
        PLAN_NEW,
        PLAN_RESTORED, /* from disk: the library has not seen it yet */
        PLAN_CHOSEN,
        PLAN_PROVEN, /* it has run */
        PLAN_REFUSED,
    } state;
    bool used; /* by this process */
} product_plan;

int64_t       cuda_model(int device); /* equal devices share plans: architecture and number of processors */
void          cuda_choices_of(uint64_t version, uint64_t runtime); /* of the library that is loaded */
product_plan *cuda_product_plan(const product_key *key);           /* NULL: out of memory */
void          cuda_choice_made(const product_plan *p);             /* and proven */
void          cuda_choices_write(void);                            /* what is not written yet */
