/* Depthwise convolution in channels-last order: a few results side by side, vectors over channels.
 *
 * Per row of taps, the weights of a vector of channels stay in registers, and every pixel is loaded once for all results
 * that it belongs to; so a row of K taps costs PIXELS * K multiply-adds and PIXELS + 2 K - 1 loads. */
typedef float depthwise_loaded __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef float depthwise_sums __attribute__((vector_size(VECTOR_BYTES)));

INLINE void depthwise_pixels(const conv_pixels *p, const int taps, const int step)
{
    enum { PIXELS = CONV_PIXELS, LANES = VECTOR_BYTES / 4 };
    const int inputs = (PIXELS - 1) * step + taps;
    for (int64_t c = 0; c < p->channels; c += LANES) {
        if (c + LANES > p->channels) c = p->channels - LANES; /* the last vector overlaps the one before it */
        depthwise_sums      sum[PIXELS], w[CONV_MOST_ACROSS];
        const float *const *x = p->x;
#pragma GCC unroll 8
        for (int i = 0; i < PIXELS; i++) sum[i] = *(const depthwise_loaded *)(p->start + c);
        for (int64_t row = 0; row < p->rows; row++, x += inputs) {
            const float *weight = p->weight[row] + c;
#pragma GCC unroll 8
            for (int k = 0; k < taps; k++) w[k] = *(const depthwise_loaded *)(weight + k * p->channels);
#pragma GCC unroll 32
            for (int i = 0; i < inputs; i++) {
                depthwise_sums pixel = *(const depthwise_loaded *)(x[i] + c);
#pragma GCC unroll 8
                for (int k = 0; k < taps; k++)
                    if (i >= k && (i - k) % step == 0 && (i - k) / step < PIXELS) sum[(i - k) / step] += pixel * w[k];
            }
        }
#pragma GCC unroll 8
        for (int i = 0; i < PIXELS; i++) *(depthwise_loaded *)(p->out[i] + c) = sum[i];
    }
}
#define PIXELS_OF(taps, step)                                                                                                  \
    static void depthwise_##taps##_##step(const conv_pixels *p) { depthwise_pixels(p, taps, step); }
PIXELS_OF(2, 1)
PIXELS_OF(3, 1) PIXELS_OF(4, 1) PIXELS_OF(5, 1) PIXELS_OF(6, 1) PIXELS_OF(7, 1) PIXELS_OF(3, 2) PIXELS_OF(5, 2) PIXELS_OF(7, 2)
#undef PIXELS_OF
