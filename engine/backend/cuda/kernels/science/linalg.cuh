/* Factorisations and systems of equations (science/linalg.c), LAPACK's conventions. T: the elements. VARIANT: 1: T is complex. */
#define COMPLEX_TYPE VARIANT
#include "matrix_types.cuh"
struct linalg_args {
    T   *a, *b, *tau;
    i32 *piv, *info;
    R   *w;
    T   *work;
    i64  m, n, k, cols; /* a is (m, n) or (n, n), b has `cols` columns and the rows that the kernel says */
    i64  lda, a_size;   /* trsm, ormqr: of a, in elements */
    int  upper, trans, unit, pivot, left, logarithm, hermitian; /* trans: 1 transposed, 2 and conjugated */
};
#define MATRIX(p, rows, columns) ((p) + blockIdx.x * (i64)(rows) * (columns))

/* P L U; rows are exchanged as they are found. */
BLOCK_KERNEL(getrf, linalg_args, p)
{
    __shared__ R   most[1024];
    __shared__ int where[1024];
    __shared__ i64 chosen;
    i64            m = p.m, n = p.n, few = m < n ? m : n;
    T             *a = MATRIX(p.a, m, n);
    int            info = 0;
    for (i64 k = 0; k < few; k++) {
        T  *col = a + k * m;
        R   best = size1(col[k]);
        i64 at = k;
        if (threadIdx.x) best = -1;
        for (i64 i = k + 1 + threadIdx.x; i < m && p.pivot; i += blockDim.x)
            if (size1(col[i]) > best) best = size1(col[i]), at = i;
        most[threadIdx.x] = best, where[threadIdx.x] = (int)at;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int t = 1; t < blockDim.x; t++)
                if (most[t] > best || (most[t] == best && where[t] < at && where[t] > k)) best = most[t], at = where[t];
            chosen = at, p.piv[blockIdx.x * few + k] = (i32)at + 1;
        }
        __syncthreads();
        i64 row = chosen;
        if (row != k) MINE(j, 0, n)
            {
                T t = a[k + j * m];
                a[k + j * m] = a[row + j * m], a[row + j * m] = t;
            }
        __syncthreads();
        T d = col[k];
        if (d == T(0)) {
            if (!info) info = (int)k + 1;
            continue;
        }
        T inverse = T(1) / d;
        MINE(i, k + 1, m) col[i] = size1(d) >= TINY ? col[i] * inverse : col[i] / d;
        __syncthreads();
        i64 rows = m - k - 1;
        MINE(e, 0, rows * (n - k - 1))
        {
            i64 i = k + 1 + e % rows, j = k + 1 + e / rows;
            a[i + j * m] -= col[i] * a[k + j * m];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0 && p.info) p.info[blockIdx.x] = info;
}
/* Rows of b (n, cols) exchanged as the k pivots say; trans: back again. */
BLOCK_KERNEL(swap_rows, linalg_args, p)
{
    T         *b = MATRIX(p.b, p.n, p.cols);
    const i32 *piv = p.piv + blockIdx.x * p.k;
    MINE(c, 0, p.cols)
    for (i64 s = 0; s < p.k; s++) {
        i64 step = p.trans ? p.k - 1 - s : s, other = piv[step] - 1;
        if ((u64)other >= (u64)p.n) continue; /* no pivot */
        T t = b[step + c * p.n];
        b[step + c * p.n] = b[other + c * p.n], b[other + c * p.n] = t;
    }
}
/* b (m, cols), of which the first n rows count := op(a)^-1 b, a triangle of n rows. */
BLOCK_KERNEL(trsm, linalg_args, p)
{
    const T *a = p.a + blockIdx.x * p.a_size;
    T       *b = MATRIX(p.b, p.m, p.cols);
    bool     upper = (p.upper != 0) != (p.trans != 0);
    for (i64 step = 0; step < p.n; step++) {
        i64 i = upper ? p.n - 1 - step : step, first = upper ? 0 : i + 1, rows = upper ? i : p.n - 1 - i;
        T   d = a[i + i * p.lda];
        if (p.trans == 2) d = conj_of(d);
        if (!p.unit) MINE(c, 0, p.cols) b[i + c * p.m] /= d;
        __syncthreads();
        MINE(e, 0, rows * p.cols)
        {
            i64 r = first + e % rows, c = e / rows;
            T   x = p.trans ? a[i + r * p.lda] : a[r + i * p.lda];
            b[r + c * p.m] -= (p.trans == 2 ? conj_of(x) : x) * b[i + c * p.m];
        }
        __syncthreads();
    }
}
/* Of the lower, or the upper, triangle. info: the first leading minor that is not positive. */
#define LOW(i, j) a[p.upper ? (j) + (i)*n : (i) + (j)*n]
BLOCK_KERNEL(potrf, linalg_args, p)
{
    i64 n = p.n;
    T  *a = MATRIX(p.a, n, n);
    for (i64 k = 0; k < n; k++) {
        R d = re_of(LOW(k, k));
        if (!(d > 0)) {
            if (threadIdx.x == 0) p.info[blockIdx.x] = (int)k + 1;
            return;
        }
        d = (R)sqrt(d);
        __syncthreads();
        if (threadIdx.x == 0) LOW(k, k) = number_of(d, 0);
        MINE(i, k + 1, n) LOW(i, k) = LOW(i, k) / d;
        __syncthreads();
        i64 rest = n - k - 1;
        MINE(e, 0, rest * rest)
        {
            i64 i = k + 1 + e % rest, j = k + 1 + e / rest;
            if (i < j) continue;
            T x = LOW(i, k), y = LOW(j, k);
            LOW(i, j) -= x * conj_of(y);
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) p.info[blockIdx.x] = 0;
}

/* ---- reflections: I - tau v v^H, v = (1, rest) ---- */

/* The columns y (m, n) times one from the left: a warp per column. */
__device__ inline void apply(T *y, i64 ldy, i64 m, i64 n, const T *rest, T tau)
{
    i64 lane = threadIdx.x % 32, warps = blockDim.x / 32;
    for (i64 j = threadIdx.x / 32; j < n; j += warps) {
        T *col = y + j * ldy, sum = lane == 0 ? col[0] : T(0); /* the lane that writes the head is the only one to read it */
        for (i64 i = 1 + lane; i < m; i += 32) sum += conj_of(rest[i - 1]) * col[i];
        sum = tau * warp_sum(sum);
        for (i64 i = 1 + lane; i < m; i += 32) col[i] -= sum * rest[i - 1];
        if (lane == 0) col[0] -= sum;
    }
}
BLOCK_KERNEL(geqrf, linalg_args, p)
{
    i64 m = p.m, n = p.n, few = m < n ? m : n;
    T  *a = MATRIX(p.a, m, n);
    for (i64 k = 0; k < few; k++) {
        T *x = a + k + k * m;
        R  most = 0, sum = 0;
        MINE(i, 0, m - k) most = size1(x[i]) > most || size1(x[i]) != size1(x[i]) ? size1(x[i]) : most;
        most = block_max(most);
        R scale = most > 0 && most - most == 0 ? most : (R)1;
        MINE(i, 1, m - k) sum += size2(x[i] / scale);
        sum = block_sum(sum);
        T alpha = x[0], tau(0);
        R beta = 0;
        if (sum != 0 || im_of(alpha) != 0) {
            R length = scale * (R)sqrt(sum + size2(alpha / scale));
            beta = re_of(alpha) >= 0 ? -length : length;
            tau = (number_of(beta, 0) - alpha) / beta;
            T by = T(1) / (alpha - number_of(beta, 0));
            __syncthreads();
            MINE(i, 1, m - k) x[i] *= by;
            if (threadIdx.x == 0) x[0] = number_of(beta, 0);
        }
        if (threadIdx.x == 0) p.tau[blockIdx.x * few + k] = tau;
        __syncthreads();
        if (tau != T(0)) apply(x + m, m, m - k, n - k - 1, x + 1, conj_of(tau));
        __syncthreads();
    }
}
/* The first n columns of the product of k reflections. */
BLOCK_KERNEL(orgqr, linalg_args, p)
{
    i64 m = p.m, n = p.n;
    T  *a = MATRIX(p.a, m, n);
    MINE(e, 0, (n - p.k) * m) a[p.k * m + e] = T(e % m == p.k + e / m ? 1 : 0);
    __syncthreads();
    for (i64 i = p.k - 1; i >= 0; i--) {
        T *col = a + i + i * m, tau = p.tau[blockIdx.x * p.k + i];
        if (tau != T(0)) apply(col + m, m, m - i, n - i - 1, col + 1, tau);
        __syncthreads();
        MINE(r, 1, m - i) col[r] *= -tau;
        MINE(r, 0, i) a[r + i * m] = T(0);
        if (threadIdx.x == 0) col[0] = T(1) - tau;
        __syncthreads();
    }
}
/* b (m, cols) := op(Q) b or b op(Q), Q of k reflections. */
BLOCK_KERNEL(ormqr, linalg_args, p)
{
    i64      lane = threadIdx.x % 32, warps = blockDim.x / 32;
    const T *a = p.a + blockIdx.x * p.a_size;
    T       *b = MATRIX(p.b, p.m, p.cols);
    for (i64 step = 0; step < p.k; step++) {
        i64      i = (p.left != 0) == (p.trans != 0) ? step : p.k - 1 - step;
        T        tau = p.tau[blockIdx.x * p.k + i];
        const T *rest = a + i + 1 + i * p.lda;
        if (p.trans) tau = conj_of(tau);
        if (p.left) apply(b + i, p.m, p.m - i, p.cols, rest, tau);
        else
            for (i64 r = threadIdx.x / 32; r < p.m; r += warps) { /* a warp per row */
                T sum = lane == 0 ? b[r + i * p.m] : T(0);
                for (i64 j = lane; j < p.cols - i - 1; j += 32) sum += b[r + (i + 1 + j) * p.m] * rest[j];
                sum = warp_sum(sum) * tau;
                for (i64 j = lane; j < p.cols - i - 1; j += 32) b[r + (i + 1 + j) * p.m] -= sum * conj_of(rest[j]);
                if (lane == 0) b[r + i * p.m] -= sum;
            }
        __syncthreads();
    }
}

/* ---- LDL of symmetric or Hermitian matrices, lower triangles, by Bunch and Kaufman's pivots ---- */
#define SYM(x)  (p.hermitian ? conj_of(x) : (x))
#define REAL(x) (p.hermitian ? number_of(re_of(x), 0) : (x)) /* the diagonal of a Hermitian matrix */
__device__ inline R pivot_size(const linalg_args &p, T x) { return p.hermitian ? (R)fabs(re_of(x)) : size1(x); }
/* The largest size1 of at(i), first <= i < past, and the first i that has it; every thread gets both. */
__device__ R largest_of_block(R best, i64 mine, i64 &where)
{
    __shared__ R   most[1024];
    __shared__ i64 place[1024];
    most[threadIdx.x] = best, place[threadIdx.x] = mine;
    __syncthreads();
    for (int t = 0; t < blockDim.x; t++)
        if (most[t] > best || (most[t] == best && place[t] < mine)) best = most[t], mine = place[t];
    __syncthreads();
    where = mine;
    return best < 0 ? (R)0 : best;
}
template <class F> __device__ R largest_of(i64 first, i64 past, i64 &where, F at)
{
    R   best = -1;
    i64 mine = first;
    MINE(i, first, past) if (size1(at(i)) > best) best = size1(at(i)), mine = i;
    return largest_of_block(best, mine, where);
}
/* Rows and columns s and t > s of the part from k on change places, of the lower triangle alone. */
__device__ void exchange(const linalg_args &p, T *a, i64 n, i64 k, i64 s, i64 t)
{
    MINE(i, t + 1, n)
    {
        T x = a[i + s * n];
        a[i + s * n] = a[i + t * n], a[i + t * n] = x;
    }
    MINE(i, s + 1, t)
    {
        T x = a[i + s * n];
        a[i + s * n] = SYM(a[t + i * n]), a[t + i * n] = SYM(x);
    }
    if (threadIdx.x == 0) {
        T x = REAL(a[s + s * n]);
        a[s + s * n] = REAL(a[t + t * n]), a[t + t * n] = x, a[t + s * n] = SYM(a[t + s * n]);
        if (s > k) x = a[s + k * n], a[s + k * n] = a[t + k * n], a[t + k * n] = x;
    }
    __syncthreads();
}
BLOCK_KERNEL(sytrf, linalg_args, p) /* work: 2 n */
{
    i64     n = p.n, step = 1;
    T      *a = MATRIX(p.a, n, n), *w = p.work + blockIdx.x * 2 * n;
    i32    *piv = p.piv + blockIdx.x * n;
    const R alpha = (R)0.6403882032022076; /* (1 + sqrt(17)) / 8 */
    int     info = 0;
    for (i64 k = 0; k < n; k += step) {
        i64 far, other, chosen = k;
        R   here = pivot_size(p, a[k + k * n]), most = largest_of(k + 1, n, far, [&](i64 i) { return a[i + k * n]; });
        step = 1;
        if (!(here > 0 || most > 0) || here != here) { /* nothing to eliminate with */
            if (!info) info = (int)k + 1;
            __syncthreads();
            if (threadIdx.x == 0) piv[k] = (i32)k + 1, a[k + k * n] = REAL(a[k + k * n]);
            __syncthreads();
            continue;
        }
        if (here < alpha * most) {
            R row = largest_of(k, far, other, [&](i64 j) { return a[far + j * n]; });
            R column = largest_of(far + 1, n, other, [&](i64 i) { return a[i + far * n]; });
            row = column > row ? column : row;
            if (here >= alpha * most * (most / row)) chosen = k;
            else if (pivot_size(p, a[far + far * n]) >= alpha * row) chosen = far;
            else chosen = far, step = 2;
        }
        i64 last = k + step - 1, rest = k + step;
        __syncthreads();
        if (chosen != last) exchange(p, a, n, k, last, chosen);
        if (threadIdx.x == 0) {
            piv[k] = piv[last] = step == 1 ? (i32)chosen + 1 : -(i32)chosen - 1;
            a[k + k * n] = REAL(a[k + k * n]), a[last + last * n] = REAL(a[last + last * n]);
        }
        __syncthreads();
        if (step == 1) {
            T inverse = T(1) / a[k + k * n];
            MINE(i, rest, n) w[i] = a[i + k * n] * inverse;
        } else {
            T x = a[k + 1 + k * n], d1, d2, by; /* the inverse of the block is by (d1, -x; -x', d2) */
            if (p.hermitian) {
                R size = modulus(x);
                d1 = a[k + 1 + (k + 1) * n] / size, d2 = a[k + k * n] / size, x = x / size;
                by = T(1) / ((d1 * d2 - T(1)) * size);
            } else {
                d1 = a[k + 1 + (k + 1) * n] / x, d2 = a[k + k * n] / x;
                by = T(1) / ((d1 * d2 - T(1)) * x), x = T(1);
            }
            MINE(i, rest, n)
            {
                T first = a[i + k * n], second = a[i + (k + 1) * n];
                w[i] = by * (d1 * first - x * second), w[n + i] = by * (d2 * second - SYM(x) * first);
            }
        }
        __syncthreads();
        i64 left = n - rest;
        MINE(e, 0, left * left)
        {
            i64 i = rest + e % left, j = rest + e / left;
            if (i < j) continue;
            T sum = a[i + k * n] * SYM(w[j]);
            if (step == 2) sum += a[i + (k + 1) * n] * SYM(w[n + j]);
            a[i + j * n] -= sum;
            if (i == j) a[i + j * n] = REAL(a[i + j * n]);
        }
        __syncthreads();
        MINE(i, rest, n)
        {
            a[i + k * n] = w[i];
            if (step == 2) a[i + (k + 1) * n] = w[n + i];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) p.info[blockIdx.x] = info;
}
/* Rows s and t of b change places. */
__device__ void swap_rows_of(T *b, i64 n, i64 cols, i64 s, i64 t)
{
    if ((u64)t >= (u64)n || s == t) return; /* no pivot */
    MINE(c, 0, cols)
    {
        T x = b[s + c * n];
        b[s + c * n] = b[t + c * n], b[t + c * n] = x;
    }
}
/* Row k of b less the column of L times the rows of b below `from`: a warp per column of b. */
__device__ void subtract_dots(const linalg_args &p, const T *l, T *b, i64 from, i64 k)
{
    i64 lane = threadIdx.x % 32, warps = blockDim.x / 32;
    for (i64 c = threadIdx.x / 32; c < p.cols; c += warps) {
        T sum(0);
        for (i64 i = from + lane; i < p.n; i += 32) sum += SYM(l[i]) * b[i + c * p.n];
        sum = warp_sum(sum);
        if (lane == 0) b[k + c * p.n] -= sum;
    }
}
BLOCK_KERNEL(sytrs, linalg_args, p) /* b := A^-1 b */
{
    i64        n = p.n;
    const T   *a = MATRIX(p.a, n, n);
    T         *b = MATRIX(p.b, n, p.cols);
    const i32 *piv = p.piv + blockIdx.x * n;
    for (i64 k = 0, step; k < n; k += step) { /* L and D */
        step = piv[k] > 0 || k + 1 == n ? 1 : 2;
        i64 rest = k + step, rows = n - rest;
        swap_rows_of(b, n, p.cols, rest - 1, (piv[k] > 0 ? piv[k] : -piv[k]) - 1);
        __syncthreads();
        MINE(e, 0, rows * p.cols)
        {
            i64 i = rest + e % rows, c = e / rows;
            b[i + c * n] -= a[i + k * n] * b[k + c * n];
            if (step == 2) b[i + c * n] -= a[i + (k + 1) * n] * b[k + 1 + c * n];
        }
        __syncthreads();
        T x = step == 2 ? a[k + 1 + k * n] : T(1), d1 = REAL(a[k + k * n]),
          d2 = step == 2 ? REAL(a[k + 1 + (k + 1) * n]) : T(1);
        if (step == 1) MINE(c, 0, p.cols) b[k + c * n] = b[k + c * n] / d1;
        else {
            d1 = d1 / SYM(x), d2 = d2 / x;
            T by = d1 * d2 - T(1);
            MINE(c, 0, p.cols)
            {
                T first = b[k + c * n] / SYM(x), second = b[k + 1 + c * n] / x;
                b[k + c * n] = (d2 * first - second) / by, b[k + 1 + c * n] = (d1 * second - first) / by;
            }
        }
        __syncthreads();
    }
    for (i64 k = n - 1, step; k >= 0; k -= step) { /* the transpose of L */
        step = piv[k] > 0 || k == 0 ? 1 : 2;
        subtract_dots(p, a + k * n, b, k + 1, k);
        if (step == 2) subtract_dots(p, a + (k - 1) * n, b, k + 1, k - 1);
        __syncthreads();
        swap_rows_of(b, n, p.cols, k, (piv[k] > 0 ? piv[k] : -piv[k]) - 1);
        __syncthreads();
    }
}

/* ---- small things per matrix ---- */
KERNEL(determinant, linalg_args, p) /* of `cols` factored matrices: b, or sign in b and the logarithm in w */
{
    EACH(i, p.cols)
    {
        const T   *a = p.a + i * p.n * p.n;
        const i32 *piv = p.piv + i * p.n;
        T          det(1);
        R          sum = 0;
        for (i64 k = 0; k < p.n; k++) {
            T d = a[k + k * p.n];
            if (piv[k] != k + 1) det = -det;
            if (p.logarithm) {
                R size = modulus(d);
                sum += (R)log(size);
                det = det * (size == 0 ? d : d / size);
            } else det = det * d;
        }
        p.b[i] = det;
        if (p.logarithm) p.w[i] = sum;
    }
}
KERNEL(poison, linalg_args, p) /* matrices of n x n elements without a result: NaN */
{
    EACH(i, p.cols * p.n * p.n) if (p.info[i / (p.n * p.n)] > 0) p.a[i] = T(__int_as_float(0x7fffffff));
}
KERNEL(zero_pivot, linalg_args, p) /* info: the first zero on the diagonal of a (m, n), `cols` of them */
{
    EACH(i, p.cols)
    {
        i32 found = 0;
        for (i64 k = 0; k < p.k && !found; k++)
            if (p.a[i * p.m * p.n + k + k * p.m] == T(0)) found = (i32)k + 1;
        p.info[i] = found;
    }
}
KERNEL(residuals, linalg_args, p) /* w (cols): squares of rows n .. m of b, `k` matrices */
{
    EACH(i, p.k * p.cols)
    {
        R sum = 0;
        for (i64 r = p.n; r < p.m; r++) sum += size2(p.b[i * p.m + r]);
        p.w[i] = sum;
    }
}
struct narrow_args {
    i32       *to;
    const i64 *from;
    i64        n;
};
KERNEL(narrow, narrow_args, p) { EACH(i, p.n) p.to[i] = (i32)p.from[i]; }

/* Elements of matrices that lie anywhere, to matrices that lie anywhere: all, or those on one side of the diagonal and zeros. */
enum { DIMS = 8 };
struct place {
    char *data;
    i64   row, col; /* steps in elements */
    int   ndim;
    i64   size[DIMS], stride[DIMS];
};
struct move_args {
    place to, from;
    i64   batch, rows, cols;
    int   part, conjugate; /* part: 0 all, 1 upper, 2 lower, 3 the identity */
};
__device__ inline i64 offset_of(const place &x, i64 matrix)
{
    i64 offset = 0;
    for (int d = x.ndim - 1; d >= 0; d--) offset += matrix % x.size[d] * x.stride[d], matrix /= x.size[d];
    return offset;
}
KERNEL(move, move_args, p)
{
    EACH(e, p.batch * p.rows * p.cols)
    {
        i64 matrix = e / (p.rows * p.cols), i = e % p.rows, j = e / p.rows % p.cols;
        T   x(0);
        if (p.part == 3) x = T(i == j ? 1 : 0);
        else if (p.part == 0 || (p.part == 1 ? i <= j : i >= j)) {
            x = ((const T *)p.from.data)[offset_of(p.from, matrix) + i * p.from.row + j * p.from.col];
            if (p.conjugate) x = conj_of(x);
        }
        ((T *)p.to.data)[offset_of(p.to, matrix) + i * p.to.row + j * p.to.col] = x;
    }
}
