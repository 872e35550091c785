/* multilabel_margin_loss and its gradient: rows are independent. */
#include "loss.h"
#include "../cpu.h"
#include "../../args.h"
#include <string.h>

typedef struct {
    const lc_multilabel_margin_args *a;
    lc_dtype                         dtype;
    int64_t                          classes;
    atomic_int                       failed;
} label_job;

/* Pairs (label, non-label class). With a gradient, a pair that violates the margin moves both scores. */
static void label_row(const label_job *j, int64_t row, bool *is_label)
{
    const lc_multilabel_margin_args *a = j->a;
    int64_t                          classes = j->classes;
    const int64_t                   *label = (const int64_t *)a->target->data + row * classes;
    const char                      *x = a->in->data + row * classes * lc_size_of(j->dtype);
    char                            *out = a->out->data + (a->grad ? row * classes * lc_size_of(j->dtype) : 0);
    double                           sum = 0, g = a->grad ? number_at(j->dtype, a->grad->data, row) / (double)classes : 0;
    int64_t                          labels = 0;
    memset(is_label, 0, (size_t)classes);
    while (labels < classes && label[labels] >= 0) is_label[label[labels++]] = true;
    if (a->grad) memset(out, 0, (size_t)classes * (size_t)lc_size_of(j->dtype));
    for (int64_t k = 0; k < labels; k++) {
        double score = number_at(j->dtype, x, label[k]), pulled = 0;
        for (int64_t c = 0; c < classes; c++) {
            double lack = 1 - score + number_at(j->dtype, x, c);
            if (is_label[c] || !(lack > 0)) continue;
            sum += lack, pulled += g;
            if (a->grad) set_number(j->dtype, out, c, number_at(j->dtype, out, c) + g);
        }
        if (a->grad) set_number(j->dtype, out, label[k], number_at(j->dtype, out, label[k]) - pulled);
    }
    if (!a->grad) set_number(j->dtype, out, row, sum / (double)classes);
}
static void label_chunk(void *ctx, int64_t begin, int64_t end)
{
    label_job *j = ctx;
    bool      *is_label = cpu_scratch((size_t)j->classes);
    if (!is_label) {
        j->failed = 1;
        return;
    }
    for (int64_t row = begin; row < end; row++) label_row(j, row, is_label);
    cpu_scratch_free(is_label, (size_t)j->classes);
}
static int cpu_multilabel_margin(lc_dtype dtype, const void *args)
{
    const lc_multilabel_margin_args *a = args;
    const int64_t                   *target = (const int64_t *)a->target->data;
    int64_t                          rows = a->in->shape[0], classes = a->in->shape[1];
    label_job                        j = { .a = a, .dtype = dtype, .classes = classes };
    for (int64_t k = 0; k < rows * classes; k++)
        if (target[k] < -1 || target[k] >= classes)
            return lc_fail_int(LC_IndexError, "multilabel_margin_loss: argument target is out of range: %lld",
                               (long long)target[k]);
    if (rows && classes) cpu_parallel(rows, CPU_GRAIN / classes + 1, rows * classes * 8, label_chunk, &j);
    return j.failed ? lc_fail_int(LC_OutOfMemory, "multilabel_margin_loss: no memory for %lld classes", (long long)classes) : 0;
}
LC_CPU_RUN(_multilabel_margin, cpu_multilabel_margin, 1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(_multilabel_margin_backward, cpu_multilabel_margin, 1u << LC_f32 | 1u << LC_f64)
