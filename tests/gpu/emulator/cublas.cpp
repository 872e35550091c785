/* cuBLASLt and cuBLAS beside the emulated driver: the entry points that the backend loads, in the ABI of version 13, written
 * from the libraries' header and not from the backend, so that a wrong assumption of the backend shows.
 *
 * A call is checked as the libraries document it: sizes of attributes, shapes, lead dimensions, types, alignments, workspace. What
 * they would refuse gets their status and is counted. What they cannot see (an alignment that was promised and is not there, memory
 * of the host, a handle on another device or on two threads at once) would be a fault of the device, so the process aborts.
 * Unknown attributes, and known ones that nothing here implements, are refused. A product waits in the stream's queue like any
 * work. Some algorithms add up in their workspace, in two steps of the queue; cuBLAS leaves garbage in its own.
 *
 * An algorithm is 64 bytes that name the library's version, the problem, what was promised, and their hash: it is refused anywhere
 * else. EMULATOR_CUBLAS_VERSION is another version, EMULATOR_CUBLAS_REFUSES=1 one whose algorithms are refused by processes without it.
 * EMULATOR_CUBLAS_NO_BGRAD=1 has no algorithm that makes a bias's gradient, =late one that fails when it is run.
 *
 * Build (test_emulated.py does): g++ -shared -fPIC -O2 cublas.cpp -o libcublasLt.so.13, and libcublas.so.13 links to it. */
#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <type_traits>
#include <vector>

extern "C" int emulated_enqueue(void *stream, void (*call)(const void *), const void *data, size_t n);
extern "C" int emulated_device();
extern "C" int cuMemAlloc_v2(uint64_t *p, size_t n);
extern "C" int cuPointerGetAttribute(void *value, int attribute, uint64_t p);
extern "C" int cuStreamIsCapturing(void *stream, int *status);

typedef int status;
#define CALL(name) extern "C" status name
enum { OK = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum { R_32F = 0, R_64F = 1, R_16F = 2, C_32F = 4, C_64F = 5, R_16BF = 14 };
enum { COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_TF32 = 77 };
enum { OP_N = 0, OP_T = 1, OP_C = 2 };
enum { EPILOGUE_NONE = 1, EPILOGUE_RELU = 2, EPILOGUE_BIAS = 4, EPILOGUE_GELU = 32, EPILOGUE_BGRADA = 256, EPILOGUE_BGRADB = 512 };
enum { BGRAD = EPILOGUE_BGRADA | EPILOGUE_BGRADB, HAVE_VECTOR = EPILOGUE_BIAS | BGRAD };
enum { GARBAGE = 0xff };

enum counter { LT_PRODUCTS, BLAS_PRODUCTS, CHOICES, REFUSED, IN_WORKSPACE, CAPTURED, BIAS_GRADIENTS, COUNTERS };
static std::atomic<int64_t> counted[COUNTERS];
extern "C" int64_t emulated_library_calls(int of) { return of < COUNTERS ? counted[of].load() : -1; }

static void must(bool holds, const char *what)
{
    if (!holds) fprintf(stderr, "emulator: cuBLAS: %s\n", what), abort();
}
static status refused(status s) { return counted[REFUSED]++, s; }
static uint64_t hash_of(const void *data, size_t n)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) h = (h ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return h;
}
static size_t version()
{
    const char *v = getenv("EMULATOR_CUBLAS_VERSION");
    return v ? (size_t)atol(v) : 130100;
}

/* ---- numbers ---- */
static size_t size_of(int type)
{
    switch (type) {
    case R_16F: case R_16BF: return 2;
    case R_32F: return 4;
    case R_64F: case C_32F: return 8;
    case C_64F: return 16;
    default: return 0;
    }
}
static bool is_complex(int type) { return type == C_32F || type == C_64F; }
static float float_of(uint32_t bits)
{
    float f;
    return memcpy(&f, &bits, 4), f;
}
static uint32_t bits_of(float f)
{
    uint32_t u;
    return memcpy(&u, &f, 4), u;
}
static uint32_t rounded(uint32_t bits, int dropped) /* to the nearest, ties to even */
{
    uint32_t half = (1u << (dropped - 1)) - 1 + (bits >> dropped & 1);
    return (bits & 0x7fffffff) > 0x7f800000 ? bits | 0x400000 : (bits + half) >> dropped << dropped;
}
static float half_to_float(uint16_t h)
{
    int   exponent = h >> 10 & 31, fraction = h & 1023;
    float v = exponent == 31  ? (fraction ? NAN : INFINITY)
              : exponent == 0 ? std::ldexp((float)fraction, -24)
                              : std::ldexp((float)(fraction | 1024), exponent - 25);
    return h & 0x8000 ? -v : v;
}
static uint16_t half_from_float(float f)
{
    uint16_t sign = (uint16_t)(bits_of(f) >> 16 & 0x8000);
    float    v = std::fabs(f);
    if (v != v) return (uint16_t)(sign | 0x7e00);
    if (v >= 65520) return (uint16_t)(sign | 0x7c00);
    if (v < 6.103515625e-05f) return (uint16_t)(sign | (int)std::nearbyint(std::ldexp(v, 24)));
    uint32_t r = rounded(bits_of(v), 13);
    return (uint16_t)(sign | (((r >> 23) - 112) << 10 | (r >> 13 & 1023)));
}
template <class V> static V load(const void *from, int type, int64_t i)
{
    switch (type) {
    case R_16F: return (V)half_to_float(((const uint16_t *)from)[i]);
    case R_16BF: return (V)float_of((uint32_t)((const uint16_t *)from)[i] << 16);
    case R_32F: return (V)((const float *)from)[i];
    case R_64F: return (V)((const double *)from)[i];
    }
    if constexpr (!std::is_same<V, double>::value) {
        if (type == C_32F) return V(((const float *)from)[2 * i], ((const float *)from)[2 * i + 1]);
        return V(((const double *)from)[2 * i], ((const double *)from)[2 * i + 1]);
    }
    abort();
}
static void store(void *to, int type, int64_t i, double v)
{
    switch (type) {
    case R_16F: ((uint16_t *)to)[i] = half_from_float((float)v); break;
    case R_16BF: ((uint16_t *)to)[i] = (uint16_t)(rounded(bits_of((float)v), 16) >> 16); break;
    case R_32F: ((float *)to)[i] = (float)v; break;
    case R_64F: ((double *)to)[i] = v; break;
    default: abort();
    }
}
static void store(void *to, int type, int64_t i, std::complex<double> v)
{
    if (type == C_32F) ((float *)to)[2 * i] = (float)v.real(), ((float *)to)[2 * i + 1] = (float)v.imag();
    else ((double *)to)[2 * i] = v.real(), ((double *)to)[2 * i + 1] = v.imag();
}
static double               as_tf32(double v) { return float_of(rounded(bits_of((float)v), 13)); }
static std::complex<double> as_tf32(std::complex<double> v) { return { as_tf32(v.real()), as_tf32(v.imag()) }; }
static double               conjugate(double v) { return v; }
static std::complex<double> conjugate(std::complex<double> v) { return std::conj(v); }

/* ---- a product, in column-major order ---- */
struct matrix {
    void   *data;
    int64_t type, lead, step; /* step: from one of the batch to the next */
};
struct job {
    matrix   a, b, c, d;
    int64_t  m, n, k, batch, ta, tb, compute, epilogue;
    void    *bias; /* or its gradient */
    int64_t  bias_step;
    double   alpha[2], beta[2];
    char    *workspace;
    uint64_t bytes;
    int64_t  in_workspace;
};
static char *moved(const matrix &x, int64_t batch) { return (char *)x.data + batch * x.step * (int64_t)size_of((int)x.type); }
template <class V> static V number(const double *v)
{
    if constexpr (std::is_same<V, double>::value) return v[0];
    else return V(v[0], v[1]);
}
/* op(x), its rows one after the other */
template <class V> static std::vector<V> taken(const matrix &x, int64_t batch, int64_t op, int64_t rows, int64_t cols, bool tf32)
{
    std::vector<V> all((size_t)(rows * cols));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            V v = load<V>(moved(x, batch), (int)x.type, op == OP_N ? i + j * x.lead : j + i * x.lead);
            if (op == OP_C) v = conjugate(v);
            all[(size_t)(i * cols + j)] = tf32 ? as_tf32(v) : v;
        }
    return all;
}
template <class V> static void finish(const job &p, int64_t batch, int64_t i, int64_t j, V sum)
{
    V v = number<V>(p.alpha) * sum, beta = number<V>(p.beta);
    if (beta != V(0)) v += beta * load<V>(moved(p.c, batch), (int)p.c.type, i + j * p.c.lead); /* else C is not read */
    if constexpr (std::is_same<V, double>::value) {
        if (p.epilogue & EPILOGUE_BIAS) v += load<V>(p.bias, (int)p.d.type, i + batch * p.bias_step);
        if (p.epilogue & EPILOGUE_RELU) v = v < 0 ? 0 : v;
        if (p.epilogue & EPILOGUE_GELU) { /* by a tanh of 11 bits, like the instruction */
            double t = std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v));
            v = 0.5 * v * (1 + float_of(rounded(bits_of((float)t), 13)));
        }
    }
    store(moved(p.d, batch), (int)p.d.type, i + j * p.d.lead, v);
}
template <class V> static void multiply(const job &p)
{
    bool tf32 = p.compute == COMPUTE_TF32;
    auto partial = (float *)p.workspace;
    for (int64_t batch = 0; batch < p.batch; batch++) {
        std::vector<V> a = taken<V>(p.a, batch, p.ta, p.m, p.k, tf32), b = taken<V>(p.b, batch, p.tb, p.k, p.n, tf32),
                       row((size_t)p.n);
        for (int64_t i = 0; i < p.m; i++) {
            std::fill(row.begin(), row.end(), V(0));
            for (int64_t k = 0; k < p.k; k++) {
                V        x = a[(size_t)(i * p.k + k)];
                const V *y = &b[(size_t)(k * p.n)];
                for (int64_t j = 0; j < p.n; j++) row[(size_t)j] += x * y[j];
            }
            for (int64_t j = 0; j < p.n; j++)
                if constexpr (std::is_same<V, double>::value) {
                    if (p.in_workspace) partial[(batch * p.n + j) * p.m + i] = (float)row[(size_t)j];
                    else finish(p, batch, i, j, row[(size_t)j]);
                } else finish(p, batch, i, j, row[(size_t)j]);
        }
    }
}
/* The gradient of a bias: the rows of op(A) or the columns of op(B) summed over k, rounded once. No alpha. */
static matrix  bias_gradient(const job &p) { return { p.bias, p.d.type, 0, 0 }; }
static int64_t length_of_vector(const job &p) { return p.epilogue & EPILOGUE_BGRADB ? p.n : p.m; }
static void sum_operand(const job &p)
{
    bool                left = p.epilogue & EPILOGUE_BGRADA, tf32 = p.compute == COMPUTE_TF32;
    std::vector<double> all = left ? taken<double>(p.a, 0, p.ta, p.m, p.k, tf32) : taken<double>(p.b, 0, p.tb, p.k, p.n, tf32);
    for (int64_t i = 0; i < length_of_vector(p); i++) {
        double sum = 0;
        for (int64_t k = 0; k < p.k; k++) sum += all[(size_t)(left ? i * p.k + k : k * p.n + i)];
        store(bias_gradient(p).data, (int)p.d.type, i, sum);
    }
}
static void run(const void *data)
{
    const job &p = *(const job *)data;
    if (p.epilogue & BGRAD) { /* an algorithm with a workspace sums in its second step */
        memset(p.bias, GARBAGE, (size_t)length_of_vector(p) * size_of((int)p.d.type));
        if (!p.in_workspace) sum_operand(p);
    }
    if (p.workspace) { /* of a large one the ends */
        uint64_t end = p.bytes < 1 << 16 ? p.bytes : 1 << 16;
        memset(p.workspace, GARBAGE, end), memset(p.workspace + p.bytes - end, GARBAGE, end);
    }
    is_complex((int)p.d.type) ? multiply<std::complex<double>>(p) : multiply<double>(p);
}
static void run_second(const void *data) /* of an algorithm that adds up in its workspace */
{
    const job &p = *(const job *)data;
    for (int64_t batch = 0; batch < p.batch; batch++)
        for (int64_t j = 0; j < p.n; j++)
            for (int64_t i = 0; i < p.m; i++)
                finish(p, batch, i, j, (double)((const float *)p.workspace)[(batch * p.n + j) * p.m + i]);
    if (p.epilogue & BGRAD) sum_operand(p);
    memset(p.workspace, GARBAGE, p.bytes < 1 << 16 ? p.bytes : 1 << 16);
}
static bool on_device(const void *p)
{
    int device;
    return cuPointerGetAttribute(&device, 9, (uint64_t)(uintptr_t)p) == 0 && device == emulated_device();
}
static void must_lie_there(const matrix &x, int64_t rows, int64_t cols, int64_t batch) /* its first and its last element */
{
    must(on_device(x.data), "a matrix is not in memory of the current device");
    must(on_device(moved(x, batch - 1) + ((cols - 1) * x.lead + rows) * (int64_t)size_of((int)x.type) - 1), "a matrix ends outside");
    must((uintptr_t)x.data % size_of((int)x.type) == 0, "elements of a matrix are not aligned");
}
static status enqueue(const job &p, void *stream)
{
    int captures = 0;
    if (!p.m || !p.n || !p.batch) return OK;
    if (p.k) {
        must_lie_there(p.a, p.ta == OP_N ? p.m : p.k, p.ta == OP_N ? p.k : p.m, p.batch);
        must_lie_there(p.b, p.tb == OP_N ? p.k : p.n, p.tb == OP_N ? p.n : p.k, p.batch);
    }
    must_lie_there(p.d, p.m, p.n, p.batch);
    if (p.beta[0] != 0 || p.beta[1] != 0) must_lie_there(p.c, p.m, p.n, p.batch);
    if (p.epilogue & HAVE_VECTOR) must_lie_there({ p.bias, p.d.type, length_of_vector(p), p.bias_step }, length_of_vector(p), 1, p.batch);
    cuStreamIsCapturing(stream, &captures);
    counted[CAPTURED] += captures != 0, counted[IN_WORKSPACE] += p.in_workspace;
    if (emulated_enqueue(stream, run, &p, sizeof p)) return EXECUTION_FAILED;
    return p.in_workspace && emulated_enqueue(stream, run_second, &p, sizeof p) ? EXECUTION_FAILED : OK;
}
static int scale_of(int compute, int type) /* the type of alpha and beta; -1: no such product */
{
    bool single = compute == COMPUTE_32F || compute == COMPUTE_TF32;
    if (single && type == C_32F) return C_32F;
    if (compute == COMPUTE_64F) return type == R_64F || type == C_64F ? type : -1;
    if (compute == COMPUTE_TF32) return type == R_32F ? R_32F : -1;
    return compute == COMPUTE_32F && (type == R_32F || type == R_16F || type == R_16BF) ? R_32F : -1;
}
static bool has_types(int compute, int64_t a, int64_t b, int64_t c, int64_t d)
{
    bool wider = (a == R_16F || a == R_16BF) && d == R_32F;
    return scale_of(compute, (int)a) >= 0 && a == b && c == d && (d == a || wider);
}
static void read_scale(double to[2], const void *from, int type)
{
    bool wide = type == R_64F || type == C_64F;
    for (int i = 0; i < (is_complex(type) ? 2 : 1); i++) to[i] = wide ? ((const double *)from)[i] : ((const float *)from)[i];
}

/* ---- objects ---- */
enum kind : uint32_t { LT_HANDLE = 0x4c544831, BLAS_HANDLE, OPERATION, LAYOUT, PREFERENCE };
struct object {
    kind              is;
    std::atomic<bool> busy{ false };
    explicit object(kind is) : is(is) {}
};
struct used { /* by this thread, and by no other one */
    object *o;
    explicit used(object *o) : o(o) { must(!o->busy.exchange(true), "two threads use an object at once"); }
    ~used() { o->busy = false; }
    used(const used &) = delete;
};
struct operation : object {
    int32_t     compute, scale, pointers = 0, ta = OP_N, tb = OP_N, tc = OP_N, fill = 2, bias_type = -1;
    uint32_t    epilogue = EPILOGUE_NONE;
    const void *bias = nullptr;
    int64_t     bias_step = 0;
    operation(int compute, int scale) : object(OPERATION), compute(compute), scale(scale) {}
};
struct layout : object {
    uint32_t type;
    int32_t  order = 0, batch = 1;
    uint64_t rows, cols;
    int64_t  lead, step = 0;
    layout(int type, uint64_t rows, uint64_t cols, int64_t lead) : object(LAYOUT), type((uint32_t)type), rows(rows), cols(cols), lead(lead) {}
};
struct preference : object {
    uint32_t mode = 0, alignment[4] = { 256, 256, 256, 256 };
    uint64_t workspace = 0;
    preference() : object(PREFERENCE) {}
};
struct handle : object {
    int      device;
    uint64_t own = 0; /* what every handle allocates on its device */
    void    *stream = nullptr;
    char    *workspace = nullptr; /* NULL: cuBLAS's pool */
    size_t   bytes = 0;
    explicit handle(kind is) : object(is), device(emulated_device()) {}
};
template <class T> static T *as(void *p, kind is) { return p && ((object *)p)->is == is ? (T *)p : nullptr; }
static handle *handle_of(void *p, kind is)
{
    handle *h = as<handle>(p, is);
    if (h) must(h->device == emulated_device(), "a handle of another device than the current one");
    return h;
}
static status create(void **to, kind is)
{
    auto h = new handle(is);
    if (!to || cuMemAlloc_v2(&h->own, 4096)) return delete h, refused(NOT_INITIALIZED);
    return *to = h, OK;
}
struct attribute {
    int    name;
    void  *to;
    size_t bytes;
};
static status set(std::initializer_list<attribute> known, int name, const void *value, size_t bytes)
{
    for (const attribute &a : known)
        if (a.name == name) return value && bytes == a.bytes ? memcpy(a.to, value, bytes), OK : refused(INVALID_VALUE);
    return refused(INVALID_VALUE);
}

/* ---- cuBLASLt ---- */
extern "C" size_t cublasLtGetVersion() { return version(); }
extern "C" size_t cublasLtGetCudartVersion() { return 13000; }
CALL(cublasLtCreate)(void **to) { return create(to, LT_HANDLE); }
CALL(cublasLtMatmulDescCreate)(void **to, int compute, int scale)
{
    if (!to) return refused(INVALID_VALUE);
    return *to = new operation(compute, scale), OK;
}
CALL(cublasLtMatmulDescDestroy)(void *p) { return delete as<operation>(p, OPERATION), OK; }
CALL(cublasLtMatmulDescSetAttribute)(void *p, int name, const void *value, size_t bytes)
{
    operation *o = as<operation>(p, OPERATION);
    if (!o) return refused(INVALID_VALUE);
    used alone(o);
    return set({ { 0, &o->compute, 4 }, { 1, &o->scale, 4 }, { 2, &o->pointers, 4 }, { 3, &o->ta, 4 }, { 4, &o->tb, 4 }, { 5, &o->tc, 4 }, { 6, &o->fill, 4 },
                 { 7, &o->epilogue, 4 }, { 8, &o->bias, 8 }, { 10, &o->bias_step, 8 }, { 26, &o->bias_type, 4 } }, name, value, bytes);
}
CALL(cublasLtMatrixLayoutCreate)(void **to, int type, uint64_t rows, uint64_t cols, int64_t lead)
{
    if (!to) return refused(INVALID_VALUE);
    return *to = new layout(type, rows, cols, lead), OK;
}
CALL(cublasLtMatrixLayoutDestroy)(void *p) { return delete as<layout>(p, LAYOUT), OK; }
CALL(cublasLtMatrixLayoutSetAttribute)(void *p, int name, const void *value, size_t bytes)
{
    layout *l = as<layout>(p, LAYOUT);
    if (!l) return refused(INVALID_VALUE);
    return set({ { 0, &l->type, 4 }, { 1, &l->order, 4 }, { 2, &l->rows, 8 }, { 3, &l->cols, 8 }, { 4, &l->lead, 8 }, { 5, &l->batch, 4 }, { 6, &l->step, 8 } },
               name, value, bytes);
}
CALL(cublasLtMatmulPreferenceCreate)(void **to)
{
    if (!to) return refused(INVALID_VALUE);
    return *to = new preference, OK;
}
CALL(cublasLtMatmulPreferenceDestroy)(void *p) { return delete as<preference>(p, PREFERENCE), OK; }
CALL(cublasLtMatmulPreferenceSetAttribute)(void *p, int name, const void *value, size_t bytes)
{
    preference *q = as<preference>(p, PREFERENCE);
    if (!q) return refused(INVALID_VALUE);
    return set({ { 0, &q->mode, 4 }, { 1, &q->workspace, 8 }, { 5, &q->alignment[0], 4 }, { 6, &q->alignment[1], 4 },
                 { 7, &q->alignment[2], 4 }, { 8, &q->alignment[3], 4 } }, name, value, bytes);
}

struct problem { /* hashed as bytes: no padding */
    uint64_t compute, ta, tb, epilogue, m, n, k, batch, type[4], lead[4], step[4], refuses;
};
static status problem_of(problem *p, const operation *o, void *const layouts[4])
{
    layout *l[4];
    bool    fits = o && o->ta >= OP_N && o->ta <= OP_C && o->tb >= OP_N && o->tb <= OP_C;
    *p = {};
    for (int i = 0; i < 4; i++) {
        if (!(l[i] = as<layout>(layouts[i], LAYOUT))) return INVALID_VALUE;
        p->type[i] = l[i]->type, p->lead[i] = (uint64_t)l[i]->lead, p->step[i] = (uint64_t)l[i]->step;
        fits &= l[i]->lead >= (int64_t)l[i]->rows && l[i]->batch == l[0]->batch && l[i]->batch > 0 && l[i]->rows && l[i]->cols;
        if (l[i]->rows > INT32_MAX || l[i]->cols > INT32_MAX || l[i]->order != 0) return NOT_SUPPORTED;
    }
    if (!fits) return INVALID_VALUE;
    p->compute = (uint64_t)o->compute, p->ta = (uint64_t)o->ta, p->tb = (uint64_t)o->tb, p->epilogue = o->epilogue;
    p->m = l[3]->rows, p->n = l[3]->cols, p->k = p->ta == OP_N ? l[0]->cols : l[0]->rows, p->batch = (uint64_t)l[0]->batch;
    p->refuses = getenv("EMULATOR_CUBLAS_REFUSES") != nullptr;
    if ((p->ta == OP_N ? l[0]->rows : l[0]->cols) != p->m || (p->tb == OP_N ? l[1]->rows : l[1]->cols) != p->k ||
        (p->tb == OP_N ? l[1]->cols : l[1]->rows) != p->n || l[2]->rows != p->m || l[2]->cols != p->n)
        return INVALID_VALUE;
    if (!has_types(o->compute, l[0]->type, l[1]->type, l[2]->type, l[3]->type) || o->scale != scale_of(o->compute, (int)l[0]->type) ||
        o->tc != OP_N || o->fill != 2 || o->pointers != 0)
        return NOT_SUPPORTED;
    bool known = o->epilogue == EPILOGUE_NONE || o->epilogue == EPILOGUE_BGRADA || o->epilogue == EPILOGUE_BGRADB ||
                 (o->epilogue && !(o->epilogue & ~(uint32_t)(EPILOGUE_RELU | EPILOGUE_BIAS | EPILOGUE_GELU)) &&
                  (o->epilogue & (EPILOGUE_RELU | EPILOGUE_GELU)) != (EPILOGUE_RELU | EPILOGUE_GELU));
    if (!known || (o->epilogue != EPILOGUE_NONE && o->scale != R_32F)) return NOT_SUPPORTED;
    if ((o->epilogue & HAVE_VECTOR) && o->bias_type != -1 && o->bias_type != (int)l[3]->type) return NOT_SUPPORTED;
    /* Its kernels sum A as it lies and B transposed, of one matrix, into the type of all the others. */
    if ((o->epilogue == EPILOGUE_BGRADA && p->ta != OP_N) || (o->epilogue == EPILOGUE_BGRADB && p->tb == OP_N) ||
        ((o->epilogue & BGRAD) && (p->batch != 1 || l[0]->type != l[3]->type)))
        return NOT_SUPPORTED;
    return OK;
}

struct algorithm { /* 64 bytes that mean nothing to others */
    uint64_t version, problem, in_workspace, workspace, promised, bias, none, hash;
};
static_assert(sizeof(algorithm) == 64, "");
struct found {
    algorithm by;
    size_t    workspace;
    int       state;
    float     waves;
    int       reserved[4];
};
static bool no_bias_gradients(bool late)
{
    const char *said = getenv("EMULATOR_CUBLAS_NO_BGRAD");
    return said && (strcmp(said, "late") == 0) == late;
}
static uint64_t alignment_of(const void *p)
{
    uintptr_t all = (uintptr_t)p | 256;
    return all & -all;
}
CALL(cublasLtMatmulAlgoGetHeuristic)(void *on, void *of, void *a, void *b, void *c, void *d, void *with, int asked, found *to, int *n)
{
    void *const layouts[4] = { a, b, c, d };
    handle     *h = handle_of(on, LT_HANDLE);
    operation  *o = as<operation>(of, OPERATION);
    preference *q = as<preference>(with, PREFERENCE);
    problem     p;
    if (!h) return refused(NOT_INITIALIZED);
    if (!o || !q || !to || !n || asked < 1) return refused(INVALID_VALUE);
    used alone(o);
    *n = 0, counted[CHOICES]++;
    if (status s = problem_of(&p, o, layouts)) return refused(s);
    if (p.epilogue & BGRAD && no_bias_gradients(false)) return refused(NOT_SUPPORTED);
    if (q->mode != 0) return refused(NOT_SUPPORTED);
    algorithm x = { version(), hash_of(&p, sizeof p), 0, 0, 0, 0, 0, 0 };
    for (int i = 0; i < 4; i++) {
        uint32_t v = q->alignment[i];
        if (!v || (v & (v - 1)) || v > 256) return refused(INVALID_VALUE);
        if (v < size_of((int)p.type[i])) return refused(NOT_SUPPORTED);
        x.promised |= (uint64_t)v << 16 * i;
    }
    if (p.epilogue & HAVE_VECTOR) x.bias = alignment_of(o->bias);
    uint64_t sums = p.batch * p.m * p.n * 4;
    x.in_workspace = (p.m + p.n + p.k) / 8 % 3 != 0 && !is_complex((int)p.type[3]) && p.type[3] != R_64F && sums <= q->workspace;
    x.workspace = x.in_workspace ? sums : 0;
    x.hash = hash_of(&x, offsetof(algorithm, hash));
    to[0] = { x, x.workspace, OK, 1, {} };
    return *n = 1, OK;
}
CALL(cublasLtMatmul)(void *on, void *of, const void *alpha, const void *a, void *la, const void *b, void *lb, const void *beta,
                     const void *c, void *lc, void *d, void *ld, const algorithm *by, void *workspace, size_t bytes, void *stream)
{
    void *const layouts[4] = { la, lb, lc, ld };
    handle     *h = handle_of(on, LT_HANDLE);
    operation  *o = as<operation>(of, OPERATION);
    problem     p;
    algorithm   x;
    if (!h) return refused(NOT_INITIALIZED);
    if (!o || !alpha || !beta || !a || !b || !d || !by) return refused(INVALID_VALUE);
    used alone(o);
    if (status s = problem_of(&p, o, layouts)) return refused(s);
    memcpy(&x, by, sizeof x);
    if (x.hash != hash_of(&x, offsetof(algorithm, hash)) || x.version != version() || x.problem != hash_of(&p, sizeof p))
        return refused(NOT_SUPPORTED);
    job j = {};
    j.a = { (void *)a, (int64_t)p.type[0], (int64_t)p.lead[0], (int64_t)p.step[0] };
    j.b = { (void *)b, (int64_t)p.type[1], (int64_t)p.lead[1], (int64_t)p.step[1] };
    j.c = { (void *)c, (int64_t)p.type[2], (int64_t)p.lead[2], (int64_t)p.step[2] };
    j.d = { d, (int64_t)p.type[3], (int64_t)p.lead[3], (int64_t)p.step[3] };
    j.m = (int64_t)p.m, j.n = (int64_t)p.n, j.k = (int64_t)p.k, j.batch = (int64_t)p.batch;
    j.ta = (int64_t)p.ta, j.tb = (int64_t)p.tb, j.compute = o->compute, j.epilogue = o->epilogue;
    read_scale(j.alpha, alpha, o->scale), read_scale(j.beta, beta, o->scale);
    j.in_workspace = (int64_t)x.in_workspace, j.workspace = (char *)workspace, j.bytes = bytes;
    bool reads_c = j.beta[0] != 0 || j.beta[1] != 0;
    if (reads_c && (!c || (c == d && (p.lead[2] != p.lead[3] || p.step[2] != p.step[3])))) return refused(INVALID_VALUE);
    if (bytes < x.workspace || (bytes && (!workspace || (uintptr_t)workspace % 16))) return refused(INVALID_VALUE);
    if (bytes) must(on_device(workspace) && on_device((char *)workspace + bytes - 1), "the workspace is not on the device");
    if (p.epilogue & BGRAD && no_bias_gradients(true)) return refused(EXECUTION_FAILED);
    if (p.epilogue & HAVE_VECTOR) {
        if (!o->bias) return refused(INVALID_VALUE);
        j.bias = (void *)o->bias, j.bias_step = o->bias_step;
        must(alignment_of(o->bias) >= x.bias, "the bias is less aligned than the one that the algorithm was chosen for");
    }
    const void *pointers[4] = { a, b, reads_c ? c : d, d };
    for (int i = 0; i < 4; i++)
        must(alignment_of(pointers[i]) >= (x.promised >> 16 * i & 0xffff), "a matrix is less aligned than was promised");
    counted[LT_PRODUCTS]++, counted[BIAS_GRADIENTS] += (p.epilogue & BGRAD) != 0;
    return enqueue(j, stream);
}

/* ---- cuBLAS ---- */
CALL(cublasCreate_v2)(void **to) { return create(to, BLAS_HANDLE); }
CALL(cublasGetVersion_v2)(void *, int *to) { return *to = (int)version(), OK; }
CALL(cublasSetStream_v2)(void *p, void *stream) /* which takes the workspace away */
{
    handle *h = handle_of(p, BLAS_HANDLE);
    if (!h) return refused(NOT_INITIALIZED);
    used alone(h);
    return h->stream = stream, h->workspace = nullptr, h->bytes = 0, OK;
}
CALL(cublasSetWorkspace_v2)(void *p, void *workspace, size_t bytes)
{
    handle *h = handle_of(p, BLAS_HANDLE);
    if (!h) return refused(NOT_INITIALIZED);
    used alone(h);
    if ((uintptr_t)workspace % 256) return refused(INVALID_VALUE);
    if (bytes) must(on_device(workspace) && on_device((char *)workspace + bytes - 1), "the workspace is not on the device");
    return h->workspace = (char *)workspace, h->bytes = bytes, OK;
}
CALL(cublasGemmStridedBatchedEx)(void *p, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int type_a, int lda,
                                 long long step_a, const void *b, int type_b, int ldb, long long step_b, const void *beta, void *c,
                                 int type_c, int ldc, long long step_c, int batch, int compute, int algorithm)
{
    handle *h = handle_of(p, BLAS_HANDLE);
    if (!h) return refused(NOT_INITIALIZED);
    used alone(h);
    int  captures = 0, rows_a = ta == OP_N ? m : k, rows_b = tb == OP_N ? k : n;
    bool good = ta >= OP_N && ta <= OP_C && tb >= OP_N && tb <= OP_C && m >= 0 && n >= 0 && k >= 0 && batch >= 0 && alpha && beta &&
                lda >= std::max(1, rows_a) && ldb >= std::max(1, rows_b) && ldc >= std::max(1, m) &&
                (algorithm == -1 || algorithm == 99);
    if (!good) return refused(INVALID_VALUE);
    if (!has_types(compute, type_a, type_b, type_c, type_c)) return refused(NOT_SUPPORTED);
    cuStreamIsCapturing(h->stream, &captures);
    if (captures && !h->workspace) return refused(EXECUTION_FAILED); /* its own pool may not serve a graph */
    job j = {};
    j.a = { (void *)a, type_a, lda, step_a }, j.b = { (void *)b, type_b, ldb, step_b }, j.c = j.d = { c, type_c, ldc, step_c };
    j.m = m, j.n = n, j.k = k, j.batch = batch, j.ta = ta, j.tb = tb, j.compute = compute, j.epilogue = EPILOGUE_NONE;
    int scale = scale_of(compute, type_a);
    read_scale(j.alpha, alpha, scale), read_scale(j.beta, beta, scale);
    j.workspace = h->workspace, j.bytes = h->bytes;
    counted[BLAS_PRODUCTS]++;
    return enqueue(j, h->stream);
}
