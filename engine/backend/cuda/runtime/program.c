/* Kernels are text. NVRTC compiles a program for the device it runs on, at first use; the cubin is kept in $LUCID_CACHE_DIR
 * (default ~/.cache/lucid), named by a hash of source, architecture, options and NVRTC's version, so the next process only loads
 * it. A cubin that does not load is made again. A kernel is found by integers, without a lock. */
#include "runtime.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 4096, THREADS = 256 };
typedef struct entry {
    struct entry *next;
    int           device;
    cuda_program  program;
    cu_module     module;
    cu_function   f;
} entry;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry *_Atomic  entries[SLOTS];

extern const char lc_cuda_text_types[], lc_cuda_text_math[], lc_cuda_text_complex[],
    lc_cuda_text_complex_math[]; /* by tools/embed.py */

int cuda_architecture(void) /* 90 for sm_90; the numbers are the driver's names for the two attributes */
{
    int major = 0, minor = 0;
    cuda.cuDeviceGetAttribute(&major, 75, cuda_current());
    cuda.cuDeviceGetAttribute(&minor, 76, cuda_current());
    return 10 * major + minor;
}

static void report_log(nvrtc_program p, int rc)
{
    size_t length = 0;
    char  *log = cuda.nvrtcGetProgramLogSize(p, &length) == 0 ? calloc(1, length + 1) : NULL;
    if (log) cuda.nvrtcGetProgramLog(p, log);
    lc_fail(LC_LucidError, "NVRTC: compilation failed (%d): %.300s", rc, log ? log : "");
    free(log);
}

static char *compiled(const char *source, bool math, size_t *n)
{
    nvrtc_program p;
    char          arch[32], *image = NULL;
    if (cuda_need_nvrtc() < 0) return NULL;
    snprintf(arch, sizeof arch, "--gpu-architecture=sm_%d", cuda_architecture());
    if (cuda.nvrtcCreateProgram(&p, source, "lucid.cu", 0, NULL, NULL) != 0) return lc_fail(LC_LucidError, "NVRTC: no program");
    /* No fused multiply-add in elementwise rows: as on the CPU, a product and a sum round twice, so results agree. */
    int rc =
        cuda.nvrtcCompileProgram(p, 3, (const char *const[]){ arch, math ? "--fmad=false" : "--fmad=true", "--std=c++17" });
    if (rc == 0 && cuda.nvrtcGetCUBINSize(p, n) == 0 && (image = malloc(*n))) cuda.nvrtcGetCUBIN(p, image);
    if (!image) report_log(p, rc);
    cuda.nvrtcDestroyProgram(&p);
    return image;
}

static cu_module built(const char *source, bool math)
{
    char      name[64], *image;
    cu_module module = NULL;
    size_t    n = 0;
    snprintf(name, sizeof name, "%016llx-sm%d-%d.cubin", (unsigned long long)cuda_hash(CUDA_HASH_START, source, strlen(source)),
             cuda_architecture(), !math);
    if ((image = cuda_cache_read(name, &n))) {
        bool loads = n > sizeof(uint64_t) && cuda.cuModuleLoadData(&module, image) == 0;
        free(image);
        if (loads) return module;
    }
    if (!(image = compiled(source, math, &n))) return NULL;
    cuda_cache_write(name, image, n);
    if (cuda_check(cuda.cuModuleLoadData(&module, image), "cuModuleLoadData") < 0) module = NULL;
    return free(image), module;
}

static const char *const type_names[] = {
#define DTYPE(name, ctype, acc, py, class) #name,
#include "../../../core/dtype.def"
#undef DTYPE
    "w16", /* CUDA_WIDTH of 16 bytes */
};
int8_t cuda_width_code(int bytes)
{
    switch (bytes) {
    case 1:
        return CUDA_TYPE(LC_u8);
    case 2:
        return CUDA_TYPE(LC_u16);
    case 4:
        return CUDA_TYPE(LC_u32);
    case 8:
        return CUDA_TYPE(LC_u64);
    default:
        return CUDA_TYPE(LC_DTYPE_COUNT); /* 16 bytes that move together */
    }
}

char *cuda_program_text(const cuda_program *p)
{
    enum { LINES_ROOM = 4096 };
    static const char names[] = "TUVWXY";
    const char       *first = p->body->math ? lc_cuda_text_math : lc_cuda_text_types, *second = "";
    for (int i = 0; i < CUDA_TYPES; i++)
        if (p->type[i] && p->type[i] <= LC_DTYPE_COUNT && lc_is_complex(p->type[i] - 1))
            second = p->body->math ? lc_cuda_text_complex_math : lc_cuda_text_complex;
    size_t room = strlen(first) + strlen(second) + strlen(p->body->text) + LINES_ROOM, n;
    char  *text = malloc(room);
    if (!text) return NULL;
    n = (size_t)snprintf(text, room, "%s%s#define VARIANT %d\n", first, second, p->variant);
    for (int i = 0; i < CUDA_TYPES; i++)
        if (p->type[i]) n += (size_t)snprintf(text + n, room - n, "typedef %s %c;\n", type_names[p->type[i] - 1], names[i]);
    if (p->body->lines) n += (size_t)p->body->lines(p, text + n, room - n);
    snprintf(text + n, room - n, "%s", p->body->text);
    return text;
}

static bool same_program(const cuda_program *a, const cuda_program *b) /* of one text */
{
    return a->body == b->body && !memcmp(a->type, b->type, sizeof a->type) && a->variant == b->variant;
}

static COLD cu_function made(entry *_Atomic *slot, const cuda_program *p)
{
    cu_function f = NULL;
    cuda_lock(&lock);
    cu_module module = NULL;
    for (int i = 0; i < SLOTS && !module; i++) /* another kernel of the same text has compiled it */
        for (entry *e = entries[i]; e && !module; e = e->next)
            if (e->device == cuda_current() && same_program(&e->program, p)) module = e->module;
    char *text = module ? NULL : cuda_program_text(p);
    if (!module && !text) lc_fail(LC_OutOfMemory, "out of memory: kernel text");
    int before = cuda_relax_capture(); /* a kernel may be used first while a graph is captured */
    if (text) module = built(text, p->body->math);
    cuda_restore_capture(before);
    if (module && cuda_check(cuda.cuModuleGetFunction(&f, module, p->kernel), p->kernel) < 0) f = NULL;
    entry *e = f ? malloc(sizeof *e) : NULL;
    if (e) {
        *e = (entry){ .next = *slot, .device = cuda_current(), .program = *p, .module = module, .f = f };
        atomic_store_explicit(slot, e, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    free(text);
    return f;
}

static cu_function kernel_of(const cuda_program *p)
{
    uint64_t types = 0;
    memcpy(&types, p->type, sizeof p->type);
    types |= (uint64_t)(uint16_t)p->variant << 48;
    uint64_t        h = ((uintptr_t)p->body ^ (uintptr_t)p->kernel * 31 ^ types * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
    entry *_Atomic *slot = &entries[h >> 52];
    for (entry *e = atomic_load_explicit(slot, memory_order_acquire); e; e = e->next)
        if (e->program.kernel == p->kernel && e->device == cuda_current() && same_program(&e->program, p)) return e->f;
    return made(slot, p);
}

int cuda_blocks(const cuda_program *p, int64_t blocks, int threads, const void *args)
{
    if (blocks <= 0) return 0;
    cu_function f = kernel_of(p);
    return f ? cuda_launch(f, blocks, threads, args) : -1;
}

int cuda_map(const cuda_program *p, int64_t elements, const void *args)
{
    enum { MOST = 132 * 32 }; /* blocks: a few waves of a large GPU; every thread goes on with further elements */
    int64_t blocks = (elements + THREADS - 1) / THREADS;
    return cuda_blocks(p, blocks < MOST ? blocks : MOST, THREADS, args);
}
