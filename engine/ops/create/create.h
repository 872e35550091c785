/* What files of factories share (create, random): shapes from a size or from another tensor, with dtype and device where given. */
#pragma once
#include "../rules.h"

int of_size(const lc_record *call, lc_spec *out);      /* arguments (size, *, dtype, device, ...) */
int like_another(const lc_record *call, lc_spec *out); /* tensors, then dtype, device, memory_format */
int factory_shape(const lc_record *call, lc_spec *out, const lc_value *dtype, lc_dtype otherwise, const lc_value *device,
                  int ndim, const int64_t *shape);
int run_factory(const lc_record *call, const void *args); /* the kernel of a factory computes in the dtype of the result */
