/* fuse: finds steps of a plan that one fused program can do (backend/fused.h). Depends on graph. */
#pragma once
#include "../backend/fused.h"
#include "graph.h"

typedef struct {
    int  steps[LC_FUSED_STEPS], n_steps;   /* of the graph, in order */
    int  value[LC_FUSED_VALUES], n_values; /* per value of the program: the graph's; LC_VALUE_NONE: register, number */
    bool written[LC_FUSED_VALUES], column[LC_FUSED_VALUES];
    int  first[LC_FUSED_VALUES],
        last[LC_FUSED_VALUES]; /* numbers in steps[]: the first that writes it, the last that reads it */
    const lc_fuser *fuser;
    lc_fused       *fused;
} lc_region;

/* order: the steps that a plan runs. Neighbours that fit one program become a region; the entry of the first is then -1 - the
 * region's number, the others go. Returns how many entries are left; -1: no memory. *regions is malloced. */
int lc_fuse_steps(const lc_graph *g, int *order, int n_order, const int *outputs, int n_outputs, lc_region **regions,
                  int *n_regions);
/* Brings steps that could be neighbours in a region together (schedule.c); -1: no memory. */
int  lc_schedule_steps(const lc_graph *g, int *order, int n);
void lc_regions_free(lc_region *regions, int n);
