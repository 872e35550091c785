/* What the files of the index family share: the walk along one dimension, and its checks. */
#pragma once
#include "../rules.h"

int same_dtype(const lc_record *call, const lc_tensor *a, const lc_tensor *b);
int gather_shape(const lc_record *call, lc_spec *out);
int scatter_shape(const lc_record *call, lc_spec *out); /* (input, dim, index, src or number) */
int slices_fit(const lc_record *call, lc_spec *out);    /* (input, dim, index, source): source has index's length along dim */

/* A 0-d tensor is indexed as if it had one dimension of size one. */
static inline int64_t size_at(const lc_tensor *t, int d) { return t->ndim ? t->shape[d] : 1; }
static inline int64_t stride_at(const lc_tensor *t, int d) { return t->ndim ? t->stride[d] : 0; }

/* Run the walk over the shape of `shaped`: `indexed` stands still along args[1], and is moved by in[1], which has the shape of `shaped`, or
 * is a vector that holds for whole slices. `walked` has the strides of a tensor of that shape, or is one value for every position. */
int walk_along(const lc_record *call, lc_tensor *indexed, lc_tensor *walked, const lc_tensor *shaped, lc_index_args *a);
static inline bool is_fresh(const lc_record *call) { return !call->out_given && !call->op->writes; }
/* What is written starts as the input, unless it is the input. */
static inline lc_tensor *start_of(const lc_record *call) { return call->out[0] == call->in[0] ? NULL : call->in[0]; }
lc_tensor *index_for(lc_tensor *index, const lc_tensor *written); /* new reference: int64, not in memory that is written */
lc_tensor *one_value(const lc_record *call, lc_tensor *number);   /* new reference: 0-d, of input 0's dtype */
lc_tensor *grown(lc_tensor *t, const lc_tensor *like); /* scoped: t with zeros behind it, up to the shape of another */
