/* Several ranks of each line, for quantiles.
 *
 * A line that fits the scratch is sorted there, unless few ranks are wanted. A longer line is never copied: radix select
 * looks for all ranks at once, by the digits of the keys from the top. A span is the set of keys with a common prefix and
 * contains some of the ranks. A pass builds histograms of the next digit in up to LIVE spans and narrows the span of each
 * rank by one digit. A key finds its span in a small table by a perfect hash, so there is no branch to mispredict. When few
 * elements are left in the spans, they are collected in the order of their indices and sorted. When all bits are used up,
 * equal elements are counted until the wanted one is reached. A few dozen ranks take three to five passes, whatever the
 * values; sorting took 12 bytes of memory per element and was slower. */
#include "radix_select.h"
#include "sort.h"
#include "../../args.h"
#include <string.h>

enum {
    MOST_RANKS = 512, /* at once */
    LIVE = 64,        /* spans per pass */
    TABLE_BITS = 10,
    COUNTS = 1 << 13,
    COLLECTED_BITS = 11,
    COLLECTED = 1 << COLLECTED_BITS,
    SHORT_LINE = 4096, /* sorted in the scratch */
    FEW_RANKS = 2,     /* for a line whose keys are kept: select one by one */
    KEPT = 24 << 10,   /* bytes of such a line (median.c) */
};
typedef struct {
    uint64_t prefix;        /* keys >> above */
    uint32_t before, count; /* elements with smaller keys, and elements in this span */
    uint16_t first, end;    /* range of the wanted ranks in this span */
} span;
typedef struct {
    const rank_line   *line;
    const lc_sort_key *as;
    const uint64_t    *rank;  /* m wanted ranks, sorted, each with its position in the low 16 bits */
    int64_t           *index; /* the results, by position */
    int                above, width;
    const span        *live;
    int                spans;
    uint64_t           multiplier, prefix[LIVE]; /* of the live spans */
    uint8_t            table[1 << TABLE_BITS];
} search;
typedef struct {
    span live[2][MOST_RANKS];
    union {
        uint32_t count[COUNTS];
        struct {
            uint64_t record[COLLECTED];
            uint32_t index[COLLECTED];
        };
    };
} ranked_scratch;

static uint64_t wanted(const search *s, int64_t i) { return s->rank[i] >> 16; }
static void     answer(const search *s, int64_t i, int64_t index) { s->index[s->rank[i] & 0xffff] = index; }

static inline uint64_t above(uint64_t key, int bits) { return bits < 64 ? key >> bits : 0; }
static inline int slot_of(const search *s, uint64_t prefix) { return s->table[prefix * s->multiplier >> (64 - TABLE_BITS)]; }
static void       choose_table(search *s, const span *live, int spans)
{
    bool met = true;
    s->live = live, s->spans = spans;
    for (s->multiplier = 0x9e3779b97f4a7c15u; met; s->multiplier = s->multiplier * 0xd1342543de82ef95u + 1) {
        uint8_t taken[1 << TABLE_BITS] = { 0 };
        met = false;
        for (int i = 0; i < spans; i++) {
            uint64_t at = live[i].prefix * (s->multiplier | 1) >> (64 - TABLE_BITS);
            met |= taken[at], taken[at] = 1;
        }
        if (!met) break;
    }
    s->multiplier |= 1;
    memset(s->table, 0, sizeof s->table);
    for (int i = 0; i < spans; i++) {
        s->prefix[i] = live[i].prefix;
        s->table[live[i].prefix * s->multiplier >> (64 - TABLE_BITS)] = (uint8_t)i;
    }
}

/* ---- passes over the line ---- */
#define EACH_TILE(s, key, at, n) for (int64_t at = 0, n; at < (s)->line->n && (n = load_tile(s, at, key)); at += n)
static int64_t load_tile(const search *s, int64_t at, uint64_t *key)
{
    const rank_line *l = s->line;
    int64_t          n = l->n - at < SORT_TILE ? l->n - at : SORT_TILE;
    key_summary      unused;
    s->as->load(l->x + at * l->step, l->step, n, 0, key, &unused);
    return n;
}
static void count_digits(const search *s, uint32_t *count)
{
    int      shift = s->above - s->width, width = s->width, bits = s->above;
    uint64_t key[SORT_TILE], mask = (1u << width) - 1;
    memset(count, 0, ((size_t)s->spans << width) * sizeof *count);
    if (s->spans == 1 && s->live->count == s->line->n) { /* all */
        EACH_TILE(s, key, at, n)
        for (int64_t i = 0; i < n; i++) count[key[i] >> shift & mask]++;
        return;
    }
    EACH_TILE(s, key, at, n)
    for (int64_t i = 0; i < n; i++) {
        uint64_t prefix = above(key[i], bits);
        int      slot = slot_of(s, prefix);
        count[((uint64_t)slot << width) + (key[i] >> shift & mask)] += s->prefix[slot] == prefix;
    }
}
/* Narrows the spans that hold ranks by one digit; returns their number. */
static int narrow(const search *s, const uint32_t *count, span *to)
{
    int made = 0;
    for (int i = 0; i < s->spans; i++, count += 1u << s->width) {
        uint32_t before = s->live[i].before;
        int64_t  r = s->live[i].first;
        for (uint64_t digit = 0; r < s->live[i].end; before += count[digit++]) {
            int64_t first = r;
            while (r < s->live[i].end && wanted(s, r) < (uint64_t)before + count[digit]) r++;
            if (r > first)
                to[made++] =
                    (span){ s->live[i].prefix << s->width | digit, before, count[digit], (uint16_t)first, (uint16_t)r };
        }
    }
    return made;
}
static void collect(const search *s, ranked_scratch *workspace)
{
    uint64_t key[SORT_TILE], mask = ~0ull >> (64 - s->above);
    int64_t  start[LIVE], next[LIVE], sum = 0;
    for (int i = 0; i < s->spans; i++) start[i] = next[i] = sum, sum += s->live[i].count;
    EACH_TILE(s, key, at, n)
    for (int64_t i = 0; i < n; i++) {
        uint64_t prefix = above(key[i], s->above);
        int      slot = slot_of(s, prefix);
        if (s->prefix[slot] != prefix) continue;
        workspace->record[next[slot]] = (key[i] & mask) << COLLECTED_BITS | (uint64_t)next[slot];
        workspace->index[next[slot]++] = (uint32_t)(at + i);
    }
    for (int i = 0; i < s->spans; i++) {
        const span *p = &s->live[i];
        cpu_sort_place(workspace->record + start[i], sizeof *workspace->record, p->count, 0, s->above + COLLECTED_BITS, false);
        for (int64_t r = p->first; r < p->end; r++)
            answer(s, r, workspace->index[workspace->record[start[i] + (int64_t)wanted(s, r) - p->before] & (COLLECTED - 1)]);
    }
}
static void count_equals(const search *s) /* each span is a single key */
{
    uint64_t key[SORT_TILE], seen[LIVE];
    int64_t  next[LIVE];
    for (int i = 0; i < s->spans; i++) seen[i] = s->live[i].before, next[i] = s->live[i].first;
    EACH_TILE(s, key, at, n)
    for (int64_t i = 0; i < n; i++) {
        int slot = slot_of(s, key[i]);
        if (s->prefix[slot] != key[i]) continue;
        for (; next[slot] < s->live[slot].end && wanted(s, next[slot]) == seen[slot]; next[slot]++)
            answer(s, next[slot], at + i);
        seen[slot]++;
    }
}

/* ---- lines ---- */
static void search_line(const rank_line *l, const uint64_t *rank, int m, int64_t *index, ranked_scratch *workspace)
{
    search s = {
        .line = l, .as = cpu_sort_key(l->work), .rank = rank, .index = index, .above = (int)(8 * lc_size_of(l->work))
    };
    int live = 1, current = 0;
    workspace->live[0][0] = (span){ 0, 0, (uint32_t)l->n, 0, (uint16_t)m };
    while (live) {
        const span *spans = workspace->live[current];
        int         made = 0, most = live < LIVE ? live : LIVE;
        for (s.width = SORT_DIGIT; most << s.width > COUNTS;) s.width--;
        if (s.width > s.above) s.width = s.above;
        for (int at = 0; at < live; at += LIVE) {
            int64_t left = 0;
            choose_table(&s, spans + at, live - at < LIVE ? live - at : LIVE);
            for (int i = 0; i < s.spans; i++) left += s.live[i].count;
            if (left <= COLLECTED && s.above <= 64 - COLLECTED_BITS && s.above) collect(&s, workspace);
            else if (s.above == 0) count_equals(&s);
            else {
                count_digits(&s, workspace->count);
                made += narrow(&s, workspace->count, workspace->live[!current] + made);
            }
        }
        s.above -= s.width, live = made, current = !current;
    }
}
static int sort_short_line(const rank_line *l, const uint64_t *rank, int m, int64_t *index, uint64_t *workspace)
{
    sorted_line line;
    uint64_t   *spare = workspace + cpu_sort_capacity(l->n);
    if (cpu_sort_line(l->work, l->x, l->step, l->n, false, true, false, workspace, spare, &line) < 0) return -1;
    for (int i = 0; i < m; i++) cpu_sort_read(&line, (int64_t)(rank[i] >> 16), 1, NULL, &index[rank[i] & 0xffff]);
    return 0;
}

/* ---- all lines; everything but the input is contiguous ---- */
typedef struct {
    const lc_quantile_args *a;
    int64_t                 n, m, size;
    atomic_int              failed;
} ranked_job;

static const char *line_at(const lc_tensor *in, int64_t row)
{
    int64_t at = 0;
    for (int d = in->ndim - 2; d >= 0; d--) at += row % in->shape[d] * in->stride[d], row /= in->shape[d];
    return in->data + at * lc_size_of(in->dtype);
}
static int rank_row(const ranked_job *job, const rank_line *l, const int64_t *rank, int64_t m, int64_t *index, void *scratch)
{
    uint64_t order[MOST_RANKS];
    if (m == 1 || (m <= FEW_RANKS && job->n * job->size <= KEPT && l->step == job->size)) {
        for (int64_t j = 0; j < m; j++)
            index[j] = j && rank[j] == rank[j - 1] ? index[j - 1] : cpu_rank_one(l, rank[j], scratch);
        return 0;
    }
    for (int64_t j = 0; j < m; j++) order[j] = (uint64_t)rank[j] << 16 | (uint64_t)j;
    cpu_sort_place(order, sizeof *order, m, 0, 64, false);
    if (job->n <= SHORT_LINE) return sort_short_line(l, order, (int)m, index, scratch);
    return search_line(l, order, (int)m, index, scratch), 0;
}
static void ranked_chunk(void *ctx, int64_t begin, int64_t end)
{
    ranked_job             *job = ctx;
    const lc_quantile_args *a = job->a;
    rank_line               l = { .step = a->in->stride[a->in->ndim - 1] * job->size,
                                  .n = job->n,
                                  .from = (lc_dtype)a->in->dtype,
                                  .work = (lc_dtype)a->in->dtype };
    size_t bytes = cpu_rank_scratch(job->n, job->size, l.step != job->size), sorting = (size_t)cpu_sort_capacity(job->n) * 16;
    if (job->m > 1 && bytes < (job->n <= SHORT_LINE ? sorting : sizeof(ranked_scratch)))
        bytes = job->n <= SHORT_LINE ? sorting : sizeof(ranked_scratch);
    void *scratch = cpu_scratch(bytes);
    if (!scratch) job->failed = 1;
    for (int64_t row = begin; scratch && row < end; row++) {
        const int64_t *rank = (const int64_t *)a->rank->data + row * job->m;
        int64_t       *index = (int64_t *)a->index->data + row * job->m;
        char          *value = a->value->data + row * job->m * job->size;
        l.x = line_at(a->in, row);
        for (int64_t j = 0, m; j < job->m; j += m) {
            m = job->m - j < MOST_RANKS ? job->m - j : MOST_RANKS;
            if (rank_row(job, &l, rank + j, m, index + j, scratch) < 0) job->failed = 1;
        }
        for (int64_t j = 0; j < job->m; j++) memcpy(value + j * job->size, l.x + index[j] * l.step, (size_t)job->size);
    }
    cpu_scratch_free(scratch, bytes);
}
static int cpu_ranked(lc_dtype dtype, const void *args)
{
    const lc_quantile_args *a = args;
    int                     last = a->in->ndim - 1;
    ranked_job              job = { .a = a, .n = a->in->shape[last], .m = a->rank->shape[last], .size = lc_size_of(dtype) };
    if (a->rank->numel == 0) return 0;
    if (cpu_rank_fits(job.n) < 0) return -1;
    for (int64_t i = 0; i < a->rank->numel; i++)
        if (((const int64_t *)a->rank->data)[i] < 0 || ((const int64_t *)a->rank->data)[i] >= job.n)
            return lc_fail_int(LC_IndexError, "a rank is out of range for %lld elements", (long long)job.n);
    cpu_parallel(a->rank->numel / job.m, CPU_GRAIN / (8 * job.n) + 1, 8 * a->in->numel, ranked_chunk, &job);
    return job.failed ? lc_fail_int(LC_OutOfMemory, "no memory to rank %lld elements", (long long)job.n) : 0;
}
LC_CPU_RUN(_ranked, cpu_ranked, 1u << LC_f32 | 1u << LC_f64)
