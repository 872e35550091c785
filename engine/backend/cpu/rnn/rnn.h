/* Recurrent steps: one set of kernels per instruction set (rnn_steps.isa.o3.c is compiled for each), chosen by rnn.c. */
#pragma once
#include "../../args.h"

enum { RNN_ROWS = 8, RNN_PAD = 64 }; /* sequences per task; rows of weights are padded to whole vectors */

typedef struct {
    const lc_rnn_args *args;
    const int64_t     *starts; /* (steps): first row of a step */
    /* Packed weights, rows zero-padded: forward (p, G h) and (h, p), transposed; backward (G h, p) and (p, h). */
    const void *weight, *project;
    int64_t     weight_row, project_row;
} rnn_plan;
static inline int64_t rnn_padded(int64_t n) { return (n + RNN_PAD - 1) / RNN_PAD * RNN_PAD; }
static inline int64_t rnn_gates(lc_rnn_kind kind) { return kind == LC_RNN_LSTM ? 4 : kind == LC_RNN_GRU ? 3 : 1; }
/* Elements of a task's workspace. */
static inline int64_t rnn_scratch(const lc_rnn_args *a)
{
    return RNN_ROWS * (rnn_padded(rnn_gates(a->kind) * a->h) + 3 * rnn_padded(a->h) + 3 * rnn_padded(a->p));
}
/* Sequences begin .. end, at most RNN_ROWS, over all steps. */
typedef void (*lc_rnn_run)(const rnn_plan *plan, int64_t begin, int64_t end, void *scratch);
typedef struct {
    lc_rnn_run forward[2], backward[2]; /* f32, f64 */
} lc_rnns;
