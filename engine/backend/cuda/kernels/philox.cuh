/* Philox 4x32-10: four random words for each counter of a subsequence. */
struct words {
    u32 v[4];
};
__device__ inline words philox(u64 seed, u64 counter, u64 subsequence)
{
    u32 c0 = (u32)counter, c1 = (u32)(counter >> 32), c2 = (u32)subsequence, c3 = (u32)(subsequence >> 32), k0 = (u32)seed,
        k1 = (u32)(seed >> 32);
    for (int r = 0; r < 10; r++) {
        u32 high0 = __umulhi(0xD2511F53u, c0), low0 = 0xD2511F53u * c0, high1 = __umulhi(0xCD9E8D57u, c2),
            low1 = 0xCD9E8D57u * c2;
        c0 = high1 ^ c1 ^ k0, c1 = low1, c2 = high0 ^ c3 ^ k1, c3 = low0;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    return words{ { c0, c1, c2, c3 } };
}
__device__ inline float unit(u32 x) { return (float)x * 2.3283064e-10f + 2.3283064e-10f / 2.0f; } /* (0, 1] */
