/* The reductions that a backend has as folds, by op. Backends number them in this order. */
#pragma once
#define EACH_FOLD(X)                                                                                                           \
    X(sum)                                                                                                                     \
    X(mean)                                                                                                                    \
    X(prod)                                                                                                                    \
    X(amax)                                                                                                                    \
    X(amin)                                                                                                                    \
    X(max_dim)                                                                                                                 \
    X(min_dim)                                                                                                                 \
    X(argmax)                                                                                                                  \
    X(argmin)                                                                                                                  \
    X(aminmax)                                                                                                                 \
    X(any)                                                                                                                     \
    X(all)                                                                                                                     \
    X(var) X(std) X(count_nonzero) X(nansum) X(norm_one) X(norm_two) X(norm_max) X(norm_min) X(_logsumexp) X(_count_numbers)
