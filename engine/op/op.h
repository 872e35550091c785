/* op: what an operation is, and the one path by which every operation runs. Depends on backend.
 *
 * An op is one block of C, LC_OP(name, ...): signature in Python syntax, rules, gradient, effects. tools/genops.py turns the
 * signature into the argument table that lc_call, the bindings, the tape and the tracer all read. One of two fields says how
 * it computes:
 *   .run    fills outputs the engine allocated by .shape (kernels, moves)
 *   .call   a C function over other ops; a view if .view_of is set, else a composite
 * An op without results (-> None) has .run alone: it updates the tensors, or lists of tensors, that .writes names.
 * Effects are declared and enforced: .writes bumps versions (a composite that writes more than it declares fails), .view_of marks
 * outputs as views and checks that they are; .random and .reads_values are read by the tracer.
 *
 * Derived forms. `.inplace = true` makes name_, the same rules writing into argument 0 (a composite's result is copied there). A last parameter `inplace: bool = False` is
 * the host language's: True calls name_ instead; the typed callers do not have it, and no rule reads it. `out=` is accepted by every op with
 * `.out = true` (lc_call_out): a kernel op writes straight into it, a composite's result is copied. `.copies = true` on a view makes
 * name_copy: the view, cloned. `.aliases = "negative"` makes the same op, and its in-place form, under another name. */
#pragma once
#include "../backend/backend.h"

typedef enum {
    LC_IS_none,
    LC_IS_tensor,
    LC_IS_tensors, /* n of ts; LC_NONE is a hole */
    LC_IS_int,
    LC_IS_float,
    LC_IS_complex,
    LC_IS_bool,
    LC_IS_number, /* as a parameter kind only: the value has one of the four tags above */
    LC_IS_ints,
    LC_IS_floats,
    LC_IS_str,
    LC_IS_dtype,
    LC_IS_device,
    LC_IS_format, /* lc_memory_format */
    LC_IS_generator,
    LC_IS_object
} lc_tag;
typedef struct lc_foreign lc_foreign;
typedef struct {
    lc_tag  tag;
    int32_t n; /* of tensors, ints, floats */
    union {
        lc_tensor        *t;
        lc_tensor *const *ts;
        int64_t           i;
        double            f;
        struct {
            double re, im;
        } c;
        bool             b;
        const int64_t   *is;
        const double    *fs;
        const char      *s;
        lc_dtype         dt;
        lc_device        dev;
        lc_memory_format fmt;
        lc_generator    *gen;
        lc_foreign      *o;
    };
} lc_value;
#ifdef __cplusplus /* which has no compound literals */
static inline lc_value lc_value_of(lc_tag tag)
{
    lc_value v = lc_value();
    v.tag = tag;
    return v;
}
#define LC_VALUE_OF(name, tag, T, member)                                                                                      \
    static inline lc_value name(T x)                                                                                           \
    {                                                                                                                          \
        lc_value v = lc_value_of(tag);                                                                                         \
        v.member = x;                                                                                                          \
        return v;                                                                                                              \
    }
LC_VALUE_OF(LC_I, LC_IS_int, int64_t, i)
LC_VALUE_OF(LC_F, LC_IS_float, double, f)
LC_VALUE_OF(LC_B, LC_IS_bool, bool, b)
LC_VALUE_OF(LC_OF_DTYPE, LC_IS_dtype, lc_dtype, dt)
#undef LC_VALUE_OF
#define LC_ABSENT lc_value_of(LC_IS_none)
#else
#define LC_I(v)        ((lc_value){ .tag = LC_IS_int, .i = (v) })
#define LC_F(v)        ((lc_value){ .tag = LC_IS_float, .f = (v) })
#define LC_B(v)        ((lc_value){ .tag = LC_IS_bool, .b = (v) })
#define LC_OF_DTYPE(v) ((lc_value){ .tag = LC_IS_dtype, .dt = (v) })
#define LC_ABSENT      ((lc_value){ .tag = LC_IS_none }) /* None, where a typed caller takes an lc_value */
#endif
static inline bool   lc_is_number_tag(lc_tag tag) { return tag >= LC_IS_int && tag <= LC_IS_bool; }
static inline double lc_number_of(const lc_value *v) /* the real part of a scalar argument */
{
    return v->tag == LC_IS_float ? v->f : v->tag == LC_IS_int ? (double)v->i : v->tag == LC_IS_bool ? v->b : v->c.re;
}

typedef struct {
    const char *name;
    lc_tag      kind;
    bool        none_ok, number_ok, keyword_only, required; /* number_ok: a tensor parameter that also takes a Python scalar */
    bool        star;                                       /* *tensors: Tensor: takes all remaining positional arguments */
    lc_value    preset;
    bool        holes_ok; /* list[Tensor | None]: elements may be absent */
    int8_t      only;     /* Literal[True]: 1, Literal[False]: -1; another bool is for another overload */
    int8_t      each;     /* length of the list that one scalar expands to; 0: a list of one, -1: not a list */
    bool        truthy;   /* truth: a flag that accepts any truthy object, not only a bool */
} lc_param;
typedef struct {
    int                n_params, n_in, n_out, n_numbers; /* n -1: a list decides. n_numbers: parameters with number_ok */
    const lc_param    *params;
    const char *const *out_names, *text; /* text: for inspect.signature */
    bool               alone;            /* "-> Tensor | list[Tensor]": a list of one is that tensor itself in Python */
    bool               item;             /* the result is one value, which the host language gets as such (-> bool) */
} lc_signature;

typedef struct lc_op lc_op;
typedef struct { /* describes an output before it is made. Rules fill it in place; it is never cleared or copied as a whole */
    lc_dtype  dtype;
    lc_device device;
    int       ndim;
    enum {
        LC_ORDER_CONTIGUOUS,
        LC_ORDER_STRIDES,
        LC_ORDER_INPUTS,
        LC_ORDER_JOINED
    } order; /* STRIDES: as given below; INPUTS: by TensorIterator's rule; JOINED: the same for inputs of different shapes */
    int64_t shape[LC_MAX_DIMS], stride[LC_MAX_DIMS];
} lc_spec;

typedef struct lc_reservation { /* memory allocated ahead, for steps that must not fail later */
    struct lc_reservation   *next;
    size_t                   bytes;
    int                      n_held; /* objects made ahead, for the same reason; entries may be NULL */
    __extension__ lc_object *held[];
} lc_reservation;
typedef struct { /* one call, on the caller's stack */
    const lc_op    *op;
    const lc_value *args;
    lc_tensor *const
               *in; /* every tensor argument in order, lists flattened; a Python scalar is a tensor on the stack (is_number) */
    int         n_in, n_out;
    lc_tensor **out;
    lc_dtype    dtype;  /* what the inputs promote to, after .promote: kernels compute in it */
    lc_device   device; /* of the inputs; for factories, of the result */
    const lc_backend *backend;
    unsigned          watch;       /* modes of the thread | flags of the inputs */
    bool              out_given;   /* out= */
    lc_tensor        *overwritten; /* tape: a copy of the values, or of the shape, that an in-place call overwrites */
    lc_reservation   *reserved;    /* tape: memory for the nodes of a call that writes; set if overwritten is */
    uint32_t          version;     /* tape: of the written input, before the call */
    const struct lc_row_epilogue
        *epilogue; /* of a plan's step: what its kernel does to the result (backend/args.h); NULL: nothing */
} lc_record;

typedef enum {
    LC_KEEP,         /* promote the inputs */
    LC_TO_FLOAT,     /* integers and bool become the default float */
    LC_TO_COUNT,     /* integers and bool become int64 (sum, prod, cumsum) */
    LC_NO_PROMOTION, /* dtype = that of input 0 (moves, index ops, views) */
    LC_BEHIND_FIRST  /* promote all inputs but the first, which is a condition */
} lc_promotion;
/* To what autocast converts an op's floating inputs: PyTorch's lists. The low four bits are for the CPU, the high ones for
 * accelerators. */
typedef enum {
    LC_AMP_KEEP,
    LC_AMP_LOWER = 0x11,      /* the lower dtype: products */
    LC_AMP_FP32 = 0x22,       /* float32: losses and ops that overflow */
    LC_AMP_WIDEST = 0x33,     /* float32 if one input is, else the lower dtype: ops that join tensors */
    LC_AMP_LIKE_STATE = 0x14, /* recurrent units: the lower dtype; on the CPU that of their state */
    LC_AMP_LSTM = 0x15,       /* the lower dtype; on the CPU the cell state of a projected lstm keeps its dtype */
    LC_AMP_CPU_FP32 = 0x02,
    LC_AMP_CPU_WIDEST = 0x03,
    LC_AMP_GPU_LOWER = 0x10,
    LC_AMP_GPU_FP32 = 0x20,
    LC_AMP_GPU_WIDEST = 0x30,
} lc_amp;
#define IN(k)  (1u << (k)) /* argument k */
#define OUT(k) (1u << (16 + (k)))
enum { LC_SAVES_FOR = 4 };

/* The class of an op. vmap, the tracer and the documentation read it. tools/genops.py derives it where the block does not
 * say .kind: .view_of makes a view, .call a composite, .run = elementwise or .lower an elementwise op; other kernels are
 * opaque. */
typedef enum {
    LC_KIND_OPAQUE,      /* a kernel whose data dependencies are not declared */
    LC_KIND_ELEMENTWISE, /* an output element depends on the elements at the same position of the inputs, which broadcast */
    LC_KIND_REDUCTION, /* reduces dimensions of its one input; argument 1, if there is one, is dim: absent means all dimensions */
    LC_KIND_LINES, /* transforms lines of its one input along the dimensions that argument 1 names; no line depends on another */
    LC_KIND_MOVE,  /* copies values of the inputs, unchanged, to other positions */
    LC_KIND_VIEW,  /* the memory of an input with another geometry */
    LC_KIND_MATRICES, /* works on matrices or vectors at the end of its inputs, whose leading dimensions are one batch */
    LC_KIND_PRODUCT,  /* the product of two tensors with operand_dims dimensions, which matmul broadcasts over further ones */
    LC_KIND_COMPOSITE /* calls of other ops */
} lc_op_class;

/* How vmap batches a call where the class does not say it. The inputs with a batch are those of .batched (0: all); one of them
 * that has none gets it by expanding. */
typedef enum {
    LC_BATCH_BY_CLASS,
    LC_BATCH_DIMS, /* the dimensions that arguments called dim and dims count lie one further back; none: all of the example's */
    LC_BATCH_FRONT,    /* dimensions in front change nothing: the batch is one of them */
    LC_BATCH_SAMPLES,  /* dimension 0 counts samples that do not see each other: the examples are more of them */
    LC_BATCH_BROADCAST /* as elementwise ops */
} lc_batching;
/* A call in which some inputs have vmap's batch as their dimension 0; call has the shapes of one example. */
typedef struct {
    const lc_record  *call;
    lc_tensor *const *in;
    const bool       *batched;
    int64_t           size;
} lc_batch_call;
enum { LC_NO_RULE = 1 };

/* A lowering: an elementwise call as one row of scalar.def. .lower fills it from the arguments, reading no values; code that
 * runs, fuses or compiles the call takes the row from it. Scalar arguments become operands, which live in number[]. */
enum { LC_ROW_OPERANDS = 4, LC_NO_ROW = 1 };
typedef struct {
    lc_op_id      row;
    lc_dtype      dtype; /* the computing dtype: call->dtype unless .lower sets another */
    int           n_in;
    lc_tensor    *in[LC_ROW_OPERANDS];
    lc_number_box number[LC_ROW_OPERANDS - 1]; /* not cleared */
} lc_lowering;

struct lc_op {
    lc_op_id    id, kernel;                 /* kernel: whose slots; an in-place form uses its op's */
    const char *name, *py, *ns, *sig, *doc; /* py: the public name if it differs (overloads share one); ns: "nn.functional" */
    const lc_signature *args;
    bool                method, function, inplace, out; /* function: false hides it from the namespace (method only) */
    bool                empty;   /* a factory of zeros, or of anything: with a sparse layout it has no entries */
    bool                factory; /* a factory: the binding adds requires_grad=, layout=, pin_memory= */
    bool                hidden;  /* engine-internal: no Python name */
    bool                unnamed; /* several results are a plain tuple in Python, as in PyTorch */
    lc_op_class         kind;
    lc_batching         batching;
    uint32_t            batched; /* IN(k): the arguments that may have vmap's batch */
    /* For other arguments: results with the batch as dimension 0, borrowed from the open scope. The arguments are not checked
     * yet. LC_NO_RULE: not of this call, or wrong arguments, whose error an example gives. */
    int (*batch)(const lc_batch_call *b, lc_tensor **out);
    uint8_t      operand_dims[2]; /* of a product */
    lc_promotion promote;
    bool         plain_row;              /* tools/genops.py sets it: a call is the row of its kernel over its inputs */
    bool         fills;                  /* writes all of its first input without reading it */
    uint32_t     writes, view_of, saves; /* IN(k) | OUT(k); saves: whose values the gradient reads */
    uint32_t saves_for[LC_SAVES_FOR]; /* by argument: tensors that only this argument's gradient reads; saved if it is wanted */
    uint32_t any_device;              /* IN(k): may be on another device (copy_, to) */
    uint32_t any_library;             /* IN(k): may be another library's array: the bindings make a tensor of it (copy_) */
    bool     random, reads_values;
    bool     uninitialised;    /* the result has no values yet: who reads it first has to write it first */
    uint32_t nondeterministic; /* OUT(0): always; IN(k): unless the bool at argument k is true */
    bool   atomic; /* on devices with queues the kernel adds in an order that varies: not deterministic there, as in PyTorch */
    bool   converts; /* the result is the input, in its own dtype and layout */
    bool   cheap; /* no elementwise op, but as cheap: reads its inputs once, which costs about what reading the result does */
    bool   any_strides;           /* run writes outputs of any strides, and with an in-place form input 0 may be the output */
    bool   repeats_ok;            /* the written tensor may overlap itself (an expanded tensor) */
    bool   strict_out, casts_out; /* overrides the rule by class whether out= may have another dtype (call.c) */
    bool   plain_out;             /* a composite whose out= becomes contiguous when it grows, whatever order the result has */
    bool   exact;                 /* the written tensor has the result's dtype and shares no element with the inputs */
    lc_amp amp;
    int (*count)(const lc_value *in); /* outputs of a list op */
    int (*shape)(const lc_record *call, lc_spec *out);
    int (*run)(const lc_record *call);
    /* Elementwise ops: the row of this call; LC_NO_ROW: not one row (copies, fills, steps), -1: failure. NULL: row .kernel over all inputs. */
    int (*lower)(const lc_record *call, lc_lowering *to);
    int (*call)(const lc_value *in, lc_tensor **out); /* out: borrowed from the scope the engine opened */
    void (*grad)(lc_tensor *const *g, lc_tensor *const *y, const lc_value *in, const bool *need, lc_tensor **dx);
    bool         copies, copies_method; /* on a view: makes name_copy, the view's result in new memory; also as a method */
    const char  *aliases;               /* other names of the op, separated by blanks: each gives a derived form */
    const lc_op *inplace_of, *copy_of, *alias_of; /* set on derived forms */
};
#ifndef LC_OP /* tools/genops.py defines it as a marker */
#define LC_OP(op_name, ...)                                                                                                    \
    const lc_op lc_op_##op_name = { .id = LC_OP_##op_name,                                                                     \
                                    .kernel = LC_OP_##op_name,                                                                 \
                                    .name = #op_name,                                                                          \
                                    .kind = LC_KIND_OF_##op_name,                                                              \
                                    .plain_row = LC_ROW_OF_##op_name,                                                          \
                                    .function = true,                                                                          \
                                    .args = &lc_sig_##op_name,                                                                 \
                                    __VA_ARGS__ }
#endif

#define X(name) extern const lc_signature lc_sig_##name;
LC_OP_NAMES(X)
#undef X
extern const lc_op *const lc_ops[LC_OP_COUNT];

/* New references in out[0 .. lc_count(op, args)), or -1 with every out NULL. A NULL tensor among the arguments is an earlier failure: it
 * passes through. Missing trailing arguments are not allowed: args has n_params entries. */
int lc_call(const lc_op *op, const lc_value *args, lc_tensor **out);
int lc_call_out(const lc_op *op, const lc_value *args,
                lc_tensor **out); /* out: given tensors; returned with one more reference each */
int lc_count(const lc_op *op, const lc_value *args);
int lc_call_scoped(const lc_op *op, const lc_value *args, lc_tensor **out);    /* for the typed callers */
int lc_composite_body(const lc_op *op, const lc_value *args, lc_tensor **out); /* op->call, or its replacement; out as there */

/* to = from, and every element of to = number: what the engine does by itself, outside any op (values.c). Not recorded for gradients. */
int lc_copy_values(lc_tensor *to, lc_tensor *from);
int lc_fill_values(lc_tensor *to, int64_t number);

/* Modes of the thread, in the same word as tensor flags so that lc_call branches once. */
enum {
    LC_NO_GRAD = 1 << 8,
    LC_INFERENCE_MODE = 1 << 9,
    LC_TRACING = 1 << 10,
    LC_AUTOCAST = 1 << 11,
    LC_PROFILING = 1 << 12,
    LC_DETERMINISTIC = 1 << 13,
    LC_SAVED_HOOKS = 1 << 14, /* saved_tensors_hooks are active */
    LC_ANOMALY = 1 << 15,
    LC_BATCH_LEVEL = 1 << 16, /* inside vmap */
    LC_VERBOSE = 1 << 17,     /* LUCID_VERBOSE: log.c */
};
extern LC_HOT_TLS unsigned lc_modes;
/* How often a typed caller (lc_sinh) failed on this thread: a composite or gradient with a failed inner call has failed,
 * whatever it returns. */
extern LC_HOT_TLS unsigned lc_failed_calls;

/* While LC_DETERMINISTIC is set: nondeterministic ops warn instead of raising; uninitialised memory is filled (NaN, the
 * largest int). */
extern bool lc_deterministic_warns, lc_deterministic_fills;
int         lc_not_deterministic(const char *name); /* what such an op does then: 0 after a warning, or -1 */

/* Autocast (autocast.c): the state of this thread, per kind of device. */
#define LC_AUTOCAST_KINDS 2 /* LC_CPU, LC_CUDA */
bool       lc_autocast_enabled(lc_device_kind kind);
lc_dtype   lc_autocast_dtype(lc_device_kind kind);
void       lc_autocast_set(lc_device_kind kind, bool on, lc_dtype dtype);
bool       lc_autocast_keeps(void); /* whether converted parameters are kept */
void       lc_autocast_keep(bool on);
int        lc_autocast_nest(int by); /* contexts entered less those left; returns the depth */
void       lc_autocast_forget(void); /* converted parameters */
bool       lc_autocast_concerns(const lc_record *call);
int        lc_autocast_call(lc_record *call);
lc_tensor *lc_autocast_fp32(lc_tensor *t); /* scoped; for ops that compute only some forms in float32 */

/* Observers see the call record; each keeps only what it needs. They register at load (autograd/tape.c, jit/trace.c). */
typedef struct {
    unsigned wakes;
    int (*before)(lc_record *);
    int (*after)(lc_record *);
    void (*failed)(lc_record *); /* instead of after; may be NULL */
} lc_observer;
void lc_observe(const lc_observer *observer);
/* Called by bindings before they read values (item, tolist, buffers) while LC_TRACING is set: a value that Python has read
 * cannot be replayed. */
extern void (*lc_reading_values)(const char *how);
/* A transform replaces the call (vmap, sparse tensors): it fills call->out itself. Registered at load for the flag it owns. 1: it leaves
 * the call as it is, to run as usual. */
typedef int (*lc_transform)(lc_record *call);
extern lc_transform lc_batch_transform, lc_sparse_transform;

/* A callable of the host language. Which members are set depends on what it is for. */
struct lc_foreign {
    lc_object object;
    void     *payload;
    lc_tensor *(*hook)(void *payload, lc_tensor *g); /* gradient hook: new reference; LC_NONE: keep g */
    int (*node_hook)(void *payload, lc_tensor **grads_in, int n_in, lc_tensor *const *grads_out,
                     int n_out);                               /* may replace grads_in[] */
    lc_tensor *(*unpack)(void *payload);                       /* saved_tensors_hooks: new reference */
    int (*forward)(void *payload, lc_tensor **out, int n_out); /* a user's Function: new references */
    int (*backward)(void *payload, lc_tensor *const *g, int n_out, const bool *need, lc_tensor **dx, int n_in);
    void (*spend)(void *payload); /* a user's Function: free what was saved; NULL if nothing can be */
    int         n_out;
    const bool *constant;   /* a user's Function: n_out outputs that get no history; NULL if none */
    const char *name;       /* a user's Function: what its node is called */
    void       *node;       /* a user's Function: the node that holds it, borrowed; set by the tape */
    bool        keeps_none; /* a user's Function: backward takes LC_NONE for a gradient that did not arrive, not zeros */
};
