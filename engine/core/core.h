/* core: element types, errors, memory, threads, refcounted objects, random numbers. Depends on nothing.
 *
 * Errors. A function that fails returns NULL or -1 after lc_fail(kind, ...). The record is per thread; bindings/py_error.c is the
 * only translator. The kinds carry the names of the Python exceptions, so the list below is the only list.
 *
 * Objects. Whatever is shared and is not a tensor (autograd nodes, hooks, generators, callables of the host language) starts with
 * an lc_object: a count and the function that ends it. Lower layers can hold what higher layers define. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What C and C++ spell differently; a C++ program includes lucid.h, which has <atomic>. Both lay these types out alike. */
#ifdef __cplusplus
#define LC_ATOMIC(T)    std::atomic<T>
#define LC_ORDER(name)  std::memory_order_##name
#define LC_THREAD_LOCAL __thread
#else
#include <stdatomic.h>
#define LC_ATOMIC(T)    _Atomic(T)
#define LC_ORDER(name)  memory_order_##name
#define LC_THREAD_LOCAL _Thread_local
#endif
#define LC_ALIGNED(bytes) __attribute__((aligned(bytes)))

#define UNUSED __attribute__((unused))
/* For files whose loops run over a few dimensions or operands on every call: vector code for them is all prologue. */
#ifdef __clang__
#define LC_SHORT_LOOPS
#else
#define LC_SHORT_LOOPS _Pragma("GCC optimize(\"no-tree-vectorize\", \"no-tree-loop-distribute-patterns\")")
#endif
#define COLD __attribute__((cold, noinline))
/* A few bytes of per-thread state are read on every call: the initial-exec model makes that one instruction. Keep them few. */
#define LC_HOT_TLS LC_THREAD_LOCAL __attribute__((tls_model("initial-exec")))

typedef enum {
#define DTYPE(name, ctype, acc, py, class) LC_##name,
#include "dtype.def"
#undef DTYPE
    LC_DTYPE_COUNT
} lc_dtype;
typedef enum { LC_BOOL, LC_INT, LC_FLOAT, LC_COMPLEX } lc_dtype_class;
typedef struct {
    const char    *name;
    uint8_t        size;
    lc_dtype_class kind;
} lc_dtype_info;
extern const lc_dtype_info   lc_dtypes[LC_DTYPE_COUNT];
static inline int64_t        lc_size_of(int dtype) { return lc_dtypes[dtype].size; }
static inline lc_dtype_class lc_class_of(int dtype) { return lc_dtypes[dtype].kind; }
static inline bool           lc_is_floating(int dtype) { return lc_class_of(dtype) == LC_FLOAT; }
static inline bool           lc_is_complex(int dtype) { return lc_class_of(dtype) == LC_COMPLEX; }
static inline bool           lc_is_differentiable(int dtype) { return lc_class_of(dtype) >= LC_FLOAT; }
static inline lc_dtype       lc_real_of(int dtype) /* float32 of complex64, and so on; others as they are */
{
    return dtype == LC_c64 ? LC_f32 : dtype == LC_c32 ? LC_f16 : dtype == LC_c128 ? LC_f64 : (lc_dtype)dtype;
}
static inline lc_dtype lc_working_dtype(lc_dtype dtype) /* what kernels compute in */
{
    switch (dtype) {
    case LC_f16:
    case LC_bf16:
        return LC_f32;
    case LC_c32:
        return LC_c64;
    case LC_u16:
    case LC_u32:
        return LC_i64;
    default:
        return dtype;
    }
}
static inline bool lc_is_float8(int dtype) { return dtype >= LC_f8_e4m3fn; } /* stored, moved, converted; not computed in */
enum { LC_FLOAT8_BITS = 31 << LC_f8_e4m3fn };
static inline bool lc_is_unsigned(int dtype) { return dtype == LC_u8 || (dtype >= LC_u16 && dtype <= LC_u64); }
extern lc_dtype    lc_default_dtype; /* of floats that come without one: f32 unless the user says otherwise */

/* Every dtype of a set, as R(op, f32) R(op, f64) ... Halves are absent: kernels compute them in float32. */
#define LC_EACH_floating(R, op) R(op, f32) R(op, f64)
#define LC_EACH_integral(R, op) R(op, u8) R(op, i8) R(op, i16) R(op, i32) R(op, i64)
#define LC_EACH_complex(R, op)  R(op, c64) R(op, c128)
#define LC_EACH_boolean(R, op)  R(op, b8)
#define LC_EACH_real(R, op)     LC_EACH_integral(R, op) LC_EACH_floating(R, op)
#define LC_EACH_bitwise(R, op)  LC_EACH_boolean(R, op) LC_EACH_integral(R, op)
#define LC_EACH_ordered(R, op)  LC_EACH_boolean(R, op) LC_EACH_real(R, op)
#define LC_EACH_inexact(R, op)  LC_EACH_floating(R, op) LC_EACH_complex(R, op)
#define LC_EACH_arith(R, op)    LC_EACH_real(R, op) LC_EACH_complex(R, op)
#define LC_EACH_any(R, op)      LC_EACH_boolean(R, op) LC_EACH_arith(R, op)

/* Halves: uint16_t bit patterns, computed in float32. */
static inline uint32_t lc_bits_of_f32(float f)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &f, sizeof bits);
    return bits;
}
static inline float lc_f32_of_bits(uint32_t bits)
{
    float f;
    __builtin_memcpy(&f, &bits, sizeof f);
    return f;
}
static inline float    lc_bf16_to_f32(uint16_t h) { return lc_f32_of_bits((uint32_t)h << 16); }
static inline uint16_t lc_f32_to_bf16(float f)
{
    uint32_t u = lc_bits_of_f32(f);
    if (f != f) return 0x7fc0;
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
static inline float lc_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3ff;
    if (exponent == 0) { /* zero and subnormals: mantissa * 2^-24, exact in float32 */
        float f = (float)mantissa * 0x1p-24f;
        return sign ? -f : f;
    }
    return lc_f32_of_bits(sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | mantissa << 13);
}
static inline uint16_t lc_f32_to_f16(float f)
{
    uint32_t u = lc_bits_of_f32(f), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
    if (a > 0x7f800000) return (uint16_t)(sign | 0x7e00);
    if (a >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
    if (a < 0x38800000) /* subnormal: let the float adder round to a multiple of 2^-24 */
        return (uint16_t)(sign | (lc_bits_of_f32(lc_f32_of_bits(a) + 0.5f) - 0x3f000000));
    return (uint16_t)(sign | ((a + 0xfff + (a >> 13 & 1) - (112u << 23)) >> 13));
}

extern float        lc_f8_values[LC_DTYPE_COUNT - LC_f8_e4m3fn][256];
static inline float lc_f8_to_f32(lc_dtype dtype, uint8_t code) { return lc_f8_values[dtype - LC_f8_e4m3fn][code]; }
uint8_t             lc_f32_to_f8(lc_dtype dtype, float x);

/* Devices. */
typedef enum { LC_CPU, LC_CUDA, LC_META, LC_DEVICE_KINDS } lc_device_kind;
typedef struct {
    uint8_t kind;
    int8_t  index; /* always 0 for cpu and meta */
} lc_device;
extern const char *const lc_device_names[LC_DEVICE_KINDS];
static inline bool       lc_same_device(lc_device a, lc_device b) { return __builtin_memcmp(&a, &b, sizeof a) == 0; }
static inline bool       lc_same_kind(lc_device a, lc_device b) { return a.kind == b.kind; }
extern lc_device         lc_default_device;

#define LC_ERRORS(X)                                                                                                           \
    X(LucidError)                                                                                                              \
    X(OutOfMemory)                                                                                                             \
    X(ShapeMismatch)                                                                                                           \
    X(DtypeMismatch)                                                                                                           \
    X(DeviceMismatch)                                                                                                          \
    X(VersionMismatch)                                                                                                         \
    X(GpuNotAvailable)                                                                                                         \
    X(IndexError)                                                                                                              \
    X(NotImplementedError)                                                                                                     \
    X(LinAlgError)                                                                                                             \
    X(ZeroDivisionError)                                                                                                       \
    X(TypeError)                                                                                                               \
    X(ValueError)                                                                                                              \
    X(ForeignError) /* TypeError, ValueError: the builtins. ForeignError: the host language holds the exception */
typedef enum {
#define X(name) LC_##name,
    LC_ERRORS(X)
#undef X
        LC_ERROR_COUNT
} lc_error_kind;

void *lc_fail(lc_error_kind kind, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));
#define lc_fail_int(...) (lc_fail(__VA_ARGS__), -1)
const char   *lc_error(void); /* the text of this thread's last failure; "" if there was none */
lc_error_kind lc_error_last_kind(void);
const char   *lc_error_name(void); /* its kind as text: "ShapeMismatch"; "none" */
/* A warning for the user. The host language may replace the function (Python: warnings.warn); the default writes to stderr. */
extern void (*lc_warning_handler)(const char *text);
void lc_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));
void lc_warn_once(LC_ATOMIC(bool) * said, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));
/* LUCID_VERBOSE=1: which path was taken and why a fast one was refused. Costs one branch when off. */
extern bool lc_verbose;
void        lc_log_line(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));
#define lc_verbose_log(...) (__builtin_expect(lc_verbose, 0) ? lc_log_line(__VA_ARGS__) : (void)0)

/* Memory: see alloc.c. A block is 64-byte aligned and is returned with the size it was asked for. */
void *lc_alloc(size_t bytes);
void  lc_free(void *block, size_t bytes);
/* `name` is an array of n elements until the function returns: on the stack if they are few, else on the heap, because a list may be longer than a
 * stack. NULL if there is no memory, which is then an error already. */
typedef struct {
    void  *at;
    size_t bytes;
} lc_array_block;
static inline void lc_array_end(lc_array_block *block)
{
    if (block->bytes) lc_free(block->at, block->bytes);
}
enum { LC_STACK_ARRAY = 4096 };
#define LC_ARRAY(T, name, n)                                                                                                   \
    size_t name##_bytes = (size_t)(n) * sizeof(T);                                                                             \
    __attribute__((cleanup(lc_array_end)))                                                                                     \
    lc_array_block name##_block = { name##_bytes > LC_STACK_ARRAY ? lc_alloc(name##_bytes)                                     \
                                                                  : __builtin_alloca(name##_bytes + 1),                        \
                                    name##_bytes > LC_STACK_ARRAY ? name##_bytes : 0 };                                        \
    T *const name = name##_block.at
void        lc_cache_clear(void); /* give cached blocks of this thread and of the shared pool back to the system */
void        lc_on_cache_clear(void (*empty)(void)); /* at load: what else holds memory only to be faster, at most 8 */
long        lc_live_blocks(void);                   /* all threads: allocations minus frees. Zero growth means no leak */
extern long lc_alloc_fail_at;                       /* tests: the n-th lc_alloc from now fails; 0 is off */
typedef struct {
    int64_t allocated_bytes, peak_bytes, allocations, frees, cached_bytes; /* storages; current, highest, counts */
} lc_memory_stats;
void lc_memory_count(lc_device_kind kind, int64_t bytes); /* a storage came (positive) or went (negative) */
void lc_memory_read(lc_device_kind kind, lc_memory_stats *stats);
void lc_memory_reset_peak(lc_device_kind kind);

typedef struct lc_object {
    LC_ATOMIC(int) refs;
    void (*drop)(struct lc_object *);
} lc_object;
void               lc_object_release(lc_object *o); /* NULL is allowed */
static inline void lc_object_retain(lc_object *o) { atomic_fetch_add_explicit(&o->refs, 1, LC_ORDER(relaxed)); }

/* True if the caller held the last reference. One reader needs no locked instruction: nobody else can raise the count. */
static inline bool lc_last_reference(LC_ATOMIC(int) * refs)
{
    return atomic_load_explicit(refs, LC_ORDER(acquire)) == 1 || atomic_fetch_sub_explicit(refs, 1, LC_ORDER(acq_rel)) == 1;
}

/* Threads: see threads.c. fn is called once per chunk [i * grain, min((i + 1) * grain, n)), on any thread: chunks depend on n and
 * grain only, so results do not depend on the number of threads. Nested calls and a single chunk run inline. */
void lc_parallel_for(int64_t n, int64_t grain, void (*fn)(void *ctx, int64_t begin, int64_t end), void *ctx);
/* While it is set, loops of this thread run on this thread alone. */
extern LC_HOT_TLS bool lc_serial;
int                    lc_num_threads(void);
int                    lc_set_num_threads(int n); /* -1 after lc_fail if n < 1 */
/* Whether the calling thread and the workers compute with 0 in place of subnormal numbers; false: this CPU cannot. */
bool lc_set_flush_denormal(bool flush);
/* The host language's lock (Python's GIL), released around work that takes longer than about 20 microseconds. NULL: there is none. */
extern void *(*lc_host_unlock)(void);
extern void (*lc_host_relock)(void *state);
/* Where the host language keeps a package: its folder, or NULL. NULL: it has no packages. May take the host language's lock. */
extern const char *(*lc_host_package)(const char *package, char *folder, size_t bytes);

/* What this CPU can run. LUCID_ISA=base|avx2|avx512|neon forces a table that the machine has. */
typedef enum { LC_ISA_base, LC_ISA_avx2, LC_ISA_avx512, LC_ISA_neon } lc_isa;
lc_isa      lc_cpu_isa(void);
const char *lc_cpu_isa_name(void);
int         lc_cpu_count(void); /* CPUs we may use: affinity mask, cut to the quota of the control group */
/* The quota in whole CPUs, rounded up; 0: none. membership: /proc/self/cgroup; mounts: /sys/fs/cgroup (tests bring their own). */
int lc_cpu_quota(const char *membership, const char *mounts);

/* Shared libraries, loaded at first use. names: candidates, ended by NULL. NULL after lc_fail(GpuNotAvailable or LucidError, ...) */
void *lc_dylib_open(const char *const *names, const char *what);
void *lc_dylib_symbol(void *lib, const char *name);

/* Random numbers: PyTorch's CPU generator, MT19937 (rng.c; random.h has the fills). The functions that take one word or several
 * want the lock held where threads share the generator; all others take it. */
typedef struct lc_generator {
    lc_object       object;
    lc_device       device;
    pthread_mutex_t lock;
    uint64_t        seed;
    uint32_t        state[624];
    int32_t         left, next;               /* outputs left in this block, position of the next */
    bool            has_normal, has_normal_f; /* a second normal deviate is waiting */
    double          normal;
    float           normal_f;
    uint64_t        offset; /* of a GPU's generator, which has a seed and a counter only: Philox, as PyTorch's */
} lc_generator;
lc_generator *lc_generator_new(lc_device device, uint64_t seed); /* new reference */
lc_generator *lc_generator_default(void);                /* borrowed: the process-wide CPU generator, seeded at random */
lc_generator *lc_generator_default_of(lc_device device); /* borrowed: that of the CPU, or of a GPU */
void          lc_generator_seed(lc_generator *g, uint64_t seed);
uint64_t      lc_random_seed(void); /* from the system's entropy: no two calls alike */
void          lc_random_words(lc_generator *g, uint32_t *out, int64_t n);
enum { LC_GENERATOR_STATE_BYTES = 5056, LC_GPU_GENERATOR_STATE_BYTES = 16, LC_GPU_GENERATORS = 16 };
size_t lc_generator_state_bytes(const lc_generator *g);
#define LC_GENERATOR_SEED 67280421310721u                     /* of a generator made without a seed */
void lc_generator_get_state(lc_generator *g, uint8_t *bytes); /* PyTorch's layout of CPU generator states */
int  lc_generator_set_state(lc_generator *g, const uint8_t *bytes, size_t n);
