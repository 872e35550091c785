/* For all C tests: a check that prints where it failed and the engine's last error. */
#pragma once
#include "../../engine/core/core.h"
#include <stdio.h>
#include <stdlib.h>

#ifndef UNUSED /* lucid.h takes the engine's short macros back */
#define UNUSED __attribute__((unused))
#endif

#define CHECK(condition)                                                                                                       \
    do {                                                                                                                       \
        if (!(condition)) {                                                                                                    \
            printf("FAIL %s:%d: %s (last error: %s)\n", __FILE__, __LINE__, #condition, lc_error());                           \
            fflush(stdout);                                                                                                    \
            _Exit(1);                                                                                                          \
        }                                                                                                                      \
    } while (0)
