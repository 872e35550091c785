/* What the files of the recurrent layers share. */
#pragma once
#include "../rules.h"

/* _recurrence's arguments, as its gradient and its formula read them. */
enum {
    RNN_GATES,
    RNN_WEIGHT,
    RNN_BIAS,
    RNN_PROJECTION,
    RNN_HX,
    RNN_CX,
    RNN_TENSORS,
    RNN_KIND = RNN_TENSORS,
    RNN_SIZES,
    RNN_REVERSE
};
static inline lc_tensor *rnn_tensor(const lc_value *v) { return v->tag == LC_IS_tensor && v->t != LC_NONE ? v->t : NULL; }
static inline lc_tensor *in_type(lc_tensor *t, int dtype)
{
    return !t || t == LC_NONE || t->dtype == dtype ? t : lc_to(t, (lc_dtype)dtype, false, false, LC_ABSENT);
}
/* The gradients of _recurrence in plain ops, which can be differentiated again (rnn_formula.c). g: of output, hn and cn. */
void rnn_formula(const lc_value *in, lc_tensor *const *g, const bool *need, lc_tensor **dx);

typedef struct { /* one direction of a layer; fields a cell type lacks are LC_NONE */
    lc_rnn_kind kind;
    bool        reverse;
    lc_tensor  *w_ih, *w_hh, *b_ih, *b_hh, *project, *hx, *cx;
} rnn_layer;
/* Its steps in plain ops (rnn_plain.c). input: (steps, batch, width), or with sizes (rows, width). out: output, hn and cn, scoped. */
int rnn_plain(const rnn_layer *layer, lc_tensor *input, const int64_t *sizes, int64_t steps, lc_tensor **out);
