#include "backend.h"

extern const lc_backend lc_cpu_backend, lc_meta_backend;
const lc_backend       *lc_backends[LC_DEVICE_KINDS] = { [LC_CPU] = &lc_cpu_backend, [LC_META] = &lc_meta_backend };

const lc_backend *lc_backend_of(lc_device device)
{
    if (device.kind < LC_DEVICE_KINDS && lc_backends[device.kind]) return lc_backends[device.kind];
    return lc_fail(LC_GpuNotAvailable, "no %s device is available here",
                   device.kind < LC_DEVICE_KINDS ? lc_device_names[device.kind] : "such");
}

static uint8_t result_kinds[LC_OP_COUNT]; /* LC_RESULT_SAME unless a row says otherwise for every dtype it has */
static __attribute__((constructor)) void read_result_kinds(void)
{
#define UNARY(...)
#define UNARY_FAR(...)
#define BINARY(...)
#define TERNARY(...)
#define SELECT(...)
#define NONZERO(...)
#define UNARY_REAL(op, ...) result_kinds[LC_OP_##op] = LC_RESULT_REAL;
#define PREDICATE(op, ...)  result_kinds[LC_OP_##op] = LC_RESULT_BOOL;
#define COMPARE(op, ...)    result_kinds[LC_OP_##op] = LC_RESULT_BOOL;
#include "scalar.def"
}

lc_result_kind lc_result_kind_of(lc_op_id op) { return (lc_result_kind)result_kinds[op]; }
