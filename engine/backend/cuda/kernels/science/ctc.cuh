/* Connectionist temporal classification (args.h: lc_ctc_args; the method: cpu/loss/ctc.c) and the multilabel margin loss. A block per sample:
 * its threads share the states of a step. T: the elements; everything between is in double. */
struct ctc_args {
    const T   *log_probs;
    T         *nll, *alpha, *out;
    const T   *grad;
    const i64 *targets, *first, *input_length, *target_length;
    i64        steps, batch, classes, longest, blank;
    int        zero_infinity;
    double    *beta; /* backward: two lines of 2 longest + 1 per sample */
    trouble   *word;
};
__device__ inline double joined(double x, double y)
{
    double m = x > y ? x : y;
    return m == -infinity<double>() || m != m ? m + (x != x ? x : y != y ? y : 0) : m + log(exp(x - m) + exp(y - m));
}
__device__ inline i64 label_of(const ctc_args &p, i64 b, i64 s)
{
    if (s % 2 == 0) return p.blank;
    i64 c = p.targets[p.first[b] + s / 2];
    if ((u64)c < (u64)p.classes) return c;
    report(p.word, 2, c, 0, p.classes);
    return p.blank;
}
__device__ inline double score_of(const ctc_args &p, i64 t, i64 b, i64 c)
{
    return (double)p.log_probs[(t * p.batch + b) * p.classes + c];
}
BLOCK_KERNEL(forward, ctc_args, p)
{
    i64 b = blockIdx.x, n = p.target_length[b], states = 2 * n + 1, wide = 2 * p.longest + 1, steps = p.input_length[b];
    T  *alpha = p.alpha + b * p.steps * wide;
    for (i64 i = threadIdx.x; i < p.steps * wide; i += blockDim.x) alpha[i] = -infinity<T>();
    __syncthreads();
    for (i64 t = 0; t < steps; t++) {
        for (i64 s = threadIdx.x; s < states; s += blockDim.x) {
            i64    c = label_of(p, b, s);
            double v = -infinity<double>();
            if (t == 0) v = s < 2 ? 0. : v;
            else {
                const T *before = alpha + (t - 1) * wide;
                v = (double)before[s];
                if (s > 0) v = joined(v, (double)before[s - 1]);
                if (s > 1 && c != label_of(p, b, s - 2)) v = joined(v, (double)before[s - 2]);
            }
            alpha[t * wide + s] = (T)(v + score_of(p, t, b, c));
        }
        __syncthreads();
    }
    if (threadIdx.x) return;
    const T *line = alpha + (steps - 1) * wide;
    double   last = steps ? (double)line[2 * n] : n ? -infinity<double>() : 0;
    p.nll[b] = (T) - (steps && n ? joined(last, (double)line[2 * n - 1]) : last);
}
BLOCK_KERNEL(backward, ctc_args, p) /* out starts as zeros: sums of shares first */
{
    i64      b = blockIdx.x, n = p.target_length[b], states = 2 * n + 1, wide = 2 * p.longest + 1, steps = p.input_length[b];
    const T *alpha = p.alpha + b * p.steps * wide;
    double   nll = (double)p.nll[b], g = (double)p.grad[b], *beta[2] = { p.beta + 2 * b * wide, p.beta + (2 * b + 1) * wide };
    bool     never = nll == infinity<double>(), wrong = nll != nll;
    for (i64 t = steps - 1; t >= 0 && !never && !wrong; t--) {
        double *now = beta[t % 2], *after = beta[(t + 1) % 2];
        for (i64 s = threadIdx.x; s < states; s += blockDim.x) {
            i64    c = label_of(p, b, s);
            double v = -infinity<double>(), score = score_of(p, t, b, c);
            if (t == steps - 1) v = s >= states - 2 ? 0. : v;
            else {
                v = after[s];
                if (s + 1 < states) v = joined(v, after[s + 1]);
                if (s + 2 < states && c != label_of(p, b, s + 2)) v = joined(v, after[s + 2]);
            }
            now[s] = v + score;
            double both = (double)alpha[t * wide + s] + v + nll;
            /* PYTORCH-QUIRK: of a last label that is the blank itself only one of the two final states counts. */
            bool lost = t == steps - 1 && s == states - 1 && states > 1 && label_of(p, b, s - 1) == c;
            if (both > -infinity<double>() && !lost) atomicAdd(p.out + (t * p.batch + b) * p.classes + c, (T)exp(both));
        }
        __syncthreads();
    }
    for (i64 i = threadIdx.x; i < p.steps * p.classes; i += blockDim.x) {
        i64    t = i / p.classes, c = i % p.classes;
        T     *to = p.out + (t * p.batch + b) * p.classes + c;
        double share = (double)*to, v = (exp(score_of(p, t, b, c)) - share) * g;
        if (wrong || (never && !p.zero_infinity)) v = (double)__int_as_float(0x7fffffff);
        *to = t >= steps || (never && p.zero_infinity) ? (T)0 : (T)v;
    }
}

/* multilabel_margin_loss: pairs of a label and a class that is no label. A block per row. */
struct margin_args {
    T         *out;
    const T   *in, *grad;
    const i64 *target;
    i64        rows, classes;
    trouble   *word;
};
__device__ inline i64 labels_of(const margin_args &p, const i64 *label)
{
    i64 n = 0;
    while (n < p.classes && label[n] >= 0) n++;
    return n;
}
__device__ inline bool is_label(const i64 *label, i64 n, i64 c)
{
    for (i64 k = 0; k < n; k++)
        if (label[k] == c) return true;
    return false;
}
BLOCK_KERNEL(margin, margin_args, p)
{
    const i64 *label = p.target + blockIdx.x * p.classes;
    const T   *x = p.in + blockIdx.x * p.classes;
    i64        n = labels_of(p, label);
    double     sum = 0;
    for (i64 c = threadIdx.x; c < p.classes; c += blockDim.x) {
        if (label[c] < -1 || label[c] >= p.classes) report(p.word, 2, label[c], 0, p.classes);
        if (is_label(label, n, c)) continue;
        for (i64 k = 0; k < n; k++) {
            double lack = label[k] < p.classes ? 1 - (double)x[label[k]] + (double)x[c] : 0;
            if (lack > 0) sum += lack;
        }
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) p.out[blockIdx.x] = (T)(sum / (double)p.classes);
}
KERNEL(margin_slope, margin_args, p)
{
    EACH(i, p.rows * p.classes)
    {
        i64        row = i / p.classes, c = i % p.classes;
        const i64 *label = p.target + row * p.classes;
        const T   *x = p.in + row * p.classes;
        i64        n = labels_of(p, label), pulls = 0;
        if (is_label(label, n, c)) {
            i64 times = 0;
            for (i64 k = 0; k < n; k++) times += label[k] == c;
            for (i64 other = 0; other < p.classes; other++)
                pulls -= !is_label(label, n, other) && 1 - (double)x[c] + (double)x[other] > 0 ? times : 0;
        } else
            for (i64 k = 0; k < n; k++) pulls += label[k] < p.classes && 1 - (double)x[label[k]] + (double)x[c] > 0;
        p.out[i] = (T)((double)pulls * (double)p.grad[row] / (double)p.classes);
    }
}
