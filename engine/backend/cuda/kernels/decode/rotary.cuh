/* Rotary positions (args.h: lc_rotary_args). T: the elements. A thread makes an element of each half. */
typedef acc_of<T>::type A;
struct rotary_args {
    T       *out;
    const T *in, *cos, *sin;
    i64      shape[4], at[4][4]; /* strides of in, cos, sin, out */
};
KERNEL(turn, rotary_args, p)
{
    i64 n = p.shape[3] / 2;
    EACH(e, p.shape[0] * p.shape[1] * p.shape[2] * n)
    {
        i64 from[4], i = e % n, row = e / n,
                     at[3] = { row / p.shape[2] / p.shape[1], row / p.shape[2] % p.shape[1], row % p.shape[2] };
#pragma unroll
        for (int k = 0; k < 4; k++) from[k] = at[0] * p.at[k][0] + at[1] * p.at[k][1] + at[2] * p.at[k][2] + i * p.at[k][3];
        A x = (A)value(p.in[from[0]]), y = (A)value(p.in[from[0] + n * p.at[0][3]]);
        A c = (A)value(p.cos[from[1]]), d = (A)value(p.cos[from[1] + n * p.at[1][3]]);
        A s = (A)value(p.sin[from[2]]), t = (A)value(p.sin[from[2] + n * p.at[2][3]]);
        p.out[from[3]] = made<T>::of(x * c - y * s), p.out[from[3] + n * p.at[3][3]] = made<T>::of(y * d + x * t);
    }
}
