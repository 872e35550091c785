/* What the files of this folder share. */
#pragma once
#include "../py.h"

int py_tensors_of(PyObject *sequence, lc_tensor ***list, int *n); /* borrowed tensors of a list or tuple; PyMem_Free(*list) */
int py_add_calls(PyObject *module);
