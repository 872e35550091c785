/* What the files of the emulated driver share. */
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

struct dim3 {
    unsigned x, y, z;
};
struct thread_state {
    dim3 threadIdx, blockIdx, blockDim, gridDim;
};
struct kernel {
    int  bytes, threads;
    bool waits;
    void (*body)(const void *args);
    int        n; /* of a __global__ function: its parameters, each in slots of 16 bytes; 0: one struct */
    const int *sizes;
};
struct launch {
    const kernel     *k;
    dim3              grid, block;
    unsigned          shared;
    std::vector<char> args;
};

enum { GARBAGE = 0xff, MOST = 1024 };           /* what memory starts with; threads of a block */
unsigned thrown(unsigned n);                    /* one of n */
bool     omitted(const char *what);             /* planted: the driver does not do it */
size_t   static_shared_memory(const kernel *k); /* bytes: of all kernels of its text */
void     run_kernel(const launch &l, const char *name);
