/* Shared by the losses: reduction of a loss per element to the result. */
#pragma once
#include "../rules.h"

#define SUM_OF_OPS .ns = "nn.functional" /* computed by ops with or without an autocast rule */
#define LOSS       .ns = "nn.functional", .amp = LC_AMP_FP32
#define REDUCTION  "size_average: bool | None = None, reduce: bool | None = None, reduction: str = 'mean'"

typedef enum { REDUCE_NONE, REDUCE_MEAN, REDUCE_SUM, REDUCE_BATCHMEAN } reduction;

/* The argument called reduction. */
int reduction_named(const lc_value *name, reduction *how);
/* The same, where the deprecated size_average and reduce may overrule it. */
int  reduction_of(const lc_value *size_average, const lc_value *reduce, const lc_value *name, reduction *how);
int  reduced_loss(lc_tensor *loss, reduction how, lc_tensor **out); /* a composite's result */
bool same_sizes(const lc_tensor *a, const lc_tensor *b);
/* For losses whose result has the input's dtype, whatever the target's: converts from the promoted dtype, scoped; an error
 * if that is impossible. */
int        joint_dtype_fits(const char *name, const lc_tensor *x, const lc_tensor *target);
lc_tensor *in_dtype_of(lc_tensor *loss, lc_dtype dtype);
/* Scoped: x * weight; x itself if there is none. */
static inline lc_tensor *weighted(lc_tensor *x, lc_tensor *weight) { return weight == LC_NONE ? x : lc_mul(x, weight); }
static inline lc_tensor *all_sum(lc_tensor *x) { return lc_sum(x, NULL, 0, false); }
