/* Attention of halves as one graph of cuDNN: full or causal, forward and backward. Scores stay in the chip.
 *
 * The forward graph is product, scale, mask, softmax, product; cuDNN recognises it and runs its flash kernel. Versions that no
 * longer take it have one node for all of it, which has no causal form, so full attention tries that next. A plan is built when a
 * shape comes for the second time, since building takes up to a second: until then, and for shapes that are too small to gain,
 * attention.c multiplies. A plan on disk is taken at once. */
#include "graph.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct { /* no padding: compared and hashed as bytes */
    int64_t device, type, causal, backward;
    int64_t q[8], k[8], v[8], out[8], grad[8], dq[8], dk[8], dv[8]; /* shape, stride */
} attention_key;
typedef struct entry {
    struct entry *next;
    attention_key key;
    dnn_plan      plan;
    int           seen;   /* calls so far */
    bool          no_use; /* cuDNN does not take it */
} entry;
enum { SLOTS = 64, LEAST = 128, SEEN_BEFORE_BUILDING = 2 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry          *entries[SLOTS];

/* Width contiguous, rows on 16 bytes. */
static bool takes(const lc_tensor *t, lc_dtype type, int64_t into[8])
{
    if (t->dtype != type || t->ndim != 4 || t->stride[3] != 1 || (uintptr_t)t->data % 16 || t->shape[3] % 8 ||
        t->shape[3] > 128)
        return false;
    for (int d = 0; d < 4; d++) {
        if (d < 3 && (t->stride[d] % 8 || t->stride[d] <= 0)) return false;
        into[d] = t->shape[d], into[4 + d] = t->stride[d];
    }
    return true;
}
static bool key_of(const lc_attention_args *a, bool backward, attention_key *key)
{
    lc_dtype type = (lc_dtype)a->q->dtype;
    memset(key, 0, sizeof *key);
    if ((type != LC_f16 && type != LC_bf16) || a->mask || a->lse->dtype != LC_f32) return false;
    if (a->q->shape[2] < LEAST || a->k->shape[2] < LEAST || a->q->shape[1] != a->k->shape[1]) return false;
    if (!a->q->numel || !a->out->numel || (uintptr_t)a->lse->data % 16) return false;
    key->device = a->q->device.index, key->type = type, key->causal = a->causal, key->backward = backward;
    return takes(a->q, type, key->q) && takes(a->k, type, key->k) && takes(a->v, type, key->v) &&
           takes(a->out, type, key->out) &&
           (!backward || (takes(a->grad, type, key->grad) && takes(a->dq, type, key->dq) && takes(a->dk, type, key->dk) &&
                          takes(a->dv, type, key->dv)));
}

/* ---- graphs ---- */
enum { Q = 1, K, V, OUT, LSE, SCALE, MINUS_INFINITY, GRAD, DQ, DK, DV, DOTS, DQ_SUM, ONE, IDS };
static dnn_shape shape_of(const int64_t *of)
{
    dnn_shape s;
    memcpy(s.size, of, sizeof s.size), memcpy(s.stride, of + 4, sizeof s.stride);
    return s;
}
static dnn_shape flipped(dnn_shape s) /* the last two dimensions */
{
    return (dnn_shape){ { s.size[0], s.size[1], s.size[3], s.size[2] },
                        { s.stride[0], s.stride[1], s.stride[3], s.stride[2] } };
}
static dnn_shape dense(int64_t b, int64_t h, int64_t l, int64_t w)
{
    return (dnn_shape){ { b, h, l, w }, { h * l * w, l * w, w, 1 } };
}
/* x where the query may see the key, else minus infinity */
static dnn_descriptor causal_part(dnn_graph *g, dnn_descriptor x, const dnn_shape *scores)
{
    dnn_descriptor row = dnn_value(g, DNN_INT32, scores), col = dnn_value(g, DNN_INT32, scores),
                   seen = dnn_value(g, DNN_BOOL, scores), gone = dnn_number(g, MINUS_INFINITY),
                   y = dnn_value(g, DNN_FLOAT, scores);
    dnn_pointwise(g, DNN_GEN_INDEX, DNN_FLOAT, x, NULL, NULL, row, 2);
    dnn_pointwise(g, DNN_GEN_INDEX, DNN_FLOAT, x, NULL, NULL, col, 3);
    dnn_pointwise(g, DNN_CMP_GE, DNN_BOOL, row, col, NULL, seen, -1);
    dnn_pointwise(g, DNN_BINARY_SELECT, DNN_FLOAT, x, gone, seen, y, -1);
    return y;
}
static void forward_graph(dnn_graph *g, const attention_key *key)
{
    int       type = key->type == LC_f16 ? DNN_HALF : DNN_BFLOAT16;
    dnn_shape sq = shape_of(key->q), sk = flipped(shape_of(key->k)), sv = shape_of(key->v), so = shape_of(key->out);
    dnn_shape scores = dense(sq.size[0], sq.size[1], sq.size[2], sk.size[3]),
              rows = dense(sq.size[0], sq.size[1], sq.size[2], 1);
    dnn_descriptor q = dnn_tensor(g, Q, type, &sq), k = dnn_tensor(g, K, type, &sk), v = dnn_tensor(g, V, type, &sv),
                   out = dnn_tensor(g, OUT, type, &so), lse = dnn_tensor(g, LSE, DNN_FLOAT, &rows),
                   scale = dnn_number(g, SCALE);
    dnn_descriptor product = dnn_value(g, DNN_FLOAT, &scores), x = dnn_value(g, DNN_FLOAT, &scores);
    dnn_matmul(g, q, k, product);
    dnn_pointwise(g, DNN_MUL, DNN_FLOAT, product, scale, NULL, x, -1);
    if (key->causal) x = causal_part(g, x, &scores);
    dnn_descriptor most = dnn_value(g, DNN_FLOAT, &rows), below = dnn_value(g, DNN_FLOAT, &scores),
                   power = dnn_value(g, DNN_FLOAT, &scores), sum = dnn_value(g, DNN_FLOAT, &rows),
                   log = dnn_value(g, DNN_FLOAT, &rows), p = dnn_value(g, type, &scores);
    dnn_reduce(g, DNN_REDUCE_MAX, x, most);
    dnn_pointwise(g, DNN_SUB, DNN_FLOAT, x, most, NULL, below, -1);
    dnn_pointwise(g, DNN_EXP, DNN_FLOAT, below, NULL, NULL, power, -1);
    dnn_reduce(g, DNN_REDUCE_ADD, power, sum);
    dnn_pointwise(g, DNN_LOG, DNN_FLOAT, sum, NULL, NULL, log, -1);
    dnn_pointwise(g, DNN_ADD, DNN_FLOAT, most, log, NULL, lse, -1);
    dnn_pointwise(g, DNN_DIV, DNN_FLOAT, power, sum, NULL, p, -1);
    dnn_matmul(g, p, v, out);
}
static void backward_graph(dnn_graph *g, const attention_key *key)
{
    int       type = key->type == LC_f16 ? DNN_HALF : DNN_BFLOAT16;
    dnn_shape sq = shape_of(key->q), sk = shape_of(key->k), sv = shape_of(key->v), so = shape_of(key->out),
              sg = shape_of(key->grad), sdq = shape_of(key->dq), sdk = shape_of(key->dk), sdv = shape_of(key->dv);
    dnn_shape      skt = flipped(sk), svt = flipped(sv), sum_like = dense(sq.size[0], sq.size[1], sq.size[2], sq.size[3]);
    dnn_shape      scores = dense(sq.size[0], sq.size[1], sq.size[2], sk.size[2]), transposed = flipped(scores);
    dnn_shape      rows = dense(sq.size[0], sq.size[1], sq.size[2], 1);
    dnn_descriptor q = dnn_tensor(g, Q, type, &sq), kt = dnn_tensor(g, K, type, &skt), vt = dnn_tensor(g, V, type, &svt),
                   out = dnn_tensor(g, OUT, type, &so), grad = dnn_tensor(g, GRAD, type, &sg), scale = dnn_number(g, SCALE),
                   lse = dnn_tensor(g, LSE, DNN_FLOAT, &rows), one = dnn_number(g, ONE), dq = dnn_tensor(g, DQ, type, &sdq),
                   dk = dnn_tensor(g, DK, type, &sdk), dv = dnn_tensor(g, DV, type, &sdv),
                   dots = dnn_tensor(g, DOTS, DNN_FLOAT, &rows), dq_sum = dnn_tensor(g, DQ_SUM, DNN_FLOAT, &sum_like);
    /* dots: sum of grad * out per row */
    dnn_descriptor go = dnn_value(g, DNN_FLOAT, &so), go_sum = dnn_value(g, DNN_FLOAT, &rows);
    dnn_pointwise(g, DNN_MUL, DNN_FLOAT, grad, out, NULL, go, -1);
    dnn_reduce(g, DNN_REDUCE_ADD, go, go_sum);
    dnn_pointwise(g, DNN_MUL, DNN_FLOAT, go_sum, one, NULL, dots, -1);
    /* the probabilities again, and dv = p' grad */
    dnn_descriptor product = dnn_value(g, DNN_FLOAT, &scores), scaled = dnn_value(g, DNN_FLOAT, &scores),
                   x = dnn_value(g, DNN_FLOAT, &scores), p = dnn_value(g, DNN_FLOAT, &scores),
                   pt = dnn_value(g, type, &transposed);
    dnn_matmul(g, q, kt, product);
    dnn_pointwise(g, DNN_MUL, DNN_FLOAT, product, scale, NULL, scaled, -1);
    dnn_pointwise(g, DNN_SUB, DNN_FLOAT, scaled, lse, NULL, x, -1);
    if (key->causal) x = causal_part(g, x, &scores);
    dnn_pointwise(g, DNN_EXP, DNN_FLOAT, x, NULL, NULL, p, -1);
    dnn_reshape(g, p, pt);
    dnn_matmul(g, pt, grad, dv);
    /* ds = p (grad v' - dots) scale, dk = ds' q, dq = ds k */
    dnn_descriptor dp = dnn_value(g, DNN_FLOAT, &scores), moved = dnn_value(g, DNN_FLOAT, &scores),
                   weighed = dnn_value(g, DNN_FLOAT, &scores), ds = dnn_value(g, type, &scores),
                   dst = dnn_value(g, type, &transposed), k = dnn_value(g, type, &sk);
    dnn_matmul(g, grad, vt, dp);
    dnn_pointwise(g, DNN_SUB, DNN_FLOAT, dp, dots, NULL, moved, -1);
    dnn_pointwise(g, DNN_MUL, DNN_FLOAT, moved, p, NULL, weighed, -1);
    dnn_pointwise(g, DNN_MUL, DNN_FLOAT, weighed, scale, NULL, ds, -1);
    dnn_reshape(g, ds, dst);
    dnn_matmul(g, dst, q, dk);
    dnn_reshape(g, kt, k);
    dnn_matmul(g, ds, k, dq_sum);
    dnn_pointwise(g, DNN_IDENTITY, DNN_FLOAT, dq_sum, NULL, NULL, dq, -1);
}
/* The one node of newer versions, without a mask. */
static void single_node(dnn_graph *g, const attention_key *key)
{
    enum { FORWARD = 41, BACKWARD = 43 };
    int                  type = key->type == LC_f16 ? DNN_HALF : DNN_BFLOAT16;
    dnn_shape            rows = dense(key->q[0], key->q[1], key->q[2], 1);
    dnn_shape            s[] = { shape_of(key->q),    shape_of(key->k),  shape_of(key->v),  shape_of(key->out),
                                 shape_of(key->grad), shape_of(key->dq), shape_of(key->dk), shape_of(key->dv) };
    static const int64_t ids[] = { Q, K, V, OUT, GRAD, DQ, DK, DV };
    dnn_descriptor       t[8], lse = dnn_tensor(g, LSE, DNN_FLOAT, &rows), scale = dnn_number(g, SCALE);
    for (int i = 0; i < (key->backward ? 8 : 4); i++) t[i] = dnn_tensor(g, ids[i], type, &s[i]);
    if (!key->backward)
        dnn_operation(
            g, FORWARD,
            (dnn_part[]){
                { 2800, t[0] }, { 2801, t[1] }, { 2802, t[2] }, { 2803, t[3] }, { 2804, lse }, { 2805, scale }, { 0 } });
    else
        dnn_operation(g, BACKWARD,
                      (dnn_part[]){ { 2851, t[0] },
                                    { 2852, t[1] },
                                    { 2853, t[2] },
                                    { 2854, t[3] },
                                    { 2855, lse },
                                    { 2856, scale },
                                    { 2859, t[5] },
                                    { 2860, t[6] },
                                    { 2861, t[7] },
                                    { 2862, t[4] },
                                    { 0 } });
}

static bool build(entry *e)
{
    dnn_graph g;
    bool      built = false;
    for (int form = 0; form < (e->key.causal ? 1 : 2) && !built; form++) {
        dnn_start(&g);
        if (form) single_node(&g, &e->key);
        else if (e->key.backward) backward_graph(&g, &e->key);
        else forward_graph(&g, &e->key);
        built = dnn_plan_of(&g, (int)e->key.device, &e->key, sizeof e->key, &e->plan);
        dnn_free(&g);
    }
    lc_verbose_log("attention on cuda: %s",
                   built ? "cuDNN's fused kernel" : "cuDNN takes no graph of this shape, products follow");
    return built;
}
static entry *entry_of(const attention_key *key)
{
    entry **slot = &entries[cuda_hash(CUDA_HASH_START, key, sizeof *key) % SLOTS], *e;
    for (e = *slot; e && memcmp(&e->key, key, sizeof *key); e = e->next)
        ;
    if (e && e->plan.plan) return e;
    int before = cuda_relax_capture(); /* the second call of a shape may be the one that is captured */
    if (!e && (e = calloc(1, sizeof *e))) {
        e->key = *key, e->next = *slot, *slot = e;
        dnn_plan_restored((int)key->device, key, sizeof *key, &e->plan);
    }
    if (e && !e->plan.plan && !e->no_use && ++e->seen >= SEEN_BEFORE_BUILDING) e->no_use = !build(e);
    cuda_restore_capture(before);
    return e;
}

/* 0: done; 1: not by cuDNN, whose gradients add by atomics; -1 after lc_fail. */
int cuda_dnn_attention(const lc_attention_args *a, bool backward)
{
    attention_key key;
    if (a->ordered || !key_of(a, backward, &key) || !dnn_ready(a->q->device.index)) return 1;
    cuda_lock(&lock);
    entry *e = entry_of(&key);
    pthread_mutex_unlock(&lock);
    if (!e || !e->plan.plan || e->no_use) return 1;
    float        scale = (float)a->scale, gone = -INFINITY, one = 1;
    cuda_scratch work = { 0 }, dots = { 0 }, sum = { 0 };
    size_t       rows = (size_t)a->lse->numel * 4, sums = (size_t)a->q->numel * 4;
    int          rc = 0, device = a->q->device.index;
    if (e->plan.bytes && !cuda_scratch_new(&work, device, e->plan.bytes)) rc = -1;
    if (rc == 0 && backward && (!cuda_scratch_new(&dots, device, rows) || !cuda_scratch_new(&sum, device, sums))) rc = -1;
    /* Kernels add to the sums of dq that they find, but for Hopper's. */
    if (rc == 0 && backward && cuda_architecture() != 90) rc = cuda_set_bytes(sum.s.data, 0, sums);
    if (rc == 0) {
        int64_t ids[IDS];
        void   *data[IDS];
        int     n = 0;
#define GIVE(id, address) ids[n] = id, data[n] = (void *)(address), n++
        GIVE(Q, a->q->data), GIVE(K, a->k->data), GIVE(V, a->v->data), GIVE(OUT, a->out->data), GIVE(LSE, a->lse->data);
        GIVE(SCALE, &scale);
        if (a->causal) GIVE(MINUS_INFINITY, &gone);
        if (backward) {
            GIVE(GRAD, a->grad->data), GIVE(DQ, a->dq->data), GIVE(DK, a->dk->data), GIVE(DV, a->dv->data);
            GIVE(DOTS, dots.s.data), GIVE(DQ_SUM, sum.s.data), GIVE(ONE, &one);
        }
#undef GIVE
        rc = dnn_execute(device, &e->plan, n, ids, data, work.s.data);
        if (rc != 0) {
            lc_verbose_log("attention on cuda: cuDNN refused with status %d, products follow", rc);
            e->no_use = true, rc = 1;
        }
    }
    return cuda_scratch_free(&work), cuda_scratch_free(&dots), cuda_scratch_free(&sum), rc;
}
