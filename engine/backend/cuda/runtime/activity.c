/* What ran on the devices, and when: NVIDIA's CUPTI writes a record of every kernel, copy and fill.
 *
 * CUPTI asks for buffers and hands them back full, from a thread of its own; they are kept until the recording stops and are read
 * then. A kernel's record does not say who launched it, only by which call of the driver. Before the record of such a call comes
 * one with what was last pushed on its thread (cuptiActivityPushExternalCorrelationId): the mark. So records of calls must be on,
 * of the runtime too, through which cuBLAS and cuDNN launch.
 *
 * Only the first fields of records are declared: versions of CUPTI append to them, and those here have stood at the same place
 * since CUDA 8. CUPTI itself steps from record to record, so neither sizes nor kinds that we do not know matter. Callbacks are
 * registered at every start, because another profiler of this process may have put its own there; a buffer that comes back may
 * therefore be another's, and is left alone.
 *
 * The device's times are CUPTI's clock. It is compared with the host's at both ends; durations are CUPTI's own.
 *
 * Rejected: events around every launch, which give no kernel its own time and keep kernels from overlapping; finding the op by
 * the time of the launch, for which clocks are not exact enough. */
#include "runtime.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- CUPTI's interface ---- */
enum { COPY = 1, FILL = 2, DRIVER_CALL = 4, RUNTIME_CALL = 5, KERNEL = 10, PEER_COPY = 22, MARK = 39 }; /* kinds of records */
enum { OUR_MARKS = 3 };                                                                                 /* "custom 0" */
typedef void give_buffer_function(uint8_t **buffer, size_t *bytes, size_t *most_records);
typedef void take_buffer_function(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t used);

#define CUPTI_CALLS(X)                                                                                                         \
    X(cuptiActivityRegisterCallbacks, (give_buffer_function * give, take_buffer_function * take))                              \
    X(cuptiActivityEnable, (int kind))                                                                                         \
    X(cuptiActivityDisable, (int kind))                                                                                        \
    X(cuptiActivityFlushAll, (uint32_t flag))                                                                                  \
    X(cuptiActivityGetNextRecord, (uint8_t * buffer, size_t used, void **record))                                              \
    X(cuptiActivityGetNumDroppedRecords, (void *context, uint32_t stream, size_t *dropped))                                    \
    X(cuptiActivityPushExternalCorrelationId, (int kind, uint64_t id))                                                         \
    X(cuptiActivityPopExternalCorrelationId, (int kind, uint64_t *id))                                                         \
    X(cuptiGetTimestamp, (uint64_t * ns))                                                                                      \
    X(cuptiGetResultString, (int result, const char **text))
static struct {
#define X(name, args) int(*name) args;
    CUPTI_CALLS(X)
#undef X
} cupti;

typedef struct {
    uint32_t    kind;
    uint8_t     caches, banks;
    uint16_t    registers;
    uint32_t    partitions[2];
    uint64_t    start, end, completed;
    uint32_t    device, context, stream;
    int32_t     grid[3], block[3], shared[2]; /* static, dynamic */
    uint32_t    local[2], call;
    int64_t     number;
    const char *name;
} kernel_record;
typedef struct {
    uint32_t kind;
    uint8_t  how, from, to, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, call;
} copy_record;
typedef struct {
    copy_record copy; /* of which `call` is the device it comes from */
    uint32_t    from_context, to_device, to_context, call;
} peer_copy_record;
typedef struct {
    uint32_t kind, value;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, call;
    uint16_t flags, memory;
} fill_record;
typedef struct {
    uint32_t kind, of;
    uint64_t mark;
    uint32_t call;
} mark_record;
#define STANDS_AT(type, field, at) _Static_assert(offsetof(type, field) == (at), "CUPTI's layout")
STANDS_AT(kernel_record, registers, 6);
STANDS_AT(kernel_record, start, 16);
STANDS_AT(kernel_record, device, 40);
STANDS_AT(kernel_record, grid, 52);
STANDS_AT(kernel_record, shared, 76);
STANDS_AT(kernel_record, call, 92);
STANDS_AT(kernel_record, name, 104);
STANDS_AT(copy_record, bytes, 8);
STANDS_AT(copy_record, device, 32);
STANDS_AT(copy_record, call, 44);
STANDS_AT(peer_copy_record, call, 60);
STANDS_AT(fill_record, bytes, 8);
STANDS_AT(fill_record, call, 44);
STANDS_AT(fill_record, memory, 50);
STANDS_AT(mark_record, mark, 8);
STANDS_AT(mark_record, call, 16);

/* ---- state ---- */
enum { BUFFER = 4 << 20 };
typedef struct buffer {
    struct buffer *next;
    size_t         used;
    _Alignas(16) uint8_t data[BUFFER];
} buffer;
typedef struct {
    uint32_t call;
    int64_t  mark;
} marked_call;
typedef struct {
    void  *items;
    size_t n, room;
} list;
typedef struct {
    int64_t host, device;
} moment;
static struct {
    pthread_mutex_t lock; /* of what CUPTI's threads touch: buffers, on */
    buffer         *given, *full;
    bool            on;
    size_t          lost;
    list            activities, calls; /* lc_activity, marked_call */
    moment          ends[2];
} r = { .lock = PTHREAD_MUTEX_INITIALIZER };

int cuda_load_cupti(void)
{
    static pthread_mutex_t   lock = PTHREAD_MUTEX_INITIALIZER;
    static bool              loaded;
    static const char *const names[] = { "libcupti.so.13", "libcupti.so.12", "libcupti.so", NULL };
#define X(name, args) #name,
    static const char *const symbols[] = { CUPTI_CALLS(X) };
#undef X
    cuda_lock(&lock);
    int rc = loaded ? 0 : cuda_load(names, "CUPTI", "cuda_cupti", symbols, (void **)&cupti, sizeof symbols / sizeof *symbols);
    loaded = rc == 0;
    pthread_mutex_unlock(&lock);
    return rc;
}

/* ---- buffers ---- */
static void give_buffer(uint8_t **data, size_t *bytes, size_t *most_records)
{
    buffer *b = malloc(sizeof *b);
    *data = b ? b->data : NULL, *bytes = b ? BUFFER : 0, *most_records = 0; /* as many as fit */
    pthread_mutex_lock(&r.lock);
    if (b) b->next = r.given, r.given = b;
    pthread_mutex_unlock(&r.lock);
}
static void take_buffer(UNUSED void *context, UNUSED uint32_t stream, uint8_t *data, UNUSED size_t bytes, size_t used)
{
    pthread_mutex_lock(&r.lock);
    buffer **at = &r.given;
    while (*at && (*at)->data != data) at = &(*at)->next;
    buffer *b = *at;
    if (b) *at = b->next;
    bool kept = b && r.on && used;
    if (kept) b->used = used, b->next = r.full, r.full = b;
    pthread_mutex_unlock(&r.lock);
    if (!kept) free(b);
}

static void keep_buffers(bool on)
{
    pthread_mutex_lock(&r.lock);
    r.on = on;
    pthread_mutex_unlock(&r.lock);
}

/* ---- records ---- */
static void *append(list *l, size_t size) /* NULL: no memory, which is counted */
{
    if (l->n == l->room) {
        size_t room = l->room ? 2 * l->room : 256;
        void  *bigger = realloc(l->items, room * size);
        if (!bigger) return r.lost++, NULL;
        l->items = bigger, l->room = room;
    }
    return (char *)l->items + l->n++ * size;
}

static int64_t on_host_clock(int64_t t)
{
    double span = (double)(r.ends[1].device - r.ends[0].device);
    double rate = span > 0 ? (double)(r.ends[1].host - r.ends[0].host) / span : 1;
    return r.ends[0].host + (int64_t)((double)(t - r.ends[0].device) * rate);
}

static lc_activity *append_activity(lc_activity_kind kind, uint64_t start, uint64_t end, uint32_t call)
{
    lc_activity *a = start && end >= start ? append(&r.activities, sizeof *a) : (r.lost++, NULL); /* 0: it was not measured */
    if (!a) return NULL;
    *a = (lc_activity){ .kind = kind, .start = on_host_clock((int64_t)start), .mark = -1, .call = call };
    return a->end = a->start + (int64_t)(end - start), a;
}

/* The names that PyTorch gives to copies and fills. */
enum { HOWS = 11, MEMORIES = 8, NAME = 48 };
static const char *const how_names[HOWS] = { "Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                             "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP" };
static const char *const memory_names[MEMORIES] = { "Unknown", "Pageable", "Pinned",        "Device",
                                                    "Array",   "Managed",  "Device Static", "Managed Static" };
static const char       *copy_name(unsigned how, unsigned from, unsigned to)
{
    static char names[HOWS][MEMORIES][MEMORIES][NAME + 8];
    how = how < HOWS ? how : 0, from = from < MEMORIES ? from : 0, to = to < MEMORIES ? to : 0;
    char *name = names[how][from][to];
    if (!*name) snprintf(name, NAME + 8, "Memcpy %s (%s -> %s)", how_names[how], memory_names[from], memory_names[to]);
    return name;
}
static const char *fill_name(unsigned memory)
{
    static char names[MEMORIES][NAME];
    memory = memory < MEMORIES ? memory : 0;
    if (!*names[memory]) snprintf(names[memory], NAME, "Memset (%s)", memory_names[memory]);
    return names[memory];
}

static void read_kernel(const kernel_record *k)
{
    lc_activity *a = append_activity(LC_ACTIVITY_KERNEL, k->start, k->end, k->call);
    if (!a) return;
    a->name = k->name ? k->name : "", a->device = (int32_t)k->device, a->stream = (int32_t)k->stream;
    a->registers = k->registers, a->shared = k->shared[0] + k->shared[1];
    memcpy(a->grid, k->grid, sizeof a->grid), memcpy(a->block, k->block, sizeof a->block);
}
static void read_copy(const copy_record *c, uint32_t call)
{
    lc_activity *a = append_activity(LC_ACTIVITY_COPY, c->start, c->end, call);
    if (!a) return;
    a->name = copy_name(c->how, c->from, c->to), a->bytes = (int64_t)c->bytes;
    a->device = (int32_t)c->device, a->stream = (int32_t)c->stream;
}
static void read_fill(const fill_record *f)
{
    lc_activity *a = append_activity(LC_ACTIVITY_FILL, f->start, f->end, f->call);
    if (!a) return;
    a->name = fill_name(f->memory), a->bytes = (int64_t)f->bytes;
    a->device = (int32_t)f->device, a->stream = (int32_t)f->stream;
}
static void read_mark(const mark_record *m)
{
    marked_call *c = m->of == OUR_MARKS ? append(&r.calls, sizeof *c) : NULL;
    if (c) *c = (marked_call){ m->call, (int64_t)m->mark - 1 };
}
static void read_record(void *record)
{
    switch (*(uint32_t *)record) {
    case KERNEL:
        read_kernel(record);
        break;
    case COPY:
        read_copy(record, ((copy_record *)record)->call);
        break;
    case PEER_COPY:
        read_copy(record, ((peer_copy_record *)record)->call);
        break;
    case FILL:
        read_fill(record);
        break;
    case MARK:
        read_mark(record);
        break;
    }
}
static void read_buffer(buffer *b)
{
    void *record = NULL;
    while (cupti.cuptiActivityGetNextRecord(b->data, b->used, &record) == 0) read_record(record);
}

static int by_call(const void *a, const void *b)
{
    uint32_t x = ((const marked_call *)a)->call, y = ((const marked_call *)b)->call;
    return x < y ? -1 : x > y;
}
static int by_start(const void *a, const void *b)
{
    int64_t x = ((const lc_activity *)a)->start, y = ((const lc_activity *)b)->start;
    return x < y ? -1 : x > y;
}
static void read_all(void)
{
    for (buffer *next; r.full; r.full = next) next = r.full->next, read_buffer(r.full), free(r.full);
    lc_activity *all = r.activities.items;
    if (r.calls.n) qsort(r.calls.items, r.calls.n, sizeof(marked_call), by_call);
    for (size_t i = 0; r.calls.n && i < r.activities.n; i++) {
        marked_call  key = { .call = all[i].call };
        marked_call *found = bsearch(&key, r.calls.items, r.calls.n, sizeof key, by_call);
        if (found) all[i].mark = found->mark;
    }
    if (r.activities.n) qsort(all, r.activities.n, sizeof *all, by_start);
}

/* ---- a recording ---- */
static moment now(void) /* both clocks: of four readings the one that took least */
{
    moment  best = { 0, 0 };
    int64_t least = INT64_MAX;
    for (int i = 0; i < 4; i++) {
        struct timespec a, b;
        uint64_t        device = 0;
        clock_gettime(CLOCK_REALTIME, &a);
        cupti.cuptiGetTimestamp(&device);
        clock_gettime(CLOCK_REALTIME, &b);
        int64_t from = a.tv_sec * (int64_t)1000000000 + a.tv_nsec, took = b.tv_sec * (int64_t)1000000000 + b.tv_nsec - from;
        if (took >= 0 && took < least) least = took, best = (moment){ from + took / 2, (int64_t)device };
    }
    return best;
}

static const int recorded[] = { KERNEL, COPY, PEER_COPY, FILL, RUNTIME_CALL, DRIVER_CALL, MARK };
enum { RECORDED = sizeof recorded / sizeof *recorded };

static void let_go(bool keep) /* CUPTI records no more, and hands over what it has */
{
    enum { ALL = 1 };
    for (int i = 0; i < RECORDED; i++) cupti.cuptiActivityDisable(recorded[i]);
    cupti.cuptiActivityFlushAll(ALL);
    keep_buffers(false);
    for (buffer *next; !keep && r.full; r.full = next) next = r.full->next, free(r.full);
}

static int start(void)
{
    if (cuda_use(cuda_current() < 0 ? lc_cuda_current_device() : cuda_current()) < 0 || cuda_load_cupti() < 0) return -1;
    free(r.activities.items), free(r.calls.items);
    r.activities = r.calls = (list){ .n = 0 };
    r.lost = 0, keep_buffers(true);
    const char *text = NULL;
    int         rc = cupti.cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
    for (int i = 0; rc == 0 && i < RECORDED; i++) rc = cupti.cuptiActivityEnable(recorded[i]);
    r.ends[0] = now();
    if (rc == 0) return 0;
    let_go(false);
    cupti.cuptiGetResultString(rc, &text);
    return lc_fail_int(LC_LucidError, "CUPTI does not record: %s (%d)", text ? text : "unknown error", rc);
}

static void wait_for_devices(void) /* an error stays: the next call of the program raises it */
{
    int before = cuda_current();
    for (int i = 0; i < CUDA_DEVICES; i++)
        if (cuda_context(i) && cuda_use(i) == 0) cuda.cuCtxSynchronize();
    if (before >= 0) cuda_use(before);
}

static void stop(void)
{
    void  *host = lc_host_unlock ? lc_host_unlock() : NULL;
    size_t dropped = 0;
    if (cuda_usable()) {                                  /* else this is a forked process */
        if (!cuda_captures_running()) wait_for_devices(); /* a captured graph would be broken by it */
        let_go(true);
        r.ends[1] = now();
        read_all();
        if (cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped) == 0) r.lost += dropped;
    }
    if (host) lc_host_relock(host);
}

static void push(int64_t mark) { cupti.cuptiActivityPushExternalCorrelationId(OUR_MARKS, (uint64_t)mark + 1); }
static void pop(void)
{
    uint64_t mark;
    cupti.cuptiActivityPopExternalCorrelationId(OUR_MARKS, &mark);
}
static const lc_activity *at(size_t i) { return i < r.activities.n ? (const lc_activity *)r.activities.items + i : NULL; }
static size_t             lost(void) { return r.lost; }

const lc_activity_recorder cuda_activity = { start, stop, push, pop, at, lost };
