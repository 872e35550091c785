/* The ring of runtime events: one lock, because a recorded event already costs a clock reading. A forked child starts with a lock
 * of its own, free. */
#include "trace.h"
#include <string.h>
#include <time.h>

atomic_bool             lc_runtime_tracing;
static pthread_mutex_t  lock = PTHREAD_MUTEX_INITIALIZER;
static lc_runtime_event ring[LC_RUNTIME_EVENTS];
static uint64_t         recorded; /* since the last clear */

static void free_lock(void) { pthread_mutex_init(&lock, NULL); }
static void watch_forks(void) { pthread_atfork(NULL, NULL, free_lock); }

void lc_runtime_record(lc_runtime_event_type type, int status, uint64_t size_bytes, int64_t detail0, int64_t detail1)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
    struct timespec now; /* read inside: events are in the order of their times */
    clock_gettime(CLOCK_MONOTONIC, &now);
    ring[recorded++ % LC_RUNTIME_EVENTS] = (lc_runtime_event){ .type = (uint8_t)type,
                                                               .status = (uint8_t)status,
                                                               .timestamp_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec,
                                                               .size_bytes = size_bytes,
                                                               .detail0 = detail0,
                                                               .detail1 = detail1 };
    pthread_mutex_unlock(&lock);
}

int lc_runtime_events(lc_runtime_event events[LC_RUNTIME_EVENTS])
{
    pthread_mutex_lock(&lock);
    int n = recorded < LC_RUNTIME_EVENTS ? (int)recorded : LC_RUNTIME_EVENTS;
    for (int i = 0; i < n; i++) events[i] = ring[(recorded - (uint64_t)n + (uint64_t)i) % LC_RUNTIME_EVENTS];
    pthread_mutex_unlock(&lock);
    return n;
}

void lc_runtime_clear(void)
{
    pthread_mutex_lock(&lock);
    recorded = 0;
    pthread_mutex_unlock(&lock);
}
