/* Reductions. T: the input, U: the value, V: what is accumulated in; VARIANT: which fold (reduce.c). A state is what is known
 * of the elements seen so far; states of later elements are merged into those of earlier ones, in a fixed order. */
enum {
    SUM,
    MEAN,
    PROD,
    AMAX,
    AMIN,
    MAX_DIM,
    MIN_DIM,
    ARGMAX,
    ARGMIN,
    AMINMAX,
    ANY,
    ALL,
    VAR,
    STD,
    COUNT_NONZERO,
    NANSUM,
    NORM_ONE,
    NORM_TWO,
    NORM_MAX,
    NORM_MIN,
    LOGSUMEXP,
    COUNT_NUMBERS
};
#define IS(x)    (VARIANT == (x))
#define LARGEST  (IS(AMAX) || IS(MAX_DIM) || IS(ARGMAX) || IS(NORM_MAX))
#define SMALLEST (IS(AMIN) || IS(MIN_DIM) || IS(ARGMIN) || IS(NORM_MIN))
/* Folds that only add: a state is one number. */
#define IS_PLAIN (IS(SUM) || IS(MEAN) || IS(NANSUM) || IS(NORM_ONE) || IS(NORM_TWO) || IS(COUNT_NONZERO) || IS(COUNT_NUMBERS))
#define INDEXED  (IS(MAX_DIM) || IS(MIN_DIM) || IS(ARGMAX) || IS(ARGMIN))
struct state {
    V   a, b;
    i64 n; /* elements; the index of an extreme */
};
__device__ inline state empty()
{
    state s = { (V)0, (V)0, 0 };
    if (IS(PROD) || IS(ALL)) s.a = (V)1;
    if (INDEXED) s.n = -1;
    return s;
}
template <class S> __device__ S    magnitude(S x) { return x < 0 ? -x : x; }
template <class S> __device__ bool above(S x, S m) { return x > m || (x != x && m == m); }
template <class S> __device__ bool below(S x, S m) { return x < m || (x != x && m == m); }
template <class S> __device__ S    shift(S most) { return most - most == 0 ? most : (S)0; }
template <class S> __device__ S    rescaled(S sum, S from, S to)
{
    return sum == 0 ? (S)0 : sum * (S)exp((double)(shift(from) - shift(to)));
}
__device__ inline float rescaled(float sum, float from, float to)
{
    return sum == 0 ? 0.f : sum * expf(shift(from) - shift(to));
}

__device__ inline state merged(state s, state t)
{
    if (IS(PROD)) s.a = s.a * t.a;
    else if (IS(ANY)) s.a = s.a != 0 || t.a != 0;
    else if (IS(ALL)) s.a = s.a != 0 && t.a != 0;
    else if (INDEXED) {
        if (t.n < 0) return s;
        if (s.n < 0) return t;
        bool wins = LARGEST ? above(t.a, s.a) : below(t.a, s.a);
        bool ties = t.a == s.a || (t.a != t.a && s.a != s.a);
        if (wins || (ties && t.n < s.n)) return t;
    } else if (LARGEST || SMALLEST || IS(AMINMAX)) {
        if (t.n == 0) return s;
        if (s.n == 0) return t;
        if (LARGEST ? above(t.a, s.a) : below(t.a, s.a)) s.a = t.a;
        if (IS(AMINMAX) && above(t.b, s.b)) s.b = t.b;
        s.n += t.n;
    } else if (IS(VAR) || IS(STD)) {
        if (t.n == 0) return s;
        if (s.n == 0) return t;
        V x = (V)s.n, y = (V)t.n, total = x + y, delta = t.a - s.a;
        s.b += t.b + delta * delta * (x * y / total);
        s.a += delta * (y / total);
        s.n += t.n;
    } else if (IS(LOGSUMEXP)) {
        if (t.n == 0) return s;
        if (s.n == 0) return t;
        V most = above(t.a, s.a) ? t.a : s.a;
        s.b = rescaled(s.b, s.a, most) + rescaled(t.b, t.a, most);
        s.a = most, s.n += t.n;
    } else s.a += t.a;
    return s;
}
__device__ inline state with(state s, T element, i64 index)
{
    V x = (V)value(element);
    if (IS(SUM) || IS(MEAN)) s.a += x;
    else if (IS(NANSUM)) s.a += x == x ? x : (V)0;
    else if (IS(NORM_ONE)) s.a += magnitude(x);
    else if (IS(NORM_TWO)) s.a += x * x;
    else if (IS(COUNT_NONZERO)) s.a += x != 0;
    else if (IS(COUNT_NUMBERS)) s.a += x == x;
    else if (IS(VAR) || IS(STD)) {
        V delta = x - s.a;
        s.n++, s.a += delta / (V)s.n, s.b += delta * (x - s.a);
    } else {
        state one = { x, x, INDEXED ? index : 1 };
        if (IS(NORM_MAX) || IS(NORM_MIN)) one.a = magnitude(x);
        if (IS(ANY) || IS(ALL)) one.a = x != 0;
        if (IS(LOGSUMEXP)) one.b = x - x == 0 ? (V)1 : (V)exp((double)(x - shift(x)));
        s = merged(s, one);
    }
    return s;
}

enum { DIMS = 12, THREADS = 256 };
struct part {
    int ndim;
    i64 n, shape[DIMS], in[DIMS], value[DIMS], index[DIMS];
};
struct reduction {
    part   kept, reduced;
    char  *in, *value, *index;
    state *partial; /* a state per output and slice; NULL: one slice */
    i64    slices;
    double parameter;
    int    neighbours; /* wide_columns: a thread's columns are neighbours */
};
__device__ inline void finish(const reduction &p, i64 output, state s)
{
    i64 value_at = 0, index_at = 0, left = output;
    for (int d = p.kept.ndim - 1; d >= 0; d--) {
        i64 index = left;
        if (d) left /= p.kept.shape[d], index -= left * p.kept.shape[d];
        value_at += index * p.kept.value[d], index_at += index * p.kept.index[d];
    }
    double divisor = (double)s.n - p.parameter;
    V      v = s.a;
    if (IS(MEAN)) v = (V)(s.a / (V)p.parameter);
    if (IS(VAR)) v = (V)(s.b / (V)(divisor > 0 ? divisor : 0));
    if (IS(STD)) v = (V)sqrt((double)(s.b / (V)(divisor > 0 ? divisor : 0)));
    if (IS(NORM_TWO)) v = (V)sqrt((double)s.a);
    if (IS(NORM_MIN) && s.n == 0) v = (V)infinity<float>();
    if (IS(LOGSUMEXP)) v = s.n == 0 ? (V)-infinity<float>() : (V)(log((double)s.b) + (double)shift(s.a));
    if (IS(LOGSUMEXP) && s.n && shift(s.a) != s.a) v = s.a != s.a ? s.a : s.b != s.b ? s.b : s.a; /* infinite, or NaN */
    if (p.value) *(U *)(p.value + value_at) = made<U>::of(v);
    if (INDEXED && p.index) *(i64 *)(p.index + index_at) = s.n;
    if (IS(AMINMAX) && p.index) *(U *)(p.index + index_at) = made<U>::of(s.b);
}
__device__ inline const char *input_of(const reduction &p, i64 output)
{
    i64 at = 0, left = output;
    for (int d = p.kept.ndim - 1; d >= 0; d--) {
        i64 index = left;
        if (d) left /= p.kept.shape[d], index -= left * p.kept.shape[d];
        at += index * p.kept.in[d];
    }
    return p.in + at;
}
__device__ inline i64 offset_of(const part &r, i64 at)
{
    i64 offset = 0;
    for (int d = r.ndim - 1; d >= 0; d--) {
        i64 index = at;
        if (d) at /= r.shape[d], index -= at * r.shape[d];
        offset += index * r.in[d];
    }
    return offset;
}
template <class S> struct alignas(16) sixteen {
    S v[16 / sizeof(S)];
};
/* A thread's elements of [begin, end): every blockDim-th; 16 bytes at a time where they lie side by side. */
__device__ inline state folded(const reduction &p, const char *in, i64 begin, i64 end, int thread, int step)
{
    enum { WIDE = 16 / sizeof(T) };
    state s = empty();
    if (p.reduced.ndim <= 1 && (p.reduced.ndim == 0 || p.reduced.in[0] == (i64)sizeof(T))) {
        const T *row = (const T *)in;
        i64      at = begin;
        if ((u64)(row + begin) % 16 == 0 && begin % WIDE == 0) {
            i64 i = begin + thread * WIDE, apart = (i64)step * WIDE;
            if (IS_PLAIN) { /* several loads on their way at once, each into a state of its own */
                enum { AT_ONCE = 4 };
                state t[AT_ONCE];
#pragma unroll
                for (int u = 0; u < AT_ONCE; u++) t[u] = empty();
                for (; i + (AT_ONCE - 1) * apart + WIDE <= end; i += AT_ONCE * apart) {
                    sixteen<T> x[AT_ONCE];
#pragma unroll
                    for (int u = 0; u < AT_ONCE; u++) x[u] = *(const sixteen<T> *)(row + i + u * apart);
#pragma unroll
                    for (int u = 0; u < AT_ONCE; u++)
#pragma unroll
                        for (int j = 0; j < WIDE; j++) t[u] = with(t[u], x[u].v[j], i + u * apart + j);
                }
#pragma unroll
                for (int u = 0; u < AT_ONCE; u++) s = merged(s, t[u]);
            }
            for (; i + WIDE <= end; i += apart) {
                sixteen<T> x = *(const sixteen<T> *)(row + i);
#pragma unroll
                for (int j = 0; j < WIDE; j++) s = with(s, x.v[j], i + j);
            }
            at = begin + (end - begin) / WIDE * WIDE;
        }
        for (i64 i = at + thread; i < end; i += step) s = with(s, row[i], i);
        return s;
    }
    for (i64 i = begin + thread; i < end; i += step) s = with(s, *(const T *)(in + offset_of(p.reduced, i)), i);
    return s;
}
__device__ inline state merged_block(state s)
{
    if (IS_PLAIN) {
        s.a = block_fold(s.a, [](V a, V b) { return a + b; });
        return s;
    }
    __shared__ state all[THREADS];
    all[threadIdx.x] = s;
    for (int half = blockDim.x / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) all[threadIdx.x] = merged(all[threadIdx.x], all[threadIdx.x + half]);
    }
    return threadIdx.x == 0 ? all[0] : s; /* of thread 0, which wrote it last */
}
BLOCK_KERNEL(rows, reduction, p) /* a block per output and slice */
{
    i64 output = blockIdx.x / p.slices, slice = blockIdx.x % p.slices;
    i64 length = (p.reduced.n + p.slices - 1) / p.slices;
    length = (length + 15) / 16 * 16;
    i64   begin = slice * length, end = begin + length < p.reduced.n ? begin + length : p.reduced.n;
    state s = merged_block(folded(p, input_of(p, output), begin, end, threadIdx.x, blockDim.x));
    if (threadIdx.x) return;
    if (p.partial) p.partial[blockIdx.x] = s;
    else finish(p, output, s);
}
BLOCK_KERNEL(slices, reduction, p) /* the slices of an output, in their order */
{
    state s = empty();
    for (i64 i = threadIdx.x; i < p.slices; i += blockDim.x) s = merged(s, p.partial[blockIdx.x * p.slices + i]);
    s = merged_block(s);
    if (threadIdx.x == 0) finish(p, blockIdx.x, s);
}
/* Neighbouring threads have neighbouring outputs: 32 columns, 8 threads of a column. */
BLOCK_KERNEL(columns, reduction, p)
{
    __shared__ state all[THREADS];
    int              column = threadIdx.x % 32, lane = threadIdx.x / 32;
    i64              blocks = (p.kept.n + 31) / 32, output = blockIdx.x % blocks * 32 + column, slice = blockIdx.x / blocks;
    i64              length = (p.reduced.n + p.slices - 1) / p.slices, begin = slice * length;
    i64              end = begin + length < p.reduced.n ? begin + length : p.reduced.n;
    state            s = empty();
    if (output < p.kept.n) {
        const char *in = input_of(p, output);
        if (IS_PLAIN && p.reduced.ndim == 1) {
            i64 apart = p.reduced.in[0];
#pragma unroll 8 /* so many loads are on their way at once */
            for (i64 i = begin + lane; i < end; i += 8) s = with(s, *(const T *)(in + i * apart), i);
        } else
            for (i64 i = begin + lane; i < end; i += 8) s = with(s, *(const T *)(in + offset_of(p.reduced, i)), i);
    }
    all[threadIdx.x] = s;
    __syncthreads();
    if (lane || output >= p.kept.n) return;
    for (int l = 1; l < 8; l++) s = merged(s, all[l * 32 + column]);
    if (p.partial) p.partial[output * p.slices + slice] = s;
    else finish(p, output, s);
}
/* The same for sums of columns that lie side by side: a thread has 16 bytes of columns and several loads on their way. Where rows
 * are so aligned, its columns are neighbours that one load brings; else they are 32 apart. */
enum { LANES = 8, WIDE = 16 / sizeof(T) };
template <class S, class F> __device__ inline void added(V (&s)[WIDE], const S *x, F in_row)
{
#pragma unroll
    for (int j = 0; j < WIDE; j++)
        if (in_row(j)) s[j] = with(state{ s[j], (V)0, 0 }, x[j], 0).a;
}
BLOCK_KERNEL(wide_columns, reduction, p)
{
    enum { COLUMNS = 32 * WIDE, AT_ONCE = 4 };
    __shared__ V all[LANES * COLUMNS];
    int          column = threadIdx.x % 32, lane = threadIdx.x / 32;
    i64         blocks = (p.kept.n + COLUMNS - 1) / COLUMNS, first = blockIdx.x % blocks * COLUMNS, slice = blockIdx.x / blocks;
    i64         length = (p.reduced.n + p.slices - 1) / p.slices, i = slice * length, apart = p.reduced.in[0];
    i64         end = i + length < p.reduced.n ? i + length : p.reduced.n;
    int         here = p.kept.n - first < COLUMNS ? (int)(p.kept.n - first) : COLUMNS;
    const char *in = p.in + first * (i64)sizeof(T);
    V           s[WIDE];
    if (!IS_PLAIN) return;
#pragma unroll
    for (int j = 0; j < WIDE; j++) s[j] = (V)0;
    i += lane;
    if (p.neighbours) {
        auto always = [](int) { return true; };
        in += column * 16;
        if (column * WIDE >= here) i = end;
        for (; i + (AT_ONCE - 1) * LANES < end; i += AT_ONCE * LANES) {
            sixteen<T> x[AT_ONCE];
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++) x[u] = *(const sixteen<T> *)(in + (i + u * LANES) * apart);
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++) added(s, x[u].v, always);
        }
        for (; i < end; i += LANES) added(s, ((const sixteen<T> *)(in + i * apart))->v, always);
    } else {
        auto in_row = [=](int j) { return column + 32 * j < here; };
        for (; i < end; i += LANES) {
            const T *row = (const T *)(in + i * apart) + column;
            T        x[WIDE];
#pragma unroll
            for (int j = 0; j < WIDE; j++)
                if (in_row(j)) x[j] = row[32 * j];
            added(s, x, in_row);
        }
    }
#pragma unroll
    for (int j = 0; j < WIDE; j++) all[lane * COLUMNS + (p.neighbours ? column * WIDE + j : column + 32 * j)] = s[j];
    __syncthreads();
    for (int c = threadIdx.x; c < here; c += blockDim.x) {
        V sum = all[c];
        for (int l = 1; l < LANES; l++) sum += all[l * COLUMNS + c];
        if (p.partial) ((V *)p.partial)[slice * p.kept.n + first + c] = sum; /* a sum, not a state */
        else finish(p, first + c, state{ sum, (V)0, 0 });
    }
}
BLOCK_KERNEL(wide_slices, reduction, p) /* 32 columns, 8 threads of a column */
{
    __shared__ V all[THREADS];
    int          column = threadIdx.x % 32, lane = threadIdx.x / 32;
    i64          output = blockIdx.x * (i64)32 + column;
    V            sum = (V)0;
    if (output < p.kept.n)
#pragma unroll 8
        for (i64 i = lane; i < p.slices; i += LANES) sum += ((const V *)p.partial)[i * p.kept.n + output];
    all[threadIdx.x] = sum;
    __syncthreads();
    if (lane || output >= p.kept.n) return;
    for (int l = 1; l < LANES; l++) sum += all[l * 32 + column];
    finish(p, output, state{ sum, (V)0, 0 });
}
KERNEL(each, reduction, p) /* few elements each: a thread per output */
{
    EACH(output, p.kept.n)
    {
        const char *in = input_of(p, output);
        state       s = empty();
        for (i64 i = 0; i < p.reduced.n; i++) s = with(s, *(const T *)(in + offset_of(p.reduced, i)), i);
        finish(p, output, s);
    }
}
