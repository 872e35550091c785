/* Floats of one byte: five formats, which differ in how many bits the exponent has and in what stands for infinity and NaN.
 *
 * A byte is decoded by a table, filled when the library is loaded. A float32 is encoded arithmetically: rounded, ties to even,
 * to a multiple of the quantum of its magnitude, in which the multiple and the exponent are the code; a carry out of the
 * mantissa is the next exponent by itself. What is too large becomes, as in PyTorch, the largest number in e4m3fn, infinity in
 * e5m2, and NaN in the formats without a negative zero ("uz"). e8m0fnu is a bare power of two, without a sign; in it a tie
 * rounds up. */
#include "float8.h"
#include "random.h" /* LC_WIDE */
#include <math.h>

typedef struct {
    int     mantissa, bias;
    uint8_t largest, beyond, nan; /* codes without the sign: the largest number, what follows it, NaN */
    bool    signed_zero;
} format;
static const format formats[] = {
    [LC_f8_e4m3fn - LC_f8_e4m3fn] = { 3, 7, 0x7e, 0x7e, 0x7f, true },
    [LC_f8_e5m2 - LC_f8_e4m3fn] = { 2, 15, 0x7b, 0x7c, 0x7f, true },
    [LC_f8_e4m3fnuz - LC_f8_e4m3fn] = { 3, 8, 0x7f, 0x80, 0x80, false },
    [LC_f8_e5m2fnuz - LC_f8_e4m3fn] = { 2, 16, 0x7f, 0x80, 0x80, false },
};
float lc_f8_values[LC_DTYPE_COUNT - LC_f8_e4m3fn][256];

static float value_of(const format *f, int code)
{
    int   magnitude = code & 0x7f, exponent = magnitude >> f->mantissa, mantissa = magnitude & ((1 << f->mantissa) - 1);
    float x = exponent ? ldexpf((float)(mantissa | 1 << f->mantissa), exponent - f->bias - f->mantissa)
                       : ldexpf((float)mantissa, 1 - f->bias - f->mantissa);
    if (f->signed_zero ? magnitude > f->largest : code == f->nan) /* e5m2: infinity, then NaNs */
        x = magnitude == f->beyond && f->beyond != f->nan ? INFINITY : NAN;
    return code & 0x80 ? -x : x;
}

static __attribute__((constructor)) void fill_values(void)
{
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++)
        for (int code = 0; code < 256; code++) lc_f8_values[k][code] = value_of(&formats[k], code);
    for (int code = 0; code < 256; code++)
        lc_f8_values[LC_f8_e8m0fnu - LC_f8_e4m3fn][code] = code == 255 ? NAN : ldexpf(1, code - 127);
}

LC_LOOP powers_loop(const float *restrict x, uint8_t *restrict out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = lc_bits_of_f32(x[i]), exponent = bits >> 23 & 0xff, half = bits >> 22 & 1, rest = bits & 0x3fffff;
        out[i] = (uint8_t)(exponent + (half & (rest + exponent != 0) & (exponent != 0xff)));
    }
}
LC_WIDE(powers, (const float *x, uint8_t *out, int64_t n), x, out, n)

/* Without a branch, for vectors. */
LC_LOOP encode_loop(const float *restrict x, uint8_t *restrict out, int64_t n, format f)
{
    const int      drop = 23 - f.mantissa, least = 1 - f.bias; /* the exponent of the smallest normal number */
    const uint32_t before = (uint32_t)(least + 126) << f.mantissa, smallest = (uint32_t)(least + 127) << 23;
    const float    quantum = lc_f32_of_bits((uint32_t)(least - f.mantissa + 23 + 127) << 23);
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = lc_bits_of_f32(x[i]), sign = bits >> 24 & 0x80, magnitude = bits & 0x7fffffff;
        uint32_t tiny = lc_bits_of_f32(lc_f32_of_bits(magnitude) + quantum) & 0xff; /* the adder rounds to a multiple */
        uint32_t code = ((magnitude + (1u << (drop - 1)) - 1 + (magnitude >> drop & 1)) >> drop) - before;
        code = magnitude < smallest ? tiny : code;
        code = code > f.largest ? f.beyond : code;
        code = magnitude > 0x7f800000 ? f.nan : code;
        sign = f.signed_zero | ((code != 0) & (code != f.nan)) ? sign : 0;
        out[i] = (uint8_t)(sign | code);
    }
}
LC_WIDE(encode, (const float *x, uint8_t *out, int64_t n, format f), x, out, n, f)

void lc_f32_to_f8_row(lc_dtype dtype, const float *restrict x, uint8_t *restrict out, int64_t n)
{
    if (dtype == LC_f8_e8m0fnu) powers(x, out, n);
    else encode(x, out, n, formats[dtype - LC_f8_e4m3fn]);
}

uint8_t lc_f32_to_f8(lc_dtype dtype, float x)
{
    uint8_t code;
    return lc_f32_to_f8_row(dtype, &x, &code, 1), code;
}
