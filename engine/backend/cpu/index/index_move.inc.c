/* One row of an indexed walk that moves elements of type T (a width, not a dtype). */
static int NAME(read)(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    const lc_indexed_row *row = ctx;
    const char           *indexed = ptr[0], *index = ptr[2];
    char                 *walked = ptr[1];
    if (stride[2] == 0) { /* one index for the whole row: an embedding */
        uint64_t k = cpu_index_at(row, index);
        if (k >= (uint64_t)row->size) return 1;
        indexed += (int64_t)k * row->step;
        if (stride[0] == sizeof(T) && stride[1] == sizeof(T)) memcpy(walked, indexed, (size_t)n * sizeof(T));
        else
            for (int64_t i = 0; i < n; i++) *(T *)(walked + i * stride[1]) = *(const T *)(indexed + i * stride[0]);
        return 0;
    }
    if (stride[0] == 0 && row->step == sizeof(T) && stride[1] == sizeof(T) &&
        stride[2] == 8) { /* along a contiguous dimension */
        const uint64_t size = (uint64_t)row->size;
        const int64_t *at = (const int64_t *)index, wrap = row->wrap;
        int64_t        i = 0;
        for (; wrap == 0 && i + 4 <= n; i += 4)
            for (int l = 0; l < 4; l++) {
                if (__builtin_expect((uint64_t)at[i + l] >= size, 0)) return 1;
                ((T *)walked)[i + l] = ((const T *)indexed)[at[i + l]];
            }
        for (; i < n; i++) {
            uint64_t k = (uint64_t)(at[i] + ((at[i] >> 63) & wrap));
            if (__builtin_expect(k >= size, 0)) return 1;
            ((T *)walked)[i] = ((const T *)indexed)[k];
        }
        return 0;
    }
    FOR_GOOD_INDICES(*(T *)(walked + i * stride[1]) = *(const T *)(indexed + i * stride[0] + (int64_t)k * row->step));
    return 0;
}

static int NAME(write)(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    const lc_indexed_row *row = ctx;
    char                 *indexed = ptr[0];
    const char           *walked = ptr[1], *index = ptr[2];
    if (stride[2] == 0) {
        uint64_t k = cpu_index_at(row, index);
        if (k >= (uint64_t)row->size) return 1;
        indexed += (int64_t)k * row->step;
        if (stride[0] == sizeof(T) && stride[1] == sizeof(T)) memcpy(indexed, walked, (size_t)n * sizeof(T));
        else
            for (int64_t i = 0; i < n; i++) *(T *)(indexed + i * stride[0]) = *(const T *)(walked + i * stride[1]);
        return 0;
    }
    if (stride[0] == 0 && row->step == sizeof(T) && stride[1] == sizeof(T) && stride[2] == 8) {
        const uint64_t size = (uint64_t)row->size;
        const int64_t *at = (const int64_t *)index, wrap = row->wrap;
        for (int64_t i = 0; i < n; i++) {
            uint64_t k = (uint64_t)(at[i] + ((at[i] >> 63) & wrap));
            if (__builtin_expect(k >= size, 0)) return 1;
            ((T *)indexed)[k] = ((const T *)walked)[i];
        }
        return 0;
    }
    FOR_GOOD_INDICES(*(T *)(indexed + i * stride[0] + (int64_t)k * row->step) = *(const T *)(walked + i * stride[1]));
    return 0;
}
#undef T
#undef NAME
