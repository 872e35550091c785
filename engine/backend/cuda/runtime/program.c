/* Kernels are text. NVRTC compiles a program for the device it runs on, at first use; the cubin is kept in $LUCID_CACHE_DIR
 * (default ~/.cache/lucid), named by a hash of source, architecture and options, so the next process only loads it, without NVRTC.
 * A file that is damaged, of another NVRTC or does not load is made again. A kernel is found by integers, without a lock. */
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

static _Thread_local char *last_log; /* what NVRTC said last to this thread */
const char                *lc_cuda_compile_log(void) { return last_log; }
static void                report_log(nvrtc_program p, int rc)
{
    size_t length = 0;
    char  *log = cuda.nvrtcGetProgramLogSize(p, &length) == 0 ? calloc(1, length + 1) : NULL;
    if (log) cuda.nvrtcGetProgramLog(p, log);
    lc_fail(LC_LucidError, "NVRTC: compilation failed (%d): %.300s", rc, log ? log : "");
    free(last_log), last_log = log;
}

static char *compiled(const char *source, const char *const *options, int n_options, size_t *n)
{
    nvrtc_program p;
    char         *image = NULL;
    if (cuda_need_nvrtc() < 0) return NULL;
    if (cuda.nvrtcCreateProgram(&p, source, "lucid.cu", 0, NULL, NULL) != 0) return lc_fail(LC_LucidError, "NVRTC: no program");
    int rc = cuda.nvrtcCompileProgram(p, n_options, options);
    if (rc == 0 && cuda.nvrtcGetCUBINSize(p, n) == 0 && (image = malloc(*n))) cuda.nvrtcGetCUBIN(p, image);
    if (!image) report_log(p, rc);
    cuda.nvrtcDestroyProgram(&p);
    return image;
}

/* What a file of the cache starts with: a cubin is only given to the driver if it is whole, and of this NVRTC, if that is loaded. */
typedef struct {
    char     magic[8];
    uint64_t bytes, hash;
    int      major, minor;
} image_header;
static const char magic[8] = "LUCIDBIN";
static bool       is_whole(const char *file, size_t n)
{
    image_header h;
    int          major = 0, minor = 0;
    if (n < sizeof h) return false;
    memcpy(&h, file, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic) != 0 || h.bytes != n - sizeof h) return false;
    if (cuda.nvrtcGetProgramLog && cuda.nvrtcVersion(&major, &minor) == 0 && (h.major != major || h.minor != minor))
        return false;
    return h.hash == cuda_hash(CUDA_HASH_START, file + sizeof h, h.bytes);
}
static void keep_image(const char *name, const char *image, size_t n)
{
    image_header h = { .bytes = n, .hash = cuda_hash(CUDA_HASH_START, image, n) };
    char        *file = malloc(sizeof h + n);
    if (!file) return;
    memcpy(h.magic, magic, sizeof magic), cuda.nvrtcVersion(&h.major, &h.minor);
    memcpy(file, &h, sizeof h), memcpy(file + sizeof h, image, n);
    cuda_cache_write(name, file, sizeof h + n);
    free(file);
}

cu_module cuda_module_from(const char *source, uint64_t hash, const char *const *options, int n_options)
{
    enum { MOST_OPTIONS = 32 };
    char        name[64], arch[32], *image;
    const char *all[MOST_OPTIONS] = { arch };
    cu_module   module = NULL;
    size_t      n = 0;
    for (int i = 0; i < n_options && i + 1 < MOST_OPTIONS; i++) all[i + 1] = options[i];
    snprintf(arch, sizeof arch, "--gpu-architecture=sm_%d", cuda_architecture());
    snprintf(name, sizeof name, "%016llx-sm%d.cubin", (unsigned long long)hash, cuda_architecture());
    if ((image = cuda_cache_read(name, &n))) {
        bool loads = is_whole(image, n) && cuda.cuModuleLoadData(&module, image + sizeof(image_header)) == 0;
        free(image);
        if (loads) return module;
        lc_verbose_log("cuda: %s is made again", name);
    }
    if (!(image = compiled(source, all, n_options + 1, &n))) return NULL;
    keep_image(name, image, n);
    if (cuda_check(cuda.cuModuleLoadData(&module, image), "cuModuleLoadData") < 0) module = NULL;
    return free(image), module;
}
/* No fused multiply-add in elementwise rows: as on the CPU, a product and a sum round twice, so results agree. */
static cu_module built(const char *source, bool math)
{
    const char *const options[] = { math ? "--fmad=false" : "--fmad=true", "--std=c++17" };
    uint64_t          hash = cuda_hash(cuda_hash(CUDA_HASH_START, source, strlen(source)), options[0], strlen(options[0]));
    return cuda_module_from(source, hash, options, 2);
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
    if (module && cuda_check(cuda.cuModuleGetFunction(&f, module, p->kernel), p->kernel) < 0) f = NULL; /* may load code */
    cuda_restore_capture(before);
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

int cuda_blocks_sharing(const cuda_program *p, int64_t blocks, int threads, int shared, const void *args)
{
    if (blocks <= 0) return 0;
    cu_function f = kernel_of(p);
    return f ? cuda_launch(f, blocks, threads, shared, args) : -1;
}
int cuda_blocks(const cuda_program *p, int64_t blocks, int threads, const void *args)
{
    return cuda_blocks_sharing(p, blocks, threads, 0, args);
}

int cuda_map(const cuda_program *p, int64_t elements, const void *args)
{
    enum { MOST = 132 * 32 }; /* blocks: a few waves of a large GPU; every thread goes on with further elements */
    int64_t blocks = (elements + THREADS - 1) / THREADS;
    return cuda_blocks(p, blocks < MOST ? blocks : MOST, THREADS, args);
}
