/* Device memory. The driver is asked for segments; blocks are cut out of them, and neighbours that are free become one again.
 *
 * A segment belongs to one stream: work of a stream is in order, so a block that is freed while a kernel still reads it may be
 * given to the next call on the same stream at once. record_stream says that another stream works on a block too: when it is
 * freed, an event is recorded there, and the block waits until the event has passed. What a graph allocates while it is captured
 * comes from a private pool, because replays write there again.
 *
 * A pool (device, stream, private number) keeps free blocks in bins, eight per doubling; a request takes the best block of its own
 * bin, else the first of the next one that is not empty. Requests up to 1 MiB come from segments of 2 MiB, larger ones from 20 MiB,
 * from 10 MiB on segments of their own. When the device is full, what waits is waited for, free segments go back to the driver, and
 * the request is tried once more before OutOfMemory.
 *
 * LUCID_CUDA_CACHE=0: every block is the driver's own, so that tools that watch the driver see every overrun. */
#include "runtime.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    UNIT = 512,
    SMALL = 1 << 20,
    SMALL_SEGMENT = 2 << 20,
    LARGE_SEGMENT = 20 << 20,
    FROM_OWN_SEGMENT = 10 << 20,
    BINS = 320
};

typedef struct block   block;
typedef struct segment segment;
typedef struct pool    pool;
struct block {
    block     *before, *after;       /* neighbours in the segment */
    block     *previous, *following; /* in its bin */
    segment   *in;
    cu_pointer p;
    size_t     bytes, asked;
    bool       used;
    int        waits, n_uses;
    cu_stream *uses; /* other streams that work on it */
};
struct segment {
    segment   *previous, *following;
    pool      *of;
    cu_pointer p;
    size_t     bytes;
    bool       small;
    block     *first;
};
struct pool {
    pool     *next;
    int       device;
    cu_stream stream;
    uint64_t private;
    uint64_t filled[2][BINS / 64]; /* [small] */
    block   *bin[2][BINS];
    segment *segments;
};
typedef struct waiting { /* a freed block that another stream may still read */
    struct waiting *next;
    block          *b;
    cu_event        event;
} waiting;
typedef struct private_pool {
    struct private_pool *next;
    uint64_t             number;
    int                  holders;
} private_pool;

static struct {
    pthread_mutex_t      lock;
    pool                *pools;
    waiting             *waits;
    block               *after_capture; /* freed while a graph was captured: their events could not be recorded */
    private_pool        *privates;
    lc_cuda_memory_stats stats[CUDA_DEVICES];
    size_t               limit[CUDA_DEVICES]; /* 0: none */
    bool                 asked_cache, no_cache;
} m = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- statistics ---- */
/* A fifth of what a call costs here was counting, so it only adds: `freed` is worked out when somebody asks, and keeps meanwhile
 * what was current when the sums began. */
static inline __attribute__((always_inline)) void count(int device, int what, bool small, int64_t by)
{
    lc_cuda_count *c = m.stats[device].count[what],
                  *of[] = { &c[LC_CUDA_ALL_POOLS], &c[small ? LC_CUDA_SMALL_POOL : LC_CUDA_LARGE_POOL] };
    for (int i = 0; i < 2; i++) {
        of[i]->current += by;
        if (by < 0) continue;
        of[i]->allocated += by;
        if (of[i]->current > of[i]->peak) of[i]->peak = of[i]->current;
    }
}
static inline void count_free(const block *b, int sign)
{
    if (!b->before && !b->after) return;
    count(b->in->of->device, LC_CUDA_INACTIVE_SPLIT, b->in->small, sign);
    count(b->in->of->device, LC_CUDA_INACTIVE_SPLIT_BYTES, b->in->small, sign * (int64_t)b->bytes);
}
static inline void count_active(const block *b, int sign)
{
    count(b->in->of->device, LC_CUDA_ACTIVE, b->in->small, sign);
    count(b->in->of->device, LC_CUDA_ACTIVE_BYTES, b->in->small, sign * (int64_t)b->bytes);
}
static inline void count_allocated(const block *b, int sign)
{
    count(b->in->of->device, LC_CUDA_ALLOCATION, b->in->small, sign);
    count(b->in->of->device, LC_CUDA_ALLOCATED_BYTES, b->in->small, sign * (int64_t)b->bytes);
    count(b->in->of->device, LC_CUDA_REQUESTED_BYTES, b->in->small, sign * (int64_t)b->asked);
}
static void count_segment(const segment *s, int sign)
{
    count(s->of->device, LC_CUDA_SEGMENT, s->small, sign);
    count(s->of->device, LC_CUDA_RESERVED_BYTES, s->small, sign * (int64_t)s->bytes);
}

/* ---- bins ---- */
static size_t rounded(size_t bytes, size_t to) { return bytes ? (bytes + to - 1) / to * to : to; }
static int    bin_of(size_t bytes)
{
    uint64_t units = bytes / UNIT;
    if (units < 16) return (int)units;
    int shift = 60 - __builtin_clzll(units); /* 8 .. 15 after the shift */
    int bin = 8 * shift + (int)(units >> shift);
    return bin < BINS ? bin : BINS - 1;
}
static void put_in_bin(block *b)
{
    pool *of = b->in->of;
    int   small = b->in->small, bin = bin_of(b->bytes);
    b->previous = NULL, b->following = of->bin[small][bin];
    if (b->following) b->following->previous = b;
    of->bin[small][bin] = b, of->filled[small][bin / 64] |= 1ull << bin % 64;
    count_free(b, 1);
}
static void take_from_bin(block *b)
{
    pool *of = b->in->of;
    int   small = b->in->small, bin = bin_of(b->bytes);
    count_free(b, -1);
    if (b->following) b->following->previous = b->previous;
    if (b->previous) b->previous->following = b->following;
    else if (!(of->bin[small][bin] = b->following)) of->filled[small][bin / 64] &= ~(1ull << bin % 64);
}
static block *best_in(const pool *of, bool small, size_t bytes) /* NULL: none is large enough */
{
    int    bin = bin_of(bytes), looked = 0;
    block *best = NULL;
    for (block *b = of->bin[small][bin]; b && looked < 64; b = b->following, looked++)
        if (b->bytes >= bytes && (!best || b->bytes < best->bytes)) best = b;
    if (best || ++bin == BINS) return best;
    for (int word = bin / 64; word < BINS / 64; word++) {
        uint64_t filled = of->filled[small][word] & (word == bin / 64 ? ~0ull << bin % 64 : ~0ull);
        if (filled) return of->bin[small][64 * word + __builtin_ctzll(filled)];
    }
    return NULL;
}

static pool *pool_of(int device, cu_stream stream, uint64_t private)
{
    pool **at = &m.pools, *p;
    for (; (p = *at); at = &p->next)
        if (p->device == device && p->stream == stream && p->private == private) return p;
    if ((p = calloc(1, sizeof *p))) p->device = device, p->stream = stream, p->private = private, *at = p;
    return p;
}

/* ---- segments ---- */
static segment *segment_new(pool *of, bool small, size_t bytes) /* NULL: no memory on the device, or here */
{
    segment *s = calloc(1, sizeof *s);
    block   *b = calloc(1, sizeof *b);
    size_t   limit = m.limit[of->device];
    bool fits = !limit || (size_t)m.stats[of->device].count[LC_CUDA_RESERVED_BYTES][LC_CUDA_ALL_POOLS].current + bytes <= limit;
    int  before = s && b && fits ? cuda_relax_capture() : 0;
    bool done = s && b && fits && cuda.cuMemAlloc_v2(&s->p, bytes) == 0;
    if (s && b && fits) cuda_restore_capture(before);
    if (!done) return free(s), free(b), NULL;
    s->of = of, s->bytes = bytes, s->small = small, s->first = b;
    b->in = s, b->p = s->p, b->bytes = bytes;
    if ((s->following = of->segments)) s->following->previous = s;
    of->segments = s;
    count_segment(s, 1), m.stats[of->device].device_allocations++;
    return s;
}
static void segment_free(segment *s) /* its one block is free and in no bin */
{
    cuda.cuMemFree_v2(s->p);
    count_segment(s, -1), m.stats[s->of->device].device_frees++;
    if (s->following) s->following->previous = s->previous;
    if (s->previous) s->previous->following = s->following;
    else s->of->segments = s->following;
    free(s->first), free(s);
}
static bool is_whole(const block *b) { return !b->before && !b->after; }

static int holders_of(uint64_t private)
{
    for (private_pool *p = m.privates; p; p = p->next)
        if (p->number == private) return p->holders;
    return 0;
}
static void release_free_segments(int device) /* -1: of all devices */
{
    for (pool *of = m.pools; of; of = of->next) {
        if ((device >= 0 && of->device != device) || (of->private && holders_of(of->private))) continue;
        for (segment *s = of->segments, *next; s; s = next) {
            next = s->following;
            if (s->first->used || s->first->waits || !is_whole(s->first)) continue;
            if (cuda_use(of->device) < 0) return;
            take_from_bin(s->first), segment_free(s);
        }
    }
    for (pool **at = &m.pools, *of; (of = *at);)
        if (of->private && !of->segments && !holders_of(of->private)) *at = of->next, free(of);
        else at = &of->next;
}

/* ---- blocks ---- */
static void join(block *b, block *gone) /* its neighbour behind it */
{
    b->bytes += gone->bytes, b->after = gone->after;
    if (b->after) b->after->before = b;
    free(gone);
}
static void block_free(block *b)
{
    count_active(b, -1);
    b->used = false;
    if (b->before && !b->before->used && !b->before->waits) b = b->before, take_from_bin(b), join(b, b->after);
    if (b->after && !b->after->used && !b->after->waits) take_from_bin(b->after), join(b, b->after);
    if (m.no_cache && is_whole(b) && !b->in->of->private && !cuda_captures_running())
        cuda.cuCtxSynchronize(), segment_free(b->in);
    else put_in_bin(b);
}
static void cut(block *b, size_t bytes)
{
    block *rest = calloc(1, sizeof *rest);
    if (!rest) return; /* the block stays larger than asked */
    *rest = (block){ .before = b, .after = b->after, .in = b->in, .p = b->p + bytes, .bytes = b->bytes - bytes };
    if (rest->after) rest->after->before = rest;
    b->after = rest, b->bytes = bytes;
    put_in_bin(rest);
}
static block *found(pool *of, size_t bytes)
{
    bool   small = bytes <= SMALL;
    block *b = m.no_cache && !of->private ? NULL : best_in(of, small, bytes);
    if (b) take_from_bin(b);
    else {
        size_t   all = m.no_cache                 ? bytes
                       : small                    ? SMALL_SEGMENT
                       : bytes < FROM_OWN_SEGMENT ? LARGE_SEGMENT
                                                  : rounded(bytes, SMALL_SEGMENT);
        segment *s = segment_new(of, small, all);
        if (!s) return NULL;
        b = s->first;
    }
    b->used = true;
    size_t rest = b->bytes - bytes;
    if (small ? rest >= UNIT : rest > SMALL) cut(b, bytes);
    return b;
}

/* ---- blocks that other streams use ---- */
static void wait_for_uses(block *b) /* the lock is held */
{
    int device = b->in->of->device;
    if (cuda_use(device) < 0) return;
    for (int i = 0; i < b->n_uses; i++) {
        waiting *w = malloc(sizeof *w);
        cu_event event = w ? cuda_event_take(device) : NULL;
        if (!event || cuda.cuEventRecord(event, b->uses[i]) != 0) {
            cuda.cuCtxSynchronize(); /* slow, and right */
            if (event) cuda_event_give(device, event);
            free(w);
            continue;
        }
        *w = (waiting){ m.waits, b, event }, m.waits = w, b->waits++;
    }
    free(b->uses), b->uses = NULL, b->n_uses = 0;
    if (!b->waits) block_free(b);
}
static void look_at_waits(int device, bool wait) /* the lock is held; device: -1: all */
{
    for (waiting **at = &m.waits, *w; (w = *at);) {
        int of = w->b->in->of->device;
        if ((device >= 0 && of != device) || cuda_use(of) < 0 ||
            (wait ? cuda.cuEventSynchronize(w->event) : cuda.cuEventQuery(w->event)) != 0) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        cuda_event_give(of, w->event);
        if (--w->b->waits == 0) block_free(w->b);
        free(w);
    }
}
void (*lc_cuda_memory_watcher)(int what, int device, uint64_t address, size_t bytes, void *stream);
static void tell_watcher(int what, int device, uint64_t address, size_t bytes, cu_stream stream) /* without the lock */
{
    void (*watcher)(int, int, uint64_t, size_t, void *) = lc_cuda_memory_watcher; /* read once: another thread may end it */
    if (watcher) watcher(what, device, address, bytes, stream);
}
static void keep(lc_storage *s)
{
    block *b = s->owner;
    if (!cuda_usable()) return; /* a forked process: the memory is its parent's */
    int before = cuda_current();
    tell_watcher(0, b->in->of->device, b->p, b->bytes, b->in->of->stream); /* before another thread can get the memory */
    pthread_mutex_lock(&m.lock);
    count_allocated(b, -1);
    if (!b->n_uses) block_free(b);
    else if (cuda_captures_running()) b->following = m.after_capture, m.after_capture = b;
    else wait_for_uses(b);
    pthread_mutex_unlock(&m.lock);
    if (before >= 0) cuda_use(before);
}
void cuda_memory_after_capture(void)
{
    pthread_mutex_lock(&m.lock);
    for (block *b; !cuda_captures_running() && (b = m.after_capture);) m.after_capture = b->following, wait_for_uses(b);
    pthread_mutex_unlock(&m.lock);
}

int lc_cuda_record_stream(lc_storage *s, void *stream)
{
    block *b = s->owner;
    if (s->deleter != keep) return 0; /* another library's memory: it knows its own streams */
    int rc = 0;
    pthread_mutex_lock(&m.lock);
    bool known = stream == b->in->of->stream;
    for (int i = 0; i < b->n_uses; i++) known |= b->uses[i] == stream;
    if (!known) {
        cu_stream *more = realloc(b->uses, ((size_t)b->n_uses + 1) * sizeof *more);
        if (more) b->uses = more, more[b->n_uses++] = stream;
        else rc = -1;
    }
    pthread_mutex_unlock(&m.lock);
    return rc < 0 ? lc_fail_int(LC_OutOfMemory, "out of memory: a stream of a block") : 0;
}

/* ---- allocation ---- */
static COLD int out_of_memory(size_t bytes, int device)
{
    const lc_cuda_memory_stats *s = &m.stats[device];
    size_t                      rest = 0, total = 0;
    double                      used = (double)s->count[LC_CUDA_ALLOCATED_BYTES][0].current,
           held = (double)s->count[LC_CUDA_RESERVED_BYTES][0].current;
    char limit[96] = "";
    if (cuda_use(device) == 0) cuda.cuMemGetInfo_v2(&rest, &total);
    if (m.limit[device])
        snprintf(limit, sizeof limit, " %.2f GiB are allowed to it (set_per_process_memory_fraction).",
                 (double)m.limit[device] / 0x1p30);
    m.stats[device].ooms++;
    return lc_fail_int(
        LC_OutOfMemory,
        "CUDA out of memory. Tried to allocate %.2f %s. GPU %d has a total capacity of %.2f GiB of which %.2f GiB is free. "
        "This "
        "process holds %.2f GiB: %.2f GiB are allocated, %.2f GiB are kept for reuse.%s lucid.cuda.memory_summary() says more",
        (double)bytes / (bytes < 1 << 30 ? 0x1p20 : 0x1p30), bytes < 1 << 30 ? "MiB" : "GiB", device, (double)total / 0x1p30,
        (double)rest / 0x1p30, held / 0x1p30, used / 0x1p30, (held - used) / 0x1p30, limit);
}

static int cuda_alloc(lc_storage *s)
{
    int    device = s->device.index;
    size_t bytes = rounded(s->bytes, UNIT);
    if (cuda_use(device) < 0) return -1;
    pthread_mutex_lock(&m.lock);
    if (!m.asked_cache) {
        const char *cache = getenv("LUCID_CUDA_CACHE");
        m.asked_cache = true, m.no_cache = cache && !strcmp(cache, "0");
    }
    pool  *of = bytes >> 48 ? NULL : pool_of(device, cuda_stream(), cuda_capture_pool());
    bool   captures = cuda_captures_running();
    block *b = NULL;
    if (m.waits && !captures) look_at_waits(device, false);
    if (of && !(b = found(of, bytes)) && !captures) {
        look_at_waits(device, true), release_free_segments(device);
        if (cuda_use(device) == 0) b = found(of, bytes);
        m.stats[device].retries += b != NULL;
    }
    if (b) b->asked = s->bytes, count_active(b, 1), count_allocated(b, 1);
    int rc = b ? 0 : out_of_memory(s->bytes, device);
    pthread_mutex_unlock(&m.lock);
    if (b) s->data = (char *)(uintptr_t)b->p, s->owner = b, s->deleter = keep;
    tell_watcher(b ? 1 : -1, device, b ? b->p : 0, b ? b->bytes : bytes, cuda_stream());
    return rc;
}

void *cuda_scratch_new(cuda_scratch *s, int device, size_t bytes)
{
    memset(s, 0, sizeof *s);
    s->s.device = (lc_device){ LC_CUDA, (int8_t)device }, s->s.bytes = bytes ? bytes : 1;
    return cuda_alloc(&s->s) < 0 ? NULL : s->s.data;
}
void cuda_scratch_free(cuda_scratch *s)
{
    if (s->s.data) keep(&s->s), s->s.data = NULL;
}

const lc_device_allocator cuda_memory = { .alloc = cuda_alloc, .alloc_pinned = cuda_alloc_pinned };

/* ---- private pools ---- */
void cuda_pool_hold(uint64_t number)
{
    pthread_mutex_lock(&m.lock);
    private_pool **at = &m.privates, *p;
    while ((p = *at) && p->number != number) at = &p->next;
    if (!p && (p = calloc(1, sizeof *p))) p->number = number, *at = p;
    if (p) p->holders++;
    pthread_mutex_unlock(&m.lock);
}
void cuda_pool_drop(uint64_t number)
{
    int before = cuda_current();
    pthread_mutex_lock(&m.lock);
    private_pool **at = &m.privates, *p;
    while ((p = *at) && p->number != number) at = &p->next;
    if (p && --p->holders == 0) {
        *at = p->next, free(p);
        if (!cuda_captures_running()) release_free_segments(-1);
    }
    pthread_mutex_unlock(&m.lock);
    if (before >= 0) cuda_use(before);
}

/* ---- what the host language asks ---- */
void lc_cuda_empty_cache(void)
{
    int before = cuda_current();
    if (!cuda_usable() || cuda_captures_running()) return;
    pthread_mutex_lock(&m.lock);
    look_at_waits(-1, true), release_free_segments(-1);
    pthread_mutex_unlock(&m.lock);
    if (before >= 0) cuda_use(before);
}
void lc_cuda_memory_read(int device, lc_cuda_memory_stats *stats)
{
    memset(stats, 0, sizeof *stats);
    if (device < 0 || device >= CUDA_DEVICES) return;
    pthread_mutex_lock(&m.lock);
    *stats = m.stats[device];
    pthread_mutex_unlock(&m.lock);
    for (int what = 0; what < LC_CUDA_COUNTS; what++)
        for (int of = 0; of < LC_CUDA_POOLS; of++) {
            lc_cuda_count *c = &stats->count[what][of];
            c->freed += c->allocated - c->current;
        }
}
void lc_cuda_memory_reset(int device, bool peaks) /* peaks, or the sums */
{
    if (device < 0 || device >= CUDA_DEVICES) return;
    pthread_mutex_lock(&m.lock);
    lc_cuda_memory_stats *s = &m.stats[device];
    for (int what = 0; what < LC_CUDA_COUNTS; what++)
        for (int of = 0; of < LC_CUDA_POOLS; of++)
            if (peaks) s->count[what][of].peak = s->count[what][of].current;
            else s->count[what][of].allocated = 0, s->count[what][of].freed = s->count[what][of].current;
    if (!peaks) s->retries = s->ooms = 0;
    pthread_mutex_unlock(&m.lock);
}
int lc_cuda_memory_limit(int device, double fraction)
{
    size_t bytes = 0;
    if (cuda_use(device) < 0 || cuda_check(cuda.cuDeviceTotalMem_v2(&bytes, device), "cuDeviceTotalMem") < 0) return -1;
    pthread_mutex_lock(&m.lock);
    m.limit[device] = fraction >= 1 ? 0 : (size_t)(fraction * (double)bytes) + 1;
    pthread_mutex_unlock(&m.lock);
    return 0;
}
double lc_cuda_memory_limit_of(int device) /* as a fraction; 1: none */
{
    size_t bytes = 0;
    if (cuda_use(device) < 0 || cuda.cuDeviceTotalMem_v2(&bytes, device) != 0 || !bytes || !m.limit[device]) return 1;
    return (double)(m.limit[device] - 1) / (double)bytes;
}
int lc_cuda_memory_blocks(lc_cuda_block *to, int room) /* all blocks, by segments; returns how many there are */
{
    int n = 0;
    pthread_mutex_lock(&m.lock);
    for (pool *of = m.pools; of; of = of->next)
        for (segment *s = of->segments; s; s = s->following)
            for (block *b = s->first; b; b = b->after, n++)
                if (n < room)
                    to[n] = (lc_cuda_block){ .device = of->device,
                                             .small = s->small,
                                             .state = b->waits  ? LC_CUDA_BLOCK_WAITS
                                                      : b->used ? LC_CUDA_BLOCK_USED
                                                                : LC_CUDA_BLOCK_FREE,
                                             .segment = s->p,
                                             .address = b->p,
                                             .stream = (uintptr_t)of->stream,
                                             .private_pool = of->private,
                                             .segment_bytes = (int64_t)s->bytes,
                                             .bytes = (int64_t)b->bytes,
                                             .asked = (int64_t)b->asked };
    pthread_mutex_unlock(&m.lock);
    return n;
}
