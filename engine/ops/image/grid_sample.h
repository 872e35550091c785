/* What the files of grid_sample share. */
#pragma once
#include "../rules.h"

/* The gradient of _grid_sample_backward. */
void grid_sample_backward_grad(lc_tensor *const *g, lc_tensor *const *y, const lc_value *in, const bool *need, lc_tensor **dx);
