/* Dropout in the layout of PyTorch's kernel: a thread takes VARIANT neighbours at a time and four random words for each four of
 * them (two neighbours: the first two words; one: the four elements that lie the number of threads apart). T: the elements. */
#include "../philox.cuh"
enum { VECTOR = VARIANT, DRAWS = VECTOR > 4 ? VECTOR / 4 : 1 };
struct dropout_args {
    const T   *in;
    T         *out;
    u8        *mask;
    i64        n, threads;
    u64        seed, offset;
    const u64 *replayed; /* in a captured graph: seed, and what offset counts from */
    double     keep;
};
struct alignas(sizeof(T) * VECTOR) vector_of_elements {
    T v[VECTOR];
};
struct alignas(VECTOR) vector_of_flags {
    u8 v[VECTOR];
};
KERNEL(drop, dropout_args, p)
{
    typedef acc_of<T>::type A;
    A                       keep = (A)p.keep, scale = (A)(1.0 / keep);
    i64                     thread = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    u64 seed = p.replayed ? p.replayed[0] : p.seed, offset = p.replayed ? p.replayed[1] + p.offset : p.offset;
    if (VECTOR == 1) {
        for (i64 first = thread, round = 0; first < p.n; first += 4 * p.threads, round++) {
            words w = philox(seed, offset / 4 + (u64)round, (u64)thread);
            for (int k = 0; k < 4; k++) {
                i64 i = first + k * p.threads;
                if (i >= p.n) break;
                A kept = unit(w.v[k]) < keep;
                p.out[i] = made<T>::of((A)value(p.in[i]) * kept * scale), p.mask[i] = (u8)kept;
            }
        }
        return;
    }
    for (i64 first = thread * VECTOR, round = 0; first < p.n; first += p.threads * VECTOR, round++) {
        vector_of_elements x = *(const vector_of_elements *)(p.in + first);
        vector_of_flags    flags;
        for (int part = 0; part < DRAWS; part++) {
            words w = philox(seed, offset / 4 + (u64)(round * DRAWS + part), (u64)thread);
            for (int k = 0; k < 4 && k < VECTOR; k++) {
                A kept = unit(w.v[k]) < keep;
                x.v[4 * part + k] = made<T>::of((A)value(x.v[4 * part + k]) * kept * scale), flags.v[4 * part + k] = (u8)kept;
            }
        }
        *(vector_of_elements *)(p.out + first) = x, *(vector_of_flags *)(p.mask + first) = flags;
    }
}
