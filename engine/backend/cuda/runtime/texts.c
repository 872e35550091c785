/* Programs for a test that every kernel text compiles (tools/check_cuda_text.py): each body with the types it is used with. */
#include "../driver.h"
#include <string.h>

#define F32  CUDA_TYPE(LC_f32)
#define F64  CUDA_TYPE(LC_f64)
#define B16  CUDA_TYPE(LC_bf16)
#define H16  CUDA_TYPE(LC_f16)
#define I64  CUDA_TYPE(LC_i64)
#define I32  CUDA_TYPE(LC_i32)
#define U8   CUDA_TYPE(LC_u8)
#define B8   CUDA_TYPE(LC_b8)
#define C64  CUDA_TYPE(LC_c64)
#define C128 CUDA_TYPE(LC_c128)
#define W16  CUDA_TYPE(LC_DTYPE_COUNT)
#define EACH_BODY(X)                                                                                                           \
    X(reduce)                                                                                                                  \
    X(softmax)                                                                                                                 \
    X(norm)                                                                                                                    \
    X(cross_entropy)                                                                                                           \
    X(matmul)                                                                                                                  \
    X(small_product)                                                                                                           \
    X(realign)                                                                                                                 \
    X(index)                                                                                                                   \
    X(embedding)                                                                                                               \
    X(optimizer)                                                                                                               \
    X(adafactor)                                                                                                               \
    X(pool)                                                                                                                    \
    X(conv)                                                                                                                    \
    X(small_conv)                                                                                                              \
    X(attention)                                                                                                               \
    X(flash)                                                                                                                   \
    X(moves)                                                                                                                   \
    X(strided_copy) X(scan) X(sort) X(random) X(multinomial) X(rnn) X(cached_attention) X(quantized) X(rotary) X(dropout)
#define EACH_SCIENCE(X)                                                                                                        \
    X(interpolate) X(grid_sample) X(fractional_pool) X(search) X(unique) X(distance) X(ctc) X(fft) X(linalg) X(spectra)
#define EACH_MATH(X) X(complex_lines) X(draws)
#define X(name)      CUDA_BODY(name);
EACH_BODY(X)
EACH_SCIENCE(X)
#undef X
#define X(name) CUDA_MATH_BODY(name);
EACH_MATH(X)
#undef X
static const struct {
    const cuda_body *body;
    int16_t          first, last; /* variants */
    int8_t           type[4][CUDA_TYPES];
} list[] = {
    { &reduce_body, 0, 21, { { F32, F32, F32 } } },
    { &reduce_body, 0, 1, { { B16, B16, F32 }, { F64, F64, F64 } } },
    { &reduce_body, 0, 0, { { I32, I64, I64 }, { B8, I64, I64 } } },
    { &reduce_body, 10, 11, { { B8, B8, I64 }, { F32, B8, F32 } } },
    { &softmax_body, 0, 3, { { B16, B16, B16 } } },
    { &softmax_body, 0, 0, { { F64, F64, F64 } } },
    { &softmax_body, 84, 87, { { F32, F32, F32 }, { B16, B16, B16 } } },
    { &softmax_body, 124, 125, { { F32, F32, F32 } } },
    { &softmax_body, 52, 55, { { B16, B16, B16 } } }, /* rows in registers: by a block, by a warp */
    { &softmax_body, 92, 93, { { B16, B16, B16 }, { F64, F64, F64 } } },
    { &norm_body, 21, 21, { { F32, F32, F32 }, { B16, F32, B16 } } },
    { &norm_body, 31, 31, { { F32, F32, F32 } } },
    { &norm_body, 53, 53, { { F32, F32, F32 }, { B16, F32, B16 } } }, /* of groups */
    { &norm_body, 13, 13, { { B16, F32, F32 }, { H16, F32, H16 } } },
    { &norm_body, 23, 23, { { F32, F32, F32 }, { B16, F32, B16 } } },
    { &norm_body, 0, 0, { { F32, F32, F32 }, { B16, F32, F32 }, { H16, F32, H16 }, { F64, F64, F64 } } },
    { &cross_entropy_body, 0, 0, { { F32, F32, F32 }, { B16, F32, B16 }, { B16, F32, F32 }, { F64, F64, F64 } } },
    { &matmul_body, 0, 1, { { F32, F32, F32 }, { F32, B16, B16 }, { I64, I64, I64 }, { H16, H16, H16 } } },
    { &small_product_body, 0, 63, { { F32, F32, F32 } } },
    { &small_product_body, 0, 0, { { F64, F64, F64 }, { B16, B16, B16 }, { H16, H16, H16 } } },
    { &small_product_body, 43, 43, { { B16, B16, B16 }, { H16, H16, H16 } } },
    { &small_product_body, 56, 56, { { B16, B16, B16 } } },
    { &realign_body, 0, 0, { { CUDA_TYPE(LC_u16) } } },
    { &index_body, 0, 1, { { U8 }, { CUDA_TYPE(LC_u16) }, { CUDA_TYPE(LC_u64) }, { W16 } } },
    { &index_body, 2, 5, { { F32 }, { B16 } } },
    { &index_body, 2, 2, { { F64 }, { I64 }, { B8 }, { U8 } } },
    { &embedding_body, 0, 0, { { U8 }, { W16 } } },
    { &embedding_body, 1, 1, { { F32 }, { F64 } } },
    { &optimizer_body, 0, 9, { { B16, B16, F32 } } },
    { &optimizer_body, 1, 1, { { F64, F64, F64 } } },
    { &adafactor_body, 0, 0, { { F32, F32, F32 }, { B16, B16, B16 }, { F64, F64, F64 } } },
    { &pool_body, 0, 1, { { F32 }, { F64 } } },
    { &pool_body, 0, 0, { { I64 } } },
    { &pool_body, 2, 2, { { C128 }, { B8 } } },
    { &pool_body, 3, 3, { { B16 }, { H16 } } },
    { &pool_body, 5, 5, { { F32 } } },
    { &interpolate_body, 0, 0, { { U8, F32 } } },
    { &interpolate_body, 1, 1, { { F32, F32 }, { F64, F64 } } },
    { &grid_sample_body, 0, 0, { { F32 }, { F64 } } },
    { &fractional_pool_body, 0, 0, { { F32, B16 }, { F64, F64 } } },
    { &search_body, 0, 0, { { B16, I32 }, { I64, I64 } } },
    { &search_body, 1, 2, { { F32, F32 }, { H16, F64 } } },
    { &unique_body, 0, 0, { { F32 }, { B8 }, { I64 } } },
    { &linalg_body, 0, 0, { { F32 }, { F64 } } },
    { &linalg_body, 1, 1, { { C64 }, { C128 } } },
    { &spectra_body, 0, 0, { { F32 }, { F64 } } },
    { &spectra_body, 1, 1, { { C64 }, { C128 } } },
    { &fft_body, 0, 0, { { C64 } } },
    { &fft_body, 1, 1, { { C128 } } },
    { &distance_body, 0, 0, { { F32 }, { F64 } } },
    { &ctc_body, 0, 0, { { F32 }, { F64 } } },
    { &draws_body, 0, 4, { { F32 }, { F64 } } },
    { &draws_body, 1, 1, { { H16 } } },
    { &complex_lines_body, 0, 1, { { C64 }, { C128 } } },
    { &conv_body, 0, 2, { { B16, B16, F32 } } },
    { &conv_body, 0, 0, { { F64, F64, F64 } } },
    { &small_conv_body, 0x528, 0x52a, { { F32 }, { F64 } } }, /* 3 x 3 */
    { &small_conv_body, 0x244, 0x246, { { F32 } } },          /* 5 x 5, two channels, strides */
    { &attention_body, 0, 0, { { F32, F32, F32, F32, F32 }, { B16, F32, B16, B16, F32 } } },
    { &attention_body, 1, 1, { { F32, F32, B8, F32, F32 } } },
    { &flash_body, 0, 3, { { F32, F32, F32 }, { B16, B16, B16 } } },
    { &flash_body, 7, 7, { { F32, F32, F32 } } },
    { &flash_body, 9, 9, { { H16, B8, H16 } } },
    { &flash_body, 17, 17, { { F32, F32, F32 } } },
    { &moves_body, 0, 0, { { U8 }, { W16 } } },
    { &strided_copy_body, 0, 0, { { U8 }, { CUDA_TYPE(LC_u32) }, { W16 } } },
    { &moves_body, 1, 1, { { F32 }, { B16 }, { I64 } } },
    { &scan_body, 0, 4, { { F32 } } },
    { &scan_body, 0, 0, { { I64 } } },
    { &sort_body, 0, 1, { { F32 }, { B16 }, { I64 }, { B8 } } },
    { &random_body, 0, 10, { { B16 } } },
    { &random_body, 0, 1, { { F32 }, { F64 } } },
    { &random_body, 8, 8, { { I64 } } },
    { &random_body, 6, 8, { { B8 } } },
    { &random_body, 10, 10, { { I64 } } },
    { &dropout_body, 1, 2, { { F32 }, { B16 }, { F64 } } },
    { &dropout_body, 4, 4, { { F32 }, { H16 } } },
    { &dropout_body, 8, 8, { { B16 } } },
    { &multinomial_body, 0, 0, { { F32 }, { F64 } } },
    { &rnn_body, 0, 3, { { F32 } } },
    { &cached_attention_body, 0, 0, { { F32 }, { B16 } } },
    { &cached_attention_body, 8, 8, { { F32 }, { B16 }, { H16 }, { F64 } } },
    { &cached_attention_body, 16, 16, { { B16 } } },
    { &cached_attention_body, 32, 32, { { F32 } } },
    { &quantized_body, 0, 1, { { F32 }, { B16 }, { H16 } } },
    { &rotary_body, 0, 0, { { F32 }, { B16 }, { H16 }, { F64 } } },
};

char *lc_cuda_kernel_text(int i)
{
    char *text = cuda_elementwise_text(&i);
    if (text) return text;
    for (size_t e = 0; e < sizeof list / sizeof *list; e++)
        for (int16_t v = list[e].first; v <= list[e].last; v++)
            for (int t = 0; t < 4 && list[e].type[t][0]; t++)
                if (i-- == 0) {
                    cuda_program p = { list[e].body, "", .variant = v };
                    memcpy(p.type, list[e].type[t], sizeof p.type);
                    return cuda_program_text(&p);
                }
    return NULL;
}
