/* What C programs use besides ops: text of tensors, state dicts, safetensors files (whole, damaged, on a full disk), optimizers. */
#include "../../engine/include/lucid.h"
#include "check.h"
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const lc_device CPU = { LC_CPU, 0 };
static char            folder[] = "/tmp/lucid-programs-XXXXXX", file[64], other[64];

static lc_tensor *made(lc_dtype dtype, int ndim, const int64_t *shape) /* 0, 1, 2, ...; scoped */
{
    lc_scope   scope = lc_scope_open();
    lc_tensor *count = lc_arange(LC_I(lc_numel_of(ndim, shape)), LC_OF_DTYPE(LC_f32), LC_ABSENT);
    lc_tensor *t = lc_tensor_new(dtype, CPU, ndim, shape);
    CHECK(t && count && (t->numel == 0 || lc_copy_values(t, lc_reshape(count, shape, ndim)) == 0));
    lc_scope_close(scope);
    return lc_scoped(t);
}

static bool reads(lc_tensor *t, const char *expected)
{
    char *text = lc_tensor_text(t);
    bool  same = text && strcmp(text, expected) == 0;
    if (!same) printf("%s\nis not\n%s\n", text ? text : lc_error(), expected);
    free(text);
    return same;
}

static void test_text(void)
{
    lc_scope      scope = lc_scope_open();
    const int64_t two_three[] = { 2, 3 }, none[] = { 0 }, none_two[] = { 0, 2 }, many[] = { 1001 };
    lc_tensor    *x = made(LC_f32, 2, two_three);
    CHECK(reads(x, "tensor([[0., 1., 2.],\n        [3., 4., 5.]])"));
    CHECK(reads(lc_t(x), "tensor([[0., 3.],\n        [1., 4.],\n        [2., 5.]])"));
    CHECK(reads(made(LC_b8, 2, two_three), "tensor([[False,  True,  True],\n        [ True,  True,  True]])"));
    CHECK(reads(made(LC_f64, 1, none), "tensor([], dtype=lucid.float64)"));
    CHECK(reads(made(LC_f32, 2, none_two), "tensor([], size=(0, 2))"));
    CHECK(reads(made(LC_i64, 1, many), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"));
    ((float *)x->data)[1] = NAN, ((float *)x->data)[2] = -INFINITY, ((float *)x->data)[3] = 1e-6f;
    CHECK(reads(x, "tensor([[0.0000e+00,        nan,       -inf],\n        [1.0000e-06, 4.0000e+00, 5.0000e+00]])"));
    CHECK(lc_set_requires_grad(x, true) == 0);
    CHECK(reads(lc_mul(lc_sum(x, NULL, 0, false), LC_NUMBER(0)), "tensor(nan, grad_fn=<MulBackward0>)"));
    CHECK(reads(LC_NONE, "None"));
    CHECK(!lc_tensor_text(NULL));
    FILE *to = fopen(file, "w");
    CHECK(to && lc_fprint(to, made(LC_i8, 0, NULL)) == 0 && fclose(to) == 0);
    char line[32] = "";
    to = fopen(file, "r");
    CHECK(to && fread(line, 1, sizeof line, to) > 0 && strcmp(line, "tensor(0, dtype=lucid.int8)\n") == 0 && fclose(to) == 0);
    lc_scope_close(scope);
}

static lc_state_dict *sample(void)
{
    const int64_t  two_three[] = { 2, 3 }, five[] = { 5 }, none[] = { 3, 0 };
    lc_state_dict *d = lc_state_dict_new();
    CHECK(d && lc_state_dict_add(d, "layer.weight", made(LC_f32, 2, two_three)) == 0);
    CHECK(lc_state_dict_add(d, "flags \"\\\n\xc3\xa9", made(LC_b8, 1, five)) == 0);
    CHECK(lc_state_dict_add(d, "transposed", lc_t(made(LC_f64, 2, two_three))) == 0);
    CHECK(lc_state_dict_add(d, "half", made(LC_bf16, 0, NULL)) == 0 &&
          lc_state_dict_add(d, "empty", made(LC_i64, 2, none)) == 0);
    return d;
}

static void test_state_dict(void)
{
    lc_scope       scope = lc_scope_open();
    lc_state_dict *d = sample(), *e = lc_state_dict_new();
    CHECK(lc_state_dict_add(d, "half", d->tensors[0]) < 0 && strcmp(lc_error_name(), "ValueError") == 0);
    CHECK(!lc_state_dict_get(d, "nothing") && strstr(lc_error(), "\"nothing\""));
    CHECK(lc_state_dict_copy(e, d) < 0 && strstr(lc_error(), "unexpected tensor \"layer.weight\""));
    CHECK(lc_state_dict_copy(d, e) < 0 && strstr(lc_error(), "\"layer.weight\" is missing"));
    for (int i = 0; i < 100; i++) { /* it grows */
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        CHECK(lc_state_dict_add(e, name, d->tensors[3]) == 0);
    }
    CHECK(e->n == 100 && lc_state_dict_get(e, "99") == d->tensors[3]);
    lc_state_dict_free(e);
    lc_state_dict_free(d);
    lc_scope_close(scope);
}

static void test_round_trip(void)
{
    lc_scope       scope = lc_scope_open();
    lc_state_dict *d = sample();
    CHECK(lc_save_safetensors(d, file) == 0);
    lc_state_dict *e = lc_load_safetensors(file);
    CHECK(e && e->n == d->n);
    for (int i = 0; i < d->n; i++) {
        lc_tensor *a = d->tensors[i], *b = lc_state_dict_get(e, d->names[i]);
        CHECK(b && a->dtype == b->dtype && lc_same_shape(a, b) && b->is_contiguous);
        CHECK(*(bool *)lc_all(lc_eq(a, b), NULL, 0, false)->data);
        lc_fill_(b, LC_INTEGER(0));
    }
    CHECK(lc_set_requires_grad(lc_state_dict_get(e, "layer.weight"), true) == 0);
    CHECK(lc_state_dict_copy(e, d) == 0 && ((float *)lc_state_dict_get(e, "layer.weight")->data)[5] == 5);
    lc_release(e->tensors[0]);
    e->tensors[0] = lc_retain(made(LC_f32, 0, NULL));
    CHECK(lc_state_dict_copy(e, d) < 0 && strcmp(lc_error_name(), "ShapeMismatch") == 0);
    lc_state_dict_free(e);

    CHECK(lc_state_dict_add(d, "again", lc_t(lc_state_dict_get(d, "layer.weight"))) == 0);
    CHECK(lc_save_safetensors(d, file) < 0 && strstr(lc_error(), "share memory"));
    lc_state_dict_free(d);
    d = lc_state_dict_new();
    CHECK(lc_state_dict_add(d, "c", made(LC_c128, 0, NULL)) == 0 && lc_save_safetensors(d, file) < 0);
    CHECK(strcmp(lc_error_name(), "DtypeMismatch") == 0);
    lc_state_dict_free(d);
    d = lc_state_dict_new();
    CHECK(lc_state_dict_add(d, "\xff", made(LC_f32, 0, NULL)) == 0 && lc_save_safetensors(d, file) < 0);
    lc_state_dict_free(d);
    lc_scope_close(scope);
}

static void test_files_appear_whole(void)
{
    struct stat    about;
    lc_scope       scope = lc_scope_open();
    lc_state_dict *d = sample();
    CHECK(chmod(file, 0600) == 0 && symlink(file, other) == 0);
    CHECK(lc_save_safetensors(d, other) == 0); /* a link stays one, and the file keeps its permissions */
    CHECK(lstat(other, &about) == 0 && S_ISLNK(about.st_mode) && stat(file, &about) == 0 && (about.st_mode & 0777) == 0600);
    CHECK(unlink(other) == 0);
    CHECK(lc_save_safetensors(d, "/nowhere/at/all") < 0 && strstr(lc_error(), "/nowhere/at/all: No such file"));
    CHECK(!lc_load_safetensors("/nowhere/at/all") && !lc_load_safetensors("/tmp") && strstr(lc_error(), "not a plain file"));
    CHECK(lc_save_safetensors(d, "/dev/full") < 0 && strstr(lc_error(), "No space left"));
    CHECK(lc_save_safetensors(d, "/dev/null") == 0);
    long before = lc_live_blocks();
    for (long n = 1;; n++) { /* every allocation of a save and a load fails in turn: nothing is lost, the old file stays */
        lc_alloc_fail_at = n;
        int            saved = lc_save_safetensors(d, file);
        lc_state_dict *e = saved == 0 ? lc_load_safetensors(file) : NULL;
        bool           all = lc_alloc_fail_at > 0;
        lc_alloc_fail_at = 0;
        CHECK(e || strcmp(lc_error_name(), "OutOfMemory") == 0);
        lc_state_dict_free(e);
        lc_state_dict *still = lc_load_safetensors(file);
        CHECK(still && still->n == d->n);
        lc_state_dict_free(still);
        CHECK(lc_live_blocks() == before);
        if (all) break;
    }
    char command[128];
    snprintf(command, sizeof command, "test $(ls -A %s | wc -l) = 1", folder); /* no temporary file is left */
    CHECK(system(command) == 0);
    lc_state_dict_free(d);
    lc_scope_close(scope);
}

/* ---- files that are damaged ---- */
static void write_bytes(const void *data, size_t bytes)
{
    FILE *to = fopen(file, "wb");
    CHECK(to && fwrite(data, 1, bytes, to) == bytes && fclose(to) == 0);
}
static bool loads(void) /* or fails with an error of its own; then nothing is left behind */
{
    long           before = lc_live_blocks();
    lc_state_dict *d = lc_load_safetensors(file);
    bool           fine = d != NULL;
    CHECK(fine || (strstr(lc_error(), file) && strcmp(lc_error_name(), "ValueError") == 0));
    for (int i = 0; fine && i < d->n; i++) { /* what was loaded can be read */
        char *text = lc_tensor_text(d->tensors[i]);
        CHECK(text);
        free(text);
    }
    lc_state_dict_free(d);
    CHECK(lc_live_blocks() == before);
    return fine;
}
static bool header_loads(const char *header, size_t values)
{
    static char data[70000];
    size_t      n = strlen(header);
    memset(data, 0, sizeof data);
    for (int i = 0; i < 8; i++) data[i] = (char)(n >> 8 * i);
    memcpy(data + 8, header, n);
    write_bytes(data, 8 + n + values);
    return loads();
}

static void test_damage(void)
{
    static char    data[4096], changed[4096];
    lc_scope       scope = lc_scope_open();
    lc_state_dict *d = sample();
    CHECK(lc_save_safetensors(d, file) == 0);
    FILE  *from = fopen(file, "rb");
    size_t bytes = from ? fread(data, 1, sizeof data, from) : 0;
    CHECK(bytes > 100 && bytes < sizeof data && fclose(from) == 0);
    for (size_t n = 0; n < bytes; n++) {
        write_bytes(data, n);
        CHECK(!loads());
    }
    uint64_t seed = 1;
    int      refused = 0;
    for (int i = 0; i < 4000; i++) {
        memcpy(changed, data, bytes);
        for (int k = 0; k <= i % 3; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            changed[(seed >> 33) % bytes] ^= (char)(1 << (seed >> 20) % 8);
        }
        write_bytes(changed, bytes);
        refused += !loads();
    }
    CHECK(refused > 2000); /* the others changed values or names */
    lc_state_dict_free(d);

    static char deep[60000];
    CHECK(header_loads("{}", 0) && !header_loads("{}", 1) && !header_loads("", 0) && !header_loads("[]", 0) &&
          !header_loads("{} x", 0));
    CHECK(header_loads("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}  ", 4));
    CHECK(header_loads("{\"a\":{\"more\":[{\"x\":[1,null]},\"]\"],\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4));
    CHECK(!header_loads("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"a\":{\"dtype\":\"F32\",\"shape\":[0]"
                        ",\"data_offsets\":[4,4]}}",
                        4));
    CHECK(!header_loads("{\"a\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4));
    CHECK(!header_loads("{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4));
    CHECK(!header_loads("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4));
    CHECK(!header_loads("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8));
    CHECK(!header_loads("{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", 0));
    CHECK(!header_loads("{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4,0],\"data_offsets\":[0,0]}}", 0));
    CHECK(!header_loads("{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,0]}}", 0));
    CHECK(!header_loads("{\"a\\u0000\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4));
    CHECK(!header_loads("{\"\\ud800\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4));
    CHECK(header_loads("{\"\\ud83d\\ude00\":{\"dtype\":\"BOOL\",\"shape\":[],\"data_offsets\":[0,1]}}", 1));
    CHECK(!header_loads("{\"a\":{\"x\":", 0) && !header_loads("{\"a", 0) && !header_loads("{\"a\\", 0) &&
          !header_loads("{\"a\\u12", 0));
    CHECK(!header_loads("{\"__metadata__\":{\"lucid.version\":\"{\\\"format\\\": 99}\"}}", 0) &&
          strstr(lc_error(), "format 99"));
    CHECK(header_loads("{\"__metadata__\":{\"format\":\"pt\"}}", 0) && !header_loads("{\"__metadata__\":{\"format\":1}}", 0));
    memset(deep, '[', sizeof deep - 1);
    memcpy(deep, "{\"a\":{\"x\":", 10);
    CHECK(!header_loads(deep, 0));
    memset(data, 0xff, 8);
    write_bytes(data, bytes);
    CHECK(!loads());
    lc_scope_close(scope);
}

/* ---- optimizers: the steps are compared with PyTorch's by tests/programs ---- */
static void test_optimizer(void)
{
    lc_scope      scope = lc_scope_open();
    const int64_t three[] = { 3 };
    lc_tensor    *p[2] = { made(LC_f32, 1, three), made(LC_f32, 1, three) };
    lc_optimizer *o = lc_optimizer_new(LC_SGD, p, 2, 0.5);
    CHECK(o && lc_set_requires_grad(p[0], true) == 0 && lc_set_requires_grad(p[1], true) == 0);
    CHECK(lc_optimizer_step(o) == 0); /* no gradients: nothing happens */
    CHECK(lc_backward(lc_sum(lc_mul(p[0], p[0]), NULL, 0, false), LC_NONE, false, false) == 0 && p[0]->grad && !p[1]->grad);
    CHECK(lc_optimizer_step(o) == 0 && ((float *)p[0]->data)[2] == 0 && ((float *)p[1]->data)[2] == 2);
    o->momentum = -1;
    CHECK(lc_optimizer_step(o) < 0 && strstr(lc_error(), "Invalid momentum"));
    o->momentum = 0, o->nesterov = true;
    CHECK(lc_optimizer_step(o) < 0 && strstr(lc_error(), "Nesterov"));
    lc_optimizer_zero_grad(o);
    CHECK(!p[0]->grad);
    lc_optimizer_free(o);
    CHECK(!lc_optimizer_new(LC_ADAM, p, 0, 0.1) && !lc_optimizer_new(LC_ADAM, p, 2, -1) &&
          !lc_optimizer_new((lc_optimizer_kind)9, p, 2, 1));
    lc_tensor *whole = made(LC_i64, 1, three);
    CHECK(!lc_optimizer_new(LC_ADAM, &whole, 1, 0.1) && strstr(lc_error(), "int64[3]"));

    long before = lc_live_blocks();
    for (long n = 1;; n++) { /* every allocation fails in turn */
        lc_scope inner = lc_scope_open();
        lc_alloc_fail_at = n;
        o = lc_optimizer_new(LC_ADAMW, p, 2, 0.1);
        lc_tensor *loss = o ? lc_sum(lc_mul(p[0], p[1]), NULL, 0, false) : NULL;
        int        status = loss ? lc_backward(loss, LC_NONE, false, false) : -1;
        if (status == 0) status = lc_optimizer_step(o);
        lc_state_dict *d = status == 0 ? lc_state_dict_new() : NULL;
        status = d && lc_optimizer_save(o, "o.", d) == 0 && lc_optimizer_load(o, "o.", d) == 0 ? 0 : -1;
        bool all = lc_alloc_fail_at > 0;
        lc_alloc_fail_at = 0;
        CHECK(status == 0 || strcmp(lc_error_name(), "OutOfMemory") == 0);
        if (status == 0) {
            CHECK(d->n == 6 && *(float *)lc_state_dict_get(d, "o.1.step")->data == 1);
            CHECK(lc_optimizer_load(o, "p.", d) < 0 && strstr(lc_error(), "\"p.\""));
            o->amsgrad = true;
            CHECK(lc_optimizer_load(o, "o.", d) < 0 && strstr(lc_error(), "some states only"));
        }
        lc_state_dict_free(d);
        lc_optimizer_free(o);
        lc_scope_close(inner);
        for (int i = 0; i < 2; i++) lc_release(p[i]->grad), p[i]->grad = NULL;
        if (all) break;
    }
    lc_scope_close(scope);
    CHECK(lc_live_blocks() <= before);
}

int main(void)
{
    CHECK(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/a.safetensors", folder);
    snprintf(other, sizeof other, "%s/link", folder);
    CHECK(strcmp(lc_error_name(), "none") == 0);
    test_text();
    test_state_dict();
    test_round_trip();
    test_files_appear_whole();
    test_damage();
    test_optimizer();
    CHECK(unlink(file) == 0 && rmdir(folder) == 0);
    CHECK(lc_live_blocks() == 0);
    printf("programs: passed\n");
    return 0;
}
