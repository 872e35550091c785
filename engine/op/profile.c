/* The profiler: an observer that notes when calls start and end. When it is off it costs nothing: the mode's bit is not set.
 *
 * An event is 64 bytes in a chunk; chunks are never moved. Time is the CPU's counter, which takes a few nanoseconds to read,
 * where it runs at a constant rate; it is compared with the system's clock at both ends of a recording. Events that are open
 * form a stack.
 *
 * What runs on a device is recorded by its backend (backend/activity.h): an event that opens is its mark for what is enqueued
 * until it closes. */
#include "profile.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

enum { CHUNK = 1 << 13, OPEN = 512, TEXT = 1 << 12 };
typedef struct text_block {
    struct text_block *next;
    size_t             used;
    char               bytes[TEXT];
} text_block;
static struct {
    lc_event  **chunks;
    size_t      n_chunks, count, lost;
    int64_t    *shapes;
    size_t      n_shapes, room;
    text_block *texts;
    unsigned    what;
    struct {
        const lc_record *at; /* NULL: not a call */
        int64_t          event;
    } open[OPEN];
    int                         n_open;
    uint64_t                    ticks[2];
    int64_t                     ns[2];
    const lc_activity_recorder *devices; /* NULL: not recorded */
    char                        refused[512];
    bool                        constant; /* the counter can be used */
} p;
static atomic_bool under_way;
int (*lc_profile_stack)(void);

static int64_t now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static bool has_constant_counter(void)
{
#ifdef __x86_64__
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && d >> 8 & 1;
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

static inline uint64_t read_ticks(void)
{
#ifdef __x86_64__
    if (p.constant) return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#endif
    return (uint64_t)now_ns(CLOCK_MONOTONIC);
}

static int64_t allocated(void)
{
    lc_memory_stats s;
    lc_memory_read(LC_CPU, &s);
    return s.allocated_bytes;
}

static lc_event *event_at(int64_t i) { return &p.chunks[i / CHUNK][i % CHUNK]; }

static COLD bool more_chunks(void)
{
    lc_event **list = realloc(p.chunks, (p.n_chunks + 1) * sizeof *list);
    if (!list) return false;
    p.chunks = list;
    if (!(p.chunks[p.n_chunks] = malloc(CHUNK * sizeof(lc_event)))) return false;
    return p.n_chunks++, true;
}

static void end_event(lc_event *e, uint64_t at)
{
    e->end = at;
    if (p.what & LC_PROFILE_MEMORY) e->memory = allocated() - e->memory;
}

/* --- shapes -------------------------------------------------------------------------------------------------------------------- */
static bool reserve(size_t more)
{
    if (p.n_shapes + more <= p.room) return true;
    size_t   room = (p.room + more) * 2;
    int64_t *bigger = realloc(p.shapes, room * sizeof *bigger);
    if (!bigger) return false;
    return p.shapes = bigger, p.room = room, true;
}
static bool put_shape(const lc_tensor *t)
{
    if (!reserve(LC_MAX_DIMS + 2)) return false;
    int64_t *at = p.shapes + p.n_shapes;
    if (!t || t == LC_NONE || t->is_number) return *at = LC_SHAPE_OTHER, p.n_shapes++, true;
    at[0] = t->ndim, at[1] = t->dtype;
    memcpy(at + 2, t->shape, (size_t)t->ndim * sizeof *at);
    p.n_shapes += (size_t)t->ndim + 2;
    return true;
}
static void put_shapes(lc_event *e, const lc_record *call)
{
    size_t start = p.n_shapes;
    bool   kept = true;
    for (int k = 0; kept && k < call->op->args->n_params; k++) {
        const lc_value *v = &call->args[k];
        if (v->tag != LC_IS_tensors) {
            kept = put_shape(v->tag == LC_IS_tensor ? v->t : NULL);
            continue;
        }
        if (!(kept = reserve(2))) break;
        p.shapes[p.n_shapes++] = LC_SHAPE_LIST, p.shapes[p.n_shapes++] = v->n;
        for (int i = 0; kept && i < v->n; i++) kept = put_shape(v->ts[i]);
    }
    if (kept) e->shapes = (uint32_t)start + 1;
    else p.n_shapes = start;
}

/* --- events -------------------------------------------------------------------------------------------------------------------- */
static inline int64_t open_event(const lc_op *op, const char *name, lc_event_kind kind, const lc_record *at)
{
    if (p.n_open == OPEN || (p.count == p.n_chunks * CHUNK && !more_chunks())) return p.lost++, -1;
    int64_t   i = (int64_t)p.count++;
    lc_event *e = event_at(i);
    *e = (lc_event){ .op = op, .name = name, .kind = kind, .stack = -1 };
    e->parent = p.n_open ? (int32_t)p.open[p.n_open - 1].event : -1;
    p.open[p.n_open].at = at, p.open[p.n_open++].event = i;
    bool outer = e->parent < 0 || event_at(e->parent)->kind == LC_EVENT_USER;
    if (p.what & LC_PROFILE_STACKS && outer && lc_profile_stack) e->stack = lc_profile_stack();
    if (p.what & LC_PROFILE_MEMORY) e->memory = allocated();
    if (p.devices) p.devices->push(i);
    return i;
}

static int before(lc_record *call)
{
    int64_t i = open_event(call->op, NULL, LC_EVENT_OP, call);
    if (i < 0) return 0;
    lc_event *e = event_at(i);
    if (p.what & LC_PROFILE_SHAPES) put_shapes(e, call);
    e->start = e->end = read_ticks();
    return 0;
}

static lc_event *pop_event(void)
{
    if (p.devices) p.devices->pop();
    return event_at(p.open[--p.n_open].event);
}

static lc_event *end_call(const lc_record *call) /* NULL: it was lost, or the recording began inside it */
{
    uint64_t now = read_ticks();
    if (!p.n_open || p.open[p.n_open - 1].at != call) return NULL;
    lc_event *e = pop_event();
    return end_event(e, now), e;
}
static int after(lc_record *call)
{
    lc_event *e = end_call(call);
    if (e && p.what & LC_PROFILE_SHAPES && call->n_out && call->out[0]) e->out_numel = call->out[0]->numel;
    return 0;
}
static void failed(lc_record *call) { end_call(call); }

int64_t lc_profile_open(lc_event_kind kind, const char *name)
{
    if (!lc_profile_is_on()) return -1;
    int64_t i = open_event(NULL, name, kind, NULL);
    if (i >= 0) event_at(i)->start = event_at(i)->end = read_ticks();
    return i;
}

void lc_profile_close(int64_t event)
{
    if (event < 0 || !lc_profile_is_on() || (size_t)event >= p.count) return;
    uint64_t now = read_ticks();
    int      n = p.n_open;
    while (n && p.open[n - 1].event != event) n--;
    if (!n) return; /* of an earlier recording */
    while (p.n_open >= n) pop_event();
    end_event(event_at(event), now);
}

/* --- a recording --------------------------------------------------------------------------------------------------------------- */
const char *lc_profile_keep(const char *text)
{
    size_t length = strlen(text) + 1;
    if (length > TEXT) length = TEXT;
    if (!p.texts || p.texts->used + length > TEXT) {
        text_block *block = malloc(sizeof *block);
        if (!block) return NULL;
        block->next = p.texts, block->used = 0, p.texts = block;
    }
    char *copy = memcpy(p.texts->bytes + p.texts->used, text, length);
    copy[length - 1] = 0;
    p.texts->used += length;
    return copy;
}

static void forget(void)
{
    while (p.n_chunks) free(p.chunks[--p.n_chunks]);
    free(p.chunks);
    free(p.shapes);
    for (text_block *next; p.texts; p.texts = next) next = p.texts->next, free(p.texts);
    memset(&p, 0, sizeof p);
}

static const lc_observer profiler = { LC_PROFILING, before, after, failed };

static const lc_activity_recorder *recorder_of_devices(void) /* NULL after lc_fail */
{
    for (int kind = 0; kind < LC_DEVICE_KINDS; kind++) {
        if (!lc_backends[kind] && !lc_backend_openers[kind]) continue;
        const lc_backend *b = lc_backend_of((lc_device){ .kind = (uint8_t)kind });
        if (!b || b->activity) return b ? b->activity : NULL;
    }
    return lc_fail(LC_GpuNotAvailable, "no device records what it does");
}

int lc_profile_start(unsigned what)
{
    static bool observing;
    if (atomic_exchange(&under_way, true)) return lc_fail_int(LC_LucidError, "a profiler is already running");
    if (!observing) lc_observe(&profiler);
    observing = true;
    forget();
    p.what = what, p.constant = has_constant_counter();
    if (what & LC_PROFILE_DEVICES && (!(p.devices = recorder_of_devices()) || p.devices->start() < 0)) {
        p.devices = NULL;
        snprintf(p.refused, sizeof p.refused, "%s", lc_error());
    }
    p.ticks[0] = read_ticks(), p.ns[0] = now_ns(CLOCK_REALTIME);
    lc_modes |= LC_PROFILING;
    return 0;
}

void lc_profile_stop(void)
{
    enum { LEAST = 2000000 }; /* the rate of the counter is not measured better in less than 2 ms */
    lc_modes &= ~LC_PROFILING;
    uint64_t now = read_ticks();
    if (p.devices) {
        for (int i = 0; i < p.n_open; i++) p.devices->pop();
        p.devices->stop();
    }
    do p.ticks[1] = read_ticks(), p.ns[1] = now_ns(CLOCK_REALTIME);
    while (p.ns[1] - p.ns[0] < LEAST && p.ns[1] >= p.ns[0]);
    while (p.n_open) {
        lc_event *e = event_at(p.open[--p.n_open].event);
        if (e->kind == LC_EVENT_USER) end_event(e, now);
    }
    if (p.devices) p.lost += p.devices->lost();
    atomic_store(&under_way, false);
}

bool            lc_profile_is_on(void) { return lc_modes & LC_PROFILING; }
size_t          lc_profile_count(void) { return p.count; }
size_t          lc_profile_lost(void) { return p.lost; }
const lc_event *lc_profile_event(size_t i) { return event_at((int64_t)i); }
const int64_t  *lc_profile_shapes(void) { return p.shapes; }
double          lc_profile_ns(uint64_t ticks)
{
    double span = (double)(p.ticks[1] - p.ticks[0]), rate = span > 0 ? (double)(p.ns[1] - p.ns[0]) / span : 1;
    return (double)(int64_t)(ticks - p.ticks[0]) * rate;
}
int64_t            lc_profile_base(void) { return p.ns[0]; }
const lc_activity *lc_profile_activity(size_t i) { return p.devices ? p.devices->at(i) : NULL; }
const char        *lc_profile_refused(void) { return *p.refused ? p.refused : NULL; }
