/* The core alone: errors, half precision, memory, threads, CPUs, libraries, random streams. */
#include "../../engine/core/random.h"
#include "check.h"
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef CACHE_LIMIT /* sanitizer builds: every block goes back to the system at once */
enum { CACHING = CACHE_LIMIT > 0 };
#else
enum { CACHING = true };
#endif
const char *__asan_default_options(void); /* an allocation that is too large fails, as it does without sanitizers */
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "allocator_may_return_null=1 die_after_fork=0"; }

/* Emulators of a CPU's programs (qemu-user) do not survive a fork of several threads, and /proc/self/exe is the emulator itself. */
static bool emulated(const char *what)
{
    if (getenv("LUCID_TEST_EMULATED")) printf("  %s: NOT tested under an emulator\n", what);
    return getenv("LUCID_TEST_EMULATED");
}

/* Runs a test in a child, which starts with the settings of the process as they are now and leaves none behind. */
static void in_child(void (*test)(void))
{
    if (emulated("a forked child")) return;
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        test();
        fflush(stdout);
        _Exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- errors ---- */

static int  warnings;
static char last_warning[256];
static void count_warning(const char *text)
{
    warnings++;
    snprintf(last_warning, sizeof last_warning, "%s", text);
}

static void *fail_elsewhere(UNUSED void *unused)
{
    CHECK(strcmp(lc_error(), "") == 0);
    lc_fail(LC_IndexError, "of the other thread");
    return NULL;
}

static void test_errors(void)
{
    CHECK(lc_fail(LC_ShapeMismatch, "sizes %d and %d", 3, 4) == NULL);
    CHECK(lc_error_last_kind() == LC_ShapeMismatch && strcmp(lc_error(), "sizes 3 and 4") == 0);
    lc_fail(LC_ValueError, "wrapped: %s", lc_error());
    CHECK(strcmp(lc_error(), "wrapped: sizes 3 and 4") == 0);
    pthread_t other;
    CHECK(pthread_create(&other, NULL, fail_elsewhere, NULL) == 0 && pthread_join(other, NULL) == 0);
    CHECK(lc_error_last_kind() == LC_ValueError);
    char longer[5000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    lc_fail(LC_LucidError, "%s", longer);
    CHECK(strlen(lc_error()) < sizeof longer - 1 && strcmp(lc_error() + strlen(lc_error()) - 4, "x...") == 0);

    atomic_bool said = false;
    lc_warning_handler = count_warning;
    for (int i = 0; i < 3; i++) lc_warn_once(&said, "number %d", i);
    CHECK(warnings == 1 && strcmp(last_warning, "number 0") == 0);
    lc_warn("again");
    CHECK(warnings == 2);
    CHECK(strcmp(lc_device_names[LC_CUDA], "cuda") == 0 && strcmp(lc_dtypes[LC_bf16].name, "bfloat16") == 0);
    CHECK(lc_size_of(LC_c128) == 16 && lc_default_dtype == LC_f32 && lc_default_device.kind == LC_CPU);
}

/* ---- half precision ---- */

/* Every float16 and bfloat16 value is exact in float32 and converts back; floats in between round to nearest, ties to even. */
static void check_half(float (*value)(uint16_t), uint16_t (*nearest)(float), unsigned infinity)
{
    for (unsigned h = 0; h < 0x10000; h++) {
        float f = value((uint16_t)h);
        if ((h & 0x7fff) > infinity) CHECK(isnan(f) && isnan(value(nearest(f))));
        else CHECK(nearest(f) == h);
    }
    for (unsigned h = 0; h < infinity; h++) {
        double   above = h + 1 == infinity ? 2.0 * value((uint16_t)h) - value((uint16_t)(h - 1)) : value((uint16_t)(h + 1));
        float    middle = (float)((value((uint16_t)h) + above) / 2);
        unsigned even = h & 1 ? h + 1 : h;
        CHECK(nearest(middle) == even && nearest(-middle) == (even | 0x8000));
        CHECK(nearest(nextafterf(middle, 0)) == h && nearest(nextafterf(middle, INFINITY)) == h + 1);
    }
    CHECK(nearest(INFINITY) == infinity && nearest(-INFINITY) == (infinity | 0x8000));
}

static void test_halves(void)
{
    check_half(lc_f16_to_f32, lc_f32_to_f16, 0x7c00);
    check_half(lc_bf16_to_f32, lc_f32_to_bf16, 0x7f80);
    CHECK(lc_f16_to_f32(0x3555) == 0x1.554p-2f && lc_f16_to_f32(1) == 0x1p-24f && lc_bf16_to_f32(0x4049) == 3.140625f);
}

/* ---- memory ---- */

static int64_t cached(void)
{
    lc_memory_stats stats;
    lc_memory_read(LC_CPU, &stats);
    return stats.cached_bytes;
}

static void test_blocks(void)
{
    static const size_t sizes[] = { 0,    1,    63,     64,         65,         960,     961,     1024,    1025,
                                    4096, 4097, 262143, 256 * 1024, 256 * 1025, 1 << 20, 2 << 20, 16 << 20 };
    enum { N = sizeof sizes / sizeof *sizes };
    char *block[N];
    long  before = lc_live_blocks();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            CHECK((block[i] = lc_alloc(sizes[i])) && (uintptr_t)block[i] % 64 == 0);
            memset(block[i], i + 1, sizes[i]);
        }
        CHECK(lc_live_blocks() == before + N);
        for (int i = 0; i < N; i++) {
            for (size_t k = 0; k < sizes[i]; k += 61) CHECK(block[i][k] == i + 1); /* blocks do not overlap */
            lc_free(block[i], sizes[i]);
        }
        CHECK(lc_live_blocks() == before);
    }
    lc_free(NULL, 100);
    CHECK(lc_live_blocks() == before);
    bool caches = cached() > 0;
    CHECK(caches == CACHING);
    for (int i = 0; caches && i < N; i++) {
        void *first = lc_alloc(sizes[i]);
        lc_free(first, sizes[i]);
        void *second = lc_alloc(sizes[i]);
        CHECK(first == second);
        lc_free(second, sizes[i]);
    }
    lc_cache_clear();
    CHECK(cached() == 0);
}

static void test_refusals(void)
{
    long before = lc_live_blocks();
    lc_free(lc_alloc(1 << 20), 1 << 20);
    static const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 62, PTRDIFF_MAX, (size_t)1 << 56 };
    for (int i = 0; i < 4; i++) {
        lc_fail(LC_LucidError, "none");
        CHECK(lc_alloc(sizes[i]) == NULL && lc_error_last_kind() == LC_OutOfMemory);
    }
    CHECK(cached() == 0); /* the cache was emptied before giving up */
    for (long n = 1; n < 4; n++) {
        lc_alloc_fail_at = n;
        void *p[3];
        for (int i = 0; i < 3; i++) CHECK(!(p[i] = lc_alloc(100)) == (i + 1 == n));
        for (int i = 0; i < 3; i++) lc_free(p[i], 100);
        CHECK(lc_alloc_fail_at == 0);
    }
    CHECK(lc_live_blocks() == before);
}

enum { MANY = 120, BIG = 4 << 20, LIMIT = 256 << 20 };

static void test_limit(void)
{
    if (!CACHING) return;
    void *block[MANY];
    for (int i = 0; i < MANY; i++) CHECK((block[i] = lc_alloc(BIG)));
    for (int i = 0; i < MANY; i++) lc_free(block[i], BIG);
    CHECK(cached() > LIMIT / 2 && cached() <= LIMIT);
    char *other = lc_alloc(3 * BIG); /* a size that is used now takes the place of one that is not */
    lc_free(other, 3 * BIG);
    int64_t all = cached();
    CHECK(all > LIMIT / 2 && all <= LIMIT && (uintptr_t)other % (2 << 20) == 0);
    CHECK(lc_alloc(3 * BIG) == other && cached() == all - 3 * BIG);
    lc_free(other, 3 * BIG);
    lc_cache_clear();

    struct rusage before, after;
    for (int i = 0; i < 40; i++) {
        if (i == 2) getrusage(RUSAGE_SELF, &before);
        char *p = lc_alloc(16 << 20);
        memset(p, i, 16 << 20);
        lc_free(p, 16 << 20);
    }
    getrusage(RUSAGE_SELF, &after);
    CHECK(after.ru_minflt - before.ru_minflt < 1000); /* 4096 for every single block without the cache */
    lc_cache_clear();
}

static long resident_bytes(void)
{
    long  pages = 0, unused;
    FILE *f = fopen("/proc/self/statm", "r");
    CHECK(f && fscanf(f, "%ld %ld", &unused, &pages) == 2);
    fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

/* One thread allocates, another frees: through a ring. */
enum { PASSED = 100000, RING = 64, PASSED_BYTES = 5000 };
static void *_Atomic ring[RING];
static void         *consume(UNUSED void *unused)
{
    for (int i = 0; i < PASSED; i++) {
        void *p;
        while (!(p = atomic_exchange(&ring[i % RING], NULL))) sched_yield();
        lc_free(p, PASSED_BYTES);
    }
    return NULL;
}

static void test_producer_and_consumer(void)
{
    lc_cache_clear();
    long      before = lc_live_blocks(), resident = resident_bytes();
    pthread_t consumer;
    CHECK(pthread_create(&consumer, NULL, consume, NULL) == 0);
    for (int i = 0; i < PASSED; i++) { /* 500 MB pass through */
        char *p = lc_alloc(PASSED_BYTES);
        CHECK(p);
        p[0] = p[PASSED_BYTES - 1] = 1;
        while (atomic_load(&ring[i % RING])) sched_yield();
        atomic_store(&ring[i % RING], p);
    }
    CHECK(pthread_join(consumer, NULL) == 0);
    CHECK(lc_live_blocks() == before);
    CHECK(cached() < 16 << 20);
    CHECK(!CACHING || resident_bytes() - resident < 32 << 20);
    int64_t all = cached();
    lc_cache_clear(); /* also what the thread that has ended left behind */
    CHECK(cached() == 0 && (all > 0) == CACHING);
}

static atomic_int parked; /* 1: the thread has filled its front and waits; 2: it may end */
static void      *fill_front(UNUSED void *unused)
{
    void *p[10];
    for (int i = 0; i < 10; i++) CHECK((p[i] = lc_alloc(1000)));
    for (int i = 0; i < 10; i++) lc_free(p[i], 1000);
    atomic_store(&parked, 1);
    while (atomic_load(&parked) == 1) sched_yield();
    return NULL;
}

static void forget_fronts(void) /* in a child: threads of the parent do not exist here, their blocks cannot be used */
{
    lc_cache_clear();
    CHECK(cached() == 0);
}

static void test_fronts_of_threads(void)
{
    pthread_t thread;
    lc_cache_clear();
    CHECK(pthread_create(&thread, NULL, fill_front, NULL) == 0);
    while (!atomic_load(&parked)) sched_yield();
    CHECK(cached() == CACHING * 10 * 1024);
    in_child(forget_fronts);
    atomic_store(&parked, 2);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(cached() == CACHING * 10 * 1024); /* in the pool now: */
    lc_cache_clear();
    CHECK(cached() == 0);
}

static void test_statistics(void)
{
    lc_memory_stats s, start;
    lc_memory_reset_peak(LC_META);
    lc_memory_read(LC_META, &start);
    CHECK(start.peak_bytes == start.allocated_bytes);
    static const int64_t sizes[] = { 100, 70000, 5, 1 << 30, 65536 };
    int64_t              sum = 0;
    for (int i = 0; i < 5; i++) {
        lc_memory_count(LC_META, sizes[i]);
        sum += sizes[i];
        lc_memory_read(LC_META, &s);
        CHECK(s.allocated_bytes == start.allocated_bytes + sum && s.allocations == start.allocations + i + 1);
    }
    for (int i = 0; i < 5; i++) lc_memory_count(LC_META, -sizes[i]);
    lc_memory_count(LC_META, 1000); /* a small rise between two readings is seen too */
    lc_memory_count(LC_META, -1000);
    lc_memory_read(LC_META, &s);
    CHECK(s.allocated_bytes == start.allocated_bytes && s.peak_bytes == start.allocated_bytes + sum &&
          s.frees == start.frees + 6);
    lc_memory_reset_peak(LC_META);
    lc_memory_count(LC_META, 3000);
    lc_memory_count(LC_META, -3000);
    lc_memory_read(LC_META, &s);
    CHECK(s.peak_bytes == start.allocated_bytes + 3000);
    lc_memory_read(LC_CUDA, &s);
    CHECK(s.cached_bytes == 0 && s.allocations == 0);
}

static void *count_on_thread(UNUSED void *unused)
{
    for (int i = 0; i < 1000; i++) lc_memory_count(LC_META, 10);
    return NULL;
}

static void test_statistics_of_threads(void)
{
    lc_memory_stats s, start;
    pthread_t       thread[4];
    lc_memory_read(LC_META, &start);
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&thread[i], NULL, count_on_thread, NULL) == 0);
    for (int i = 0; i < 4; i++) CHECK(pthread_join(thread[i], NULL) == 0);
    lc_memory_read(LC_META, &s);
    CHECK(s.allocated_bytes == start.allocated_bytes + 40000 && s.allocations == start.allocations + 4000);
    lc_memory_count(LC_META, -40000);
}

/* ---- threads ---- */

typedef struct {
    int64_t       n, grain;
    atomic_uchar *seen;   /* per element */
    atomic_int    wrong;  /* chunks that are not as core.h says */
    int64_t       nested; /* n of a call inside each chunk, 0: none */
} coverage;

static void count_one(void *ctx, int64_t begin, int64_t end)
{
    int64_t *counted = ctx; /* not atomic: nested calls run on the calling thread */
    *counted += end - begin;
}

static void cover(void *ctx, int64_t begin, int64_t end)
{
    coverage *c = ctx;
    if (begin % c->grain != 0 || end != (c->n - begin > c->grain ? begin + c->grain : c->n)) atomic_fetch_add(&c->wrong, 1);
    for (int64_t i = begin; i < end; i++) atomic_fetch_add(&c->seen[i], 1);
    int64_t counted = 0;
    if (c->nested) sched_yield(); /* let callers on other threads in between */
    lc_parallel_for(c->nested, 3, count_one, &counted);
    if (counted != c->nested) atomic_fetch_add(&c->wrong, 1);
}

static void check_coverage(int64_t n, int64_t grain, int64_t nested)
{
    coverage c = { .n = n, .grain = grain, .nested = nested, .seen = calloc((size_t)n + 1, 1) };
    CHECK(c.seen);
    lc_parallel_for(n, grain, cover, &c);
    for (int64_t i = 0; i < n; i++) CHECK(atomic_load(&c.seen[i]) == 1);
    CHECK(atomic_load(&c.wrong) == 0);
    free(c.seen);
}

static void test_chunks(void)
{
    static const int64_t n[] = { 0, 1, 2, 7, 100, 1000, 65537 }, grain[] = { 1, 3, 64, 1000, INT64_MAX };
    for (int threads = 1; threads <= 5; threads += 2) {
        CHECK(lc_set_num_threads(threads) == 0 && lc_num_threads() == threads);
        for (size_t i = 0; i < sizeof n / sizeof *n; i++)
            for (size_t k = 0; k < sizeof grain / sizeof *grain; k++) check_coverage(n[i], grain[k], 0);
        check_coverage(200, 7, 50);
    }
    CHECK(lc_set_num_threads(0) == -1 && lc_error_last_kind() == LC_LucidError && lc_num_threads() == 5);
    CHECK(lc_set_num_threads(2) == 0);
    for (int i = 0; i < 3000; i++) check_coverage(8, 1, 0);
}

/* Ends only if somebody else does the second chunk: chunk 0 waits for it. */
static void meet(void *ctx, int64_t begin, UNUSED int64_t end)
{
    atomic_bool *met = ctx;
    if (begin == 1) atomic_store(met, true);
    while (!atomic_load(met)) sched_yield();
}
static void check_two_threads(void)
{
    atomic_bool met = false;
    lc_parallel_for(2, 1, meet, &met);
}

static void *call_from_thread(UNUSED void *unused)
{
    for (int i = 0; i < 300; i++) check_coverage(100, 9, i % 2);
    return NULL;
}

static void call_from_threads(void)
{
    pthread_t thread[4];
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&thread[i], NULL, call_from_thread, NULL) == 0);
    for (int i = 0; i < 4; i++) CHECK(pthread_join(thread[i], NULL) == 0);
}

static void use_everything(void) /* in a forked child: its parent had workers, fronts and a pool */
{
    long live = lc_live_blocks();
    check_two_threads();
    for (int i = 0; i < 20; i++) check_coverage(1000, 10, 5);
    call_from_threads();
    for (size_t bytes = 1; bytes < 8 << 20; bytes *= 3) {
        void *p = lc_alloc(bytes);
        CHECK(p);
        memset(p, 1, bytes);
        lc_free(p, bytes);
    }
    CHECK(lc_live_blocks() == live);
    lc_random_seed();
    CHECK(lc_next32(lc_generator_default()) || lc_next32(lc_generator_default()));
}

static void test_fork(void)
{
    check_two_threads();
    for (int i = 0; i < 3; i++) in_child(use_everything);
    check_coverage(1000, 10, 0);
}

/* ---- CPUs, libraries ---- */

/* The environment is read once, perhaps before main: such settings are tried in a fresh process, which prints what it found. */
static const char *found_with(const char *name, const char *value)
{
    static char text[1000];
    int         ends[2];
    CHECK(pipe(ends) == 0);
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        setenv(name, value, 1);
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]), close(ends[1]);
        execl("/proc/self/exe", "test_core", "print what the environment says", (char *)NULL);
        _Exit(1);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t n; (n = read(ends[0], text + length, sizeof text - 1 - length)) > 0;) length += (size_t)n;
    text[length] = 0;
    close(ends[0]);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    return text;
}

static int print_findings(void)
{
    printf("threads %d of %d, isa %s\n", lc_num_threads(), lc_cpu_count(), lc_cpu_isa_name());
    return 0;
}

static void test_environment(void)
{
    if (emulated("settings in the environment")) return;
    unsetenv("LUCID_NUM_THREADS"), unsetenv("LUCID_ISA");
    CHECK(strstr(found_with("OMP_NUM_THREADS", "3,2"), "threads 3 of"));
    setenv("OMP_NUM_THREADS", "3", 1);
    CHECK(strstr(found_with("LUCID_NUM_THREADS", "4"), "threads 4 of"));
    const char *text = found_with("LUCID_NUM_THREADS", "many");
    CHECK(strstr(text, "warning") && strstr(text, "LUCID_NUM_THREADS=many") && strstr(text, "threads 3 of"));
    unsetenv("OMP_NUM_THREADS");
    CHECK(strstr(found_with("LUCID_ISA", "base"), "isa base") && !strstr(found_with("LUCID_ISA", "base"), "warning"));
    char best[40];
    snprintf(best, sizeof best, "%s", strstr(found_with("LUCID_ISA", ""), "isa "));
    text = found_with("LUCID_ISA", "altivec");
    CHECK(strstr(text, "warning") && strstr(text, "altivec") && strstr(text, best));
#ifdef __x86_64__
    CHECK(!!strstr(best, "avx") == !!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")));
#elif defined __aarch64__
    CHECK(strstr(best, "neon"));
#endif
}

static char folder[] = "/tmp/lucid-test-XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *slash = strchr(path + sizeof folder, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static int quota(const char *membership)
{
    char path[300];
    write_file("membership", membership);
    snprintf(path, sizeof path, "%s/membership", folder);
    return lc_cpu_quota(path, folder);
}

static void test_quota(void)
{
    CHECK(mkdtemp(folder));
    CHECK(lc_cpu_quota("/nowhere/at/all", folder) == 0);
    CHECK(quota("0::/a/b\n") == 0);
    write_file("a/b/cpu.max", "max 100000\n");
    CHECK(quota("0::/a/b\n") == 0);
    write_file("a/cpu.max", "250000 100000\n"); /* the parent's counts too: 2.5 CPUs */
    CHECK(quota("0::/a/b\n") == 3 && quota("0::/a\n") == 3 && quota("0::/\n") == 0 && quota("0::/a/b/not-visible\n") == 3);
    write_file("a/b/cpu.max", "100000 100000\n");
    CHECK(quota("0::/a/b\n") == 1);
    write_file("cpu/job/cpu.cfs_quota_us", "400000\n");
    write_file("cpu/job/cpu.cfs_period_us", "100000\n");
    CHECK(quota("5:cpuset:/job\n4:cpu,cpuacct:/job\n0::/\n") == 4 && quota("5:cpuset:/job\n") == 0);
    write_file("cpu/job/cpu.cfs_quota_us", "-1\n");
    CHECK(quota("4:cpu:/job\n") == 0 && quota("nonsense\n\n::\n") == 0);
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0);
    CHECK(lc_cpu_count() >= 1);
}

static void test_libraries(void)
{
    const char *const missing[] = { "liblucid-has-no-such.so", NULL }, *const gpu[] = { "libcuda-no-such.so", NULL };
    const char *const present[] = { "liblucid-has-no-such.so", "libm.so.6", NULL };
    CHECK(!lc_dylib_open(missing, "a library") && lc_error_last_kind() == LC_LucidError && strstr(lc_error(), "a library"));
    CHECK(!lc_dylib_open(gpu, "the CUDA driver") && lc_error_last_kind() == LC_GpuNotAvailable);
    void *lib = lc_dylib_open(present, "the C library's maths");
    CHECK(lib);
    double (*cosine)(double) = (double (*)(double))lc_dylib_symbol(lib, "cos");
    CHECK(cosine && cosine(0) == 1);
    CHECK(!lc_dylib_symbol(lib, "no_such_symbol") && strstr(lc_error(), "no_such_symbol"));
}

/* ---- random streams: values from torch 2.13 after manual_seed(42) ---- */

static bool near(double a, double b, double tolerance) { return fabs(a - b) <= tolerance; }

static void test_floats_of(lc_generator *g)
{
    static const float  u32[] = { 0x1.c3b8ccp-1, 0x1.d47b66p-1, 0x1.880d7p-2, 0x1.eb2a1cp-1, 0x1.8fd1a8p-2 };
    static const float  between[] = { 0x1.7809d4p+2, 0x1.8dd39cp+2, 0x1.5d12aap-1, 0x1.ab5056p+2 };
    static const double u64[] = { 0x1.dc66cbea3db30p-5, 0x1.01ae177aca870p-4, 0x1.fa3563ccea238p-4, 0x1.aebc98cb2c140p-5 };
    float               f[20];
    double              d[4];
    uint16_t            h[4];
    lc_generator_seed(g, 42);
    lc_random_uniform(g, LC_f32, f, 5, 0, 1);
    CHECK(memcmp(f, u32, sizeof u32) == 0);
    lc_generator_seed(g, 42);
    lc_random_uniform(g, LC_f32, f, 4, -3.3, 7.1);
    CHECK(memcmp(f, between, sizeof between) == 0);
    lc_random_uniform(g, LC_f32, f, 20, 1e8, 1e8 + 8); /* neighbours in float32: what rounds up to hi becomes lo */
    for (int i = 0; i < 20; i++) CHECK(f[i] == 1e8f);
    lc_generator_seed(g, 42);
    lc_random_uniform(g, LC_f64, d, 4, 0, 1);
    CHECK(memcmp(d, u64, sizeof u64) == 0);
    lc_generator_seed(g, 42);
    lc_random_uniform(g, LC_f16, h, 4, 0, 1);
    CHECK(memcmp(h, (uint16_t[]){ 0x3b0f, 0x3b52, 0x3620, 0x3bad }, 8) == 0);
    lc_generator_seed(g, 42);
    lc_random_uniform(g, LC_bf16, h, 4, 0, 1);
    CHECK(memcmp(h, (uint16_t[]){ 0x3f62, 0x3f6a, 0x3ec4, 0x3f76 }, 8) == 0);
    lc_generator_seed(g, 42);
    lc_random_normal(g, LC_f64, d, 3, 0, 1, true);
    CHECK(near(d[0], 0.33669035438385886, 1e-15) && near(d[1], 0.1288094051365897, 1e-15) &&
          near(d[2], 0.23446236336153173, 1e-15));
    lc_generator_seed(g, 42);
    lc_random_normal(g, LC_f32, f, 20, 0, 1, true);
    CHECK(near(f[0], 1.9269152879714966, 2e-6) && near(f[2], 0.9007171988487244, 2e-6) &&
          near(f[16], -0.3097267746925354, 2e-6) && near(f[19], -0.6215953826904297, 2e-6));
    lc_generator_seed(g, 42);
    lc_random_exponential(g, LC_f64, d, 2, 1);
    CHECK(near(d[0], 0.059914015690802146, 1e-16) && near(d[1], 0.0649761287933853, 1e-16));
}

static void test_integers_of(lc_generator *g)
{
    int64_t i[8];
    uint8_t b[10];
    lc_generator_seed(g, 42);
    lc_random_ints(g, i, 6, 0, 100);
    CHECK(memcmp(i, (int64_t[]){ 42, 67, 76, 14, 26, 35 }, 6 * 8) == 0);
    lc_random_ints(g, i, 2, -(1ll << 40), 1ull << 41);
    CHECK(i[0] == -289494324204 && i[1] == -659510126471);
    lc_generator_seed(g, 42);
    lc_random_permutation(g, i, 8);
    CHECK(memcmp(i, (int64_t[]){ 6, 3, 0, 7, 2, 1, 4, 5 }, 8 * 8) == 0);
    lc_generator_seed(g, 42);
    lc_random_bernoulli(g, b, 10, 0.3);
    CHECK(memcmp(b, (uint8_t[]){ 1, 1, 1, 1, 0, 0, 0, 0, 1, 1 }, 10) == 0);
    lc_generator_seed(g, UINT64_MAX);
    lc_random_ints(g, i, 2, 0, (1 << 28) - 1);
    CHECK(i[0] == 150890916 && i[1] == 210911523);
    lc_generator_seed(g, ((uint64_t)1 << 32) + 42);
    lc_random_ints(g, i, 2, 0, (1 << 28) - 1);
    CHECK(i[0] == 266460267 && i[1] == 199900607);
}

static void test_states_of(lc_generator *g)
{
    static uint8_t state[LC_GENERATOR_STATE_BYTES], bad[LC_GENERATOR_STATE_BYTES];
    float          a[3], b[3];
    lc_generator_seed(g, 7);
    lc_random_normal(g, LC_f32, a, 3, 0, 1, true); /* the fourth deviate waits in the state */
    lc_generator_get_state(g, state);
    lc_random_normal(g, LC_f32, a, 3, 0, 1, true);
    lc_generator_seed(g, 1);
    CHECK(lc_generator_set_state(g, state, sizeof state) == 0 && g->seed == 7);
    lc_random_normal(g, LC_f32, b, 3, 0, 1, true);
    CHECK(memcmp(a, b, sizeof a) == 0);
    CHECK(lc_generator_set_state(g, state, sizeof state - 1) == -1);
    CHECK(lc_generator_set_state(g, bad, sizeof bad) == -1); /* never seeded */
    memcpy(bad, state, sizeof bad);
    memcpy(bad + 16, &(uint64_t){ 624 }, 8); /* would read past the end */
    CHECK(lc_generator_set_state(g, bad, sizeof bad) == -1 && lc_error_last_kind() == LC_LucidError);
}

static void test_random(void)
{
    long          before = lc_live_blocks();
    lc_generator *g = lc_generator_new((lc_device){ .kind = LC_CPU }, LC_GENERATOR_SEED);
    CHECK(g && lc_random_seed() != lc_random_seed() && lc_generator_default() == lc_generator_default());
    test_floats_of(g);
    test_integers_of(g);
    test_states_of(g);
    lc_object_retain(&g->object);
    lc_object_release(&g->object);
    lc_object_release(&g->object);
    lc_object_release(NULL);
    CHECK(lc_live_blocks() == before);
}

int main(int argc, UNUSED char **argv)
{
    if (argc > 1) return print_findings();
    alarm(300); /* a thread that waits for ever fails the test */
    test_errors();
    test_environment();
    test_halves();
    test_blocks();
    test_refusals();
    test_limit();
    test_producer_and_consumer();
    test_fronts_of_threads();
    test_statistics();
    test_statistics_of_threads();
    test_chunks();
    call_from_threads();
    test_fork();
    test_quota();
    test_libraries();
    test_random();
    printf("core tests passed\n");
    return 0;
}
