/* Ramps, triangles, padding, comparisons of whole tensors, and elements chosen by a mask. T: the elements. */
enum { DIMS = 12 };
struct moves_args {
    T       *out;
    const T *in;
    i64      n, step_out, columns, rows, diagonal, shape[DIMS], out_stride[DIMS], in_stride[DIMS];
    int      ndim, upper, whole, power;
    double   start, step, end, base, low, high;
    i64      start_int, step_int, size[3], result[3];
    i64     *from[3];
    u8      *flag;
    int      kind;
};
#if VARIANT == 1 /* ramps: values are computed */
KERNEL(arange, moves_args, p)
{
    EACH(i, p.n)
    p.out[i * p.step_out] = p.whole ? made<T>::of(p.start_int + p.step_int * i) : made<T>::of(p.start + p.step * (double)i);
}
KERNEL(even, moves_args, p) /* linspace, logspace: from both ends */
{
    EACH(i, p.n)
    {
        double v = i < (p.n == 1 ? 1 : p.n / 2) ? p.start + p.step * (double)i : p.end - p.step * (double)(p.n - 1 - i);
        p.out[i * p.step_out] = made<T>::of(p.power ? pow(p.base, v) : v);
    }
}
KERNEL(within, moves_args, p) /* flag starts as 1 */
{
    EACH(i, p.n)
    {
        i64 left = i, at = 0;
        for (int d = p.ndim - 1; d >= 0; d--) {
            at += left % p.shape[d] * p.in_stride[d];
            left /= p.shape[d];
        }
        double x = (double)value(p.in[at]);
        bool   good = x >= p.low && x <= p.high && !((p.kind & 1) && x == p.low) && !((p.kind & 2) && x == p.high);
        if ((p.kind & 4) && !(x - trunc(x) == 0)) good = false;
        if (!good) store_one_of(p.flag, (u8)0);
    }
}
#else /* elements move as they are: T is a type of their size */
KERNEL(triangle, moves_args, p)
{
    EACH(i, p.n)
    {
        i64 left = i, to = 0, from = 0, c = i % p.columns, r = i / p.columns % p.rows;
        for (int d = p.ndim - 1; d >= 0; d--) {
            i64 index = left % p.shape[d];
            left /= p.shape[d];
            to += index * p.out_stride[d], from += index * p.in_stride[d];
        }
        bool kept = p.upper ? c - r >= p.diagonal : c - r <= p.diagonal;
        T    zero = {};
        p.out[to] = kept ? p.in[from] : zero;
    }
}
KERNEL(pad, moves_args, p)
{
    EACH(i, p.n)
    {
        i64 z = i % p.result[2], y = i / p.result[2] % p.result[1], x = i / p.result[2] / p.result[1] % p.result[0];
        i64 outer = i / p.result[2] / p.result[1] / p.result[0];
        p.out[i] = p.in[((outer * p.size[0] + p.from[0][x]) * p.size[1] + p.from[1][y]) * p.size[2] + p.from[2][z]];
    }
}

/* Elements under a mask, in row-major order: counts of pieces, where each piece starts, then the elements. */
enum { PIECE = 1024 };
struct chosen_args {
    const u8 *mask; /* n, contiguous */
    i64      *starts, *count;
    T        *masked, *packed;
    i64      *positions; /* nonzero: (total, ndim), a column after the other */
    i64       n, pieces, total, shape[DIMS], stride[DIMS];
    int       ndim, scatter;
};
BLOCK_KERNEL(count_pieces, chosen_args, p)
{
    i64 begin = blockIdx.x * (i64)PIECE, end = begin + PIECE < p.n ? begin + PIECE : p.n, found = 0;
    for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x) found += p.mask[i] != 0;
    found = block_sum(found);
    if (threadIdx.x == 0) p.starts[blockIdx.x] = found;
}
BLOCK_KERNEL(start_pieces, chosen_args, p) /* one block; each thread has a run of pieces */
{
    __shared__ i64 sums[256];
    i64 each = (p.pieces + 255) / 256, begin = threadIdx.x * each, end = begin + each < p.pieces ? begin + each : p.pieces,
        sum = 0;
    for (i64 i = begin; i < end; i++) sum += p.starts[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    i64 before = 0, all = 0;
    for (int t = 0; t < 256; t++) {
        if (t == threadIdx.x) before = all;
        all += sums[t];
    }
    for (i64 i = begin; i < end; i++) {
        i64 here = p.starts[i];
        p.starts[i] = before, before += here;
    }
    if (threadIdx.x == 0 && p.count) *p.count = all;
}
BLOCK_KERNEL(move_chosen, chosen_args, p) /* a block per piece, 256 threads of four elements */
{
    __shared__ int found[256];
    i64            begin = blockIdx.x * (i64)PIECE + threadIdx.x * 4;
    int            mine = 0;
    for (i64 i = begin; i < begin + 4 && i < p.n; i++) mine += p.mask[i] != 0;
    found[threadIdx.x] = mine;
    __syncthreads();
    i64 at = p.starts[blockIdx.x];
    for (int t = 0; t < threadIdx.x; t++) at += found[t];
    for (i64 i = begin; i < begin + 4 && i < p.n; i++) {
        if (!p.mask[i]) continue;
        i64 left = i, offset = 0;
        for (int d = p.ndim - 1; d >= 0; d--) {
            i64 index = left % p.shape[d];
            left /= p.shape[d];
            offset += index * p.stride[d];
            if (p.positions) p.positions[d * p.total + at] = index;
        }
        if (!p.positions) {
            if (p.scatter) p.masked[offset] = p.packed[at];
            else p.packed[at] = p.masked[offset];
        }
        at++;
    }
}
#endif
