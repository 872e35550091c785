/* Fit a line by gradient descent, from C alone: y = slope * x + offset through noisy points.
 *
 *   cc regression.c $(python -m lucid.config --cflags --libs) && ./a.out
 *
 * Results of op calls (lc_mul, lc_mean, ...) belong to the innermost scope and go when it is closed; what is to stay is retained.
 * NULL is a failure and passes through nested calls, so one check at the end of a formula is enough. */
#include <lucid.h>
#include <math.h>
#include <stdio.h>

enum { POINTS = 200, STEPS = 300 };
static const double SLOPE = 1.5, OFFSET = -0.5, NOISE = 0.1, RATE = 0.1;

static int fail(void)
{
    fprintf(stderr, "error: %s\n", lc_error());
    return 1;
}

static void make_points(float *x, float *y) /* POINTS each; a little sine stands for noise */
{
    for (int i = 0; i < POINTS; i++) {
        x[i] = (float)(4.0 * i / POINTS - 2.0);
        y[i] = (float)(SLOPE * x[i] + OFFSET + NOISE * sin(37.0 * i));
    }
}

static lc_tensor *parameter(void) /* one number that wants a gradient; a reference of our own */
{
    lc_tensor *p = lc_tensor_new(LC_f32, (lc_device){ LC_CPU, 0 }, 0, NULL);
    if (!p) return NULL;
    *(float *)p->data = 0;
    if (lc_set_requires_grad(p, true) == 0) return p;
    lc_release(p);
    return NULL;
}

static int step(lc_tensor *p) /* p -= RATE * p.grad, not recorded; and forget the gradient */
{
    lc_modes |= LC_NO_GRAD;
    lc_tensor *moved = lc_sub_(p, lc_mul(p->grad, LC_NUMBER(RATE)));
    lc_modes &= ~(unsigned)LC_NO_GRAD;
    lc_release(p->grad);
    p->grad = NULL;
    return moved ? 0 : -1;
}

static int train_once(lc_tensor *x, lc_tensor *y, lc_tensor *slope, lc_tensor *offset, float *loss)
{
    lc_scope   scope = lc_scope_open();
    lc_tensor *off_by = lc_sub(lc_add(lc_mul(x, slope), offset), y);
    lc_tensor *mean = lc_mean(lc_mul(off_by, off_by), NULL, 0, false);
    int        status = mean ? lc_backward(mean, LC_NONE, false, false) : -1;
    if (status == 0) status = step(slope);
    if (status == 0) status = step(offset);
    if (status == 0) *loss = *(float *)mean->data;
    lc_scope_close(scope);
    return status;
}

static int fit(lc_tensor *x, lc_tensor *y, lc_tensor *slope, lc_tensor *offset)
{
    float loss = 0;
    make_points((float *)x->data, (float *)y->data);
    for (int i = 0; i < STEPS; i++)
        if (train_once(x, y, slope, offset, &loss) < 0) return fail();
    float a = *(float *)slope->data, b = *(float *)offset->data;
    printf("y = %.3f x + %.3f, mean squared error %.5f after %d steps\n", a, b, loss, STEPS);
    return fabs(a - SLOPE) < 0.02 && fabs(b - OFFSET) < 0.02 ? 0 : 1;
}

int main(void)
{
    const int64_t shape[] = { POINTS };
    lc_device     cpu = { LC_CPU, 0 };
    lc_tensor *t[] = { lc_tensor_new(LC_f32, cpu, 1, shape), lc_tensor_new(LC_f32, cpu, 1, shape), parameter(), parameter() };
    int        status = t[0] && t[1] && t[2] && t[3] ? fit(t[0], t[1], t[2], t[3]) : fail();
    lc_release_all(t, 4);
    if (status == 0 && lc_live_blocks() != 0) return printf("%ld blocks leaked\n", lc_live_blocks()), 1;
    return status;
}
