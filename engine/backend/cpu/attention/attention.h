/* Tiles of attention: one set of kernels per instruction set (attention_tiles.isa.o3.c is compiled for each), chosen by
 * attention.c. */
#pragma once
#include "../../args.h"
#include "../kernels.h"

enum { ATTENTION_ROWS = 64, ATTENTION_KEYS = 64 }; /* queries and keys of a tile; multiples of every vector */

/* A matrix of one head as the kernels see it: row r, column c at data + (r row + c col) of dtype's elements. */
typedef struct {
    char    *data;
    int64_t  row, col;
    lc_dtype dtype;
} attention_matrix;

/* The input of a task: one query head (backward: the `group` query heads of one key head, one after the other). */
typedef struct {
    int64_t          l, s, e, ev; /* queries, keys, their width, the values' width */
    double           scale;
    bool             causal;
    attention_matrix q, k, v, out, mask, grad, dq, dk, dv; /* mask (l, s): data NULL if there is none */
    void            *lse, *delta;                          /* (l), of the computing dtype; delta: sums of grad * out */
    void            *workspace;                            /* attention_workspace elements per thread, aligned */
    /* Converts n elements; strides in bytes (cpu.h). */
    void (*move)(lc_dtype to, char *dst, int64_t dst_step, lc_dtype from, const char *src, int64_t src_step, int64_t n);
    lc_transpose transpose; /* of the computing dtype */
} attention_head;

/* Elements of the workspace: widths are rounded up to ATTENTION_KEYS. */
static inline int64_t attention_wide(int64_t width) { return (width + ATTENTION_KEYS - 1) / ATTENTION_KEYS * ATTENTION_KEYS; }
static inline int64_t attention_workspace(int64_t e, int64_t ev)
{
    return ATTENTION_KEYS * (6 * attention_wide(e) + 5 * attention_wide(ev) + 3 * ATTENTION_ROWS + 8);
}

typedef struct {
    void (*rows)(const attention_head *head, int64_t first);                 /* queries first .. first + ATTENTION_ROWS */
    void (*sums)(const attention_head *head);                                /* delta, of all queries */
    void (*keys)(const attention_head *heads, int64_t group, int64_t first); /* dk, dv of keys first .., their part of dq */
} attention_kernels;
typedef struct {
    attention_kernels f32, f64;
} lc_attention;

/* A head of at most ATTENTION_FEW queries and as many columns: q, k, v, out (seq, dim), dense float32. */
enum { ATTENTION_FEW = 64 };
typedef void (*attention_few_fn)(const float *q, const float *k, const float *v, float *out, int64_t seq, int64_t dim,
                                 float scale, bool causal);
/* For callers that have no tensors (bindings/lightning). False: it is larger, or empty. */
bool lc_attention_few(const float *q, const float *k, const float *v, float *out, int64_t seq, int64_t dim, bool causal);
