/* Recurrent layers, one direction over all steps: weights are laid out once per call, sequences are shared between threads, and rnn_steps.isa.o3.c
 * runs RNN_ROWS of them at a time from the first step to the last.
 *
 * What bounds it. A step needs the state of the step before, so its product, (sequences, h) x (h, gates h), is skinny, and it comes again at every
 * step with the same weights. All that does not depend on a state is taken out: the inputs' part of the gates is one product over all steps,
 * made by the op before, and so are the gradients of the weights after. What is left here is at best arithmetic: gates h h multiply-adds a row
 * and step, and beside them five exponentials per cell of an LSTM, three of a GRU, one of a plain unit.
 *
 * Tiles. A task has eight sequences: enough rows that a vector of weights is used several times once it is loaded (tiles are 6 x 4 vectors of 512
 * bits), few enough that their state and gates, 8 (4 + 3) h numbers, stay in L1 from a product to the functions behind it. The weights are
 * turned once, (h, gates h), and their rows padded with zeros to 64 numbers: a product reads whole vectors and has no tail, and the functions are
 * one loop over a row. They are read anew at each step, from L2 while they fit there (an LSTM of h = 200 has 640 KB). Threads share
 * sequences and never wait for each other; where tasks are cut depends on shapes alone.
 *
 * Of the peak of a core, 118 GFLOP/s, counting the product of the inputs too (float32, 16 sequences, 32 steps, best of 20 runs beside other
 * work): LSTM 61 % with 32 inputs and h = 64, 76 % with 128 and 128; GRU 63 and 75 %, plain units 61 and 76 %. How much of the rest are the
 * functions, and how much the tiles of two rows that eight rows leave (6 + 2), has not been taken apart.
 *
 * Not done: a product per sequence, which would read the weights eight times as often; all sequences step by step, at which threads would have to
 * meet after each; weights in panels, of which the padded rows are already the only one. */
#include "../cpu.h"
#include "rnn.h"
#include <string.h>

ISA_TABLE(const lc_rnns, rnns)

typedef struct {
    rnn_plan   plan;
    lc_rnn_run run;
    size_t     bytes;
    atomic_int failed;
} rnn_job;
static void rnn_chunk(void *ctx, int64_t begin, int64_t end)
{
    rnn_job *job = ctx;
    void    *scratch = cpu_scratch(job->bytes);
    if (!scratch) job->failed = 1;
    for (int64_t b = begin; scratch && b < end; b += RNN_ROWS)
        job->run(&job->plan, b, end - b < RNN_ROWS ? end : b + RNN_ROWS, scratch);
    if (scratch) cpu_scratch_free(scratch, job->bytes);
}

/* A matrix (rows x columns), turned or as it is, with its rows padded with zeros. */
static void lay_out(char *to, int64_t step, const lc_tensor *w, bool turned, int64_t size)
{
    int64_t rows = w->shape[0], columns = w->shape[1];
    memset(to, 0, (size_t)((turned ? columns : rows) * step * size));
    if (turned) lc_cpu_moves.transpose[size == 8](to, step * size, w->data, columns * size, columns, rows, false);
    else
        for (int64_t i = 0; i < rows; i++) memcpy(to + i * step * size, w->data + i * columns * size, (size_t)(columns * size));
}
static int run_sequences(lc_dtype dtype, const lc_rnn_args *a, bool backward)
{
    int64_t size = lc_size_of(dtype), width = rnn_gates(a->kind) * a->h, rows = 0;
    int64_t weight_row = rnn_padded(backward ? a->p : width), project_row = rnn_padded(backward ? a->h : a->p);
    size_t  weight_bytes = (size_t)((backward ? width : a->p) * weight_row * size),
           project_bytes = a->project ? (size_t)((backward ? a->p : a->h) * project_row * size) : 0,
           starts_bytes = (size_t)a->steps * sizeof(int64_t), bytes = weight_bytes + project_bytes + starts_bytes + 64;
    rnn_job job = { .plan = { .args = a, .weight_row = weight_row, .project_row = project_row } };
    char   *room = cpu_scratch(bytes);
    if (!room) return lc_fail_int(LC_OutOfMemory, "recurrent layer: no memory for its weights");
    int64_t *starts = (int64_t *)(room + weight_bytes + project_bytes);
    for (int64_t t = 0; t < a->steps; t++) starts[t] = rows, rows += a->sizes[t];
    lay_out(room, weight_row, a->weight, !backward, size);
    if (a->project) lay_out(room + weight_bytes, project_row, a->project, !backward, size);
    job.plan.weight = room, job.plan.project = room + weight_bytes, job.plan.starts = starts;
    job.run = (backward ? rnns_of_this_cpu()->backward : rnns_of_this_cpu()->forward)[dtype == LC_f64];
    job.bytes = (size_t)(rnn_scratch(a) * size);
    int64_t each = (rows / (a->batch ? a->batch : 1) + 1) * width * (a->p + 16) * RNN_ROWS, grain = (1 << 19) / (each + 1) + 1;
    cpu_parallel(a->batch, grain * RNN_ROWS, rows * width * a->p / 8, rnn_chunk, &job);
    cpu_scratch_free(room, bytes);
    return job.failed ? lc_fail_int(LC_OutOfMemory, "recurrent layer: no memory for its steps") : 0;
}
static int cpu_recurrence(lc_dtype dtype, const void *args) { return run_sequences(dtype, args, false); }
static int cpu_recurrence_backward(lc_dtype dtype, const void *args) { return run_sequences(dtype, args, true); }
#define FLOATS (1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(_recurrence, cpu_recurrence, FLOATS)
LC_CPU_RUN(_recurrence_backward, cpu_recurrence_backward, FLOATS)
