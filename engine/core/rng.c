/* The generator behind PyTorch's CPU streams: MT19937, seeded with the low 32 bits of the seed.
 *
 * `left` and `next` are PyTorch's: a state that was just seeded or used up has left == 1; making a new block of 624 words and
 * taking its first leaves left == 624, next == 1. So next + left == 625 inside a block, and next + left <= 625 is what keeps
 * lc_random_words inside the array whatever state a file brings.
 *
 * A saved state is PyTorch's record of 5056 bytes, in the byte order of the machine: saved_state below. */
#include "random.h"
#include <string.h>
#include <sys/random.h>

enum { WORDS = 624, SHIFT = 397 };

typedef struct {
    uint64_t seed;
    int32_t  left, seeded;
    uint64_t next, state[WORDS];
    double   normal_x, normal, rho; /* the first and the last are remains of Torch 7, and zero */
    int32_t  has_normal, padding;
    float    normal_f; /* PyTorch has a field for it; no CPU stream uses it */
    uint8_t  has_normal_f, more_padding[3];
} saved_state;
_Static_assert(sizeof(saved_state) == LC_GENERATOR_STATE_BYTES, "PyTorch's layout");

static void seed_unlocked(lc_generator *g, uint64_t seed)
{
    g->seed = seed, g->offset = 0;
    if (g->device.kind != LC_CPU) return;
    g->state[0] = (uint32_t)seed;
    for (uint32_t i = 1; i < WORDS; i++) g->state[i] = 1812433253u * (g->state[i - 1] ^ g->state[i - 1] >> 30) + i;
    g->left = 1;
    g->next = 0;
    g->has_normal = g->has_normal_f = false;
    g->normal = g->normal_f = 0;
}

void lc_generator_seed(lc_generator *g, uint64_t seed)
{
    pthread_mutex_lock(&g->lock);
    seed_unlocked(g, seed);
    pthread_mutex_unlock(&g->lock);
}

static void generator_drop(lc_object *o)
{
    lc_generator *g = (lc_generator *)o;
    pthread_mutex_destroy(&g->lock);
    lc_free(g, sizeof *g);
}

lc_generator *lc_generator_new(lc_device device, uint64_t seed)
{
    lc_generator *g = lc_alloc(sizeof *g);
    if (!g) return NULL;
    g->object.drop = generator_drop;
    atomic_init(&g->object.refs, 1);
    g->device = device;
    pthread_mutex_init(&g->lock, NULL);
    seed_unlocked(g, seed);
    return g;
}

uint64_t lc_random_seed(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) == sizeof seed) return seed;
    return LC_GENERATOR_SEED; /* no entropy in this sandbox */
}

/* The process-wide generator. Its lock is held across fork, so that a child finds it free and the state whole. */
static lc_generator standard;
static void         standard_drop(UNUSED lc_object *o) {}
static void         lock_standard(void) { pthread_mutex_lock(&standard.lock); }
static void         unlock_standard(void) { pthread_mutex_unlock(&standard.lock); }
static void         make_standard(void)
{
    standard.object.drop = standard_drop;
    atomic_init(&standard.object.refs, 1);
    standard.device = (lc_device){ .kind = LC_CPU };
    pthread_mutex_init(&standard.lock, NULL);
    seed_unlocked(&standard, lc_random_seed());
    pthread_atfork(lock_standard, unlock_standard, unlock_standard);
}

lc_generator *lc_generator_default(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_standard);
    return &standard;
}

static lc_generator gpus[LC_GPU_GENERATORS];
static void         make_gpus(void)
{
    for (int i = 0; i < LC_GPU_GENERATORS; i++) {
        gpus[i].object.drop = standard_drop;
        atomic_init(&gpus[i].object.refs, 1);
        gpus[i].device = (lc_device){ .kind = LC_CUDA, .index = (int8_t)i };
        pthread_mutex_init(&gpus[i].lock, NULL);
        seed_unlocked(&gpus[i], LC_GENERATOR_SEED);
    }
}
lc_generator *lc_generator_default_of(lc_device device)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (device.kind != LC_CUDA) return lc_generator_default();
    pthread_once(&once, make_gpus);
    return &gpus[device.index < 0 ? 0 : device.index % LC_GPU_GENERATORS];
}
size_t lc_generator_state_bytes(const lc_generator *g)
{
    return g->device.kind == LC_CUDA ? LC_GPU_GENERATOR_STATE_BYTES : LC_GENERATOR_STATE_BYTES;
}

/* ---- bits ---- */

static inline uint32_t mixed(uint32_t high, uint32_t low)
{
    uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);
    return y >> 1 ^ (-(low & 1) & 0x9908b0dfu);
}

LC_LOOP twist_loop(uint32_t *s)
{
    for (int i = 0; i < WORDS - SHIFT; i++) s[i] = s[i + SHIFT] ^ mixed(s[i], s[i + 1]);
    for (int i = WORDS - SHIFT; i < WORDS - 1; i++) s[i] = s[i + SHIFT - WORDS] ^ mixed(s[i], s[i + 1]);
    s[WORDS - 1] = s[SHIFT - 1] ^ mixed(s[WORDS - 1], s[0]);
}
LC_WIDE(twist, (uint32_t * s), s)

void lc_random_refill(lc_generator *g)
{
    twist(g->state);
    g->left = WORDS + 1;
    g->next = 0;
}

LC_LOOP temper_loop(uint32_t *restrict out, const uint32_t *restrict state, int64_t n)
{
    for (int64_t i = 0; i < n; i++) out[i] = lc_tempered(state[i]);
}
LC_WIDE(temper, (uint32_t * out, const uint32_t *state, int64_t n), out, state, n)

void lc_random_words(lc_generator *g, uint32_t *out, int64_t n)
{
    while (n > 0) {
        if (g->left == 1) lc_random_refill(g);
        int64_t take = n < g->left - 1 ? n : g->left - 1;
        temper(out, g->state + g->next, take);
        g->next += (int32_t)take;
        g->left -= (int32_t)take;
        out += take;
        n -= take;
    }
}

/* ---- states ---- */

void lc_generator_get_state(lc_generator *g, uint8_t *bytes)
{
    saved_state s = { .seeded = 1 };
    pthread_mutex_lock(&g->lock);
    if (g->device.kind == LC_CUDA) {
        memcpy(bytes, &g->seed, 8), memcpy(bytes + 8, &g->offset, 8);
        pthread_mutex_unlock(&g->lock);
        return;
    }
    s.seed = g->seed;
    s.left = g->left;
    s.next = (uint64_t)g->next;
    for (int i = 0; i < WORDS; i++) s.state[i] = g->state[i];
    s.has_normal = g->has_normal;
    s.normal = g->has_normal ? g->normal : 0;
    s.has_normal_f = g->has_normal_f;
    s.normal_f = g->has_normal_f ? g->normal_f : 0;
    pthread_mutex_unlock(&g->lock);
    memcpy(bytes, &s, sizeof s);
}

int lc_generator_set_state(lc_generator *g, const uint8_t *bytes, size_t n)
{
    saved_state s;
    if (g->device.kind == LC_CUDA) {
        if (n != LC_GPU_GENERATOR_STATE_BYTES)
            return lc_fail_int(LC_LucidError, "RNG state is wrong size: %zu bytes, not 16", n);
        pthread_mutex_lock(&g->lock);
        memcpy(&g->seed, bytes, 8), memcpy(&g->offset, bytes + 8, 8);
        return pthread_mutex_unlock(&g->lock), 0;
    }
    if (n != sizeof s) return lc_fail_int(LC_LucidError, "a generator state has %zu bytes, got %zu", sizeof s, n);
    memcpy(&s, bytes, sizeof s);
    if (s.seeded != 1 || s.left < 1 || s.left > WORDS || s.next > WORDS || s.next + (uint64_t)s.left > WORDS + 1)
        return lc_fail_int(LC_LucidError, "invalid generator state: left %d, next %llu", s.left, (unsigned long long)s.next);
    pthread_mutex_lock(&g->lock);
    g->seed = s.seed;
    g->left = s.left;
    g->next = (int32_t)s.next;
    for (int i = 0; i < WORDS; i++) g->state[i] = (uint32_t)s.state[i];
    g->has_normal = s.has_normal != 0;
    g->normal = s.normal;
    g->has_normal_f = s.has_normal_f != 0;
    g->normal_f = s.normal_f;
    pthread_mutex_unlock(&g->lock);
    return 0;
}
