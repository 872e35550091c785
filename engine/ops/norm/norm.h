/* What the files of the normalisations share. Everything returned is scoped. */
#pragma once
#include "../rules.h"

typedef struct {                                       /* they keep the reduced dimensions */
    lc_tensor *mean, *centred, *variance, *rstd, *hat; /* mean: LC_NONE if not centred. hat: centred * rstd */
} norm_statistics;
norm_statistics norm_normalised(lc_tensor *x, const int64_t *dims, int n, double eps, bool centred); /* by plain ops */
lc_tensor      *norm_scaled(lc_tensor *x, lc_tensor *weight, lc_tensor *bias); /* absent ones count as 1 and 0 */
lc_tensor      *norm_converted(lc_tensor *t, lc_dtype dtype);                  /* t itself if it has the dtype, or is absent */
lc_tensor      *norm_widened(lc_tensor *t);                                    /* float16 and bfloat16 to float32 */
