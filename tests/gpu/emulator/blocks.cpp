/* How a launch runs: the threads of a block are fibers that run from wait to wait, in random order, so that missing barriers show;
 * so do blocks, one after the other, so that sums by atomics vary. Shared memory starts as garbage in each block, and memory
 * behind its dynamic part faults. What that cannot show: other orders of the steps of threads than from wait to wait, and memory
 * order between blocks; races.cpp finds what depends on them. */
#include "emulator.h"
#include "races.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <link.h>
#include <map>
#include <sys/mman.h>
#include <ucontext.h>
#include <utility>

extern "C" thread_state emulated_now;
thread_state            emulated_now;

enum { STACK = 1 << 16 };
enum waiting { RUNS, AT_BARRIER, AT_EXCHANGE, AT_WARP_BARRIER, ENDED };
/* A context that runs on a stack of its own. ucontext asks the kernel for signal masks at every switch, which takes most of the
 * time of a block; on x86-64 the registers that a call keeps are enough. */
#ifdef __x86_64__
struct context {
    void *stack_pointer;
};
asm(R"(
    .text
emulator_switch:
    pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
    movq %rsp, (%rdi)
    movq (%rsi), %rsp
    popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
    ret
)");
extern "C" void emulator_switch(context *from, context *to);
static void     start_on(context *c, char *stack, size_t bytes, void (*body)())
{
    void **top = (void **)(stack + bytes);
    *--top = nullptr, *--top = (void *)body; /* as if nullptr had called it: the stack is aligned as at any entry */
    c->stack_pointer = top - 6;
}
static void switch_to(context *from, context *to) { emulator_switch(from, to); }
#else
typedef ucontext_t context;
static void        start_on(context *c, char *stack, size_t bytes, void (*body)())
{
    getcontext(c);
    c->uc_stack.ss_sp = stack, c->uc_stack.ss_size = bytes, c->uc_link = nullptr;
    makecontext(c, body, 0);
}
static void switch_to(context *from, context *to) { swapcontext(from, to); }
#endif
struct copy {
    char       *to;
    const char *from; /* null: zeros */
    int         bytes, group;
};
struct fiber {
    context          at;
    char            *stack;
    waiting          state;
    char             value[32];
    std::deque<copy> copies; /* on their way */
    int              group;
};
static std::vector<fiber>        fibers(MOST);
static context                   scheduler;
static int                       now;
static const launch             *running;
static std::pair<char *, size_t> shared_memory;
extern "C" char                 *emulated_dynamic_shared; /* of a block, as many bytes as the launch asks for */
char                            *emulated_dynamic_shared;
static uint64_t                  dice = 88172645463325252u;

unsigned thrown(unsigned n)
{
    dice ^= dice << 13, dice ^= dice >> 7, dice ^= dice << 17;
    return (unsigned)(dice % n);
}
static void body_of_fiber()
{
    running->k->body(running->args.data());
    fibers[now].state = ENDED;
    switch_to(&fibers[now].at, &scheduler);
}
static void wait_as(waiting state)
{
    if (!running->k->waits) fprintf(stderr, "emulator: a KERNEL waits: declare it BLOCK_KERNEL\n"), abort();
    fibers[now].state = state;
    switch_to(&fibers[now].at, &scheduler);
}
bool omitted(const char *what)
{
    static const char *chosen = getenv("EMULATOR_OMIT");
    static bool        said;
    if (!chosen || strcmp(chosen, what)) return false;
    if (!said) said = true, fprintf(stderr, "emulator: planted\n");
    return true;
}
extern "C" void emulated_block_barrier() { wait_as(AT_BARRIER); }
extern "C" void emulated_warp_exchange(unsigned mask, const void *mine, void *theirs, int bytes, int lane)
{
    int me = now;
    if (mask != 0xffffffffu) fprintf(stderr, "emulator: a mask of an exchange leaves out threads that take part\n"), abort();
    memcpy(fibers[me].value, mine, bytes);
    wait_as(AT_EXCHANGE);
    memcpy(theirs, fibers[me / 32 * 32 + lane].value, bytes);
    wait_as(AT_EXCHANGE);
}
extern "C" void emulated_warp_barrier(unsigned mask)
{
    if (mask != 0xffffffffu) fprintf(stderr, "emulator: a barrier of a part of a warp\n"), abort();
    wait_as(AT_WARP_BARRIER);
}
extern "C" void emulated_copy(void *to, const void *from, int bytes, bool there)
{
    if ((uintptr_t)to % (size_t)bytes || (there && (uintptr_t)from % (size_t)bytes))
        fprintf(stderr, "emulator: a copy of %d bytes that is not aligned\n", bytes), abort();
    copy c = { (char *)to, there ? (const char *)from : nullptr, bytes, fibers[now].group };
    races_copy(c.to, c.from, (size_t)bytes), memset(to, GARBAGE, (size_t)bytes);
    fibers[now].copies.push_back(c);
}
extern "C" void emulated_copies_end() { fibers[now].group++; }
extern "C" void emulated_copies_wait(int groups_left)
{
    fiber &f = fibers[now];
    while (!f.copies.empty() && f.copies[0].group < f.group - groups_left) {
        copy c = f.copies[0];
        races_copy(c.to, c.from, (size_t)c.bytes), f.copies.pop_front();
        if (c.from) memcpy(c.to, c.from, (size_t)c.bytes);
        else memset(c.to, 0, (size_t)c.bytes);
    }
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
struct order { /* of n things: from anywhere, forwards or backwards */
    unsigned n, at, step;
    explicit order(unsigned n) : n(n), at(thrown(n)), step(thrown(2) ? 1 : n - 1) {}
    unsigned next()
    {
        unsigned i = at;
        at = (at + step) % n;
        return i;
    }
};
static dim3 place(unsigned i, dim3 in) { return { i % in.x, i / in.x % in.y, i / in.x / in.y }; }
/* Shared memory is what a program's library has without initial values. */
static int find_shared(dl_phdr_info *library, size_t, void *kernel)
{
    auto address = (ElfW(Addr))kernel;
    bool here = false;
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) &h = library->dlpi_phdr[i];
        ElfW(Addr) start = library->dlpi_addr + h.p_vaddr;
        here |= h.p_type == PT_LOAD && address >= start && address < start + h.p_memsz;
    }
    for (int i = 0; here && i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) &h = library->dlpi_phdr[i];
        if (h.p_type != PT_LOAD || h.p_memsz == h.p_filesz) continue;
        shared_memory = { (char *)library->dlpi_addr + h.p_vaddr + h.p_filesz, h.p_memsz - h.p_filesz };
    }
    return here;
}
size_t static_shared_memory(const kernel *k)
{
    static std::map<const kernel *, std::pair<char *, size_t>> found;
    auto                                                       before = found.find(k);
    if (before != found.end()) return shared_memory = before->second, shared_memory.second;
    shared_memory = {}, dl_iterate_phdr(find_shared, (void *)k);
    return found[k] = shared_memory, shared_memory.second;
}
/* What follows dynamic shared memory faults. */
static void give_dynamic_shared(size_t bytes)
{
    enum : size_t { PAGE = 4096, MOST_BYTES = 256 << 10 };
    static char *room;
    if (!room) {
        room = (char *)mmap(0, MOST_BYTES + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(room + MOST_BYTES, PAGE, PROT_NONE);
    }
    emulated_dynamic_shared = room + MOST_BYTES - (bytes + 15) / 16 * 16;
}
static void run_block_of_fibers(int n)
{
    if (shared_memory.second) memset(shared_memory.first, GARBAGE, shared_memory.second);
    memset(emulated_dynamic_shared, GARBAGE, running->shared);
    for (int i = 0; i < n; i++) {
        fiber &f = fibers[i];
        if (!f.stack) f.stack = (char *)mmap(0, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        start_on(&f.at, f.stack, STACK, body_of_fiber);
        f.state = RUNS, f.copies.clear(), f.group = 0;
    }
    for (;;) {
        int   alive = 0, ran = 0;
        order in((unsigned)n);
        for (int c = 0; c < n; c++) {
            int i = (int)in.next();
            if (fibers[i].state == ENDED) continue;
            alive++;
            if (fibers[i].state != RUNS) continue;
            ran++, now = i, emulated_now.threadIdx = place((unsigned)i, running->block);
            races_thread((unsigned)i), switch_to(&scheduler, &fibers[i].at), races_nobody();
        }
        if (!alive) return;
        if (ran) continue;
        bool any = false;
        for (int w = 0; w < n; w += 32) {
            int past = w + 32 < n ? w + 32 : n;
            any |= released(w, past, AT_EXCHANGE);
            if (released(w, past, AT_WARP_BARRIER)) any = true, races_warp_barrier((unsigned)w / 32);
        }
        if (any) continue;
        if (!released(0, n, AT_BARRIER))
            fprintf(stderr, "emulator: threads of a block wait for threads that ended or wait elsewhere\n"), abort();
        races_block_barrier();
    }
}
void run_kernel(const launch &l, const char *name)
{
    running = &l, emulated_now.blockDim = l.block, emulated_now.gridDim = l.grid;
    unsigned threads = l.block.x * l.block.y * l.block.z;
    unsigned all = l.grid.x * l.grid.y * l.grid.z;
    if (l.k->waits) static_shared_memory(l.k), give_dynamic_shared(l.shared);
    races_launch(name);
    races_shared_memory(shared_memory.first, shared_memory.second, emulated_dynamic_shared, l.shared);
    if (all > 1 && omitted("the last block")) all--;
    order blocks(all), in(threads);
    for (unsigned b = 0; b < all; b++) {
        unsigned i = blocks.next();
        emulated_now.blockIdx = place(i, l.grid), races_block(i);
        if (l.k->waits) run_block_of_fibers((int)threads);
        else
            for (unsigned t = 0; t < threads; t++) {
                unsigned thread = in.next();
                emulated_now.threadIdx = place(thread, l.block), races_thread(thread), l.k->body(l.args.data());
            }
        races_nobody();
    }
}
