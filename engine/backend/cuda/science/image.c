/* Interpolation, grid sampling and fractional pooling: args.h's calls as they are, a thread per result or position. */
#include "../driver.h"
#include "science.h"

typedef struct {
    void   *out, *in;
    int64_t planes, inner, size[3], result[3];
    double  scale[3];
    int     mode, align_corners;
} interpolate_args;
CUDA_BODY(interpolate);
static int interpolate(UNUSED lc_op_id op, lc_dtype dtype, const void *args)
{
    const lc_interpolate_args *a = args;
    interpolate_args           p = { a->out->data, a->in->data,          a->planes,
                                     a->inner,     .mode = (int)a->mode, .align_corners = a->align_corners };
    cuda_program q = { &interpolate_body, "forward", .type = { CUDA_TYPE(dtype), CUDA_TYPE(dtype == LC_f64 ? LC_f64 : LC_f32) },
                       .variant = 1 };
    int64_t      results = a->planes * a->inner;
    for (int d = 0; d < 3; d++)
        p.size[d] = a->size[d], p.result[d] = a->result[d], p.scale[d] = a->scale[d], results *= a->result[d];
    if (!lc_is_floating(dtype)) { /* PYTORCH-QUIRK: of bytes, CUDA interpolates by the nearest element only */
        if (a->mode > LC_NEAREST_EXACT) return LC_NO_KERNEL;
        q.kernel = "copy", q.variant = 0;
    }
    if (!a->out->numel) return 0;
    if (cuda_use(a->out->device.index) < 0) return -1;
    if (a->backward) {
        if (a->ordered) return q.kernel = "gather", cuda_map(&q, a->out->numel, &p);
        if (cuda_zero(a->out) < 0) return -1;
        q.kernel = "backward";
    }
    return cuda_map(&q, results, &p);
}
CUDA_RUN(_interpolate, interpolate, CUDA_F32_F64 | 1u << LC_u8)
CUDA_RUN(_interpolate_backward, interpolate, CUDA_F32_F64)

typedef struct {
    void   *out, *d_image, *d_grid, *image, *grid, *grad;
    int64_t images, channels, positions, size[3];
    int     axes, mode, padding, align_corners;
} grid_args;
CUDA_BODY(grid_sample);
#define DATA(t) ((t) ? (t)->data : NULL)
static int grid_sample(UNUSED lc_op_id op, lc_dtype dtype, const void *args)
{
    const lc_grid_args *a = args;
    grid_args           p = { DATA(a->out),  DATA(a->d_image), DATA(a->d_grid), DATA(a->image),  a->grid->data,
                              DATA(a->grad), a->images,        a->channels,     a->positions,    { a->size[0], a->size[1], a->size[2] },
                              a->axes,       (int)a->mode,     (int)a->padding, a->align_corners };
    cuda_program        q = { &grid_sample_body, "sample", .type = { CUDA_TYPE(dtype) } };
    int64_t             n = a->images * a->positions;
    if (cuda_use(a->grid->device.index) < 0) return -1;
    if (a->out) return a->out->numel ? cuda_map(&q, n, &p) : 0;
    if (a->d_image && cuda_zero(a->d_image) < 0) return -1;
    if (a->d_image && (q.kernel = "image_slope", cuda_map(&q, n, &p) < 0)) return -1;
    return a->d_grid && a->d_grid->numel ? (q.kernel = "grid_slope", cuda_map(&q, n, &p)) : 0;
}
CUDA_RUN(_grid_sample, grid_sample, CUDA_F32_F64)
CUDA_RUN(_grid_sample_backward, grid_sample, CUDA_F32_F64)

typedef struct {
    void   *out, *index, *in, *samples;
    int64_t planes, size[3], result[3], kernel[3];
    int     dims;
} fractional_args;
CUDA_BODY(fractional_pool);
static int fractional_pool(UNUSED lc_op_id op, lc_dtype dtype, const void *args)
{
    const lc_pool_args *a = args;
    fractional_args     p = { a->out->data,     a->index->data, a->in->data,
                              a->samples->data, a->planes,      .dims = (int)a->samples->shape[2] };
    cuda_program        q = { &fractional_pool_body, "pool", .type = { CUDA_TYPE(dtype), CUDA_TYPE(a->samples_dtype) } };
    for (int d = 0; d < 3; d++) p.size[d] = a->size[d], p.result[d] = a->result[d], p.kernel[d] = a->kernel[d];
    if (!a->out->numel) return 0;
    return cuda_use(a->out->device.index) < 0 ? -1 : cuda_map(&q, a->out->numel, &p);
}
CUDA_RUN(_fractional_max_pool, fractional_pool, CUDA_F32_F64)
