/* In-place sort of integers (sort_in_place.inc.c) of 2, 4 and 8 bytes. */
#include "sort_records.h"
#include <string.h>

enum { PLACE_BITS = 8, PLACE_PARALLEL = 1 << 17 };
static int place_width(int64_t n, int bits) /* aims at parts of a few dozen; uneven values give larger ones */
{
    int width = 0;
    while (width < PLACE_BITS && n >> width > 32) width++;
    return width < bits ? width : bits;
}
#define R       uint16_t
#define NAME(f) f##_16
#include "sort_in_place.inc.c"
#define R       uint32_t
#define NAME(f) f##_32
#include "sort_in_place.inc.c"
#define R       uint64_t
#define NAME(f) f##_64
#include "sort_in_place.inc.c"
void cpu_sort_place(void *a, int64_t size, int64_t n, int low, int bits, bool all)
{
    if (size == 2) (all ? place_long_16 : place_16)(a, n, low, bits);
    else if (size == 4) (all ? place_long_32 : place_32)(a, n, low, bits);
    else (all ? place_long_64 : place_64)(a, n, low, bits);
}
