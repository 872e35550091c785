/* The CUDA driver, NVRTC, cuBLAS and cuDNN, loaded at first use: nothing of CUDA is needed to build, to import, or to run on
 * the CPU (runtime/libraries.c).
 *
 * Only the entry points that the backend calls are declared, with the types of the libraries' ABI. Calls enqueue on the
 * current stream of the current device, cuda_stream(), and return (runtime/stream.c). Handles of libraries belong to a
 * thread and follow its stream (runtime/handles.c). */
#pragma once
#include "../activity.h"
#include "../args.h"
#include "report.h"
#include <pthread.h>

typedef int      cu_result;
typedef uint64_t cu_pointer; /* device address */
typedef void    *cu_function, *cu_module, *cu_context, *cu_stream, *cu_event, *cu_graph, *cu_graph_run, *nvrtc_program,
    *cublas_handle;

#define CUDA_DRIVER_CALLS(X)                                                                                                   \
    X(cuInit, (unsigned flags))                                                                                                \
    X(cuDriverGetVersion, (int *version))                                                                                      \
    X(cuDeviceGetCount, (int *count))                                                                                          \
    X(cuDeviceGetAttribute, (int *value, int attribute, int device))                                                           \
    X(cuDeviceGetName, (char *name, int room, int device))                                                                     \
    X(cuDeviceTotalMem_v2, (size_t * bytes, int device))                                                                       \
    X(cuMemGetInfo_v2, (size_t * unused, size_t * total))                                                                      \
    X(cuDevicePrimaryCtxRetain, (cu_context * context, int device))                                                            \
    X(cuCtxSetCurrent, (cu_context context))                                                                                   \
    X(cuCtxSynchronize, (void))                                                                                                \
    X(cuMemAlloc_v2, (cu_pointer * p, size_t bytes))                                                                           \
    X(cuMemFree_v2, (cu_pointer p))                                                                                            \
    X(cuMemHostAlloc, (void **p, size_t bytes, unsigned flags))                                                                \
    X(cuMemFreeHost, (void *p))                                                                                                \
    X(cuMemHostRegister_v2, (void *p, size_t bytes, unsigned flags))                                                           \
    X(cuMemHostUnregister, (void *p))                                                                                          \
    X(cuMemHostGetDevicePointer_v2, (cu_pointer * at, void *p, unsigned flags))                                                \
    X(cuPointerGetAttribute, (void *value, int attribute, cu_pointer p))                                                       \
    X(cuMemcpyHtoDAsync_v2, (cu_pointer to, const void *from, size_t bytes, cu_stream stream))                                 \
    X(cuMemcpyDtoHAsync_v2, (void *to, cu_pointer from, size_t bytes, cu_stream stream))                                       \
    X(cuMemcpyDtoDAsync_v2, (cu_pointer to, cu_pointer from, size_t bytes, cu_stream stream))                                  \
    X(cuMemcpyPeerAsync, (cu_pointer to, cu_context in, cu_pointer from, cu_context of, size_t bytes, cu_stream stream))       \
    X(cuMemsetD8Async, (cu_pointer to, unsigned char value, size_t bytes, cu_stream stream))                                   \
    X(cuMemsetD32Async, (cu_pointer to, unsigned value, size_t n, cu_stream stream))                                           \
    X(cuDeviceCanAccessPeer, (int *can, int device, int other))                                                                \
    X(cuDeviceGetUuid_v2, (void *sixteen_bytes, int device))                                                                   \
    X(cuCtxGetStreamPriorityRange, (int *least, int *greatest))                                                                \
    X(cuStreamCreateWithPriority, (cu_stream * stream, unsigned flags, int priority))                                          \
    X(cuStreamQuery, (cu_stream stream))                                                                                       \
    X(cuStreamSynchronize, (cu_stream stream))                                                                                 \
    X(cuStreamWaitEvent, (cu_stream stream, cu_event event, unsigned flags))                                                   \
    X(cuEventCreate, (cu_event * event, unsigned flags))                                                                       \
    X(cuEventDestroy_v2, (cu_event event))                                                                                     \
    X(cuEventRecord, (cu_event event, cu_stream stream))                                                                       \
    X(cuEventQuery, (cu_event event))                                                                                          \
    X(cuEventSynchronize, (cu_event event))                                                                                    \
    X(cuEventElapsedTime, (float *milliseconds, cu_event start, cu_event end))                                                 \
    X(cuStreamBeginCapture_v2, (cu_stream stream, int mode))                                                                   \
    X(cuStreamEndCapture, (cu_stream stream, cu_graph * graph))                                                                \
    X(cuStreamIsCapturing, (cu_stream stream, int *status))                                                                    \
    X(cuThreadExchangeStreamCaptureMode, (int *mode))                                                                          \
    X(cuGraphInstantiateWithFlags, (cu_graph_run * run, cu_graph graph, unsigned long long flags))                             \
    X(cuGraphLaunch, (cu_graph_run run, cu_stream stream))                                                                     \
    X(cuGraphExecDestroy, (cu_graph_run run))                                                                                  \
    X(cuGraphDestroy, (cu_graph graph))                                                                                        \
    X(cuGraphGetNodes, (cu_graph graph, void **nodes, size_t *n))                                                              \
    X(cuGraphDebugDotPrint, (cu_graph graph, const char *path, unsigned flags))                                                \
    X(cuModuleLoadData, (cu_module * module, const void *image))                                                               \
    X(cuFuncSetAttribute, (cu_function f, int attribute, int value))                                                           \
    X(cuModuleGetFunction, (cu_function * f, cu_module module, const char *name))                                              \
    X(cuLaunchKernel, (cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,            \
                       unsigned shared, cu_stream stream, void **params, void **extra))                                        \
    X(cuGetErrorString, (cu_result error, const char **text))
#define CUDA_NVRTC_CALLS(X)                                                                                                    \
    X(nvrtcVersion, (int *major, int *minor))                                                                                  \
    X(nvrtcCreateProgram,                                                                                                      \
      (nvrtc_program * p, const char *source, const char *name, int n, const char *const *headers, const char *const *names))  \
    X(nvrtcCompileProgram, (nvrtc_program p, int n, const char *const *options))                                               \
    X(nvrtcDestroyProgram, (nvrtc_program * p))                                                                                \
    X(nvrtcGetCUBINSize, (nvrtc_program p, size_t * bytes))                                                                    \
    X(nvrtcGetCUBIN, (nvrtc_program p, char *image))                                                                           \
    X(nvrtcGetProgramLogSize, (nvrtc_program p, size_t * bytes))                                                               \
    X(nvrtcGetProgramLog, (nvrtc_program p, char *log))
#define CUDA_BLAS_CALLS(X)                                                                                                     \
    X(cublasCreate_v2, (cublas_handle * handle))                                                                               \
    X(cublasSetStream_v2, (cublas_handle handle, cu_stream stream))                                                            \
    X(cublasGetVersion_v2, (cublas_handle handle, int *version))                                                               \
    X(cublasSetWorkspace_v2, (cublas_handle handle, void *workspace, size_t bytes))                                            \
    X(cublasGemmStridedBatchedEx,                                                                                              \
      (cublas_handle handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int type_a, int lda,       \
       long long stride_a, const void *b, int type_b, int ldb, long long stride_b, const void *beta, void *c, int type_c,      \
       int ldc, long long stride_c, int batch, int compute, int algorithm))

typedef struct {
#define X(name, args) cu_result(*name) args;
    CUDA_DRIVER_CALLS(X) CUDA_NVRTC_CALLS(X) CUDA_BLAS_CALLS(X)
#undef X
} cuda_calls;
extern cuda_calls cuda;

enum { CUDA_DEVICES = 16 };
/* What kernels run on: the device that this thread last used (cuda_use) and its current stream there. */
typedef struct {
    int       device; /* -1: none */
    cu_stream stream; /* NULL: the default stream */
} cuda_place;
extern LC_HOT_TLS cuda_place cuda_here;
int                          cuda_make_current(int index);
static inline int            cuda_use(int index) /* makes the device current on this thread; 0, or -1 with the reason */
{
    return __builtin_expect(index == cuda_here.device, 1) ? 0 : cuda_make_current(index);
}
static inline int       cuda_current(void) { return cuda_here.device; } /* the device this thread last used; -1: none */
static inline cu_stream cuda_stream(void) { return cuda_here.stream; }  /* its current stream: kernels, copies, fills */
cu_stream               cuda_stream_of(int index);                      /* this thread's current stream on a device */
cu_context              cuda_context(int index);                        /* NULL: not used yet */
bool                    cuda_usable(void);       /* the driver is there and belongs to this process: false in a forked one */
int                     cuda_device_count(void); /* 0 if there is no driver */
int                     cuda_check(cu_result result, const char *what); /* 0, or -1 with the driver's text */
int                     cuda_attribute(int index, int attribute);
int                     cuda_need_nvrtc(void);
cublas_handle           cuda_blas(int index); /* NULL: there is none; no error is set */
/* Takes a lock that may be held while a library is loaded, which may take the host language's lock: never waits with that. */
void cuda_lock(pthread_mutex_t *lock);

/* Handles of libraries: one per thread and device, on the thread's current stream when cuda_handle returns it. */
typedef struct {
    int (*create)(void **handle);                      /* 0, or the library's status */
    int (*set_stream)(void *handle, cu_stream stream); /* 0, or the library's status */
} cuda_handle_kind;
enum { CUDA_HANDLE_BLAS, CUDA_HANDLE_DNN, CUDA_HANDLE_SOLVER, CUDA_HANDLE_SPARSE, CUDA_HANDLE_LT, CUDA_HANDLE_KINDS };
/* of: CUDA_HANDLE_*. The device must be current (cuda_use). NULL: the library refused; no error is set. */
void *cuda_handle(int of, const cuda_handle_kind *kind);
/* Workspace for library calls on the current stream: one per thread and stream, and one of its own for a captured graph. Work of
 * a stream is in order, so calls share it. NULL after lc_fail. */
void *cuda_workspace(size_t bytes);

/* Fills and copies on the current stream. */
int  cuda_set_bytes(void *to, unsigned char value, size_t bytes);
int  cuda_move_bytes(void *to, const void *from, size_t bytes); /* both on the device */
int  cuda_upload(void *to, const void *from, size_t bytes);     /* from: host memory of the caller, free when it returns */
int  cuda_read(void *to, const void *from, size_t bytes);       /* waits; to: host memory */
int  cuda_wait(void);                                           /* for the current stream */
bool cuda_capturing(void); /* this thread's work goes into a graph: nothing runs yet, and nothing can be read */
/* In between, calls that a capture forbids are allowed to this thread: to take memory, to load code. */
int  cuda_relax_capture(void);
void cuda_restore_capture(int before);
/* A library of CUDA by its soname: in LUCID_CUDA_PATH, where the system looks, in nvidia-* wheels, in /usr/local/cuda. */
void *cuda_library(const char *const *sonames, const char *what, const char *wheel);
/* The same with n of its symbols in slots: 0, or -1 with the reason. */
int cuda_load(const char *const *names, const char *what, const char *wheel, const char *const *symbols, void **slots, int n);

/* What a kernel reports about values that only it sees: the first one, in page-locked memory. Calls that wait for the device
 * raise it (cuda_raise_trouble). LUCID_SYNC=1: every launch waits. */
enum { CUDA_BAD_INDEX = 1, CUDA_BAD_TARGET, CUDA_BAD_PROBABILITY, CUDA_BAD_EMBEDDING, CUDA_BAD_RATE };
typedef struct {
    int64_t kind, value, low, high;
} cuda_trouble;
cuda_trouble *cuda_trouble_word(int index);
int           cuda_raise_trouble(int index); /* 0, or -1 after lc_fail */

/* Programs (program.c). A program is a start (types.cuh, or math.cuh, which includes it), lines that define its types, and a
 * body. It is compiled for the types of a call at first use. */
typedef struct cuda_program cuda_program;
typedef struct {
    const char *text;
    bool        math; /* starts with math.cuh; products and sums are rounded one by one, as on the CPU */
    int (*lines)(const cuda_program *p, char *to, size_t room); /* lines of its own after the types; NULL: none */
} cuda_body;
#define CUDA_BODY(name)                                                                                                        \
    extern const char      lc_cuda_text_##name[]; /* kernels/name.cuh, by tools/embed.py */                                    \
    static const cuda_body name##_body = { .text = lc_cuda_text_##name }
#define CUDA_MATH_BODY(name)                                                                                                   \
    extern const char      lc_cuda_text_##name[];                                                                              \
    static const cuda_body name##_body = { .text = lc_cuda_text_##name, .math = true }
enum { CUDA_TYPES = 6 };
struct cuda_program {
    const cuda_body *body;
    const char      *kernel;           /* its name: a literal */
    int8_t           type[CUDA_TYPES]; /* typedefs T, U, V, W, X, Y: dtype + 1; 0: none */
    int16_t          variant;          /* #define VARIANT, for choices in the text */
};
#define CUDA_TYPE(dtype)  (int8_t)((dtype) + 1)
#define CUDA_WIDTH(dtype) cuda_width_code((int)lc_size_of(dtype)) /* a type of the same size, for moves */
int8_t cuda_width_code(int bytes);
/* Enqueue: as many threads as there are elements, up to a limit; or exactly so many blocks. */
int   cuda_map(const cuda_program *p, int64_t elements, const void *args);
int   cuda_blocks(const cuda_program *p, int64_t blocks, int threads, const void *args);
char *cuda_program_text(const cuda_program *p); /* malloc'd */
/* With so many bytes of shared memory that the kernel declares without a size. */
int cuda_blocks_sharing(const cuda_program *p, int64_t blocks, int threads, int shared, const void *args);
int cuda_launch(cu_function f, int64_t blocks, int threads, int shared, const void *args);
int cuda_launched(void); /* LUCID_SYNC=1: waits and raises what the kernel reported */

int cuda_architecture(void); /* of the current device: 90 for sm_90 */

/* Files in the cache folder (cache.c): what was compiled or chosen for this machine. */
char *cuda_cache_read(const char *name, size_t *n); /* malloc'd; NULL: there is none */
void  cuda_cache_write(const char *name, const char *image, size_t n);
#define CUDA_HASH_START 1469598103934665603u
uint64_t cuda_hash(uint64_t h, const void *data, size_t n);

/* Device memory for the duration of a call: the work of a stream is in order, so it may be given back once all is enqueued. */
typedef struct {
    lc_storage s;
} cuda_scratch;
void *cuda_scratch_new(cuda_scratch *s, int device, size_t bytes); /* NULL after lc_fail */
void  cuda_scratch_free(cuda_scratch *s);

/* Whole-call kernels register themselves at load, as the CPU's do: bit d of dtypes: dtype d is supported. */
typedef int (*cuda_run)(lc_op_id op, lc_dtype compute, const void *args);
extern cuda_run lc_cuda_runs[LC_OP_COUNT];
extern uint32_t lc_cuda_run_dtypes[LC_OP_COUNT];
#define CUDA_RUN(op, function, dtypes)                                                                                         \
    static __attribute__((constructor)) void enter_##op(void)                                                                  \
    {                                                                                                                          \
        lc_cuda_runs[LC_OP_##op] = function;                                                                                   \
        lc_cuda_run_dtypes[LC_OP_##op] = (dtypes) & ~(uint32_t)LC_FLOAT8_BITS; /* stored only */                               \
    }
enum {
    CUDA_HALVES = 1u << LC_f16 | 1u << LC_bf16,
    CUDA_F32_F64 = 1u << LC_f32 | 1u << LC_f64,
    CUDA_FLOATS = CUDA_HALVES | CUDA_F32_F64,
    CUDA_COMPLEX = 1u << LC_c32 | 1u << LC_c64 | 1u << LC_c128,
    CUDA_INTS = 1u << LC_u8 | 1u << LC_i8 | 1u << LC_i16 | 1u << LC_i32 | 1u << LC_i64,
    CUDA_REAL = CUDA_INTS | CUDA_F32_F64,
};

/* What the families share. */
int  cuda_elementwise(lc_op_id op, lc_dtype compute, lc_tensor *out, lc_tensor *const *in, int n_in);
int  cuda_reduce(lc_op_id op, lc_dtype compute, const lc_reduce_args *args);
int  cuda_copy(lc_tensor *to, const lc_tensor *from);
int  cuda_strided_copy(lc_tensor *to, const lc_tensor *from); /* of one dtype; LC_NO_KERNEL: layouts that need wider indices */
bool cuda_has_row(lc_op_id op, lc_dtype compute);
bool cuda_has_fold(lc_op_id op, lc_dtype compute);
/* out (batch, m, n) = scale a b (+ out if accumulate); strides in elements: batch, row, column. */
typedef struct {
    void    *data;
    int64_t  batch, row, col;
    lc_dtype dtype;
} cuda_matrix;
int cuda_product(int device, lc_dtype acc, cuda_matrix out, cuda_matrix a, cuda_matrix b, int64_t batch, int64_t m, int64_t n,
                 int64_t k, double scale, bool accumulate);

void *cuda_dnn_handle(int device, void **library);                          /* NULL: cuDNN is not there; no error is set */
int   cuda_dnn_attention(const lc_attention_args *a, bool backward);        /* fused_attention.c. 0; 1: not by cuDNN; -1 */
int   cuda_flash_attention(const lc_attention_args *a);                     /* flash.c. 0; 1: it does not suit; -1 */
int   cuda_dnn_convolve(int kind, const lc_conv_args *a);                   /* cudnn.c */
int   cuda_small_convolve(int kind, const lc_conv_args *a, lc_dtype dtype); /* small_conv.c */
void  cuda_dnn_load(int device);

/* Texts for tools/check_cuda_text.py: malloc'd, NULL past the last. */
char *lc_cuda_kernel_text(int i);
char *cuda_elementwise_text(int *i);

/* The numbers that a kernel draws: those of the generator that `advance` steps over. While a graph is captured, the kernel reads
 * seed and offset from the device, and counts from them: replayed[0], replayed[1] + offset. */
typedef struct {
    uint64_t  seed, offset;
    uint64_t *replayed; /* NULL: as above */
} cuda_drawn;
int cuda_draw(lc_generator *g, int device, uint64_t advance, cuda_drawn *drawn);

int                               cuda_transfer(lc_tensor *to, const lc_tensor *from);
extern const lc_device_allocator  cuda_memory;
extern const lc_activity_recorder cuda_activity;         /* runtime/activity.c */
int                               cuda_load_cupti(void); /* 0, or -1 with the reason */
