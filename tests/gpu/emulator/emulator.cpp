/* A CUDA driver and NVRTC for machines without a GPU, for tests: the same kernel texts, compiled as C++ by the system's
 * compiler. Launches wait in a queue until something synchronises, so that memory that is freed or changed too early shows;
 * device memory starts as garbage; fibers of a block run in random order, so that missing barriers show. What it cannot
 * show: memory order between blocks, resource limits, speed.
 *
 * Build (test_emulated.py does): g++ -shared -fPIC -O1 emulator.cpp -o libcuda.so.1 -ldl, and libnvrtc.so.13 links to it.
 * EMULATOR_CC names the compiler, EMULATOR_PRELUDE the file prelude.h. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

struct dim3 {
    unsigned x, y, z;
};
struct thread_state {
    dim3 threadIdx, blockIdx, blockDim, gridDim;
};
struct kernel {
    int  bytes;
    bool waits;
    void (*body)(const void *args);
};
struct launch {
    const kernel     *k;
    dim3              grid, block;
    std::vector<char> args;
};

static std::recursive_mutex lock;
static std::vector<launch>  queue;
static int64_t              launches;
extern "C" thread_state     emulated_now;
thread_state                emulated_now;

/* ---- fibers ---- */
enum { STACK = 1 << 16, MOST = 1024 };
enum waiting { RUNS, AT_BARRIER, AT_EXCHANGE, ENDED };
struct fiber {
    ucontext_t context;
    char      *stack;
    waiting    state;
    int        round;
    char       value[32];
};
static std::vector<fiber> fibers(MOST);
static ucontext_t         scheduler;
static int                now;
static const launch      *running;
static uint64_t           dice = 88172645463325252u;

static unsigned thrown(unsigned n)
{
    dice ^= dice << 13, dice ^= dice >> 7, dice ^= dice << 17;
    return (unsigned)(dice % n);
}
static void body_of_fiber()
{
    running->k->body(running->args.data());
    fibers[now].state = ENDED;
    swapcontext(&fibers[now].context, &scheduler);
}
static void wait_as(waiting state)
{
    if (!running->k->waits) fprintf(stderr, "emulator: a KERNEL waits: declare it BLOCK_KERNEL\n"), abort();
    fibers[now].state = state;
    swapcontext(&fibers[now].context, &scheduler);
}
extern "C" void emulated_block_barrier() { wait_as(AT_BARRIER); }
extern "C" void emulated_warp_exchange(const void *mine, void *theirs, int bytes, int lane)
{
    int me = now;
    memcpy(fibers[me].value, mine, bytes);
    wait_as(AT_EXCHANGE);
    memcpy(theirs, fibers[me / 32 * 32 + lane].value, bytes);
    wait_as(AT_EXCHANGE);
}
static bool released(int first, int last, waiting state) /* all that have not ended wait for this: they go on */
{
    int waits = 0;
    for (int i = first; i < last; i++) {
        if (fibers[i].state != state) return false;
        waits++;
    }
    for (int i = first; i < last; i++) fibers[i].state = RUNS;
    return waits > 0;
}
static void run_block_of_fibers(int n)
{
    for (int i = 0; i < n; i++) {
        fiber &f = fibers[i];
        if (!f.stack) f.stack = (char *)mmap(0, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack, f.context.uc_stack.ss_size = STACK, f.context.uc_link = &scheduler;
        makecontext(&f.context, body_of_fiber, 0);
        f.state = RUNS;
    }
    for (;;) {
        int alive = 0, ran = 0, start = (int)thrown((unsigned)n);
        int step = thrown(2) ? 1 : n - 1;
        for (int c = 0, i = start; c < n; c++, i = (i + step) % n) {
            if (fibers[i].state == ENDED) continue;
            alive++;
            if (fibers[i].state != RUNS) continue;
            ran++, now = i, emulated_now.threadIdx = { (unsigned)i, 0, 0 };
            swapcontext(&scheduler, &fibers[i].context);
        }
        if (!alive) return;
        if (ran) continue;
        bool any = false;
        for (int w = 0; w < n; w += 32) any |= released(w, w + 32 < n ? w + 32 : n, AT_EXCHANGE);
        if (!any && !released(0, n, AT_BARRIER))
            fprintf(stderr, "emulator: threads of a block wait for threads that ended or wait elsewhere\n"), abort();
    }
}
static void run_all()
{
    for (size_t q = 0; q < queue.size(); q++) {
        const launch &l = queue[q];
        running = &l, emulated_now.blockDim = l.block, emulated_now.gridDim = l.grid;
        for (unsigned b = 0; b < l.grid.x; b++) {
            emulated_now.blockIdx = { b, 0, 0 };
            if (l.k->waits) run_block_of_fibers((int)l.block.x);
            else
                for (unsigned t = 0; t < l.block.x; t++) emulated_now.threadIdx = { t, 0, 0 }, l.k->body(l.args.data());
        }
    }
    queue.clear();
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
CALL(cuInit)(unsigned) { return 0; }
CALL(cuDriverGetVersion)(int *v) { return *v = 13000, 0; }
CALL(cuDeviceGetCount)(int *n) { return *n = 1, 0; }
CALL(cuDeviceGetAttribute)(int *v, int attribute, int)
{
    *v = attribute == 75 ? 0 : attribute == 76 ? 1 : attribute == 16 ? 4 : attribute == 39 ? 2048 : 0;
    return 0;
}
CALL(cuDeviceGetName)(char *name, int n, int) { return snprintf(name, (size_t)n, "emulated GPU"), 0; }
CALL(cuDeviceTotalMem_v2)(size_t *n, int) { return *n = (size_t)4 << 30, 0; }
CALL(cuMemGetInfo_v2)(size_t *rest, size_t *total) { return *rest = (size_t)3 << 30, *total = (size_t)4 << 30, 0; }
CALL(cuDevicePrimaryCtxRetain)(void **c, int) { return *c = &queue, 0; }
CALL(cuCtxSetCurrent)(void *) { return 0; }
CALL(cuCtxSynchronize)() { guard g(lock); return run_all(), 0; }
CALL(cuMemAlloc_v2)(uint64_t *p, size_t n)
{
    if (n > (size_t)4 << 30) return 2;
    void *m = nullptr;
    if (posix_memalign(&m, 512, n)) return 2;
    memset(m, 0xa5, n);
    return *p = (uint64_t)(uintptr_t)m, 0;
}
CALL(cuMemFree_v2)(uint64_t p) { guard g(lock); run_all(); return free((void *)(uintptr_t)p), 0; }
CALL(cuMemHostAlloc)(void **p, size_t n, unsigned) { return *p = calloc(1, n), *p ? 0 : 2; }
CALL(cuMemFreeHost)(void *p) { return free(p), 0; }
CALL(cuMemcpyHtoD_v2)(uint64_t to, const void *from, size_t n) { guard g(lock); run_all(); memcpy((void *)(uintptr_t)to, from, n); return 0; }
CALL(cuMemcpyDtoH_v2)(void *to, uint64_t from, size_t n) { guard g(lock); run_all(); memcpy(to, (void *)(uintptr_t)from, n); return 0; }
CALL(cuMemcpyDtoDAsync_v2)(uint64_t to, uint64_t from, size_t n, void *) { guard g(lock); run_all(); memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, n); return 0; }
CALL(cuMemcpyHtoDAsync_v2)(uint64_t to, const void *from, size_t n, void *) { return cuMemcpyHtoD_v2(to, from, n); }
CALL(cuMemsetD8Async)(uint64_t to, unsigned char v, size_t n, void *) { guard g(lock); run_all(); memset((void *)(uintptr_t)to, v, n); return 0; }
CALL(cuGetErrorString)(result, const char **text) { return *text = "emulated", 0; }
CALL(cuModuleLoadData)(void **module, const void *image)
{
    uint64_t n;
    memcpy(&n, (const char *)image + 8, 8);
    if (memcmp(image, "EMULATED", 8)) return 200;
    char path[] = "/tmp/lucid-emulated-XXXXXX"; /* a name of its own: dlopen knows libraries by name */
    int  fd = mkstemp(path);
    bool whole = fd >= 0 && write(fd, (const char *)image + 16, n) == (ssize_t)n;
    if (fd >= 0) close(fd);
    *module = whole ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!*module) fprintf(stderr, "emulator: %s\n", dlerror());
    if (fd >= 0) remove(path);
    return *module ? 0 : 200;
}
CALL(cuModuleGetFunction)(void **f, void *module, const char *name) { return *f = dlsym(module, name), *f ? 0 : 500; }
CALL(cuLaunchKernel)(void *f, unsigned gx, unsigned, unsigned, unsigned bx, unsigned, unsigned, unsigned, void *, void **params, void **)
{
    guard         g(lock);
    const kernel *k = (const kernel *)f;
    const char   *args = (const char *)params[0];
    if (bx > MOST || bx == 0 || gx == 0) return 1;
    queue.push_back({ k, { gx, 1, 1 }, { bx, 1, 1 }, std::vector<char>(args, args + k->bytes) });
    launches++;
    if (queue.size() > 4096) run_all();
    return 0;
}
extern "C" int64_t emulated_launches() { return launches; }

/* ---- NVRTC ---- */
struct program {
    std::string source, image, log;
};
static std::string read_all(const char *path)
{
    std::string s;
    if (FILE *f = fopen(path, "rb")) {
        char   buffer[65536];
        size_t n;
        while ((n = fread(buffer, 1, sizeof buffer, f)) > 0) s.append(buffer, n);
        fclose(f);
    }
    return s;
}
CALL(nvrtcVersion)(int *major, int *minor) { return *major = 0, *minor = 1, 0; }
CALL(nvrtcCreateProgram)(void **p, const char *source, const char *, int, const char *const *, const char *const *)
{
    return *p = new program{ source, "", "" }, 0;
}
CALL(nvrtcCompileProgram)(void *p, int, const char *const *)
{
    program    *q = (program *)p;
    const char *cc = getenv("EMULATOR_CC"), *prelude = getenv("EMULATOR_PRELUDE");
    char        stem[] = "/tmp/lucid-emulated-XXXXXX";
    int         fd = mkstemp(stem);
    if (fd < 0) return 1;
    close(fd);
    std::string name = stem, text = read_all(prelude ? prelude : "prelude.h") + q->source;
    FILE       *f = fopen((name + ".cpp").c_str(), "wb");
    fwrite(text.data(), 1, text.size(), f), fclose(f);
    std::string command = std::string(cc ? cc : "g++") +
                          " -std=c++17 -O1 -fwrapv -fno-strict-aliasing -w -shared -fPIC -ffp-contract=off -DLC_EMULATED " + name + ".cpp -o " + name +
                          ".so 2> " + name + ".log";
    int rc = system(command.c_str());
    q->log = read_all((name + ".log").c_str());
    std::string code = read_all((name + ".so").c_str());
    uint64_t    n = code.size();
    q->image = std::string("EMULATED") + std::string((const char *)&n, 8) + code;
    for (const char *end : { "", ".cpp", ".so", ".log" }) remove((name + end).c_str());
    return rc ? 6 : 0;
}
CALL(nvrtcDestroyProgram)(void **p) { return delete (program *)*p, 0; }
CALL(nvrtcGetCUBINSize)(void *p, size_t *n) { return *n = ((program *)p)->image.size(), 0; }
CALL(nvrtcGetCUBIN)(void *p, char *image) { return memcpy(image, ((program *)p)->image.data(), ((program *)p)->image.size()), 0; }
CALL(nvrtcGetProgramLogSize)(void *p, size_t *n) { return *n = ((program *)p)->log.size() + 1, 0; }
CALL(nvrtcGetProgramLog)(void *p, char *log) { return memcpy(log, ((program *)p)->log.c_str(), ((program *)p)->log.size() + 1), 0; }
