/* Distances between rows of type T by each norm: NAME(f) is the name of f for T. */
#define NORM   none
#define STEP   COUNT
#define JOIN   PLUS
#define FINISH ITSELF
#include "cdist_norm.inc.c"
#define NORM   one
#define STEP   PLUS
#define JOIN   PLUS
#define FINISH ITSELF
#include "cdist_norm.inc.c"
#define NORM   two
#define STEP   SQUARES
#define JOIN   PLUS
#define FINISH ROOT
#include "cdist_norm.inc.c"
#define NORM   most
#define STEP   LARGER
#define JOIN   LARGER
#define FINISH ITSELF
#include "cdist_norm.inc.c"
#define NORM   most_number
#define STEP   LARGER_NUMBER
#define JOIN   LARGER_NUMBER
#define FINISH ITSELF
#include "cdist_norm.inc.c"
#define NORM   any
#define STEP   POWERS
#define JOIN   PLUS
#define FINISH INVERSE
#include "cdist_norm.inc.c"
#undef T
#undef NAME
#undef ABS
#undef ROOT
#undef POW
