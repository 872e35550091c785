/* Threads that multiply at once without Python's lock: one plan of cuBLASLt, a bias of each thread's own, each on the stream that
 * it has. A bias of another thread shows in the sums. Prints "right". */
#include <lucid.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, ROUNDS = 200, ROWS = 16, FEATURES = 24, DEPTH = 8 };
static pthread_barrier_t start;
static int               wrong;

static lc_tensor *on_device(int64_t rows, int64_t cols, double number)
{
    lc_tensor *t = lc_full((int64_t[]){ rows, cols }, 2, LC_NUMBER(number), LC_OF_DTYPE(LC_f16), LC_ABSENT);
    lc_value   cuda = { .tag = LC_IS_device, .dev = { .kind = LC_CUDA, .index = 0 } };
    return t ? lc_to_device(t, cuda, LC_ABSENT, false, false, LC_ABSENT) : NULL;
}
static void *work(void *number)
{
    double     bias = (double)(intptr_t)number;
    lc_value   cpu = { .tag = LC_IS_device, .dev = { .kind = LC_CPU } };
    lc_scope   all = lc_scope_open();
    lc_tensor *x = on_device(ROWS, DEPTH, 1), *w = on_device(FEATURES, DEPTH, 2), *b = on_device(1, FEATURES, bias);
    b = b ? lc_select(b, 0, 0) : NULL;
    pthread_barrier_wait(&start);
    for (int i = 0; i < ROUNDS && !wrong; i++) {
        lc_scope   scope = lc_scope_open();
        lc_tensor *y = b ? lc_linear(x, w, b) : NULL, *sum = NULL;
        if (y) y = lc_to_device(y, cpu, LC_OF_DTYPE(LC_f64), false, false, LC_ABSENT);
        if (y) sum = lc_sum(y, NULL, 0, false);
        if (!sum || *(double *)sum->data != (2 * DEPTH + bias) * ROWS * FEATURES) {
            printf("thread %g: %s, %g\n", bias, sum ? "wrong" : lc_error(), sum ? *(double *)sum->data : 0);
            wrong = 1;
        }
        lc_scope_close(scope);
    }
    return lc_scope_close(all), NULL;
}
int main(void)
{
    pthread_t thread[THREADS];
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, work, (void *)(intptr_t)(i + 1)) != 0) return 1;
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    if (!wrong) printf("right\n");
    return wrong;
}
