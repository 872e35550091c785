/* One row of an indexed walk that moves elements of type T (a width, not a dtype). */
static int NAME(read)(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    const lc_indexed_row *row = ctx;
    const char           *many = ptr[0], *index = ptr[2];
    char                 *each = ptr[1];
    if (stride[2] == 0) { /* one index for the whole row: an embedding */
        many += cpu_index_offset(row, index);
        if (stride[0] == sizeof(T) && stride[1] == sizeof(T)) memcpy(each, many, (size_t)n * sizeof(T));
        else
            for (int64_t i = 0; i < n; i++) *(T *)(each + i * stride[1]) = *(const T *)(many + i * stride[0]);
    } else if (stride[0] == 0 && stride[1] == sizeof(T) && stride[2] == 8) /* along the dimension that is indexed */
        for (int64_t i = 0; i < n; i++) ((T *)each)[i] = *(const T *)(many + cpu_index_offset(row, index + i * 8));
    else
        for (int64_t i = 0; i < n; i++)
            *(T *)(each + i * stride[1]) = *(const T *)(many + i * stride[0] + cpu_index_offset(row, index + i * stride[2]));
    return 0;
}

static int NAME(write)(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    const lc_indexed_row *row = ctx;
    char                 *many = ptr[0];
    const char           *each = ptr[1], *index = ptr[2];
    if (stride[2] == 0) {
        many += cpu_index_offset(row, index);
        if (stride[0] == sizeof(T) && stride[1] == sizeof(T)) memcpy(many, each, (size_t)n * sizeof(T));
        else
            for (int64_t i = 0; i < n; i++) *(T *)(many + i * stride[0]) = *(const T *)(each + i * stride[1]);
    } else
        for (int64_t i = 0; i < n; i++)
            *(T *)(many + i * stride[0] + cpu_index_offset(row, index + i * stride[2])) = *(const T *)(each + i * stride[1]);
    return 0;
}
#undef T
#undef NAME
