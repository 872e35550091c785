/* Indexing (args.h: lc_index_args), one thread per position of the walk; duplicates of sums and products meet in atomic updates, or
 * are sorted first (launch/index.c): `place` says where positions go, `combine` is one thread per group of them.
 * T: the elements (moves: a type of their size). VARIANT: the mode. */
enum { READ, WRITE, ADD, MULTIPLY, LARGEST, SMALLEST };
enum { DIMS = 12, INDICES = 6 };
struct index_args {
    T       *indexed, *walked;
    int      ndim, n_index, wraps, flat, flat_ndim;
    i64      n, shape[DIMS], indexed_stride[DIMS], walked_stride[DIMS];
    i64     *index[INDICES];
    i64      stride[INDICES][DIMS], size[INDICES], step[INDICES], dim[INDICES];
    i64      flat_shape[DIMS], flat_stride[DIMS]; /* of `indexed`, for an index that counts its elements */
    trouble *word;
    i64     *keys,
        *from; /* of each position of the first `sorted_ndim` dimensions: its element, -1 if its index is bad; its source */
    const int *order; /* the positions, sorted by their keys */
    i64        sorted;
    int        sorted_ndim;
};
#if VARIANT >= 2
typedef acc_of<T>::type A;
__device__ inline T     together(T old, T v)
{
    A a = (A)value(old), b = (A)value(v);
    if (VARIANT == ADD) return made<T>::of(a + b);
    if (VARIANT == MULTIPLY) return made<T>::of(a * b);
    if (VARIANT == LARGEST) return a != a || a > b ? old : v;
    return a != a || a < b ? old : v;
}
template <class S> __device__ void update(S *p, S v) /* others update the word meanwhile: what is read first is a guess */
{
    if (sizeof(S) == 8) {
        unsigned long long *word = (unsigned long long *)p, seen = *(volatile unsigned long long *)word, next;
        for (;;) {
            S old = *(S *)&seen, now = together(old, v);
            next = *(unsigned long long *)&now;
            unsigned long long was = atomicCAS(word, seen, next);
            if (was == seen) return;
            seen = was;
        }
    }
    if (sizeof(S) == 4) {
        unsigned *word = (unsigned *)p, seen = *(volatile unsigned *)word, next;
        for (;;) {
            S old = *(S *)&seen, now = together(old, v);
            next = *(unsigned *)&now;
            unsigned was = atomicCAS(word, seen, next);
            if (was == seen) return;
            seen = was;
        }
    }
    unsigned *word = (unsigned *)((u64)p & ~3ull), seen = *(volatile unsigned *)word; /* a part of a word of four bytes */
    int       shift = (int)((u64)p & 3) * 8;
    unsigned  mask = sizeof(S) == 1 ? 0xffu : 0xffffu;
    for (;;) {
        unsigned part = seen >> shift & mask, was;
        S        old = sizeof(S) == 1 ? *(S *)&part : *(S *)&part, now = together(old, v);
        unsigned bits = 0;
        *(S *)&bits = now;
        was = atomicCAS(word, seen, (seen & ~(mask << shift)) | (bits & mask) << shift);
        if (was == seen) return;
        seen = was;
    }
}
#if VARIANT == 2
template <> __device__ inline void update<f32>(f32 *p, f32 v) { atomicAdd(p, v); }
template <> __device__ inline void update<f64>(f64 *p, f64 v) { atomicAdd(p, v); }
#endif
#endif
/* Position i of dimensions [first, past): offsets in `indexed` and `walked`, and whether the indices are good. */
__device__ inline bool locate(const index_args &p, int first, int past, i64 i, i64 &at, i64 &other)
{
    i64  left = i, where[INDICES];
    bool good = true;
    at = other = 0;
    for (int k = 0; k < p.n_index; k++) where[k] = 0;
    for (int d = past - 1; d >= first; d--) {
        i64 index = left;
        if (d > first) left /= p.shape[d], index -= left * p.shape[d];
        at += index * p.indexed_stride[d], other += index * p.walked_stride[d];
        for (int k = 0; k < p.n_index; k++) where[k] += index * p.stride[k][d];
    }
    for (int k = 0; k < p.n_index; k++) {
        i64 index = p.index[k][where[k]];
        if (index < (p.wraps ? -p.size[k] : 0) || index >= p.size[k]) {
            report(p.word, 1, index, p.dim[k], p.size[k]);
            good = false;
            continue;
        }
        if (index < 0) index += p.size[k];
        if (p.flat)
            for (int d = p.flat_ndim - 1; d >= 0; d--) {
                at += index % p.flat_shape[d] * p.flat_stride[d];
                index /= p.flat_shape[d];
            }
        else at += index * p.step[k];
    }
    return good;
}
KERNEL(run, index_args, p)
{
    EACH(i, p.n)
    {
        i64 at, other;
        if (!locate(p, 0, p.ndim, i, at, other)) {
            if (VARIANT == READ) {
                T zero = {};
                p.walked[other] = zero;
            }
            continue;
        }
#if VARIANT == 0
        p.walked[other] = p.indexed[at];
#elif VARIANT == 1
        store_one_of(p.indexed + at, p.walked[other]);
#else
        update(p.indexed + at, p.walked[other]);
#endif
    }
}
#if VARIANT == 1 || VARIANT == 2 || VARIANT == 3
KERNEL(place, index_args, p)
{
    EACH(i, p.sorted)
    {
        i64 at, other;
        p.keys[i] = locate(p, 0, p.sorted_ndim, i, at, other) ? at : -1, p.from[i] = other;
    }
}
KERNEL(combine, index_args, p) /* a thread per group and position along the other dimensions */
{
    i64 wide = p.n / p.sorted;
    EACH(e, p.n)
    {
        i64 i = e / wide, left = e % wide, key = p.keys[p.order[i]], at = key, other = 0;
        if (key < 0 || (i && p.keys[p.order[i - 1]] == key)) continue;
        for (int d = p.ndim - 1; d >= p.sorted_ndim; d--) {
            i64 index = left % p.shape[d];
            left /= p.shape[d], at += index * p.indexed_stride[d], other += index * p.walked_stride[d];
        }
        i64 past = i + 1;
#if VARIANT == 1
        while (past < p.sorted && p.keys[p.order[past]] == key) past++;
        p.indexed[at] = p.walked[p.from[p.order[past - 1]] + other];
#else
        A sum = (A)value(p.indexed[at]);
        for (past = i; past < p.sorted && p.keys[p.order[past]] == key; past++) {
            A v = (A)value(p.walked[p.from[p.order[past]] + other]);
            sum = VARIANT == ADD ? sum + v : sum * v;
        }
        p.indexed[at] = made<T>::of(sum);
#endif
    }
}
#endif
