/* What the files of this folder share. */
#pragma once
#include "../science/science.h"

/* The positions of keys (one dimension, at least one element), smallest key first, equal ones as they come. `order` lies in
 * scratch, which the caller gives back, also after a failure. */
int cuda_order(const lc_tensor *keys, cuda_scratch *scratch, const int **order);
