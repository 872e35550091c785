/* Threads: four do forward work on shared tensors and run one compiled plan, four run backward passes of their own into one shared
 * leaf, all at once.
 * What they compute is compared bit by bit with what one thread computes alone. Run under ThreadSanitizer (make tsan): under
 * Python's lock it would see nothing. */
#include "../../engine/include/lucid.h"
#include "../../engine/jit/plan.h"
#include "../../engine/jit/trace.h"
#include "check.h"
#include <math.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 60, SIDE = 48, LARGE = 1 << 17, LARGE_EVERY = 20 };

static lc_tensor *matrix, *large, *leaf, *doubled; /* shared; leaf requires grad, doubled = 2 leaf is recorded */
static lc_tensor *forward_result, *large_result, *own_gradient;
static lc_plan   *plan; /* of planned(), with an arena for each thread that is in it */

static double    *values(lc_tensor *t) { return (double *)t->data; }
static lc_tensor *total(lc_tensor *t) { return lc_sum(t, NULL, 0, false); }
static bool       same_values(lc_tensor *a, lc_tensor *b)
{
    return a && b && lc_same_shape(a, b) && memcmp(a->data, b->data, (size_t)a->numel * sizeof(double)) == 0;
}

static lc_tensor *waves(int ndim, const int64_t *shape, double start) /* new reference */
{
    lc_tensor *t = lc_tensor_new(LC_f64, (lc_device){ .kind = LC_CPU }, ndim, shape);
    CHECK(t);
    for (int64_t i = 0; i < t->numel; i++) values(t)[i] = sin(start + 0.37 * (double)i);
    return t;
}

/* Products, views of shared tensors, strided and broadcast operands, reductions, scans, an own tensor written in place, a list. */
static lc_tensor *forward(void)
{
    lc_tensor *transposed = lc_transpose(matrix, 0, 1), *row = lc_select(matrix, 0, 3);
    lc_tensor *product = lc_matmul(lc_add(matrix, row), transposed);
    lc_add_(product, lc_softmax(transposed, 1, LC_ABSENT));
    lc_mul_(lc_select(product, 1, 2), lc_mean(lc_cumsum(matrix, 0, LC_ABSENT), (int64_t[]){ 1 }, 1, false));
    return lc_cat((lc_tensor *[]){ lc_tanh(product), lc_mul(transposed, LC_NUMBER(0.5)) }, 2, 1);
}

/* Worth several threads: elementwise, and a sum in slices. */
static lc_tensor *large_forward(void) { return lc_mul(lc_add(large, large), lc_sum(lc_tanh(large), NULL, 0, true)); }

/* One stream for all: what a thread gets depends on the others, that it is whole does not. */
static void draw(void)
{
    lc_tensor *t = lc_rand((int64_t[]){ 500 }, 1, LC_OF_DTYPE(LC_f64), LC_ABSENT, NULL);
    CHECK(t);
    for (int64_t i = 0; i < t->numel; i++) CHECK(values(t)[i] >= 0 && values(t)[i] < 1);
}

/* A product, rows that can be fused, a reduction; memory of its own and the shared matrix. */
static lc_tensor *planned(lc_tensor *x)
{
    lc_tensor *y = lc_tanh(lc_add(lc_mul(lc_matmul(x, matrix), LC_NUMBER(0.5)), x));
    return lc_div(y, lc_sum(lc_abs(y), (int64_t[]){ 1 }, 1, true));
}
static lc_plan *plan_of(lc_tensor *x)
{
    lc_scope scope = lc_scope_open();
    CHECK(lc_trace_begin(&x, 1) == 0);
    lc_tensor *y = planned(x);
    lc_graph  *graph = lc_trace_end();
    CHECK(y && graph);
    int             result = lc_trace_value_of(graph, y);
    lc_plan_request request = { .graph = graph, .last = graph->n_steps, .outputs = &result, .n_outputs = 1 };
    lc_plan        *made = lc_plan_new(&request);
    lc_object_release(&graph->object);
    lc_scope_close(scope);
    CHECK(made);
    return made;
}
static void run_plan(int i)
{
    lc_tensor *x = waves(2, (int64_t[]){ SIDE, SIDE }, i), *y = NULL;
    CHECK(lc_plan_run(plan, &x, 1, &y) == 0 && same_values(y, planned(x)));
    lc_release(x), lc_release(y);
}

static void *do_forward(UNUSED void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        lc_scope scope = lc_scope_open();
        run_plan(i);
        CHECK(same_values(forward(), forward_result));
        draw();
        if (i % LARGE_EVERY == 0) CHECK(same_values(large_forward(), large_result));
        lc_scope_close(scope);
    }
    return NULL;
}

/* loss = sum(tanh(w @ matrix) * w) + sum(leaf * 3) + sum(doubled): w is this thread's, the rest is everybody's. */
static void backward_into(lc_tensor *w)
{
    lc_scope   scope = lc_scope_open();
    lc_tensor *loss = total(lc_mul(lc_tanh(lc_matmul(w, matrix)), w));
    loss = lc_add(lc_add(loss, total(lc_mul(leaf, LC_NUMBER(3)))), total(doubled));
    CHECK(loss && lc_backward(loss, LC_NONE, true, false) == 0);
    lc_scope_close(scope);
}

static lc_tensor *own_leaf(void) /* new reference */
{
    lc_tensor *w = waves(2, (int64_t[]){ SIDE, SIDE }, 2);
    CHECK(lc_set_requires_grad(w, true) == 0);
    return w;
}

static void *do_backward(UNUSED void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        lc_tensor *w = own_leaf();
        backward_into(w);
        CHECK(same_values(w->grad, own_gradient));
        lc_release(w);
    }
    return NULL;
}

static void prepare(void)
{
    matrix = waves(2, (int64_t[]){ SIDE, SIDE }, 1);
    large = waves(1, (int64_t[]){ LARGE }, 0);
    leaf = waves(1, (int64_t[]){ SIDE }, 5);
    CHECK(lc_set_requires_grad(leaf, true) == 0);
    lc_tensor *traced = waves(2, (int64_t[]){ SIDE, SIDE }, 3);
    plan = plan_of(traced);
    lc_release(traced);
    lc_scope scope = lc_scope_open();
    CHECK((forward_result = forward()) && (large_result = large_forward()) && (doubled = lc_mul(leaf, LC_NUMBER(2))));
    lc_retain(forward_result), lc_retain(large_result), lc_retain(doubled);
    lc_scope_close(scope);
    lc_tensor *w = own_leaf();
    backward_into(w);
    CHECK(w->grad && isfinite(values(w->grad)[0]) && values(w->grad)[0] != 0);
    own_gradient = lc_retain(w->grad);
    lc_release(w);
}

int main(void)
{
    long before = lc_live_blocks();
    lc_set_num_threads(3);
    prepare();
    pthread_t thread[2 * THREADS];
    for (int i = 0; i < 2 * THREADS; i++) CHECK(pthread_create(&thread[i], NULL, i % 2 ? do_forward : do_backward, NULL) == 0);
    for (int i = 0; i < 2 * THREADS; i++) CHECK(pthread_join(thread[i], NULL) == 0);
    for (int64_t i = 0; i < leaf->numel; i++)
        CHECK(values(leaf->grad)[i] == (3.0 + 2.0) * (1 + THREADS * ROUNDS)); /* none was lost */
    lc_plan_free(plan);
    lc_release_all((lc_tensor *[]){ matrix, large, leaf, doubled, forward_result, large_result, own_gradient }, 7);
    CHECK(lc_live_blocks() == before);
    printf("thread tests passed\n");
    return 0;
}
