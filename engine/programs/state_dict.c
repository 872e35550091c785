/* Tensors by name. A list is enough: programs have tens of names, and files sort theirs (safetensors.c). */
#include "parts.h"

#include "op_calls.gen.h"
#include <string.h>

lc_state_dict *lc_state_dict_new(void)
{
    lc_state_dict *d = lc_alloc(sizeof *d);
    if (d) *d = (lc_state_dict){ 0 };
    return d;
}

void lc_state_dict_free(lc_state_dict *d)
{
    if (!d) return;
    for (int i = 0; i < d->n; i++) lc_free(d->names[i], strlen(d->names[i]) + 1), lc_release(d->tensors[i]);
    if (d->names) lc_free(d->names, (size_t)d->capacity * sizeof *d->names);
    if (d->tensors) lc_free(d->tensors, (size_t)d->capacity * sizeof *d->tensors);
    lc_free(d, sizeof *d);
}

static int grow(lc_state_dict *d)
{
    int         capacity = d->capacity ? 2 * d->capacity : 16;
    char      **names = lc_alloc((size_t)capacity * sizeof *names);
    lc_tensor **tensors = names ? lc_alloc((size_t)capacity * sizeof *tensors) : NULL;
    if (!tensors) {
        if (names) lc_free(names, (size_t)capacity * sizeof *names);
        return -1;
    }
    if (d->n) {
        memcpy(names, d->names, (size_t)d->n * sizeof *names);
        memcpy(tensors, d->tensors, (size_t)d->n * sizeof *tensors);
    }
    if (d->names) lc_free(d->names, (size_t)d->capacity * sizeof *names);
    if (d->tensors) lc_free(d->tensors, (size_t)d->capacity * sizeof *tensors);
    d->names = names, d->tensors = tensors, d->capacity = capacity;
    return 0;
}

int lc_state_dict_append(lc_state_dict *d, const char *name, lc_tensor *t)
{
    if (!t) return -1; /* an earlier failure passes through */
    if (d->n == d->capacity && grow(d) < 0) return -1;
    size_t bytes = strlen(name) + 1;
    char  *copy = lc_alloc(bytes);
    if (!copy) return -1;
    memcpy(copy, name, bytes);
    d->names[d->n] = copy, d->tensors[d->n++] = lc_retain(t);
    return 0;
}

static int position(const lc_state_dict *d, const char *name)
{
    for (int i = 0; i < d->n; i++)
        if (strcmp(d->names[i], name) == 0) return i;
    return -1;
}

int lc_state_dict_add(lc_state_dict *d, const char *name, lc_tensor *t)
{
    if (position(d, name) >= 0) return lc_fail_int(LC_ValueError, "the state dict has a tensor \"%s\" already", name);
    if (t == LC_NONE) return lc_fail_int(LC_ValueError, "LC_NONE cannot be a tensor of a state dict (\"%s\")", name);
    return lc_state_dict_append(d, name, t);
}

lc_tensor *lc_state_dict_get(const lc_state_dict *d, const char *name)
{
    int i = position(d, name);
    return i < 0 ? lc_fail(LC_IndexError, "the state dict has no tensor \"%s\" (it has %d)", name, d->n) : d->tensors[i];
}

int lc_state_dict_copy(const lc_state_dict *to, const lc_state_dict *from)
{
    for (int i = 0; i < from->n; i++)
        if (position(to, from->names[i]) < 0) return lc_fail_int(LC_IndexError, "unexpected tensor \"%s\"", from->names[i]);
    for (int i = 0; i < to->n; i++) {
        int k = position(from, to->names[i]);
        if (k < 0) return lc_fail_int(LC_IndexError, "the tensor \"%s\" is missing", to->names[i]);
        if (!lc_same_shape(to->tensors[i], from->tensors[k]))
            return lc_fail_int(LC_ShapeMismatch, "size mismatch for \"%s\": %s cannot be copied into %s", to->names[i],
                               LC_SHAPE(from->tensors[k]), LC_SHAPE(to->tensors[i]));
    }
    lc_scope scope = lc_scope_open();
    unsigned modes = lc_modes;
    int      status = 0;
    lc_modes |= LC_NO_GRAD;
    for (int i = 0; i < to->n && status == 0; i++)
        status = lc_copy_(to->tensors[i], from->tensors[position(from, to->names[i])], false) ? 0 : -1;
    lc_modes = modes;
    lc_scope_close(scope);
    return status;
}
