/* activity: what a device did and when, by its own clock. A backend that can record it has an lc_activity_recorder; the profiler
 * (op/profile.c) starts and stops it with its own recording.
 *
 * Work is enqueued by the host and runs later, so the recorder must be told whose work it is: the profiler pushes a mark before
 * a call and pops it after. What a thread enqueues belongs to the mark that it pushed last. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef enum { LC_ACTIVITY_KERNEL, LC_ACTIVITY_COPY, LC_ACTIVITY_FILL } lc_activity_kind;
typedef struct {
    const char      *name;       /* kept until the next start */
    int64_t          start, end; /* nanoseconds since 1970, by the clock of the host */
    int64_t          mark;       /* -1: none was pushed */
    int64_t          bytes;      /* of a copy or a fill */
    lc_activity_kind kind;
    uint32_t         call; /* the number of the call that enqueued it; a graph's kernels share one */
    int32_t          device, stream;
    int32_t          grid[3], block[3], registers, shared; /* of a kernel: per thread; bytes per block */
} lc_activity;

typedef struct lc_activity_recorder {
    int (*start)(void);         /* 0, or -1 after lc_fail: it does not record */
    void (*stop)(void);         /* waits for the device; activities stay until the next start */
    void (*push)(int64_t mark); /* from now on, on this thread */
    void (*pop)(void);
    const lc_activity *(*at)(size_t i); /* in the order in which they began; NULL past the last */
    size_t (*lost)(void);               /* how many could not be kept */
} lc_activity_recorder;
