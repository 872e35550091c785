/* Complex numbers, in programs that have a complex type: pairs of reals with PyTorch's product (without C99's recovery of infinities) and
 * quotient (scaled by the larger part of the divisor). complex32 is stored only; it computes as complex64. */
template <bool yes> struct only_if {
};
template <> struct only_if<true> {
    typedef int type;
};
template <class R> struct alignas(2 * sizeof(R)) complex_of {
    R re, im;
    complex_of() = default;
    __device__                    complex_of(R re, R im) : re(re), im(im) {}
    template <class V> __device__ complex_of(V x) : re((R)x), im(0) {}
    template <class S> __device__ complex_of(complex_of<S> z) : re((R)z.re), im((R)z.im) {}
    template <class V, typename only_if<!__is_class(V)>::type = 0> __device__ explicit operator V() const { return (V)re; }
    __device__ explicit          operator bool() const { return re != 0 || im != 0; }
    __device__ friend complex_of operator-(complex_of a) { return complex_of(-a.re, -a.im); }
    __device__ friend complex_of operator+(complex_of a, complex_of b) { return complex_of(a.re + b.re, a.im + b.im); }
    __device__ friend complex_of operator-(complex_of a, complex_of b) { return complex_of(a.re - b.re, a.im - b.im); }
    __device__ friend complex_of operator*(complex_of a, complex_of b)
    {
        return complex_of(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
    }
    __device__ friend complex_of operator*(complex_of a, R b) { return complex_of(a.re * b, a.im * b); }
    __device__ friend complex_of operator/(complex_of a, R b) { return complex_of(a.re / b, a.im / b); }
    __device__ friend complex_of operator/(complex_of x, complex_of y)
    {
        R    a = x.re, b = x.im, c = y.re, d = y.im;
        bool swap = fabs(c) < fabs(d);
        R    big = swap ? d : c, small = swap ? c : d, ratio = big == 0 ? (R)0 : small / big, scale = 1 / (big + small * ratio);
        R    re = swap ? a * ratio + b : a + b * ratio, im = swap ? b * ratio - a : b - a * ratio;
        return complex_of(re * scale, im * scale);
    }
    __device__ friend bool operator==(complex_of a, complex_of b) { return a.re == b.re && a.im == b.im; }
    __device__ friend bool operator!=(complex_of a, complex_of b) { return !(a == b); }
    __device__ complex_of &operator+=(complex_of b) { return *this = *this + b; }
    __device__ complex_of &operator-=(complex_of b) { return *this = *this - b; }
    __device__ complex_of &operator*=(complex_of b) { return *this = *this * b; }
    __device__ complex_of &operator/=(complex_of b) { return *this = *this / b; }
};
typedef complex_of<f32> c64;
typedef complex_of<f64> c128;
struct alignas(4) c32 {
    f16 re, im;
};
__device__ inline c64 value(c32 z) { return c64(value(z.re), value(z.im)); }
template <> struct made<c32> {
    template <class V> __device__ static c32 of(V v)
    {
        c64 z(v);
        return c32{ made<f16>::of(z.re), made<f16>::of(z.im) };
    }
};
/* A scalar passed with the call: the bits of the integer are the imaginary part. */
template <> __device__ inline c64  number<c64>(double f, i64 i) { return c64((f32)f, (f32)__longlong_as_double(i)); }
template <> __device__ inline c128 number<c128>(double f, i64 i) { return c128(f, __longlong_as_double(i)); }
template <> struct acc_of<c32> {
    typedef c64 type;
};
template <> struct acc_of<c64> {
    typedef c64 type;
};
template <> struct acc_of<c128> {
    typedef c128 type;
};
