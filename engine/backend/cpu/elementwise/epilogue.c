/* Epilogues: elementwise rows that a kernel runs in place on a piece of its result while that is in the cache. The loops are
 * those of single calls, so the bits are, too. */
#include "../cpu.h"
#include <string.h>

bool lc_cpu_finishes[LC_OP_COUNT];

bool cpu_takes_epilogue(lc_op_id kernel, lc_op_id row, lc_dtype dtype, int n_in)
{
    cpu_row found;
    if (!lc_cpu_finishes[kernel] || (dtype != LC_f32 && dtype != LC_f64) || n_in > LC_EPILOGUE_OPERANDS) return false;
    if (!cpu_row_loop(row, dtype, n_in, false, &found)) return false;
    for (int k = 0; k <= n_in; k++)
        if (found.want[k] != dtype) return false;
    return true;
}

void cpu_epilogue_start(cpu_epilogue *e, const lc_row_epilogue *steps, lc_tensor *const *in, const lc_tensor *out)
{
    lc_dtype dtype = (lc_dtype)out->dtype;
    e->n = steps->n, e->size = lc_size_of(dtype), e->out = out->data;
    for (int i = 0; i < steps->n; i++) {
        const lc_row_epilogue_step *s = &steps->step[i];
        e->step[i].loop = lc_cpu_loops[s->row][dtype], e->step[i].n_in = s->n_in;
        e->step[i].scalars = e->step[i].here = 0;
        for (int k = 0; k < s->n_in; k++) {
            char *number = e->number[i][k];
            if (s->in[k] == LC_EPILOGUE_NUMBER) {
                cpu_move(dtype, number, 0, s->number_dtype[k], s->number[k], 0, 1);
                e->step[i].in[k] = number, e->step[i].scalars |= 1u << k;
            } else if (s->in[k] == LC_EPILOGUE_RESULT) e->step[i].here |= 1u << k;
            else e->step[i].in[k] = in[s->in[k]]->data;
        }
    }
}

void cpu_epilogue_run(const cpu_epilogue *e, char *at, int64_t n)
{
    for (int i = 0; i < e->n; i++) {
        const void *in[LC_EPILOGUE_OPERANDS];
        for (int k = 0; k < e->step[i].n_in; k++)
            in[k] = e->step[i].here >> k & 1      ? at
                    : e->step[i].scalars >> k & 1 ? e->step[i].in[k]
                                                  : e->step[i].in[k] + (at - e->out);
        e->step[i].loop(at, in, e->step[i].scalars, n);
    }
}

typedef struct {
    const cpu_epilogue *e;
    char               *at;
} piece;
static void run_piece(void *ctx, int64_t begin, int64_t end)
{
    enum { TILE = 4096 }; /* stays in the cache from step to step */
    const piece *p = ctx;
    for (int64_t i = begin; i < end; i += TILE) cpu_epilogue_run(p->e, p->at + i * p->e->size, end - i < TILE ? end - i : TILE);
}
void cpu_epilogue_run_all(const cpu_epilogue *e, char *at, int64_t n)
{
    if (n > 0) cpu_parallel(n, CPU_GRAIN, n, run_piece, &(piece){ e, at });
}
