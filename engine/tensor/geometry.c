/* Shapes, strides, memory formats and overlap: everything about layout that reads no element. */
#include "iter.h"
#include <string.h>

int64_t lc_numel_of(int ndim, const int64_t *shape)
{
    int64_t n = 1;
    for (int d = 0; d < ndim; d++) {
        if (shape[d] < 0)
            return lc_fail_int(LC_ShapeMismatch, "Trying to create tensor with negative dimension %lld: %s",
                               (long long)shape[d], LC_SIZES(shape, ndim));
        if (shape[d] == 0) return 0;
        if (__builtin_mul_overflow(n, shape[d], &n))
            return lc_fail_int(LC_OutOfMemory, "the size %s overflows", LC_SIZES(shape, ndim));
    }
    return n;
}

void lc_contiguous_strides(int ndim, const int64_t *shape, int64_t *stride)
{
    int64_t n = 1;
    for (int d = ndim - 1; d >= 0; d--) {
        stride[d] = n;
        n *= shape[d] > 1 ? shape[d] : 1;
    }
}

/* Channels last: dimension 1 is innermost, then the spatial ones from the last, then the batch. */
static void channels_last_strides(int ndim, const int64_t *shape, int64_t *stride)
{
    int64_t n = 1;
    stride[1] = n, n *= shape[1] > 1 ? shape[1] : 1;
    for (int d = ndim - 1; d >= 2; d--) stride[d] = n, n *= shape[d] > 1 ? shape[d] : 1;
    stride[0] = n;
}

int lc_format_strides(lc_memory_format format, int ndim, const int64_t *shape, int64_t *stride)
{
    if (format == LC_CHANNELS_LAST && ndim != 4)
        return lc_fail_int(LC_ShapeMismatch, "required rank 4 tensor to use channels_last format");
    if (format == LC_CHANNELS_LAST_3D && ndim != 5)
        return lc_fail_int(LC_ShapeMismatch, "required rank 5 tensor to use channels_last_3d format");
    if (format == LC_CHANNELS_LAST || format == LC_CHANNELS_LAST_3D) channels_last_strides(ndim, shape, stride);
    else lc_contiguous_strides(ndim, shape, stride);
    return 0;
}

bool lc_is_contiguous_in(const lc_tensor *t, lc_memory_format format)
{
    int64_t stride[LC_MAX_DIMS];
    bool    last = format == LC_CHANNELS_LAST || format == LC_CHANNELS_LAST_3D;
    if (!last) return t->is_contiguous;
    if (t->ndim != (format == LC_CHANNELS_LAST ? 4 : 5)) return false;
    channels_last_strides(t->ndim, t->shape, stride);
    for (int d = 0; d < t->ndim; d++)
        if (t->shape[d] != 1 && t->stride[d] != stride[d]) return false;
    return true;
}

/* Dimensions larger than one from the innermost outwards, by stride. */
static int by_stride(const lc_tensor *t, int *order)
{
    int n = 0;
    for (int d = 0; d < t->ndim; d++) {
        if (t->shape[d] == 1) continue;
        int i = n++;
        for (; i && t->stride[order[i - 1]] > t->stride[d]; i--) order[i] = order[i - 1];
        order[i] = d;
    }
    return n;
}

bool lc_is_dense(const lc_tensor *t)
{
    int     order[LC_MAX_DIMS], n;
    int64_t expected = 1;
    if (t->is_contiguous || t->numel <= 1) return true;
    n = by_stride(t, order);
    for (int i = 0; i < n; i++) {
        if (t->stride[order[i]] != expected) return false;
        expected *= t->shape[order[i]];
    }
    return true;
}

/* PyTorch's infer_dense_strides: t's order of dimensions, without gaps. */
void lc_strides_like(const lc_tensor *t, int64_t *stride)
{
    if (lc_is_dense(t)) memcpy(stride, t->stride, (size_t)t->ndim * sizeof *stride);
    else lc_output_strides(&(lc_tensor *){ (lc_tensor *)t }, 1, t->ndim, t->shape, stride);
}

bool lc_overlaps_itself(const lc_tensor *t)
{
    int     order[LC_MAX_DIMS], n;
    int64_t reach = 0; /* the furthest element the inner dimensions touch */
    if (t->is_contiguous || t->numel <= 1) return false;
    n = by_stride(t, order);
    for (int i = 0; i < n; i++) {
        if (t->stride[order[i]] <= reach)
            return true; /* sufficient for strides we call harmless; exotic ones count as overlapping */
        reach += t->stride[order[i]] * (t->shape[order[i]] - 1);
    }
    return false;
}

static void byte_range(const lc_tensor *t, const char **first, const char **end)
{
    int64_t last = 0;
    for (int d = 0; d < t->ndim; d++) last += (t->shape[d] - 1) * t->stride[d];
    *first = t->data;
    *end = t->data + (last + 1) * lc_size_of(t->dtype);
}

/* Whether steps of these lengths, each taken low..high times, can add up to `distance`. Longest steps first, and of each
 * only the counts that shorter steps can compensate: for views of one tensor that is one or two. After too many tries the
 * answer is yes. */
typedef struct {
    int64_t length, low, high;
} steps;
enum { PATIENCE = 1 << 12 };

static bool adds_up(const steps *s, int n, int64_t distance, int *tries)
{
    int64_t low = 0, high = 0;
    if (n == 0) return distance == 0;
    if (++*tries > PATIENCE) return true;
    for (int i = 1; i < n; i++) low += s[i].length * s[i].low, high += s[i].length * s[i].high;
    int64_t down = distance - high, up = distance - low; /* what s[0] has to reach, from .. to */
    int64_t first = down >= 0 ? (down + s->length - 1) / s->length : -(-down / s->length);
    int64_t last = up >= 0 ? up / s->length : -((-up + s->length - 1) / s->length);
    first = first > s->low ? first : s->low, last = last < s->high ? last : s->high;
    for (int64_t k = first; k <= last; k++)
        if (adds_up(s + 1, n - 1, distance - k * s->length, tries)) return true;
    return false;
}

static int add_steps(steps *s, int n, const lc_tensor *t, int sign)
{
    for (int d = 0; d < t->ndim; d++) {
        int64_t last = t->shape[d] - 1, length = t->stride[d];
        int     i = 0;
        if (last == 0 || length == 0) continue;
        while (i < n && s[i].length > length) i++;
        if (i == n || s[i].length != length) {
            memmove(s + i + 1, s + i, (size_t)(n++ - i) * sizeof *s);
            s[i] = (steps){ .length = length };
        }
        *(sign > 0 ? &s[i].high : &s[i].low) += sign * last;
    }
    return n;
}

/* Whether two views whose ranges of memory meet have an element in common: x[:, 1:] and x[:, :1] do not. */
static bool share_elements(const lc_tensor *a, const lc_tensor *b)
{
    steps   s[2 * LC_MAX_DIMS + 1];
    int     n, tries = 0;
    int64_t size = (int64_t)lc_size_of(a->dtype), bytes = b->data - a->data;
    if (size != (int64_t)lc_size_of(b->dtype) || bytes % size) return true;
    n = add_steps(s, 0, a, 1);
    return adds_up(s, add_steps(s, n, b, -1), bytes / size, &tries);
}

static bool same_walk(const lc_tensor *a, const lc_tensor *b) /* the same sizes and strides, but for dimensions of size 1 */
{
    int i = 0, j = 0;
    for (;; i++, j++) {
        while (i < a->ndim && a->shape[i] == 1) i++;
        while (j < b->ndim && b->shape[j] == 1) j++;
        if (i == a->ndim || j == b->ndim) return i == a->ndim && j == b->ndim;
        if (a->shape[i] != b->shape[j] || a->stride[i] != b->stride[j]) return false;
    }
}

lc_overlap lc_overlap_of(const lc_tensor *a, const lc_tensor *b)
{
    const char *a0, *a1, *b0, *b1;
    if (!a->data || !b->data || !a->numel || !b->numel || !lc_same_device(a->device, b->device)) return LC_OVERLAP_NONE;
    if (a->storage != b->storage && a->storage && b->storage && !a->storage->deleter && !b->storage->deleter)
        return LC_OVERLAP_NONE;
    byte_range(a, &a0, &a1);
    byte_range(b, &b0, &b1);
    if (a1 <= b0 || b1 <= a0) return LC_OVERLAP_NONE;
    if (a0 == b0 && a->dtype == b->dtype && same_walk(a, b)) return LC_OVERLAP_FULL;
    if (lc_is_dense(a) && lc_is_dense(b)) return LC_OVERLAP_PARTIAL;
    return share_elements(a, b) ? LC_OVERLAP_UNKNOWN : LC_OVERLAP_NONE;
}
