/* Data races of kernels: two accesses of one byte by different threads of a launch, at least one a write, not both atomic, that
 * nothing orders. The fibers of a block never interrupt each other and blocks run one after the other, so a race changes no
 * value here; it is found by what the accesses are, not by what they do. EMULATOR_RACES=1: the first one is printed and aborts;
 * EMULATOR_RACES=all: each pair of kernel and kinds of access is printed once, and the process fails at its end.
 *
 * Kernel texts are compiled with -fsanitize=thread, which calls __tsan_read4 and its kin at every access of memory. They are
 * defined here: the compiler's own runtime is not linked. Every word of device and shared memory has a cell with a record of each
 * kind of access, and so has every byte where words are not used as a whole. A record names a moment: a thread of a block between
 * two barriers.
 *
 * What orders accesses: __syncthreads those of a block, __syncwarp those of a warp; a shuffle exchanges values and orders
 * nothing, as on GPUs since Volta. The end of a launch orders everything. Blocks are ordered by nothing but what a thread gets from
 * an atomic update: after __threadfence in both, what the block of the earlier update did before is seen by the later one's. So
 * "the last block adds up" passes with its fences, and not without.
 *
 * Volatile accesses count as atomic, as in PTX, where they are relaxed ones. Two threads that write the same value race.
 * Not watched: memory of the host, libraries' stand-ins, launches against launches (streams run in random order instead).
 *
 * Accesses of a byte by several threads leave one moment in a record, the last one, and whether others were of another lane, warp or
 * block. That loses no race: barriers are a hierarchy. Who is ordered after the last of several lanes of a warp is so after all, or
 * the flag says that some other lane was there since the last barrier of the warp; so for warps and blocks. */
#include "races.h"
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

typedef uint32_t record; /* a moment's number and flags; 0: nobody */
enum : record { LANES = 1u << 29, WARPS = 1u << 30, BLOCKS = 1u << 31, NUMBERS = LANES - 1 };
enum : size_t { WORD = 4, PAGE = 4096 };
enum kind { WROTE, READ, UPDATED, PEEKED, KINDS };
static const char *const kind_names[] = { "writes", "reads", "updates atomically", "reads atomically" };
static const bool conflict[KINDS][KINDS] = { { true, true, true, true }, { true, false, true }, { true, true }, { true } };
struct cell {
    record by[KINDS];
};
struct moment {
    uint32_t block, thread, block_epoch, warp_epoch;
    uint32_t warp() const { return thread / 32; }
};
/* What a block of earlier ones is known to have finished: accesses before this epoch, and those of a thread up to its own. */
struct finished {
    uint32_t before, thread, warp_epoch;
};
typedef std::map<uint32_t, finished> knowledge; /* by block */
struct region {
    char  *start = nullptr;
    size_t bytes = 0, before = 0, room = 0; /* before: from the start of the page */
    cell  *cells = nullptr;                 /* of its words */
};
static bool                                all_of_them;
static region                              device, fixed, dynamic;
static std::vector<moment>                 moments; /* of this launch */
static std::vector<std::array<cell, WORD>> parts;   /* of its words */
static record                              first = 1, first_of_block = 1, next_number = 1;
static record                              of_thread[1024]; /* its present moment; 0: none yet */
static uint32_t                            warp_epochs[32], block_epoch, block_now, thread_now, blocks_run;
static bool                                somebody, fences; /* a thread of the kernel runs; there were some in this launch */
static std::string                         kernel_now;
static std::set<std::string>               printed;
static std::map<const void *, knowledge>   released;  /* by atomic updates, at an address */
static knowledge                           known;     /* to this block, since its last barrier */
static std::map<uint32_t, knowledge>       got, seen; /* by threads of this block: from updates; after the fence that follows */
static uint32_t                            fenced[1024]; /* 1 + the epoch of the last fence of a thread */

bool races_watched()
{
    static const char *chosen = getenv("EMULATOR_RACES");
    static bool        on = chosen && *chosen && (all_of_them = !strcmp(chosen, "all"), true);
    return on;
}
static void place(region &r, char *start, size_t bytes)
{
    size_t before = (uintptr_t)start % PAGE, room = ((bytes + before) / PAGE + 1) * PAGE;
    if (room > r.room) {
        if (r.cells) munmap(r.cells, r.room / WORD * sizeof(cell));
        void *p =
            mmap(0, room / WORD * sizeof(cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) fprintf(stderr, "emulator: no memory for the detector of races\n"), abort();
        r.cells = (cell *)p, r.room = room;
    }
    r.start = start - before, r.bytes = bytes + before, r.before = before;
}
void races_device_memory(char *base)
{
    enum : size_t { BYTES = (size_t)1 << 38 };
    if (races_watched()) place(device, base, BYTES);
}
void races_shared_memory(char *a, size_t a_bytes, char *b, size_t b_bytes)
{
    if (races_watched()) place(fixed, a, a_bytes), place(dynamic, b, b_bytes);
}
void races_launch(const char *kernel)
{
    enum : record { MOST_OF_LAUNCH = 1u << 27 };
    if (!races_watched()) return;
    if (next_number > NUMBERS - MOST_OF_LAUNCH) { /* start again with empty cells */
        for (region *r : { &device, &fixed, &dynamic })
            if (r->cells) madvise(r->cells, r->room / WORD * sizeof(cell), MADV_DONTNEED);
        next_number = 1;
    }
    kernel_now = kernel, moments.clear(), parts.clear(), released.clear(), fences = false;
    first = first_of_block = next_number, blocks_run = 0;
}
void races_block(unsigned block)
{
    if (!races_watched()) return;
    block_now = block, block_epoch = 0, first_of_block = next_number, blocks_run++;
    memset(of_thread, 0, sizeof of_thread), memset(warp_epochs, 0, sizeof warp_epochs), memset(fenced, 0, sizeof fenced);
    known.clear(), got.clear(), seen.clear();
}
void        races_thread(unsigned thread) { thread_now = thread, somebody = true; }
void        races_nobody() { somebody = false; }
static void learn(knowledge &to, const knowledge &from)
{
    for (auto &k : from) {
        finished &f = to[k.first];
        if (k.second.before > f.before || (k.second.before == f.before && k.second.warp_epoch >= f.warp_epoch)) f = k.second;
    }
}
void races_block_barrier()
{
    if (!races_watched()) return;
    block_epoch++, memset(of_thread, 0, sizeof of_thread);
    for (auto &s : seen) learn(known, s.second);
    seen.clear();
}
void races_warp_barrier(unsigned warp)
{
    if (!races_watched()) return;
    warp_epochs[warp]++, memset(of_thread + 32 * warp, 0, 32 * sizeof *of_thread);
}
static record here()
{
    record &r = of_thread[thread_now];
    if (r) return r;
    if (next_number >= NUMBERS) fprintf(stderr, "emulator: a launch is too large for the detector of races\n"), abort();
    moments.push_back({ block_now, thread_now, block_epoch, warp_epochs[thread_now / 32] });
    return r = next_number++;
}
static const moment &of(record r) { return moments[(r & NUMBERS) - first]; }

/* ---- order between blocks ---- */
static bool knows(const knowledge &k, const moment &m)
{
    auto f = k.find(m.block);
    return f != k.end() &&
           (m.block_epoch < f->second.before || (m.thread == f->second.thread && m.warp_epoch <= f->second.warp_epoch));
}
static bool block_is_known(const moment &m)
{
    if (knows(known, m)) return true;
    auto s = seen.find(thread_now);
    return s != seen.end() && knows(s->second, m);
}
static bool all_blocks_are_known() /* several blocks were there, and the record names one: it takes what all did before */
{
    auto s = seen.find(thread_now);
    return known.size() + 1 >= blocks_run || (s != seen.end() && s->second.size() + 1 >= blocks_run);
}
static void fence()
{
    if (!somebody) return;
    fences = true, fenced[thread_now] = 1 + block_epoch;
    auto g = got.find(thread_now);
    if (g != got.end()) learn(seen[thread_now], g->second);
}
static void synchronise(const void *word) /* an atomic update: what was released with the word, and what this thread releases */
{
    if (!fences) return;
    knowledge &w = released[word];
    learn(got[thread_now], w);
    if (!fenced[thread_now]) return;
    uint32_t before = fenced[thread_now] - 1;
    learn(w, known);
    auto s = seen.find(thread_now);
    if (s != seen.end()) learn(w, s->second);
    knowledge own{ { block_now, { before, thread_now, warp_epochs[thread_now / 32] } } };
    learn(w, own);
}

/* ---- accesses ---- */
static bool clashes(record r, record since, const moment &me)
{
    if ((r & NUMBERS) < since) return false;
    const moment &m = of(r);
    if (m.block != me.block) return !block_is_known(m) || ((r & BLOCKS) && !all_blocks_are_known());
    if ((r & BLOCKS) && !all_blocks_are_known()) return true;
    if (m.block_epoch < me.block_epoch) return false;
    if (m.warp() != me.warp() || (r & WARPS)) return true;
    if (m.warp_epoch < me.warp_epoch) return false;
    return m.thread != me.thread || (r & LANES);
}
static record joined(record r, record since, record now, const moment &me)
{
    if ((r & NUMBERS) < since) return now;
    const moment &m = of(r);
    if (m.block != me.block) return now | BLOCKS;
    now |= r & BLOCKS;
    if (m.block_epoch < me.block_epoch) return now;
    now |= r & WARPS;
    if (m.warp() != me.warp()) return now | WARPS;
    if (m.warp_epoch < me.warp_epoch) return now;
    if (m.thread != me.thread) now |= LANES;
    return now | (r & LANES);
}
extern "C" int emulated_allocation(const void *p, size_t *offset, size_t *bytes); /* emulator.cpp */
static void    found(const char *p, const region &in, record other, kind theirs, kind mine, const moment &me)
{
    const moment &m = of(other);
    std::string   key = kernel_now + kind_names[theirs] + kind_names[mine] + (&in == &device ? "device" : "shared");
    char          where[160], others[96] = "";
    size_t        offset, bytes;
    if (!printed.insert(key).second) return;
    if (&in != &device)
        snprintf(where, sizeof where, "%s shared memory + %zu", &in == &fixed ? "static" : "dynamic",
                 (size_t)(p - in.start) - in.before);
    else if (emulated_allocation(p, &offset, &bytes))
        snprintf(where, sizeof where, "device memory, %zu of %zu bytes", offset, bytes);
    else snprintf(where, sizeof where, "device memory that is not allocated");
    if (other & (LANES | WARPS | BLOCKS))
        snprintf(others, sizeof others, " (and others, of %s)",
                 other & BLOCKS  ? "several blocks"
                 : other & WARPS ? "several warps"
                                 : "its warp");
    fprintf(stderr, "emulator: race in %s: thread %u of block %u %s, thread %u of block %u%s %s %s: nothing orders them\n",
            kernel_now.c_str(), me.thread, me.block, kind_names[mine], m.thread, m.block, others, kind_names[theirs], where);
    if (!all_of_them) abort();
}
static void touch(cell &c, const char *p, const region &in, kind k, record since, record now, const moment &me)
{
    if (c.by[k] == now) return; /* who came between has seen it */
    for (int other = 0; other < KINDS; other++)
        if (conflict[k][other] && clashes(c.by[other], since, me)) found(p, in, c.by[other], (kind)other, k, me);
    c.by[k] = k == WROTE ? now : joined(c.by[k], since, now, me);
}
/* A word whose bytes are used apart has flags where others have who wrote it: since then by[1] is the number of its bytes' cells. */
static bool is_split(const cell &c) { return c.by[WROTE] & ~NUMBERS; }
static void split(cell &c, record now)
{
    parts.push_back({ c, c, c, c });
    c = { { now | LANES, (record)parts.size() - 1 } };
}
static void access(const volatile void *at, size_t n, kind k)
{
    const char *p = (const char *)at;
    region     *in = (size_t)(p - device.start) < device.bytes     ? &device
                     : (size_t)(p - fixed.start) < fixed.bytes     ? &fixed
                     : (size_t)(p - dynamic.start) < dynamic.bytes ? &dynamic
                                                                   : nullptr;
    if (!in || !somebody) return;
    record       now = here(), since = in == &device ? first : first_of_block;
    const moment me = of(now);
    size_t       offset = (size_t)(p - in->start), past = offset + n;
    while (offset < past) {
        cell  &c = in->cells[offset / WORD];
        size_t end = (offset / WORD + 1) * WORD;
        bool   whole = offset % WORD == 0 && end <= past;
        if (is_split(c) && (c.by[WROTE] & NUMBERS) < since) c = {};
        if (!is_split(c) && !whole) split(c, now);
        if (!is_split(c)) touch(c, in->start + offset, *in, k, since, now, me), offset = end;
        else
            for (record bytes = c.by[1]; offset < end && offset < past; offset++)
                touch(parts[bytes][offset % WORD], in->start + offset, *in, k, since, now, me);
    }
}
void races_copy(const void *to, const void *from, size_t n)
{
    if (from) access(from, n, READ);
    access(to, n, WROTE);
}
static __attribute__((destructor)) void failed()
{
    if (!printed.empty()) fflush(nullptr), _exit(86);
}

/* ---- what kernels call ---- */
extern "C" void emulated_atomic(const void *p, size_t n)
{
    if (!somebody) return;
    access(p, n, UPDATED), synchronise(p);
}
extern "C" void emulated_fence()
{
    if (races_watched()) fence();
}
extern "C" {
#define ACCESS(n)                                                                                                              \
    void __tsan_read##n(void *p) { access(p, n, READ); }                                                                       \
    void __tsan_write##n(void *p) { access(p, n, WROTE); }                                                                     \
    void __tsan_unaligned_read##n(void *p) { access(p, n, READ); }                                                             \
    void __tsan_unaligned_write##n(void *p) { access(p, n, WROTE); }                                                           \
    void __tsan_volatile_read##n(void *p) { access(p, n, PEEKED); }                                                            \
    void __tsan_volatile_write##n(void *p) { access(p, n, UPDATED); }                                                          \
    void __tsan_unaligned_volatile_read##n(void *p) { access(p, n, PEEKED); }                                                  \
    void __tsan_unaligned_volatile_write##n(void *p) { access(p, n, UPDATED); }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
void __tsan_read_range(void *p, size_t n) { access(p, n, READ); }
void __tsan_write_range(void *p, size_t n) { access(p, n, WROTE); }
void __tsan_vptr_update(void **p, void *) { access(p, sizeof *p, WROTE); }
void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
}
