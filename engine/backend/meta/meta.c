/* The meta device: shapes, dtypes and strides only. Every kernel exists and does nothing. */
#include "../backend.h"

static bool meta_has(UNUSED lc_op_id op, UNUSED lc_dtype compute) { return true; }
static int  meta_elementwise(UNUSED lc_op_id op, UNUSED lc_dtype compute, UNUSED lc_tensor *out, UNUSED lc_tensor *const *in,
                             UNUSED int n_in)
{
    return 0;
}
static int meta_reduce(UNUSED lc_op_id op, UNUSED lc_dtype compute, UNUSED const lc_reduce_args *args) { return 0; }
static int meta_copy(UNUSED lc_tensor *to, UNUSED const lc_tensor *from) { return 0; }
static int meta_transfer(lc_tensor *to, UNUSED const lc_tensor *from)
{
    if (to->device.kind == LC_META) return 0;
    return lc_fail_int(LC_NotImplementedError, "Cannot copy out of meta tensor; no data!");
}
static int meta_fill(UNUSED lc_tensor *to, UNUSED const lc_tensor *number) { return 0; }
static int meta_run(UNUSED lc_op_id op, UNUSED lc_dtype compute, UNUSED const void *args) { return 0; }
/* A storage with a size but no bytes. */
static int                       no_bytes(UNUSED lc_storage *s) { return 0; }
static const lc_device_allocator no_memory = { .alloc = no_bytes };

const lc_backend lc_meta_backend = {
    .name = "meta",
    .can = { .values = false },
    .has = meta_has,
    .elementwise = meta_elementwise,
    .reduce = meta_reduce,
    .copy = meta_copy,
    .fill = meta_fill,
    .run = meta_run,
    .memory = &no_memory,
    .transfer = meta_transfer,
};
