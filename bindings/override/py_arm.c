/* Tensor's methods and attributes that are not ops learn to ask for overrides.
 *
 * Their descriptors are CPython's, which call C at once: nothing to pay while no class takes part. When the first one does,
 * the descriptors are changed in place, so that Tensor.size and Tensor.shape stay the objects that tables of functions have
 * as keys. A method's vectorcall is exchanged; the interpreter's specialised calls skip it, but only for exactly Tensor. An
 * attribute gets another getter and setter. */
#include "py_override.h"
#include <structmember.h>

/* What PyTorch does not ask about either. */
static const char *const silent[] = { "__dict__",     "__dir__", "as_subclass",      "__array_priority__",
                                      "__setstate__", "metal",   "__dlpack_device__" };

static bool is_silent(const char *name)
{
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        if (!strcmp(silent[i], name)) return true;
    return false;
}

/* --- methods: CPython has one vectorcall per calling convention ----------------------------------------------------------------- */
enum { CONVENTIONS = 8 };
static struct {
    int            flags;
    vectorcallfunc call;
} original[CONVENTIONS];

static vectorcallfunc *original_of(int flags)
{
    for (int i = 0; i < CONVENTIONS; i++)
        if (original[i].flags == flags || !original[i].call) return original[i].flags = flags, &original[i].call;
    return NULL;
}

static PyObject *method_call(PyObject *descr, PyObject *const *args, size_t nargs, PyObject *names)
{
    if (py_overrides) {
        PyObject *result = py_try_override(descr, args, PyVectorcall_NARGS(nargs), names);
        if (result || PyErr_Occurred()) return result;
    }
    return (*original_of(((PyMethodDescrObject *)descr)->d_method->ml_flags))(descr, args, nargs, names);
}

static int arm_method(PyMethodDescrObject *descr)
{
    if (is_silent(descr->d_method->ml_name) || descr->vectorcall == method_call) return 0;
    vectorcallfunc *call = original_of(descr->d_method->ml_flags);
    if (!call) return PyErr_Format(PyExc_SystemError, "%s: unknown calling convention", descr->d_method->ml_name), -1;
    *call = descr->vectorcall, descr->vectorcall = method_call;
    return 0;
}

/* --- attributes ------------------------------------------------------------------------------------------------------------------ */
typedef struct {
    PyGetSetDef  armed;
    PyGetSetDef *plain;
    PyObject    *descr; /* borrowed: Tensor has it */
} attribute;

PyObject *py_override_attribute(PyObject *descr, const char *how, PyObject *const *args, Py_ssize_t n)
{
    if (n == 1 && Py_TYPE(args[0]) == &PyTensor_Type && !py_modes_active()) return NULL;
    PyObject *func = PyObject_GetAttrString(descr, how), *result = func ? py_try_override(func, args, n, NULL) : NULL;
    Py_XDECREF(func);
    return result;
}

static PyObject *armed_get(PyObject *self, void *closure)
{
    attribute *a = closure;
    if (py_overrides) {
        PyObject *result = py_override_attribute(a->descr, "__get__", &self, 1);
        if (result || PyErr_Occurred()) return result;
    }
    return a->plain->get(self, a->plain->closure);
}

static int armed_set(PyObject *self, PyObject *value, void *closure)
{
    attribute *a = closure;
    if (py_overrides) {
        PyObject *result =
            py_override_attribute(a->descr, value ? "__set__" : "__delete__", (PyObject *[]){ self, value }, value ? 2 : 1);
        Py_XDECREF(result);
        if (result || PyErr_Occurred()) return result ? 0 : -1;
    }
    return a->plain->set(self, value, a->plain->closure);
}

static int arm_attribute(PyGetSetDescrObject *descr)
{
    PyGetSetDef *plain = descr->d_getset;
    if (is_silent(plain->name) || plain->get == armed_get) return 0;
    attribute *a = PyMem_Malloc(sizeof *a); /* lives as long as the type: for ever */
    if (!a) return PyErr_NoMemory(), -1;
    *a = (attribute){ *plain, plain, (PyObject *)descr };
    a->armed.get = armed_get, a->armed.set = plain->set ? armed_set : NULL, a->armed.closure = a;
    descr->d_getset = &a->armed;
    return 0;
}

int py_arm(void)
{
    PyObject  *name, *descr;
    Py_ssize_t at = 0;
    while (PyDict_Next(PyTensor_Type.tp_dict, &at, &name, &descr)) {
        int rc = Py_TYPE(descr) == &PyMethodDescr_Type   ? arm_method((PyMethodDescrObject *)descr)
                 : Py_TYPE(descr) == &PyGetSetDescr_Type ? arm_attribute((PyGetSetDescrObject *)descr)
                                                         : 0;
        if (rc < 0) return -1;
    }
    return 0;
}
