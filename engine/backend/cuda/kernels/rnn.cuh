/* One step of a recurrent layer between two products (args.h: lc_rnn_args). T: the elements. VARIANT: 0 tanh, 1 relu, 2 gru, 3
 * lstm. Rows are those of the step. */
struct rnn_args {
    const T *gates, *hidden, *bias;     /* (rows, G h) twice, (G h) */
    T       *state, *cell_state;        /* h of this step, written (gru: read before); c, replaced */
    T       *saved, *cells, *out;       /* rows of the step */
    const T *before_out, *before_start; /* backward: rows of the step before, and the initial state for rows it lacks */
    T       *d_gates, *d_hidden, *dh, *dc;
    const T *g_out;
    i64      rows, h, p, before_rows;
};
__device__ inline float  sigmoid(float x) { return 1.f / (1.f + expf(-x)); }
__device__ inline double sigmoid(double x) { return 1. / (1. + exp(-x)); }
KERNEL(forward, rnn_args, p)
{
    EACH(i, p.rows * p.h)
    {
        i64      b = i / p.h, j = i % p.h, width = (VARIANT == 3 ? 4 : VARIANT == 2 ? 3 : 1) * p.h;
        const T *x = p.gates + b * width + j, *a = p.hidden + b * width + j, *bias = p.bias ? p.bias + j : 0;
        T        m[4];
        for (int g = 0; g < (VARIANT == 3 ? 4 : VARIANT == 2 ? 3 : 1); g++) m[g] = a[g * p.h] + (bias ? bias[g * p.h] : (T)0);
        if (VARIANT == 3) {
            T in = sigmoid(x[0] + m[0]), keep = sigmoid(x[p.h] + m[1]), g = tanh(x[2 * p.h] + m[2]),
              o = sigmoid(x[3 * p.h] + m[3]);
            T next = keep * p.cell_state[i] + in * g, *s = p.saved + b * 4 * p.h + j;
            if (p.saved) s[0] = in, s[p.h] = keep, s[2 * p.h] = g, s[3 * p.h] = o;
            p.cell_state[i] = next, p.cells[i] = next, p.state[i] = o * tanh(next);
        } else if (VARIANT == 2) {
            T reset = sigmoid(x[0] + m[0]), z = sigmoid(x[p.h] + m[1]), fresh = tanh(x[2 * p.h] + reset * m[2]),
              *s = p.saved + b * 4 * p.h + j;
            if (p.saved) s[0] = reset, s[p.h] = z, s[2 * p.h] = fresh, s[3 * p.h] = m[2];
            p.state[i] = fresh + z * (p.state[i] - fresh);
        } else {
            T v = x[0] + m[0];
            p.state[i] = VARIANT == 1 ? (v < 0 ? (T)0 : v) : tanh(v);
        }
    }
}
KERNEL(add_out, rnn_args, p) /* dh += g_out */ { EACH(i, p.rows * p.p) p.dh[i] += p.g_out[i]; }
KERNEL(backward, rnn_args, p) /* dh: of this step's h, (rows, h) */
{
    EACH(i, p.rows * p.h)
    {
        i64      b = i / p.h, j = i % p.h, width = (VARIANT == 3 ? 4 : VARIANT == 2 ? 3 : 1) * p.h;
        T       *d = p.d_gates + b * width + j, e = p.dh[i];
        const T *s = p.saved + b * 4 * p.h + j;
        T        before = VARIANT < 2 ? (T)0 : b < p.before_rows ? p.before_out[i] : p.before_start[i];
        if (VARIANT == 3) {
            T in = s[0], keep = s[p.h], g = s[2 * p.h], o = s[3 * p.h], u = tanh(p.cells[i]), c = p.dc[i] + e * o * (1 - u * u);
            d[0] = c * g * in * (1 - in), d[p.h] = c * before * keep * (1 - keep), d[2 * p.h] = c * in * (1 - g * g);
            d[3 * p.h] = e * u * o * (1 - o), p.dc[i] = c * keep;
        } else if (VARIANT == 2) {
            T reset = s[0], z = s[p.h], fresh = s[2 * p.h], m = s[3 * p.h], *of = p.d_hidden + b * width + j;
            T dn = e * (1 - z) * (1 - fresh * fresh), dz = e * (before - fresh) * z * (1 - z),
              dr = dn * m * reset * (1 - reset);
            d[0] = of[0] = dr, d[p.h] = of[p.h] = dz, d[2 * p.h] = dn, of[2 * p.h] = dn * reset;
            p.dh[i] = e * z;
        } else {
            T y = p.out[i];
            d[0] = VARIANT == 1 ? (y <= 0 ? (T)0 : e) : e * (1 - y * y);
        }
    }
}
