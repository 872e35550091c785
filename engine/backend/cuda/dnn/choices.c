/* cuBLASLt's choices of algorithms, in memory and in the cache folder: a process takes those of earlier ones and asks the library
 * for new products only.
 *
 * There is a file per version of the library and model of device. It is read when the first product of a model is looked up, and
 * becomes plans that are proven at their first use. It is written when the number of choices made here is 1, 2, 4, 8, ..., and
 * at exit: a process that dies loses half of them at most, and one with a thousand products writes eleven times. Before that it is
 * read again, so processes that run side by side add to each other's choices; of two that write at the same moment the later one
 * stays, whole. Products that this process used come first when there are more than MOST.
 *
 * A file that is damaged, cut, or of another version or model is ignored and replaced. What is restored but refused by the library
 * is chosen anew (blaslt.c). That there is no algorithm for a product is not kept: a call that finds that out is cheap.
 *
 * A file per product, as for cuDNN's plans, would be thousands of files of 200 bytes. */
#include "blaslt.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 1024, MOST = 4096, MODELS_APART = 10000 };
typedef struct {
    char     magic[8];
    uint64_t bytes, hash, version, runtime;
    int64_t  model;
} file_header;
typedef struct { /* hashed as bytes: no padding */
    product_key  key;
    lt_algorithm by;
    uint64_t     workspace;
} file_entry;
static const char magic[8] = "LUCIDLT1";

static product_plan *plans[SLOTS];
static struct {
    int64_t  model;
    uint64_t made, written; /* choices of this process */
} models[CUDA_DEVICES];
static int      n_models;
static uint64_t library[2]; /* version of cuBLASLt, of the CUDA runtime it was built with */

void    cuda_choices_of(uint64_t version, uint64_t runtime) { library[0] = version, library[1] = runtime; }
int64_t cuda_model(int device)
{
    enum { PROCESSORS = 16 };
    static _Atomic int64_t known[CUDA_DEVICES];
    int64_t                model = atomic_load_explicit(&known[device], memory_order_relaxed);
    if (model || cuda_use(device) < 0) return model;
    model = (int64_t)cuda_architecture() * MODELS_APART + cuda_attribute(device, PROCESSORS);
    atomic_store_explicit(&known[device], model, memory_order_relaxed);
    return model;
}

static product_plan *find(const product_key *key, bool *is_new) /* or makes it; NULL: out of memory */
{
    product_plan **slot = &plans[cuda_hash(CUDA_HASH_START, key, sizeof *key) % SLOTS], *p;
    for (p = *slot; p && memcmp(&p->key, key, sizeof *key); p = p->next)
        ;
    *is_new = !p;
    if (p || !(p = calloc(1, sizeof *p))) return p;
    p->key = *key, p->next = *slot;
    return *slot = p;
}

static void file_name(char name[96], int64_t model)
{
    snprintf(name, 96, "cublaslt%llu-%llu-sm%dx%d.choices", (unsigned long long)library[0], (unsigned long long)library[1],
             (int)(model / MODELS_APART), (int)(model % MODELS_APART));
}
static bool is_whole(const char *file, size_t n, int64_t model)
{
    file_header h;
    if (n < sizeof h) return false;
    memcpy(&h, file, sizeof h);
    return !memcmp(h.magic, magic, sizeof magic) && h.version == library[0] && h.runtime == library[1] && h.model == model &&
           h.bytes == n - sizeof h && h.bytes % sizeof(file_entry) == 0 &&
           h.hash == cuda_hash(CUDA_HASH_START, file + sizeof h, h.bytes);
}
static void read_choices(int64_t model) /* those that are not known yet */
{
    char   name[96];
    size_t n = 0, found = 0;
    file_name(name, model);
    char *file = cuda_cache_read(name, &n);
    bool  good = file && is_whole(file, n, model);
    for (size_t at = sizeof(file_header); good && at < n; at += sizeof(file_entry)) {
        file_entry e;
        bool       is_new;
        memcpy(&e, file + at, sizeof e);
        product_plan *p = e.key.model == model && e.workspace <= LT_MOST_WORKSPACE ? find(&e.key, &is_new) : NULL;
        if (p && is_new) p->by = e.by, p->workspace = e.workspace, p->state = PLAN_RESTORED, found++;
    }
    if (file) lc_verbose_log("products on cuda: %zu choices of %s%s", found, name, good ? "" : ", which is made again");
    free(file);
}
static void write_choices(int64_t model)
{
    char        name[96];
    file_header h = { .version = library[0], .runtime = library[1], .model = model };
    char       *file = malloc(sizeof h + MOST * sizeof(file_entry));
    if (!file) return;
    char *to = file + sizeof h;
    read_choices(model);
    for (int others = 0; others < 2; others++)
        for (int i = 0; i < SLOTS; i++)
            for (const product_plan *p = plans[i]; p; p = p->next) {
                bool       has = p->key.model == model && (p->state == PLAN_PROVEN || p->state == PLAN_RESTORED);
                file_entry e = { p->key, p->by, p->workspace };
                if (!has || p->used == others || h.bytes == MOST * sizeof e) continue;
                memcpy(to + h.bytes, &e, sizeof e), h.bytes += sizeof e;
            }
    h.hash = cuda_hash(CUDA_HASH_START, to, h.bytes);
    memcpy(h.magic, magic, sizeof magic), memcpy(file, &h, sizeof h);
    file_name(name, model);
    cuda_cache_write(name, file, sizeof h + h.bytes);
    free(file);
}

static int place_of(int64_t model)
{
    int i = 0;
    while (i < n_models && models[i].model != model) i++;
    if (i == n_models) models[n_models++].model = model, read_choices(model);
    return i;
}
product_plan *cuda_product_plan(const product_key *key)
{
    bool is_new;
    place_of(key->model);
    product_plan *p = find(key, &is_new);
    if (p) p->used = true;
    return p;
}
void cuda_choice_made(const product_plan *p)
{
    int      i = place_of(p->key.model);
    uint64_t made = ++models[i].made;
    if ((made & (made - 1)) != 0) return;
    write_choices(p->key.model);
    models[i].written = made;
}
void cuda_choices_write(void)
{
    for (int i = 0; i < n_models; i++)
        if (models[i].written < models[i].made) write_choices(models[i].model), models[i].written = models[i].made;
}
