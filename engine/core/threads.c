/* lc_parallel_for over a pool of our own.
 *
 * One job at a time. The caller cuts it into chunks, which depend on n and grain only, and deals them out in equal runs, one
 * per participant, itself included. So the same thread touches the same memory call after call. A participant that has
 * finished its own run takes chunks from the others' runs: a worker that is late or not scheduled at all costs only its
 * share.
 *
 * One 32-bit word holds the whole state of the job, and is the futex that workers sleep on:
 *
 *     generation 12 | runs 9 | open 1 | entered 10
 *
 * A worker may look at the job only after it has entered: a compare-and-swap that fails once the job is closed. The caller
 * closes the job when no chunk is left to claim, and returns when everybody has left. So a worker that wakes up late finds
 * either no job or the next one, never the remains of the last. The generation keeps a worker from entering a job twice. It
 * may wrap: a worker that then stays out of a job does no harm.
 *
 * Workers spin for 50 us after a job, then sleep: the next kernel of a training step usually comes sooner. Threads are started by
 * the first call that can use them. Calls from inside a chunk, and calls while another thread has the pool, run inline: there is no
 * queue, so no deadlock. A forked child has no workers and starts its own when it needs them.
 *
 * Rejected: libgomp (hangs after fork, spins without end next to another OpenMP), a task queue (all kernels are flat loops),
 * fixed runs without work stealing (one busy CPU halves the speed of everything). */
#include "core.h"
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_THREADS = 256,
    ENTERED = 1, /* one participant */
    ENTERED_MASK = (1 << 10) - 1,
    OPEN = 1 << 10,
    RUNS_SHIFT = 11,
    RUNS_MASK = 511,
    GENERATION_SHIFT = 20,
    SPIN_NS = 50000,
    STACK_BYTES = 1 << 20
};

typedef struct {
    _Alignas(64) atomic_int_fast64_t next; /* the run's first chunk nobody has claimed */
    int64_t end;
} run;

static struct {
    _Alignas(64) atomic_uint word;
    _Alignas(64) atomic_uint sleepers; /* workers in futex_wait, or about to be */
    atomic_uint caller_sleeps;
    atomic_bool taken; /* a caller has the pool */
    int         workers;
    _Alignas(64) int64_t n, grain;
    int runs;
    void (*fn)(void *, int64_t, int64_t);
    void *ctx;
    run   run[MAX_THREADS];
} pool;

static atomic_int wanted; /* threads, the caller included; 0: not asked yet */

void *(*lc_host_unlock)(void);
void (*lc_host_relock)(void *state);
const char *(*lc_host_package)(const char *package, char *folder, size_t bytes);

/* A bit of the futex mask tells sleepers apart: the caller has one bit, workers share 31. */
static const unsigned caller_bit = 1u << 31;
static unsigned       worker_bit(int id) { return 1u << id % 31; }

static void futex_wait(unsigned expected, unsigned bit)
{
    syscall(SYS_futex, &pool.word, FUTEX_WAIT_BITSET_PRIVATE, expected, NULL, NULL, bit);
}
static void futex_wake(unsigned bits) { syscall(SYS_futex, &pool.word, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL, NULL, bits); }

static inline void relax(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- how many ---- */

static int threads_in_environment(const char *name)
{
    const char *text = getenv(name);
    if (!text || !*text) return 0;
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10); /* OMP_NUM_THREADS may be a list, one number per nesting level: the first counts */
    if (errno || end == text || (*end && *end != ',') || n < 1) {
        lc_warn("%s=%s is not a number of threads: ignored", name, text);
        return 0;
    }
    return n < MAX_THREADS ? (int)n : MAX_THREADS;
}

int lc_num_threads(void)
{
    int n = atomic_load_explicit(&wanted, memory_order_relaxed);
    if (n) return n;
    n = threads_in_environment("LUCID_NUM_THREADS");
    if (!n) n = threads_in_environment("OMP_NUM_THREADS");
    if (!n) n = lc_cpu_count();
    if (n > MAX_THREADS) n = MAX_THREADS;
    int unset = 0;
    return atomic_compare_exchange_strong(&wanted, &unset, n) ? n : unset;
}

int lc_set_num_threads(int n)
{
    if (n < 1) return lc_fail_int(LC_LucidError, "set_num_threads expects a positive integer, got %d", n);
    atomic_store(&wanted, n < MAX_THREADS ? n : MAX_THREADS);
    return 0;
}

/* ---- subnormal numbers ---- */

static atomic_bool          flushes;      /* what the last call asked for */
static _Thread_local int8_t flushing = 0; /* what this thread's control register says; threads start with 0 */

static bool flush_here(bool flush)
{
#if defined __x86_64__
    enum { FLUSH_RESULTS = 1 << 15, ZERO_OPERANDS = 1 << 6 };
    unsigned now = __builtin_ia32_stmxcsr(), bits = FLUSH_RESULTS | ZERO_OPERANDS;
    __builtin_ia32_ldmxcsr(flush ? now | bits : now & ~bits);
#elif defined __aarch64__
    uint64_t now, bit = (uint64_t)1 << 24;
    __asm__ volatile("mrs %0, fpcr" : "=r"(now));
    now = flush ? now | bit : now & ~bit;
    __asm__ volatile("msr fpcr, %0" : : "r"(now));
#else
    return false;
#endif
    return flushing = flush, true;
}
bool lc_set_flush_denormal(bool flush)
{
    if (!flush_here(flush)) return false;
    return atomic_store(&flushes, flush), true;
}
static void follow_flushing(void) /* a worker, before a job */
{
    bool flush = atomic_load_explicit(&flushes, memory_order_relaxed);
    if (flush != flushing) flush_here(flush);
}

/* ---- working ---- */

static void do_chunk(int64_t chunk)
{
    int64_t begin = chunk * pool.grain, end = pool.n - begin > pool.grain ? begin + pool.grain : pool.n;
    pool.fn(pool.ctx, begin, end);
}

static void do_runs(int first)
{
    for (int i = 0, r = first; i < pool.runs; i++, r = r + 1 < pool.runs ? r + 1 : 0) {
        run *its = &pool.run[r];
        while (atomic_load_explicit(&its->next, memory_order_relaxed) < its->end) {
            int64_t chunk = atomic_fetch_add_explicit(&its->next, 1, memory_order_relaxed);
            if (chunk < its->end) do_chunk(chunk);
        }
    }
}

/* The word of a job that worker `id` may still enter; else sleeps until there may be one. */
static unsigned wait_for_job(int id, unsigned done_generation)
{
    int64_t until = 0;
    for (unsigned i = 0;; i++) {
        unsigned word = atomic_load_explicit(&pool.word, memory_order_acquire);
        bool     mine = (int)(word >> RUNS_SHIFT & RUNS_MASK) > id + 1; /* run 0 is the caller's */
        if (word & OPEN && mine && word >> GENERATION_SHIFT != done_generation) return word;
        relax();
        if (i % 64 != 63) continue; /* reading the clock costs more than reading the word */
        int64_t now = now_ns();
        if (!until) until = now + SPIN_NS;
        if (now < until) continue;
        atomic_fetch_add(&pool.sleepers, 1);
        futex_wait(word, worker_bit(id)); /* returns at once if the word has changed since we looked */
        atomic_fetch_sub(&pool.sleepers, 1);
        until = 0;
    }
}

static void *worker(void *id_of_worker)
{
    int      id = (int)(intptr_t)id_of_worker;
    unsigned generation = UINT_MAX; /* none: twelve bits never reach it */
    for (;;) {
        unsigned word = wait_for_job(id, generation);
        if (!atomic_compare_exchange_weak_explicit(&pool.word, &word, word + ENTERED, memory_order_acquire,
                                                   memory_order_relaxed))
            continue;
        generation = word >> GENERATION_SHIFT;
        follow_flushing();
        do_runs(id + 1);
        word = atomic_fetch_sub(&pool.word, ENTERED) - ENTERED;
        if (!(word & (ENTERED_MASK | OPEN)) && atomic_load(&pool.caller_sleeps)) futex_wake(caller_bit);
    }
    return NULL;
}

/* ---- starting ---- */

static void forget_workers(void) /* in a forked child */
{
    atomic_store(&pool.word, 0);
    atomic_store(&pool.sleepers, 0);
    atomic_store(&pool.caller_sleeps, 0);
    atomic_store(&pool.taken, false);
    pool.workers = 0;
}
static void watch_forks(void) { pthread_atfork(NULL, NULL, forget_workers); }

/* Starts up to n workers; returns how many there are. Too few is no error: the caller can do all the work. */
static int start_workers(int n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_attr_t attr;
    sigset_t       all, before;
    if (pool.workers >= n || pthread_attr_init(&attr) != 0) return pool.workers;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all); /* signals belong to the host program: block them here */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    while (pool.workers < n && pthread_create(&thread, &attr, worker, (void *)(intptr_t)pool.workers) == 0) pool.workers++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return pool.workers;
}

/* ---- calling ---- */

static void open_job(int64_t chunks)
{
    for (int r = 0; r < pool.runs; r++) {
        atomic_store_explicit(&pool.run[r].next, chunks * r / pool.runs, memory_order_relaxed);
        pool.run[r].end = chunks * (r + 1) / pool.runs;
    }
    unsigned generation = (atomic_load_explicit(&pool.word, memory_order_relaxed) >> GENERATION_SHIFT) + 1;
    atomic_store(&pool.word, generation << GENERATION_SHIFT | (unsigned)pool.runs << RUNS_SHIFT | OPEN);
    if (atomic_load(&pool.sleepers)) futex_wake(pool.runs > 31 ? ~caller_bit : (1u << (pool.runs - 1)) - 1);
}

static void close_job(void)
{
    unsigned word = atomic_fetch_and(&pool.word, ~(unsigned)OPEN) & ~(unsigned)OPEN;
    for (int64_t until = 0, i = 0; word & ENTERED_MASK; i++, word = atomic_load(&pool.word)) {
        relax();
        if (i % 64 != 63) continue;
        int64_t now = now_ns();
        if (!until) until = now + SPIN_NS;
        if (now < until) continue;
        atomic_store(&pool.caller_sleeps, 1);
        word = atomic_load(&pool.word);
        if (word & ENTERED_MASK) futex_wait(word, caller_bit);
        atomic_store(&pool.caller_sleeps, 0);
    }
}

static void run_inline(int64_t n, int64_t grain, void (*fn)(void *, int64_t, int64_t), void *ctx)
{
    for (int64_t begin = 0; begin < n; begin += grain) {
        if (n - begin <= grain) {
            fn(ctx, begin, n);
            return;
        }
        fn(ctx, begin, begin + grain);
    }
}

LC_HOT_TLS bool lc_serial;

void lc_parallel_for(int64_t n, int64_t grain, void (*fn)(void *ctx, int64_t begin, int64_t end), void *ctx)
{
    if (n <= 0) return;
    if (grain < 1) grain = 1;
    int threads;
    if (n <= grain || lc_serial || (threads = lc_num_threads()) == 1 || atomic_load(&pool.taken) ||
        atomic_exchange(&pool.taken, true)) {
        run_inline(n, grain, fn, ctx);
        return;
    }
    int64_t chunks = n / grain + (n % grain != 0);
    if (threads > chunks) threads = (int)chunks;
    pool.n = n, pool.grain = grain, pool.fn = fn, pool.ctx = ctx;
    int workers = start_workers(threads - 1);
    pool.runs = 1 + (workers < threads - 1 ? workers : threads - 1);
    open_job(chunks);
    do_runs(0);
    close_job();
    atomic_store(&pool.taken, false);
}
