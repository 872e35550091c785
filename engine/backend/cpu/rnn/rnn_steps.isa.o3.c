/* Compiled once per instruction set: a recurrent layer in one direction, RNN_ROWS sequences at a time over all steps.
 *
 * Bound: the product of the state with the recurrent weights, which every step repeats and which is skinny. So weights are
 * packed once per call (rnn.c), rows are few enough that state and gates stay in L1 between a product and the activations
 * after it, and threads share sequences, which are independent: no thread ever waits for another's step. The op computes the
 * inputs' part of the gates, and the gradients of the weights, as products over all steps. The activated gates are saved:
 * backward has no exponential except that of tanh(c). */
#include "rnn.h"
#include "../matmul/small_gemm.h"
#include "../math/scalar_math.h"
#include <math.h>
#include <string.h>

#define T       float
#define SIGMOID sigmoid_f32
#define TANH    tanh_f32
#define NAME(f) f##_f32
#include "rnn_steps.inc.c"
#define T       double
#define SIGMOID sigmoid_f64
#define TANH    tanh_f64
#define NAME(f) f##_f64
#include "rnn_steps.inc.c"

#define TABLE_OF(isa) lc_cpu_rnns_##isa
#define TABLE(isa)    TABLE_OF(isa)
const lc_rnns TABLE(LC_ISA) = { { forward_f32, forward_f64 }, { backward_f32, backward_f64 } };
