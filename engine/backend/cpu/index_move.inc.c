/* One row of an indexed walk, for elements of type T (a width, not a dtype): ptr is many, each, index. */
static int NAME(read)(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    const indexed_row *row = ctx;
    const char        *many = ptr[0], *index = ptr[2];
    char              *each = ptr[1];
    if (stride[2] == 0) { /* one index for the whole row: an embedding */
        many += index_offset(row, index);
        if (stride[0] == sizeof(T) && stride[1] == sizeof(T)) memcpy(each, many, (size_t)n * sizeof(T));
        else
            for (int64_t i = 0; i < n; i++) *(T *)(each + i * stride[1]) = *(const T *)(many + i * stride[0]);
    } else
        for (int64_t i = 0; i < n; i++)
            *(T *)(each + i * stride[1]) = *(const T *)(many + i * stride[0] + index_offset(row, index + i * stride[2]));
    return 0;
}

static int NAME(write)(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    const indexed_row *row = ctx;
    char              *many = ptr[0];
    const char        *each = ptr[1], *index = ptr[2];
    if (stride[2] == 0) {
        many += index_offset(row, index);
        if (stride[0] == sizeof(T) && stride[1] == sizeof(T)) memcpy(many, each, (size_t)n * sizeof(T));
        else
            for (int64_t i = 0; i < n; i++) *(T *)(many + i * stride[0]) = *(const T *)(each + i * stride[1]);
    } else
        for (int64_t i = 0; i < n; i++)
            *(T *)(many + i * stride[0] + index_offset(row, index + i * stride[2])) = *(const T *)(each + i * stride[1]);
    return 0;
}
#undef T
#undef NAME
