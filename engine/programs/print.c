/* A tensor as text: PyTorch's format, character for character, with its default options. lucid/_print.py does the same for Python, where the options can be
 * changed; tests/programs/test_c_programs.py compares the two.
 *
 * Only the corners of a large tensor are shown. Two walks over what is shown: the first finds one notation and one width for all numbers, the second writes
 * them. Floats are shown as integers ("1.") if all are, else with four digits; in scientific notation if the largest is above 1e8, the smallest below 1e-4
 * or their ratio above 1000. Zeros, infinities and NaNs do not count, not even for the width. */
#include "programs.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 4, THRESHOLD = 1000, EDGE = 3, LINE = 80, NUMBER_BYTES = 400 }; /* 1e308 has 309 digits before the point */

typedef struct { /* of a column of numbers */
    bool   any, whole, scientific;
    double low, high; /* sizes of those that count */
    int    width;
} notation;

typedef struct {
    const lc_tensor *t; /* on the CPU */
    FILE            *to;
    bool             summarize;
    notation         part[2]; /* real numbers or integers; imaginary parts */
    int              width;
} printer;

/* ---- one number ---- */
static double real_at(int dtype, const char *at, int part)
{
    switch (dtype) {
    case LC_f16:
    case LC_c32:
        return (double)lc_f16_to_f32(((const uint16_t *)at)[part]);
    case LC_bf16:
        return (double)lc_bf16_to_f32(*(const uint16_t *)at);
    case LC_f32:
    case LC_c64:
        return (double)((const float *)at)[part];
    case LC_f64:
    case LC_c128:
        return ((const double *)at)[part];
    default:
        return (double)lc_f8_to_f32((lc_dtype)dtype, *(const uint8_t *)at);
    }
}

static int64_t integer_at(int dtype, const char *at)
{
    switch (dtype) {
    case LC_u8:
        return *(const uint8_t *)at;
    case LC_i8:
        return *(const int8_t *)at;
    case LC_i16:
        return *(const int16_t *)at;
    case LC_u16:
        return *(const uint16_t *)at;
    case LC_i32:
        return *(const int32_t *)at;
    case LC_u32:
        return *(const uint32_t *)at;
    default:
        return *(const int64_t *)at;
    }
}

static int integer_text(int dtype, const char *at, char *text)
{
    if (dtype == LC_b8) return snprintf(text, NUMBER_BYTES, "%s", *at ? "True" : "False");
    if (dtype == LC_u64) return snprintf(text, NUMBER_BYTES, "%llu", (unsigned long long)*(const uint64_t *)at);
    return snprintf(text, NUMBER_BYTES, "%lld", (long long)integer_at(dtype, at));
}

static int real_text(const notation *n, double v, char *text)
{
    if (!isfinite(v)) return snprintf(text, NUMBER_BYTES, "%s", isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
    if (n->scientific) return snprintf(text, NUMBER_BYTES, "%.*e", DIGITS, v);
    return snprintf(text, NUMBER_BYTES, n->whole ? "%.0f." : "%.4f", v);
}

/* ---- notation and width: two walks over the numbers that are shown ---- */
static bool counts(double v) { return isfinite(v) && v != 0; }

static void find_notation(printer *p, const char *at)
{
    int dtype = p->t->dtype;
    for (int k = 0; k < 1 + lc_is_complex(dtype); k++) {
        notation *n = &p->part[k];
        double    v = real_at(dtype, at, k), size = fabs(v);
        if (!counts(v)) continue;
        n->low = n->any ? fmin(n->low, size) : size, n->high = n->any ? fmax(n->high, size) : size;
        n->any = true, n->whole &= v == floor(v);
        n->scientific = n->high / n->low > 1000.0 || n->high > 1.0e8 || n->low < 1.0e-4;
    }
}

static void find_width(printer *p, const char *at)
{
    char text[NUMBER_BYTES];
    int  dtype = p->t->dtype;
    for (int k = 0; k < 1 + lc_is_complex(dtype); k++) {
        notation *n = &p->part[k];
        int       length = 0;
        if (!lc_is_differentiable(dtype)) length = integer_text(dtype, at, text);
        else if (counts(real_at(dtype, at, k))) length = real_text(n, real_at(dtype, at, k), text);
        if (length > n->width) n->width = length;
    }
}

/* The elements shown of a dimension: [0, n), or EDGE at both ends. */
static int64_t shown(const printer *p, int64_t n) { return p->summarize && n > 2 * EDGE ? 2 * EDGE : n; }
static int64_t element(const printer *p, int64_t n, int64_t i) { return shown(p, n) < n && i >= EDGE ? n - 2 * EDGE + i : i; }
static const char *place(const printer *p, int d, const char *at, int64_t i)
{
    return at + element(p, p->t->shape[d], i) * p->t->stride[d] * lc_size_of(p->t->dtype);
}

static void walk(printer *p, int d, const char *at, void (*look)(printer *p, const char *at))
{
    if (d == p->t->ndim) look(p, at);
    else
        for (int64_t i = 0; i < shown(p, p->t->shape[d]); i++) walk(p, d + 1, place(p, d, at, i), look);
}

/* ---- the text ---- */
static void write_number(printer *p, const char *at)
{
    char text[NUMBER_BYTES];
    int  dtype = p->t->dtype;
    if (lc_is_differentiable(dtype)) real_text(&p->part[0], real_at(dtype, at, 0), text);
    else integer_text(dtype, at, text);
    fprintf(p->to, "%*s", p->part[0].width, text);
    if (!lc_is_complex(dtype)) return;
    real_text(&p->part[1], real_at(dtype, at, 1), text);
    fprintf(p->to, "%s%sj", *text == '-' ? "" : "+", text);
}

static void write_gap(printer *p, int lines, int columns)
{
    fputc(',', p->to);
    for (int i = 0; i < lines; i++) fputc('\n', p->to);
    fprintf(p->to, "%*s", columns, "");
}

static void write_body(printer *p, int d, const char *at, int indent)
{
    if (d == p->t->ndim) {
        write_number(p, at);
        return;
    }
    int     inner = p->t->ndim - d - 1, per_line = (LINE - indent) / (p->width + 2);
    int64_t n = p->t->shape[d], words = 0;
    if (per_line < 1) per_line = 1;
    fputc('[', p->to);
    for (int64_t i = 0; i < shown(p, n); i++, words++) {
        for (bool gap = shown(p, n) < n && i == EDGE;; gap = false) { /* "..." is a word of its own */
            if (words && inner) write_gap(p, inner, indent + 1);
            else if (words && words % per_line == 0) write_gap(p, 1, indent + 1);
            else if (words) fputs(", ", p->to);
            if (!gap) break;
            fputs(inner ? "..." : " ...", p->to);
            words++;
        }
        write_body(p, d + 1, place(p, d, at, i), indent + 1);
    }
    fputc(']', p->to);
}

/* ---- what stands behind the values ---- */
enum { SUFFIXES = 4, SUFFIX_BYTES = 1600 }; /* 64 sizes of up to 19 digits */
typedef struct {
    int  n;
    char text[SUFFIXES][SUFFIX_BYTES];
} suffixes;

static void add_size(suffixes *s, const lc_tensor *t)
{
    char *text = s->text[s->n++];
    int   at = snprintf(text, SUFFIX_BYTES, "size=(");
    for (int d = 0; d < t->ndim; d++)
        at += snprintf(text + at, (size_t)(SUFFIX_BYTES - at), d ? ", %lld" : "%lld", (long long)t->shape[d]);
    snprintf(text + at, (size_t)(SUFFIX_BYTES - at), t->ndim == 1 ? ",)" : ")");
}

static int add_suffixes(suffixes *s, lc_tensor *t, bool without_values)
{
    lc_dtype dtype = (lc_dtype)t->dtype, like_default = lc_default_dtype == LC_f64 ? LC_c128 : LC_c64;
    bool     usual = dtype == lc_default_dtype;
    int      failed = 0;
    char     name[160];
    if (!lc_can(t)->host_memory || without_values) {
        const char *kind = lc_device_names[t->device.kind];
        if (without_values) snprintf(s->text[s->n++], SUFFIX_BYTES, "device='%s'", kind);
        else snprintf(s->text[s->n++], SUFFIX_BYTES, "device='%s:%d'", kind, t->device.index);
    }
    if (without_values || (t->numel == 0 && t->ndim != 1)) add_size(s, t);
    if (!without_values && t->numel) usual = usual || dtype == like_default || dtype == LC_i64 || dtype == LC_b8;
    if (!usual) snprintf(s->text[s->n++], SUFFIX_BYTES, "dtype=lucid.%s", lc_dtypes[dtype].name);
    lc_node *node = lc_grad_fn(t, &failed);
    if (failed) return -1;
    if (node) lc_node_name(node, name, sizeof name), snprintf(s->text[s->n++], SUFFIX_BYTES, "grad_fn=<%s>", name);
    else if (lc_requires_grad(t)) snprintf(s->text[s->n++], SUFFIX_BYTES, "requires_grad=True");
    return 0;
}

/* Suffixes go on the last line while they fit. */
static void write_suffixes(FILE *to, const suffixes *s, int length, int indent)
{
    for (int i = 0; i < s->n; i++) {
        int bytes = (int)strlen(s->text[i]);
        if (length + bytes + 2 > LINE) fprintf(to, ",\n%*s%s", indent, "", s->text[i]), length = indent + bytes;
        else fprintf(to, ", %s", s->text[i]), length += bytes + 2;
    }
}

static void write_values(printer *p, int indent)
{
    for (int k = 0; k < 2; k++) p->part[k] = (notation){ .whole = true, .width = 1 };
    if (lc_is_differentiable(p->t->dtype)) walk(p, 0, p->t->data, find_notation);
    walk(p, 0, p->t->data, find_width);
    p->width = p->part[0].width + (lc_is_complex(p->t->dtype) ? p->part[1].width + 1 : 0);
    write_body(p, 0, p->t->data, indent);
}

static int write_tensor(FILE *to, char **text, size_t *bytes, lc_tensor *t)
{
    static const char prefix[] = "tensor(";
    int               indent = (int)sizeof prefix - 1;
    bool              without_values = !t->data && t->numel;
    suffixes          s = { 0 };
    lc_tensor        *here = NULL;
    if (add_suffixes(&s, t, without_values) < 0) return -1;
    fputs(prefix, to);
    if (without_values) fputs("...", to);
    else if (t->numel == 0) fputs("[]", to);
    else {
        if (!lc_can(t)->host_memory) {
            here = lc_tensor_new((lc_dtype)t->dtype, (lc_device){ LC_CPU, 0 }, t->ndim, t->shape);
            if (!here || lc_copy_values(here, t) < 0) return lc_release(here), -1;
        }
        write_values(&(printer){ .t = here ? here : t, .to = to, .summarize = t->numel > THRESHOLD }, indent);
    }
    fflush(to); /* text is what was written so far */
    const char *newline = *text ? memrchr(*text, '\n', *bytes) : NULL;
    write_suffixes(to, &s, (int)(newline ? *text + *bytes - newline - 1 : (ptrdiff_t)*bytes) + 2, indent);
    fputc(')', to);
    lc_release(here);
    return 0;
}

char *lc_tensor_text(lc_tensor *t)
{
    if (!t) return NULL; /* an earlier failure passes through */
    if (t == LC_NONE) return strdup("None");
    if (t->flags & (LC_SPARSE | LC_BATCHED))
        return lc_fail(LC_NotImplementedError, "a sparse or batched tensor cannot be printed from C: print its parts");
    if (t->device.kind != LC_CPU && !lc_backend_of(t->device)) return NULL;
    char  *text = NULL;
    size_t bytes = 0;
    FILE  *to = open_memstream(&text, &bytes);
    if (!to) return lc_fail(LC_OutOfMemory, "no memory for the text of a tensor");
    int  status = write_tensor(to, &text, &bytes, t);
    bool whole = !ferror(to);
    whole = fclose(to) == 0 && whole;
    if (status == 0 && whole) return text;
    free(text);
    return status < 0 ? NULL : lc_fail(LC_OutOfMemory, "no memory for the text of a tensor");
}

int lc_fprint(FILE *file, lc_tensor *t)
{
    char *text = lc_tensor_text(t);
    if (!text) return -1;
    bool written = fprintf(file, "%s\n", text) >= 0;
    free(text);
    return written ? 0 : lc_fail_int(LC_LucidError, "cannot write the text of a tensor");
}

int lc_print(lc_tensor *t) { return lc_fprint(stdout, t); }
