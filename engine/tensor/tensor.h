/* tensor: strided views over refcounted storage, and who owns a result. Depends on core.
 *
 * Storage: bytes on a device, with an owner. Engine memory on the CPU is one block, header then bytes; memory of others (NumPy,
 * DLPack, a mapped file, a GPU) is reached through `data` and given back by `deleter`. The header holds the version cell: every
 * write through any view of it counts there, so base, views, detach() and the tape's saved aliases all see it. A tensor made by
 * `.data` has a cell of its own.
 *
 * A tensor is shape, strides and a pointer into a storage. On the meta device the storage has no bytes. A tensor with no storage at
 * all has LC_NO_VALUES: that is how the tape remembers inputs it need not keep. shape and stride point into the tensor itself up to
 * LC_INLINE_DIMS dimensions, else to the heap; who holds a tensor never needs to know.
 *
 * A view keeps its base (the root, never another view) alive: writing through a view that is recorded rewrites the base's history,
 * and views whose base was written rebuild theirs (autograd/tape.c).
 *
 * NULL is only ever a failure. An absent tensor is LC_NONE, a tensor that may be retained and released like any other.
 *
 * Ownership. Functions return new references. Only the generated typed callers (lc_sinh(x)) put results on the innermost scope
 * of the thread; who wants to keep one calls lc_retain. Gradients and composites therefore read like formulas.
 *
 * Numbers. A Python number operand is an lc_tensor too, 0-d with is_number set, but it lives on its caller's stack (LC_NUMBER):
 * nobody may keep it. Observers store the value instead. */
#pragma once
#include "../core/core.h"

enum { LC_INLINE_DIMS = 6, LC_MAX_DIMS = 64 };

/* lc_tensor.flags: what makes lc_call leave the plain path. Modes of the thread (op/op.h) use bits from 8 on. */
enum {
    LC_REQUIRES_GRAD = 1,
    LC_NO_VALUES = 2,
    LC_BATCHED = 4,
    LC_INFERENCE = 8,
    LC_IS_VIEW = 16,
    LC_SPARSE = 32
}; /* LC_IS_VIEW: has a base */

/* lc_tensor.view: how it came to be a view, because that decides what an in-place write may do. */
typedef enum {
    LC_NOT_A_VIEW,
    LC_VIEW,             /* made while recording was on, or by an op outside any mode */
    LC_VIEW_OF_MANY,     /* one of several outputs (unbind, split, chunk): recorded writes are refused */
    LC_VIEW_NO_GRAD,     /* made under no_grad: recorded writes are refused */
    LC_VIEW_INFERENCE,   /* of a normal tensor, made in inference mode: recorded writes are refused */
    LC_VIEW_BY_FUNCTION, /* made inside a user's Function: recorded writes are refused */
} lc_view_kind;

typedef struct lc_storage {
    LC_ATOMIC(int) refs;
    lc_device device;
    bool      read_only; /* writes are refused (a mapped file, a read-only buffer) */
    bool      pinned;
    LC_ATOMIC(uint32_t) version; /* bumped by every write; relaxed, for readers on other threads */
    int    shared_fd;            /* memfd behind it, -1 if private */
    size_t bytes;
    char  *data;
    void (*deleter)(struct lc_storage *); /* NULL: engine memory, the bytes follow this header */
    void              *owner;             /* the deleter's */
    uint64_t           trace_id;          /* (jit/graph.h) the buffer this is in the trace that gave it */
    __extension__ char inline_data[] LC_ALIGNED(64);
} lc_storage;

typedef struct lc_version_cell {
    LC_ATOMIC(int) refs;
    LC_ATOMIC(uint32_t) version;
} lc_version_cell;

typedef struct lc_tensor lc_tensor;
struct lc_tensor {
    LC_ATOMIC(int) refs;
    uint8_t          dtype, ndim;
    lc_device        device;
    uint16_t         flags;
    bool             is_number, is_contiguous; /* is_number: weak in promotion; on the stack of a caller */
    uint8_t          view;                     /* lc_view_kind */
    bool             owns_wrapper, retains_grad;
    int64_t          numel;
    char            *data; /* first element; NULL on meta and without values */
    lc_storage      *storage;
    lc_version_cell *cell;  /* NULL: the storage's version */
    lc_tensor       *base;  /* of a view */
    struct lc_node  *node;  /* the call that made it; NULL for a leaf (autograd/) */
    lc_object       *aside; /* autograd's: a leaf's accumulator, a result's side of retain_grad */
    lc_tensor       *grad;
    int32_t          node_output;   /* which output of node this is */
    uint32_t         saved_version; /* of a saved alias: the version it was saved at; of a view: when its node was made */
    uint64_t         trace_id;      /* (jit/) lc_trace_births when it was made */
    void            *wrapper;       /* the host language's object: borrowed, unless owns_wrapper */
    union {
        struct lc_batch  *batch;  /* LC_BATCHED, vmap: the value with its hidden dimension */
        struct lc_sparse *sparse; /* LC_SPARSE: the parts (tensor/sparse.h) */
    };
    int64_t *shape, *stride;           /* ndim each; strides in elements */
    int64_t  dims[2 * LC_INLINE_DIMS]; /* last, because it is never cleared */
};

/* What new storages and tensors are stamped with: not 0 while a function is traced. */
extern uint64_t lc_trace_births;

extern lc_tensor lc_none;
#define LC_NONE (&lc_none)

/* What a device's memory is made of. alloc fills data, owner and deleter of s, whose bytes and device are set. lc_device_memory[kind] is that
 * of the backend (backend/backend.h) once it is open; the CPU's needs no entry. lc_device_open opens the backend of a device: the first storage
 * there calls it. */
typedef struct {
    int (*alloc)(lc_storage *s);
    int (*alloc_pinned)(lc_storage *s); /* host memory that the device reads directly; s is a storage of the CPU */
} lc_device_allocator;
extern const lc_device_allocator *lc_device_memory[LC_DEVICE_KINDS];
extern int (*lc_device_open)(lc_device device); /* 0, or -1 with the reason */

/* Storages. New references. */
lc_storage *lc_storage_new(lc_device device, size_t bytes);
lc_storage *lc_storage_foreign(lc_device device, void *data, size_t bytes, void (*deleter)(lc_storage *), void *owner);
lc_storage *lc_storage_shared(size_t bytes);         /* memfd, mapped; shared_fd set */
lc_storage *lc_storage_map_fd(int fd, size_t bytes); /* takes fd: another process's shared storage */
/* A file's first bytes; shared: writes reach the file, which is made and grows as needed; else they stay here (copy on write). */
lc_storage *lc_storage_map_file(const char *path, size_t bytes, bool shared);
lc_storage *lc_storage_pinned(lc_device_kind accelerator, size_t bytes); /* page-locked host memory; its backend must be open */
void        lc_storage_release(lc_storage *s);
int         lc_tensor_share_memory(lc_tensor *t); /* share_memory_(): t goes on in a memfd with the same bytes */

/* All return a new reference, or NULL. shape may be NULL when ndim is 0. */
lc_tensor *lc_tensor_new(lc_dtype dtype, lc_device device, int ndim, const int64_t *shape); /* contiguous, uninitialised */
lc_tensor *lc_tensor_new_strided(lc_dtype dtype, lc_device device, int ndim, const int64_t *shape, const int64_t *stride);
/* On a storage of its own making; offset in elements from storage->data. Takes no reference away from the caller. Checks bounds. */
lc_tensor *lc_tensor_on(lc_storage *s, lc_dtype dtype, int ndim, const int64_t *shape, const int64_t *stride, int64_t offset);
lc_tensor *lc_tensor_view(lc_tensor *of, int ndim, const int64_t *shape, const int64_t *stride,
                          int64_t offset); /* from of->data */
lc_tensor *lc_tensor_view_as(lc_tensor *of, lc_dtype dtype, int ndim, const int64_t *shape, const int64_t *stride,
                             int64_t offset_bytes);
lc_tensor *lc_tensor_alias(const lc_tensor *of,
                           bool             with_values);   /* no history, no grad, no hooks, no base; shares the version */
lc_tensor *lc_tensor_data(const lc_tensor *of); /* like alias, but with a version cell of its own (`x.data`) */
/* t becomes another tensor in place (x.data = y, set_, resize): takes geometry, dtype, device and storage of `from`. Keeps wrapper,
 * history and grad. */
int lc_tensor_become(lc_tensor *t, const lc_tensor *from);
int lc_tensor_resize(lc_tensor *t, int ndim, const int64_t *shape); /* contiguous in that shape; storage grows if it must */

/* A number on the caller's stack: an operand of weak dtype b8, i64, f64 or c128. Fills box->t and returns it. */
typedef struct {
    lc_tensor t;
    char      value[16] LC_ALIGNED(16);
} lc_number_box;
lc_tensor *lc_number_init(lc_number_box *box, lc_dtype dtype, double re, double im);
lc_tensor *lc_number_init_int(lc_number_box *box, int64_t value);
/* LC_NUMBER(2.5) and LC_INTEGER(2): operands in gradient formulas and composites; valid until the enclosing block ends. */
#define LC_NUMBER(v)  lc_number_init((lc_number_box *)__builtin_alloca(sizeof(lc_number_box)), LC_f64, (v), 0)
#define LC_INTEGER(v) lc_number_init_int((lc_number_box *)__builtin_alloca(sizeof(lc_number_box)), (v))

static inline lc_tensor *lc_retain(lc_tensor *t)
{
    atomic_fetch_add_explicit(&t->refs, 1, LC_ORDER(relaxed));
    return t;
}
void lc_release(lc_tensor *t);              /* NULL is allowed */
void lc_release_all(lc_tensor **ts, int n); /* and sets them to NULL */
void lc_tensor_forget(lc_tensor *t);        /* drop history, hooks and grad: what hangs on node, aside and grad */
/* Set by a binding: it may keep a dying tensor alive for its wrapper; otherwise it lets the wrapper go. */
extern bool (*lc_wrapper_takes_over)(lc_tensor *t);

static inline uint32_t lc_version(const lc_tensor *t)
{
    return t->cell      ? atomic_load_explicit(&t->cell->version, LC_ORDER(relaxed))
           : t->storage ? atomic_load_explicit(&t->storage->version, LC_ORDER(relaxed))
                        : 0;
}
static inline void lc_bump_version(lc_tensor *t)
{
    LC_ATOMIC(uint32_t) *v = t->cell ? &t->cell->version : &t->storage->version; /* writers are serialised by the user */
    atomic_store_explicit(v, atomic_load_explicit(v, LC_ORDER(relaxed)) + 1, LC_ORDER(relaxed));
}
static inline int64_t lc_storage_offset(const lc_tensor *t) /* in elements */
{
    return t->storage && t->data ? (t->data - t->storage->data) / lc_size_of(t->dtype) : 0;
}

static inline bool lc_same_sizes(const int64_t *a, const int64_t *b, int ndim)
{
    int d = 0;
    while (d < ndim && a[d] == b[d]) d++;
    return d == ndim;
}
static inline bool lc_same_shape(const lc_tensor *a, const lc_tensor *b)
{
    return a->ndim == b->ndim && lc_same_sizes(a->shape, b->shape, a->ndim);
}
static inline bool lc_same_strides(const lc_tensor *a, const lc_tensor *b) /* where a dimension is larger than one */
{
    bool same = a->ndim == b->ndim;
    for (int d = 0; same && d < a->ndim; d++) same = a->stride[d] == b->stride[d] || a->shape[d] <= 1;
    return same;
}
const char *lc_shape_text(const lc_tensor *t, char buffer[192]);
/* One element seen many times: a number that was expanded. */
static inline bool lc_is_expanded_scalar(const lc_tensor *t)
{
    bool still = !t->is_contiguous;
    for (int d = 0; d < t->ndim && still; d++) still = t->stride[d] == 0 || t->shape[d] == 1;
    return still;
}
const char *lc_sizes_text(const int64_t *shape, int ndim, char buffer[192]);
#ifndef __cplusplus                                                        /* which has no compound literals */
#define LC_SHAPE(t)           lc_shape_text(t, (char[192]){ 0 })           /* for messages: "float32[2, 3]" */
#define LC_SIZES(shape, ndim) lc_sizes_text(shape, ndim, (char[192]){ 0 }) /* "[2, 3]" */
#endif

/* Geometry (geometry.c). */
typedef enum { LC_CONTIGUOUS_FORMAT, LC_CHANNELS_LAST, LC_CHANNELS_LAST_3D, LC_PRESERVE_FORMAT } lc_memory_format;
bool    lc_is_contiguous_in(const lc_tensor *t, lc_memory_format format);
bool    lc_is_dense(const lc_tensor *t); /* non-overlapping and dense: some permutation of it is contiguous */
void    lc_contiguous_strides(int ndim, const int64_t *shape, int64_t *stride);
int     lc_format_strides(lc_memory_format format, int ndim, const int64_t *shape, int64_t *stride); /* fails on a wrong rank */
void    lc_strides_like(const lc_tensor *t, int64_t *stride); /* strides of empty_like(t, preserve_format) */
int64_t lc_numel_of(int ndim, const int64_t *shape);          /* -1 after lc_fail for negative sizes or overflow */
typedef enum { LC_OVERLAP_NONE, LC_OVERLAP_FULL, LC_OVERLAP_PARTIAL, LC_OVERLAP_UNKNOWN } lc_overlap;
lc_overlap lc_overlap_of(const lc_tensor *a, const lc_tensor *b); /* FULL: the very same elements in the same order */
bool       lc_overlaps_itself(const lc_tensor *t);                /* two indices reach one element (expand, as_strided) */

/* Scopes: a stack of results per thread. */
typedef struct {
    size_t mark;
} lc_scope;
lc_scope   lc_scope_open(void);
void       lc_scope_close(lc_scope scope);
int        lc_scope_reserve(int n); /* the next n results will find room: a call that writes must not fail afterwards */
lc_tensor *lc_scoped(lc_tensor *t); /* hand a new reference to the innermost scope; NULL passes through */
/* A new reference to a result: moved if it is the newest of this scope, else shared (an input that is returned belongs to another). */
lc_tensor *lc_scope_take(lc_scope scope, lc_tensor *t);
