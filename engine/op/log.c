/* LUCID_VERBOSE=1: logs one line per call, with its inputs, before it runs. Kernels log below it which path they take. This
 * is an observer, so it costs nothing when it is off. The mode is set on the loading thread; on other threads only kernels
 * log. */
#include "op.h"
#include <stdio.h>

enum { SHOWN = 6 };

static int log_call(lc_record *call)
{
    char   text[512];
    size_t at = 0;
    for (int k = 0; k < call->n_in && k < SHOWN && at < sizeof text; k++) {
        const lc_tensor *t = call->in[k];
        const char      *what = t == LC_NONE ? "None" : t->is_number ? "a number" : LC_SHAPE(t);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s%s", k ? ", " : "", what, t->is_contiguous ? "" : " strided");
    }
    lc_log_line("%s(%s%s): %s", call->op->name, at ? text : "", call->n_in > SHOWN ? ", ..." : "",
                call->op->run       ? "a kernel"
                : call->op->view_of ? "a view"
                                    : "made of other ops");
    return 0;
}
static int ignore(UNUSED lc_record *call) { return 0; }

static const lc_observer verbose_observer = { .wakes = LC_VERBOSE, .before = log_call, .after = ignore };

static __attribute__((constructor)) void start_verbose(void)
{
    if (!lc_verbose) return;
    lc_modes |= LC_VERBOSE;
    lc_observe(&verbose_observer);
}
