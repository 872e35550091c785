/* LeNet-5 learns handwritten digits, from C alone.
 *
 *   cc lenet.c $(python -m lucid.config --cflags --libs) && ./a.out [EPOCHS [examples/data/digits.gz [lenet.safetensors]]]
 *
 * Results of op calls belong to the innermost scope and go when it is closed: a scope per training step. NULL is a failure and passes
 * through nested calls. What is to stay is in references of our own. The weights begin as the file says, if it is there, and end there. */
#include <lucid.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { DIGITS = 1797, TESTS = DIGITS / 5, TRAINING = DIGITS - TESTS, SIDE = 32, BATCH = 32, LAYERS = 5, WEIGHTS = 2 * LAYERS };
static const double      RATE = 0.01, MOMENTUM = 0.9;
static const lc_device   CPU = { LC_CPU, 0 };
static const int64_t     SHAPES[LAYERS][4] = { { 6, 1, 5, 5 }, { 16, 6, 5, 5 }, { 120, 16, 5, 5 }, { 84, 120 }, { 10, 84 } };
static const char *const NAMES[LAYERS] = { "c1", "c3", "c5", "f6", "output" };
static lc_tensor        *weights[WEIGHTS]; /* weight and bias of each layer */
static lc_state_dict    *model;            /* the same by name, as an nn.Module names them: "c1.weight" */
static lc_optimizer     *optimizer;
static lc_tensor        *images, *labels; /* (1797, 1, 32, 32) of -1 ... 1; (1797); those for the test are the last */

static int make_weights(void) /* as PyTorch does: all of a layer within 1 / sqrt(inputs of a unit) */
{
    lc_scope scope = lc_scope_open();
    bool     made = (model = lc_state_dict_new()) != NULL;
    for (int i = 0; i < WEIGHTS && made; i++) {
        const int64_t *shape = SHAPES[i / 2];
        int            ndim = i % 2 ? 1 : shape[2] ? 4 : 2;
        double         bound = 1 / sqrt((double)(shape[1] * (shape[2] ? shape[2] * shape[3] : 1)));
        char           name[32];
        snprintf(name, sizeof name, "%s.%s", NAMES[i / 2], i % 2 ? "bias" : "weight");
        weights[i] = lc_tensor_new(LC_f32, CPU, ndim, shape);
        made = weights[i] && lc_uniform_(weights[i], -bound, bound, NULL) && lc_set_requires_grad(weights[i], true) == 0;
        made = made && lc_state_dict_add(model, name, weights[i]) == 0;
    }
    lc_scope_close(scope);
    optimizer = made ? lc_optimizer_new(LC_SGD, weights, WEIGHTS, RATE) : NULL;
    if (optimizer) optimizer->momentum = MOMENTUM;
    return optimizer ? 0 : -1;
}

static int load_weights(const char *path)
{
    lc_state_dict *saved = lc_load_safetensors(path);
    int            status = saved ? lc_state_dict_copy(model, saved) : -1;
    lc_state_dict_free(saved);
    return status;
}

static lc_tensor *convolved(lc_tensor *x, int layer)
{
    const int64_t one[] = { 1, 1 }, none[] = { 0, 0 };
    return lc_tanh(lc_conv2d(x, weights[2 * layer], weights[2 * layer + 1], one, 2, none, 2, one, 2, 1));
}

static lc_tensor *pooled(lc_tensor *x)
{
    const int64_t two[] = { 2, 2 }, none[] = { 0, 0 };
    return lc_avg_pool2d(x, two, 2, two, 2, none, 2, false, true, LC_ABSENT);
}

static lc_tensor *network(lc_tensor *x) /* (n, 1, 32, 32) -> scores (n, 10) */
{
    x = pooled(convolved(pooled(convolved(x, 0)), 1));
    x = lc_flatten(convolved(x, 2), 1, -1);
    return lc_linear(lc_tanh(lc_linear(x, weights[6], weights[7])), weights[8], weights[9]);
}

static int train_once(lc_tensor *order, int64_t start, double *loss)
{
    lc_scope   scope = lc_scope_open();
    lc_tensor *batch = lc_narrow(order, 0, start, BATCH);
    lc_tensor *scores = network(lc_index_select(images, 0, batch)), *truth = lc_index_select(labels, 0, batch);
    lc_tensor *mean = lc_cross_entropy(scores, truth, LC_NONE, LC_ABSENT, -100, LC_ABSENT, "mean", 0);
    lc_optimizer_zero_grad(optimizer);
    int status = mean ? lc_backward(mean, LC_NONE, false, false) : -1;
    if (status == 0) status = lc_optimizer_step(optimizer);
    if (status == 0) *loss += *(float *)mean->data;
    lc_scope_close(scope);
    return status;
}

static int count_right(void) /* of the digits it has not learnt; -1 on failure */
{
    lc_scope scope = lc_scope_open();
    lc_modes |= LC_NO_GRAD;
    lc_tensor *said = lc_argmax(network(lc_narrow(images, 0, TRAINING, TESTS)), LC_I(1), false);
    lc_tensor *right = lc_sum(lc_eq(said, lc_narrow(labels, 0, TRAINING, TESTS)), NULL, 0, false);
    lc_modes &= ~(unsigned)LC_NO_GRAD;
    int n = right ? (int)*(int64_t *)right->data : -1;
    lc_scope_close(scope);
    return n;
}

static int train_epoch(int epoch) /* how many of the test are read right then */
{
    lc_scope   scope = lc_scope_open();
    lc_tensor *order = lc_randperm(TRAINING, LC_ABSENT, LC_ABSENT, NULL);
    double     loss = 0;
    int        status = order ? 0 : -1;
    for (int64_t at = 0; status == 0 && at + BATCH <= TRAINING; at += BATCH) status = train_once(order, at, &loss);
    int right = status == 0 ? count_right() : -1;
    lc_scope_close(scope);
    loss *= (double)BATCH / TRAINING;
    if (right >= 0) printf("epoch %2d  loss %.4f  test accuracy %.1f %%\n", epoch, loss, 100.0 * right / TESTS);
    return right;
}

static int load_digits(const char *path)
{
    static unsigned char raw[DIGITS][65]; /* the label, then 8x8 pixels of 0 ... 16 */
    const int64_t        shape[] = { DIGITS, 1, 8, 8 };
    char                 command[4096];
    snprintf(command, sizeof command, "gzip -dc '%s'", path);
    FILE  *pipe = popen(command, "r");
    size_t n = pipe ? fread(raw, sizeof raw[0], DIGITS, pipe) : 0;
    if (!pipe || pclose(pipe) != 0 || n != DIGITS) return lc_fail_int(LC_ValueError, "cannot read %s", path);

    lc_scope   scope = lc_scope_open();
    lc_tensor *small = lc_scoped(lc_tensor_new(LC_f32, CPU, 4, shape));
    labels = lc_tensor_new(LC_i64, CPU, 1, shape);
    for (int i = 0; small && labels && i < DIGITS; i++) {
        int to = i % 5 == 4 ? TRAINING + i / 5 : i - i / 5; /* every fifth is for the test */
        ((int64_t *)labels->data)[to] = raw[i][0];
        for (int k = 0; k < 64; k++) ((float *)small->data)[64 * to + k] = (float)raw[i][1 + k] / 8 - 1;
    }
    lc_tensor *large = lc_interpolate(small, LC_I(SIDE), LC_ABSENT, "bilinear", LC_ABSENT, LC_ABSENT, false);
    images = large ? lc_retain(large) : NULL;
    lc_scope_close(scope);
    return images && labels ? 0 : -1;
}

int main(int argc, char **argv)
{
    int         epochs = argc > 1 ? atoi(argv[1]) : 10, right = 0;
    const char *kept = argc > 3 ? argv[3] : NULL;
    lc_generator_seed(lc_generator_default(), 0);
    int status = load_digits(argc > 2 ? argv[2] : "examples/data/digits.gz");
    if (status == 0) status = make_weights();
    if (status == 0 && kept && access(kept, F_OK) == 0) status = load_weights(kept);
    if (status == 0) status = (right = count_right()) < 0 ? -1 : 0;
    for (int i = 1; status == 0 && i <= epochs; i++) status = (right = train_epoch(i)) < 0 ? -1 : 0;
    if (status == 0 && kept) status = lc_save_safetensors(model, kept);
    if (status < 0) fprintf(stderr, "error: %s\n", lc_error());
    lc_optimizer_free(optimizer), lc_state_dict_free(model), lc_release_all(weights, WEIGHTS);
    lc_release(images), lc_release(labels);
    if (lc_live_blocks() != 0) return printf("%ld blocks leaked\n", lc_live_blocks()), 1;
    return status == 0 && right > 0.9 * TESTS ? 0 : 1;
}
