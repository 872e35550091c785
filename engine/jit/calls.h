/* calls: what a traced function asked of the engine, call by call, so that it can be asked again for inputs of other sizes.
 * Depends on trace.
 *
 * A graph is made of kernels, whose arguments hold sizes. The calls above them, composites and views among them, do not, as
 * long as the host language has not looked at a size: made again with a batch of another size they do what the function
 * itself would do. Bindings note when it looks, or does something that is no call (lc_calls_incomplete); that a record is right for all sizes is only believed of two
 * records, for two sizes, that are the same. */
#pragma once
#include "trace.h"

typedef struct lc_calls lc_calls;
extern _Thread_local bool
    lc_calls_incomplete; /* set where the host language gets a size or an address, or changes a tensor by no call */

bool      lc_calls_begin(lc_tensor *const *inputs, int n); /* from now on, within the running trace; false: no memory */
lc_calls *lc_calls_end(lc_tensor *const *results, int n);  /* NULL: they cannot be made again, or no memory. No error is set */
bool      lc_calls_alike(const lc_calls *a, const lc_calls *b);
/* 0: results are new references. 1: a call gave something of another form, nothing is left changed but drawn numbers. -1: failure */
int  lc_calls_run(const lc_calls *c, lc_tensor *const *inputs, int n_inputs, lc_tensor **results);
int  lc_calls_results(const lc_calls *c);
void lc_calls_free(lc_calls *c);
/* For trace.c, around every call of the trace. */
void lc_calls_enter(void);
void lc_calls_leave(const lc_record *call);
void lc_calls_refuse(void);
