/* What the kernels of linear algebra share: numbers of type T, real or complex, with real type R; matrices are column-major, contiguous, one
 * after the other. A block works on a matrix; sums over its threads and warps. */
template <class S> struct real_of {
    typedef S type;
};
#if COMPLEX_TYPE
template <class S> struct real_of<complex_of<S>> {
    typedef S type;
};
template <class S> __device__ complex_of<S> conj_of(complex_of<S> z) { return complex_of<S>(z.re, -z.im); }
template <class S> __device__ S             re_of(complex_of<S> z) { return z.re; }
template <class S> __device__ S             im_of(complex_of<S> z) { return z.im; }
#endif
typedef real_of<T>::type R;
__device__ inline R      conj_of(R x) { return x; }
__device__ inline R      re_of(R x) { return x; }
__device__ inline R      im_of(R) { return 0; }
__device__ inline R      size1(T x) { return (R)(fabs(re_of(x)) + fabs(im_of(x))); }
__device__ inline R      size2(T x) { return re_of(x) * re_of(x) + im_of(x) * im_of(x); }
__device__ inline R      modulus(T x) { return sizeof(T) == sizeof(R) ? (R)fabs(re_of(x)) : (R)hypot(re_of(x), im_of(x)); }
__device__ inline R      warp_sum(R x)
{
    for (int d = 16; d; d /= 2) x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}
#if COMPLEX_TYPE
__device__ inline T number_of(R re, R im) { return T(re, im); }
__device__ inline T warp_sum(T x) { return T(warp_sum(x.re), warp_sum(x.im)); }
__device__ inline T sum_of(T x) { return T(block_sum(x.re), block_sum(x.im)); }
#else
__device__ inline T number_of(R re, R) { return re; }
__device__ inline T sum_of(T x) { return block_sum(x); }
#endif
#define EPSILON           (sizeof(R) == 4 ? (R)1.1920929e-7 : (R)2.220446049250313e-16)
#define TINY              (sizeof(R) == 4 ? (R)1.17549435e-38 : (R)2.2250738585072014e-308)
#define MINE(i, from, to) for (i64 i = (from) + threadIdx.x; i < (to); i += blockDim.x)
