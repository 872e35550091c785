/* What the emulated driver tells of its work; cupti.cpp makes records of it. Nobody listens: emulated_watcher is null. */
#pragma once
#include <cstdint>

struct emulated_activity {
    enum { KERNEL, COPY, FILL } kind;
    const char *name;              /* of a kernel */
    uint64_t    start, end, bytes; /* start, end: nanoseconds since 1970 */
    uint32_t    call, value;
    int         device, other_device, how, from, to; /* of a copy, in CUPTI's numbers; to: of a fill too */
    unsigned    stream, grid[3], block[3], shared;
};
struct emulated_watcher_calls {
    uint32_t (*called)(); /* a call of the driver that enqueues work: its number, 0 if nobody wants to know */
    void (*ran)(const emulated_activity &a);
};
extern "C" const emulated_watcher_calls *emulated_watcher;
