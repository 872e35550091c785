#include "backend.h"

extern const lc_backend lc_cpu_backend, lc_meta_backend;
const lc_backend       *lc_backends[LC_DEVICE_KINDS] = { [LC_CPU] = &lc_cpu_backend, [LC_META] = &lc_meta_backend };

const lc_backend *(*lc_backend_openers[LC_DEVICE_KINDS])(void);

const lc_backend *lc_backend_of(lc_device device)
{
    const lc_backend *b = lc_backends[device.kind];
    if (b) return b;
    if (!lc_backend_openers[device.kind])
        return lc_fail(LC_GpuNotAvailable, "no %s device is available here", lc_device_names[device.kind]);
    if ((b = lc_backend_openers[device.kind]())) lc_backends[device.kind] = b;
    return b;
}

int lc_device_count(lc_device_kind kind)
{
    const lc_backend *b = lc_backend_of((lc_device){ .kind = (uint8_t)kind });
    return !b ? 0 : b->device_count ? b->device_count() : 1;
}

static uint8_t result_kinds[LC_OP_COUNT]; /* LC_RESULT_SAME unless a row says otherwise for every dtype it has */
static __attribute__((constructor)) void read_result_kinds(void)
{
#define UNARY_REAL(op, ...) result_kinds[LC_OP_##op] = LC_RESULT_REAL;
#define PREDICATE(op, ...)  result_kinds[LC_OP_##op] = LC_RESULT_BOOL;
#define COMPARE(op, ...)    result_kinds[LC_OP_##op] = LC_RESULT_BOOL;
#include "scalar.def"
}

lc_result_kind lc_result_kind_of(lc_op_id op) { return (lc_result_kind)result_kinds[op]; }
