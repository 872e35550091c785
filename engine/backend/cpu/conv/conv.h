/* What the files of convolution share: the tiles that compute (one set per instruction set), and strips, the form in which they read images. */
#pragma once
#include "../cpu.h"
#include "../strategy.h"
#include "../../args.h"

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t pieces(int64_t n, int64_t size) { return (n + size - 1) / size; }

enum { CONV_MAX_ROWS = 14, CONV_SLACK = 128, CONV_DOTS = 4, CONV_POINTS = 8 };

/* rows x columns of the result: out[i][j] = start[i] or what is there, plus the sum over channels and taps of a (channels, taps, rows) times x
 * (channels) at offset[tap] + j. rows and columns are contiguous; what is read past the end of the strip is its slack. Tiles `apart` are less in
 * order: rows of a are a_row apart, taps at a_offset[tap], vectors of columns x_step apart. */
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
/* out (rows, columns) = sums over n elements (a multiple of the vector) of rows of a, a_step apart, times x at offset[column]. */
typedef struct {
    void (*run)(int64_t n, const void *a, int64_t a_step, const void *x, const int64_t *offset, void *out);
    int rows, columns;
} conv_dot_fn;
/* out (rows, columns) = start + the taps a (row_taps, column_taps) over one plane (height, width); first .. past: columns of which no tap leaves
 * the plane, at least a vector of them. */
typedef struct {
    const void    *a, *x, *start, *low, *high; /* low, high: of the memory that x is in */
    void          *out;
    int64_t        x_row, out_row, height, width, rows, columns, row_taps, column_taps, first, past;
    const int64_t *row_offset, *column_offset;
} conv_plane;
typedef struct {
    conv_tile_fn tile[CONV_MAX_ROWS],
        apart[CONV_MAX_ROWS]; /* by rows - 1. apart: of 5/7 as many rows as there can be, or more */
    conv_dot_fn dot[CONV_DOTS];
    void (*plane)(const conv_plane *p);
    void (*plane_dots)(const conv_plane *p); /* a gradient a (rows, columns), out_row apart: out (3, 3) = that of the kernel */
    int rows, lanes;                         /* the most rows of a tile; elements of a vector */
} conv_kernels;
typedef struct {
    conv_kernels f32, f64;
} lc_conv_tiles;
const conv_kernels *conv_kernels_of(lc_dtype dtype);

/* Values at points instead of tiles of 4 elements of a row (conv_winograd_transform.isa.o3.c). Rows of values are `step` elements apart; what is read and written past
 * `tiles` fills a vector. */
typedef struct {
    int points;
    void (*spread)(const float *line, const float *next, int64_t tiles, float *to, int64_t step);
    bool (*gather)(const float *from, int64_t step, int64_t tiles, float start, float *line, int64_t columns,
                   bool stream); /* whether all is finite. stream: past the cache; a fence follows */
    void (*spread_images)(const float *const *column, int64_t tiles, int64_t images, float *to, int64_t step);
    bool (*gather_images)(const float *from, int64_t step, int64_t columns, int64_t images, float start, float *to);
    void (*weigh)(const float (*tap)[16], int rows, float *to, int64_t step);
    void (*spread_slopes)(const float *const *column, int64_t tiles, int64_t images, float *to,
                          int64_t step);                         /* gather's transpose: 4 columns of a tile to the values */
    bool (*weigh_back)(const float *from, int64_t n, float *to); /* (points, n) to (n, taps): weigh's; whether all is finite */
    void (*halve)(const float *from, int64_t n, float *to);      /* every second element */
    void (*fence)(void);
} conv_points;
const conv_points *conv_points_of(int64_t taps); /* of a row; NULL: not for as many */

/* A tensor (n, channels, ...) whose missing dimensions have size one. Strides in elements. */
typedef struct {
    char          *data, *begin, *end; /* begin, end: of its memory */
    lc_dtype       dtype;
    int64_t        n, channels, n_step, channel_step, size[3], step[3];
    int64_t        shifts; /* not 0: rows of results are so many for each channel, the places of which differ by shift */
    const int64_t *shift;
} conv_image;
conv_image conv_image_of(const lc_tensor *t, int dims);

/* Element t of the result's grid (count) meets element t * step + offset of the image, for each tap of a dimension. A tap is split into a phase
 * and a shift: offset = shift * step + residue[phase]. */
typedef struct {
    int64_t  taps, count, step, phases, shift_min, shift_max;
    int64_t *offset, *at, *shift, *phase, *residue; /* at: the tap's number in the kernel. taps of each */
} conv_axis;
static inline int64_t spread_of(const conv_axis *a) { return a->shift_max - a->shift_min; }
int  conv_axis_init(conv_axis *a, int64_t kernel, int64_t count, int64_t step); /* room for `kernel` taps; -1: no memory */
void conv_axis_add(conv_axis *a, int64_t offset, int64_t at);
void conv_axis_free(conv_axis *a, int64_t kernel);

/* A part of the grid: one place of the first dimension, rows of the second, columns of the third. */
typedef struct {
    int64_t plane, row, rows, column, columns;
} conv_part;
typedef struct { /* how a part lies in memory: rows `pitch` apart, so that one flat index runs through all of them */
    int64_t pitch, lead, plane_size, channel_size, first,
        flat; /* first: column of the first element kept. flat: grid elements, gaps included */
} conv_layout;
typedef struct {
    conv_axis axis[3];
    int64_t   taps, planes;
} conv_grid;
void    conv_lay_out(const conv_grid *g, const conv_image *x, const conv_part *part, conv_layout *to, int64_t *offset);
int64_t conv_strip_size(const conv_grid *g, int64_t rows, int64_t columns); /* the most elements that a channel takes */
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
    int64_t             size, groups, rows, channels;     /* rows, channels: of a group, of the result and of the source */
    int64_t             tiles, tile_block, channel_block; /* tiles: of all rows */
    int64_t strip_rows, strip_columns, strips_down, strips_across, row_cost; /* row_cost: multiply-adds per row of the grid */
    int64_t weight_group, weight_row, weight_channel, weight_tap[3];         /* steps in the weights, in elements */
    const char *weight, *bias;
    char       *packed;
    const bool *only;   /* per image: whether it is computed; NULL: all are */
    bool        by_tap; /* a sum per tap, then their sum */
    atomic_int  failed;
} conv_job;
static inline int64_t conv_tile_start(const conv_job *j, int64_t tile) { return j->rows * tile / j->tiles; }
char                 *conv_target(const conv_image *to, const conv_part *part, int64_t n, int64_t row);
/* Tiles along `flat` columns. to: where whole ones may go at once, its rows to_step elements apart; NULL: nowhere. Returns how many columns did. */
int64_t conv_run_tile(const conv_kernels *kernels, int64_t size, conv_tile *tile, int64_t rows, int64_t flat, char *to,
                      int64_t to_step);
int64_t conv_padded(const conv_kernels *kernels, int64_t rows, int64_t flat); /* columns that they write */
int64_t conv_cut(int64_t n, int64_t most); /* n in equal pieces of at most so many: the size of a piece */
/* Fewer multiplications where kernels have 3 to 5 taps in a row. `again`: images with results that are not finite, to be computed plainly. LC_DECLINED
 * if it is not worth it, -1 if there is no memory. */
int  conv_winograd(const conv_job *job, bool *again);
int  conv_transpose_phases(const conv_job *like, const conv_window *window, const int64_t *kernel, bool *again); /* the same */
void conv_prepare(conv_job *j); /* tiles and cuts, of a job whose axes, rows and channels are known */

bool conv_suits_interleaved(const conv_job *job);
int  conv_interleaved(const conv_job *job); /* -1: no memory */

/* What gradients of weights begin with: fields of a job. */
#define CONV_SIDES(type, a)                                                                                                    \
    .dtype = type, .size = lc_size_of(type), .groups = (a)->groups, .image = conv_image_of((a)->image, (a)->dims),             \
    .grad = conv_image_of((a)->result, (a)->dims), .rows = (a)->result->shape[1] / (a)->groups,                                \
    .channels = (a)->image->shape[1] / (a)->groups
/* The grid of the result, from the image's point of view. */
int  conv_forward_axes(const lc_conv_args *a, conv_axis *axis, const int64_t *count);
void conv_free_axes(const lc_conv_args *a, conv_axis *axis);
int  conv_direct(const lc_conv_args *a, bool transposed);     /* int64 */
void conv_mend_border(const lc_conv_args *a, lc_dtype dtype); /* of a transposed convolution with weights that are not finite */
/* Strategies for the gradient of weights, in order of preference (conv_weight.c); LC_DECLINED: does not suit. */
int conv_weight_winograd(lc_dtype dtype, const lc_conv_args *a,
                         const conv_axis *axis); /* many small images; declines results that are not finite */
int conv_weight_depthwise(lc_dtype dtype, const lc_conv_args *a, const conv_axis *axis); /* a kernel of 3 x 3 per channel */
int conv_weight_im2col(lc_dtype dtype, const lc_conv_args *a, const conv_axis *axis);    /* small images */
int conv_weight_outer(lc_dtype dtype, const lc_conv_args *a, const conv_axis *axis);     /* products of pixels */
