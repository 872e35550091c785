/* Shared by view, slice, split and shape: a geometry on the stack, and its two uses.
 *
 * Every view is a rule: from a tensor and the arguments after it to a geometry. The rule serves the view (apply it to the
 * input), its in-place form (the input takes the geometry), and the gradient of a view of some elements (copy g into that
 * view of zeros). */
#pragma once
#include "../rules.h"

typedef struct {
    int     ndim;
    int64_t offset, shape[LC_MAX_DIMS], stride[LC_MAX_DIMS]; /* in elements, from the first of the tensor it is a view of */
} geometry;
typedef int (*geometry_rule)(const lc_tensor *x, const lc_value *a, geometry *v); /* a: the arguments after the tensor */

int        geometry_like(const lc_tensor *x, int more_dims, geometry *v); /* x's own; -1 if more_dims more would be too many */
lc_tensor *seen_as(lc_tensor *x, const geometry *v);                      /* new reference */

/* to += g where to may reach an element several times; shapes are equal. */
int add_into(const lc_backend *backend, lc_tensor *to, lc_tensor *g);

/* The .call of a view op whose rule is name_geometry. */
#define VIEW(name)                                                                                                             \
    static int name##_call(const lc_value *in, lc_tensor **out)                                                                \
    {                                                                                                                          \
        geometry v;                                                                                                            \
        if (name##_geometry(in(0), in + 1, &v) < 0) return -1;                                                                 \
        return one_view(in(0), v.ndim, v.shape, v.stride, v.offset, out);                                                      \
    }

/* The .call of name_: the tensor itself takes the geometry. */
int become(const lc_value *in, geometry_rule rule, lc_tensor **out);
#define BECOME(name)                                                                                                           \
    static int name##__call(const lc_value *in, lc_tensor **out) { return become(in, name##_geometry, out); }

/* view and reshape: sizes with at most one -1 filled in; strides under which x has that shape without a copy, if there are any. */
int  infer_shape(const lc_value *size, int64_t numel, int64_t *shape);
bool strides_for_shape(const lc_tensor *x, int ndim, const int64_t *shape, int64_t *stride);

/* Output strides in the memory format that t's own strides suggest (cat, stack, padding). */
int in_suggested_format(const lc_tensor *t, lc_spec *out);
