/* Whether a call for a device is computed by CUDA. The answer is found at the first call that asks, by computing something: a driver
 * without a device, or without what compiles kernels, does not count. Calls for the CPU never ask. A forked child of a process that
 * found CUDA has none: it does not survive a fork. */
#pragma once
#include "../core/core.h"
#include "../include/lightning_core/lightning_core.h"

/* By lcDeviceKind. Of "metal", the machine's accelerator, it is an offer: what is faster on the CPU stays there. */
enum { LC_RUNTIME_NO, LC_RUNTIME_YES, LC_RUNTIME_UNKNOWN };
extern _Atomic uint8_t lc_runtime_by_cuda[LC_DEVICE_METAL + 1];
bool                   lc_runtime_find_cuda(void);
void                   lc_runtime_hide_cuda(bool hidden); /* tests: as if there were none; false: look again */

/* Whether a call has to ask: no is the answer of every call on a machine without CUDA but the first. */
static inline bool lc_runtime_may_use_cuda(lcDeviceKind device)
{
    return __builtin_expect(atomic_load_explicit(&lc_runtime_by_cuda[device], memory_order_relaxed) != LC_RUNTIME_NO, 0);
}
static inline bool lc_runtime_found_cuda(void) /* without looking for it: nothing was launched before */
{
    return atomic_load_explicit(&lc_runtime_by_cuda[LC_DEVICE_CUDA], memory_order_relaxed) == LC_RUNTIME_YES;
}
static inline bool lc_runtime_uses_cuda(lcDeviceKind device)
{
    return lc_runtime_may_use_cuda(device) && lc_runtime_find_cuda();
}
