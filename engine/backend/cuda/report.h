/* What the host language asks of the CUDA backend beyond tensors: devices, memory, libraries, settings. */
#pragma once
#include "../../core/core.h"

typedef struct {
    char    name[256];
    int64_t total_memory;
    int     major, minor, processors, threads_per_processor, l2_bytes, driver;
} lc_cuda_info;
int         lc_cuda_device_info(int index, lc_cuda_info *info);              /* 0, or -1 after lc_fail */
int         lc_cuda_memory_info(int index, int64_t *unused, int64_t *total); /* of the device, by its driver */
const char *lc_cuda_library(int i, char text[512]); /* "name: path" of a library that is loaded; NULL past the last */
void        lc_cuda_load_libraries(void);           /* those that are there */
void        lc_cuda_empty_cache(void);
/* cached bytes and blocks, allocations from and frees to the driver, retries, reserved bytes and their peak */
void        lc_cuda_memory_numbers(int64_t out[8]);
extern bool lc_cuda_tf32;                          /* float32 products may round their factors to TF32 */
bool        lc_cuda_has_kernel(int op, int dtype); /* whether a device is there or not */
