/* passes: rewrite a graph before plans are made of it. Depends on graph.
 *
 * Every pass keeps the bits of every result. A step that is no longer needed is marked dead; steps keep their places, so a
 * graph can still be cut where it could before. */
#pragma once
#include "graph.h"

typedef struct {
    lc_graph  *g;
    const int *starts; /* where plans begin, ascending: steps on both sides of one belong to different plans */
    int        n_starts;
    bool      *kept;   /* per buffer: a result lies there, in memory of its own */
    int       *writes; /* per buffer: steps that write it */
    int       *uses;   /* per buffer: inputs and outputs of steps that lie there */
} lc_pass;

/* Runs all passes. outputs: values that are results of a plan of this graph. */
int  lc_simplify(lc_graph *g, const int *outputs, int n_outputs, const int *starts, int n_starts);
void lc_pass_count(lc_pass *p);               /* counts writes and uses again */
bool lc_step_writes(const lc_step *s, int k); /* whether the step writes end k: inputs first, then outputs */
bool lc_same_plan(const lc_pass *p, int i, int j);
bool lc_step_is_pure(const lc_pass *p, const lc_step *s); /* made again on the same values, it gives the same results */
bool lc_inputs_written_between(const lc_graph *g, const lc_step *s, int i, int j); /* by steps behind i and before j */

void lc_fold_constants(lc_pass *p);     /* a step whose inputs are constants runs once, in the trace */
void lc_share_common_steps(lc_pass *p); /* a step that repeats an earlier one goes */
void lc_fuse_epilogues(lc_pass *p);     /* an activation or residual goes into the product before it */
void lc_recompute(lc_pass *p);          /* a result that waits long is made again where it is read; the last pass */
