/* cuFFT beside the emulated driver: the entry points that the backend loads, in the ABI of version 12, checked like cublas.cpp's.
 * A transform takes two steps of the stream's queue, with its workspace in between. Plans have tables in memory of the device:
 * they cannot be made or freed while a graph is captured, and a graph that runs after its plan was destroyed aborts.
 *
 * Build (test_emulated.py does): g++ -shared -fPIC -O2 cufft.cpp -o libcufft.so.12. */
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

extern "C" int emulated_enqueue(void *stream, void (*call)(const void *), const void *data, size_t n);
extern "C" int emulated_device();
extern "C" int cuMemAlloc_v2(uint64_t *p, size_t n);
extern "C" int cuMemFree_v2(uint64_t p);
extern "C" int cuPointerGetAttribute(void *value, int attribute, uint64_t p);

typedef int status;
#define CALL(name) extern "C" status name
enum { OK = 0, INVALID_PLAN = 1, ALLOC_FAILED = 2, INVALID_TYPE = 3, INVALID_VALUE = 4, INVALID_SIZE = 8 };
enum { C2C = 0x29, Z2Z = 0x69 };
struct plan {
    int      device = 0, type = 0;
    int64_t  n = 0, batch = 0;
    bool     makes_workspace = true;
    uint64_t table = 0, workspace = 0;
    void    *stream = nullptr;
};
struct step {
    int      plan, type, sign;
    int64_t  n, batch;
    uint64_t from, to;
    bool     first;
};
static std::mutex          lock;
static std::map<int, plan> plans;
static int                 last;
static int64_t             transforms;
extern "C" int64_t emulated_transforms() { return transforms; }

static void must(bool holds, const char *what)
{
    if (!holds) fprintf(stderr, "emulator: cuFFT: %s\n", what), abort();
}
static size_t size_of(int type) { return type == C2C ? 8 : 16; }
static plan  *find(int p)
{
    auto found = plans.find(p);
    return found == plans.end() ? nullptr : &found->second;
}
typedef std::complex<double> number;
static number get(int type, uint64_t at, int64_t i)
{
    return type == C2C ? number(((std::complex<float> *)at)[i]) : ((number *)at)[i];
}
static void run(const void *data)
{
    const step &s = *(const step *)data;
    {
        std::lock_guard<std::mutex> g(lock);
        must(find(s.plan), "a transform runs whose plan was destroyed");
    }
    std::vector<number> root(s.n), line(s.n);
    for (int64_t k = 0; k < s.n; k++) root[k] = std::polar(1.0, s.sign * 2 * 3.14159265358979323846 * (double)k / (double)s.n);
    for (int64_t b = 0; b < s.batch; b++) {
        for (int64_t i = 0; i < s.n; i++) {
            number sum = s.first ? 0 : get(s.type, s.from, b * s.n + i);
            for (int64_t k = 0; k < s.n && s.first; k++) sum += root[i * k % s.n] * get(s.type, s.from, b * s.n + k);
            line[i] = sum;
        }
        for (int64_t i = 0; i < s.n; i++)
            if (s.type == C2C) ((std::complex<float> *)s.to)[b * s.n + i] = std::complex<float>(line[i]);
            else ((number *)s.to)[b * s.n + i] = line[i];
    }
}
static status exec(int which, int type, void *in, void *out, int sign)
{
    std::unique_lock<std::mutex> g(lock);
    plan *found = find(which);
    if (!found || !found->table) return INVALID_PLAN;
    plan p = *found;
    if (p.type != type || (sign != 1 && sign != -1)) return INVALID_VALUE;
    must(p.device == emulated_device(), "a plan of another device");
    must(p.workspace, "no workspace was given");
    int owner;
    for (uint64_t at : { (uint64_t)in, (uint64_t)out, p.workspace }) {
        must(at % size_of(type) == 0, "elements are not aligned");
        must(cuPointerGetAttribute(&owner, 9, at) == 0 && owner == p.device, "memory that is not the device's");
    }
    step half = { which, type, sign, p.n, p.batch, (uint64_t)in, p.workspace, true };
    transforms++, g.unlock(); /* the queue may run now */
    if (status rc = emulated_enqueue(p.stream, run, &half, sizeof half)) return rc;
    half.from = p.workspace, half.to = (uint64_t)out, half.first = false;
    return emulated_enqueue(p.stream, run, &half, sizeof half);
}
CALL(cufftCreate)(int *p)
{
    std::lock_guard<std::mutex> g(lock);
    return plans[*p = ++last] = plan{}, OK;
}
CALL(cufftSetAutoAllocation)(int p, int on)
{
    std::lock_guard<std::mutex> g(lock);
    if (!find(p)) return INVALID_PLAN;
    return find(p)->makes_workspace = on != 0, OK;
}
CALL(cufftMakePlanMany)(int p, int rank, int *n, int *in, int in_step, int in_line, int *out, int out_step, int out_line, int type,
                        int batch, size_t *bytes)
{
    std::unique_lock<std::mutex> g(lock);
    if (!find(p) || find(p)->table) return INVALID_PLAN;
    if (type != C2C && type != Z2Z) return INVALID_TYPE;
    must(rank == 1 && !in && !out && in_step == 1 && out_step == 1 && in_line == *n && out_line == *n, "a layout that is not known");
    if (*n < 1 || batch < 1) return INVALID_SIZE;
    plan made = *find(p);
    made.device = emulated_device(), made.type = type, made.n = *n, made.batch = batch;
    *bytes = (size_t)made.n * (size_t)batch * size_of(type);
    g.unlock();
    if (cuMemAlloc_v2(&made.table, 4096) || (made.makes_workspace && cuMemAlloc_v2(&made.workspace, *bytes))) return ALLOC_FAILED;
    g.lock();
    return plans[p] = made, OK;
}
CALL(cufftSetWorkArea)(int p, void *workspace)
{
    std::lock_guard<std::mutex> g(lock);
    if (!find(p)) return INVALID_PLAN;
    must(!find(p)->makes_workspace, "a workspace for a plan that has one");
    return find(p)->workspace = (uint64_t)workspace, OK;
}
CALL(cufftSetStream)(int p, void *stream)
{
    std::lock_guard<std::mutex> g(lock);
    return find(p) ? find(p)->stream = stream, OK : INVALID_PLAN;
}
CALL(cufftDestroy)(int p)
{
    std::unique_lock<std::mutex> g(lock);
    if (!find(p)) return INVALID_PLAN;
    plan gone = *find(p);
    g.unlock();
    must(!gone.table || cuMemFree_v2(gone.table) == 0, "a plan is freed while a graph is captured"); /* waits for the device */
    if (gone.makes_workspace && gone.workspace) cuMemFree_v2(gone.workspace);
    g.lock();
    return plans.erase(p), OK;
}
CALL(cufftExecC2C)(int p, void *in, void *out, int sign) { return exec(p, C2C, in, out, sign); }
CALL(cufftExecZ2Z)(int p, void *in, void *out, int sign) { return exec(p, Z2Z, in, out, sign); }
