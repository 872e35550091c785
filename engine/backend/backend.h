/* backend: what a device provides. Depends on tensor and on op ids, never on op definitions.
 *
 * A backend runs kernels by op id and computing dtype. How a kernel is walked over strided, broadcast or mixed-dtype tensors is its
 * own business: the CPU uses L1 tiles and threads, a GPU index arithmetic, meta does nothing. Everything arrives checked: shapes fit,
 * outputs are allocated, indices of the wrong dtype are refused above. What only the kernel can see (an index out of range) it reports.
 *
 * Three families have drivers of their own, because their kernels are inner loops: elementwise rows of scalar.def, reductions, and
 * copies. Every other kernel is a whole call with an argument struct (backend/args.h), found in the same table. */
#pragma once
#include "../tensor/tensor.h"
#include "op_ids.gen.h"

/* One reduction: `in` over the dimensions in `mask`. value and index have strides per dimension of in, zero where reduced, so the
 * backend never needs to know about keepdim. */
typedef struct {
    lc_tensor *in, *value, *index; /* index: NULL if the op has none; int64, or the largest in aminmax */
    uint64_t   mask;               /* bit d: dimension d of in is reduced */
    int64_t    value_stride[LC_MAX_DIMS], index_stride[LC_MAX_DIMS]; /* in elements */
    double     parameter;                                            /* var, std: the correction */
} lc_reduce_args;

/* What elementwise, reduce and run return, without a message, when the slot is empty: the op layer names the op (ops/rules.c). */
enum { LC_NO_KERNEL = -2 };

typedef struct lc_backend {
    const char *name;
    /* Is there a kernel? Halves count as there if float32 is: they compute in it. */
    bool (*has)(lc_op_id op, lc_dtype compute);
    /* out[i] = f(in[0][i], ...): inputs broadcast to out's shape, and are converted to `compute`; the kernel's result (compute, bool
     * or the real type, as scalar.def says) is converted to out's dtype. out may be one of the inputs. is_number inputs live on the host. */
    int (*elementwise)(lc_op_id op, lc_dtype compute, lc_tensor *out, lc_tensor *const *in, int n_in);
    int (*reduce)(lc_op_id op, lc_dtype compute, const lc_reduce_args *args);
    int (*copy)(lc_tensor *to, const lc_tensor *from);           /* both here; any strides and dtypes; from broadcasts */
    int (*transfer)(lc_tensor *to, const lc_tensor *from);       /* one of them on the CPU; contiguous, same dtype and shape */
    int (*fill)(lc_tensor *to, const lc_tensor *number);         /* number: is_number */
    int (*run)(lc_op_id op, lc_dtype compute, const void *args); /* the other kernels; args as backend/args.h says */
    int (*synchronize)(int index);
    int (*device_count)(void);
} lc_backend;

/* By lc_device_kind. NULL: not there; use lc_backend_of, which explains itself. */
extern const lc_backend *lc_backends[LC_DEVICE_KINDS];
const lc_backend        *lc_backend_of(lc_device device); /* NULL after lc_fail(GpuNotAvailable, ...) */
/* A backend whose libraries are loaded at first use registers at load how to open it: it also fills lc_device_memory, or fails with the
 * reason. */
extern const lc_backend *(*lc_backend_openers[LC_DEVICE_KINDS])(void);
int lc_device_count(lc_device_kind kind); /* 0: there is none */

/* What a kernel makes of its computing dtype, per elementwise op (scalar.def). */
typedef enum { LC_RESULT_SAME, LC_RESULT_BOOL, LC_RESULT_REAL } lc_result_kind;
lc_result_kind         lc_result_kind_of(lc_op_id op);
static inline lc_dtype lc_result_dtype(lc_op_id op, lc_dtype compute)
{
    lc_result_kind kind = lc_result_kind_of(op);
    return kind == LC_RESULT_BOOL ? LC_b8 : kind == LC_RESULT_REAL ? lc_real_of(compute) : compute;
}
