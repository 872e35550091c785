// A C++ program: every kind of thing that lucid.h offers, from tensors of its own classes to a state dict.
#include <lucid.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct Release {
    void operator()(lc_tensor *t) const { lc_release(t); }
};
using Tensor = std::unique_ptr<lc_tensor, Release>;

class Scope {
    lc_scope scope = lc_scope_open();

public:
    Scope() = default;
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;
    ~Scope() { lc_scope_close(scope); }
};

template <class T> T checked(T result)
{
    if (!result) throw std::runtime_error(std::string(lc_error_name()) + ": " + lc_error());
    return result;
}
static void check(int status)
{
    if (status < 0) throw std::runtime_error(std::string(lc_error_name()) + ": " + lc_error());
}

static Tensor tensor(const std::vector<float> &values)
{
    const lc_device    cpu = { LC_CPU, 0 };
    const std::int64_t n = static_cast<std::int64_t>(values.size());
    Tensor             t(checked(lc_tensor_new(LC_f32, cpu, 1, &n)));
    std::copy(values.begin(), values.end(), reinterpret_cast<float *>(t->data));
    return t;
}

int main()
{
    Tensor     x = tensor({ 0, 1, 2, 3 }), y = tensor({ 1, 3, 5, 7 }), w = tensor({ 0 }), b = tensor({ 0 });
    lc_tensor *params[] = { w.get(), b.get() };
    for (lc_tensor *p : params) check(lc_set_requires_grad(p, true));
    std::unique_ptr<lc_optimizer, decltype(&lc_optimizer_free)> adam(checked(lc_optimizer_new(LC_ADAM, params, 2, 0.1)), lc_optimizer_free);
    for (int i = 0; i < 400; i++) {
        Scope      scope;
        lc_tensor *off = lc_sub(lc_add(lc_mul(x.get(), w.get()), b.get()), y.get());
        lc_tensor *loss = checked(lc_mean(lc_mul(off, off), nullptr, 0, false));
        lc_optimizer_zero_grad(adam.get());
        check(lc_backward(loss, LC_NONE, false, false));
        check(lc_optimizer_step(adam.get()));
    }
    Scope scope;
    check(lc_print(lc_round(lc_cat(params, 2, 0))));
    const std::int64_t shape[] = { 2, 2 };
    check(lc_print(lc_add(lc_ones(shape, 2, LC_OF_DTYPE(LC_f64), LC_ABSENT), LC_NUMBER(0.5))));
    try {
        checked(lc_matmul(x.get(), lc_zeros(shape, 2, LC_ABSENT, LC_ABSENT)));
    } catch (const std::runtime_error &error) {
        std::puts(error.what());
    }
    return 0;
}
