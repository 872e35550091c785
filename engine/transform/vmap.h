/* vmap: a batched tensor is (value, level, dim). Depends on op.
 *
 * Outside it looks like one example: its shape lacks the batch dimension. Its `batch` holds the value, which has the dimension in
 * front. A call with a batched input does not run: the transform below takes the values of the innermost level, applies the
 * rule that the op declares (.batching) or that of its class (elementwise, reduction, view, composite; a loop over examples for the
 * others, with a warning), and wraps the results again.
 * Values may themselves be batched by an outer level, and record history: gradients of vmapped functions need nothing more. */
#pragma once
#include "../op/op.h"

typedef struct lc_batch {
    lc_object  object;
    lc_tensor *value; /* dimension 0 is the batch */
    int        level;
} lc_batch;

int        lc_vmap_push(void); /* enter a level; returns it (from 1), -1 after lc_fail */
void       lc_vmap_pop(void);
lc_tensor *lc_batched(lc_tensor *value, int64_t dim, int level); /* new reference: value seen without dimension dim */
/* New reference: the value with the batch dimension at out_dim; a tensor not batched at this level is expanded by size. */
lc_tensor *lc_unbatched(lc_tensor *t, int level, int64_t size, int64_t out_dim);
