/* LUCID_VERBOSE=1: a line per call, before it runs, with what it was given; what a kernel says about its path stands below it. An observer,
 * so that it costs nothing when it is off. The mode is the loading thread's; other threads tell only what kernels have to say. */
#include "op.h"
#include <stdio.h>

enum { SHOWN = 6 };

static int tell(lc_record *call)
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
static int say_nothing(UNUSED lc_record *call) { return 0; }

static const lc_observer teller = { LC_VERBOSE, tell, say_nothing };

static __attribute__((constructor)) void start_telling(void)
{
    if (!lc_verbose) return;
    lc_modes |= LC_VERBOSE;
    lc_observe(&teller);
}
