/* Compiled once per instruction set: see embedding.h. Rows are read once and in full lines, so memory bounds these loops; a
 * sum keeps a tile of its columns in registers over all rows. */
#include "embedding.h"
#include "../kernels.h"
#include <string.h>

#define T       float
#define NAME(f) f##_f32
#include "embedding_rows.inc.c"
#define T       double
#define NAME(f) f##_f64
#include "embedding_rows.inc.c"

const lc_embeddings CAT(lc_cpu_embeddings, LC_ISA) = { { sum_f32, products_f32, dot_f32, scale_f32, larger_f32 },
                                                       { sum_f64, products_f64, dot_f64, scale_f64, larger_f64 } };
