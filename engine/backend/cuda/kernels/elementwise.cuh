/* Elementwise: operand 0 is the output. The program defines, after math.cuh: T, OUT, N_IN, f(x, y, z, w), and LOAD_k for
 * each input: its element, a scalar passed with the call, or zero. */
extern "C" __global__ void run(const __grid_constant__ walk w)
{
    for (i64 at = blockIdx.x * (i64)blockDim.x + threadIdx.x; at < w.n; at += gridDim.x * (i64)blockDim.x) {
        i64 left = at, offset[OPERANDS] = { 0, 0, 0, 0, 0 };
        for (int d = w.ndim - 1; d >= 0; d--) {
            i64 index = left;
            if (d) left /= w.shape[d], index -= left * w.shape[d];
            for (int k = 0; k <= N_IN; k++) offset[k] += index * w.op[k].stride[d];
        }
        *(OUT *)(w.op[0].data + offset[0]) = made<OUT>::of(f(LOAD_1, LOAD_2, LOAD_3, LOAD_4));
    }
}
