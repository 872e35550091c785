/* A CUDA driver for machines without a GPU, for tests: the kernel texts, compiled as C++ (compiler.cpp), run on the CPU (blocks.cpp).
 * Work waits in the queue of its stream until something waits for it, and streams run in random order but for what events say, so
 * that memory that is freed or changed too early and events that are missing show. Device memory starts as garbage (not-a-number,
 * or -1). EMULATOR_DEVICES, EMULATOR_MEMORY_MIB (each), EMULATOR_SHARED (bytes of a block). EMULATOR_GUARD=1: behind every
 * allocation is memory that faults. EMULATOR_RACES=1: accesses that nothing orders are found (races.cpp).
 *
 * Planted bugs (test_planted.py): EMULATOR_OMIT names what the driver leaves out, as if it had not been asked for. "emulator:
 * planted" on stderr says that it was done. EMULATOR_IDLE=1: kernels, fills and copies on the device are counted and not run, to
 * measure what the host does (benchmarks/gpu_host.py).
 *
 * Build (test_emulated.py does): g++ -shared -fPIC -O1 emulator.cpp blocks.cpp compiler.cpp races.cpp -o libcuda.so.1 -ldl, and
 * libnvrtc.so.13 links to it. What ran is told to emulated_watcher (cupti.cpp). */
#include "emulator.h"
#include "races.h"
#include "watch.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

static std::recursive_mutex                lock;
static bool                                failing_fetches;
static int64_t                             launches, sent, fetched; /* kernels; copies from the host, to it */
static std::map<const void *, std::string> names;                   /* of kernels */
static bool idle()
{
    static const bool chosen = getenv("EMULATOR_IDLE");
    return chosen;
}

/* ---- streams: queues that run when somebody waits, and no sooner ---- */
struct event;
struct graph;
struct stream;
struct mark { /* a point of a stream */
    stream *of;
    bool    done = false;
    double  time = 0;
};
struct work {
    enum { KERNEL, FILL, FILL32, COPY, SENT, CALL, RECORD, WAIT, GRAPH } kind;
    launch            l;
    char             *to = nullptr;
    const char       *from = nullptr;
    size_t            bytes = 0;
    uint32_t          value = 0;
    std::vector<char> data; /* SENT: taken at the call; CALL: what the function gets */
    void (*function)(const void *) = nullptr;
    std::shared_ptr<mark> m;
    std::shared_ptr<std::vector<work>> all; /* GRAPH */
    unsigned stream = 0, shared = 0; /* for the watcher, as what follows is */
    uint32_t call = 0;
    int      device = 0, other_device = 0, how = 0, from_memory = 0;
};
struct event { /* what it was recorded as last: who waits for an earlier record is not disturbed */
    std::shared_ptr<mark> last;
    bool                  times = true;
    stream               *of = nullptr;
    graph                *captured = nullptr;
    size_t                position = 0;
};
struct graph {
    std::shared_ptr<std::vector<work>> all = std::make_shared<std::vector<work>>();
    bool    broken = false;
    int     mode = 0;
    stream *origin = nullptr;
};
struct stream {
    std::deque<work> queue;
    graph           *capture = nullptr;
    size_t           captured = 0, joined = 0;
    unsigned         number = ++numbers;
    static unsigned  numbers;
};
unsigned stream::numbers = 6; /* CUPTI's number of the default stream is 7 */
static std::vector<stream *> streams{ new stream }; /* the first one is the default stream */
static int                   capturing_globally;
static thread_local int      capture_mode; /* of calls of this thread: 0 global, 1 this thread's, 2 relaxed */
static thread_local int      device_now;
static stream *of(void *s) { return s ? (stream *)s : streams[0]; }
static double  milliseconds()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* ---- who watches ---- */
extern "C" const emulated_watcher_calls *emulated_watcher;
const emulated_watcher_calls            *emulated_watcher;
static bool is_pinned(const void *p);
enum { PAGEABLE = 1, PINNED, DEVICE };
static uint64_t wall_clock()
{
    timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static void tell(const work &w, uint32_t call, uint64_t start)
{
    emulated_activity a{};
    a.start = start, a.end = wall_clock(), a.call = call, a.stream = w.stream, a.shared = w.shared, a.value = w.value;
    a.device = w.device, a.other_device = w.other_device, a.how = w.how, a.from = w.from_memory;
    a.to = w.how == 2 ? is_pinned(w.to) ? PINNED : PAGEABLE : DEVICE;
    a.bytes = w.kind == work::SENT ? w.data.size() : w.kind == work::FILL32 ? 4 * w.bytes : w.bytes;
    a.kind = w.kind == work::KERNEL || w.kind == work::CALL ? emulated_activity::KERNEL : w.how ? emulated_activity::COPY : emulated_activity::FILL;
    if (w.kind == work::CALL) a.name = "library";
    if (w.kind == work::KERNEL) {
        a.name = names[w.l.k].c_str();
        a.grid[0] = w.l.grid.x, a.grid[1] = w.l.grid.y, a.grid[2] = w.l.grid.z;
        a.block[0] = w.l.block.x, a.block[1] = w.l.block.y, a.block[2] = w.l.block.z;
    }
    emulated_watcher->ran(a);
}
static void asked(work &w, stream *s) { w.stream = s->number, w.device = device_now, w.call = emulated_watcher ? emulated_watcher->called() : 0; }

static void run_stream(stream *s, const mark *until);
static void perform(work &w, uint32_t call)
{
    uint64_t start = call ? wall_clock() : 0;
    switch (w.kind) {
    case work::KERNEL: run_kernel(w.l, names[w.l.k].c_str()); break;
    case work::FILL: memset(w.to, (int)w.value, w.bytes); break;
    case work::FILL32:
        for (size_t i = 0; i < w.bytes; i++) memcpy(w.to + 4 * i, &w.value, 4);
        break;
    case work::COPY: memmove(w.to, w.from, w.bytes); break;
    case work::SENT: memcpy(w.to, w.data.data(), w.data.size()); break;
    case work::CALL: w.function(w.data.data()); break;
    case work::RECORD:
        w.m->time = milliseconds(), w.m->done = true;
        break;
    case work::WAIT:
        if (!w.m->done) run_stream(w.m->of, w.m.get());
        break;
    case work::GRAPH:
        for (work &step : *w.all) perform(step, call);
    }
    if (call && w.kind != work::RECORD && w.kind != work::WAIT && w.kind != work::GRAPH) tell(w, call, start);
}
/* Device memory: an arena that only work of the device may touch. A host that reads or writes it faults, as it does beside a GPU. */
struct arena {
    enum : size_t { PAGE = 4096, BYTES = (size_t)1 << 38 };
    char                           *base = nullptr;
    size_t                          used = 0;
    int                             open = 0;
    std::multimap<size_t, char *>   left; /* given back, by size */
    bool                            guarded = getenv("EMULATOR_GUARD") != nullptr;
    std::vector<char *>             guards; /* pages that stay closed */
    char *take(size_t asked)
    {
        char *p = pages(asked);
        return p && guarded ? p + (PAGE - asked % PAGE) % PAGE / 256 * 256 : p; /* it ends where the closed page begins */
    }
    char *pages(size_t n)
    {
        n = (n + PAGE - 1) / PAGE * PAGE;
        auto found = left.find(n);
        if (found != left.end()) {
            char *p = found->second;
            return left.erase(found), p;
        }
        if (!base) {
            base = (char *)mmap(0, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (base != MAP_FAILED) races_device_memory(base);
        }
        if (base == MAP_FAILED || used + n + PAGE > BYTES) return nullptr;
        used += n;
        if (!guarded) return base + used - n;
        guards.push_back(base + used), used += PAGE;
        return base + used - PAGE - n;
    }
    void give(char *p, size_t n)
    {
        n = (n + PAGE - 1) / PAGE * PAGE, p -= (uintptr_t)p % PAGE;
        madvise(p, n, MADV_DONTNEED), left.emplace(n, p);
    }
    void protect(int how)
    {
        if (used) mprotect(base, used, how);
        for (char *p : guards)
            if (how != PROT_NONE) mprotect(p, PAGE, PROT_NONE);
    }
};
static arena device_memory;
struct device_access {
    device_access() { if (!device_memory.open++) device_memory.protect(PROT_READ | PROT_WRITE); }
    ~device_access() { if (!--device_memory.open) device_memory.protect(PROT_NONE); }
};
static void run_stream(stream *s, const mark *until = nullptr)
{
    if (s->queue.empty()) return;
    device_access here;
    while (!s->queue.empty() && !(until && until->done)) {
        work w = std::move(s->queue.front());
        s->queue.pop_front();
        perform(w, w.call);
    }
}
static void run_all()
{
    for (size_t i = streams.size(); i > 1; i--) std::swap(streams[i - 1], streams[1 + thrown((unsigned)i - 1)]); /* but the first */
    for (stream *s : streams) run_stream(s);
}
static int add(stream *s, work &&w)
{
    asked(w, s);
    if (s->capture) return s->captured++, s->capture->all->push_back(std::move(w)), 0;
    s->queue.push_back(std::move(w));
    if (s->queue.size() > 4096) run_stream(s);
    return 0;
}
static int forbidden() /* what a capture does not allow to any thread that has not relaxed its mode */
{
    if (!capturing_globally || capture_mode == 2) return 0;
    for (stream *s : streams)
        if (s->capture) s->capture->broken = true;
    return 900;
}

/* ---- the driver ---- */
static __attribute__((constructor)) void export_symbols() /* kernels refer to them */
{
    Dl_info me;
    if (dladdr((void *)export_symbols, &me)) dlopen(me.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}
typedef int result;
#define CALL(name) extern "C" result name
typedef std::lock_guard<std::recursive_mutex> guard;
struct block {
    size_t bytes;
    int    device;
};
static std::map<uint64_t, block> memory;
static std::map<char *, size_t>  pinned;
static size_t                    taken[16];
static long   setting(const char *name, long otherwise) { return getenv(name) ? atol(getenv(name)) : otherwise; }
static size_t capacity() { return (size_t)setting("EMULATOR_MEMORY_MIB", 4096) << 20; }
static bool   is_pinned(const void *p)
{
    auto next = pinned.upper_bound((char *)p);
    return next != pinned.begin() && (--next, (char *)p < next->first + next->second);
}
static char *at(uint64_t p) { return (char *)(uintptr_t)p; }
extern "C" int emulated_allocation(const void *p, size_t *offset, size_t *bytes) /* where p lies */
{
    auto next = memory.upper_bound((uint64_t)(uintptr_t)p);
    if (next == memory.begin()) return 0;
    --next;
    *offset = (uint64_t)(uintptr_t)p - next->first, *bytes = next->second.bytes;
    return *offset < *bytes;
}

static size_t most_shared() /* bytes that a block can have */
{
    static const size_t most = (size_t)setting("EMULATOR_SHARED", 227 << 10);
    return most;
}

CALL(cuInit)(unsigned) { return 0; }
CALL(cuDriverGetVersion)(int *v) { return *v = 13000, 0; }
static int profiled;
CALL(cuProfilerStart)() { return profiled++, 0; }
CALL(cuProfilerStop)() { return profiled ? profiled--, 0 : 4; }
CALL(cuDeviceGetCount)(int *n) { return *n = (int)setting("EMULATOR_DEVICES", 1), 0; }
CALL(cuDeviceGetAttribute)(int *v, int attribute, int)
{
    *v = attribute == 97 ? (int)most_shared() : attribute == 75 ? 0 : attribute == 76 ? 1 : attribute == 16 ? 4 : attribute == 39 ? 2048 : attribute == 10 ? 32 : 0;
    return 0;
}
CALL(cuDeviceGetName)(char *name, int n, int) { return snprintf(name, (size_t)n, "emulated GPU"), 0; }
CALL(cuDeviceGetUuid_v2)(void *to, int device) { return memset(to, device + 1, 16), 0; }
CALL(cuDeviceTotalMem_v2)(size_t *n, int) { return *n = capacity(), 0; }
CALL(cuDeviceCanAccessPeer)(int *can, int a, int b) { return *can = a != b, 0; }
CALL(cuMemGetInfo_v2)(size_t *rest, size_t *total) { return *total = capacity(), *rest = capacity() - taken[device_now], 0; }
CALL(cuDevicePrimaryCtxRetain)(void **c, int device) { return *c = (void *)(uintptr_t)(device + 1), 0; }
CALL(cuCtxSetCurrent)(void *c) { return device_now = (int)(uintptr_t)c - 1, 0; }
CALL(cuCtxGetStreamPriorityRange)(int *least, int *greatest) { return *least = 0, *greatest = -5, 0; }
CALL(cuCtxSynchronize)()
{
    guard g(lock);
    for (stream *s : streams)
        if (s->capture && s->capture->mode == 0) return s->capture->broken = true, 900;
    return run_all(), 0;
}
CALL(cuMemAlloc_v2)(uint64_t *p, size_t n)
{
    guard g(lock);
    if (int rc = forbidden()) return rc;
    if (n > capacity() - taken[device_now]) return 2;
    void *m = device_memory.take(n ? n : 1);
    if (!m) return 2;
    {
        device_access here;
        memset(m, GARBAGE, n);
    }
    taken[device_now] += n, memory[(uint64_t)(uintptr_t)m] = { n, device_now };
    return *p = (uint64_t)(uintptr_t)m, 0;
}
CALL(cuMemFree_v2)(uint64_t p)
{
    guard g(lock);
    if (int rc = forbidden()) return rc;
    auto found = memory.find(p);
    if (found == memory.end()) fprintf(stderr, "emulator: freed what was not allocated\n"), abort();
    size_t n = found->second.bytes;
    run_all(), taken[found->second.device] -= n, memory.erase(found);
    return device_memory.give(at(p), n ? n : 1), 0;
}
CALL(cuPointerGetAttribute)(void *value, int attribute, uint64_t p)
{
    guard g(lock);
    auto  next = memory.upper_bound(p);
    if (attribute != 9 || next == memory.begin()) return 1;
    --next;
    return p < next->first + next->second.bytes ? *(int *)value = next->second.device, 0 : 1;
}
CALL(cuMemHostAlloc)(void **p, size_t n, unsigned)
{
    guard g(lock);
    if (int rc = forbidden()) return rc;
    if (!(*p = calloc(1, n))) return 2;
    return pinned[(char *)*p] = n, 0;
}
CALL(cuMemFreeHost)(void *p) { guard g(lock); return run_all(), pinned.erase((char *)p), free(p), 0; }
CALL(cuMemHostRegister_v2)(void *p, size_t n, unsigned)
{
    guard g(lock);
    return is_pinned(p) ? 712 : (pinned[(char *)p] = n, 0);
}
CALL(cuMemHostUnregister)(void *p) { guard g(lock); return run_all(), pinned.erase((char *)p) ? 0 : 713; }
CALL(cuMemHostGetDevicePointer_v2)(uint64_t *to, void *p, unsigned) { return *to = (uint64_t)(uintptr_t)p, is_pinned(p) ? 0 : 1; }

enum { HOST_TO_DEVICE = 1, DEVICE_TO_HOST, BETWEEN_DEVICES = 10, ON_DEVICE = 8 };
static work copy_of(char *to, const char *from, size_t n, int how)
{
    work w{ work::COPY };
    w.how = how, w.from_memory = how == HOST_TO_DEVICE ? PINNED : DEVICE;
    return w.to = to, w.from = from, w.bytes = n, w;
}
CALL(cuMemcpyHtoDAsync_v2)(uint64_t to, const void *from, size_t n, void *s)
{
    guard g(lock);
    sent++;
    if (is_pinned(from)) return add(of(s), copy_of(at(to), (const char *)from, n, HOST_TO_DEVICE));
    if (of(s)->capture) return of(s)->capture->broken = true, 900;
    work w{ work::SENT };
    w.how = HOST_TO_DEVICE, w.from_memory = PAGEABLE;
    return w.to = at(to), w.data.assign((const char *)from, (const char *)from + n), add(of(s), std::move(w));
}
CALL(cuMemcpyDtoHAsync_v2)(void *to, uint64_t from, size_t n, void *s)
{
    guard g(lock);
    if (failing_fetches) return 719;
    fetched++;
    if (is_pinned(to)) return add(of(s), copy_of((char *)to, at(from), n, DEVICE_TO_HOST));
    if (of(s)->capture) return of(s)->capture->broken = true, 900;
    run_stream(of(s));
    device_access here;
    work w = copy_of((char *)to, at(from), n, DEVICE_TO_HOST);
    return asked(w, of(s)), perform(w, w.call), 0;
}
CALL(cuMemcpyDtoDAsync_v2)(uint64_t to, uint64_t from, size_t n, void *s) { guard g(lock); return idle() ? 0 : add(of(s), copy_of(at(to), at(from), n, ON_DEVICE)); }
CALL(cuMemcpyPeerAsync)(uint64_t to, void *, uint64_t from, void *of_context, size_t n, void *s)
{
    guard g(lock);
    work  w = copy_of(at(to), at(from), n, BETWEEN_DEVICES);
    return w.other_device = (int)(uintptr_t)of_context - 1, add(of(s), std::move(w));
}
static int fill(work &&w, uint64_t to, unsigned v, size_t n, void *s)
{
    guard g(lock);
    if (idle()) return 0;
    w.to = at(to), w.value = v, w.bytes = n;
    return add(of(s), std::move(w));
}
CALL(cuMemsetD8Async)(uint64_t to, unsigned char v, size_t n, void *s) { return fill(work{ work::FILL }, to, v, n, s); }
CALL(cuMemsetD32Async)(uint64_t to, unsigned v, size_t n, void *s) { return fill(work{ work::FILL32 }, to, v, n, s); }

CALL(cuStreamCreateWithPriority)(void **s, unsigned, int) { guard g(lock); return streams.push_back(new stream), *s = streams.back(), 0; }
CALL(cuStreamSynchronize)(void *s)
{
    guard g(lock);
    if (of(s)->capture) return of(s)->capture->broken = true, 900;
    if (!of(s)->queue.empty() && omitted("cuStreamSynchronize")) return 0;
    return run_stream(of(s)), 0;
}
CALL(cuStreamQuery)(void *s)
{
    guard g(lock);
    if (of(s)->capture) return of(s)->capture->broken = true, 900;
    if (of(s)->queue.empty()) return 0;
    device_access here;
    work w = std::move(of(s)->queue.front()); /* who asks in a loop sees progress */
    return of(s)->queue.pop_front(), perform(w, w.call), 600;
}
CALL(cuEventCreate)(void **e, unsigned flags)
{
    event *made = new event;
    return made->times = !(flags & 2), *e = made, 0;
}
CALL(cuEventDestroy_v2)(void *) { return 0; } /* queues may still hold it */
CALL(cuEventRecord)(void *p, void *s)
{
    guard  g(lock);
    event *e = (event *)p;
    if (of(s)->capture) return e->captured = of(s)->capture, e->of = of(s), e->position = of(s)->captured, 0;
    work w{ work::RECORD };
    e->captured = nullptr, e->of = of(s), w.m = e->last = std::make_shared<mark>(mark{ of(s) });
    return add(of(s), std::move(w));
}
CALL(cuStreamWaitEvent)(void *s, void *p, unsigned)
{
    guard  g(lock);
    event *e = (event *)p;
    if (e->captured) {
        if (of(s)->capture && of(s)->capture != e->captured) return 902;
        if (!of(s)->capture) of(s)->captured = of(s)->joined = 0;
        of(s)->capture = e->captured;
        if (e->of != of(s) && e->position > e->of->joined) e->of->joined = e->position;
        return 0;
    }
    if (of(s)->capture) return of(s)->capture->broken = true, 905;
    if (!e->last || e->last->done || omitted("cuStreamWaitEvent")) return 0;
    work w{ work::WAIT };
    w.m = e->last;
    return add(of(s), std::move(w));
}
CALL(cuEventQuery)(void *p)
{
    guard  g(lock);
    event *e = (event *)p;
    if (e->captured) return 900;
    if (int rc = forbidden()) return rc;
    if (!e->last || e->last->done || omitted("cuEventQuery")) return 0;
    if (!e->of->queue.empty()) {
        device_access here;
        work w = std::move(e->of->queue.front());
        e->of->queue.pop_front(), perform(w, w.call);
    }
    return 600;
}
CALL(cuEventSynchronize)(void *p)
{
    guard  g(lock);
    event *e = (event *)p;
    if (e->captured) return 900;
    if (e->last) run_stream(e->of, e->last.get());
    return 0;
}
CALL(cuEventElapsedTime)(float *to, void *a, void *b)
{
    guard  g(lock);
    event *first = (event *)a, *last = (event *)b;
    if (!first->times || !last->times || !first->last || !last->last) return 400;
    if (!first->last->done || !last->last->done) return 600;
    return *to = (float)(last->last->time - first->last->time), 0;
}

/* ---- graphs: the steps in the order in which they were captured ---- */
CALL(cuThreadExchangeStreamCaptureMode)(int *mode) { return std::swap(*mode, capture_mode), 0; }
CALL(cuStreamBeginCapture_v2)(void *s, int mode)
{
    guard g(lock);
    if (!s || of(s)->capture) return 901;
    graph *made = new graph;
    made->mode = mode, made->origin = of(s);
    of(s)->capture = made, of(s)->captured = of(s)->joined = 0;
    capturing_globally += mode == 0;
    return 0;
}
CALL(cuStreamIsCapturing)(void *s, int *status) { guard g(lock); return *status = of(s)->capture ? of(s)->capture->broken ? 2 : 1 : 0, 0; }
CALL(cuStreamEndCapture)(void *s, void **to)
{
    guard  g(lock);
    graph *ended = of(s)->capture;
    if (!ended || ended->origin != of(s)) return 901;
    int rc = ended->broken ? 901 : 0;
    for (stream *other : streams)
        if (other->capture == ended) {
            if (other != ended->origin && other->captured > other->joined && !rc) rc = 904;
            other->capture = nullptr;
        }
    capturing_globally -= ended->mode == 0;
    return *to = rc ? nullptr : ended, rc;
}
CALL(cuGraphInstantiateWithFlags)(void **run, void *g, unsigned long long) { return *run = new graph(*(graph *)g), 0; }
CALL(cuGraphLaunch)(void *run, void *s)
{
    guard g(lock);
    work  w{ work::GRAPH };
    return w.all = ((graph *)run)->all, add(of(s), std::move(w));
}
CALL(cuGraphExecDestroy)(void *run) { guard g(lock); return delete (graph *)run, 0; }
CALL(cuGraphDestroy)(void *g) { return delete (graph *)g, 0; }
CALL(cuGraphGetNodes)(void *g, void **, size_t *n) { return *n = ((graph *)g)->all->size(), 0; }
CALL(cuGraphDebugDotPrint)(void *g, const char *path, unsigned)
{
    FILE *f = fopen(path, "w");
    if (!f) return 1;
    fprintf(f, "digraph { /* %zu steps */ }\n", ((graph *)g)->all->size());
    return fclose(f), 0;
}

CALL(cuGetErrorString)(result rc, const char **text)
{
    return *text = rc == 900   ? "operation not permitted when stream is capturing"
                   : rc == 901 ? "operation failed due to a previous error during capture"
                   : rc == 904 ? "capturing stream has unjoined work"
                               : "emulated",
           0;
}
CALL(cuModuleLoadData)(void **module, const void *image)
{
    uint64_t n;
    if (guard g(lock); int rc = forbidden()) return rc; /* code takes memory of the device */
    memcpy(&n, (const char *)image + 8, 8);
    if (memcmp(image, "EMULATED", 8)) return 200;
    char path[] = "/tmp/lucid-emulated-XXXXXX"; /* a name of its own: dlopen knows libraries by name */
    int  fd = mkstemp(path);
    bool whole = fd >= 0 && write(fd, (const char *)image + 16, n) == (ssize_t)n;
    if (fd >= 0) close(fd);
    *module = whole ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!*module) fprintf(stderr, "emulator: %s\n", dlerror());
    if (fd >= 0) remove(path);
    return *module && races_watched() == (dlsym(*module, "emulated_races") != nullptr) ? 0 : 200; /* else it is compiled again */
}
CALL(cuModuleGetFunction)(void **f, void *module, const char *name)
{
    guard g(lock);
    if (int rc = forbidden()) return rc; /* it may be loaded now */
    *f = dlsym(module, (std::string(name) + "_emulated").c_str()); /* a __global__ function */
    if (!*f) *f = dlsym(module, name);
    if (*f) names[*f] = name;
    return *f ? 0 : 500;
}
/* What the driver refuses; registers it cannot know (tools/check_cuda_text.py does). A kernel counts as having all static shared
 * memory of its text. */
enum { PLAIN_SHARED = 48 << 10, INVALID = 1, MOST_DYNAMIC_SHARED = 8 };
static std::map<const void *, size_t> dynamic_shared; /* of kernels that may have more than others */
static bool fits(const void *f, const uint64_t grid[3], const uint64_t block[3], size_t shared)
{
    static const uint64_t most_blocks[3] = { 0x7fffffff, 65535, 65535 }, most_threads[3] = { 1024, 1024, 64 };
    for (int i = 0; i < 3; i++)
        if (!grid[i] || grid[i] > most_blocks[i] || !block[i] || block[i] > most_threads[i]) return false;
    auto   more = dynamic_shared.find(f);
    size_t own = static_shared_memory((const kernel *)f), plain = own < PLAIN_SHARED ? PLAIN_SHARED - own : 0;
    return block[0] * block[1] * block[2] <= (uint64_t)((const kernel *)f)->threads && own <= PLAIN_SHARED &&
           shared <= (more == dynamic_shared.end() || more->second < plain ? plain : more->second);
}
CALL(cuFuncSetAttribute)(void *f, int attribute, int value)
{
    guard g(lock);
    if (attribute != MOST_DYNAMIC_SHARED || omitted("cuFuncSetAttribute")) return 0;
    if (value < 0 || static_shared_memory((const kernel *)f) + (size_t)value > most_shared()) return INVALID;
    return dynamic_shared[f] = (size_t)value, 0;
}
CALL(cuLaunchKernel)(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *s,
                     void **params, void **)
{
    guard         g(lock);
    const kernel *k = (const kernel *)f;
    launches++;
    if (idle()) return 0;
    const uint64_t grid[] = { gx, gy, gz }, block[] = { bx, by, bz };
    if (!fits(f, grid, block, shared)) return INVALID;
    work w{ work::KERNEL };
    w.l = { k, { gx, gy, gz }, { bx, by, bz }, shared, {} }, w.shared = shared;
    if (k->sizes)
        for (int i = 0; i < k->n; i++) {
            size_t start = w.l.args.size();
            w.l.args.resize(start + ((size_t)k->sizes[i] + 15) / 16 * 16);
            memcpy(w.l.args.data() + start, params[i], (size_t)k->sizes[i]);
        }
    else w.l.args.assign((const char *)params[0], (const char *)params[0] + k->bytes);
    return add(of(s), std::move(w));
}
/* For libraries that are emulated beside the driver (cublas.cpp): a function of theirs that runs in the order of the stream. */
CALL(emulated_enqueue)(void *s, void (*function)(const void *), const void *data, size_t n)
{
    guard g(lock);
    launches++;
    if (idle()) return 0;
    work w{ work::CALL };
    return w.function = function, w.data.assign((const char *)data, (const char *)data + n), add(of(s), std::move(w));
}
CALL(emulated_device)() { return device_now; }
extern "C" int64_t emulated_launches() { return launches; }
extern "C" int64_t emulated_sent() { return sent; }
extern "C" int64_t emulated_fetched() { return fetched; }
extern "C" void    emulated_fail_fetches(int fail) { failing_fetches = fail; }
