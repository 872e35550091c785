"""Random programs for the compiler, as Python source: what eager does, a compiled function must do, bit for bit.

`Program(seed)` draws a function of 3 to 20 statements: elementwise chains, views, writes in place (also of inputs and of
tensors from outside), broadcasting, reductions, products, random numbers, several dtypes; results that alias inputs or each
other. Each statement is run when it is drawn, and left out if eager refuses it. `Program.failure()` runs the function eagerly
and compiled on changing values and says in words what differs; `Program.smaller()` removes statements as long as it
still fails.
"""

import random
import re
import warnings

import lucid
import lucid.nn.functional as F
from lucid._compile.check import difference

CALLS = 3
SMALL, LARGE = (1, 2, 3, 4, 5), (1, 2, 7, 64, 65, 130, 257)
FLOATS = ("float32",) * 6 + ("float64", "bfloat16", "float16")
OTHERS = ("int64", "int32", "uint8", "bool", "complex64")


# {v}: a new name; {a} {b} {c}: tensors; {i} {j}: dimensions or small numbers; {x}: a float; {n}: a size
def table(text):
    return [statement.strip() for line in text.strip().split("\n") for statement in line.split(" | ")]


CHAIN = table("""
{v} = {a} + {b} | {v} = {a} - {b} | {v} = {a} * {b} | {v} = {a} / ({b}.abs() + 1) | {v} = {a} * {x} | {v} = {a} + {i}
{v} = {x} - {a} | {v} = {a}.sin() | {v} = {a}.cos() | {v} = {a}.exp().clamp(max=100) | {v} = {a}.tanh()
{v} = {a}.sigmoid() | {v} = {a}.relu() | {v} = F.gelu({a}) | {v} = F.silu({a}) | {v} = {a}.abs().sqrt()
{v} = {a}.abs().log1p() | {v} = {a}.neg() | {v} = {a}.square() | {v} = {a} ** 2 | {v} = {a}.abs() ** 0.5
{v} = lucid.maximum({a}, {b}) | {v} = lucid.minimum({a}, {b}) | {v} = lucid.where({a} > {b}, {a}, {c})
{v} = {a}.clamp(-0.5, 0.5) | {v} = lucid.where({a} > 0, {a}, {x}) | {v} = {a}.lerp({b}, 0.25)
{v} = lucid.addcmul({a}, {b}, {c}, value={x}) | {v} = {a}.erf() | {v} = {a}.sign()
{v} = {a}.masked_fill({b} > 0, {x}) | {v} = {a}.rsqrt() | {v} = {a}.reciprocal() | {v} = {a}.floor()
{v} = {a}.round() | {v} = {a} % 2 | {v} = F.softplus({a}) | {v} = {a}.atan2({b}) | {v} = F.leaky_relu({a}, 0.1)
{v} = F.hardtanh({a}) | {v} = {a}.detach() | {v} = {a}.clone() | {v} = {a} > {b} | {v} = ~({a} > 0) | {v} = {a} * 1
{v} = {a} + 0 | {v} = {a} - {a} | {v} = {a} * {a} | {v} = {a}.to(lucid.float32) | {v} = {a}.double()
{v} = {a}.float() | {v} = {a}.bfloat16() | {v} = {a}.half() | {v} = {a}.to({b}.dtype) | {v} = {a} + {b}.to({a}.dtype)
""")
VIEWS = table("""
{v} = {a}.t() | {v} = {a}.transpose(0, -1) | {v} = {a}[{i}:] | {v} = {a}[:, {i}:] | {v} = {a}[..., ::2]
{v} = {a}[{i}] | {v} = {a}[:, {i}] | {v} = {a}.unsqueeze({i}) | {v} = {a}.squeeze() | {v} = {a}.reshape(-1)
{v} = {a}.view(-1) | {v} = {a}.flatten() | {v} = {a}.expand({n}, *{a}.shape)
{v} = {a}.permute(*reversed(range({a}.dim()))) | {v} = {a}.narrow(0, {i}, 2) | {v} = {a}.diagonal()
{v} = {a}.contiguous() | {v} = {a}.mT | {v} = {a}.unfold(0, 2, 1) | {v}, {w} = {a}.chunk(2)
{v}, {w} = {a}.split([1, {a}.shape[0] - 1]) | {v} = {a}.unbind(0)[{i}] | {v} = {a}.view_as({b})
{v} = {a}.movedim(0, -1) | {v} = {a}.real | {v} = {a}.swapaxes(0, 1) | {v} = {a}.expand_as({b})
{v} = {a}.view({a}.shape[0], -1) | {v} = {a}.detach() | {v} = {a}.as_strided((2,), (1,), {i})
""")
IN_PLACE = table("""
{a}.add_({b}) | {a}.mul_({x}) | {a}.sub_({b}, alpha=2) | {a}.copy_({b}) | {a}.zero_() | {a}.fill_({x}) | {a}.relu_()
{a}[{i}] = {b} | {a}[{i}:] += {x} | {a}[:, {i}] *= {x} | {a}[{a} > 0] = {x} | {a}.clamp_(min=-1) | {a}.t().add_(1)
{a}.view(-1)[{i}] = {x} | {a}.sin_() | {a}.neg_() | {a} += {b} | {a} *= {b} | {a}.masked_fill_({b} > 0, {x})
{a}[..., {i}].mul_({b}) | {a}.lerp_({b}, 0.5) | {a}.addcmul_({b}, {c}) | {a}.sigmoid_()
{a}.transpose(0, -1)[{i}] = {x} | {a}.square_() | {a}.index_fill_(0, lucid.tensor([{i}]), {x})
{a}.index_add_(0, lucid.tensor([0]), {a}[:1] * 2) | {a}.diagonal().fill_({x}) | with lucid.no_grad(): {a}.mul_({x})
{a}.scatter_(0, lucid.zeros_like({a}, dtype=lucid.int64), {x}) | {a}.swapaxes(0, 1).copy_({b})
{a}[::2] = {a}[::2] * 2 | lucid.sin({a}, out={a}) | {a}.mul_({a}) | {a}.add_({a}.sum())
{a}[1:].add_({a}[:-1].clone())
""")
REDUCTIONS = table("""
{v} = {a}.sum() | {v} = {a}.sum({i}) | {v} = {a}.sum(-1, keepdim=True) | {v} = {a}.mean(-1) | {v} = {a}.mean()
{v} = {a}.amax(-1, keepdim=True) | {v} = {a}.max() | {v} = {a}.max(-1).values | {v} = {a}.argmax(-1)
{v} = {a}.std(-1) | {v} = {a}.var(0, keepdim=True) | {v} = {a}.norm() | {v} = {a}.prod(-1) | {v} = {a}.softmax(-1)
{v} = {a}.log_softmax(0) | {v} = {a}.logsumexp(-1) | {v} = {a}.cumsum(0) | {v} = F.layer_norm({a}, {a}.shape[-1:])
{v} = {a}.any() | {v} = {a}.sort(-1).values | {v} = {a}.amin(0)
{v} = ({a} - {a}.mean(-1, keepdim=True)) / ({a}.var(-1, keepdim=True) + 1e-5).sqrt() | {v} = {a}.all(0)
{v} = {a}.exp().clamp(max=50) / {a}.exp().clamp(max=50).sum(-1, keepdim=True) | {v} = F.mse_loss({a}, {b})
{v} = {a}.median(-1).values | {v} = {a}.topk(1).values
""")
PRODUCTS = table("""
{v} = {a} @ {b} | {v} = {a} @ {a}.mT | {v} = {a}.mT @ {b} | {v} = lucid.einsum("...i,...i->...", {a}, {b})
{v} = F.linear({a}, {b}) | {v} = F.linear({a}, {a}) | {v} = lucid.outer({a}.reshape(-1)[:9], {b}.reshape(-1)[:5])
{v} = lucid.addmm({a}, {a}, {b}) | {v} = lucid.cat([{a}, {b}]) | {v} = lucid.stack([{a}, {a}], -1)
{v} = lucid.bmm({a}[None], {b}[None]) | {v} = F.linear({a}, {a}, {a}[..., 0]).relu() | {v} = {a}.flip(0)
{v} = {a}.roll(1, 0) | {v} = {a}.gather(0, lucid.zeros_like({a}, dtype=lucid.int64))
{v} = {a}.index_select(0, lucid.tensor([0, 0, {i}])) | {v} = {a}.repeat(2, *[1] * ({a}.dim() - 1))
{v} = F.pad({a}, (1, 1)) | {v} = {a}.tril() | {v} = {a}[lucid.tensor([0, {i}])]
{v} = F.embedding(lucid.tensor([0, {i}]), {a}) | {v} = F.scaled_dot_product_attention({a}[None], {a}[None], {a}[None])
{v} = {a}.masked_fill(lucid.ones_like({a}, dtype=lucid.bool).tril(), {x})
{v} = F.conv1d({a}[None, None].flatten(2), lucid.full((1, 1, 2), {x})) | {v} = F.max_pool1d({a}[None].flatten(1), 2)
{v} = lucid.vmap(lambda r: r.sum() + r)({a})
{v} = F.conv1d({a}.flatten(1)[:, None], lucid.full((2, 1, 3), {x}), padding=1) | {v} = F.rms_norm({a}, {a}.shape[-1:])
{v} = F.batch_norm({a}, None, None, training=True) | {v} = F.instance_norm({a}[None]) | {v} = F.group_norm({a}, 1)
{v} = F.conv2d({a}[None, None].flatten(3), lucid.full((1, 1, 2, 2), {x})) | {v} = F.max_pool1d({a}.relu()[None].flatten(1), 2)
""")
RANDOM = table("""
{v} = F.dropout({a}, 0.5) | {v} = {a} + lucid.rand_like({a}) | {v} = lucid.rand({n}, {n})
{v} = lucid.randn({a}.shape) | {v} = {a}.bernoulli(0.5) | {v} = {a}.clone().uniform_() | {a}.normal_()
{v} = lucid.randint(0, {n}, {a}.shape) | {v} = lucid.randperm({n}) | {v} = lucid.empty_like({a}).exponential_()
""")
MADE = table("""
{v} = lucid.zeros_like({a}) | {v} = lucid.ones({n}, {n}) | {v} = lucid.arange({n}, dtype=lucid.float32)
{v} = lucid.full_like({a}, {x}) | {v} = lucid.tensor([{x}, {i}]) | {v} = lucid.eye({n}) | {v} = {a}.new_zeros(3)
{v} = lucid.linspace(0, 1, {n})
""")
KINDS = [CHAIN, VIEWS, IN_PLACE, REDUCTIONS, PRODUCTS, RANDOM, MADE]
STYLES = [
    (8, 4, 4, 3, 3, 1, 1),
    (20, 1, 1, 2, 1, 1, 1),
    (4, 8, 8, 1, 1, 1, 1),
    (8, 2, 2, 8, 2, 1, 1),
    (6, 2, 2, 2, 8, 1, 1),
    (5, 2, 4, 2, 2, 8, 2),
]
CONTEXTS = ("",) * 8 + ("no_grad()", "inference_mode()", 'autocast("cpu", dtype=lucid.bfloat16)')


def values(spec, seed):
    """A tensor as a spec says, with values of a seed."""
    g = lucid.Generator().manual_seed(seed)
    shape = tuple(spec["shape"])
    flipped = tuple(reversed(shape)) if spec["layout"] == "transposed" else shape
    if spec["layout"] == "strided":
        flipped = (*shape[:-1], 2 * shape[-1])
    dtype = getattr(lucid, spec["dtype"])
    if dtype.is_floating_point or dtype.is_complex:
        t = lucid.randn(flipped, generator=g, dtype=dtype if dtype.is_complex else lucid.float32).to(dtype)
    else:
        t = lucid.randint(0, 2 if spec["dtype"] == "bool" else 5, flipped, generator=g).to(dtype)
    t = t.to(spec.get("device", "cpu"))
    if spec["layout"] == "transposed":
        t = t.permute(*reversed(range(len(shape))))
    if spec["layout"] == "strided":
        t = t[..., ::2]
    if spec["grad"]:
        t.requires_grad_()
    return t


class Program:
    """sizes: the first dimension of the inputs changes from call to call, and plans are made for all sizes (dynamic=True).
    cuda: on a CUDA device, as captured graphs (mode="reduce-overhead")."""

    def __init__(self, seed, statements=None, sizes=False, cuda=False):
        self.seed, self.draw, self.changing, self.cuda = seed, random.Random(seed), sizes, cuda
        self._draw_inputs()
        self.lines = []
        if statements is None:
            self._draw_lines()
        else:
            self.lines, self.returned = statements

    # --- drawing ---
    def _spec(self):
        draw, sizes = self.draw, self.sizes
        dims = draw.choice((0, 1, 1, 2, 2, 2, 3))
        shape = [draw.choice(sizes) for _ in range(dims)] if draw.random() < 0.3 else self.shape[3 - dims :]
        shape = [1 if draw.random() < 0.1 else s for s in shape]
        dtype = draw.choice(FLOATS) if draw.random() < 0.85 else draw.choice(OTHERS)
        if draw.random() < 0.6:
            dtype = self.usual
        layout = draw.choice(("plain",) * 5 + ("transposed", "strided") if dims else ("plain",))
        return dict(shape=shape, dtype=dtype, layout=layout, grad="float" in dtype and draw.random() < 0.4)

    def _draw_inputs(self):
        draw = self.draw
        self.sizes = draw.choice((SMALL, SMALL, LARGE))
        self.usual = draw.choice(("float32",) * 5 + ("bfloat16", "float16"))
        self.shape = [draw.choice(self.sizes) for _ in range(3)]
        if draw.random() < 0.4:
            self.shape[1] = self.shape[2]
        self.specs = [self._spec() for _ in range(draw.randint(1, 4))]
        self.outside = [self._spec() for _ in range(draw.randint(0, 2))]
        if self.cuda:
            for spec in (*self.specs, *self.outside):
                spec["device"] = "cuda"
        # aliases: another argument that is the same tensor as argument 0, or a part of it
        self.alias = draw.choice((None,) * 8 + ("x0", "x0[1:]", "x0.view(-1)"))
        self.computed = draw.random() < 0.2  # inputs that want a gradient are no leaves
        self.context, self.style = draw.choice(CONTEXTS), draw.choice(STYLES)

    def names(self):
        return [f"x{i}" for i in range(len(self.specs))] + (["alias"] if self.alias else [])

    def inputs(self, call):
        made = [values(self._resized(s, call), 1000 * call + i) for i, s in enumerate(self.specs)]
        leaves = [t for t in made if t.requires_grad]
        if self.computed:
            made = [t * 1 if t.requires_grad else t for t in made]
        if self.alias:
            made.append(eval(self.alias, {"x0": made[0]}))
        return made, leaves

    def _resized(self, spec, call):
        most = max(len(s["shape"]) for s in self.specs)
        if not self.changing or not most or len(spec["shape"]) < most or spec["shape"][0] == 1:
            return spec
        return {**spec, "shape": [spec["shape"][0] + (0, 2, 5, 1, 9)[call], *spec["shape"][1:]]}

    def namespace(self):
        return {"lucid": lucid, "F": F, **{f"W{i}": values(s, 77 + i) for i, s in enumerate(self.outside)}}

    def _statement(self, known, count):
        draw = self.draw
        kind = draw.choices(KINDS, self.style)[0]
        recent = known[-4:] if draw.random() < 0.6 else known
        return draw.choice(kind).format(
            v=f"v{count}",
            w=f"w{count}",
            a=draw.choice(recent),
            b=draw.choice(known),
            c=draw.choice(known),
            i=draw.choice((0, 0, 1, 2)),
            n=draw.choice((2, 3, 4)),
            x=draw.choice(("0.5", "2.0", "-1.5", "3")),
        )

    def _draw_lines(self):
        draw, wanted = self.draw, self.draw.randint(3, 20)
        space = self.namespace()
        try:
            made, _ = self.inputs(0)
        except Exception:  # noqa: BLE001  an alias that this shape does not have
            self.alias = None
            made, _ = self.inputs(0)
        known = [f"W{i}" for i in range(len(self.outside))] + self.names()
        space.update(zip(self.names(), made))
        with eval(f"lucid.{self.context}") if self.context else lucid.enable_grad():
            for attempt in range(4 * wanted):
                if len(self.lines) == wanted:
                    break
                line = self._statement(known, attempt)
                try:
                    exec(line, space)
                    self.wait()
                except Exception:  # noqa: BLE001  eager refuses it: other tests compare how
                    space.pop(f"v{attempt}", None)
                    continue
                new = [n for n in (f"v{attempt}", f"w{attempt}") if n in space]
                if any(space[n].numel() > 200_000 or not isinstance(space[n], lucid.Tensor) for n in new):
                    continue
                known += new
                self.lines.append(line)
        names = draw.sample(known, min(len(known), draw.randint(1, 3))) + known[-1:]
        self.returned = draw.choice(
            ("{0}", "({1})", "[{1}]", "({0}, {1})", "{{'a': {0}, 'b': [{1}], 'c': None, 'n': 3}}")
        ).format(known[-1], ", ".join(names) + ",")

    def source(self):
        """The function as Python source."""
        body = "".join(f"    {line}\n" for text in self.lines for line in text.split("\n"))
        globals_ = sorted({n for n in (f"W{i}" for i in range(len(self.outside))) if any(f"{n} " in s for s in self.lines)})
        first = f"    global {', '.join(globals_)}\n" if globals_ and any("+=" in s or "*=" in s for s in self.lines) else ""
        return f"def program({', '.join(self.names())}):\n{first}{body}    return {self.returned}\n"

    def report(self, what):
        """A program that shows the failure by itself."""
        lines = [f"# seed {self.seed}: {what}", *(f"# input {n}: {s}" for n, s in zip(self.names(), self.specs))]
        lines += [f"# W{i}: {s}" for i, s in enumerate(self.outside)]
        lines += [
            f"# alias = {self.alias}, inputs are computed: {self.computed}, in {self.context or 'no context'}",
            self.source(),
        ]
        tail = "from tests.jit.programs import Program\n\n"
        tail += f"print(Program({self.seed}, ({self.lines!r}, {self.returned!r}), {self.changing}, {self.cuda}).failure())\n"
        return "\n".join(lines) + "\n" + tail

    # --- running ---
    def _function(self, compiled):
        space = self.namespace()
        exec(compile(self.source(), f"<program {self.seed}>", "exec"), space)
        fn = space["program"]
        outside = [space[f"W{i}"] for i in range(len(self.outside))]
        mode = "reduce-overhead" if self.cuda else None
        return (lucid.compile(fn, dynamic=self.changing, mode=mode) if compiled else fn), outside

    def _call(self, fn, outside, call):
        inputs, leaves = self.inputs(call)
        before = [t._version for t in (*inputs, *outside)]
        lucid.manual_seed(call)
        for w in outside:
            w.grad = None
        try:
            with eval(f"lucid.{self.context}") if self.context else lucid.enable_grad():
                result = fn(*inputs)
                self.wait()
        except Exception as error:  # noqa: BLE001
            return {"error": type(error).__name__, "text": str(error)}
        outputs = list(tensors_of(result))
        got = dict(
            outputs=outputs,
            shape=shape_of(result),
            inputs=inputs,
            outside=outside,
            written=[t._version != v for t, v in zip((*inputs, *outside), before)],
            generator=[lucid.cuda.get_rng_state() if self.cuda else lucid.get_rng_state()],
            wants=[t.requires_grad for t in (*outputs, *inputs)],
            sharing=sharing([*inputs, *outside, *outputs]),
            copies=[t.detach().clone() for t in (*outputs, *inputs, *outside)],
        )
        # A gradient that reaches a tensor through the function and around it is a sum whose order the function does not know.
        got["around"] = any(o.requires_grad and any(o is t for t in (*inputs, *outside)) for o in outputs)
        return self._gradients(got, outputs, leaves + [w for w in outside if w.requires_grad], call)

    def _gradients(self, got, outputs, targets, call):
        wanting = [o for o in outputs if o.requires_grad]
        if not wanting or not targets:
            return got
        g = lucid.Generator().manual_seed(call)
        seeds = [
            lucid.randn(o.shape, generator=g, dtype=o.dtype if o.dtype.is_complex else lucid.float32).to(o.device, o.dtype)
            for o in wanting
        ]
        try:
            if call == 1:
                for o, s in zip(wanting, seeds):
                    o.backward(s, retain_graph=True)
                got["gradients"] = [t.grad for t in targets]
            else:
                got["gradients"] = list(lucid.autograd.grad(wanting, targets, seeds, allow_unused=True))
            self.wait()
        except Exception as error:  # noqa: BLE001
            got["gradient_error"] = type(error).__name__
            got["gradient_text"] = str(error)
        return got

    def wait(self):
        """A kernel that saw a bad index raises here."""
        if self.cuda:
            lucid.cuda.synchronize()

    def failure(self, count=None):
        """What differs between eager and compiled, in words; None: nothing. count: a dict that counts what was tried."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (eager, outside), (compiled, compiled_outside) = self._function(False), self._function(True)
            sides = []
            for call in range(CALLS + 2 * (self.changing or self.cuda)):
                expected, found = self._call(eager, outside, call), self._call(compiled, compiled_outside, call)
                words = compare(found, expected)
                if words:
                    return f"call {call}: {words}"
                if "error" in expected:
                    break
                sides.append((found, expected))
            for call, (found, expected) in enumerate(sides):
                for i, (a, b) in enumerate(zip(found["outputs"], expected["outputs"])):
                    if words := difference(a, b):
                        return f"output {i} of call {call} changed later: {words}"
            if count is not None:
                count["replays"] = count.get("replays", 0) + replays_of(compiled)
                count["programs"] += 1
                count["gradients"] += any("gradients" in f for f, _ in sides)
                count["answered"] += compiled.cache_info().hits + compiled._instances
                count["sizes"] = count.get("sizes", 0) + compiled._instances
                count["eager"] += compiled._why is not None
                if compiled._why:
                    why = compiled._why.split(" (")[0]
                    count["why"][why] = count["why"].get(why, 0) + 1
        return None

    def smaller(self):
        """A program that fails, too, with as few statements as are needed."""
        best, shrunk = self, True
        while shrunk:
            shrunk = False
            for k in reversed(range(len(best.lines))):
                other = Program(self.seed, (best.lines[:k] + best.lines[k + 1 :], best.returned), self.changing, self.cuda)
                other.alias = self.alias
                if other.runs() and other.failure():
                    best, shrunk = other, True
        return best

    def runs(self):
        fn, outside = self._function(False)
        return "error" not in self._call(fn, outside, 0)


def replays_of(compiled):
    """How often captured graphs ran, forward and backward."""
    said = re.findall(r"(\d+) replays", compiled.explain())
    return sum(map(int, said))


def tensors_of(value):
    if isinstance(value, lucid.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from tensors_of(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_of(item)


def shape_of(value):
    """The nesting of a result, without its tensors."""
    if isinstance(value, dict):
        return {k: shape_of(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(shape_of, value))
    return "tensor" if isinstance(value, lucid.Tensor) else value


def sharing(tensors):
    """Who shares memory with whom, and at what distance; who is whom."""
    found = []
    for t in tensors:
        for k, other in enumerate(tensors):
            if t.numel() and other.numel() and t.untyped_storage().data_ptr() == other.untyped_storage().data_ptr():
                found.append((k, t.data_ptr() - other.data_ptr(), t is other, t.stride()))
                break
        else:
            found.append((None, 0, False, t.stride()))
    return found


def close(a, b):
    tolerance = 0.05  # sums that cancel
    return a is not None and b is not None and lucid.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


def compare(found, expected):
    for key in ("error", "shape", "written", "wants", "sharing", "gradient_error"):
        if found.get(key) != expected.get(key):
            more = found.get("text") or found.get("gradient_text") or ""
            return f"{key}: {found.get(key)}, eager {expected.get(key)} {more}"
    for key in ("copies", "generator", "gradients"):
        for i, (a, b) in enumerate(zip(found.get(key, ()), expected.get(key, ()))):
            words = difference(a, b)
            if words and key == "gradients" and found["around"] and close(a, b):
                continue
            if words:
                return f"{key[:-1] if key.endswith('s') else key} {i}: {words}"
    return None
