/* Elementwise: operand 0 is the output. The program defines, after math.cuh: R, the type that f computes in, U of the output,
 * N_IN, AT_ONCE, f(x, y, z, w), and per input k its type IN_k, SEEN_k, what f takes, and IS_NUMBER_k: the value comes with the call. */
template <class S> struct alignas(sizeof(S) * AT_ONCE) several_of {
    S v[AT_ONCE];
};
template <class S, class IN> __device__ S seen(IN x) { return (S)value(x); }

struct flat_args {
    i64    n;
    char  *data[OPERANDS];
    double f[OPERANDS];
    i64    i[OPERANDS];
};
#define GIVEN(k) IS_NUMBER_##k ? number<SEEN_##k>(p.f[k], p.i[k])
#define PLAIN(k) (GIVEN(k) : seen<SEEN_##k>(((const IN_##k *)p.data[k])[i]))
#if WALK == 0
KERNEL(flat, flat_args, p) /* every operand is contiguous, or a number */
{
    EACH(i, p.n)((U *)p.data[0])[i] = made<U>::of(f(PLAIN(1), PLAIN(2), PLAIN(3), PLAIN(4)));
}
#elif WALK == 1
#define WIDE(k)                                                                                                                \
    several_of<IN_##k> x##k;                                                                                                   \
    if (N_IN >= k && !IS_NUMBER_##k) x##k = ((const several_of<IN_##k> *)p.data[k])[at]
#define ONE(k) (GIVEN(k) : seen<SEEN_##k>(x##k.v[j]))
KERNEL(flat_wide, flat_args, p) /* so aligned that AT_ONCE elements move at once */
{
    EACH(at, p.n / AT_ONCE)
    {
        WIDE(1);
        WIDE(2);
        WIDE(3);
        WIDE(4);
        several_of<U> y;
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) y.v[j] = made<U>::of(f(ONE(1), ONE(2), ONE(3), ONE(4)));
        ((several_of<U> *)p.data[0])[at] = y;
    }
    i64 i = p.n / AT_ONCE * AT_ONCE + blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (i < p.n) ((U *)p.data[0])[i] = made<U>::of(f(PLAIN(1), PLAIN(2), PLAIN(3), PLAIN(4)));
}

#else
enum { NEAR_DIMS = 8 };
struct near_args {
    u32    n;
    int    ndim;
    u32    shape[NEAR_DIMS];
    i32    stride[OPERANDS][NEAR_DIMS]; /* negative: a dimension that is read backwards */
    char  *data[OPERANDS];
    double f[OPERANDS];
    i64    i[OPERANDS];
};
#define AT(k) (GIVEN(k) : seen<SEEN_##k>(*(const IN_##k *)(p.data[k] + offset[k])))
#if WALK == 2
KERNEL(near_walk, near_args, p) /* any strides; offsets fit 32 bits */
{
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < p.n; i += gridDim.x * blockDim.x) {
        u32 left = i;
        i32 offset[OPERANDS] = { 0, 0, 0, 0, 0 };
        for (int d = p.ndim - 1; d >= 0; d--) {
            u32 index = left;
            if (d) left /= p.shape[d], index -= left * p.shape[d];
            for (int k = 0; k <= N_IN; k++) offset[k] += (i32)index * p.stride[k][d];
        }
        *(U *)(p.data[0] + offset[0]) = made<U>::of(f(AT(1), AT(2), AT(3), AT(4)));
    }
}

#endif
struct far_args {
    i64    n;
    int    ndim;
    i64    shape[DIMS], stride[OPERANDS][DIMS];
    char  *data[OPERANDS];
    double f[OPERANDS];
    i64    i[OPERANDS];
};
#if WALK == 3
KERNEL(far_walk, far_args, p)
{
    EACH(i, p.n)
    {
        i64 left = i, offset[OPERANDS] = { 0, 0, 0, 0, 0 };
        for (int d = p.ndim - 1; d >= 0; d--) {
            i64 index = left;
            if (d) left /= p.shape[d], index -= left * p.shape[d];
            for (int k = 0; k <= N_IN; k++) offset[k] += index * p.stride[k][d];
        }
        *(U *)(p.data[0] + offset[0]) = made<U>::of(f(AT(1), AT(2), AT(3), AT(4)));
    }
}
#endif
#endif
