/* What the host language asks of the CUDA backend beyond tensors: devices, streams, graphs, memory, libraries, settings. Streams
 * and events are the driver's handles; NULL is the default stream. Functions return 0, or -1 after lc_fail. */
#pragma once
#include "../../tensor/tensor.h"

/* ---- devices ---- */
typedef struct {
    char    name[256];
    int64_t total_memory;
    int     major, minor, processors, threads_per_processor, l2_bytes, driver, warp, threads_per_block, shared_per_block,
        shared_per_processor, registers_per_processor, clock_khz, memory_clock_khz, memory_bus_bits, integrated, multi_gpu,
        pci_bus, pci_device, pci_domain;
    uint8_t uuid[16];
} lc_cuda_info;
int         lc_cuda_device_info(int index, lc_cuda_info *info);
int         lc_cuda_current_device(void); /* what "cuda" means to this thread */
int         lc_cuda_set_device(int index);
int         lc_cuda_can_access(int device, int other, int *can);
const char *lc_cuda_library(int i, char text[512]); /* "name: path" of a library that is loaded; NULL past the last */
void        lc_cuda_load_libraries(void);           /* those that are there */
bool        lc_cuda_initialized(void);              /* the driver was asked for and is there */
extern bool lc_cuda_tf32;                           /* float32 products may round their factors to TF32 */
extern struct lc_cuda_conv {
    bool off, ordered, exact; /* convolutions do not use cuDNN; only its deterministic algorithms; never TF32 */
} lc_cuda_conv;

/* ---- streams and events; query: 1 done, 0 not yet ---- */
int   lc_cuda_stream_new(int device, int priority, void **stream); /* from the pool; never destroyed */
int   lc_cuda_stream_priority(int device, void *stream);
void *lc_cuda_stream_get(int device); /* this thread's current one */
int   lc_cuda_stream_set(int device, void *stream);
int   lc_cuda_stream_query(int device, void *stream);
int   lc_cuda_stream_wait(int device, void *stream); /* the host waits */
int   lc_cuda_stream_wait_event(int device, void *stream, void *event);
int   lc_cuda_stream_wait_stream(int device, void *stream, int other_device, void *other);
int   lc_cuda_stream_captures(int device, void *stream); /* 1, 0 */
int   lc_cuda_event_new(int device, bool times, bool blocking, void **event);
void  lc_cuda_event_free(int device, void *event);
int   lc_cuda_event_record(int device, void *event, void *stream);
int   lc_cuda_event_query(int device, void *event);
int   lc_cuda_event_wait(int device, void *event);
int   lc_cuda_event_time(int device, void *start, void *end, float *milliseconds);

/* ---- graphs ---- */
uint64_t lc_cuda_pool_new(void);
bool     lc_cuda_capturing(void);                        /* this thread */
void    *lc_cuda_capture_begin(uint64_t pool, int mode); /* pool 0: one of its own; mode: the driver's. NULL after lc_fail */
int      lc_cuda_capture_end(void *graph);               /* 1: nothing was captured */
int      lc_cuda_graph_replay(void *graph);
void     lc_cuda_graph_free(void *graph); /* ends its capture if need be */
uint64_t lc_cuda_graph_pool(void *graph);
int      lc_cuda_graph_print(void *graph, const char *path);

/* ---- memory ---- */
enum { LC_CUDA_ALL_POOLS, LC_CUDA_LARGE_POOL, LC_CUDA_SMALL_POOL, LC_CUDA_POOLS };
enum {
    LC_CUDA_ALLOCATION,
    LC_CUDA_SEGMENT,
    LC_CUDA_ACTIVE,
    LC_CUDA_INACTIVE_SPLIT,
    LC_CUDA_ALLOCATED_BYTES,
    LC_CUDA_RESERVED_BYTES,
    LC_CUDA_ACTIVE_BYTES,
    LC_CUDA_INACTIVE_SPLIT_BYTES,
    LC_CUDA_REQUESTED_BYTES,
    LC_CUDA_COUNTS
};
typedef struct {
    int64_t current, peak, allocated, freed;
} lc_cuda_count;
typedef struct {
    lc_cuda_count count[LC_CUDA_COUNTS][LC_CUDA_POOLS];
    int64_t       retries, ooms, device_allocations, device_frees;
} lc_cuda_memory_stats;
enum { LC_CUDA_BLOCK_FREE, LC_CUDA_BLOCK_USED, LC_CUDA_BLOCK_WAITS };
typedef struct {
    int      device, small, state;
    uint64_t segment, address, stream, private_pool;
    int64_t  segment_bytes, bytes, asked;
} lc_cuda_block;
int lc_cuda_memory_info(int index, int64_t *unused, int64_t *total); /* of the device, by its driver */
/* Called after every allocation of device memory (1: address), free (0) and refusal (-1), if it is set. */
extern void (*lc_cuda_memory_watcher)(int what, int device, uint64_t address, size_t bytes, void *stream);
void        lc_cuda_empty_cache(void);
void        lc_cuda_host_empty_cache(void); /* page-locked memory */
void        lc_cuda_memory_read(int device, lc_cuda_memory_stats *stats);
void        lc_cuda_memory_reset(int device, bool peaks); /* peaks; else the sums */
int         lc_cuda_memory_limit(int device, double fraction);
double      lc_cuda_memory_limit_of(int device);
int         lc_cuda_memory_blocks(lc_cuda_block *to, int room); /* how many there are; fills at most room */
int         lc_cuda_record_stream(lc_storage *s, void *stream); /* its memory is not reused before the stream's work is done */
int         lc_cuda_register_host(lc_storage *s);               /* page-locks host memory that exists */
lc_storage *lc_cuda_map_host(lc_storage *s, int device);   /* page-locked memory as the device sees it; NULL after lc_fail */
int         lc_cuda_device_of(const void *p, int *device); /* whose memory it is; -1 after lc_fail: no device's */
bool        lc_cuda_has_kernel(int op, int dtype);         /* whether a device is there or not */

/* ---- the user's own kernels ---- */
typedef struct {
    _Alignas(16) char value[16]; /* an address, or a number of the kernel's type */
} lc_cuda_argument;
int         lc_cuda_run_kernel(int device, const char *source, const char *name, const char *const *options, int n_options,
                               const unsigned grid[3], const unsigned block[3], unsigned shared, const lc_cuda_argument *args, int n);
const char *lc_cuda_compile_log(void); /* of the compilation that failed last on this thread; NULL: none */
