/* Which LAPACK is used, and how many threads it has.
 *
 * Nothing is linked. The first call that needs a factorisation looks for a library, in this order:
 *   LUCID_LAPACK          a path; "none" means that only our own kernels run
 *   scipy-openblas32      the wheel the package depends on: beside liblucid in site-packages, or where the host language finds it
 *   the system's          OpenBLAS, MKL, reference LAPACK
 * A library is taken if it has every routine of lapack.def, plain (dgetrf_) or with the wheel's prefix (scipy_dgetrf_). 64-bit-integer builds
 * carry another suffix and are not found.
 *
 * Threads. OpenBLAS and MKL bring a pool of their own. A call on one large matrix lets them use as many threads as ours; several calls at once,
 * made by our own pool over a batch, get one thread each. The count is global in the library, so it is set only when it changes.
 *
 * Looking for the wheel may take the host language's lock, so it happens before ours is taken: a thread that has both would wait for one that
 * has the other. */
#include "lapack.h"
#include "../../args_linalg.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void (*lapack_routines[LAPACK_TYPES][LAPACK_COUNT])();

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int      state; /* 0: not looked for, 1: there, -1: none */
static atomic_int      threads_now = -1;
static void (*set_threads)(int);
static char found_at[4096]; /* empty: none */

static const char *const names[LAPACK_COUNT][2] = {
#define ROUTINE(name, real, complex) { real, complex },
#include "lapack.def"
#undef ROUTINE
};

static bool has_all(void *lib, const char *prefix)
{
    static const char letters[] = "sdcz";
    char              symbol[64];
    for (int t = 0; t < LAPACK_TYPES; t++)
        for (int r = 0; r < LAPACK_COUNT; r++) {
            snprintf(symbol, sizeof symbol, "%s%c%s_", prefix, letters[t], names[r][t >= LAPACK_c]);
            *(void **)&lapack_routines[t][r] = dlsym(lib, symbol);
            if (!lapack_routines[t][r]) return false;
        }
    return true;
}
static bool take(const char *path)
{
    static const char *const prefixes[] = { "", "scipy_" };
    static const char *const setters[] = { "scipy_openblas_set_num_threads", "openblas_set_num_threads",
                                           "MKL_Set_Num_Threads" };
    void                    *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib) return false;
    bool whole = false;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes && !whole; i++) whole = has_all(lib, prefixes[i]);
    if (!whole) return dlclose(lib), false;
    for (size_t i = 0; i < sizeof setters / sizeof *setters && !set_threads; i++)
        *(void **)&set_threads = dlsym(lib, setters[i]);
    snprintf(found_at, sizeof found_at, "%s", path);
    lc_verbose_log("LAPACK: loaded %s", path);
    return true;
}

/* liblucid lies in site-packages/lucid, the wheel in site-packages/scipy_openblas32. */
static bool take_neighbour(const char *file)
{
    Dl_info info;
    char    path[4096];
    if (!dladdr((void *)take_neighbour, &info) || !info.dli_fname) return false;
    const char *slash = strrchr(info.dli_fname, '/');
    int         n = slash ? (int)(slash - info.dli_fname) : 0;
    if (!slash || snprintf(path, sizeof path, "%.*s/../%s", n, info.dli_fname, file) >= (int)sizeof path) return false;
    return take(path);
}
static bool look(const char *package)
{
    static const char *const systems[] = { "libopenblas.so.0", "libopenblas.so", "libmkl_rt.so.2", "libmkl_rt.so.1",
                                           "libmkl_rt.so",     "liblapack.so.3", "liblapack.so",   NULL };
    const char              *wish = getenv("LUCID_LAPACK");
    char                     path[4096 + 64];
    if (wish && *wish) {
        if (!strcmp(wish, "none")) return false;
        if (take(wish)) return true;
        lc_warn("LUCID_LAPACK=%s is not a LAPACK library with 32-bit integers: looking elsewhere", wish);
    }
    snprintf(path, sizeof path, "%s/lib/libscipy_openblas.so", package);
    if ((*package && take(path)) || take_neighbour("scipy_openblas32/lib/libscipy_openblas.so")) return true;
    for (const char *const *s = systems; *s; s++)
        if (take(*s)) return true;
    return false;
}

bool lapack_open(void)
{
    int known = atomic_load_explicit(&state, memory_order_acquire);
    if (known) return known > 0;
    char package[4096] = "";
    if (lc_host_package && !lc_host_package("scipy_openblas32", package, sizeof package)) package[0] = 0;
    pthread_mutex_lock(&lock);
    if (!atomic_load(&state)) atomic_store_explicit(&state, look(package) ? 1 : -1, memory_order_release);
    pthread_mutex_unlock(&lock);
    return atomic_load(&state) > 0;
}
const char *lc_lapack_path(void) { return lapack_open() ? found_at : ""; }

int lapack_missing(const char *op)
{
    return lc_fail_int(
        LC_NotImplementedError,
        "%s needs a LAPACK library, and none was found: install the package scipy-openblas32, or set LUCID_LAPACK to the "
        "path of an OpenBLAS, MKL or LAPACK library",
        op);
}

void lapack_threads(int n)
{
    if (set_threads && atomic_load(&state) > 0 && atomic_exchange(&threads_now, n) != n) set_threads(n);
}
