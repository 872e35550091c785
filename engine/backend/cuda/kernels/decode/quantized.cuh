/* Products with a weight in codes (args.h: lc_quantized_args). T: x and out. VARIANT: 0: int8, 1: int4.
 *
 * A warp makes one column of the result for ROWS rows of x at a time: its lanes share the codes of a weight row, 8 bytes each, and
 * convert them once for all rows. */
struct quantized_args {
    T         *out;
    const T   *x;
    const i8  *codes;
    const f32 *scales, *bias;
    i64        m, n, k, group;
    int        wide; /* 8 bytes of codes have one scale, and lie on 8 bytes */
};
enum { ROWS = 4, AT_ONCE = 8, INT4 = VARIANT };
__device__ inline void add_one(const quantized_args &p, f32 (&sum)[ROWS], i64 first, i64 at, f32 code)
{
    for (int r = 0; r < ROWS && first + r < p.m; r++) sum[r] += code * (f32)value(p.x[(first + r) * p.k + at]);
}
/* 8 neighbours of x from `at` on, times codes. */
__device__ inline void add_eight(const quantized_args &p, f32 (&sum)[ROWS], i64 first, i64 at, const f32 (&code)[AT_ONCE])
{
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        if (first + r >= p.m) break;
        const T *x = p.x + (first + r) * p.k + at;
        enum { PIECE = 16 / sizeof(T) < AT_ONCE ? 16 / sizeof(T) : AT_ONCE };
#pragma unroll
        for (int c = 0; c < AT_ONCE; c += PIECE) {
            several<T, PIECE> near = *(const several<T, PIECE> *)(x + c);
#pragma unroll
            for (int j = 0; j < PIECE; j++) sum[r] += code[c + j] * (f32)value(near.v[j]);
        }
    }
}
BLOCK_KERNEL(multiply, quantized_args, p)
{
    int        lane = threadIdx.x % 32;
    i64        column = blockIdx.x * (i64)(blockDim.x / 32) + threadIdx.x / 32, groups = p.k / p.group;
    bool       mine = column < p.n;
    i64        bytes = INT4 ? p.k / 2 : p.k;
    const i8  *codes = p.codes + (mine ? column : 0) * bytes;
    const f32 *scales = p.scales + (mine ? column : 0) * groups;
    for (i64 first = 0; first < p.m; first += ROWS) {
        f32 sum[ROWS] = { 0 };
        if (mine && p.wide)
            for (i64 at = (i64)lane * AT_ONCE; at < bytes; at += 32 * AT_ONCE) {
                several<i8, AT_ONCE> c = *(const several<i8, AT_ONCE> *)(codes + at);
                i64                  k = INT4 ? at / 16 * 32 + at % 16 : at;
                f32                  scale = scales[k / p.group], low[AT_ONCE], high[AT_ONCE];
#pragma unroll
                for (int j = 0; j < AT_ONCE; j++) {
                    low[j] = scale * (INT4 ? (f32)((c.v[j] & 15) - 8) : (f32)c.v[j]);
                    high[j] = INT4 ? scale * (f32)(((u8)c.v[j] >> 4) - 8) : (f32)0;
                }
                add_eight(p, sum, first, k, low);
                if (INT4) add_eight(p, sum, first, k + 16, high);
            }
        else if (mine)
            for (i64 at = lane; at < bytes; at += 32) {
                i64 k = INT4 ? at / 16 * 32 + at % 16 : at;
                f32 scale = scales[k / p.group];
                add_one(p, sum, first, k, scale * (INT4 ? (f32)((codes[at] & 15) - 8) : (f32)codes[at]));
                if (INT4) add_one(p, sum, first, k + 16, scale * (f32)(((u8)codes[at] >> 4) - 8));
            }
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            for (int d = 16; d; d /= 2) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], d);
        if (mine && lane == 0)
            for (int r = 0; r < ROWS && first + r < p.m; r++)
                p.out[(first + r) * p.n + column] = made<T>::of(sum[r] + (p.bias ? p.bias[column] : (f32)0));
    }
}
