/* Autograd from C: hooks, gradients for some tensors, views written in place, long chains, and every allocation failing in turn. */
#include "../../engine/include/lucid.h"
#include "check.h"
#include <string.h>

static double    *values(lc_tensor *t) { return (double *)t->data; }
static lc_tensor *total(lc_tensor *t) { return lc_sum(t, NULL, 0, false); }

static lc_tensor *leaf_of(double first, double second) /* scoped */
{
    lc_tensor *t = lc_scoped(lc_tensor_new(LC_f64, (lc_device){ .kind = LC_CPU }, 1, (int64_t[]){ 2 }));
    if (!t) return NULL;
    values(t)[0] = first, values(t)[1] = second;
    return lc_set_requires_grad(t, true) == 0 ? t : NULL;
}

static bool holds(const lc_tensor *t, double first, double second)
{
    return t && t != LC_NONE && ((double *)t->data)[0] == first && ((double *)t->data)[1] == second;
}

/* --- hooks ---------------------------------------------------------------------------------------------------------------------- */

static int  calls, dropped;
static void hook_drop(lc_object *object)
{
    dropped++;
    lc_free(object, sizeof(lc_foreign));
}
static lc_tensor *doubling(UNUSED void *payload, lc_tensor *g)
{
    calls++;
    lc_scope   scope = lc_scope_open();
    lc_tensor *made = lc_mul(g, LC_NUMBER(2));
    if (made) lc_retain(made);
    lc_scope_close(scope);
    return made;
}
static lc_tensor *running_backward(void *payload, UNUSED lc_tensor *g) /* over nodes that wait in the outer run */
{
    lc_tensor *root = payload;
    calls++;
    if (calls == 1 && lc_backward(root, LC_NONE, true, false) < 0) return NULL;
    return lc_retain(LC_NONE);
}
static lc_foreign *hook_of(lc_tensor *(*hook)(void *, lc_tensor *), void *payload)
{
    lc_foreign *f = lc_alloc(sizeof *f);
    if (f) *f = (lc_foreign){ .object = { 1, hook_drop }, .hook = hook, .payload = payload };
    return f;
}

static void test_hooks(void)
{
    lc_scope   scope = lc_scope_open();
    lc_tensor *x = leaf_of(1, 2), *y = lc_mul(x, x), *loss = total(y);
    calls = dropped = 0;
    lc_hook *on_y = lc_hook_add(y, LC_HOOK_GRAD, hook_of(doubling, NULL)),
            *on_x = lc_hook_add(x, LC_HOOK_GRAD, hook_of(doubling, NULL));
    CHECK(on_x && on_y && on_x->id != on_y->id);
    CHECK(lc_backward(loss, LC_NONE, true, false) == 0);
    CHECK(calls == 2 && holds(x->grad, 8, 16)); /* the leaf's hook saw the sum of both edges, once */
    lc_hook_remove(on_y);
    CHECK(dropped == 1);
    CHECK(lc_backward(loss, LC_NONE, false, false) == 0 && calls == 3 && holds(x->grad, 12, 24));
    lc_object_release(&on_x->object), lc_object_release(&on_y->object);
    CHECK(!lc_hook_add(lc_scoped(lc_detach_alias(x)), LC_HOOK_GRAD, hook_of(doubling, NULL)) && dropped == 2);
    lc_scope_close(scope);
    CHECK(dropped == 3);
}

static void test_backward_inside_a_hook(void)
{
    lc_scope   scope = lc_scope_open();
    lc_tensor *x = leaf_of(1, 2), *a = lc_mul(x, LC_NUMBER(2)), *b = lc_mul(a, LC_NUMBER(3)), *c = lc_mul(a, LC_NUMBER(5));
    lc_tensor *loss = total(lc_add(b, c));
    calls = 0;
    lc_hook *hook = lc_hook_add(c, LC_HOOK_GRAD, hook_of(running_backward, loss));
    CHECK(hook && lc_backward(loss, LC_NONE, true, false) == 0);
    CHECK(calls == 2 && holds(x->grad, 32, 32)); /* 16 from each run: neither took the other's gradients */
    lc_object_release(&hook->object);
    lc_scope_close(scope);
}

/* --- some tensors only ------------------------------------------------------------------------------------------------------------ */

static void test_captured(void)
{
    lc_scope   scope = lc_scope_open();
    lc_tensor *x = leaf_of(1, 2), *w = leaf_of(3, 4), *unused = leaf_of(0, 0), *h = lc_mul(x, w), *loss = total(lc_mul(h, h));
    lc_tensor *got[3], *none = LC_NONE;
    CHECK(lc_backward_all(&loss, &none, 1, (lc_tensor *[]){ h, w, unused }, 3, got, false, false) == 0);
    CHECK(holds(got[0], 6, 16) && holds(got[1], 6, 32) && got[2] == LC_NONE && !x->grad && !w->grad);
    lc_release(got[0]), lc_release(got[1]);
    CHECK(lc_backward_all(&loss, &none, 1, &w, 1, got, false, false) < 0 && !got[0] && strstr(lc_error(), "a second time"));
    lc_scope_close(scope);
}

static void test_second_derivative(void)
{
    lc_scope   scope = lc_scope_open();
    lc_tensor *x = leaf_of(1, 2), *loss = total(lc_mul(lc_mul(x, x), x)), *first, *second, *none = LC_NONE;
    CHECK(lc_backward_all(&loss, &none, 1, &x, 1, &first, true, true) == 0 && holds(first, 3, 12));
    loss = total(lc_scoped(first));
    CHECK(lc_backward_all(&loss, &none, 1, &x, 1, &second, false, false) == 0 && holds(second, 6, 12));
    lc_release(second);
    lc_scope_close(scope);
}

/* --- in place --------------------------------------------------------------------------------------------------------------------- */

static void test_written_views(void)
{
    lc_scope   scope = lc_scope_open();
    lc_tensor *x = leaf_of(1, 2), *y = lc_mul(x, LC_NUMBER(3)), *early = lc_select(y, 0, 1);
    CHECK(lc_mul_(lc_select(y, 0, 0), LC_NUMBER(10)));
    int  failed;
    char name[64];
    CHECK(lc_node_name(lc_grad_fn(y, &failed), name, sizeof name) && !strcmp(name, "CopySlices"));
    CHECK(lc_node_name(lc_grad_fn(early, &failed), name, sizeof name) && !strcmp(name, "AsStridedBackward0"));
    CHECK(lc_backward(total(lc_mul(y, early)), LC_NONE, false, false) == 0);
    CHECK(holds(x->grad, 30 * 6, 3 * 30 + 2 * 3 * 6)); /* y = (30 x0, 3 x1); sum(y) y1 = 90 x0 x1 + 9 x1^2 */
    CHECK(!lc_add_(x, LC_NUMBER(1)) && strstr(lc_error(), "a leaf Variable"));
    lc_tensor *z = lc_exp(x);
    CHECK(lc_add_(z, LC_NUMBER(1)));
    CHECK(lc_backward(total(z), LC_NONE, false, false) < 0 && lc_error_last_kind() == LC_VersionMismatch);
    lc_scope_close(scope);
}

static void test_retained(void)
{
    lc_scope   scope = lc_scope_open();
    lc_tensor *x = leaf_of(1, 2), *y = lc_mul(x, x), *loss = total(lc_mul(y, y));
    CHECK(lc_retain_grad(y) == 0 && lc_backward(loss, LC_NONE, false, false) == 0);
    CHECK(holds(y->grad, 2, 8) && holds(x->grad, 4, 32));
    lc_scope_close(scope);
}

/* --- size ------------------------------------------------------------------------------------------------------------------------- */

static lc_tensor *plus_one(lc_tensor *t) /* takes the reference, returns a new one */
{
    lc_scope   scope = lc_scope_open();
    lc_tensor *next = lc_add(t, LC_NUMBER(1));
    CHECK(next);
    lc_retain(next);
    lc_scope_close(scope);
    lc_release(t);
    return next;
}

static void test_long_chain(void)
{
    lc_scope   scope = lc_scope_open();
    lc_tensor *x = leaf_of(1, 2);
    for (int backward = 0; backward < 2; backward++) {
        lc_tensor *y = lc_retain(x);
        for (int i = 0; i < 200000; i++) y = plus_one(y);
        lc_scope inner = lc_scope_open();
        if (backward) CHECK(lc_backward(total(y), LC_NONE, false, false) == 0 && holds(x->grad, 1, 1));
        lc_scope_close(inner);
        lc_release(y);
    }
    lc_scope_close(scope);
}

/* --- memory that runs out: every allocation fails in turn; an error each time, never a wrong result, never a leak ------------------ */

static int everything(void) /* 0, or -1 after an error */
{
    lc_tensor *x = leaf_of(1, 2), *y, *got[2], *loss, *none = LC_NONE;
    if (!x || !(y = lc_mul(x, x)) || lc_retain_grad(y) < 0) return -1;
    if (!lc_mul_(lc_select(y, 0, 0), LC_NUMBER(10)) || !(loss = total(lc_mul(y, y)))) return -1;
    lc_foreign *callee = hook_of(doubling, NULL);
    lc_hook    *hook = callee ? lc_hook_add(y, LC_HOOK_GRAD, callee) : NULL;
    if (!hook) return -1;
    lc_object_release(&hook->object);
    if (lc_backward_all(&loss, &none, 1, (lc_tensor *[]){ x, y }, 2, got, true, true) < 0) return -1;
    loss = total(lc_scoped(got[0]));
    lc_scoped(got[1]);
    return loss && lc_backward(loss, LC_NONE, false, false) == 0 && x->grad && y->grad ? 0 : -1;
}

static void test_any_allocation_may_fail(void)
{
    lc_scope warm = lc_scope_open();
    CHECK(everything() == 0);
    lc_scope_close(warm);
    long before = lc_live_blocks(), n = 1;
    for (int rc = -1; rc < 0; n++) {
        lc_scope scope = lc_scope_open();
        lc_alloc_fail_at = n;
        rc = everything();
        lc_alloc_fail_at = 0;
        if (rc < 0) CHECK(lc_error_last_kind() == LC_OutOfMemory);
        lc_scope_close(scope);
        CHECK(lc_live_blocks() == before);
        CHECK(n < 5000);
    }
    CHECK(n > 50);
}

int main(void)
{
    long before = lc_live_blocks();
    test_hooks();
    test_backward_inside_a_hook();
    test_captured();
    test_second_derivative();
    test_written_views();
    test_retained();
    test_long_chain();
    test_any_allocation_may_fail();
    CHECK(lc_live_blocks() == before);
    printf("autograd tests passed\n");
    return 0;
}
