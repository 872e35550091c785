/* The runtime trace of Lightning Core's API: a ring of the last events. The C functions of runtime.c and the Python package
 * record into it; only Python reads it. Off at start: a call then costs one load. */
#pragma once
#include "../core/core.h"

enum { LC_RUNTIME_EVENTS = 4096 };
typedef enum {
    LC_EVENT_malloc_device,
    LC_EVENT_free_device,
    LC_EVENT_memcpy,
    LC_EVENT_device_synchronize,
    LC_EVENT_apply_sync_policy,
    LC_EVENT_get_device_count,
    LC_EVENT_is_cuda_available,
    LC_EVENT_is_metal_available,
    LC_EVENT_preferred_device_for,
    LC_EVENT_backend_name,
    LC_EVENT_op_dispatch,
    LC_EVENTS
} lc_runtime_event_type;
typedef struct {
    uint8_t  type, status; /* status: an lcError_t */
    int64_t  timestamp_ns; /* CLOCK_MONOTONIC */
    uint64_t size_bytes;   /* of op_dispatch: the work */
    int64_t  detail0, detail1;
} lc_runtime_event;

extern atomic_bool lc_runtime_tracing;
void lc_runtime_record(lc_runtime_event_type type, int status, uint64_t size_bytes, int64_t detail0, int64_t detail1);
int  lc_runtime_events(lc_runtime_event events[LC_RUNTIME_EVENTS]); /* how many; oldest first */
void lc_runtime_clear(void);
static inline void lc_runtime_note(lc_runtime_event_type type, int status, uint64_t size, int64_t detail0, int64_t detail1)
{
    if (__builtin_expect(atomic_load_explicit(&lc_runtime_tracing, memory_order_relaxed), 0))
        lc_runtime_record(type, status, size, detail0, detail1);
}
