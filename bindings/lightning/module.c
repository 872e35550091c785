/* The module of the hot functions, made at the first call of lucid._C._lightning(): `import lucid` pays nothing for it. */
#include "lightning.h"

static struct PyModuleDef definition = { PyModuleDef_HEAD_INIT, "lightning_core", NULL, -1, NULL, NULL, NULL, NULL, NULL };

static PyObject *make_module(void)
{
    static PyMethodDef *const parts[] = { lightning_oneshot_functions, lightning_conv_functions, lightning_choice_functions,
                                          lightning_device_functions, lightning_runtime_functions };
    PyObject                 *m = PyModule_Create(&definition);
    for (size_t i = 0; m && i < sizeof parts / sizeof *parts; i++)
        if (PyModule_AddFunctions(m, parts[i]) < 0) Py_CLEAR(m);
    if (m && lightning_add_sessions(m) < 0) Py_CLEAR(m);
    return m;
}
static PyObject *lightning(UNUSED PyObject *m, UNUSED PyObject *unused)
{
    static PyObject *made;
    if (!made) made = make_module();
    return Py_XNewRef(made);
}

PyMethodDef py_lightning_functions[] = {
    { "_lightning", lightning, METH_NOARGS, "The compiled part of the package lightning_core." },
    { 0 },
};
