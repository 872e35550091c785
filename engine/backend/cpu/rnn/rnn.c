/* Recurrent layers, one direction over all steps: weights are packed once per call, threads share sequences, and
 * rnn_steps.isa.o3.c runs RNN_ROWS of them at a time from the first step to the last.
 *
 * Bound: a step needs the state of the previous step, so its product, (sequences, h) x (h, gates h), is skinny and is
 * repeated at every step with the same weights. Everything that does not depend on a state is hoisted: the op computes the
 * inputs' part of the gates as one product over all steps beforehand, and the gradients of the weights afterwards. What is
 * left here is at best arithmetic: gates h h multiply-adds per row and step, plus five exponentials per cell of an LSTM,
 * three of a GRU, one of a plain unit.
 *
 * Tiles: a task has eight sequences. That is enough rows to use a loaded weight vector several times (tiles are 6 x 4
 * vectors of 512 bits), and few enough that their state and gates, 8 (4 + 3) h numbers, stay in L1 from a product to the
 * activations after it. The weights are transposed once, to (h, gates h), with rows zero-padded to 64 numbers: a product
 * reads whole vectors and has no tail, and the activations are one loop over a row. The weights are read again at each step,
 * from L2 while they fit there (an LSTM of h = 200 has 640 KB). Threads share sequences and never wait for each other; task
 * bounds depend on shapes alone.
 *
 * Fraction of the peak of a core, 118 GFLOP/s, counting the product of the inputs too (float32, 16 sequences, 32 steps, best
 * of 20 runs beside other work): LSTM 61 % with 32 inputs and h = 64, 76 % with 128 and 128; GRU 63 and 75 %, plain units 61
 * and 76 %. We have not measured how much of the rest is due to the activations, and how much to the two-row tiles that
 * eight rows leave (6 + 2).
 *
 * Rejected: a product per sequence, which would read the weights eight times as often; all sequences step by step, with a
 * barrier after each step; weights in panels, since the padded rows already are the only panel. */
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

/* A matrix (rows x columns), transposed or not, with zero-padded rows. */
static void pack_weight(char *to, int64_t step, const lc_tensor *w, bool transposed, int64_t size)
{
    int64_t rows = w->shape[0], columns = w->shape[1];
    memset(to, 0, (size_t)((transposed ? columns : rows) * step * size));
    if (transposed) lc_cpu_moves.transpose[size == 8](to, step * size, w->data, columns * size, columns, rows, false);
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
    char   *memory = cpu_scratch(bytes);
    if (!memory) return lc_fail_int(LC_OutOfMemory, "recurrent layer: no memory for its weights");
    int64_t *starts = (int64_t *)(memory + weight_bytes + project_bytes);
    for (int64_t t = 0; t < a->steps; t++) starts[t] = rows, rows += a->sizes[t];
    pack_weight(memory, weight_row, a->weight, !backward, size);
    if (a->project) pack_weight(memory + weight_bytes, project_row, a->project, !backward, size);
    job.plan.weight = memory, job.plan.project = memory + weight_bytes, job.plan.starts = starts;
    job.run = (backward ? rnns_of_this_cpu()->backward : rnns_of_this_cpu()->forward)[dtype == LC_f64];
    job.bytes = (size_t)(rnn_scratch(a) * size);
    int64_t each = (rows / (a->batch ? a->batch : 1) + 1) * width * (a->p + 16) * RNN_ROWS, grain = (1 << 19) / (each + 1) + 1;
    cpu_parallel(a->batch, grain * RNN_ROWS, rows * width * a->p / 8, rnn_chunk, &job);
    cpu_scratch_free(memory, bytes);
    return job.failed ? lc_fail_int(LC_OutOfMemory, "recurrent layer: no memory for its steps") : 0;
}
static int cpu_recurrence(lc_dtype dtype, const void *args) { return run_sequences(dtype, args, false); }
static int cpu_recurrence_backward(lc_dtype dtype, const void *args) { return run_sequences(dtype, args, true); }
#define FLOATS (1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(_recurrence, cpu_recurrence, FLOATS)
LC_CPU_RUN(_recurrence_backward, cpu_recurrence_backward, FLOATS)
