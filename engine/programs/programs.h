/* programs: what a C program needs besides tensors, ops and backward. Depends on ops and autograd.
 *
 * Printing. lc_print(x) prints what Python prints, which is what PyTorch prints.
 *
 * Named tensors. An lc_state_dict is PyTorch's state dict: tensors by name, in order. It is what a safetensors file holds, so Python (lucid.load_safetensors, or
 * any library that reads the format) and C exchange weights by it. A file appears whole or not at all; one that is damaged gives an error.
 *
 * Optimizers. An lc_optimizer holds parameters, settings and states, and makes PyTorch's steps. Settings are plain members: a program that decays the
 * learning rate writes to o->lr between steps.
 *
 * Functions return NULL or -1 after lc_fail, as all others do; lc_error() and lc_error_name() say what happened. */
#pragma once
#include "../autograd/autograd.h"
#include <stdio.h>

/* ---- printing (print.c) ---- */
int   lc_print(lc_tensor *t); /* on stdout, with a newline */
int   lc_fprint(FILE *file, lc_tensor *t);
char *lc_tensor_text(lc_tensor *t); /* "tensor([1., 2.])": free() it. NULL after lc_fail */

/* ---- tensors by name (state_dict.c) ---- */
typedef struct lc_state_dict {
    int         n, capacity;
    char      **names;
    lc_tensor **tensors;
} lc_state_dict;
lc_state_dict *lc_state_dict_new(void);
void           lc_state_dict_free(lc_state_dict *d);                                /* NULL is allowed */
int            lc_state_dict_add(lc_state_dict *d, const char *name, lc_tensor *t); /* holds t; a name can be there once */
lc_tensor     *lc_state_dict_get(const lc_state_dict *d, const char *name); /* borrowed; NULL after lc_fail: it is not there */
/* Copy the values of `from` into the tensors of `to` that have the same names (load_state_dict): the names and shapes must be the same, which is checked
 * before the first write. Not recorded for gradients. */
int lc_state_dict_copy(const lc_state_dict *to, const lc_state_dict *from);

/* ---- files (safetensors.c) ---- */
int            lc_save_safetensors(const lc_state_dict *d, const char *path);
lc_state_dict *lc_load_safetensors(const char *path); /* tensors of the CPU */

/* ---- optimizers (optimizer.c) ---- */
typedef enum { LC_SGD, LC_ADAM, LC_ADAMW } lc_optimizer_kind;
enum { LC_OPTIMIZER_STATES = 3 };
typedef struct lc_optimizer {
    lc_optimizer_kind kind;
    double            lr, weight_decay;
    double            momentum, dampening; /* SGD */
    double            beta1, beta2, eps;   /* Adam, AdamW */
    bool              nesterov, amsgrad, maximize;
    int               n;
    lc_tensor       **params, **steps; /* held; steps: how many steps a parameter has made, float32, NULL before the first */
    lc_tensor **
        states[LC_OPTIMIZER_STATES]; /* SGD: momentum. Adam: exp_avg, exp_avg_sq, max_exp_avg_sq. NULL before they are needed */
} lc_optimizer;
/* The settings besides lr are PyTorch's defaults; change them before the first step. */
lc_optimizer *lc_optimizer_new(lc_optimizer_kind kind, lc_tensor *const *params, int n, double lr);
void          lc_optimizer_free(lc_optimizer *o);      /* NULL is allowed */
int           lc_optimizer_step(lc_optimizer *o);      /* parameters without a gradient stay as they are */
void          lc_optimizer_zero_grad(lc_optimizer *o); /* forgets the gradients */
/* The states as "<prefix>0.exp_avg", "<prefix>0.step", ...: PyTorch's names, after the number of the parameter. save adds them to d, which then shares their
 * memory; load copies them from d, where all states of a parameter must be there or none. */
int lc_optimizer_save(const lc_optimizer *o, const char *prefix, lc_state_dict *d);
int lc_optimizer_load(lc_optimizer *o, const char *prefix, const lc_state_dict *d);
