/* Making and running plans: see plan.h, and memory.c for where buffers lie.
 *
 * An instance is what a run in flight needs: the arena and, for every value, a tensor that points into its buffer. Kernels get records that point at
 * these tensors; a run only has to set their data pointers, and of the arena's not even that. */
#include "../backend/args.h"
#include "passes.h"
#include "plan_parts.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct instance {
    struct instance *next;
    char            *arena;
    lc_storage      *arena_storage; /* owns the arena */
    char            *headers;       /* an lc_storage per buffer of the arena */
    lc_tensor       *shells;        /* per value */
    lc_record       *records;       /* per step */
    lc_value        *args;          /* of all steps */
    lc_tensor      **ends;          /* inputs and outputs of all steps */
    lc_number_box   *numbers;
    char           **seen; /* per given buffer: the data that its shells were set to */
    lc_storage     **seen_storage;
};

static void *no_memory(void) { return lc_fail(LC_OutOfMemory, "out of memory: plan"); }

/* ---- which steps, which buffers ---- */
int lc_graph_saved(const lc_graph *g, int first, int cut, int last, int *buffers, int n)
{
    int   found = 0;
    char *state = calloc((size_t)g->n_buffers + 1, 1);
    if (!state) return no_memory(), -1;
    for (int i = first; i < last; i++) {
        const lc_step *s = &g->steps[i];
        for (int k = 0; k < s->n_in + s->n_out && !s->dead; k++) {
            if (s->in[k] < 0) continue;
            int b = g->values[s->in[k]].buffer;
            if (g->buffers[b].kind != LC_BUFFER_MADE) continue;
            if (i < cut) state[b] |= 1;
            else if (state[b] == 1) {
                state[b] |= 2;
                if (found < n) buffers[found] = b;
                found++;
            }
        }
    }
    free(state);
    return found;
}

/* Dead steps: whatever they write is read by no later step and outlives no run. From the last step to the first; a buffer that is written in parts is
 * kept alive by any reader. */
static int choose_steps(lc_plan *p)
{
    lc_graph *g = p->graph;
    char     *read = calloc((size_t)g->n_buffers + 1, 1);
    bool     *keep = calloc((size_t)(p->last - p->first) + 1, sizeof *keep);
    p->order = calloc((size_t)(p->last - p->first) + 1, sizeof *p->order);
    if (!read || !keep || !p->order) return free(read), free(keep), no_memory(), -1;
    for (int i = 0; i < p->n_outputs; i++) read[g->values[p->outputs[i]].buffer] = 1;
    for (int i = p->last - 1; i >= p->first; i--) {
        const lc_step *s = &g->steps[i];
        bool           alive = !s->dead && lc_step_has_effect(g, s);
        for (int k = 0; k < s->n_in + s->n_out && !alive && !s->dead; k++)
            alive = s->in[k] >= 0 && lc_step_writes(s, k) && read[g->values[s->in[k]].buffer];
        keep[i - p->first] = alive;
        for (int k = 0; k < s->n_in && alive; k++)
            if (s->in[k] >= 0) read[g->values[s->in[k]].buffer] = 1;
    }
    for (int i = p->first; i < p->last; i++)
        if (keep[i - p->first]) p->order[p->n_order++] = i;
    free(read), free(keep);
    p->n_chosen = p->n_order;
    if (lc_schedule_steps(g, p->order, p->n_order) < 0) return -1;
    p->n_order = lc_fuse_steps(g, p->order, p->n_order, p->outputs, p->n_outputs, &p->regions, &p->n_regions);
    return p->n_order < 0 ? -1 : 0;
}

/* ---- instances ---- */
static void instance_free(const lc_plan *p, instance *x)
{
    if (!x) return;
    for (int v = 0; x->shells && v < p->graph->n_values; v++)
        if (x->shells[v].cell) free(x->shells[v].cell);
    lc_storage_release(x->arena_storage);
    free(x->headers), free(x->shells), free(x->records), free(x->args), free(x->ends), free(x->numbers), free(x->seen),
        free(x->seen_storage), free(x);
}

static lc_tensor *number_of(lc_number_box *box, const lc_value *v)
{
    switch (v->tag) {
    case LC_IS_int:
        return lc_number_init_int(box, v->i);
    case LC_IS_complex:
        return lc_number_init(box, LC_c128, v->c.re, v->c.im);
    case LC_IS_bool:
        return lc_number_init(box, LC_b8, v->b, 0);
    default:
        return lc_number_init(box, LC_f64, v->f, 0);
    }
}

/* The record of a step: arguments whose tensors are the instance's shells. */
static void lay_out_record(const lc_plan *p, instance *x, const lc_step *s, lc_record *r, lc_value *args, lc_tensor **ends,
                           lc_number_box **numbers)
{
    int slot = 0;
    for (int k = 0; k < s->n_in + s->n_out; k++) ends[k] = s->in[k] >= 0 ? &x->shells[s->in[k]] : LC_NONE;
    for (int k = 0; k < s->op->args->n_params; k++) {
        args[k] = s->args[k];
        if (args[k].tag == LC_IS_tensors) args[k].ts = ends + slot, slot += args[k].n;
        else if (s->op->args->params[k].kind == LC_IS_tensor) {
            if (s->in[slot] == LC_VALUE_NUMBER) ends[slot] = number_of((*numbers)++, &args[k]);
            if (args[k].tag == LC_IS_tensor) args[k].t = ends[slot];
            slot++;
        }
    }
    *r = (lc_record){ .op = s->op,
                      .args = args,
                      .in = ends,
                      .out = ends + s->n_in,
                      .n_in = s->n_in - s->n_added,
                      .n_out = s->n_out,
                      .epilogue = s->epilogue,
                      .dtype = s->dtype,
                      .device = s->device,
                      .backend = lc_backend_of(s->device),
                      .out_given = s->out_given };
    (void)p;
}

static instance *instance_new(const lc_plan *p)
{
    const lc_graph *g = p->graph;
    instance       *x = calloc(1, sizeof *x);
    size_t          header = sizeof(lc_storage);
    if (!x) return no_memory();
    x->shells = calloc((size_t)g->n_values + 1, sizeof *x->shells);
    x->records = calloc((size_t)p->n_order + 1, sizeof *x->records);
    x->args = calloc((size_t)p->n_args + 1, sizeof *x->args);
    x->ends = calloc((size_t)p->n_ends + 1, sizeof *x->ends);
    x->numbers = aligned_alloc(16, ((size_t)p->n_numbers + 1) * sizeof *x->numbers);
    x->headers = aligned_alloc(64, ((size_t)g->n_buffers + 1) * header);
    x->seen = calloc((size_t)g->n_buffers + 1, sizeof *x->seen);
    x->seen_storage = calloc((size_t)g->n_buffers + 1, sizeof *x->seen_storage);
    x->arena_storage = lc_storage_new((lc_device){ LC_CPU, 0 }, p->arena_bytes);
    if (!x->shells || !x->records || !x->args || !x->ends || !x->numbers || !x->headers || !x->seen || !x->seen_storage ||
        !x->arena_storage)
        return instance_free(p, x), no_memory();
    x->arena = x->arena_storage->data;
    for (int b = 0; b < g->n_buffers; b++) {
        if (p->sources[b].kind != SOURCE_ARENA) continue;
        lc_storage *s = (lc_storage *)(x->headers + (size_t)b * header);
        memset(s, 0, header);
        atomic_store(&s->refs, 1 << 30);
        s->shared_fd = -1, s->bytes = g->buffers[b].bytes, s->data = x->arena + p->sources[b].offset;
        x->seen[b] = s->data, x->seen_storage[b] = s;
    }
    for (int v = 0; v < g->n_values; v++) {
        lc_tensor *t = &x->shells[v];
        *t = g->values[v].shell; /* more than LC_INLINE_DIMS dimensions: those of the graph are shared */
        if (t->ndim <= LC_INLINE_DIMS) t->shape = t->dims, t->stride = t->dims + LC_INLINE_DIMS;
        int b = g->values[v].buffer;
        if (p->sources[b].kind == SOURCE_ARENA) t->data = x->seen[b] + g->values[v].offset, t->storage = x->seen_storage[b];
    }
    lc_value      *args = x->args;
    lc_tensor    **ends = x->ends;
    lc_number_box *numbers = x->numbers;
    for (int at = 0; at < p->n_order; at++) {
        if (lc_plan_region(p, at)) continue;
        const lc_step *s = &g->steps[p->order[at]];
        lay_out_record(p, x, s, &x->records[at], args, ends, &numbers);
        if (!x->records[at].backend) return instance_free(p, x), NULL;
        args += s->op->args->n_params, ends += s->n_in + s->n_out;
    }
    return x;
}

static instance *take_instance(lc_plan *p)
{
    pthread_mutex_lock(&p->lock);
    instance *x = p->idle;
    if (x) p->idle = x->next;
    pthread_mutex_unlock(&p->lock);
    return x ? x : instance_new(p);
}
static void give_back(lc_plan *p, instance *x)
{
    pthread_mutex_lock(&p->lock);
    x->next = p->idle, p->idle = x;
    pthread_mutex_unlock(&p->lock);
}

/* ---- a run ---- */
static const lc_tensor *given(const lc_plan *p, lc_tensor *const *inputs, int b)
{
    return p->sources[b].input >= 0 ? inputs[p->sources[b].input] : p->graph->buffers[b].tensor;
}

/* The memory of what is given lies as it did in the trace: tensors that shared memory share it, and nothing that is written shares it newly. */
static bool arranged_alike(const lc_plan *p, lc_tensor *const *inputs)
{
    const lc_graph *g = p->graph;
    for (int i = 0; i < g->n_aliases; i++) {
        const lc_sharing *a = &g->aliases[i];
        const lc_buffer  *b = &g->buffers[a->buffer];
        if (p->sources[a->buffer].kind != SOURCE_GIVEN) continue;
        const lc_tensor *t = a->tensor ? a->tensor : inputs[a->input], *of = b->tensor ? b->tensor : inputs[b->input];
        if (t->storage != of->storage || t->data - of->data != a->delta) return false;
    }
    if (!p->writes_given) return true;
    for (int b = 0; b < g->n_buffers; b++) {
        if (p->sources[b].kind != SOURCE_GIVEN || p->sources[b].input < 0) continue;
        for (int c = 0; c < g->n_buffers; c++)
            if (c != b && p->sources[c].kind == SOURCE_GIVEN && given(p, inputs, c)->storage == given(p, inputs, b)->storage)
                return false;
    }
    return true;
}

static void point_shells(const lc_plan *p, instance *x, int b, char *data, lc_storage *storage)
{
    const lc_graph *g = p->graph;
    x->seen[b] = data, x->seen_storage[b] = storage;
    for (int v = g->buffers[b].first_value; v >= 0; v = g->values[v].next)
        x->shells[v].data = data + g->values[v].offset, x->shells[v].storage = storage;
}

static void prepare(const lc_plan *p, instance *x, lc_tensor *const *inputs)
{
    const lc_graph *g = p->graph;
    for (int b = 0; b < g->n_buffers; b++) {
        const source *s = &p->sources[b];
        if (s->kind == SOURCE_GIVEN) {
            const lc_tensor *t = given(p, inputs, b);
            if (x->seen[b] != t->data || x->seen_storage[b] != t->storage) point_shells(p, x, b, t->data, t->storage);
        }
    }
}

/* Memory that steps [.., at] need and do not have yet. Buffers that lie in one another's place follow each other in a list. */
static int bring(const lc_plan *p, instance *x, lc_storage **own, int *next, int at)
{
    for (; *next < p->n_own && p->sources[p->by_begin[*next]].begin <= at; ++*next) {
        int              home = p->by_begin[*next];
        const lc_buffer *b = &p->graph->buffers[home];
        if (!(own[home] = lc_storage_new(b->device, b->bytes))) return -1;
        for (int member = home; member >= 0; member = p->sources[member].next_member)
            point_shells(p, x, member, own[home]->data, own[home]);
    }
    return 0;
}
/* Memory that no step behind `at` needs goes, unless it is a result. */
static void drop(const lc_plan *p, lc_storage **own, int *next, int at)
{
    for (; *next < p->n_own && p->sources[p->by_end[*next]].end <= at; ++*next) {
        int home = p->by_end[*next];
        if (p->sources[home].kind != SOURCE_BLOCK) continue;
        lc_storage_release(own[home]);
        own[home] = NULL;
    }
}

static int run_region(const lc_region *region, instance *x)
{
    char *data[LC_FUSED_VALUES];
    for (int i = 0; i < region->n_values; i++) data[i] = region->value[i] >= 0 ? x->shells[region->value[i]].data : NULL;
    return region->fuser->run(region->fused, data);
}

static int run_step(const lc_plan *p, instance *x, int at)
{
    lc_record       *r = &x->records[at];
    const lc_region *region = lc_plan_region(p, at);
    if (region) return run_region(region, x);
    if (p->graph->steps[p->order[at]].frozen) {
        lc_record call = *r; /* a run may change its record */
        return r->op->run(&call);
    }
    lc_tensor *out[r->n_out + 1];
    memcpy(out, r->out, (size_t)r->n_out * sizeof *out);
    if ((r->out_given ? lc_call_out(r->op, r->args, out) : lc_call(r->op, r->args, out)) < 0) return -1;
    lc_release_all(out, r->n_out);
    return 0;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int run_steps(const lc_plan *p, instance *x, lc_storage **own, double *seconds)
{
    int brought = 0, dropped = 0;
    for (int at = 0; at < p->n_order; at++) {
        if (seconds) seconds[at] = -now();
        if (bring(p, x, own, &brought, at) < 0 || run_step(p, x, at) < 0) return -1;
        drop(p, own, &dropped, at);
        if (seconds) seconds[at] += now();
    }
    return bring(p, x, own, &brought, INT_MAX); /* results that no step touches */
}

/* Results: windows of fresh memory, or views of what was given. */
static lc_tensor *output_of(const lc_plan *p, instance *x, lc_tensor *const *inputs, int i)
{
    const lc_graph  *g = p->graph;
    int              v = p->outputs[i], b = g->values[v].buffer;
    const lc_tensor *shell = &x->shells[v];
    if (p->same_as[i] >= 0) return lc_retain(inputs[p->same_as[i]]);
    if (p->sources[b].kind == SOURCE_GIVEN) {
        lc_tensor *of = (lc_tensor *)given(p, inputs, b);

        return lc_tensor_view_as(of, (lc_dtype)shell->dtype, shell->ndim, shell->shape, shell->stride, g->values[v].offset);
    }
    return lc_tensor_on(x->seen_storage[b], (lc_dtype)shell->dtype, shell->ndim, shell->shape, shell->stride,
                        g->values[v].offset / lc_size_of(shell->dtype));
}

static int hold(const lc_plan *p, lc_tensor *const *inputs, lc_storage **held)
{
    int n = 0;
    for (int b = 0; b < p->graph->n_buffers; b++)
        if (p->sources[b].kind == SOURCE_GIVEN) {
            lc_storage *s = given(p, inputs, b)->storage;
            atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
            held[n++] = s;
        }
    return n;
}

bool lc_plan_fits(const lc_plan *p, lc_tensor *const *inputs, int n_inputs)
{
    return n_inputs >= p->needed && arranged_alike(p, inputs);
}

int lc_plan_run(lc_plan *p, lc_tensor *const *inputs, int n_inputs, lc_tensor **outputs)
{
    return lc_plan_time(p, inputs, n_inputs, outputs, NULL);
}

int lc_plan_time(lc_plan *p, lc_tensor *const *inputs, int n_inputs, lc_tensor **outputs, double *seconds)
{
    const lc_graph *g = p->graph;
    for (int i = 0; i < p->n_outputs; i++) outputs[i] = NULL;
    if (n_inputs < p->needed) return lc_fail_int(LC_ValueError, "a plan of %d inputs got %d", p->needed, n_inputs);
    if (!arranged_alike(p, inputs)) return 1;
    for (int b = 0; b < g->n_buffers && p->writes_given; b++)
        if (p->sources[b].kind == SOURCE_GIVEN && p->sources[b].written && given(p, inputs, b)->storage->read_only)
            return lc_fail_int(LC_LucidError, "a compiled function writes memory that is read-only");
    instance *x = take_instance(p);
    if (!x) return -1;
    LC_ARRAY(lc_storage *, own, g->n_buffers);
    LC_ARRAY(lc_storage *, held, g->n_buffers);
    if (!own || !held) return give_back(p, x), -1;
    memset(own, 0, (size_t)g->n_buffers * sizeof *own);
    int      n_held = hold(p, inputs, held);
    unsigned modes = lc_modes;
    lc_modes = 0; /* whatever modes did is part of the steps */
    lc_scope scope = lc_scope_open();
    prepare(p, x, inputs);
    int rc = run_steps(p, x, own, seconds);
    lc_scope_close(scope);
    lc_modes = modes;
    for (int i = 0; i < p->n_outputs && rc == 0; i++)
        if (!(outputs[i] = output_of(p, x, inputs, i))) rc = -1;
    for (int b = 0; b < g->n_buffers; b++) {
        lc_tensor *t =
            p->sources[b].kind == SOURCE_GIVEN && p->sources[b].written && rc == 0 ? (lc_tensor *)given(p, inputs, b) : NULL;
        if (t) lc_bump_version(t); /* frozen steps do not count; whole calls count in the storage */
        lc_storage_release(own[b]);
    }
    for (int i = 0; i < n_held; i++) lc_storage_release(held[i]);
    if (rc < 0) lc_release_all(outputs, p->n_outputs);
    give_back(p, x);
    return rc;
}

/* ---- making and ending ---- */
void lc_plan_free(lc_plan *p)
{
    if (!p) return;
    while (p->idle) {
        instance *x = p->idle;
        p->idle = x->next;
        instance_free(p, x);
    }
    if (p->graph) lc_object_release(&p->graph->object);
    pthread_mutex_destroy(&p->lock);
    lc_regions_free(p->regions, p->n_regions);
    free(p->outputs), free(p->same_as), free(p->order), free(p->sources), free(p->by_begin), free(p);
}

lc_plan *lc_plan_new(const lc_plan_request *r)
{
    lc_plan *p = calloc(1, sizeof *p);
    if (!p) return no_memory();
    pthread_mutex_init(&p->lock, NULL);
    p->graph = r->graph;
    lc_object_retain(&p->graph->object);
    p->first = r->first, p->last = r->last, p->n_inputs = r->graph->n_inputs, p->n_extra = r->n_extra_inputs,
    p->n_outputs = r->n_outputs;
    if (!(p->outputs = calloc((size_t)r->n_outputs + 1, sizeof *p->outputs))) return lc_plan_free(p), no_memory();
    memcpy(p->outputs, r->outputs, (size_t)r->n_outputs * sizeof *p->outputs);
    if (!(p->same_as = calloc((size_t)r->n_outputs + 1, sizeof *p->same_as))) return lc_plan_free(p), no_memory();
    for (int i = 0; i < r->n_outputs; i++) p->same_as[i] = r->same_as ? r->same_as[i] : -1;
    if (choose_steps(p) < 0 || lc_plan_place(p, r) < 0) return lc_plan_free(p), NULL;
    return p;
}

int lc_plan_outputs(const lc_plan *p) { return p->n_outputs; }

lc_plan_facts lc_plan_describe(const lc_plan *p)
{
    lc_plan_facts f = { .steps = p->n_order,
                        .dropped = p->last - p->first - p->n_chosen,
                        .fused_regions = p->n_regions,
                        .n_inputs = p->n_inputs + p->n_extra,
                        .arena_bytes = p->arena_bytes,
                        .made_bytes = p->made_bytes,
                        .peak_bytes = p->peak_bytes,
                        .in_place = p->n_in_place,
                        .recomputed = p->graph->n_recomputed };
    for (int i = 0; i < p->n_outputs; i++)
        f.given_outputs += p->sources[p->graph->values[p->outputs[i]].buffer].kind == SOURCE_GIVEN;
    for (int at = 0; at < p->n_order; at++) {
        const lc_region *region = lc_plan_region(p, at);
        const lc_step   *s = &p->graph->steps[region ? region->steps[0] : p->order[at]];
        if (region) f.fused_steps += region->n_steps;
        else f.frozen += s->frozen;
        f.host_steps += lc_same_device(s->device, (lc_device){ LC_CPU, 0 });
    }
    return f;
}

static void set_argument(lc_value *v, double value)
{
    if (v->tag == LC_IS_float) v->f = value;
    else if (v->tag == LC_IS_int) *v = LC_F(value);
}
int lc_plan_set_number(lc_plan *p, const char *name, int k, double value)
{
    int found = 0, args = 0;
    for (int at = 0; at < p->n_order; at++) {
        if (lc_plan_region(p, at)) continue;
        lc_step *s = &p->graph->steps[p->order[at]];
        for (int a = 0; a < s->op->args->n_params; a++) {
            if (strcmp(s->op->args->params[a].name, name) || !lc_is_number_tag(s->args[a].tag)) continue;
            if (found++ != k) continue;
            set_argument(&s->args[a], value);
            for (instance *x = p->idle; x; x = x->next) set_argument(&x->args[args + a], value);
        }
        args += s->op->args->n_params;
    }
    return found;
}

/* ---- text ---- */
static void write_value(FILE *to, const lc_plan *p, int v)
{
    static const char *const kinds[] = { "register", "given", "result", "block", "arena" };
    if (v == LC_VALUE_NONE) fprintf(to, "None");
    else if (v == LC_VALUE_NUMBER) fprintf(to, "number");
    else {
        const lc_traced_value *t = &p->graph->values[v];
        fprintf(to, "%%%d:%s %s", t->buffer, kinds[p->sources[t->buffer].kind], LC_SHAPE(&t->shell));
    }
}
static void write_step(FILE *to, const lc_plan *p, const lc_step *s, int at)
{
    if (at < 0) fprintf(to, "          ");
    else fprintf(to, "%4d  ", at);
    for (int i = 0; i < s->n_out; i++) fprintf(to, i ? ", " : ""), write_value(to, p, s->out[i]);
    fprintf(to, "%s%s(", s->n_out ? " = " : "", s->op->name);
    for (int k = 0; k < s->n_in; k++) fprintf(to, k ? ", " : ""), write_value(to, p, s->in[k]);
    fprintf(to, ")%s", s->frozen ? "" : "  as a whole call");
    for (int i = 0; s->epilogue && i < s->epilogue->n; i++)
        fprintf(to, "%s%s", i ? ", " : "  then ", lc_ops[s->epilogue->step[i].row]->name);
    fprintf(to, "\n");
}
char *lc_plan_text(const lc_plan *p)
{
    char  *text = NULL;
    size_t bytes = 0;
    FILE  *to = open_memstream(&text, &bytes);
    if (!to) return NULL;
    for (int at = 0; at < p->n_order; at++) {
        const lc_region *region = lc_plan_region(p, at);
        if (!region) write_step(to, p, &p->graph->steps[p->order[at]], at);
        else {
            fprintf(to, "%4d  fused into one pass:\n", at);
            for (int i = 0; i < region->n_steps; i++) write_step(to, p, &p->graph->steps[region->steps[i]], -1);
        }
    }
    fclose(to);
    return text;
}
