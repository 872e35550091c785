/* CUPTI for the emulated driver: records of its work in the layout of CUPTI 13.0, written field by field at their offsets in the
 * ABI, beside kinds of records that nobody asked about. What is not a field is garbage. Buffers are small and come back from
 * another thread; the clock is an hour ahead. EMULATOR_CUPTI_REFUSES=1: nothing can be enabled.
 *
 * Build (test_emulated.py does): g++ -shared -fPIC -O1 cupti.cpp -o libcupti.so.13, beside the emulated libcuda.so.1. */
#include "watch.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

typedef void give_buffer(uint8_t **buffer, size_t *bytes, size_t *most);
typedef void take_buffer(void *, uint32_t, uint8_t *buffer, size_t bytes, size_t used);
enum kind { COPY = 1, FILL = 2, DRIVER = 4, RUNTIME = 5, KERNEL = 10, OVERHEAD = 17, PEER_COPY = 22, EXTERNAL = 39 };
enum { OK = 0, INVALID = 1, INVALID_OPERATION = 7, NO_MORE = 12, EMPTY = 18, INVALID_KIND = 21, REFUSED = 35, CUSTOM0 = 3 };
enum : uint64_t { AHEAD = 3600000000000u };

static std::recursive_mutex lock;
static give_buffer         *give;
static take_buffer         *take;
static std::set<int>        enabled;
static uint8_t             *buffer;
static size_t               room, used, records;
static uint32_t             calls;
static thread_local std::vector<uint64_t> pushed;
typedef std::lock_guard<std::recursive_mutex> guard;

static size_t size_of(uint32_t kind)
{
    switch (kind) {
    case COPY: return 96;
    case FILL: return 88;
    case DRIVER:
    case RUNTIME: return 40;
    case KERNEL: return 216;
    case OVERHEAD: return 48;
    case PEER_COPY: return 96;
    case EXTERNAL: return 24;
    default: return 0;
    }
}
static void hand_over()
{
    if (!buffer) return;
    uint8_t *full = buffer;
    size_t   bytes = room, filled = used;
    buffer = nullptr;
    std::thread([=] { take(nullptr, 0, full, bytes, filled); }).join();
}
struct record { /* one that is being written; null if there is no buffer */
    uint8_t *at = nullptr;
    explicit record(uint32_t kind)
    {
        size_t n = size_of(kind), most = 0;
        if (buffer && (used + n > room || records == 50)) hand_over();
        if (!buffer) give(&buffer, &room, &most), used = records = 0;
        if (!buffer) return;
        at = buffer + used, used += n, records++;
        memset(at, 0xEE, n);
        put(0, kind);
    }
    template <typename T> record &put(size_t offset, T value)
    {
        if (at) memcpy(at + offset, &value, sizeof value);
        return *this;
    }
};

static uint64_t now()
{
    timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + AHEAD;
}
static uint32_t called()
{
    guard g(lock);
    if (enabled.empty() || !give) return 0;
    uint32_t call = ++calls;
    if (enabled.count(DRIVER)) {
        if (enabled.count(EXTERNAL) && !pushed.empty())
            record(EXTERNAL).put<uint32_t>(4, CUSTOM0).put(8, pushed.back()).put(16, call);
        record(DRIVER).put<uint32_t>(4, 307).put(8, now()).put(16, now()).put(32, call).put<uint32_t>(36, 0);
    }
    if (call % 3 == 0) record(OVERHEAD).put(8, now());
    return call;
}
static void ran(const emulated_activity &a)
{
    guard g(lock);
    bool  peer = a.kind == emulated_activity::COPY && a.how == 10;
    int   kind = a.kind == emulated_activity::KERNEL ? KERNEL : a.kind == emulated_activity::FILL ? FILL : peer ? PEER_COPY : COPY;
    if (!enabled.count(kind)) return;
    record r((uint32_t)kind);
    r.put(16, a.start + AHEAD).put(24, a.end + AHEAD);
    if (kind == KERNEL) {
        r.put<uint16_t>(6, 32).put(40, a.device).put<uint32_t>(44, 1).put(48, a.stream);
        for (size_t d = 0; d < 3; d++) r.put(52 + 4 * d, a.grid[d]).put(64 + 4 * d, a.block[d]);
        r.put<uint32_t>(76, 0).put(80, a.shared).put(92, a.call).put(104, a.name);
        return;
    }
    r.put(8, a.bytes).put(32, a.device).put<uint32_t>(36, 1).put(40, a.stream);
    if (kind == FILL) r.put(4, a.value).put(44, a.call).put<uint16_t>(48, 0).put(50, (uint16_t)a.to);
    else r.put(4, (uint8_t)a.how).put(5, (uint8_t)a.from).put(6, (uint8_t)a.to);
    if (kind == COPY) r.put(44, a.call);
    if (kind == PEER_COPY) r.put(44, a.other_device).put(52, a.device).put(60, a.call);
}
static const emulated_watcher_calls watcher = { called, ran };

#define CALL(name) extern "C" int name
CALL(cuptiActivityRegisterCallbacks)(give_buffer *g, take_buffer *t)
{
    if (!g || !t) return INVALID;
    guard locked(lock);
    return give = g, take = t, emulated_watcher = &watcher, OK;
}
CALL(cuptiActivityEnable)(int kind)
{
    guard g(lock);
    if (getenv("EMULATOR_CUPTI_REFUSES")) return REFUSED;
    if (!size_of((uint32_t)kind)) return INVALID_KIND;
    return enabled.insert(kind), OK;
}
CALL(cuptiActivityDisable)(int kind) { guard g(lock); return enabled.erase(kind), OK; }
CALL(cuptiActivityFlushAll)(uint32_t)
{
    guard g(lock);
    if (!give) return INVALID_OPERATION;
    return hand_over(), OK;
}
CALL(cuptiActivityGetNextRecord)(uint8_t *b, size_t valid, void **at)
{
    uint8_t *next = *at ? (uint8_t *)*at : b;
    uint32_t kind;
    if (*at) memcpy(&kind, next, 4), next += size_of(kind);
    if (next >= b + valid) return NO_MORE;
    memcpy(&kind, next, 4);
    return size_of(kind) ? *at = next, OK : INVALID_KIND;
}
CALL(cuptiActivityGetNumDroppedRecords)(void *, uint32_t, size_t *n) { return *n = 0, OK; }
CALL(cuptiActivityPushExternalCorrelationId)(int of, uint64_t id) { return of == CUSTOM0 ? pushed.push_back(id), OK : INVALID; }
CALL(cuptiActivityPopExternalCorrelationId)(int of, uint64_t *id)
{
    if (of != CUSTOM0) return INVALID;
    if (pushed.empty()) return fprintf(stderr, "emulator: popped more than was pushed\n"), EMPTY;
    *id = pushed.back();
    return pushed.pop_back(), OK;
}
CALL(cuptiGetTimestamp)(uint64_t *ns) { return *ns = now(), OK; }
CALL(cuptiGetResultString)(int rc, const char **text)
{
    return *text = rc == REFUSED ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "CUPTI_ERROR", OK;
}
extern "C" int64_t emulated_pushed() { return (int64_t)pushed.size(); }
