/* Plans of Fourier transforms: radices, twiddles, and what convolutions need; kept for the next call of the same length.
 *
 * Twiddles come from angles reduced to an eighth of a turn, computed in double for float32 and in long double for float64, and rounded once: their
 * error is half a unit in the last place, whatever n is.
 *
 * The cache holds at most CACHE_PLANS plans of CACHE_BYTES together; what was used longest ago goes first. Plans in use are counted, and one that
 * goes while it is in use is freed by its last user. Plans are built outside the lock: two threads may build the same one, and the second is dropped. */
#include "../cpu.h"
#include "fft.h"
#include <math.h>
#include <string.h>

enum { CACHE_PLANS = 64, CACHE_BYTES = 32 << 20, LONG_CHUNK = 1 << 12 };
ISA_TABLE(const lc_ffts, ffts)
const fft_kernels *fft_kernels_of(lc_dtype real) { return &ffts_of_this_cpu()->of[real == LC_f64]; }

/* ---- twiddles ---- */

static void root_of(int64_t k, int64_t n, long double *c, long double *s) /* exp(-2 pi i k / n) */
{
    const long double turn = 6.283185307179586476925286766559005768L;
    k %= n;
    int64_t     octant = 8 * k / n, at = k; /* at: the distance from the nearest multiple of a quarter */
    int64_t     quarter = (octant + 1) / 2;
    long double angle = turn * (long double)(4 * at - quarter * n) / (4 * (long double)n), x = cosl(angle), y = sinl(angle);
    switch (quarter % 4) {
    case 0:
        *c = x, *s = -y;
        break;
    case 1:
        *c = -y, *s = -x;
        break;
    case 2:
        *c = -x, *s = y;
        break;
    default:
        *c = y, *s = x;
    }
}
static void root_of_f32(int64_t k, int64_t n, double *c, double *s)
{
    const double turn = 6.283185307179586476925286766559005768;
    k %= n;
    int64_t quarter = (8 * k / n + 1) / 2;
    double  angle = turn * (double)(4 * k - quarter * n) / (4 * (double)n), x = cos(angle), y = sin(angle);
    *c = quarter % 4 == 0 ? x : quarter % 4 == 1 ? -y : quarter % 4 == 2 ? -x : y;
    *s = quarter % 4 == 0 ? -y : quarter % 4 == 1 ? -x : quarter % 4 == 2 ? y : x;
}
static void put_root(lc_dtype real, void *to, int64_t at_re, int64_t at_im, int64_t k, int64_t n)
{
    if (real == LC_f64) {
        long double c, s;
        root_of(k, n, &c, &s);
        ((double *)to)[at_re] = (double)c, ((double *)to)[at_im] = (double)s;
    } else {
        double c, s;
        root_of_f32(k, n, &c, &s);
        ((float *)to)[at_re] = (float)c, ((float *)to)[at_im] = (float)s;
    }
}

/* ---- building ---- */

static void *block(fft_plan *plan, size_t bytes)
{
    int k = 0;
    while (plan->block[k].at) k++;
    if (!(plan->block[k].at = lc_alloc(bytes)))
        return lc_fail(LC_OutOfMemory, "fft: no memory for a plan of length %lld", (long long)plan->n);
    plan->block[k].bytes = bytes;
    return plan->block[k].at;
}
static size_t bytes_of(const fft_plan *plan)
{
    size_t sum = sizeof *plan;
    for (int k = 0; k < 4; k++) sum += plan->block[k].bytes;
    return sum;
}
static void destroy(fft_plan *plan)
{
    if (!plan) return;
    fft_plan_put(plan->inner), fft_plan_put(plan->columns), fft_plan_put(plan->rows);
    for (int k = 0; k < 4; k++) lc_free(plan->block[k].at, plan->block[k].bytes);
    lc_free(plan, sizeof *plan);
}

/* n as a product of radices, the powers of two first, which a single line's first pass wants. 0: there is a larger prime in it. */
static int radices_of(int64_t n, int *radix)
{
    int count = 0, twos = 0, odd[FFT_PASSES], odds = 0;
    for (; n % 2 == 0; n /= 2) twos++;
    for (int p = 3; p <= FFT_ODD; p += 2) /* 9 before 3 */
        for (int q = p == 3 ? 9 : p; q >= p; q -= 6)
            for (; n % q == 0; n /= q) odd[odds++] = q;
    if (n != 1) return 0;
    for (; twos >= 4 && twos != 5; twos -= 4) radix[count++] = 16;
    if (twos == 5) radix[count++] = 8, radix[count++] = 4, twos = 0;
    int left = 1 << twos;
    for (int k = 0; k < odds && left > 1; k++) /* a small power of two goes with an odd factor: 6, 10, 12, 14 */
        if (left * odd[k] <= 14 && (left == 2 || odd[k] == 3)) odd[k] *= left, left = 1;
    if (left > 1) radix[count++] = left;
    for (int k = 0; k < odds; k++)
        for (int l = k + 1; l < odds; l++)
            if (odd[k] * odd[l] == 15) odd[k] = 15, odd[l] = odd[--odds];
    for (int k = 0; k < odds; k++) radix[count++] = odd[k];
    return count;
}
static bool is_smooth(int64_t n)
{
    for (int p = 2; p <= FFT_ODD; p++)
        while (n % p == 0) n /= p;
    return n == 1;
}
static bool is_prime(int64_t n)
{
    for (int64_t p = 2; p * p <= n; p++)
        if (n % p == 0) return false;
    return n > 1;
}
bool fft_single_fits(int64_t n, int lanes)
{
    int radix[FFT_PASSES];
    if (!is_smooth(n))
        return !is_prime(n) || !is_smooth(n - 1) || fft_single_fits(n - 1, lanes); /* a convolution's length fits */
    return radices_of(n, radix) > 1 && radix[0] <= FFT_CODELETS && n / radix[0] >= lanes;
}
static int build_direct(fft_plan *plan)
{
    int     radix[FFT_PASSES], count = radices_of(plan->n, radix);
    int64_t numbers = 0, m = plan->n, s = 1;
    for (int k = 0; k < count; k++) m /= radix[k], numbers += 2 * (radix[k] - 1) * m + 2 * radix[k] + FFT_PAD;
    const int64_t size = lc_size_of(plan->real);
    char         *at = block(plan, (size_t)((numbers + 1) * size));
    if (!at) return -1;
    plan->n_passes = count, m = plan->n;
    for (int p = 0; p < count; p++) {
        const int r = radix[p];
        m /= r;
        plan->pass[p] = (fft_pass){ .radix = r, .m = m, .s = s, .roots = at, .twiddle = at + 2 * r * size };
        for (int k = 0; k < r; k++) put_root(plan->real, at, 2 * k, 2 * k + 1, k, r);
        at += 2 * r * size;
        const bool by_k = plan->role == FFT_SINGLE && p == 0 && r <= FFT_CODELETS;
        for (int64_t j = 0; j < m; j++)
            for (int64_t k = 1; k < r; k++)
                if (by_k) put_root(plan->real, at, (2 * k - 2) * m + j, (2 * k - 1) * m + j, j * k, r * m);
                else put_root(plan->real, at, 2 * ((r - 1) * j + k - 1), 2 * ((r - 1) * j + k - 1) + 1, j * k, r * m);
        at += (2 * (r - 1) * m + FFT_PAD) * size, s *= r;
    }
    return 0;
}

static void narrowed(lc_dtype real, void *to, const double *z, int64_t n, double by) /* n numbers */
{
    for (int64_t k = 0; k < n; k++)
        if (real == LC_f64) ((double *)to)[k] = z[k] * by;
        else ((float *)to)[k] = (float)(z[k] * by);
}
/* z, n complex numbers, becomes its transform. */
static int transform_double(double *z, int64_t n, fft_role role)
{
    if (role == FFT_LONG) {
        const fft_plan *plan = fft_plan_get(FFT_LONG, n, LC_f64);
        if (!plan) return -1;
        size_t bytes = (size_t)(fft_long_work(plan) + 2 * n) * sizeof(double);
        char  *work = lc_alloc(bytes);
        int    rc = work ? fft_long_run(plan, work, 2, 1, (char *)z, work + 2 * n * 8, false, 1.0) : -1;
        if (rc == 0) memcpy(z, work, (size_t)(2 * n) * sizeof(double));
        lc_free(work, bytes);
        fft_plan_put(plan);
        return rc;
    }
    const fft_kernels *run = fft_kernels_of(LC_f64);
    const fft_plan    *plan = fft_plan_get(role, n, LC_f64);
    if (!plan) return -1;
    int        lanes = role == FFT_GROUP ? run->lanes : 1, rc = -1;
    size_t     bytes = (size_t)fft_workspace(plan, lanes) * sizeof(double);
    fft_planes p[3];
    char      *work = lc_alloc(bytes);
    if (work) {
        fft_planes_at(work, plan, lanes, p);
        fft_lines line = { .base = (char *)z, .offset = (int64_t[]){ 0 }, .step = 2, .apart = 1 };
        run->load(p[0], lanes, &line, n, 1);
        run->run(plan, lanes, &p[0], &p[1], &p[2]);
        run->store(&line, lanes, p[0], n, 1, 1.0);
        rc = 0;
    }
    lc_free(work, bytes);
    fft_plan_put(plan);
    return rc;
}
/* plan->spectrum from z, which is freed. */
static int take_spectrum(fft_plan *plan, double *z, size_t bytes)
{
    const int64_t n = plan->inner->n;
    void         *to = block(plan, (size_t)(2 * n * lc_size_of(plan->real)));
    int           rc = to ? transform_double(z, n, plan->role) : -1;
    if (rc == 0) narrowed(plan->real, to, z, 2 * n, 1.0 / (double)n);
    plan->spectrum = to;
    lc_free(z, bytes);
    return rc;
}
static double *take_doubles(fft_plan *plan, int64_t n, size_t *bytes)
{
    *bytes = (size_t)n * sizeof(double);
    double *z = lc_alloc(*bytes);
    return z ? z : lc_fail(LC_OutOfMemory, "fft: no memory for a plan of length %lld", (long long)plan->n);
}

static int64_t power_mod(int64_t base, int64_t exponent, int64_t n)
{
    int64_t result = 1;
    for (; exponent; exponent /= 2, base = base * base % n)
        if (exponent & 1) result = result * base % n;
    return result;
}
static int64_t generator_of(int64_t p)
{
    for (int64_t g = 2;; g++) {
        bool    all = true;
        int64_t rest = p - 1;
        for (int64_t q = 2; q <= rest && all; q++) {
            if (rest % q) continue;
            while (rest % q == 0) rest /= q;
            all = power_mod(g, (p - 1) / q, p) != 1;
        }
        if (all) return g;
    }
}
static int build_rader(fft_plan *plan)
{
    const int64_t n = plan->n, g = generator_of(n), back = power_mod(g, n - 2, n);
    plan->algorithm = FFT_RADER;
    if (!(plan->inner = fft_plan_get(plan->role, n - 1, plan->real))) return -1;
    int32_t *order = block(plan, (size_t)(2 * (n - 1)) * sizeof *order);
    size_t   bytes;
    double  *z = order ? take_doubles(plan, 2 * (n - 1), &bytes) : NULL;
    if (!z) return -1;
    plan->gather = order, plan->scatter = order + n - 1;
    for (int64_t k = 0, up = 1, down = 1; k < n - 1; k++, up = up * g % n, down = down * back % n) {
        order[k] = (int32_t)up, order[n - 1 + k] = (int32_t)down;
        put_root(LC_f64, z, 2 * k, 2 * k + 1, down, n);
    }
    return take_spectrum(plan, z, bytes);
}
static int64_t next_smooth(int64_t n,
                           int64_t least) /* a power of two, or 3, 5, 7, 9 or 15 times one: passes of radix 16 mostly */
{
    int64_t best = least;
    while (best < n) best *= 2;
    for (int64_t odd = 3; odd <= 15; odd += odd < 9 ? 2 : 6) {
        int64_t m = least * odd;
        while (m < n) m *= 2;
        if (m < best) best = m;
    }
    return best;
}
static int build_bluestein(fft_plan *plan)
{
    const int64_t n = plan->n, m = next_smooth(2 * n - 1, plan->role == FFT_GROUP ? 16 : 256);
    plan->algorithm = FFT_BLUESTEIN;
    if (!(plan->inner = fft_plan_get(plan->role, m, plan->real))) return -1;
    void   *chirp = block(plan, (size_t)(2 * n * lc_size_of(plan->real)));
    size_t  bytes;
    double *z = chirp ? take_doubles(plan, 2 * m, &bytes) : NULL;
    if (!z) return -1;
    memset(z, 0, bytes);
    plan->chirp = chirp;
    for (int64_t k = 0, square = 0; k < n; square = (square + 2 * k + 1) % (2 * n), k++) {
        put_root(plan->real, chirp, 2 * k, 2 * k + 1, square, 2 * n);
        put_root(LC_f64, z, 2 * k, 2 * k + 1, square, 2 * n);
        z[2 * k + 1] = -z[2 * k + 1];
        if (k) z[2 * (m - k)] = z[2 * k], z[2 * (m - k) + 1] = z[2 * k + 1];
    }
    return take_spectrum(plan, z, bytes);
}
static int build_halves(fft_plan *plan)
{
    const int64_t h = plan->n, part = h / 2 + 1 + FFT_PAD;
    void         *w = block(plan, (size_t)(2 * part * lc_size_of(plan->real)));
    for (int64_t k = 0; w && k <= h / 2; k++) put_root(plan->real, w, k, part + k, k, 2 * h);
    plan->halves = w;
    return w ? 0 : -1;
}
/* The divisor of n nearest to its root; whole vectors on both sides are worth a factor of four. */
static int64_t split_of(int64_t n)
{
    int64_t best = 1;
    double  cost = INFINITY;
    for (int64_t d = 2; d * d <= n; d++) {
        if (n % d) continue;
        double far = (double)(n / d) / (double)d * (d % FFT_LANES ? 2 : 1) * (n / d % FFT_LANES ? 2 : 1);
        if (far < cost) cost = far, best = d;
    }
    return best;
}
static int build_long(fft_plan *plan)
{
    const int64_t n = plan->n, n1 = split_of(n), n2 = n / n1, size = lc_size_of(plan->real);
    const int     lanes = fft_kernels_of(plan->real)->lanes;
    if (!is_smooth(n)) return build_bluestein(plan);
    plan->stride = 1;
    while (plan->stride * plan->stride < n) plan->stride *= 2;
    plan->columns = fft_plan_get(FFT_GROUP, n1, plan->real);
    plan->rows = plan->columns ? fft_plan_get(FFT_GROUP, n2, plan->real) : NULL;
    double *steps = plan->rows ? block(plan, (size_t)(4 * plan->stride) * sizeof(double)) : NULL;
    char   *lane = steps ? block(plan, (size_t)(2 * n1 * lanes * size)) : NULL;
    if (!lane) return -1;
    for (int64_t k = 0; k < plan->stride; k++) {
        put_root(LC_f64, steps, 2 * k, 2 * k + 1, k, n);
        put_root(LC_f64, steps + 2 * plan->stride, 2 * k, 2 * k + 1, k * plan->stride % n, n);
    }
    plan->fine = steps, plan->coarse = steps + 2 * plan->stride, plan->lane = lane;
    for (int64_t k = 0; k < n1; k++)
        for (int l = 0; l < lanes; l++) put_root(plan->real, lane, 2 * k * lanes + l, (2 * k + 1) * lanes + l, k * l, n);
    return 0;
}
static fft_plan *build(fft_role role, int64_t n, lc_dtype real)
{
    fft_plan *plan = lc_alloc(sizeof *plan);
    if (!plan) return NULL;
    *plan = (fft_plan){ .n = n, .real = real, .role = role, .users = 1 };
    int rc = role == FFT_HALVES                ? build_halves(plan)
             : role == FFT_LONG                ? build_long(plan)
             : is_smooth(n)                    ? build_direct(plan)
             : is_prime(n) && is_smooth(n - 1) ? build_rader(plan)
                                               : build_bluestein(plan);
    if (rc == 0) return plan;
    destroy(plan);
    return NULL;
}

/* ---- the cache ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static fft_plan       *cached[CACHE_PLANS];
static size_t          cached_bytes;
static int64_t         look_ups;

static fft_plan *find(fft_role role, int64_t n, lc_dtype real) /* under the lock; counts a user */
{
    look_ups++;
    for (int k = 0; k < CACHE_PLANS; k++)
        if (cached[k] && cached[k]->n == n && cached[k]->role == role && cached[k]->real == real) {
            cached[k]->used = look_ups;
            cached[k]->users++;
            return cached[k];
        }
    return NULL;
}
static fft_plan *take_oldest(int *at) /* out of the cache */
{
    *at = -1;
    for (int k = 0; k < CACHE_PLANS; k++)
        if (cached[k] && (*at < 0 || cached[k]->used < cached[*at]->used)) *at = k;
    fft_plan *plan = cached[*at];
    cached[*at] = NULL, cached_bytes -= bytes_of(plan);
    return plan;
}
const fft_plan *fft_plan_get(fft_role role, int64_t n, lc_dtype real)
{
    pthread_mutex_lock(&lock);
    fft_plan *plan = find(role, n, real);
    pthread_mutex_unlock(&lock);
    if (plan || !(plan = build(role, n, real))) return plan;
    fft_plan *gone[CACHE_PLANS];
    int       n_gone = 0, at = 0;
    pthread_mutex_lock(&lock);
    fft_plan *other = find(role, n, real);
    if (!other && bytes_of(plan) <= CACHE_BYTES / 2) {
        while (cached_bytes + bytes_of(plan) > CACHE_BYTES) gone[n_gone++] = take_oldest(&at);
        for (at = 0; at < CACHE_PLANS && cached[at]; at++) {}
        if (at == CACHE_PLANS) gone[n_gone++] = take_oldest(&at);
        cached[at] = plan, cached_bytes += bytes_of(plan), plan->used = look_ups;
        plan->users++;
    }
    pthread_mutex_unlock(&lock);
    for (int k = 0; k < n_gone; k++) fft_plan_put(gone[k]);
    if (other) fft_plan_put(plan);
    return other ? other : plan;
}
static void empty_cache(void)
{
    fft_plan *gone[CACHE_PLANS];
    pthread_mutex_lock(&lock);
    memcpy(gone, cached, sizeof gone), memset(cached, 0, sizeof cached), cached_bytes = 0;
    pthread_mutex_unlock(&lock);
    for (int k = 0; k < CACHE_PLANS; k++) fft_plan_put(gone[k]);
}
/* The lock is held across fork: a child finds it free and the cache whole. */
static void                              lock_cache(void) { pthread_mutex_lock(&lock); }
static void                              unlock_cache(void) { pthread_mutex_unlock(&lock); }
static __attribute__((constructor)) void offer_to_clear(void)
{
    lc_on_cache_clear(empty_cache);
    pthread_atfork(lock_cache, unlock_cache, unlock_cache);
}
void fft_plan_put(const fft_plan *plan)
{
    fft_plan *p = (fft_plan *)plan;
    if (p && atomic_fetch_sub(&p->users, 1) == 1) destroy(p);
}

/* ---- workspace ---- */

/* All planes of a plan have one size: who prepares a line exchanges them. */
static int64_t plane_size(const fft_plan *plan, int lanes)
{
    int64_t rows = 1 + (plan->inner && plan->inner->n > plan->n ? plan->inner->n : plan->n);
    return (rows * lanes + FFT_PAD + 15) / 16 * 16 + 16;
}
int64_t fft_workspace(const fft_plan *plan, int lanes) { return plane_size(plan, lanes) * (plan->inner ? 6 : 4) + 16; }
void    fft_planes_at(void *workspace, const fft_plan *plan, int lanes, fft_planes planes[3])
{
    const int64_t bytes = plane_size(plan, lanes) * lc_size_of(plan->real);
    char         *at = workspace;
    for (int k = 0; k < 3; k++, at += 2 * bytes) planes[k] = (fft_planes){ at, at + bytes };
    if (!plan->inner) planes[2] = (fft_planes){ NULL, NULL };
}
