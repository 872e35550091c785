/* Rows of floats of one byte; single ones: core.h. */
#pragma once
#include "core.h"

void lc_f32_to_f8_row(lc_dtype dtype, const float *restrict x, uint8_t *restrict out, int64_t n);
