/* Eigenvalues and singular values by Jacobi's rotations, a block per matrix (the methods: cpu/linalg/own.inc.c), and eigenvalues of general
 * matrices by shifted QR steps, a thread per matrix. T: the elements. VARIANT: 1: T is complex. */
#define COMPLEX_TYPE VARIANT
#include "matrix_types.cuh"
struct spectra_args {
    T *a, *b; /* eigh: vectors, which start as the lower triangle, and workspace (n, n); svd: a (m, n) becomes U, b (n, n) V */
    R *w;
    i32 *info;
    i64  m, n, batch;
};
enum { MOST_SWEEPS = 60 };
#define MATRIX(p, rows, columns) ((p) + blockIdx.x * (i64)(rows) * (columns))
struct rotation {
    R c, s;
    T phase; /* of the second vector */
};
__device__ inline rotation rotation_of(R alpha, R beta, T off, R size)
{
    R zeta = (beta - alpha) / (2 * size), t = (zeta < 0 ? -1 : 1) / ((R)fabs(zeta) + (R)sqrt(1 + zeta * zeta)),
      c = 1 / (R)sqrt(1 + t * t);
    return rotation{ c, c * t, conj_of(off) / size };
}
__device__ inline void rotate(T *x, T *y, i64 step, i64 n, rotation j)
{
    MINE(i, 0, n)
    {
        T p = x[i * step], q = y[i * step] * j.phase;
        x[i * step] = p * j.c - q * j.s, y[i * step] = p * j.s + q * j.c;
    }
}
/* A power of two that brings the largest part near one; 0: something is not finite. Every thread gets it. */
__device__ inline R scale_of(const T *a, i64 n)
{
    R most = 0, wrong = 0;
    MINE(i, 0, n)
    {
        R size = size1(a[i]);
        if (!(size - size == 0)) wrong = 1;
        else most = size > most ? size : most;
    }
    most = block_max(most), wrong = block_max(wrong);
    int exponent = 0, limit = sizeof(R) == 4 ? 120 : 1000;
    if (wrong > 0) return 0;
    if (most > 0) frexp((double)most, &exponent);
    exponent = exponent < -limit ? -limit : exponent > limit ? limit : exponent;
    return (R)ldexp(1., -exponent);
}
__device__ inline void exchange(T *a, i64 n, i64 x, i64 y)
{
    for (i64 i = 0; i < n; i++) {
        T t = a[i + x * n];
        a[i + x * n] = a[i + y * n], a[i + y * n] = t;
    }
}

BLOCK_KERNEL(eigh, spectra_args, p)
{
    i64 n = p.n;
    T  *a = MATRIX(p.a, n, n), *b = MATRIX(p.b, n, n);
    R  *w = p.w + blockIdx.x * n;
    MINE(e, 0, n * n)
    {
        i64 i = e % n, j = e / n;
        T   x = i >= j ? a[i + j * n] : conj_of(a[j + i * n]);
        b[e] = i == j ? number_of(re_of(x), 0) : x;
    }
    __syncthreads();
    R scale = scale_of(b, n * n), largest = 0;
    if (threadIdx.x == 0) p.info[blockIdx.x] = scale == 0;
    if (scale == 0) return;
    MINE(e, 0, n * n)
    {
        b[e] = b[e] * scale, a[e] = T(e % n == e / n ? 1 : 0);
        largest = size1(b[e]) > largest ? size1(b[e]) : largest;
    }
    largest = block_max(largest);
    bool rotated = true;
    for (int sweep = 0; rotated && sweep < MOST_SWEEPS; sweep++) {
        rotated = false;
        for (i64 r = 0; r < n; r++)
            for (i64 q = r + 1; q < n; q++) {
                T off = b[r + q * n];
                R alpha = re_of(b[r + r * n]), beta = re_of(b[q + q * n]), size = (R)sqrt(size2(off));
                if (size <= EPSILON * (R)0.5 * (R)sqrt(fabs(alpha)) * (R)sqrt(fabs(beta)) || size <= EPSILON * largest * (R)0.1)
                    continue;
                rotation j = rotation_of(alpha, beta, off, size);
                __syncthreads();
                rotate(b + r * n, b + q * n, 1, n, j);
                rotate(a + r * n, a + q * n, 1, n, j);
                __syncthreads();
                rotation back = { j.c, j.s, conj_of(j.phase) };
                rotate(b + r, b + q, n, n, back);
                __syncthreads();
                if (threadIdx.x == 0) {
                    b[r + q * n] = b[q + r * n] = T(0);
                    b[r + r * n] = number_of(re_of(b[r + r * n]), 0), b[q + q * n] = number_of(re_of(b[q + q * n]), 0);
                }
                __syncthreads();
                rotated = true;
            }
    }
    if (threadIdx.x) return;
    for (i64 k = 0; k < n; k++) w[k] = re_of(b[k + k * n]) / scale;
    for (i64 k = 0; k < n; k++) { /* ascending */
        i64 least = k;
        for (i64 i = k + 1; i < n; i++)
            if (w[i] < w[least]) least = i;
        R t = w[k];
        w[k] = w[least], w[least] = t;
        if (least != k) exchange(a, n, k, least);
    }
}

/* A unit vector orthogonal to the first k columns of u (m rows): a unit vector less its projections, twice. */
__device__ inline void complete(T *u, i64 m, i64 k)
{
    T *col = u + k * m;
    for (i64 e = 0; e < m; e++) {
        for (i64 i = 0; i < m; i++) col[i] = T(i == e ? 1 : 0);
        R length = 0;
        for (int round = 0; round < 2; round++)
            for (i64 j = 0; j < k; j++) {
                T sum(0);
                for (i64 i = 0; i < m; i++) sum += conj_of(u[i + j * m]) * col[i];
                for (i64 i = 0; i < m; i++) col[i] -= sum * u[i + j * m];
            }
        for (i64 i = 0; i < m; i++) length += size2(col[i]);
        if (length * (R)m < (R)0.5) continue;
        length = (R)sqrt(length);
        for (i64 i = 0; i < m; i++) col[i] = col[i] / length;
        return;
    }
}
/* One-sided: columns are rotated in pairs until all are orthogonal; their lengths are the singular values then. m >= n. */
BLOCK_KERNEL(svd, spectra_args, p)
{
    i64 m = p.m, n = p.n;
    T  *a = MATRIX(p.a, m, n), *v = MATRIX(p.b, n, n);
    R  *s = p.w + blockIdx.x * n, scale = scale_of(a, m * n), tolerance = EPSILON * (R)(m > 4 ? m : 4), noise = 0;
    if (threadIdx.x == 0) p.info[blockIdx.x] = scale == 0;
    if (scale == 0) return;
    MINE(e, 0, n * n) v[e] = T(e % n == e / n ? 1 : 0);
    MINE(e, 0, m * n) a[e] = a[e] * scale;
    __syncthreads();
    MINE(k, 0, n)
    {
        R sum = 0;
        for (i64 i = 0; i < m; i++) sum += size2(a[i + k * m]);
        noise = sum > noise ? sum : noise;
    }
    noise = block_max(noise) * EPSILON * EPSILON;
    bool rotated = true;
    for (int sweep = 0; rotated && sweep < MOST_SWEEPS; sweep++) {
        rotated = false;
        for (i64 x = 0; x < n; x++)
            for (i64 y = x + 1; y < n; y++) {
                T off(0);
                R alpha = 0, beta = 0;
                MINE(i, 0, m)
                {
                    T f = a[i + x * m], g = a[i + y * m];
                    off += conj_of(f) * g, alpha += size2(f), beta += size2(g);
                }
                off = sum_of(off), alpha = block_sum(alpha), beta = block_sum(beta);
                R size = (R)sqrt(size2(off));
                if (!(size > tolerance * (R)sqrt(alpha) * (R)sqrt(beta)) || size < TINY || alpha <= noise || beta <= noise)
                    continue;
                rotation j = rotation_of(alpha, beta, off, size);
                rotate(a + x * m, a + y * m, 1, m, j);
                rotate(v + x * n, v + y * n, 1, n, j);
                __syncthreads();
                rotated = true;
            }
    }
    MINE(k, 0, n)
    {
        R sum = 0;
        for (i64 i = 0; i < m; i++) sum += size2(a[i + k * m]);
        s[k] = (R)sqrt(sum);
    }
    __syncthreads();
    if (threadIdx.x) return;
    for (i64 k = 0; k < n; k++) { /* descending */
        i64 top = k;
        for (i64 i = k + 1; i < n; i++)
            if (s[i] > s[top]) top = i;
        R t = s[k];
        s[k] = s[top], s[top] = t;
        if (top != k) exchange(a, m, k, top), exchange(v, n, k, top);
    }
    R least = s[0] * EPSILON * 2;
    for (i64 k = 0; k < n; k++) {
        if (s[k] <= least || s[k] < TINY) { /* no direction of its own left */
            complete(a, m, k);
            s[k] = s[k] < TINY ? (R)0 : s[k];
        } else
            for (i64 i = 0; i < m; i++) a[i + k * m] = a[i + k * m] / s[k];
        s[k] /= scale;
    }
}

#if COMPLEX_TYPE
/* ---- general matrices: Hessenberg form by Householder's reflections, then QR steps by rotations with Wilkinson's shift ---- */
__device__ inline T square_root(T z)
{
    R size = modulus(z);
    if (size == 0) return T(0);
    R t = (R)sqrt((fabs(z.re) + size) / 2);
    return z.re >= 0 ? T(t, z.im / (2 * t)) : T((R)fabs(z.im) / (2 * t), z.im < 0 ? -t : t);
}
__device__ inline void reduce_to_hessenberg(T *a, T *z, i64 n)
{
    for (i64 k = 0; k + 2 < n; k++) { /* v from column k, rows k + 1 ..; kept below the subdiagonal for the moment */
        R sum = 0;
        for (i64 i = k + 1; i < n; i++) sum += size2(a[i + k * n]);
        R length = (R)sqrt(sum), first = modulus(a[k + 1 + k * n]);
        if (length == 0 || sum - size2(a[k + 1 + k * n]) == 0) continue;
        T sign = first == 0 ? T(1) : a[k + 1 + k * n] / first;
        a[k + 1 + k * n] += sign * length; /* v; v^H v = 2 length (length + first) */
        R half = length * (length + first);
        for (i64 j = k + 1; j < n; j++) { /* from the left */
            T dot(0);
            for (i64 i = k + 1; i < n; i++) dot += conj_of(a[i + k * n]) * a[i + j * n];
            dot = dot / half;
            for (i64 i = k + 1; i < n; i++) a[i + j * n] -= a[i + k * n] * dot;
        }
        for (int which = 0; which < (z ? 2 : 1); which++) { /* from the right: a, and the product of all */
            T *x = which ? z : a;
            for (i64 i = 0; i < n; i++) {
                T dot(0);
                for (i64 j = k + 1; j < n; j++) dot += x[i + j * n] * a[j + k * n];
                dot = dot / half;
                for (i64 j = k + 1; j < n; j++) x[i + j * n] -= dot * conj_of(a[j + k * n]);
            }
        }
        a[k + 1 + k * n] = -(sign * length);
        for (i64 i = k + 2; i < n; i++) a[i + k * n] = T(0);
    }
}
__device__ inline bool is_small(const T *a, i64 n, i64 l)
{
    return size1(a[l + (l - 1) * n]) <= EPSILON * (size1(a[l + l * n]) + size1(a[l - 1 + (l - 1) * n]));
}
__device__ inline bool triangular(T *a, T *z, i64 n) /* false: no convergence */
{
    int steps = 0;
    for (i64 high = n - 1; high > 0;) {
        i64 low = high;
        while (low > 0 && !is_small(a, n, low)) low--;
        if (low > 0) a[low + (low - 1) * n] = T(0);
        if (low == high) {
            high--, steps = 0;
            continue;
        }
        if (++steps > 300) return false;
        T p = a[high - 1 + (high - 1) * n], q = a[high - 1 + high * n], r = a[high + (high - 1) * n], s = a[high + high * n];
        T half = (p - s) * (R)0.5, root = square_root(half * half + q * r);
        T one = s + half + root, two = s + half - root, shift = size1(one - s) < size1(two - s) ? one : two;
        if (steps % 10 == 0) shift = s + T(size1(r)); /* exceptional */
        for (i64 i = low; i <= high; i++) a[i + i * n] -= shift;
        T before_s(0);
        R c_of = 0;
        for (i64 k = low; k <= high;
             k++) { /* rotation k from the left; rotation k - 1 from the right, which is done with its rows */
            T next_s(0);
            R next_c = 0;
            if (k < high) {
                T x = a[k + k * n], y = a[k + 1 + k * n];
                R size = (R)hypot(modulus(x), modulus(y)), mx = modulus(x);
                T turn = mx == 0 ? T(1) : x / mx;
                next_c = size == 0 ? (R)1 : mx / size;
                next_s = size == 0 ? T(0) : turn * conj_of(y) / size;
                for (i64 j = k; j < n; j++) {
                    T u = a[k + j * n], v = a[k + 1 + j * n];
                    a[k + j * n] = u * next_c + next_s * v, a[k + 1 + j * n] = v * next_c - conj_of(next_s) * u;
                }
            }
            if (k > low)
                for (int which = 0; which < (z ? 2 : 1); which++) {
                    T  *m = which ? z : a;
                    i64 rows = which ? n : k + 1;
                    for (i64 i = 0; i < rows; i++) {
                        T u = m[i + (k - 1) * n], v = m[i + k * n];
                        m[i + (k - 1) * n] = u * c_of + v * conj_of(before_s), m[i + k * n] = v * c_of - u * before_s;
                    }
                }
            before_s = next_s, c_of = next_c;
        }
        for (i64 i = low; i <= high; i++) a[i + i * n] += shift;
    }
    return true;
}
KERNEL(eig, spectra_args, p) /* a becomes the vectors; b: workspace; w: the values, complex */
{
    EACH(at, p.batch)
    {
        i64  n = p.n;
        T   *a = p.b + at * n * n, *out = p.a + at * n * n, *w = (T *)p.w + at * n;
        bool vectors = p.m != 0;
        for (i64 i = 0; i < n * n; i++) a[i] = out[i], out[i] = T(i % n == i / n ? 1 : 0);
        reduce_to_hessenberg(a, vectors ? out : 0, n);
        p.info[at] = !triangular(a, vectors ? out : 0, n);
        R largest = TINY;
        for (i64 k = 0; k < n; k++) w[k] = a[k + k * n], largest = size1(w[k]) > largest ? size1(w[k]) : largest;
        for (i64 k = n - 1; k >= 0 && vectors;
             k--) { /* of the triangle, by substitution, from the last: column k is free then */
            T *x = a + k * n;
            for (i64 i = k - 1; i >= 0; i--) {
                T sum = x[i];
                for (i64 j = i + 1; j < k; j++) sum += a[i + j * n] * x[j];
                T d = w[k] - w[i];
                if (size1(d) < EPSILON * largest) d = T(EPSILON * largest);
                x[i] = sum / d;
            }
            x[k] = T(1);
        }
        for (i64 k = n - 1; k >= 0 && vectors;
             k--) { /* back to the matrix itself: columns of out up to k are read, k is written */
            const T *x = a + k * n;
            R        length = 0, most = -1;
            i64      top = 0;
            for (i64 i = 0; i < n; i++) {
                T sum(0);
                for (i64 j = 0; j <= k; j++) sum += out[i + j * n] * x[j];
                out[i + k * n] = sum;
                length += size2(sum);
                if (size2(sum) > most) most = size2(sum), top = i;
            }
            length = (R)sqrt(length);
            T turn = most > 0 ? conj_of(out[top + k * n]) / (modulus(out[top + k * n]) * length) : T(1);
            for (i64 i = 0; i < n; i++) out[i + k * n] = out[i + k * n] * turn;
        }
    }
}
#endif
