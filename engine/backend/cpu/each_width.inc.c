/* Includes TEMPLATE once per element width: T is an unsigned integer (or a pair of them), names end in the number of bytes. */
typedef struct {
    uint64_t low, high;
} wide;
#define T       uint8_t
#define NAME(f) f##_1
#include TEMPLATE
#define T       uint16_t
#define NAME(f) f##_2
#include TEMPLATE
#define T       uint32_t
#define NAME(f) f##_4
#include TEMPLATE
#define T       uint64_t
#define NAME(f) f##_8
#include TEMPLATE
#define T       wide
#define NAME(f) f##_16
#include TEMPLATE
#undef TEMPLATE
