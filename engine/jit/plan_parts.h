/* plan_parts: what a plan is made of, for the files that make and run it (plan.c, memory.c). Depends on fuse. */
#pragma once
#include "fuse.h"
#include "plan.h"
#include <pthread.h>

typedef enum {
    SOURCE_UNUSED,
    SOURCE_GIVEN, /* an input, an external, or a buffer of an earlier plan: asked for at every run */
    SOURCE_FRESH, /* a result: allocated when its first step comes */
    SOURCE_BLOCK, /* an intermediate of some size: allocated when its first step comes, released behind its last */
    SOURCE_ARENA  /* a small intermediate: a fixed place in the arena of the run */
} source_kind;
typedef struct {
    source_kind kind;
    int         input;      /* GIVEN: number of the input; -1: an external */
    int64_t     offset;     /* ARENA: bytes */
    int64_t     extra;      /* bytes that the buffer has, rounded up */
    int         begin, end; /* steps between which it is in use; of a home: those of all that lie there */
    int  home, next_member; /* the buffer in whose memory it lies, itself or one that dies where it begins; -1: the last */
    bool written;           /* by a step of this plan */
} source;

typedef struct instance instance;

struct lc_plan {
    lc_graph  *graph;
    int        first, last, n_inputs, n_extra, n_outputs, n_numbers, n_args, n_ends, needed; /* needed: inputs that are read */
    int       *outputs, *same_as;
    int       *order, n_order; /* the steps that are run; -1 - r: region r */
    lc_region *regions;
    int        n_regions, n_chosen;  /* n_chosen: steps that are run, those in regions counted */
    source    *sources;              /* per buffer */
    int   *by_begin, *by_end, n_own; /* homes with memory of their own (FRESH, BLOCK), by their first and by their last step */
    int    n_in_place;               /* intermediates and results that lie where an earlier one died */
    size_t arena_bytes, made_bytes, peak_bytes;
    bool   writes_given;
    pthread_mutex_t lock;
    instance       *idle;
};

static inline const lc_region *lc_plan_region(const lc_plan *p, int at)
{
    return p->order[at] < 0 ? &p->regions[-1 - p->order[at]] : NULL;
}
int lc_plan_place(lc_plan *p, const lc_plan_request *request); /* decides where every buffer lies (memory.c) */
