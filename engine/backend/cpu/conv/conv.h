/* What the files of convolution share: the tiles (micro-kernels, one set per instruction set), and strips, the layout in
 * which tiles read images. */
#pragma once
#include "../cpu.h"
#include "../strategy.h"
#include "../../args.h"

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t pieces(int64_t n, int64_t size) { return (n + size - 1) / size; }

enum { CONV_MAX_ROWS = 14, CONV_SLACK = 128, CONV_DOTS = 4, CONV_POINTS = 8 };

/* rows x columns of the result: out[i][j] = (start[i] or the old value) + the sum over channels and taps of a (channels,
 * taps, rows) times x (channels) at offset[tap] + j. rows and columns are contiguous; reads past the end of the strip fall
 * into its slack. `strided` tiles need less order: rows of a are a_row apart, taps at a_offset[tap], column vectors x_step
 * apart. */
typedef struct {
    int64_t        channels, taps, channel_step, out_step, a_channel, a_tap, a_row, x_step; /* in elements */
    const int64_t *offset, *a_offset;
    const void    *a, *x, *start;
    void          *out;
    bool           add;
} conv_tile;
typedef struct {
    void (*wide)(const conv_tile *t); /* columns of them */
    void (*one)(const conv_tile *t);  /* one vector */
    int columns;
} conv_tile_fn;
/* out (rows, columns) = sums over n elements (a multiple of the vector) of rows of a, a_step apart, times x at
 * offset[column]. */
typedef struct {
    void (*run)(int64_t n, const void *a, int64_t a_step, const void *x, const int64_t *offset, void *out);
    int rows, columns;
} conv_dot_fn;
/* out (rows, columns) = start + the taps a (row_taps, column_taps) over one plane (height, width). first .. past: the
 * columns of which no tap leaves the plane, at least one vector. */
typedef struct {
    const void    *a, *x, *start, *low, *high; /* low, high: bounds of the memory that holds x */
    void          *out;
    int64_t        x_row, out_row, height, width, rows, columns, row_taps, column_taps, first, past;
    const int64_t *row_offset, *column_offset;
} conv_plane;
typedef struct {
    conv_tile_fn tile[CONV_MAX_ROWS], strided[CONV_MAX_ROWS]; /* by rows - 1. strided: at least 5/7 of the most rows */
    conv_dot_fn  dot[CONV_DOTS];
    void (*plane)(const conv_plane *p);
    void (*plane_dots)(const conv_plane *p); /* a: gradient (rows, columns), out_row apart; out: that of the 3 x 3 kernel */
    int rows, lanes;                         /* most rows of a tile; lanes of a vector */
} conv_kernels;
/* Results side by side of a depthwise convolution in channels-last order: out[i] (channels) = start + sum over rows of taps
 * and taps k of weight[row] (tap, channel) times the pixel x[row][i * step + k]. At least a vector of channels. */
enum { CONV_PIXELS = 7, CONV_MOST_ACROSS = 7, CONV_MOST_STEP = 2 };
typedef struct {
    const float *const *x, *const *weight, *start;
    float *const *out;
    int64_t       rows, channels;
} conv_pixels;
typedef struct {
    conv_kernels f32, f64;
    void (*pixels[CONV_MOST_STEP][CONV_MOST_ACROSS + 1])(const conv_pixels *p); /* by step - 1 and taps of a row; or NULL */
} lc_conv_tiles;
const conv_kernels  *conv_kernels_of(lc_dtype dtype);
const lc_conv_tiles *conv_tiles_here(void);

/* The Winograd transforms F(4, taps) (conv_winograd_transform.isa.o3.c). Rows of values are `step` elements apart; reads and
 * writes past `tiles` fill up a vector. */
typedef struct {
    int points;
    void (*transform_input)(const float *line, const float *next, int64_t tiles, float *to, int64_t step);
    bool (*transform_output)(
        const float *from, int64_t step, int64_t tiles, float start, float *line, int64_t columns,
        bool stream); /* returns whether all results are finite. stream: bypass the cache; a fence follows */
    void (*transform_input_batch)(const float *const *column, int64_t tiles, int64_t images, float *to, int64_t step);
    bool (*transform_output_batch)(const float *from, int64_t step, int64_t columns, int64_t images, float start, float *to);
    void (*transform_weight)(const float (*tap)[16], int rows, float *to, int64_t step);
    void (*transform_grad)(const float *const *column, int64_t tiles, int64_t images, float *to,
                           int64_t step); /* transposed transform_output */
    bool (*transform_weight_grad)(const float *from, int64_t n,
                                  float *to);                      /* transposed; (points, n) to (n, taps); all finite? */
    void (*every_second)(const float *from, int64_t n, float *to); /* every second element */
    void (*fence)(void);
} conv_points;
const conv_points *conv_points_of(int64_t taps); /* taps per row; NULL if unsupported */

/* A tensor (n, channels, ...) whose missing dimensions have size one. Strides in elements. */
typedef struct {
    char          *data, *begin, *end; /* begin, end: of its memory */
    lc_dtype       dtype;
    int64_t        n, channels, n_step, channel_step, size[3], step[3];
    int64_t        shifts; /* if not 0: result rows per channel, at positions that differ by shift */
    const int64_t *shift;
} conv_image;
conv_image conv_image_of(const lc_tensor *t, int dims);

/* Element t of the output grid (count) meets element t * step + offset of the image, for each tap of a dimension. A tap is
 * split into a phase and a shift: offset = shift * step + residue[phase]. */
typedef struct {
    int64_t  taps, count, step, phases, shift_min, shift_max;
    int64_t *offset, *at, *shift, *phase, *residue; /* at: the tap's index in the kernel. `taps` elements each */
} conv_axis;
static inline int64_t tap_range(const conv_axis *a) { return a->shift_max - a->shift_min; }
int  conv_axis_init(conv_axis *a, int64_t kernel, int64_t count, int64_t step); /* for `kernel` taps; -1: out of memory */
void conv_axis_add(conv_axis *a, int64_t offset, int64_t at);
void conv_axis_free(conv_axis *a, int64_t kernel);

/* A part of the grid: one position of the first dimension, rows of the second, columns of the third. */
typedef struct {
    int64_t plane, row, rows, column, columns;
} conv_part;
typedef struct { /* memory layout of a part: rows `pitch` apart, so that one flat index runs through all of them */
    int64_t pitch, lead, plane_size, channel_size, first,
        flat; /* first: column of the first stored element. flat: grid elements, gaps included */
} conv_layout;
typedef struct {
    conv_axis axis[3];
    int64_t   taps, planes;
} conv_grid;
void    conv_lay_out(const conv_grid *g, const conv_image *x, const conv_part *part, conv_layout *to, int64_t *offset);
int64_t conv_strip_size(const conv_grid *g, int64_t rows, int64_t columns); /* the most elements per channel */
bool conv_is_strip(const conv_grid *g, const conv_image *x, const conv_part *part, int64_t n, int64_t first, int64_t channels,
                   lc_dtype dtype, conv_layout *to, int64_t *offset, char **data);
/* Channels first .. first + channels of image n, converted to `dtype`. */
void conv_fill_strip(const conv_grid *g, const conv_image *x, const conv_part *part, const conv_layout *layout, int64_t n,
                     int64_t first, int64_t channels, lc_dtype dtype, char *to);
void conv_move_row(lc_dtype to, char *dst, int64_t dst_step, lc_dtype from, const char *src, int64_t src_step, int64_t n);
int  conv_no_memory(void);

typedef struct {
    int64_t stride, padding, dilation; /* of a dimension */
} conv_window;
/* A convolution over a grid, prepared. */
typedef struct {
    conv_grid           grid;
    conv_image          from, to;
    const conv_kernels *kernels;
    lc_dtype            dtype;
    int64_t             size, groups, rows, channels;     /* rows, channels: output and input channels per group */
    int64_t             tiles, tile_block, channel_block; /* tiles: of all rows */
    int64_t     strip_rows, strip_columns, strips_down, strips_across, row_cost; /* row_cost: multiply-adds per grid row */
    int64_t     weight_group, weight_row, weight_channel, weight_tap[3];         /* strides of the weights, in elements */
    const char *weight, *bias;
    char       *packed;
    const bool *only;           /* per image: whether to compute it; NULL: all */
    bool        by_tap;         /* one sum per tap, then the sum of those */
    const cpu_epilogue *finish; /* or NULL: every strategy runs it on what it has written */
    atomic_int          failed;
    lc_conv_kept       *kept;
} conv_job;
/* Memory for packed weights: the caller's if it keeps them, else a scratch block. NULL: there is none. */
enum { CONV_PACKED_TILES = 1, CONV_PACKED_POINTS };
void *conv_packed(const conv_job *j, size_t bytes, int form, bool *is_there); /* is_there: the weights are packed already */
void  conv_packed_end(const conv_job *j, void *packed, size_t bytes, int form);
static inline int64_t conv_tile_start(const conv_job *j, int64_t tile) { return j->rows * tile / j->tiles; }
char                 *conv_target(const conv_image *to, const conv_part *part, int64_t n, int64_t row);
/* Tiles along `flat` columns. to: destination for whole tiles, rows to_step elements apart, or NULL. Returns how many
 * columns were written there. */
int64_t conv_run_tile(const conv_kernels *kernels, int64_t size, conv_tile *tile, int64_t rows, int64_t flat, char *to,
                      int64_t to_step);
void    conv_finish_rows(const conv_job *j, char *at, int64_t rows, int64_t columns); /* rows of the result, step[1] apart */
int64_t conv_padded(const conv_kernels *kernels, int64_t rows, int64_t flat);         /* columns that they write */
int64_t conv_cut(int64_t n, int64_t most); /* the piece size when n is cut into equal pieces of at most `most` */
/* Winograd convolution for kernels of 3 to 5 taps in a row. `again` receives the images with non-finite results, to be
 * recomputed by another strategy. LC_DECLINED if it does not pay, -1 if out of memory. */
int  conv_winograd(const conv_job *job, bool *again);
int  conv_transpose_phases(const conv_job *like, const conv_window *window, const int64_t *kernel, bool *again); /* the same */
void conv_prepare(conv_job *j); /* tiles and block sizes of a job whose axes, rows and channels are set */

bool conv_suits_product(const conv_job *job);
int  conv_product(conv_job *job);                                                                   /* -1: out of memory */
int  conv_transpose_product(const conv_job *job, const conv_window *window, const int64_t *kernel); /* or LC_DECLINED */
bool conv_suits_depthwise_last(const conv_job *job);
int  conv_depthwise_last(const conv_job *job); /* -1: out of memory */
bool conv_suits_interleaved(const conv_job *job);
int  conv_interleaved(const conv_job *job); /* -1: out of memory */

/* The common start of all weight gradient jobs: fields of a job. */
#define CONV_SIDES(type, a)                                                                                                    \
    .dtype = type, .size = lc_size_of(type), .groups = (a)->groups, .image = conv_image_of((a)->image, (a)->dims),             \
    .grad = conv_image_of((a)->result, (a)->dims), .rows = (a)->result->shape[1] / (a)->groups,                                \
    .channels = (a)->image->shape[1] / (a)->groups
/* The output grid as seen from the image. */
int  conv_forward_axes(const lc_conv_args *a, conv_axis *axis, const int64_t *count);
void conv_free_axes(const lc_conv_args *a, conv_axis *axis);
int  conv_direct(const lc_conv_args *a, bool transposed); /* int64 */
bool conv_weights_are_finite(const lc_conv_args *a);      /* and known at little cost: then no border is recomputed */
void conv_recompute_border(const lc_conv_args *a,
                           lc_dtype            dtype); /* for a transposed convolution whose weights are not finite */
/* Strategies for the gradient of weights, in order of preference (conv_weight.c); LC_DECLINED: does not suit. */
int conv_weight_winograd(lc_dtype dtype, const lc_conv_args *a,
                         const conv_axis *axis); /* many small images; declines if a result is not finite */
int conv_weight_depthwise_last(lc_dtype dtype, const lc_conv_args *a,
                               const conv_axis *axis); /* a kernel per channel, channels last */
int conv_weight_depthwise(lc_dtype dtype, const lc_conv_args *a, const conv_axis *axis); /* one 3 x 3 kernel per channel */
int conv_weight_im2col(lc_dtype dtype, const lc_conv_args *a, const conv_axis *axis);    /* small images */
int conv_weight_outer(lc_dtype dtype, const lc_conv_args *a, const conv_axis *axis);     /* products of pixels */
