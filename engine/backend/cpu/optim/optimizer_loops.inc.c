/* The loops for one element type. T, NAME, SQRT and ABS are set, and unset at the end. `const bool` parameters are known at
 * compile time: they say which states exist. Other choices are conditions that are the same for all elements: a blend each,
 * which is cheap beside a division. */

/* lerp: moves x towards `to` by the share w, from the nearer end. */
INLINE T NAME(towards)(T x, T to, T w) { return w < (T)0.5 ? x + w * (to - x) : to - (to - x) * (1 - w); }
INLINE T NAME(larger)(T a, T b) { return b > a || b != b ? b : a; } /* NaN wins */

#define START                                                                                                                  \
    T *restrict p = x[0];                                                                                                      \
    const T *restrict grad = x[1];                                                                                             \
    const T    sign = (T)c->sign, decay = (T)c->decay, lr = (T)c->lr;                                                          \
    const bool l2 = variant & LC_STEP_L2
#define EACH     INDEPENDENT for (int64_t i = 0; i < n; i++)
#define GRADIENT (l2 ? sign * grad[i] + decay * p[i] : sign * grad[i])

/* ---- momentum alone ---- */
INLINE void NAME(sgd_body)(void *const *x, const lc_step_numbers *c, unsigned variant, int64_t n, const bool momentum)
{
    START;
    T *restrict buf = x[2];
    const T    keep = (T)c->beta1, share = (T)c->beta2;
    const bool first = variant & LC_STEP_FIRST, nesterov = variant & LC_STEP_NESTEROV;
    EACH
    {
        T g = GRADIENT;
        if (momentum) {
            T b = first ? g : buf[i] * keep + share * g;
            buf[i] = b;
            g = nesterov ? g + keep * b : b;
        }
        p[i] -= lr * g;
    }
}
static void NAME(sgd)(void *const *x, const lc_step_numbers *c, unsigned variant, int64_t n)
{
    if (variant & LC_STEP_MOMENTUM) NAME(sgd_body)(x, c, variant, n, true);
    else NAME(sgd_body)(x, c, variant, n, false);
}

/* ---- first and second moments ---- */
#define MOMENTS                                                                                                                \
    START;                                                                                                                     \
    T *restrict m = x[2];                                                                                                      \
    T *restrict v = x[3];                                                                                                      \
    const T share = (T)(1 - c->beta1), keep = (T)c->beta2, rest = (T)(1 - c->beta2), eps = (T)c->eps, shrink = (T)c->shrink,   \
            scale = (T)c->scale
#define MOVE_MOMENTS                                                                                                           \
    T g = GRADIENT, first = NAME(towards)(m[i], g, share), second = v[i] * keep + rest * g * g;                                \
    m[i] = first, v[i] = second

INLINE void NAME(adam_body)(void *const *x, const lc_step_numbers *c, unsigned variant, int64_t n, const bool amsgrad)
{
    MOMENTS;
    T *restrict largest = x[4];
    EACH
    {
        MOVE_MOMENTS;
        if (amsgrad) largest[i] = second = NAME(larger)(largest[i], second);
        p[i] = p[i] * shrink - lr * first / (SQRT(second) * scale + eps);
    }
}
static void NAME(adam)(void *const *x, const lc_step_numbers *c, unsigned variant, int64_t n)
{
    if (variant & LC_STEP_AMSGRAD) NAME(adam_body)(x, c, variant, n, true);
    else NAME(adam_body)(x, c, variant, n, false);
}

static void NAME(nadam)(void *const *x, const lc_step_numbers *c, unsigned variant, int64_t n)
{
    MOMENTS;
    const T ahead = (T)c->extra;
    EACH
    {
        MOVE_MOMENTS;
        p[i] = p[i] * shrink - (lr * g + ahead * first) / (SQRT(second * scale) + eps);
    }
}

static void NAME(radam)(void *const *x, const lc_step_numbers *c, unsigned variant, int64_t n)
{
    MOMENTS;
    const bool rectified = variant & LC_STEP_RECTIFIED;
    EACH
    {
        MOVE_MOMENTS;
        T moved = lr * first;
        p[i] = p[i] * shrink - (rectified ? moved * scale / (SQRT(second) + eps) : moved);
    }
}

static void NAME(adamax)(void *const *x, const lc_step_numbers *c, unsigned variant, int64_t n)
{
    START;
    T *restrict m = x[2];
    T *restrict most = x[3];
    const T share = (T)(1 - c->beta1), keep = (T)c->beta2, eps = (T)c->eps;
    EACH
    {
        T g = GRADIENT, first = NAME(towards)(m[i], g, share), norm = NAME(larger)(most[i] * keep, ABS(g) + eps);
        m[i] = first, most[i] = norm;
        p[i] -= lr * first / norm;
    }
}

/* ---- second moments alone ---- */
static void NAME(adagrad)(void *const *x, const lc_step_numbers *c, unsigned variant, int64_t n)
{
    START;
    T *restrict sum = x[2];
    const T eps = (T)c->eps;
    EACH
    {
        T g = GRADIENT, s = sum[i] + g * g;
        sum[i] = s;
        p[i] -= lr * g / (SQRT(s) + eps);
    }
}

INLINE void NAME(rmsprop_body)(void *const *x, const lc_step_numbers *c, unsigned variant, int64_t n, const bool centered,
                               const bool momentum)
{
    START;
    T *restrict v = x[2];
    T *restrict mean = x[3];
    T *restrict buf = x[4];
    const T keep = (T)c->beta1, rest = (T)(1 - c->beta1), push = (T)c->beta2, eps = (T)c->eps;
    EACH
    {
        T g = GRADIENT, second = v[i] * keep + rest * g * g, variance = second;
        v[i] = second;
        if (centered) {
            T average = NAME(towards)(mean[i], g, rest);
            mean[i] = average;
            variance = second - average * average;
        }
        T moved = g / (SQRT(variance) + eps);
        if (momentum) buf[i] = moved = buf[i] * push + moved;
        p[i] -= lr * moved;
    }
}
static void NAME(rmsprop)(void *const *x, const lc_step_numbers *c, unsigned variant, int64_t n)
{
    bool momentum = variant & LC_STEP_MOMENTUM;
    if (variant & LC_STEP_CENTERED) {
        if (momentum) NAME(rmsprop_body)(x, c, variant, n, true, true);
        else NAME(rmsprop_body)(x, c, variant, n, true, false);
    } else if (momentum) NAME(rmsprop_body)(x, c, variant, n, false, true);
    else NAME(rmsprop_body)(x, c, variant, n, false, false);
}

static void NAME(adadelta)(void *const *x, const lc_step_numbers *c, unsigned variant, int64_t n)
{
    START;
    T *restrict v = x[2];
    T *restrict moves = x[3];
    const T keep = (T)c->beta1, rest = (T)(1 - c->beta1), eps = (T)c->eps;
    EACH
    {
        T g = GRADIENT, second = v[i] * keep + rest * g * g, before = moves[i];
        T moved = SQRT(before + eps) / SQRT(second + eps) * g;
        v[i] = second, moves[i] = before * keep + rest * moved * moved;
        p[i] -= lr * moved;
    }
}

/* ---- neither ---- */
static void NAME(asgd)(void *const *x, const lc_step_numbers *c, unsigned variant, int64_t n)
{
    START;
    T *restrict average = x[2];
    const T    shrink = (T)c->shrink, share = (T)c->extra;
    const bool follows = c->extra == 1;
    EACH
    {
        T g = GRADIENT, moved = p[i] * shrink - lr * g, a = average[i];
        p[i] = moved;
        average[i] = follows ? moved : a + (moved - a) * share;
    }
}

static void NAME(rprop)(void *const *x, const lc_step_numbers *c, unsigned variant, int64_t n)
{
    START;
    T *restrict before = x[2];
    T *restrict size = x[3];
    const T down = (T)c->beta1, up = (T)c->beta2, least = (T)c->eps, most = (T)c->extra;
    (void)lr;
    EACH
    {
        T g = GRADIENT, agreement = g * before[i], s = size[i] * (agreement > 0 ? up : agreement < 0 ? down : 1);
        s = s < least ? least : s;
        s = s > most ? most : s;
        g = agreement < 0 ? 0 : g;
        size[i] = s, before[i] = g;
        p[i] -= g > 0 ? s : g < 0 ? -s : 0;
    }
}

/* ---- Adafactor ---- */
enum { NAME(LANES) = 8 };
static void NAME(measure)(const lc_adafactor_row *r, double *columns, double *sums, int64_t n)
{
    const T *restrict p = r->p;
    const T *restrict grad = r->grad;
    double  lane[2][NAME(LANES)] = { 0 };
    int64_t i = 0;
    for (; i + NAME(LANES) <= n; i += NAME(LANES)) IN_REGISTERS
    for (int k = 0; k < NAME(LANES); k++) {
        double x = p[i + k], g = grad[i + k];
        lane[0][k] += x * x, lane[1][k] += g * g;
    }
    for (int k = 0; i < n; i++, k++) lane[0][k] += (double)p[i] * p[i], lane[1][k] += (double)grad[i] * grad[i];
    for (int k = 0; k < NAME(LANES); k++) sums[0] += lane[0][k], sums[1] += lane[1][k];
    if (r->alone) return;
    INDEPENDENT for (int64_t j = 0; j < n; j++) columns[j] += (double)grad[j] * grad[j];
}

INLINE T NAME(variance)(const lc_adafactor_row *r, const T *v, const T *grad, int64_t i, const bool alone)
{
    return alone ? NAME(towards)(v[i], grad[i] * grad[i], (T)r->share) : v[i] * (T)r->row;
}
INLINE double NAME(squares_body)(const lc_adafactor_row *r, int64_t n, const bool alone)
{
    const T *restrict v = r->v;
    const T *restrict grad = r->grad;
    const T floor = (T)r->floor;
    double  lane[NAME(LANES)] = { 0 };
    int64_t i = 0;
    for (; i + NAME(LANES) <= n; i += NAME(LANES)) IN_REGISTERS
    for (int k = 0; k < NAME(LANES); k++) {
        T g = grad[i + k];
        lane[k] += (double)(g / NAME(larger)(floor, NAME(variance)(r, v, grad, i + k, alone)) * g);
    }
    for (int k = 0; i < n; i++, k++)
        lane[k] += (double)(grad[i] / NAME(larger)(floor, NAME(variance)(r, v, grad, i, alone)) * grad[i]);
    for (int k = 1; k < NAME(LANES); k++) lane[0] += lane[k];
    return lane[0];
}
static double NAME(squares)(const lc_adafactor_row *r, int64_t n)
{
    return r->alone ? NAME(squares_body)(r, n, true) : NAME(squares_body)(r, n, false);
}
INLINE void NAME(apply_body)(const lc_adafactor_row *r, int64_t n, const bool alone)
{
    T *restrict p = r->p;
    T *restrict v = r->v;
    const T *restrict grad = r->grad;
    const T floor = (T)r->floor, shrink = (T)r->shrink, by = (T)r->by;
    EACH
    {
        T variance = NAME(variance)(r, v, grad, i, alone);
        if (alone) v[i] = variance;
        p[i] = p[i] * shrink - by * (grad[i] / SQRT(NAME(larger)(floor, variance)));
    }
}
static void NAME(apply)(const lc_adafactor_row *r, int64_t n)
{
    if (r->alone) NAME(apply_body)(r, n, true);
    else NAME(apply_body)(r, n, false);
}

#undef START
#undef EACH
#undef GRADIENT
#undef MOMENTS
#undef MOVE_MOMENTS
#undef T
#undef NAME
#undef SQRT
#undef ABS
