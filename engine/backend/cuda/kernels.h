/* Kernel texts. A program is the preamble, a few lines that name the types and the expression, and one of the bodies. */
#pragma once

/* Types and functions that scalar.def's expressions use. Halves are loaded as float. */
static const char cuda_preamble[] =
    "typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef int i32; typedef long long i64;\n"
    "typedef float f32; typedef double f64;\n"
    "struct b8 { unsigned char v; }; struct f16 { unsigned short v; }; struct bf16 { unsigned short v; };\n"
    "template <class T> __device__ T value(T x) { return x; }\n"
    "__device__ inline bool value(b8 x) { return x.v != 0; }\n"
    "__device__ inline float value(f16 x) { float f; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(f) : \"h\"(x.v)); return f; }\n"
    "__device__ inline float value(bf16 x) { return __uint_as_float((unsigned)x.v << 16); }\n"
    "template <class T> struct made { template <class V> __device__ static T of(V v) { return (T)v; } };\n"
    "template <> struct made<b8> { template <class V> __device__ static b8 of(V v) { return b8{ (unsigned char)(v != V(0)) }; "
    "} };\n"
    "template <> struct made<f16> { template <class V> __device__ static f16 of(V v) {\n"
    "    f16 h; asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h.v) : \"f\"((float)v)); return h; } };\n"
    "template <> struct made<bf16> { template <class V> __device__ static bf16 of(V v) {\n"
    "    float f = (float)v; unsigned u = __float_as_uint(f);\n"
    "    return bf16{ f != f ? (unsigned short)0x7fc0 : (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16) }; } };\n"
    "template <class T> __device__ T number(double f, i64 i) { return (T)i; }\n"
    "template <> __device__ inline f32 number<f32>(double f, i64 i) { return (f32)f; }\n"
    "template <> __device__ inline f64 number<f64>(double f, i64 i) { return f; }\n"
    "#define m_exp exp\n#define m_exp2 exp2\n#define m_expm1 expm1\n#define m_log log\n#define m_log1p log1p\n"
    "#define m_log2 log2\n#define m_log10 log10\n#define m_sin sin\n#define m_cos cos\n#define m_tan tan\n#define m_sinh sinh\n"
    "#define m_cosh cosh\n#define m_tanh tanh\n#define m_sqrt sqrt\n#define m_floor floor\n#define m_ceil ceil\n#define m_rint "
    "rint\n"
    "#define m_trunc trunc\n#define m_erf erf\n#define m_erfc erfc\n#define m_abs(x) ((x) < 0 || ((x) == 0 && 1 / (double)(x) "
    "< 0) ? -(x) : (x))\n"
    "#define m_infinity(x) __int_as_float(0x7f800000)\n"
    "template <class T> __device__ T m_clamp(T x, T lo, T hi)\n"
    "{ return x != x || lo != lo || hi != hi ? x + lo + hi : x < lo ? (lo < hi ? lo : hi) : x < hi ? x : hi; }\n"
    "template <class T> __device__ T m_pow(T x, T y) { return (T)pow((double)x, (double)y); }\n"
    "__device__ inline float m_pow(float x, float y) { return powf(x, y); }\n"
    "enum { DIMS = 24, OPERANDS = 5 };\n"
    "struct operand { char *data; i64 stride[DIMS]; double f; i64 i; };\n"
    "struct walk { i64 n; int ndim; i64 shape[DIMS]; operand op[OPERANDS]; };\n";

/* Elementwise: T, OUT, IN0..., f(x, y, z). Operand 0 is the output. NUMBERk is 1 where operand k is a number. */
static const char cuda_elementwise_body[] =
    "extern \"C\" __global__ void run(const __grid_constant__ walk w)\n"
    "{\n"
    "    for (i64 at = blockIdx.x * (i64)blockDim.x + threadIdx.x; at < w.n; at += gridDim.x * (i64)blockDim.x) {\n"
    "        i64 left = at, offset[OPERANDS] = { 0, 0, 0, 0, 0 };\n"
    "        for (int d = w.ndim - 1; d >= 0; d--) {\n"
    "            i64 index = left;\n"
    "            if (d) left /= w.shape[d], index -= left * w.shape[d];\n"
    "            for (int k = 0; k <= N_IN; k++) offset[k] += index * w.op[k].stride[d];\n"
    "        }\n"
    "        *(OUT *)(w.op[0].data + offset[0]) = made<OUT>::of(f(LOAD(1, IN0), LOAD(2, IN1), LOAD(3, IN2)));\n"
    "    }\n"
    "}\n";

/* Reduction: one block per output; each thread folds every 512th element, then the block folds its threads in a fixed order. The
 * walk is over the reduced dimensions; a second one places the output. ACC is what sums are kept in. */
static const char cuda_reduce_body[] =
    "struct reduction { walk kept, reduced; };\n"
    "extern \"C\" __global__ void run(const __grid_constant__ reduction r)\n"
    "{\n"
    "    __shared__ ACC part[512];\n"
    "    i64 left = blockIdx.x, in = 0, out = 0;\n"
    "    for (int d = r.kept.ndim - 1; d >= 0; d--) {\n"
    "        i64 index = left % r.kept.shape[d]; left /= r.kept.shape[d];\n"
    "        out += index * r.kept.op[0].stride[d], in += index * r.kept.op[1].stride[d];\n"
    "    }\n"
    "    ACC acc = START;\n"
    "    for (i64 at = threadIdx.x; at < r.reduced.n; at += 512) {\n"
    "        i64 rest = at, offset = in;\n"
    "        for (int d = r.reduced.ndim - 1; d >= 0; d--) {\n"
    "            offset += rest % r.reduced.shape[d] * r.reduced.op[1].stride[d]; rest /= r.reduced.shape[d];\n"
    "        }\n"
    "        acc = fold(acc, (ACC)value(*(const IN0 *)(r.kept.op[1].data + offset)));\n"
    "    }\n"
    "    part[threadIdx.x] = acc;\n"
    "    for (int half = 256; half; half /= 2) {\n"
    "        __syncthreads();\n"
    "        if (threadIdx.x < half) part[threadIdx.x] = fold(part[threadIdx.x], part[threadIdx.x + half]);\n"
    "    }\n"
    "    if (threadIdx.x == 0) *(OUT *)(r.kept.op[0].data + out) = made<OUT>::of(part[0]);\n"
    "}\n";

/* Matrix product for what the library does not take: any strides, any type. One thread per element of the result. */
static const char cuda_matmul_body[] =
    "struct product { char *out, *a, *b; i64 batch, m, n, k, ob, orow, ocol, ab, arow, acol, bb, brow, bcol; };\n"
    "extern \"C\" __global__ void run(const __grid_constant__ product p)\n"
    "{\n"
    "    i64 at = blockIdx.x * (i64)blockDim.x + threadIdx.x, j = at % p.n, i = at / p.n % p.m, z = at / p.n / p.m;\n"
    "    if (z >= p.batch) return;\n"
    "    const IN0 *a = (const IN0 *)p.a + z * p.ab + i * p.arow, *b = (const IN0 *)p.b + z * p.bb + j * p.bcol;\n"
    "    ACC sum = 0;\n"
    "    for (i64 l = 0; l < p.k; l++) sum += (ACC)value(a[l * p.acol]) * (ACC)value(b[l * p.brow]);\n"
    "    ((OUT *)p.out)[z * p.ob + i * p.orow + j * p.ocol] = made<OUT>::of(sum);\n"
    "}\n";
