#include "promote.h"

lc_dtype lc_complex_of(lc_dtype real)
{
    return real == LC_f64 || real == LC_c128 ? LC_c128 : real == LC_f16 || real == LC_c32 ? LC_c32 : LC_c64;
}

lc_dtype lc_promote_types(lc_dtype a, lc_dtype b) /* LC_DTYPE_COUNT after lc_fail */
{
    lc_dtype low = a < b ? a : b, high = a < b ? b : a;
    if (low == high || (low == LC_b8 && !(high >= LC_u16 && high <= LC_u64) && !lc_is_float8(high))) return high;
    if (high == LC_DTYPE_COUNT) return high; /* failed before */
    if (lc_is_float8(high))
        return lc_fail(LC_LucidError, "Promotion for float8 types is not supported, attempted to promote %s and %s",
                       lc_dtypes[a].name, lc_dtypes[b].name),
               LC_DTYPE_COUNT;
    switch (lc_class_of(high)) {
    case LC_INT: /* uint8 and int8 promote to int16 */
        if (high >= LC_u16) break;
        return low == LC_u8 && high == LC_i8 ? LC_i16 : high;
    case LC_FLOAT:
        return low == LC_f16 && high == LC_bf16 ? LC_f32 : high;
    default:
        if (low >= LC_u16 && low <= LC_u64) break;
        return low == LC_f64 ? LC_c128 : high == LC_c32 && (low == LC_bf16 || low == LC_f32) ? LC_c64 : high;
    }
    lc_fail(LC_LucidError, "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote %s and %s",
            lc_dtypes[a].name, lc_dtypes[b].name);
    return LC_DTYPE_COUNT;
}

static int within(int have, int more) { return have < 0 ? more : (int)lc_promote_types((lc_dtype)have, (lc_dtype)more); }

static int across(int high, int low)
{
    if (high < 0 || low == LC_DTYPE_COUNT) return low;
    if (high == LC_b8 && low >= 0) return (int)lc_promote_types(LC_b8, (lc_dtype)low);
    if (low < 0 || lc_class_of(high) >= lc_class_of(low)) return high;
    if (lc_is_float8(high)) return (int)lc_promote_types((lc_dtype)high, (lc_dtype)low); /* fails */
    if (lc_class_of(high) == LC_FLOAT) return lc_complex_of((lc_dtype)high);
    return lc_is_float8(low) ? (int)lc_promote_types((lc_dtype)high, (lc_dtype)low) : low;
}

static int weak_dtype(const lc_tensor *number)
{
    switch (lc_class_of(number->dtype)) {
    case LC_FLOAT:
        return lc_default_dtype;
    case LC_COMPLEX:
        return lc_complex_of(lc_default_dtype);
    default:
        return number->dtype;
    }
}

lc_dtype lc_result_type(lc_tensor *const *in, int n)
{
    int best[3] = { -1, -1, -1 }; /* with dimensions, 0-d, Python scalar */
    for (int k = 0; k < n; k++) {
        const lc_tensor *t = in[k];
        if (t == LC_NONE) continue;
        int rank = t->is_number ? 2 : t->ndim ? 0 : 1;
        best[rank] = within(best[rank], rank == 2 ? weak_dtype(t) : t->dtype);
    }
    if (best[0] == LC_DTYPE_COUNT || best[1] == LC_DTYPE_COUNT) return LC_DTYPE_COUNT;
    int found = across(best[0], across(best[1], best[2]));
    return found < 0 ? lc_default_dtype : (lc_dtype)found;
}

bool lc_can_cast(lc_dtype from, lc_dtype to)
{
    if (lc_is_complex(from) && !lc_is_complex(to)) return false;
    if (lc_is_floating(from) && lc_class_of(to) <= LC_INT) return false;
    return from == LC_b8 || to != LC_b8;
}
