/* Arguments of the Fourier transform kernels. */
#pragma once
#include "../tensor/tensor.h"

typedef enum {
    LC_FFT_C2C, /* complex to complex, over all dims */
    LC_FFT_R2C, /* real to complex: the last of dims is real in the input */
    LC_FFT_C2R  /* half a Hermitian spectrum to real: the last of dims is real in the output; the direction is backward */
} lc_fft_kind;
typedef struct {
    lc_tensor  *in, *out; /* any strides; no memory in common */
    lc_fft_kind kind;
    int         n_dims;
    const int  *dims;     /* n_dims different ones */
    bool        backward; /* the sign of the exponent: exp(+2 pi i jk / n) */
    bool        whole;    /* R2C: out has all n frequencies of the last of dims, not the first n / 2 + 1 */
    double      scale;    /* multiplies the result */
} lc_fft_args;
