/* Reduction: one block per output. Each thread folds every 512th element, then the block folds its threads in a fixed order.
 * `kept` locates the output, `reduced` walks over the elements. The program defines, after math.cuh: ACC, the accumulator
 * type, OUT, IN0, START and fold(a, b). */
struct reduction {
    walk kept, reduced;
};
extern "C" __global__ void run(const __grid_constant__ reduction r)
{
    __shared__ ACC part[512];
    i64            left = blockIdx.x, in = 0, out = 0;
    for (int d = r.kept.ndim - 1; d >= 0; d--) {
        i64 index = left % r.kept.shape[d];
        left /= r.kept.shape[d];
        out += index * r.kept.op[0].stride[d], in += index * r.kept.op[1].stride[d];
    }
    ACC acc = START;
    for (i64 at = threadIdx.x; at < r.reduced.n; at += 512) {
        i64 rest = at, offset = in;
        for (int d = r.reduced.ndim - 1; d >= 0; d--) {
            offset += rest % r.reduced.shape[d] * r.reduced.op[1].stride[d];
            rest /= r.reduced.shape[d];
        }
        acc = fold(acc, (ACC)value(*(const IN0 *)(r.kept.op[1].data + offset)));
    }
    part[threadIdx.x] = acc;
    for (int half = 256; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] = fold(part[threadIdx.x], part[threadIdx.x + half]);
    }
    if (threadIdx.x == 0) *(OUT *)(r.kept.op[0].data + out) = made<OUT>::of(part[0]);
}
