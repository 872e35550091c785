#include "sparse.h"

const char *const lc_layout_names[LC_LAYOUTS] = { "strided",    "sparse_coo", "sparse_csr",
                                                  "sparse_csc", "sparse_bsr", "sparse_bsc" };

static _Alignas(16) char nothing[16];
static lc_storage shared = { .refs = 1, .read_only = true, .shared_fd = -1, .bytes = sizeof nothing, .data = nothing };

static void drop_parts(lc_object *object)
{
    lc_sparse *s = (lc_sparse *)object;
    lc_release(s->index[0]), lc_release(s->index[1]), lc_release(s->values);
    lc_free(s, sizeof *s);
}

lc_tensor *lc_sparse_new(lc_layout layout, int ndim, const int64_t *shape, lc_tensor *const index[2], lc_tensor *values,
                         bool coalesced)
{
    int64_t          stride[LC_MAX_DIMS] = { 0 };
    lc_sparse       *s = lc_alloc(sizeof *s);
    lc_version_cell *cell = s ? lc_alloc(sizeof *cell) : NULL;
    if (cell) {
        *s = (lc_sparse){ .object = { 1, drop_parts }, .layout = layout, .coalesced = coalesced };
        s->index[0] = lc_tensor_alias(index[0], true);
        s->index[1] = index[1] ? lc_tensor_alias(index[1], true) : NULL;
        s->values = lc_tensor_alias(values, true);
    }
    bool       whole = cell && s->index[0] && (s->index[1] || !index[1]) && s->values;
    lc_tensor *t = whole && ndim <= LC_MAX_DIMS ? lc_tensor_on(&shared, (lc_dtype)values->dtype, ndim, shape, stride, 0) : NULL;
    if (t) {
        *cell = (lc_version_cell){ .refs = 1 };
        t->cell = cell, t->sparse = s, t->device = values->device;
        t->is_contiguous = false, t->flags |= LC_SPARSE;
        return t;
    }
    if (whole && ndim > LC_MAX_DIMS) lc_fail(LC_ValueError, "%d dimensions: at most %d are supported", ndim, LC_MAX_DIMS);
    if (cell) drop_parts(&s->object), lc_free(cell, sizeof *cell);
    else lc_free(s, sizeof *s);
    return NULL;
}
