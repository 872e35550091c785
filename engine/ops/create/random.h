/* What the files of random ops share. The draws, and their order, are PyTorch's CPU streams (core/random.h): the same seed gives the same
 * numbers. Without a generator= the process-wide one is used. */
#pragma once
#include "create.h"

/* An op that overwrites its input with draws: its gradient is zero. */
#define FILL                                                                                                                   \
    .method = true, .function = false, .random = true, .writes = IN(0), .promote = LC_NO_PROMOTION, .shape = in_place,         \
    .grad = constant_grad

int           in_place(const lc_record *call, lc_spec *out);
void          constant_grad(lc_tensor *const *g, lc_tensor *const *y, const lc_value *in, const bool *need, lc_tensor **dx);
lc_generator *generator_for(const lc_value *v, lc_device device); /* NULL after lc_fail: it belongs to another device */
/* Runs the kernel of `op` into call->out[0]. The strides of the output decide the order of the draws. */
int draw(const lc_record *call, const lc_op *op, const lc_value *generator, lc_random_args args);
/* After a shape rule: draw straight into a strided out=, as PyTorch does, because strides decide the order. */
int drawn_in_order(const lc_record *call, lc_spec *out, int rc);
