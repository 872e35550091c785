/* usage: print_all FILE      prints every tensor of a safetensors file, and a line of dashes after each */
#include <lucid.h>

int main(int n, char **arguments)
{
    lc_state_dict *d = n == 2 ? lc_load_safetensors(arguments[1]) : NULL;
    int            status = d ? 0 : -1;
    for (int i = 0; status == 0 && i < d->n; i++) status = lc_print(d->tensors[i]) < 0 || puts("----") < 0 ? -1 : 0;
    if (status < 0) fprintf(stderr, "%s: %s\n", lc_error_name(), lc_error());
    lc_state_dict_free(d);
    return status < 0;
}
