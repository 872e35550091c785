/* The profiler's record of calls (profile.c). One recording at a time, of the thread that started it. */
#pragma once
#include "../backend/activity.h"
#include "op.h"

enum { LC_PROFILE_SHAPES = 1, LC_PROFILE_MEMORY = 2, LC_PROFILE_STACKS = 4, LC_PROFILE_DEVICES = 8 };
typedef enum { LC_EVENT_OP, LC_EVENT_NODE, LC_EVENT_USER } lc_event_kind;
typedef struct {
    const lc_op *op;         /* of a call; else NULL */
    const char  *name;       /* of a node or a user's range; kept until the next start */
    uint64_t     start, end; /* ticks; lc_profile_ns makes them nanoseconds since the start */
    int64_t      memory;     /* bytes allocated less bytes freed */
    int64_t      out_numel;  /* of the first output; with shapes */
    uint32_t     shapes;     /* where the inputs' shapes start, plus one; 0: not recorded */
    int32_t      parent;     /* index of the event around it, -1: none */
    int32_t      stack;      /* what lc_profile_stack gave; -1: not asked */
    uint32_t     kind;
} lc_event;

int             lc_profile_start(unsigned what); /* -1 raised: a recording is under way */
void            lc_profile_stop(void);           /* the events stay until the next start */
bool            lc_profile_is_on(void);          /* on this thread */
size_t          lc_profile_count(void);
size_t          lc_profile_lost(void); /* events for which there was no memory */
const lc_event *lc_profile_event(size_t i);
const int64_t  *lc_profile_shapes(void);
double          lc_profile_ns(uint64_t ticks);
int64_t         lc_profile_base(void);             /* the start, nanoseconds since 1970 */
const char     *lc_profile_keep(const char *text); /* a copy that lives until the next start; NULL: no memory */

/* What ran on devices, and the event that enqueued it (mark); NULL past the last. Only the devices of one backend record. */
const lc_activity *lc_profile_activity(size_t i);
const char        *lc_profile_refused(void); /* why devices are not recorded although that was asked for; NULL: they are */

/* A range that is no call. Returns the event's index, -1 if it was not recorded. */
int64_t lc_profile_open(lc_event_kind kind, const char *name);
void    lc_profile_close(int64_t event);

extern int (*lc_profile_stack)(void); /* set by bindings: notes where the host program stands */

/* How shapes are kept: per parameter of the op one of these, or the number of dimensions, the dtype and the sizes. */
enum { LC_SHAPE_OTHER = -1, LC_SHAPE_LIST = -2 /* then how many tensors follow */ };
