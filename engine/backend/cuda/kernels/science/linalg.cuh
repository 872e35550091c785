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
    int  upper, trans, unit, pivot, left, logarithm; /* trans: 1 transposed, 2 and conjugated */
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
        T *col = y + j * ldy, head = col[0], sum(0); /* every lane reads the head before one of them writes it */
        for (i64 i = 1 + lane; i < m; i += 32) sum += conj_of(rest[i - 1]) * col[i];
        sum = tau * (head + warp_sum(sum));
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
                T head = b[r + i * p.m], sum(0);
                for (i64 j = lane; j < p.cols - i - 1; j += 32) sum += b[r + (i + 1 + j) * p.m] * rest[j];
                sum = (head + warp_sum(sum)) * tau;
                for (i64 j = lane; j < p.cols - i - 1; j += 32) b[r + (i + 1 + j) * p.m] -= sum * conj_of(rest[j]);
                if (lane == 0) b[r + i * p.m] -= sum;
            }
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
