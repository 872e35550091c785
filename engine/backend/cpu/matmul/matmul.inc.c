/* Products of small or thin matrices, and of dtypes without a micro-kernel: T elements, summed as SUM. MUL(a, b) multiplies. */
static void NAME(direct)(const lc_matmul_args *g, int64_t batch, int64_t begin, int64_t end) /* rows begin .. end */
{
    const T *a = (const T *)g->a->data + batch * g->a_batch, *b = (const T *)g->b->data + batch * g->b_batch;
    T       *out = (T *)g->out->data + batch * g->out_batch;
    SUM      sum[COLUMN_TILE];
    for (int64_t i = begin; i < end; i++)
        for (int64_t first = 0, n; first < g->n; first += n) {
            n = g->n - first < COLUMN_TILE ? g->n - first : COLUMN_TILE;
            if (g->b_col == 1 || g->n > 1) { /* rows of b, scaled and summed */
                for (int64_t j = 0; j < n; j++) sum[j] = 0;
                for (int64_t p = 0; p < g->k; p++) {
                    T        x = a[i * g->a_row + p * g->a_col];
                    const T *row = b + p * g->b_row + first * g->b_col;
                    if (g->b_col == 1)
                        for (int64_t j = 0; j < n; j++) sum[j] += MUL(x, row[j]);
                    else
                        for (int64_t j = 0; j < n; j++) sum[j] += MUL(x, row[j * g->b_col]);
                }
            } else { /* one column: eight partial sums */
                SUM           part[8] = { 0 };
                const T      *x = a + i * g->a_row;
                int64_t       p = 0;
                const int64_t dx = g->a_col, dy = g->b_row;
                if (dx == 1 && dy == 1)
                    for (; p + 8 <= g->k; p += 8)
                        for (int l = 0; l < 8; l++) part[l] += MUL(x[p + l], b[p + l]);
                for (; p < g->k; p++) part[p & 7] += MUL(x[p * dx], b[p * dy]);
                sum[0] = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
            }
            for (int64_t j = 0; j < n; j++) out[i * g->out_row + (first + j) * g->out_col] = (T)sum[j];
        }
}
#undef T
#undef SUM
#undef NAME
#undef MUL
