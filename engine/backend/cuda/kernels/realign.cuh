/* Rows move between places that start on different multiples of 2 bytes, 16 bytes at a time: a thread reads the two aligned pieces
 * that hold its piece of the result, and shifts. Both hold at least one element of the row, so no page is touched that the row does
 * not lie on. T: u16, sizes count them. A block has a part of one row. */
enum { WIDE = 8, PIECES = 4 };
struct realign_args {
    T       *to;
    const T *from;
    i64      blocks_per_row, rows, cols, to_batch, to_row, from_batch, from_row;
};
struct alignas(16) words {
    u32 v[4];
};
KERNEL(realign, realign_args, p)
{
    u32      line = blockIdx.x / (u32)p.blocks_per_row, batch = line / (u32)p.rows, row = line % (u32)p.rows;
    T       *to = p.to + batch * p.to_batch + row * p.to_row;
    const T *from = p.from + batch * p.from_batch + row * p.from_row;
    int      cols = (int)p.cols, before = (int)((u64)to % 16 / 2); /* the first piece starts so much before the row */
    int      shift = (int)((u64)(from - before) % 16 / 2);         /* the same for every piece of the row */
    int      first = (int)(blockIdx.x % (u32)p.blocks_per_row) * PIECES * blockDim.x + threadIdx.x;
    words    low[PIECES], high[PIECES];
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        int          at = (first + i * (int)blockDim.x) * WIDE - before;
        const words *x = (const words *)(from + at - shift);
        if (at >= 0 && at + WIDE <= cols) {
            low[i] = x[0];
            if (shift) high[i] = x[1];
        }
    }
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        int at = (first + i * (int)blockDim.x) * WIDE - before;
        if (at >= 0 && at + WIDE <= cols) {
            u32 v[8];
#pragma unroll
            for (int w = 0; w < 4; w++) v[w] = low[i].v[w], v[w + 4] = shift ? high[i].v[w] : 0;
#pragma unroll
            for (int w = 0; w < 6; w++) v[w] = shift & 4 ? v[w + 2] : v[w];
#pragma unroll
            for (int w = 0; w < 5; w++) v[w] = shift & 2 ? v[w + 1] : v[w];
            words y;
#pragma unroll
            for (int w = 0; w < 4; w++) y.v[w] = shift & 1 ? v[w] >> 16 | v[w + 1] << 16 : v[w];
            *(words *)(to + at) = y;
        } else
            for (int e = 0; e < WIDE; e++)
                if (at + e >= 0 && at + e < cols) to[at + e] = from[at + e];
    }
}
