/* What the files of this room share: how an op gets a sparse form, and how forms take tensors apart.
 *
 * A sparse form is a composite: a C function over ops on indices and values, which replaces a call with a sparse input. Forms register
 * by op, as kernels do. Gradients need no rule of their own: a form takes its inputs apart with parts_of(), computes on dense tensors and
 * puts its result together with the ops of parts.c; all of these are recorded. */
#pragma once
#include "../rules.h"
#include "../../tensor/sparse.h"

typedef int (*lc_sparse_form)(const lc_op *op, const lc_value *in, lc_tensor **out);
extern lc_sparse_form lc_sparse_forms[LC_OP_COUNT];
#define FORM(name) static int name##_form(UNUSED const lc_op *op, UNUSED const lc_value *in, UNUSED lc_tensor **out)
#define ENTER(op, form)                                                                                                        \
    static __attribute__((constructor)) void enter_##op(void) { lc_sparse_forms[LC_OP_##op] = form; }
#define GIVE(t) return (out[0] = (t)) ? 0 : -1
/* The op itself takes sparse inputs: it runs as usual, and the tape records it. */
int runs_as_it_is(const lc_op *op, const lc_value *in, lc_tensor **out);
/* The op's own function is a composite over ops that have sparse forms. */
int runs_its_body(const lc_op *op, const lc_value *in, lc_tensor **out);

static inline bool     is_sparse(const lc_tensor *t) { return t->flags & LC_SPARSE; }
static inline bool     is_coo(const lc_tensor *t) { return lc_layout_of(t) == LC_SPARSE_COO; }
static inline lc_value int_dtype(void) { return LC_OF_DTYPE(LC_i64); }

typedef struct { /* scoped; values with the tensor's history */
    lc_layout  layout;
    lc_tensor *index[2], *values;
    bool       coalesced;
    int        ndim, sparse_dim;
    int64_t    nnz, shape[LC_MAX_DIMS];
} parts;
int        parts_of(lc_tensor *t, parts *p); /* -1: a failure */
lc_tensor *together(const parts *p);         /* scoped: the tensor that has these parts */
lc_tensor *with_values(const parts *p, lc_tensor *values);
int        coalesced_parts(lc_tensor *t, parts *p); /* of a COO tensor: sorted, each index once */
int        coo_parts(lc_tensor *t, parts *p);       /* of any layout, as COO; compressed ones are coalesced */
/* Indices as one number each, row-major over the first n sparse dimensions; -1 dims: all. int64 (nnz). */
lc_tensor *linear_index(const parts *p);
lc_tensor *index_row(const parts *p, int d); /* int64 (nnz): along sparse dimension d */
/* Parts of the entries that keep[] (bool (nnz)) names, or of those at `at` (int64). */
int        keep_entries(parts *p, lc_tensor *keep);
int        take_entries(parts *p, lc_tensor *at);
lc_tensor *gathered(lc_tensor *dense, const parts *p); /* (nnz, dense dims): what a dense tensor has at these indices */
lc_tensor *looked_up(const parts *in, const parts *at,
                     lc_tensor **found);             /* values of `in`, coalesced, at other indices; else 0 */
lc_tensor *row_starts(lc_tensor *sorted, int64_t n); /* int64 (n + 1): rows of entries in order -> crow */
lc_tensor *rows_of(lc_tensor *starts, int64_t nnz);  /* int64 (nnz): the inverse */
lc_tensor *converted_to(lc_tensor *t, lc_layout layout, const int64_t *block); /* scoped; t itself if it has it */
int        refuse_layout(const char *op, const lc_tensor *t);
