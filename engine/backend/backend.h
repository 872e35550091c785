/* backend: what a device provides. Depends on tensor and on op ids, never on op definitions.
 *
 * A backend runs kernels by op id and computing dtype. It decides how a kernel walks over strided, broadcast or mixed-dtype
 * tensors: the CPU uses L1 tiles and threads, a GPU index arithmetic, meta does nothing. All arguments arrive checked:
 * shapes fit, outputs are allocated, index tensors have the right dtype. The kernel reports what only it can see (an index
 * out of range).
 *
 * lc_backend is one struct of groups. Kernels are required; a backend leaves a group it does not need empty, and the comment
 * of the group says what that means. Differences between devices that matter above the kernels are declared in `can`: no op
 * asks which device it runs on (tools/check_rooms.py), it asks what the device can do.
 *
 * Kernels return results in tensors, never through host pointers: a GPU's result is not ready when the call returns. An op
 * that needs a value on the host reads the tensor and is declared .reads_values. */
#pragma once
#include "../tensor/tensor.h"
#include "op_ids.gen.h"

/* One reduction: `in` over the dimensions in `mask`. value and index have strides per dimension of in, zero where reduced,
 * so the backend never needs to know about keepdim. */
typedef struct {
    lc_tensor *in, *value, *index; /* index: NULL if the op has none; int64, or the maximum in aminmax */
    uint64_t   mask;               /* bit d: dimension d of in is reduced */
    int64_t    value_stride[LC_MAX_DIMS], index_stride[LC_MAX_DIMS]; /* in elements */
    double     parameter;                                            /* var, std: the correction */
} lc_reduce_args;

/* Returned by elementwise, reduce and run, without a message, if there is no such kernel: the op layer names the op
 * (ops/rules.c). */
enum { LC_NO_KERNEL = -2 };

/* Epilogues that a float matrix product can fuse (lc_matmul_epilogue); otherwise ops run one after the other. */
enum {
    LC_FUSES_SCALE_AND_ADD = 1, /* scale * product + addend_scale * addend */
    LC_FUSES_ACTIVATION = 2,    /* an elementwise op */
    LC_FUSES_RESIDUAL = 4,      /* a second addend, after the activation */
    LC_FUSES_ACCUMULATION = 8,  /* the product is added to the old values of the output */
    LC_FUSES_LOW_RANK = 16,     /* a second product of low rank is added (lc_low_rank) */
    LC_FUSES_EPILOGUE = LC_FUSES_SCALE_AND_ADD | LC_FUSES_ACTIVATION | LC_FUSES_RESIDUAL
};
/* Kernels that compute in float32 and accept float16 and bfloat16 operands: they convert while they read and write. For
 * every other kernel the op converts them to lc_working_dtype, in which all backends compute half precision. */
enum {
    LC_HALF_MATMUL = 1,    /* any of the operands, the result and those of the epilogue */
    LC_HALF_SELECT = 2,    /* order statistics: the input */
    LC_HALF_ATTENTION = 4, /* attention: out, and the gradients if keys are not shared, are of the dtype of the query */
    LC_HALF_QUANTIZED = 8, /* linear layers in codes: the input and the result */
    LC_HALF_CONV = 16,     /* convolutions: the weight too (images always) */
    LC_HALF_POOLS = 32,    /* pooling, and the gradient of averages */
    LC_HALF_NORM = 64,     /* normalisations: parameters and their gradients, which share a dtype (images and rows always) */
    LC_HALF_FACTORS = 128  /* fast products have factors of one dtype: what one makes for the next is of that dtype */
};
/* Kernels that take images with the channels last; for every other kernel the op makes planes of them. CONV: the gradient of a
 * weight is written so too. */
enum { LC_LAST_POOLS = 1, LC_LAST_GROUPS = 2, LC_LAST_CONV = 4 };

typedef struct {
    bool             values;       /* tensors hold values; false: only shapes, dtypes and strides */
    bool             host_memory;  /* the host reads and writes tensors through their data pointer */
    uint32_t         fuses;        /* LC_FUSES_* */
    uint32_t         half;         /* LC_HALF_* */
    uint32_t         last;         /* LC_LAST_* */
    lc_memory_format image_format; /* preferred format of an image that is written as input of a convolution */
} lc_capabilities;

typedef struct lc_backend {
    const char     *name;
    lc_capabilities can;

    /* ---- kernels: required ---- */
    /* Is there a kernel? float16 and bfloat16 are supported if float32 is: they compute in it. */
    bool (*has)(lc_op_id op, lc_dtype compute);
    /* out[i] = f(in[0][i], ...): inputs broadcast to out's shape and are converted to `compute`; the kernel's result
     * (compute, bool or the real type, as scalar.def says) is converted to out's dtype. out may be one of the inputs.
     * is_number inputs live on the host. */
    int (*elementwise)(lc_op_id op, lc_dtype compute, lc_tensor *out, lc_tensor *const *in, int n_in);
    int (*reduce)(lc_op_id op, lc_dtype compute, const lc_reduce_args *args);
    int (*copy)(lc_tensor *to, const lc_tensor *from);           /* on this device; any strides, dtypes; from broadcasts */
    int (*fill)(lc_tensor *to, const lc_tensor *number);         /* number: is_number */
    int (*run)(lc_op_id op, lc_dtype compute, const void *args); /* the other kernels; args as backend/args.h says */

    /* ---- memory: where storages and page-locked host memory come from. Empty: the engine's own memory (core/alloc.c) ---- */
    const lc_device_allocator *memory;

    /* ---- transfer: between host memory and this device. Empty: this is host memory, copy reads both ---- */
    int (*transfer)(lc_tensor       *to,
                    const lc_tensor *from); /* contiguous, same dtype and shape; one of them may be on the host */

    /* ---- queue: kernels enqueue work and return. Empty: every call has finished when it returns ---- */
    int (*synchronize)(int index); /* wait for all work of the device */
    /* Several queues per device: gradients run on the queue of their forward call. NULL is the default queue. */
    void *(*queue)(int index);                                                /* the thread's current one */
    int (*set_queue)(int index, void *queue);                                 /* from now on, on this thread */
    int (*queue_waits)(int index, void *queue, int other_index, void *other); /* queue waits for what is in other now */
    int (*used_on_queue)(lc_storage *s, void *queue);                         /* its memory stays until that is done there */

    /* ---- fusion: several elementwise calls and reductions of rows as one kernel (fused.h). Empty: they run one by one ---- */
    const struct lc_fuser *fuser;

    /* ---- activity: what ran on the device and when (activity.h). Empty: only the host's calls are timed ---- */
    const struct lc_activity_recorder *activity;

    /* ---- devices of this kind. Empty: there is one ---- */
    int (*device_count)(void);
    int (*current_device)(void); /* the one that a thread means when it names none */
} lc_backend;

extern bool lc_queues_used; /* some thread has left the default queue of a device once: set by the backend */

/* By lc_device_kind. NULL: not available; use lc_backend_of, which sets the error. */
extern const lc_backend *lc_backends[LC_DEVICE_KINDS];
const lc_backend        *lc_backend_of(lc_device device); /* NULL after lc_fail(GpuNotAvailable, ...) */
/* A backend whose libraries are loaded at first use registers how to open it: NULL after lc_fail with the reason. */
extern const lc_backend *(*lc_backend_openers[LC_DEVICE_KINDS])(void);
lc_device lc_current_device(lc_device_kind kind);  /* of this thread; its backend need not be open */
int       lc_device_count(lc_device_kind kind);    /* 0: there is none */
int       lc_device_synchronize(lc_device device); /* wait for all work of the device */
/* Across devices of one kind, or from and to the host; contiguous, same dtype and shape. While lc_non_blocking is set on this
 * thread, a copy from or to page-locked memory may still run when it returns. */
int                         lc_transfer(lc_tensor *to, const lc_tensor *from);
extern LC_THREAD_LOCAL bool lc_non_blocking;

/* What the device of a tensor can do: its backend is open. */
static inline const lc_capabilities *lc_can(const lc_tensor *t) { return &lc_backends[t->device.kind]->can; }

/* The result dtype relative to the computing dtype, per elementwise op (scalar.def). */
typedef enum { LC_RESULT_SAME, LC_RESULT_BOOL, LC_RESULT_REAL } lc_result_kind;
lc_result_kind         lc_result_kind_of(lc_op_id op);
static inline lc_dtype lc_result_dtype(lc_op_id op, lc_dtype compute)
{
    lc_result_kind kind = lc_result_kind_of(op);
    return kind == LC_RESULT_BOOL ? LC_b8 : kind == LC_RESULT_REAL ? lc_real_of(compute) : compute;
}
