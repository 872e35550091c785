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
    if (!(b = lc_backend_openers[device.kind]())) return NULL;
    lc_device_memory[device.kind] = b->memory;
    return lc_backends[device.kind] = b;
}

/* Storages lie below backends and use the memory of open backends: the first storage on a device opens its backend. */
static int                               open_device(lc_device device) { return lc_backend_of(device) ? 0 : -1; }
static __attribute__((constructor)) void connect_memory(void)
{
    lc_device_open = open_device;
    for (int kind = 0; kind < LC_DEVICE_KINDS; kind++)
        if (lc_backends[kind]) lc_device_memory[kind] = lc_backends[kind]->memory;
}

lc_device lc_current_device(lc_device_kind kind)
{
    const lc_backend *b = lc_backends[kind];
    return (lc_device){ (uint8_t)kind, b && b->current_device ? (int8_t)b->current_device() : 0 };
}

int lc_device_count(lc_device_kind kind)
{
    const lc_backend *b = lc_backend_of((lc_device){ .kind = (uint8_t)kind });
    return !b ? 0 : b->device_count ? b->device_count() : 1;
}

int lc_device_synchronize(lc_device device)
{
    const lc_backend *b = lc_backend_of(device);
    return !b ? -1 : b->synchronize ? b->synchronize(device.index) : 0;
}

_Thread_local bool lc_non_blocking;
bool               lc_queues_used;
int                lc_transfer(lc_tensor *to, const lc_tensor *from)
{
    const lc_backend *b = lc_backend_of(to->device), *other = lc_backend_of(from->device);
    if (!b || !other) return -1;
    if (b->can.host_memory) b = other; /* the non-host backend does the transfer */
    return b->transfer ? b->transfer(to, from) : b->copy(to, from);
}

static uint8_t result_kinds[LC_OP_COUNT]; /* LC_RESULT_SAME unless a row says otherwise for all its dtypes */
static __attribute__((constructor)) void read_result_kinds(void)
{
#define UNARY_REAL(op, ...) result_kinds[LC_OP_##op] = LC_RESULT_REAL;
#define PREDICATE(op, ...)  result_kinds[LC_OP_##op] = LC_RESULT_BOOL;
#define COMPARE(op, ...)    result_kinds[LC_OP_##op] = LC_RESULT_BOOL;
#include "scalar.def"
}

lc_result_kind lc_result_kind_of(lc_op_id op) { return (lc_result_kind)result_kinds[op]; }
