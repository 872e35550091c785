/* What the losses share: elements of float32 or float64 tensors as doubles. */
#pragma once
#include "../../../core/core.h"

static inline double number_at(lc_dtype work, const void *p, int64_t i)
{
    return work == LC_f32 ? (double)((const float *)p)[i] : ((const double *)p)[i];
}
static inline void set_number(lc_dtype work, void *p, int64_t i, double value)
{
    if (work == LC_f32) ((float *)p)[i] = (float)value;
    else ((double *)p)[i] = value;
}
