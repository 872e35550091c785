/* resize in place. The tensor keeps the values in its memory; new memory is uninitialised. */
#include "../rules.h"

static int resize(lc_tensor *x, int ndim, const int64_t *shape, const lc_value *format)
{
    int64_t stride[LC_MAX_DIMS];
    bool    same = ndim == x->ndim && lc_same_sizes(shape, x->shape, ndim);
    if (x->flags & LC_REQUIRES_GRAD) return lc_fail_int(LC_LucidError, "cannot resize variables that require grad");
    if (format->tag == LC_IS_format && format->fmt == LC_PRESERVE_FORMAT)
        return lc_fail_int(LC_LucidError, "Unsupported memory format preserve_format");
    if (ndim > LC_MAX_DIMS) return lc_fail_int(LC_ShapeMismatch, "%d dimensions: at most %d are supported", ndim, LC_MAX_DIMS);
    if (lc_numel_of(ndim, shape) < 0) return -1;
    if (format->tag == LC_IS_format && lc_format_strides(format->fmt, ndim, shape, stride) < 0) return -1;
    if (!same && lc_tensor_resize(x, ndim, shape) < 0) return -1;
    if (format->tag != LC_IS_format) return 0;
    lc_tensor *seen = lc_tensor_view(x, ndim, shape, stride, 0);
    int        rc = seen ? lc_tensor_become(x, seen) : -1;
    return lc_release(seen), rc;
}

static int resize__call(const lc_value *in, lc_tensor **out)
{
    if (resize(in(0), in[1].n, in[1].is, &in[2]) < 0) return -1;
    lc_bump_version(in(0));
    return *out = in(0), 0;
}
LC_OP(resize_, .sig = "resize_(input: Tensor, size: list[int], *, memory_format: memory_format | None = None) -> Tensor",
      .doc = "Give the tensor another size, with more memory if it needs it.", .method = true, .function = false,
      .writes = IN(0), .call = resize__call);

static int resize_as__call(const lc_value *in, lc_tensor **out)
{
    lc_value like = in[2];
    if (like.tag == LC_IS_format && like.fmt == LC_PRESERVE_FORMAT) { /* the template's, if it is one of the formats */
        like.fmt = lc_is_contiguous_in(in(1), LC_CONTIGUOUS_FORMAT)                      ? LC_CONTIGUOUS_FORMAT
                   : in(1)->ndim == 4 && lc_is_contiguous_in(in(1), LC_CHANNELS_LAST)    ? LC_CHANNELS_LAST
                   : in(1)->ndim == 5 && lc_is_contiguous_in(in(1), LC_CHANNELS_LAST_3D) ? LC_CHANNELS_LAST_3D
                                                                                         : LC_CONTIGUOUS_FORMAT;
    }
    if (resize(in(0), in(1)->ndim, in(1)->shape, &like) < 0) return -1;
    lc_bump_version(in(0));
    return *out = in(0), 0;
}
LC_OP(resize_as_,
      .sig = "resize_as_(input: Tensor, the_template: Tensor, *, memory_format: memory_format | None = None) -> Tensor",
      .doc = "Give the tensor the size of another.", .method = true, .writes = IN(0), .any_device = IN(1),
      .call = resize_as__call);
