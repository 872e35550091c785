/* usage: train IN OUT sgd|adam|adamw NAME=VALUE...      settings of the optimizer
 *
 * Minimises sum(a * a * a) + sum(b * b), where a and b are what IN holds, in eight steps; b gets a gradient from the third step on. Half way the states go
 * to OUT and come back into a new optimizer. In the end OUT holds a, b and the states, as "optimizer.0.exp_avg". */
#include <lucid.h>
#include <stdlib.h>
#include <string.h>

static int set(lc_optimizer *o, const char *setting)
{
    const struct {
        const char *name;
        double     *number;
        bool       *flag;
    } settings[] = { { "lr", &o->lr, NULL },
                     { "weight_decay", &o->weight_decay, NULL },
                     { "momentum", &o->momentum, NULL },
                     { "beta1", &o->beta1, NULL },
                     { "dampening", &o->dampening, NULL },
                     { "beta2", &o->beta2, NULL },
                     { "eps", &o->eps, NULL },
                     { "nesterov", NULL, &o->nesterov },
                     { "amsgrad", NULL, &o->amsgrad },
                     { "maximize", NULL, &o->maximize } };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        size_t n = strlen(settings[i].name);
        if (strncmp(setting, settings[i].name, n) != 0 || setting[n] != '=') continue;
        if (settings[i].number) *settings[i].number = atof(setting + n + 1);
        else *settings[i].flag = atoi(setting + n + 1) != 0;
        return 0;
    }
    return lc_fail_int(LC_ValueError, "no setting: %s", setting);
}

static lc_optimizer *optimizer(lc_tensor **params, char **arguments)
{
    const char       *kinds[] = { "sgd", "adam", "adamw" };
    lc_optimizer_kind kind = LC_SGD;
    while (kind <= LC_ADAMW && strcmp(kinds[kind], *arguments) != 0) kind++;
    lc_optimizer *o = lc_optimizer_new(kind, params, 2, 0.1);
    while (o && *++arguments)
        if (set(o, *arguments) < 0) return lc_optimizer_free(o), NULL;
    return o;
}

static int step(lc_optimizer *o, lc_tensor **p, int number)
{
    lc_scope   scope = lc_scope_open();
    lc_tensor *loss = lc_sum(lc_mul(lc_mul(p[0], p[0]), p[0]), NULL, 0, false);
    if (number >= 2) loss = lc_add(loss, lc_sum(lc_mul(p[1], p[1]), NULL, 0, false));
    lc_optimizer_zero_grad(o);
    int status = loss ? lc_backward(loss, LC_NONE, false, false) : -1;
    if (status == 0) status = lc_optimizer_step(o);
    lc_scope_close(scope);
    return status;
}

static int save(lc_optimizer *o, lc_tensor **p, const char *path)
{
    lc_state_dict *d = lc_state_dict_new();
    int            status =
        d ? lc_state_dict_add(d, "a", p[0]) | lc_state_dict_add(d, "b", p[1]) | lc_optimizer_save(o, "optimizer.", d) : -1;
    if (status == 0) status = lc_save_safetensors(d, path);
    lc_state_dict_free(d);
    return status;
}

static int load(lc_optimizer *o, const char *path)
{
    lc_state_dict *d = lc_load_safetensors(path);
    int            status = d ? lc_optimizer_load(o, "optimizer.", d) : -1;
    lc_state_dict_free(d);
    return status;
}

int main(int n, char **arguments)
{
    lc_state_dict *d = n > 3 ? lc_load_safetensors(arguments[1]) : NULL;
    lc_tensor     *p[2] = { d ? lc_state_dict_get(d, "a") : NULL, d ? lc_state_dict_get(d, "b") : NULL };
    int            status = p[0] && p[1] ? lc_set_requires_grad(p[0], true) | lc_set_requires_grad(p[1], true) : -1;
    lc_optimizer  *o = status == 0 ? optimizer(p, arguments + 3) : NULL;
    for (int i = 0; o && status == 0 && i < 8; i++) {
        status = step(o, p, i);
        if (status < 0 || i != 4) continue;
        status = save(o, p, arguments[2]);
        lc_optimizer_free(o);
        o = optimizer(p, arguments + 3);
        bool states = o && (o->kind != LC_SGD || o->momentum != 0);
        if (status == 0 && states) status = load(o, arguments[2]);
    }
    status = o && status == 0 ? save(o, p, arguments[2]) : -1;
    if (status < 0) fprintf(stderr, "%s: %s\n", lc_error_name(), lc_error());
    lc_optimizer_free(o);
    lc_state_dict_free(d);
    return status < 0 || lc_live_blocks() != 0;
}
