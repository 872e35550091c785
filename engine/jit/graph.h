/* graph: what a traced function did to memory. Shared by trace.c (which records it), plan.c (which makes it runnable) and the passes.
 *
 * The graph is about memory, not about values in the mathematical sense:
 *   buffer   one storage that the traced calls read or wrote
 *   value    a window into a buffer: offset, dtype, shape, strides. What a kernel sees as a tensor
 *   step     one kernel call: an op, its arguments, values in, values out
 * A view is only another value of its buffer, so views cost nothing when the graph runs. A write in place is a step that writes a buffer which
 * other steps wrote before; steps keep the order of the program, so nothing has to be renamed for the replay to be right.
 *
 * Soundness. Every storage carries a stamp (lc_storage.trace_id). Storages that exist before the trace are inputs or externals: an external
 * (a parameter, say) is held as a tensor and asked for its memory at every run, so optimizer steps and `x.data = y` take effect. A storage that is
 * born during the trace is stamped as such; it becomes a buffer when a recorded step writes it. A step that reads one that no recorded step wrote
 * breaks the trace, by the name of the op: its values came from somewhere the graph does not know. */
#pragma once
#include "../op/op.h"

typedef enum { LC_BUFFER_INPUT, LC_BUFFER_EXTERNAL, LC_BUFFER_CONSTANT, LC_BUFFER_MADE } lc_buffer_kind;
typedef struct {
    lc_buffer_kind kind;
    int            input;  /* INPUT: its number */
    int64_t        start;  /* INPUT: where it began in its storage during the trace. Offsets of values count from there */
    lc_tensor     *tensor; /* EXTERNAL, CONSTANT: held; offsets of values count from its data. INPUT, MADE: NULL */
    lc_device      device;
    size_t         bytes;
    int            first_value; /* head of the list of values in this buffer, -1: none */
    int            writes;      /* steps that write it */
    lc_tensor     *held;        /* MADE by a step that reads only constants: its result in the trace; NULL: none */
} lc_buffer;

typedef struct {
    lc_tensor shell;        /* geometry; data and storage are set by a plan */
    int       buffer, next; /* next: another value of the same buffer, -1: none */
    int64_t   offset;       /* bytes */
} lc_traced_value;

enum { LC_VALUE_NONE = -1, LC_VALUE_NUMBER = -2 };

/* What a step computes, if a fused program can do it (backend/fused.h): a row of scalar.def, or a reduction of the last
 * dimensions of its input, or a copy in another dtype. */
typedef struct {
    bool     fold, copy;
    lc_op_id row;
    lc_dtype dtype;
    int      n_in, in[LC_ROW_OPERANDS]; /* values, or LC_VALUE_NUMBER */
    lc_dtype number_dtype[LC_ROW_OPERANDS];
    char     number[LC_ROW_OPERANDS][16] LC_ALIGNED(16);
    double   parameter;
    int      row_dims;
} lc_step_row;

typedef struct {
    const lc_op            *op;
    lc_value               *args; /* owned copies; tensors are found through in[] */
    int                    *in;   /* per input: a value, or one of the two below. out follows it in the same block */
    int                    *out;
    int                     n_in, n_out;
    lc_dtype                dtype; /* what the kernel computes in */
    lc_device               device;
    bool                    out_given, frozen; /* frozen: op->run alone does the work; else the whole call is made again */
    bool                    dead;              /* a pass made it unnecessary */
    lc_step_row            *row;               /* NULL: it runs alone */
    struct lc_row_epilogue *epilogue; /* what its kernel does to the first result; NULL: nothing. Its tensors are inputs */
    int                     n_added;  /* inputs of the epilogue, behind those of the op; in[] has n_in with them */
} lc_step;

typedef struct {       /* another tensor on the memory of an input or external: a run is only right if it still lies there */
    lc_tensor *tensor; /* held; NULL: it is input number `input` */
    int        input, buffer;
    int64_t    delta; /* bytes from the first element of the buffer's tensor to its own */
} lc_sharing;

typedef struct lc_graph {
    lc_object        object;
    lc_step         *steps;
    lc_buffer       *buffers;
    lc_traced_value *values;
    lc_sharing      *aliases;
    lc_tensor      **inputs; /* during the trace, borrowed */
    int              n_steps, n_buffers, n_values, n_aliases, n_inputs;
    int              n_constants, n_common, n_epilogues; /* steps that passes made unnecessary */
    int              n_recomputed;                       /* steps that run twice to save memory */
    uint64_t         serial;
} lc_graph;

/* Arguments outlive their call: what they point to is copied, what they hold is retained. Tensors are not. */
int  lc_argument_keep(lc_value *v);
void lc_argument_drop(lc_value *v);
bool lc_argument_same(const lc_value *a, const lc_value *b); /* tensors are not compared */

int  lc_graph_value(lc_graph *g, int buffer, int64_t offset, const lc_tensor *like); /* found or made; -1: no memory */
int  lc_graph_copy_buffer(lc_graph *g, int buffer);           /* a new made buffer of the same size; -1: no memory */
bool lc_step_copy(const lc_step *from, lc_step *to);          /* with arguments and row of its own; false: no memory */
int  lc_graph_whole(lc_graph *g, int buffer);                 /* all of a made buffer, as a value of bytes; -1: no memory */
bool lc_step_has_effect(const lc_graph *g, const lc_step *s); /* writes memory that outlives a run, or draws numbers */
/* Whether step s writes value out[i] (always), or input k in place. */
bool lc_step_writes_input(const lc_step *s, int k);
