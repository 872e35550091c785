/* Copies between layouts. T: pieces of 1 to 16 bytes, side by side in both tensors as far as their inner dimensions are. Strides
 * count pieces; offsets fit 32 bits. A division by a length is a product with its reciprocal (launch/strided_copy.c). */
enum { DIMS = 8 };
struct length {
    u32 n, reciprocal, shift;
};
struct strided_copy_args {
    u32    n;
    int    ndim;
    length shape[DIMS];
    i32    to_stride[DIMS], from_stride[DIMS];
    char  *to, *from;
};
struct alignas(sizeof(T)) piece { /* moves in one instruction */
    T v;
};
KERNEL(strided_copy, strided_copy_args, p)
{
    enum { AT_ONCE = 2 }; /* loads on their way */
    u32 step = gridDim.x * blockDim.x;
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < p.n; i += AT_ONCE * step) {
        u32   left[AT_ONCE];
        i32   to[AT_ONCE], from[AT_ONCE];
        piece x[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) left[u] = i + u * step, to[u] = from[u] = 0;
        for (int d = p.ndim - 1; d > 0; d--) {
            length l = p.shape[d];
            i32    to_stride = p.to_stride[d], from_stride = p.from_stride[d];
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++) {
                u32 outer = (__umulhi(left[u], l.reciprocal) + left[u]) >> l.shift;
                i32 index = (i32)(left[u] - outer * l.n);
                to[u] += index * to_stride, from[u] += index * from_stride, left[u] = outer;
            }
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            to[u] += (i32)left[u] * p.to_stride[0], from[u] += (i32)left[u] * p.from_stride[0];
            if (i + u * step < p.n) x[u] = ((const piece *)p.from)[from[u]];
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            if (i + u * step < p.n) ((piece *)p.to)[to[u]] = x[u];
    }
}
