/* Matrix product for operands that cuBLAS does not support, or without it: any strides, any types. T: out, U: a, V: b. A block
 * makes a tile of 64 x 64 from slices of 16 that wait in shared memory; a thread makes 4 x 4 elements, 16 apart. VARIANT 1: the
 * sums are kept in double. */
#if VARIANT
typedef f64 A;
#else
typedef acc_of<T>::type A;
#endif
enum { TILE = 64, DEEP = 16, EACH_WAY = 4 };
struct product {
    T       *out;
    const U *a;
    const V *b;
    i64      batch, m, n, k, out_batch, out_row, out_col, a_batch, a_row, a_col, b_batch, b_row, b_col;
    double   scale;
    int      accumulate;
};
BLOCK_KERNEL(multiply, product, p)
{
    __shared__ A left[DEEP][TILE + 1], right[DEEP][TILE + 1];
    i64          rows = (p.m + TILE - 1) / TILE, cols = (p.n + TILE - 1) / TILE, tile = blockIdx.x % (rows * cols);
    i64          batch = blockIdx.x / (rows * cols), i0 = tile / cols * TILE, j0 = tile % cols * TILE;
    const U     *a = p.a + batch * p.a_batch;
    const V     *b = p.b + batch * p.b_batch;
    int          y = threadIdx.x / 16, x = threadIdx.x % 16;
    A            sum[EACH_WAY][EACH_WAY];
    for (int i = 0; i < EACH_WAY; i++)
        for (int j = 0; j < EACH_WAY; j++) sum[i][j] = 0;
    for (i64 l0 = 0; l0 < p.k; l0 += DEEP) {
        for (int e = threadIdx.x; e < TILE * DEEP; e += 256) {
            /* neighbouring threads read neighbours in memory, whichever way the operand lies */
            int i = p.a_col == 1 ? e / DEEP : e % TILE, l = p.a_col == 1 ? e % DEEP : e / TILE;
            left[l][i] = i0 + i < p.m && l0 + l < p.k ? (A)value(a[(i0 + i) * p.a_row + (l0 + l) * p.a_col]) : (A)0;
            int j = p.b_row == 1 ? e / DEEP : e % TILE;
            l = p.b_row == 1 ? e % DEEP : e / TILE;
            right[l][j] = j0 + j < p.n && l0 + l < p.k ? (A)value(b[(l0 + l) * p.b_row + (j0 + j) * p.b_col]) : (A)0;
        }
        __syncthreads();
        for (int l = 0; l < DEEP; l++)
            for (int i = 0; i < EACH_WAY; i++)
                for (int j = 0; j < EACH_WAY; j++) sum[i][j] += left[l][y + 16 * i] * right[l][x + 16 * j];
        __syncthreads();
    }
    for (int i = 0; i < EACH_WAY; i++)
        for (int j = 0; j < EACH_WAY; j++) {
            i64 row = i0 + y + 16 * i, col = j0 + x + 16 * j;
            if (row >= p.m || col >= p.n) continue;
            T *to = p.out + batch * p.out_batch + row * p.out_row + col * p.out_col;
            A  v = p.scale == 1 ? sum[i][j] : (A)(p.scale * (double)sum[i][j]);
            *to = made<T>::of(p.accumulate ? v + (A)value(*to) : v);
        }
}
/* Small products: a thread per element. */
KERNEL(multiply_each, product, p)
{
    EACH(at, p.batch * p.m * p.n)
    {
        i64      j = at % p.n, i = at / p.n % p.m, batch = at / p.n / p.m;
        const U *a = p.a + batch * p.a_batch + i * p.a_row;
        const V *b = p.b + batch * p.b_batch + j * p.b_col;
        A        sum = 0;
        for (i64 l = 0; l < p.k; l++) sum += (A)value(a[l * p.a_col]) * (A)value(b[l * p.b_row]);
        T *to = p.out + batch * p.out_batch + i * p.out_row + j * p.out_col;
        A  v = p.scale == 1 ? sum : (A)(p.scale * (double)sum);
        *to = made<T>::of(p.accumulate ? v + (A)value(*to) : v);
    }
}
