/* What this machine lets us use: instruction sets and CPUs.
 *
 * The count of CPUs is what the scheduler gives this process, not what the machine has: the affinity mask, limited by the
 * CPU quota of our control group and of all its parents (a container with `--cpus 2` on a 64-core host has 2; 64 threads
 * there would be throttled together, most of the time). A quota of 1.5 counts as 2: the second thread is useful half of the
 * time. */
#include "core.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

/* ---- instruction sets ---- */

static const char *const isa_names[] = {
    [LC_ISA_base] = "base", [LC_ISA_avx2] = "avx2", [LC_ISA_avx512] = "avx512", [LC_ISA_neon] = "neon"
};
enum { ISAS = sizeof isa_names / sizeof *isa_names };

static bool machine_has(lc_isa isa)
{
    if (isa == LC_ISA_base) return true;
#ifdef __x86_64__ /* __builtin_cpu_supports also asks the OS whether it saves the registers; clang 14 does not know f16c */
    unsigned a, b, c = 0, d;
    bool     f16c = __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
    bool     avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && f16c;
    if (isa == LC_ISA_avx2) return avx2;
    if (isa == LC_ISA_avx512)
        return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#elif defined __aarch64__ /* part of the architecture */
    if (isa == LC_ISA_neon) return true;
#endif
    return false;
}

static lc_isa best_isa(void)
{
    for (int isa = ISAS - 1; isa > 0; isa--)
        if (machine_has((lc_isa)isa)) return (lc_isa)isa;
    return LC_ISA_base;
}

static lc_isa chosen_isa;
static void   choose_isa(void)
{
    chosen_isa = best_isa();
    const char *wish = getenv("LUCID_ISA");
    if (!wish || !*wish) return;
    for (int isa = 0; isa < ISAS; isa++)
        if (strcmp(wish, isa_names[isa]) == 0 && machine_has((lc_isa)isa)) {
            chosen_isa = (lc_isa)isa;
            return;
        }
    lc_warn("LUCID_ISA=%s: this machine has no such instruction set; using %s", wish, isa_names[chosen_isa]);
}

lc_isa lc_cpu_isa(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose_isa);
    return chosen_isa;
}

const char *lc_cpu_isa_name(void) { return isa_names[lc_cpu_isa()]; }

/* ---- CPUs ---- */

static bool read_numbers(const char *path, long long *a, long long *b)
{
    FILE *f = fopen(path, "re");
    if (!f) return false;
    int n = fscanf(f, "%lld %lld", a, b); /* "max 100000" (no quota) reads as 0 */
    fclose(f);
    return n >= 1;
}

/* The quota of one group in CPUs, 0 if it has none. */
static int quota_of(const char *folder)
{
    char      path[4200];
    long long quota = -1, period = 0, unused;
    snprintf(path, sizeof path, "%s/cpu.max", folder); /* v2: both numbers in one file */
    if (!read_numbers(path, &quota, &period)) {
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
        if (!read_numbers(path, &quota, &unused)) return 0;
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
        if (!read_numbers(path, &period, &unused)) return 0;
    }
    return quota > 0 && period > 0 ? (int)((quota + period - 1) / period) : 0;
}

/* The smallest quota from `group` up to the root of the hierarchy mounted at `mount`; `least` if none is smaller. Inside a container
 * the group's own path is often not visible: its parents and the root still are. */
static int least_quota(const char *mount, const char *group, int least)
{
    char path[4096];
    int  length = snprintf(path, sizeof path, "%s%s", mount, group);
    if (length >= (int)sizeof path) return least;
    for (size_t root = strlen(mount);;) {
        int quota = quota_of(path);
        if (quota && (!least || quota < least)) least = quota;
        if (strlen(path) <= root) return least;
        *strrchr(path, '/') = 0;
    }
}

static bool list_has(const char *list, const char *word) /* "cpu,cpuacct" has "cpu" */
{
    size_t n = strlen(word);
    for (const char *p = list; (p = strstr(p, word)); p++)
        if ((p == list || p[-1] == ',') && (p[n] == 0 || p[n] == ',')) return true;
    return false;
}

int lc_cpu_quota(const char *membership, const char *mounts)
{
    char  line[4096], mount[4096];
    int   least = 0;
    FILE *f = fopen(membership, "re");
    if (!f) return 0;
    while (fgets(line, sizeof line, f)) { /* "0::/group" (v2) or "4:cpu,cpuacct:/group" (v1) */
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group || group[1] != '/') continue;
        *controllers++ = *group++ = 0;
        static const char *const v2[] = { "", "/unified", NULL }, *const v1[] = { "/cpu", "/cpu,cpuacct", NULL };
        if (*controllers && !list_has(controllers, "cpu")) continue;
        for (const char *const *m = *controllers ? v1 : v2; *m; m++)
            if (snprintf(mount, sizeof mount, "%s%s", mounts, *m) < (int)sizeof mount) least = least_quota(mount, group, least);
    }
    fclose(f);
    return least;
}

int lc_cpu_count(void)
{
    cpu_set_t set;
    int       cpus = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    int       quota = lc_cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    return quota && quota < cpus ? quota : cpus;
}
