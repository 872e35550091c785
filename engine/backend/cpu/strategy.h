/* Strategies of a heavy kernel: a list in order of preference, one place to look and one place to add.
 *
 * The driver runs the first strategy that suits. `run` may still decline if only the work itself shows that it fails
 * (results that are not finite, a plan that does not pay); then the next one is tried. The last one of a list accepts
 * everything. LUCID_VERBOSE=1 prints the one that ran. Lists are constants and the walk is inlined, so that for small
 * products choosing costs no more than an if-chain. */
#pragma once
#include "../../core/core.h"

enum { LC_DECLINED = 1 };
typedef struct {
    const char *name;
    bool (*suits)(const void *job); /* NULL: always */
    int (*run)(void *job);          /* 0; LC_DECLINED; negative: failed, with the reason */
} lc_strategy;

/* kernel: for the message; NULL: no message. */
static inline __attribute__((always_inline)) int cpu_run_strategies(const char *kernel, const lc_strategy *list, int n,
                                                                    void *job)
{
    int rc = LC_DECLINED;
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
        if (list[i].suits && !list[i].suits(job)) continue;
        if ((rc = list[i].run(job)) == LC_DECLINED) continue;
        if (kernel) lc_verbose_log("  %s: %s", kernel, list[i].name);
        break;
    }
    return rc;
}
#define RUN_STRATEGIES(kernel, list, job) cpu_run_strategies(kernel, list, sizeof list / sizeof *list, job)
