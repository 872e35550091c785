/* Operands of a batch for T: fetched into column-major memory and put back. Included by the templates. */
/* Operand k of matrix i, column-major: where it lies if it is so already, else in memory from the workspace, to be copied back by put. */
static UNUSED T *NAME(place)(const lc_matrices *m, int64_t i, char **work, int *ld)
{
    T   *own = piece(work, m->rows * m->cols, sizeof(T));
    bool direct = m->data && is_column_major(m);
    *ld = (int)(direct && m->cols > 1 ? m->col_step : leading(m->rows));
    return direct ? (T *)matrix_at(m, i, sizeof(T)) : own;
}
static UNUSED void NAME(fetch)(const lc_matrices *m, int64_t i, T *to, int64_t ld)
{
    copy_matrix(to, 1, ld, matrix_at(m, i, sizeof(T)), m->row_step, m->col_step, m->rows, m->cols, sizeof(T));
}
static UNUSED void NAME(put)(const lc_matrices *m, int64_t i, const T *from, int64_t ld)
{
    char *to = m->data ? matrix_at(m, i, sizeof(T)) : (char *)from;
    if (to != (const char *)from) copy_matrix(to, m->row_step, m->col_step, from, 1, ld, m->rows, m->cols, sizeof(T));
}
static UNUSED void NAME(put_real)(const lc_matrices *m, int64_t i, const R *from)
{
    R *to = (R *)matrix_at(m, i, sizeof(R));
    for (int64_t r = 0; r < m->rows; r++) to[r * m->row_step] = from[r];
}
static UNUSED void NAME(put_pivots)(const lc_matrices *m, int64_t i, const int32_t *from)
{
    int32_t *to = m->data ? (int32_t *)matrix_at(m, i, sizeof(int32_t)) : NULL;
    for (int64_t r = 0; r < m->rows && to; r++) to[r * m->row_step] = from[r];
}
static UNUSED void NAME(get_pivots)(const lc_matrices *m, int64_t i, int32_t *to)
{
    const int32_t *from = (int32_t *)matrix_at(m, i, sizeof(int32_t));
    for (int64_t r = 0; r < m->rows; r++) to[r] = from[r * m->row_step];
}
static UNUSED void NAME(put_info)(const lc_matrices *m, int64_t i, int info)
{
    if (m->data) *(int32_t *)matrix_at(m, i, sizeof(int32_t)) = info;
}
static inline UNUSED void NAME(conjugate)(UNUSED T *x, UNUSED int64_t n)
{
#if IS_COMPLEX
    for (int64_t i = 0; i < n; i++) x[i] = ~x[i]; /* GNU C: the conjugate */
#endif
}
