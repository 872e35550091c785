#include "accelerator.h"
#include "../backend/backend.h"

_Atomic uint8_t lc_runtime_by_cuda[] = { [LC_DEVICE_CUDA] = LC_RUNTIME_UNKNOWN, [LC_DEVICE_METAL] = LC_RUNTIME_UNKNOWN };

static void answer(uint8_t state)
{
    atomic_store(&lc_runtime_by_cuda[LC_DEVICE_CUDA], state);
    atomic_store(&lc_runtime_by_cuda[LC_DEVICE_METAL], state);
}
static void forget_after_fork(void)
{
    if (atomic_load(&lc_runtime_by_cuda[LC_DEVICE_CUDA]) == LC_RUNTIME_YES) answer(LC_RUNTIME_NO);
}
static void watch_forks(void) { pthread_atfork(NULL, NULL, forget_after_fork); }

void lc_runtime_hide_cuda(bool hidden) { answer(hidden ? LC_RUNTIME_NO : LC_RUNTIME_UNKNOWN); }

static bool computes(void)
{
    if (lc_device_count(LC_CUDA) < 1) return false;
    lc_device  there = lc_current_device(LC_CUDA);
    lc_tensor *x = lc_tensor_new(LC_f32, there, 1, (const int64_t[]){ 1 });
    bool       well = x && lc_backends[LC_CUDA]->fill(x, LC_NUMBER(1)) == 0 &&
                lc_backends[LC_CUDA]->elementwise(LC_OP_add, LC_f32, x, (lc_tensor *[]){ x, x }, 2) == 0 &&
                lc_device_synchronize(there) == 0;
    lc_release(x);
    if (!well) lc_verbose_log("lightning_core on the CPU: %s", lc_error());
    return well;
}
bool lc_runtime_find_cuda(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint8_t               now = atomic_load(&lc_runtime_by_cuda[LC_DEVICE_CUDA]);
    if (now != LC_RUNTIME_UNKNOWN) return now == LC_RUNTIME_YES;
    pthread_once(&once, watch_forks);
    bool found = computes();
    return answer(found ? LC_RUNTIME_YES : LC_RUNTIME_NO), found;
}
