/* bindings/lightning: the hot part of the package lightning_core, a module of its own that is made when the package asks for it.
 *
 * Its programs call few operators very often on small NumPy arrays, so a call here reads arrays where they lie (arrays.c), runs an
 * engine kernel on them (kernels.c) and writes the result into a new array or the caller's. No tensor is made. Everything that is
 * not called often is Python. */
#pragma once
#include "../py.h"
#include "backend/args.h"
#include "include/lightning_core/lightning_core.h"
#include "lightning/accelerator.h"
#include "lightning/trace.h"

/* --- arrays.c ----------------------------------------------------------------------------------------------------------- */
typedef struct {
    float            *data; /* contiguous float32 */
    int               nd;
    const Py_ssize_t *dims;
    Py_ssize_t        size;  /* elements */
    PyObject         *owner; /* a reference, if this is a converted copy */
    Py_buffer         view;  /* if from_buffer */
    bool              from_buffer;
} lightning_array;
int       lightning_read(PyObject *o, lightning_array *a);  /* any array-like, converted if need be; -1 raised */
int       lightning_write(PyObject *o, lightning_array *a); /* the caller's memory, never a copy; -1 raised */
void      lightning_end(lightning_array *arrays, int n);    /* after read or write, also if they failed */
PyObject *lightning_new(int nd, const Py_ssize_t *dims, float **data);

/* Where a result goes: a new array, the caller's, or memory beside it because the caller's overlaps an operand. */
typedef struct {
    PyObject *array;     /* a new one */
    float    *data, *to; /* to: where a result beside it belongs */
    size_t    bytes;
} lightning_target;
int       lightning_target_new(lightning_target *t, int nd, const Py_ssize_t *dims);
int       lightning_target_over(lightning_target *t, const lightning_array *out, const lightning_array *in, int n);
PyObject *lightning_target_end(lightning_target *t, int rc); /* the new array, or None; NULL if rc is negative */

/* --- bind.c: arguments -------------------------------------------------------------------------------------------------- */
enum { LIGHTNING_PARAMS = 16 };
typedef struct {
    const char        *name;
    const char *const *params; /* ended by NULL */
    int                required;
    int                n; /* filled at first use, with the interned names */
    PyObject          *names[LIGHTNING_PARAMS];
} lightning_signature;
#define LIGHTNING_SIGNATURE(function, needs, ...)                                                                              \
    static lightning_signature function##_signature = { .name = #function,                                                     \
                                                        .params = (const char *const[]){ __VA_ARGS__, NULL },                  \
                                                        .required = needs }
/* One slot per parameter, NULL where nothing is given. -1 raised. */
int lightning_bind(lightning_signature *s, PyObject *const *args, Py_ssize_t n, PyObject *names, PyObject **slots);
/* A function of Python that is an expression of `slot`. */
#define LIGHTNING_FUNCTION(function, needs, expression, ...)                                                                   \
    LIGHTNING_SIGNATURE(function, needs, __VA_ARGS__);                                                                         \
    static PyObject *function(UNUSED PyObject *m, PyObject *const *args, Py_ssize_t n, PyObject *names)                        \
    {                                                                                                                          \
        PyObject *slot[LIGHTNING_PARAMS];                                                                                      \
        return lightning_bind(&function##_signature, args, n, names, slot) < 0 ? NULL : (expression);                          \
    }
int lightning_size(PyObject *o, const char *name, int64_t *value);                    /* an int that is not negative */
int lightning_size_or(PyObject *o, const char *name, int64_t preset, int64_t *value); /* preset if o is NULL */
int lightning_flag(PyObject *o, const char *name, bool preset, bool *value);
int lightning_device(PyObject *o, lcDeviceKind preset, lcDeviceKind *device);

PyObject *lightning_wrong(const char *function, const char *what); /* ValueError; NULL */
int       lightning_read_all(PyObject *const *objects, lightning_array *arrays, int n);
bool      lightning_has_size(const lightning_array *a, int64_t rows, int64_t columns);

/* A failed operation: RuntimeError with the name of a status. NULL. */
PyObject *lightning_fail(lcError_t status);

/* --- kernels.c: on float32 memory; -1 raised ---------------------------------------------------------------------------- */
typedef enum { /* the codes of the trace */
               LIGHTNING_OP_UNKNOWN,
               LIGHTNING_OP_MATMUL,
               LIGHTNING_OP_ADD,
               LIGHTNING_OP_SUB,
               LIGHTNING_OP_DIV,
               LIGHTNING_OP_CONV,
               LIGHTNING_OP_ATTENTION,
               LIGHTNING_PIPELINE /* convolution, then attention: two events */
} lightning_op;
typedef enum {                   /* how an operator is computed; numbers are written to files (lightning_core/_tuning) */
               LIGHTNING_ALL,    /* the engine's kernel with all threads */
               LIGHTNING_SERIAL, /* the engine's kernel on this thread */
               LIGHTNING_DIRECT, /* a plain loop, or the kernel for few rows: nothing to set up */
               LIGHTNING_WAYS,
               LIGHTNING_UNKNOWN = LIGHTNING_WAYS
} lightning_way;
typedef struct {
    int64_t n, c, h, w, o, kh, kw, stride_h, stride_w, pad_h, pad_w, oh, ow;
    bool    relu;
} lightning_conv_shape;
int lightning_product(lightning_way way, const float *a, const float *b, float *out, int64_t m, int64_t k, int64_t n);
int lightning_attend(lightning_way way, const float *q, const float *k, const float *v, float *out, int64_t seq, int64_t dim,
                     bool causal);
int lightning_conv(const float *x, const float *w, const float *bias, float *out, const lightning_conv_shape *s,
                   lc_conv_kept *kept);
typedef enum { LIGHTNING_ADD, LIGHTNING_SUB, LIGHTNING_DIV } lightning_pointwise;
int lightning_combine(lightning_pointwise what, const float *a, const float *b, float *out, int64_t n);

/* --- choose.c: which way, and what the trace says of it ----------------------------------------------------------------- */
static inline void lightning_note_on(lightning_op op, lcDeviceKind requested, lcDeviceKind selected, int64_t work)
{
    /* requested | selected << 4 | fallback << 8: the CPU computes what a device was asked for */
    lc_runtime_note(LC_EVENT_op_dispatch, LC_SUCCESS, (uint64_t)work, op,
                    (int64_t)requested | (int64_t)selected << 4 |
                        (requested != LC_DEVICE_CPU && selected == LC_DEVICE_CPU) << 8);
}
static inline void lightning_note(lightning_op op, lcDeviceKind requested, int64_t work)
{
    lightning_note_on(op, requested, LC_DEVICE_CPU, work);
}
int lightning_matmul_way(lcDeviceKind device, int64_t m, int64_t k, int64_t n, lightning_way *way);
int lightning_attention_way(lcDeviceKind device, int64_t seq, int64_t dim, bool causal, lightning_way *way);

/* --- device.c: on the accelerator --------------------------------------------------------------------------------------- */
typedef struct { /* an operator of one shape */
    lightning_op         op;
    int                  n_in;
    int64_t              in_size[3], out_size, work; /* work: as the trace counts it; -1: nothing can be computed */
    int64_t              dims[3];                    /* m, k, n; seq, dim */
    lightning_conv_shape conv;
    bool                 causal;
} lightning_task;
lightning_task lightning_product_task(int64_t m, int64_t k, int64_t n); /* sizes are those of arrays that exist */
lightning_task lightning_pointwise_task(lightning_op op, int64_t n);
lightning_task lightning_attention_task(int64_t seq, int64_t dim, bool causal);
lightning_task lightning_conv_task(const lightning_conv_shape *s);
lightning_task lightning_pipeline_task(const lightning_conv_shape *s, int64_t seq, int64_t dim);

/* What a call moves. Operand i is sent if bit i is set, or if nothing is there yet. */
enum { LIGHTNING_SEND = 7, LIGHTNING_FETCH = 8, LIGHTNING_WAIT = 16, LIGHTNING_MOVES = 31 };
typedef struct { /* operands and the result, on a device */
    lc_storage *memory;
    size_t      at[5]; /* in it: three operands, the result, what lies beside */
    bool        filled, has_third;
    void       *queue; /* of the call before */
} lightning_resident;
/* Operands that a call does not send may be NULL. -1 raised, and out is as it was. */
int        lightning_resident_run(lightning_resident *r, const lightning_task *t, lightning_op op, lcDeviceKind requested,
                                  unsigned moves, float *const *in, float *out, int64_t count);
int        lightning_resident_fill(lightning_resident *r, const lightning_task *t, unsigned moves, float *const *in);
void       lightning_resident_end(lightning_resident *r);
lc_tensor *lightning_resident_view(const lightning_resident *r, const lightning_task *t, int i); /* (seq, dim) of attention */

/* Where a task runs: never on a device, if its operands are there already, always. -1 raised. */
typedef enum { LIGHTNING_NEVER, LIGHTNING_IF_RESIDENT, LIGHTNING_ALWAYS, LIGHTNING_UNSETTLED } lightning_verdict;
int lightning_judge(const lightning_task *t, lcDeviceKind device);
/* A call that sends, computes and fetches: 0 done, 1 it is the CPU's, -1 raised. */
int lightning_offload(const lightning_task *t, lcDeviceKind device, float *const *in, float *out);

int lightning_launch(lc_device where, const lightning_task *t, lightning_op op, float *const *in, float *out,
                     float *beside); /* these three of kernels.c set the engine's error */
int lightning_repeat(lc_device where, const float *from, int64_t size, float *to, int64_t all);
int lightning_move(lc_device to, float *target, lc_device from, const float *source, int64_t n);

int                lightning_add_sessions(PyObject *module);
extern PyMethodDef lightning_oneshot_functions[], lightning_conv_functions[], lightning_choice_functions[],
    lightning_device_functions[], lightning_runtime_functions[];

#define LIGHTNING_FAST(f) (PyCFunction)(void (*)(void))(f), METH_FASTCALL | METH_KEYWORDS
