/* What reductions share: argument "dim" says what to reduce (absent: everything), "keepdim" and "dtype" are found by name. */
#pragma once
#include "../rules.h"

int     reduced_mask(const lc_record *call, uint64_t *mask);
int64_t reduced_count(const lc_tensor *x, uint64_t mask); /* elements per output */
int     reduced_to(const lc_record *call, lc_spec *out, lc_dtype dtype);
int     reduced(const lc_record *call, lc_spec *out); /* shape rule: the same, of the computing dtype */
void    expanded_strides(const lc_tensor *x, const lc_tensor *out, uint64_t mask,
                         int64_t *stride); /* of out per dimension of x, zero where reduced */
/* Runs the fold of call->op->kernel over call->in[0] into value and index; either may be NULL. */
int        reduce_into(const lc_record *call, lc_tensor *value, lc_tensor *index, lc_dtype compute, double parameter);
int        reduction(const lc_record *call);                                /* run: into the one output */
lc_tensor *restored(lc_tensor *t, const lc_tensor *x, const lc_value *dim); /* reduced dimensions come back with size one */
