/* Includes the template TEMPLATE once per element type. NAME(f) is f_s, f_d, f_c, f_z; CALL(f, ...) calls the routine of LAPACK for the type.
 * Routines have no prototypes: every argument is an address or, at the end, the length of a string. */
#define IS_COMPLEX   0
#define T            float
#define R            float
#define REAL(x)      (x)
#define MODULUS(x)   fabsf(x)
#define CALL(f, ...) (*lapack_routines[LAPACK_s][LAPACK_##f])(__VA_ARGS__)
#define NAME(f)      f##_s
#include TEMPLATE
#undef T
#undef R
#undef MODULUS
#undef CALL
#undef NAME
#define T            double
#define R            double
#define MODULUS(x)   fabs(x)
#define CALL(f, ...) (*lapack_routines[LAPACK_d][LAPACK_##f])(__VA_ARGS__)
#define NAME(f)      f##_d
#include TEMPLATE
#undef IS_COMPLEX
#undef T
#undef R
#undef REAL
#undef MODULUS
#undef CALL
#undef NAME
#define IS_COMPLEX   1
#define T            float complex
#define R            float
#define REAL(x)      (__real__(x))
#define MODULUS(x)   cabsf(x)
#define CALL(f, ...) (*lapack_routines[LAPACK_c][LAPACK_##f])(__VA_ARGS__)
#define NAME(f)      f##_c
#include TEMPLATE
#undef T
#undef R
#undef MODULUS
#undef CALL
#undef NAME
#define T            double complex
#define R            double
#define MODULUS(x)   cabs(x)
#define CALL(f, ...) (*lapack_routines[LAPACK_z][LAPACK_##f])(__VA_ARGS__)
#define NAME(f)      f##_z
#include TEMPLATE
#undef IS_COMPLEX
#undef T
#undef R
#undef REAL
#undef MODULUS
#undef CALL
#undef NAME
