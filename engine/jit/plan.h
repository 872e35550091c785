/* plan: a graph, or a part of its steps, made ready to run again and again. Depends on graph.
 *
 * A run does what the traced run did, kernel by kernel, and nothing else: no promotion, no shape rules, no views, no Python. Small intermediates lie in
 * one arena, laid out by their lifetimes; large ones are there from their first step to their last; results own their memory, so that what is kept is
 * never overwritten. An arena belongs to a run in flight: threads that run one plan at the same time have one each. */
#pragma once
#include "graph.h"

typedef struct {  /* bytes; tests set them to 0, so that small programs meet what large ones do */
    size_t arena; /* intermediates lie in one arena as long as it is not larger; else */
    size_t block; /* those of this size have memory of their own */
    size_t waits; /* results of this size may be made again instead of waiting (recompute.c) */
    size_t peak;  /* if more than this is live at a time */
} lc_plan_limits;
extern lc_plan_limits lc_limits;

typedef struct lc_plan lc_plan;
typedef struct {
    lc_graph *graph;
    int       first, last; /* steps [first, last) */
    const int
        *extra_inputs;  /* buffers that an earlier plan of the graph made and this one reads: inputs behind the graph's own */
    const int *same_as; /* per output: the input that it is, as an object; -1: none */
    const int *outputs; /* values */
    int        n_extra_inputs, n_outputs;
} lc_plan_request;
lc_plan *lc_plan_new(const lc_plan_request *request); /* NULL after lc_fail */
void     lc_plan_free(lc_plan *plan);
/* 0: done, outputs are new references. 1: the memory of inputs or externals is arranged in another way than in the trace, nothing was run. -1: failure */
bool lc_plan_fits(const lc_plan *plan, lc_tensor *const *inputs, int n_inputs); /* false: lc_plan_run would return 1 */
int  lc_plan_run(lc_plan *plan, lc_tensor *const *inputs, int n_inputs, lc_tensor **outputs);
/* The same; seconds[i] becomes what step i of the text took. NULL: nobody asks. */
int lc_plan_time(lc_plan *plan, lc_tensor *const *inputs, int n_inputs, lc_tensor **outputs, double *seconds);
int lc_plan_outputs(const lc_plan *plan);
/* Number arguments that change between runs (a learning rate): argument `name` of the k-th step that has one. Returns how many steps have one. Not while a
 * run is in flight. */
int lc_plan_set_number(lc_plan *plan, const char *name, int k, double value);

typedef struct {
    int steps, dropped, frozen, fused_steps, fused_regions, n_inputs, given_outputs,
        host_steps;                 /* given_outputs: results that are memory of inputs or externals; host_steps: on the CPU */
    int    in_place, recomputed;    /* buffers that lie where an earlier one died */
    size_t arena_bytes, made_bytes; /* the arena; what intermediates took one by one */
    size_t peak_bytes;              /* the most that intermediates and results take at one time */
} lc_plan_facts;
lc_plan_facts lc_plan_describe(const lc_plan *plan);
/* Made buffers that steps [first, cut) write and steps [cut, last) read: what forward keeps for backward. Returns how many; fills at most n. */
int lc_graph_saved(const lc_graph *g, int first, int cut, int last, int *buffers, int n);
/* One line per step, as text; free() it. NULL: no memory. */
char *lc_plan_text(const lc_plan *plan);
