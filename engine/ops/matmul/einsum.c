/* einsum. Every letter, and every dimension an ellipsis stands for, is an axis of one common space: first the axes of the
 * result in its order, then those that are summed. An operand becomes a view with all axes, of size one where it has none;
 * repeated letters are diagonals. Two operands at a time are contracted by one batched product, the cheapest pair first:
 * axes of both that are needed later form its batch, axes of both that are not its inner dimension, all others its rows and
 * columns. */
#include "matmul.h"

#include <stdio.h>

enum { LETTERS = 52, DOTS = LETTERS, MOST = LC_MAX_DIMS }; /* a subscript is a letter, or DOTS */
typedef struct {
    uint8_t at[MOST + 1];
    int     n, dots; /* dots: position of the ellipsis, -1 without */
} subscripts;
typedef struct {
    const char *text;
    int         n_axes, n_out, ellipsis; /* axes in all, of the result, of the ellipsis */
    int         axis[LETTERS + 1];       /* of a letter, or the first of the ellipsis; -1: none */
    int         uses[LETTERS + 1];
    int64_t     size[MOST];
} space;

static const char *parse_side(const char *s, const char *end, subscripts *to, const char *text)
{
    to->n = 0, to->dots = -1;
    for (; s < end && *s != ','; s++) {
        char c = *s;
        if (c == ' ') continue;
        if (c == '.') {
            if (end - s < 3 || s[1] != '.' || s[2] != '.' || to->dots >= 0)
                return lc_fail(LC_LucidError, "einsum(): found '.' that is not part of any ellipsis, or a second one, in %s",
                               text);
            to->dots = to->n, s += 2, c = 0;
        } else if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')))
            return lc_fail(LC_LucidError, "einsum(): invalid subscript given, subscripts must be in [a-zA-Z], got '%c' in %s",
                           c, text);
        if (to->n == MOST) return lc_fail(LC_LucidError, "einsum(): more than %d subscripts", MOST);
        to->at[to->n++] = (uint8_t)(!c ? DOTS : c <= 'Z' ? c - 'A' : c - 'a' + 26);
    }
    return s;
}

static int parse_inputs(const char *end, int n, lc_tensor *const *ts, subscripts *all, space *e)
{
    const char *s = e->text;
    for (int k = 0; k < n; k++) {
        if (!(s = parse_side(s, end, &all[k], e->text))) return -1;
        int letters = all[k].n - (all[k].dots >= 0), rest = ts[k]->ndim - letters;
        if (rest < 0 || (rest > 0 && all[k].dots < 0))
            return lc_fail_int(
                LC_LucidError,
                "einsum(): the number of subscripts in the equation (%d) does not match the number of dimensions "
                "(%d) for operand %d%s",
                letters, ts[k]->ndim, k, rest > 0 ? " and no ellipsis was given" : "");
        if (rest > e->ellipsis) e->ellipsis = rest;
        for (int i = 0; i < all[k].n; i++) e->uses[all[k].at[i]]++;
        if (k + 1 < n && s == end)
            return lc_fail_int(LC_LucidError, "einsum(): more operands were provided than specified in the equation");
        if (k + 1 < n) s++;
    }
    if (s != end) return lc_fail_int(LC_LucidError, "einsum(): fewer operands were provided than specified in the equation");
    return 0;
}

static int give_axis(space *e, int subscript)
{
    int many = subscript == DOTS ? e->ellipsis : 1;
    if (e->n_axes + many > MOST) return lc_fail_int(LC_LucidError, "einsum(): more than %d dimensions", MOST);
    return e->axis[subscript] = e->n_axes, e->n_axes += many, 0;
}
static int give_axes(const char *arrow, space *e)
{
    subscripts out;
    for (int i = 0; i <= LETTERS; i++) e->axis[i] = -1;
    if (arrow) {
        const char *end = arrow + strlen(arrow), *s = parse_side(arrow + 2, end, &out, e->text);
        if (!s) return -1;
        if (s != end) return lc_fail_int(LC_LucidError, "einsum(): the output has one set of subscripts, got %s", e->text);
        for (int i = 0; i < out.n; i++) {
            int c = out.at[i], letter = c < 26 ? 'A' + c : 'a' + c - 26;
            if (e->axis[c] >= 0)
                return lc_fail_int(LC_LucidError, "einsum(): output subscript %c appears more than once in the output", letter);
            if (c != DOTS && !e->uses[c])
                return lc_fail_int(LC_LucidError,
                                   "einsum(): output subscript %c does not appear in the equation for any input operand",
                                   letter);
            if (give_axis(e, c) < 0) return -1;
        }
    } else { /* the ellipsis, then letters that appear once, sorted */
        if (give_axis(e, DOTS) < 0) return -1;
        for (int c = 0; c < LETTERS; c++)
            if (e->uses[c] == 1 && give_axis(e, c) < 0) return -1;
    }
    e->n_out = e->n_axes;
    for (int c = LETTERS; c >= 0; c--)
        if (e->axis[c] < 0 && e->uses[c] && give_axis(e, c) < 0) return -1;
    for (int a = 0; a < e->n_axes; a++) e->size[a] = 1;
    return 0;
}

/* "subscript j", for errors */
static const char *name_of(const space *e, int axis, char text[32])
{
    for (int c = 0; c < LETTERS; c++)
        if (e->axis[c] == axis) return snprintf(text, 32, "subscript %c", c < 26 ? 'A' + c : 'a' + c - 26), text;
    return "a dimension of the ellipsis";
}

/* The operand as a view with all axes, size one where it has none: scoped. */
static lc_tensor *aligned(lc_tensor *t, const subscripts *s, space *e, int k)
{
    int     n = 0, axes[MOST], letters = s->n - (s->dots >= 0);
    int64_t from[MOST];
    char    text[32];
    for (int i = 0; i < s->n; i++)
        for (int j = 0, many = s->at[i] == DOTS ? t->ndim - letters : 1; j < many; j++) /* an ellipsis is right-aligned */
            axes[n++] = e->axis[s->at[i]] + (s->at[i] == DOTS ? e->ellipsis - many + j : 0);
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n && t; j++) {
            if (axes[i] != axes[j]) continue;
            if (t->shape[i] != t->shape[j])
                return lc_fail(LC_LucidError, "einsum(): %s is repeated for operand %d but the sizes don't match, %lld != %lld",
                               name_of(e, axes[i], text), k, (long long)t->shape[j], (long long)t->shape[i]);
            t = lc_movedim(lc_diagonal(t, 0, i, j), (int64_t[]){ -1 }, 1, (int64_t[]){ i }, 1);
            memmove(axes + j, axes + j + 1, (size_t)(n - j - 1) * sizeof *axes);
            n--, j--;
        }
    for (int i = 0; i < n && t; i++) {
        int64_t *size = &e->size[axes[i]];
        if (*size == 1) *size = t->shape[i];
        else if (t->shape[i] != 1 && t->shape[i] != *size)
            return lc_fail(LC_LucidError,
                           "einsum(): %s has size %lld for operand %d which does not broadcast with previously seen size %lld",
                           name_of(e, axes[i], text), (long long)t->shape[i], k, (long long)*size);
    }
    for (int a = 0, have = n; a < e->n_axes; a++) {
        int i = 0;
        while (i < n && axes[i] != a) i++;
        if (i == n) t = t ? lc_unsqueeze(t, have) : NULL, from[a] = have++;
        else from[a] = i;
    }
    return t ? lc_permute(t, from, e->n_axes) : NULL;
}

static lc_tensor *summed_over(lc_tensor *t, const int64_t *dims, int n, bool widen) /* widen: integers become int64 */
{
    if (!n) return t;
    return widen ? lc_sum(t, dims, n, true) : lc_sum_dtype(t, dims, n, true, LC_OF_DTYPE((lc_dtype)t->dtype));
}

/* Both have all axes. Bit a of `kept`: the result, or an operand still to come, has axis a. */
static lc_tensor *contract(lc_tensor *a, lc_tensor *b, uint64_t kept)
{
    enum { BATCH, LEFT, INNER, RIGHT };
    int64_t group[4][MOST], lone[2][MOST] = { { 0 } }, size[4] = { 1, 1, 1, 1 }, order[MOST], shape[MOST], back[MOST],
                            dims[MOST];
    int count[4] = { 0 }, n_lone[2] = { 0 }, n = 0, ndim = a->ndim;
    for (int d = 0; d < ndim; d++) {
        bool keep = kept >> d & 1, in_a = a->shape[d] != 1, in_b = b->shape[d] != 1;
        if (!keep && in_a != in_b) lone[in_b][n_lone[in_b]++] = d; /* summed before the product */
        int g = keep           ? (in_a && !in_b   ? LEFT
                                  : in_b && !in_a ? RIGHT
                                                  : BATCH)
                : in_a && in_b ? INNER
                               : BATCH; /* of size one then */
        group[g][count[g]++] = d;
    }
    bool widen = !count[INNER];
    if (count[LEFT] && count[RIGHT] &&
        group[LEFT][count[LEFT] - 1] > group[RIGHT][count[RIGHT] - 1]) /* closer to the result's order */
        return contract(b, a, kept);
    a = summed_over(a, lone[0], n_lone[0], widen), b = summed_over(b, lone[1], n_lone[1], widen);
    if (!a || !b) return NULL;
    if (!count[INNER]) return lc_mul(a, b);
    for (int g = 0; g < 4; g++)
        for (int i = 0; i < count[g]; i++) size[g] *= g == RIGHT ? b->shape[group[g][i]] : a->shape[group[g][i]];
    static const int a_order[4] = { BATCH, LEFT, INNER, RIGHT }, b_order[4] = { BATCH, INNER, RIGHT, LEFT };
    for (int g = 0; g < 4; g++)
        for (int i = 0; i < count[a_order[g]]; i++) order[n++] = group[a_order[g]][i];
    lc_tensor *left = lc_reshape(lc_permute(a, order, ndim), (int64_t[]){ size[BATCH], size[LEFT], size[INNER] }, 3);
    n = 0;
    for (int g = 0; g < 4; g++)
        for (int i = 0; i < count[b_order[g]]; i++) order[n++] = group[b_order[g]][i];
    lc_tensor       *right = lc_reshape(lc_permute(b, order, ndim), (int64_t[]){ size[BATCH], size[INNER], size[RIGHT] }, 3);
    static const int out_order[4] = { BATCH, LEFT, RIGHT, INNER };
    n = 0;
    for (int g = 0; g < 4; g++)
        for (int i = 0; i < count[out_order[g]]; i++, n++) {
            int64_t d = group[out_order[g]][i];
            dims[n] = d, shape[n] = out_order[g] == INNER ? 1 : out_order[g] == RIGHT ? b->shape[d] : a->shape[d];
        }
    for (int i = 0; i < ndim; i++) back[dims[i]] = i;
    return lc_permute(lc_reshape(lc_bmm(left, right), shape, ndim), back, ndim);
}

/* Cost of a pair: the product of all its sizes. */
static double cost_of(const lc_tensor *a, const lc_tensor *b)
{
    double cost = 1;
    for (int d = 0; d < a->ndim; d++) cost *= (double)(a->shape[d] != 1 ? a->shape[d] : b->shape[d]);
    return cost;
}
static uint64_t axes_of(const lc_tensor *t)
{
    uint64_t axes = 0;
    for (int d = 0; d < t->ndim; d++) axes |= (uint64_t)(t->shape[d] != 1) << d;
    return axes;
}

static int einsum_call(const lc_value *in, lc_tensor **out)
{
    int         n = in[1].n;
    const char *arrow = strstr(in[0].s, "->"), *end = arrow ? arrow : in[0].s + strlen(in[0].s);
    space       e = { .text = in[0].s };
    if (n == 0) return lc_fail_int(LC_ValueError, "einsum(): must provide at least one operand");
    subscripts *all = lc_alloc((size_t)n * sizeof *all);
    LC_ARRAY(lc_tensor *, ts, n);
    if (!all || !ts) return lc_free(all, (size_t)n * sizeof *all), -1;
    int rc = parse_inputs(end, n, in[1].ts, all, &e);
    if (rc == 0) rc = give_axes(arrow, &e);
    for (int k = 0; k < n && rc == 0; k++) rc = (ts[k] = aligned(in[1].ts[k], &all[k], &e, k)) ? 0 : -1;
    lc_free(all, (size_t)n * sizeof *all);
    if (rc < 0) return -1;
    uint64_t result = e.n_out == MOST ? ~0ull : (1ull << e.n_out) - 1;
    while (n > 1) {
        int    i = 0, j = 1;
        double best = -1;
        for (int k = 0; k < n && n > 2; k++)
            for (int l = k + 1; l < n; l++) {
                double cost = cost_of(ts[k], ts[l]);
                if (best < 0 || cost < best) best = cost, i = k, j = l;
            }
        uint64_t kept = result;
        for (int k = 0; k < n; k++)
            if (k != i && k != j) kept |= axes_of(ts[k]);
        if (!(ts[i] = contract(ts[i], ts[j], kept))) return -1;
        ts[j] = ts[--n];
    }
    int64_t rest[MOST], dims = 0;
    for (int d = e.n_out; d < e.n_axes; d++) rest[dims++] = d;
    if (!dims) out[0] = ts[0];
    else out[0] = in[1].n > 1 ? lc_squeeze(ts[0], rest, (int)dims) : lc_sum(ts[0], rest, (int)dims, false);
    return out[0] ? 0 : -1;
}
LC_OP(einsum, .sig = "einsum(equation: str, *operands: Tensor) -> Tensor",
      .doc = "Products of operands summed over named dimensions, by Einstein's convention.", .call = einsum_call);
