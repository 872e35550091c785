/* Matrix product for operands that cuBLAS does not support: any strides, any type. One thread per element of the result. The
 * program defines, after math.cuh: ACC, the accumulator type, OUT and IN0. */
struct product {
    char *out, *a, *b;
    i64   batch, m, n, k, ob, orow, ocol, ab, arow, acol, bb, brow, bcol;
};
extern "C" __global__ void run(const __grid_constant__ product p)
{
    i64 at = blockIdx.x * (i64)blockDim.x + threadIdx.x, j = at % p.n, i = at / p.n % p.m, z = at / p.n / p.m;
    if (z >= p.batch) return;
    const IN0 *a = (const IN0 *)p.a + z * p.ab + i * p.arow, *b = (const IN0 *)p.b + z * p.bb + j * p.bcol;
    ACC        sum = 0;
    for (i64 l = 0; l < p.k; l++) sum += (ACC)value(a[l * p.acol]) * (ACC)value(b[l * p.brow]);
    ((OUT *)p.out)[z * p.ob + i * p.orow + j * p.ocol] = made<OUT>::of(sum);
}
