/* Scans of lines: one set per instruction set (scan_lines.isa.c is compiled for each), chosen by scan.c. Everything is
 * contiguous. */
#pragma once
#include "../../../core/core.h"

typedef enum { CUMSUM, CUMPROD, CUMMAX, CUMMIN, SCAN_KINDS } scan_kind;
enum { SCAN_LANES = 512 };

/* total: *sum, a double, an int64 or two doubles, becomes the sum of n elements. line: out[i] = *sum + in[0] + ... + in[i];
 * then *sum += total. lanes: lines from zero, up to SCAN_LANES interleaved, element i of line l at [i * step + l]. at: the
 * index of the extreme (cummax, cummin), in the layout of out. */
typedef struct {
    void (*total)(void *sum, const void *in, int64_t n);
    void (*line)(void *out, int64_t *at, const void *in, int64_t n, void *sum);
    void (*lanes)(void *out, int64_t *at, const void *in, int64_t n, int64_t lanes, int64_t step);
} lc_scan;
typedef lc_scan lc_scans[SCAN_KINDS][LC_DTYPE_COUNT];
