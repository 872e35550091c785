/* safetensors files: eight bytes with the length of a header, the header in JSON, and the values of all tensors without a gap. Nothing in them could run.
 *
 * Reading trusts nothing: every length is checked against the size of the file before memory is taken for it, and every entry against its bytes: the checks
 * of lucid/serialization/safetensors.py. The values are copied: a program that keeps them does not depend on the file any more.
 *
 * Writing makes the file that Python makes: large elements first, then by name, so that every tensor lies at a multiple of its element. */
#include "parts.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_LIMIT = 100000000, FORMAT = 2 }; /* bytes, as the format's own library; lucid/serialization/versions.py */
static const struct {
    const char *name;
    lc_dtype    dtype;
} types[] = { { "BOOL", LC_b8 },
              { "U8", LC_u8 },
              { "I8", LC_i8 },
              { "I16", LC_i16 },
              { "U16", LC_u16 },
              { "F16", LC_f16 },
              { "BF16", LC_bf16 },
              { "I32", LC_i32 },
              { "U32", LC_u32 },
              { "F32", LC_f32 },
              { "F64", LC_f64 },
              { "I64", LC_i64 },
              { "U64", LC_u64 },
              { "C64", LC_c64 },
              { "F8_E4M3", LC_f8_e4m3fn },
              { "F8_E5M2", LC_f8_e5m2 },
              { "F8_E4M3FNUZ", LC_f8_e4m3fnuz },
              { "F8_E5M2FNUZ", LC_f8_e5m2fnuz },
              { "F8_E8M0", LC_f8_e8m0fnu } };
enum { TYPES = sizeof types / sizeof *types };

/* ---- reading ---- */
typedef struct {
    const char *name;  /* decoded */
    const char *shape; /* in the header: "[2, 3]" */
    lc_dtype    dtype;
    int         place; /* in the header */
    int64_t     begin, end;
} entry;
typedef struct {
    const char *path;
    int         fd, n, capacity;
    int64_t     size, start; /* bytes of the file; where the values begin */
    size_t      header_bytes;
    char       *header, *texts; /* texts: the names, decoded; no longer than the header */
    entry      *entries;
} reader;

static int damaged(const reader *r, const char *what, const char *name)
{
    return lc_fail_int(LC_ValueError, "%s is not a whole safetensors file: %s%s%.200s%s", r->path, what, name ? " \"" : "",
                       name ? name : "", name ? "\"" : "");
}

static int read_at(const reader *r, void *to, int64_t bytes, int64_t offset)
{
    for (int64_t done = 0; done < bytes;) {
        size_t  piece = (size_t)(bytes - done < (1 << 30) ? bytes - done : 1 << 30);
        ssize_t n = pread(r->fd, (char *)to + done, piece, (off_t)(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return lc_fail_int(LC_LucidError, "cannot read %s: %s", r->path, strerror(errno));
        if (n == 0) return damaged(r, "it ended early", NULL);
        done += n;
    }
    return 0;
}

static int read_header(reader *r)
{
    struct stat   about;
    unsigned char length[8];
    uint64_t      bytes = 0;
    r->fd = open(r->path, O_RDONLY | O_CLOEXEC);
    if (r->fd < 0 || fstat(r->fd, &about) < 0)
        return lc_fail_int(LC_LucidError, "cannot read %s: %s", r->path, strerror(errno));
    if (!S_ISREG(about.st_mode)) return lc_fail_int(LC_LucidError, "cannot read %s: it is not a plain file", r->path);
    r->size = about.st_size;
    if (r->size < 8) return damaged(r, "it is shorter than eight bytes", NULL);
    if (read_at(r, length, 8, 0) < 0) return -1;
    for (int i = 0; i < 8; i++) bytes |= (uint64_t)length[i] << 8 * i;
    if (bytes > HEADER_LIMIT || (int64_t)bytes > r->size - 8) return damaged(r, "its header does not fit", NULL);
    r->header_bytes = bytes + 1, r->start = 8 + (int64_t)bytes;
    r->header = lc_alloc(2 * r->header_bytes);
    if (!r->header) return -1;
    r->texts = r->header + r->header_bytes;
    return read_at(r, r->header, (int64_t)bytes, 8);
}

/* The text that says what wrote the file: a newer format may mean something else. */
static int check_version(const reader *r, const char *text, int length)
{
    lc_json j = { text, text + length };
    int64_t format = 0;
    char    key[256];
    if (!lc_json_take(&j, '{')) return damaged(r, "its version is not readable", NULL);
    do {
        if (j.end - j.at >= (ptrdiff_t)sizeof key || lc_json_string(&j, key) < 0 || !lc_json_take(&j, ':'))
            return damaged(r, "its version is not readable", NULL);
        if ((strcmp(key, "format") ? lc_json_skip(&j) : lc_json_count(&j, &format)) < 0)
            return damaged(r, "its version is not readable", NULL);
    } while (lc_json_take(&j, ','));
    if (!lc_json_take(&j, '}') || format < 1) return damaged(r, "its version is not readable", NULL);
    if (format > FORMAT)
        return lc_fail_int(LC_ValueError, "%s was written with format %lld; this version reads formats up to %d", r->path,
                           (long long)format, FORMAT);
    return 0;
}

static int read_metadata(const reader *r, lc_json *j, char *room)
{
    if (!lc_json_take(j, '{')) return damaged(r, "its metadata are damaged", NULL);
    if (lc_json_take(j, '}')) return 0;
    do {
        int key = lc_json_string(j, room), length = key < 0 || !lc_json_take(j, ':') ? -1 : lc_json_string(j, room + key + 1);
        if (length < 0) return damaged(r, "its metadata are damaged", NULL);
        if (strcmp(room, "lucid.version") == 0 && check_version(r, room + key + 1, length) < 0) return -1;
    } while (lc_json_take(j, ','));
    return lc_json_take(j, '}') ? 0 : damaged(r, "its metadata are damaged", NULL);
}

static int read_type(lc_json *j, entry *e, char *room)
{
    if (lc_json_string(j, room) < 0) return -1;
    for (int i = 0; i < TYPES; i++)
        if (strcmp(room, types[i].name) == 0) return e->dtype = types[i].dtype, 0;
    return -1;
}

static int read_counts(lc_json *j, int64_t *counts, int most) /* how many */
{
    int n = 0;
    if (!lc_json_take(j, '[')) return -1;
    if (lc_json_take(j, ']')) return 0;
    do
        if (n == most || lc_json_count(j, &counts[n++]) < 0) return -1;
    while (lc_json_take(j, ','));
    return lc_json_take(j, ']') ? n : -1;
}

static int read_entry(const reader *r, lc_json *j, entry *e, char *room)
{
    int64_t shape[LC_MAX_DIMS], offsets[2];
    int     ndim = -1;
    bool    typed = false, placed = false;
    bool    fine = lc_json_take(j, '{');
    while (fine) {
        fine = lc_json_string(j, room) >= 0 && lc_json_take(j, ':');
        if (!fine) break;
        if (strcmp(room, "dtype") == 0) typed = fine = !typed && read_type(j, e, room) == 0;
        else if (strcmp(room, "shape") == 0)
            e->shape = j->at, fine = ndim < 0 && (ndim = read_counts(j, shape, LC_MAX_DIMS)) >= 0;
        else if (strcmp(room, "data_offsets") == 0) placed = fine = !placed && read_counts(j, offsets, 2) == 2;
        else fine = lc_json_skip(j) == 0;
        if (!fine || !lc_json_take(j, ',')) break;
    }
    if (!fine || !lc_json_take(j, '}') || !typed || ndim < 0 || !placed)
        return damaged(r, "this entry is damaged, or of a type that is not known:", e->name);
    e->begin = offsets[0], e->end = offsets[1];
    int64_t bytes = lc_size_of(e->dtype), most = bytes; /* most: with sizes of 0 taken for 1, what strides have to hold */
    for (int d = 0; d < ndim; d++)
        if (__builtin_mul_overflow(bytes, shape[d], &bytes) || __builtin_mul_overflow(most, shape[d] ? shape[d] : 1, &most))
            return damaged(r, "the sizes of this entry are too large:", e->name);
    if (e->end < e->begin || e->end > r->size - r->start || bytes != e->end - e->begin)
        return damaged(r, "this entry does not fit its bytes:", e->name);
    return 0;
}

static int one_more(reader *r)
{
    if (r->n < r->capacity) return 0;
    int    capacity = r->capacity ? 2 * r->capacity : 64;
    entry *entries = lc_alloc((size_t)capacity * sizeof *entries);
    if (!entries) return -1;
    if (r->n) memcpy(entries, r->entries, (size_t)r->n * sizeof *entries);
    if (r->entries) lc_free(r->entries, (size_t)r->capacity * sizeof *entries);
    r->entries = entries, r->capacity = capacity;
    return 0;
}

static int read_entries(reader *r)
{
    lc_json j = { r->header, r->header + r->header_bytes - 1 };
    char   *room = r->texts; /* what was decoded is shorter than its text, so there is always enough left */
    if (!lc_json_take(&j, '{')) return damaged(r, "its header is not an object", NULL);
    if (lc_json_take(&j, '}')) goto ended;
    do {
        int length = lc_json_string(&j, room);
        if (length < 0 || !lc_json_take(&j, ':')) return damaged(r, "its header is damaged", NULL);
        if (strcmp(room, "__metadata__") == 0) {
            if (read_metadata(r, &j, room) < 0) return -1;
            continue;
        }
        if (one_more(r) < 0) return -1;
        entry *e = &r->entries[r->n];
        *e = (entry){ .name = room, .place = r->n++ };
        room += length + 1;
        if (read_entry(r, &j, e, room) < 0) return -1;
    } while (lc_json_take(&j, ','));
    if (!lc_json_take(&j, '}')) return damaged(r, "its header is damaged", NULL);
ended:
    while (j.at < j.end && *j.at == ' ') j.at++;
    return j.at == j.end ? 0 : damaged(r, "its header is damaged", NULL);
}

static int by_name(const void *a, const void *b) { return strcmp(((const entry *)a)->name, ((const entry *)b)->name); }
static int by_offset(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int64_t      less = x->begin != y->begin ? x->begin - y->begin : x->end - y->end;
    return less < 0 ? -1 : less > 0;
}
static int  by_place(const void *a, const void *b) { return ((const entry *)a)->place - ((const entry *)b)->place; }
static void order(reader *r, int (*by)(const void *, const void *))
{
    if (r->n) qsort(r->entries, (size_t)r->n, sizeof *r->entries, by);
}

static int check_entries(reader *r) /* without repeats, gaps, overlaps or bytes that belong to nothing */
{
    int64_t at = 0;
    order(r, by_name);
    for (int i = 1; i < r->n; i++)
        if (strcmp(r->entries[i - 1].name, r->entries[i].name) == 0)
            return damaged(r, "this name appears twice:", r->entries[i].name);
    order(r, by_offset);
    for (int i = 0; i < r->n; i++) {
        if (r->entries[i].begin != at) return damaged(r, "this entry leaves a gap or overlaps another:", r->entries[i].name);
        at = r->entries[i].end;
    }
    order(r, by_place);
    return at == r->size - r->start ? 0 : damaged(r, "its values are longer or shorter than its header says", NULL);
}

static int read_tensor(const reader *r, const entry *e, lc_state_dict *d)
{
    int64_t    shape[LC_MAX_DIMS];
    int        ndim = read_counts(&(lc_json){ e->shape, r->header + r->header_bytes - 1 }, shape, LC_MAX_DIMS);
    lc_tensor *t = lc_tensor_new(e->dtype, (lc_device){ LC_CPU, 0 }, ndim, shape);
    int        status = t ? read_at(r, t->data, e->end - e->begin, r->start + e->begin) : -1;
    for (int64_t i = 0; status == 0 && e->dtype == LC_b8 && i < t->numel; i++)
        t->data[i] = t->data[i] != 0; /* as kernels require */
    if (status == 0) status = lc_state_dict_append(d, e->name, t);
    lc_release(t);
    return status;
}

lc_state_dict *lc_load_safetensors(const char *path)
{
    reader         r = { .path = path, .fd = -1 };
    lc_state_dict *d = lc_state_dict_new();
    int            status = d ? read_header(&r) : -1;
    if (status == 0) status = read_entries(&r);
    if (status == 0) status = check_entries(&r);
    for (int i = 0; i < r.n && status == 0; i++) status = read_tensor(&r, &r.entries[i], d);
    if (r.fd >= 0) close(r.fd);
    if (r.header) lc_free(r.header, 2 * r.header_bytes);
    if (r.entries) lc_free(r.entries, (size_t)r.capacity * sizeof *r.entries);
    if (status == 0) return d;
    lc_state_dict_free(d);
    return NULL;
}

/* ---- writing ---- */
typedef struct {
    const char *name, *type;
    lc_tensor  *t;
    const char *first, *last; /* its memory */
} item;

static int by_size(const void *a, const void *b)
{
    const item *x = a, *y = b;
    int64_t     more = lc_size_of(y->t->dtype) - lc_size_of(x->t->dtype);
    return more ? (more < 0 ? -1 : 1) : strcmp(x->name, y->name);
}
static int by_memory(const void *a, const void *b)
{
    const item *x = a, *y = b;
    int         device = memcmp(&x->t->device, &y->t->device, sizeof x->t->device);
    return device ? device : x->first < y->first ? -1 : x->first > y->first;
}

static int check_items(item *items, const lc_state_dict *d)
{
    for (int i = 0; i < d->n; i++) {
        lc_tensor  *t = d->tensors[i];
        const char *name = d->names[i];
        int64_t     last = 0;
        items[i] = (item){ .name = name, .t = t, .first = t->data };
        for (int k = 0; k < TYPES; k++)
            if (types[k].dtype == (lc_dtype)t->dtype) items[i].type = types[k].name;
        if (!items[i].type)
            return lc_fail_int(LC_DtypeMismatch, "safetensors has no type for %s (\"%s\")", lc_dtypes[t->dtype].name, name);
        if (strcmp(name, "__metadata__") == 0 || !lc_json_is_utf8(name, strlen(name)))
            return lc_fail_int(LC_ValueError, "a tensor cannot be named \"%s\" in a safetensors file", name);
        if (t->flags & (LC_SPARSE | LC_BATCHED) || (t->numel && !t->data))
            return lc_fail_int(LC_NotImplementedError,
                               "\"%s\" is sparse, batched or on the device meta: it has no values that could be saved", name);
        for (int k = 0; k < t->ndim; k++) last += (t->shape[k] - 1) * t->stride[k];
        items[i].last = t->numel ? t->data + (last + 1) * lc_size_of(t->dtype) : t->data;
    }
    qsort(items, (size_t)d->n, sizeof *items, by_memory);
    for (int i = 0, before = -1; i < d->n; i++) {
        if (!items[i].t->numel) continue;
        if (before >= 0 && lc_same_device(items[before].t->device, items[i].t->device) && items[before].last > items[i].first)
            return lc_fail_int(
                LC_ValueError,
                "\"%s\" and \"%s\" share memory, which a safetensors file cannot say: save one of them, or a clone",
                items[before].name, items[i].name);
        before = i;
    }
    qsort(items, (size_t)d->n, sizeof *items, by_size);
    return 0;
}

static void write_string(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', to), fputc(*text, to);
        else if ((unsigned char)*text < 0x20) fprintf(to, "\\u%04x", *text);
        else fputc(*text, to);
    }
    fputc('"', to);
}

static char *make_header(const item *items, int n, size_t *bytes) /* eight bytes of length, then the text; free() it */
{
    char   *text = NULL;
    int64_t at = 0;
    FILE   *to = open_memstream(&text, bytes);
    if (!to) return lc_fail(LC_OutOfMemory, "no memory for the header of a safetensors file");
    fprintf(to, "%8s{\"__metadata__\":{\"lucid.version\":\"{\\\"format\\\": %d, \\\"ops\\\": 1}\"}", "", FORMAT);
    for (int i = 0; i < n; i++) {
        const lc_tensor *t = items[i].t;
        fputc(',', to);
        write_string(to, items[i].name);
        fprintf(to, ":{\"dtype\":\"%s\",\"shape\":[", items[i].type);
        for (int d = 0; d < t->ndim; d++) fprintf(to, d ? ",%lld" : "%lld", (long long)t->shape[d]);
        fprintf(to, "],\"data_offsets\":[%lld,%lld]}", (long long)at, (long long)(at + t->numel * lc_size_of(t->dtype)));
        at += t->numel * lc_size_of(t->dtype);
    }
    fputc('}', to);
    fflush(to);
    while (!ferror(to) && *bytes % 8) fputc(' ', to), fflush(to);
    bool whole = !ferror(to);
    if (fclose(to) != 0 || !whole) return free(text), lc_fail(LC_OutOfMemory, "no memory for the header of a safetensors file");
    if (*bytes - 8 > HEADER_LIMIT)
        return free(text), lc_fail(LC_ValueError, "a header of %zu bytes; safetensors allows %d", *bytes - 8, HEADER_LIMIT);
    for (int i = 0; i < 8; i++) text[i] = (char)((uint64_t)(*bytes - 8) >> 8 * i);
    return text;
}

static int write_values(lc_whole_file *f, lc_tensor *t)
{
    lc_tensor *whole = NULL;
    if (!lc_can(t)->host_memory || !t->is_contiguous) {
        whole = lc_tensor_new((lc_dtype)t->dtype, (lc_device){ LC_CPU, 0 }, t->ndim, t->shape);
        if (!whole || lc_copy_values(whole, t) < 0) return lc_release(whole), -1;
    }
    int status = lc_whole_file_write(f, whole ? whole->data : t->data, (size_t)(t->numel * lc_size_of(t->dtype)));
    lc_release(whole);
    return status;
}

static int write_file(const item *items, int n, const char *path)
{
    lc_whole_file f;
    size_t        bytes = 0;
    char         *header = make_header(items, n, &bytes);
    if (!header) return -1;
    int status = lc_whole_file_open(&f, path);
    if (status == 0) {
        status = lc_whole_file_write(&f, header, bytes);
        for (int i = 0; i < n && status == 0; i++) status = write_values(&f, items[i].t);
        int closed = lc_whole_file_close(&f, status == 0);
        if (status == 0) status = closed;
    }
    free(header);
    return status;
}

int lc_save_safetensors(const lc_state_dict *d, const char *path)
{
    if (!d) return -1; /* an earlier failure passes through */
    size_t bytes = (size_t)(d->n + 1) * sizeof(item);
    item  *items = lc_alloc(bytes);
    int    status = items ? check_items(items, d) : -1;
    if (status == 0) status = write_file(items, d->n, path);
    if (items) lc_free(items, bytes);
    return status;
}
