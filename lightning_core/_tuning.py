"""Which way a shape is computed: measured once, kept in a file.

Calls for device "metal" ask here once per shape (bindings/lightning/choose.c). The ways on the CPU are

    ALL     the engine's blocked kernel with all threads
    SERIAL  the same on the calling thread: medium sizes, where waking others costs more than it brings
    DIRECT  a plain loop, or attention's kernel for few rows: small sizes

On a machine with a CUDA device `crossover` says of every shape whether the device or the CPU computes it; that is measured,
too, and kept in a file of its own. The ways above remain those of the CPU.

A product's row is `m,k,n,best_tile,use_mps,use_vec2`. The columns are those of the original's files; here use_mps 1 means ALL,
and with 0 best_tile says 16 for SERIAL and 8 for DIRECT. Files are merged and replaced under a lock on their folder, so
processes that tune at once keep each other's rows and a reader never sees half a file. What cannot be read or written is
ignored: the choice is then made again.
"""

import contextlib
import os
import time

from lucid import _C

from ._kept import Lock
from ._policies import SEND

_c = _C._lightning()
ALL, SERIAL, DIRECT = range(3)
VERSION = 2
_SPLIT, _TINY, _SLOW = 1 << 18, 1 << 15, 5e-3  # work that the engine splits, that a loop may win; seconds: measured once
_lock = Lock()


# ---- environment ----
_profile_read = False


def profile_values(text):
    """The CJ_ variables of a profile file.

    >>> profile_values("# comment\\nCJ_MATMUL_MPS_HYST_PCT=5.0\\nPATH=/nowhere\\nexport CJ_X='1'\\nnonsense")
    {'CJ_MATMUL_MPS_HYST_PCT': '5.0', 'CJ_X': '1'}
    """
    values = {}
    for line in text.splitlines():
        key, found, value = line.strip().removeprefix("export ").partition("=")
        if found and key.strip().startswith("CJ_"):
            values[key.strip()] = value.strip().strip("'\"")
    return values


def read_profile():
    """Once per process: variables of the profile file that the environment lacks."""
    global _profile_read
    if _profile_read:
        return
    _profile_read = True
    if os.environ.get("CJ_RUNTIME_PROFILE_AUTOLOAD", "1").strip().lower() in ("0", "false", "off", "no"):
        return
    path = os.environ.get("CJ_RUNTIME_PROFILE_ENV_FILE") or "model_runtime_profile.env"
    for key, value in profile_values(_text_of(path)).items():
        os.environ.setdefault(key, value)


def flag(name, preset):
    """A switch of the environment: "0", "false" and "off" are off."""
    value = os.environ.get(name, "").strip().lower()
    return value not in ("0", "false", "off") if value else preset


def number(name, preset):
    """A number of the environment; the preset if it is none, or negative."""
    try:
        value = float(os.environ[name])
    except (KeyError, ValueError):
        return preset
    return value if value >= 0 else preset


# ---- files ----
def _text_of(path):
    try:
        with open(path, "rb") as file:
            return file.read(1 << 26).decode("utf-8", "replace")
    except OSError:
        return ""


class TuneFile:
    """Rows of one kind, by shape, and the file they are kept in."""

    def __init__(self, kind, columns, path, parse, line):
        self.kind, self.columns, self.find_path, self.parse, self.line = kind, columns, path, parse, line
        self.forget()

    def forget(self):
        self.path, self.rows, self.lines, self.stamp = None, {}, {}, None

    def load(self):
        if self.path is None:
            self.path = self.find_path()
            self.rows = self.read()

    def read(self):
        """{shape: values} of the file; {} if it is of an unknown version, or not there."""
        rows = {}
        for line in _text_of(self.path).splitlines():
            if line.startswith("#lc_tune_cache"):
                words = line.split(",")
                if len(words) != 3 or words[1] != self.kind or words[2].strip() not in ("1", "2"):
                    return {}
            elif not line.startswith("#"):
                with contextlib.suppress(ValueError, IndexError):
                    shape, values = self.parse(line.strip().split(","))
                    rows[shape] = values
        return rows

    def keep(self, shape, values):
        """Enters one row, in memory and in the file."""
        self.rows[shape] = values
        with contextlib.suppress(OSError), _locked(os.path.dirname(os.path.abspath(self.path))):
            if self.stamp is None or self.stamp != _stamp(self.path):  # not the file that this process left
                self.lines = {s: self.line(s, v) for s, v in self.read().items()}
            self.lines[shape] = self.line(shape, values)
            head = f"#lc_tune_cache,{self.kind},{VERSION}", f"#columns,{self.columns}"
            fresh = f"{self.path}.tmp"  # one that a killed process left is written over
            try:
                with open(fresh, "w") as file:
                    file.write("\n".join((*head, *self.lines.values(), "")))
                os.replace(fresh, self.path)
                self.stamp = _stamp(self.path)
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(fresh)


def _stamp(path):
    """What changes when another process writes the file; None if it is not there."""
    with contextlib.suppress(OSError):
        found = os.stat(path)
        return found.st_ino, found.st_mtime_ns, found.st_size
    return None


@contextlib.contextmanager
def _locked(folder):
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)  # a process that was forked meanwhile has the handle, too
    finally:
        os.close(handle)


def _positive(words):
    numbers = [int(w) for w in words]
    if min(numbers) < 1:
        raise ValueError("sizes are positive")
    return tuple(numbers)


def _parse_matmul(words):
    if len(words) not in (5, 6):
        raise ValueError("5 or 6 columns")
    tile, mps = int(words[3]), int(words[4])
    if len(words) == 6:
        int(words[5])
    return _positive(words[:3]), ALL if mps else DIRECT if tile == 8 else SERIAL


def _matmul_line(shape, way):
    tile = {ALL: 32, SERIAL: 16, DIRECT: 8}[way]
    return ",".join(map(str, (*shape, tile, int(way == ALL), 0)))


def _parse_small(words):
    if len(words) != 4:
        raise ValueError("4 columns")
    return _positive(words[:3]), bool(int(words[3]))


def _small_line(shape, small):
    return ",".join(map(str, (*shape, int(small))))


def _parse_attention(words):
    numbers = [int(w) for w in words[1:]]
    if words[0] == "T" and len(words) == 8:
        return ("T", *numbers[:-1]), numbers[-1]  # of training: kept for programs that read it
    if words[0] != "F" or len(words) != 7:
        raise ValueError("F and 7 columns, or T and 8")
    if numbers[5] not in (ALL, SERIAL, DIRECT):
        raise ValueError("mode")
    return ("F", *_positive(words[1:3]), numbers[2]), numbers[5]


def _attention_line(shape, way):
    return ",".join(map(str, (*shape, 1, 1, way) if shape[0] == "F" else (*shape, way)))


def _small_path():
    profile = os.environ.get("CJ_MATMUL_SMALL_TUNE_PROFILE", "")
    preset = f".lightning_core_matmul_mle2_tune_cache{'_' + profile if profile else ''}.csv"
    return os.environ.get("CJ_MATMUL_SMALL_TUNE_CACHE_FILE") or preset


products = TuneFile(
    "matmul",
    "m,k,n,best_tile,use_mps,use_vec2",
    lambda: os.environ.get("CJ_MATMUL_TUNE_CACHE_FILE") or ".lightning_core_matmul_tune_cache.csv",
    _parse_matmul,
    _matmul_line,
)
small_products = TuneFile("matmul_small", "m,k,n,use_small", _small_path, _parse_small, _small_line)
attentions = TuneFile(
    "attention",
    "kind,seq,dim,causal,resident,sync,mode",
    lambda: os.environ.get("CJ_ATTN_TUNE_CACHE_FILE") or ".lightning_core_attn_tune_cache.csv",
    _parse_attention,
    _attention_line,
)


def _parse_crossover(words):
    op, *numbers, verdict = words
    if len(numbers) != _SIZES.get(op) or int(verdict) not in (NEVER, IF_RESIDENT, ALWAYS):
        raise ValueError("sizes and a verdict")
    return (op, *(int(n) for n in numbers)), int(verdict)


def _crossover_line(shape, verdict):
    return ",".join(map(str, (*shape, verdict)))


NEVER, IF_RESIDENT, ALWAYS = range(3)  # lightning_verdict
_SIZES = {"matmul": 3, "vector_add": 1, "matrix_sub": 1, "matrix_div": 1, "attention_forward": 3}
_SIZES |= {"conv2d_nchw": 11, "conv_attention": 13}
crossovers = TuneFile(
    "crossover",
    "op,sizes,where: 0 CPU; 1 accelerator if the operands are there; 2 accelerator",
    lambda: os.environ.get("CJ_CROSSOVER_TUNE_CACHE_FILE") or ".lightning_core_crossover_tune_cache.csv",
    _parse_crossover,
    _crossover_line,
)


# ---- measuring ----
def _times(run, ways):
    """{way: seconds per call}.

    The ways take turns, five samples each after a first call, and the best sample counts: a disturbance hits all of them. A way
    whose first call is slow is called once more.
    """
    first = {}
    for way in ways:
        start = time.perf_counter()
        run(way, 1)
        first[way] = time.perf_counter() - start
    count = max(1, min(64, int(4e-5 / max(min(first.values()), 1e-7))))
    times = dict.fromkeys(ways, float("inf"))
    for _ in range(1 if min(first.values()) > _SLOW else 5):
        for way in ways:
            start = time.perf_counter()
            run(way, count)
            times[way] = min(times[way], (time.perf_counter() - start) / count)
    return times


def _fastest(run, ways, preferred, allowance):
    """The fastest way; the preferred one if it is slower by no more than the allowance, in percent."""
    if len(ways) == 1:
        return ways[0]
    times = _times(run, ways)
    best = min(times, key=times.get)
    return preferred if preferred in times and times[preferred] <= times[best] * (1 + allowance / 100) else best


def _other_ways(work):
    """What may beat ALL at this size."""
    ways = [DIRECT] if work <= _TINY else []
    return ways + [SERIAL] if work > _SPLIT and _C.get_num_threads() > 1 else ways


def _run_product(m, k, n):
    import numpy as np

    a, b, out = np.ones((m, k), np.float32), np.ones((k, n), np.float32), np.empty((m, n), np.float32)
    return lambda way, count: _c._run_product(a, b, out, m, k, n, way, count)


def _promoted(m, k, n):
    """Shapes whose way is known without measuring: large and about square, or with a long result."""
    square = max(m, k, n) - min(m, k, n) <= 512 and max(m, k, n) >= 1024
    return square or (m >= 3072 and n >= 3072 and k <= 1536)


def _choose_product(m, k, n):
    work = m * k * n
    if m <= 2:
        return _choose_small(m, k, n)
    if not flag("CJ_MATMUL_DISABLE_PROMOTED_BUCKETS", False) and _promoted(m, k, n):
        return ALL
    others = _other_ways(work)
    ways = [ALL, *others]
    if work >= number("CJ_MATMUL_LARGE_OPS_THRESHOLD", 4e9):
        first = [ALL] if flag("CJ_MATMUL_PREFER_MPS_ON_LARGE", True) else []
        ways = first + (others if flag("CJ_MATMUL_TRY_KERNEL_ON_LARGE", True) else []) or [ALL]
    return _fastest(_run_product(m, k, n), ways, ALL, number("CJ_MATMUL_MPS_HYST_PCT", 0))


def _choose_small(m, k, n):
    """Of one or two rows: the small kernel (a plain loop, or one thread) or the product with all threads."""
    small_products.load()
    kernel = DIRECT if m * k * n <= _TINY else SERIAL
    asked = os.environ.get("CJ_MATMUL_MLE2_KERNEL", "").strip().lower()
    if asked in ("1", "kernel"):
        return kernel
    if asked in ("2", "mps"):
        return ALL
    shape = (m, k, n)
    if shape not in small_products.rows:
        allowance = number("CJ_MATMUL_MLE2_HYST_PCT", 5)
        way = _fastest(_run_product(*shape), [ALL, kernel], ALL, allowance)
        small_products.keep(shape, way != ALL)
    return kernel if small_products.rows[shape] else ALL


def matmul_way(m, k, n):
    """The way of a product (m, k) x (k, n) for device "metal"."""
    with _lock:
        read_profile()
        products.load()
        shape = (m, k, n)
        if shape not in products.rows:
            products.keep(shape, _choose_product(m, k, n))
        return products.rows[shape]


def attention_way(seq, dim, causal):
    """The way of attention over (seq, dim) for device "metal"."""
    import numpy as np

    with _lock:
        read_profile()
        attentions.load()
        shape = ("F", seq, dim, int(bool(causal)))
        if shape not in attentions.rows:
            x, out = np.ones((seq, dim), np.float32), np.empty((seq, dim), np.float32)
            run = lambda way, count: _c._run_attention(x, x, x, out, seq, dim, bool(causal), way, count)
            ways = [ALL, *_other_ways(seq * seq * dim)]
            if max(seq, dim) > 64 and DIRECT in ways:
                ways.remove(DIRECT)
            attentions.keep(shape, _fastest(run, ways, ALL, 0))
        return attentions.rows[shape]


# ---- the CPU or the accelerator ----
def _one_shot_and_session(op, sizes):
    """A function of a device, and a session with its start_into and the arguments for it; no session for a pipeline."""
    import numpy as np

    ones = lambda *shape: np.ones(shape, np.float32)
    if op == "matmul":
        m, k, n = sizes
        args = ones(m, k), ones(k, n), ones(m, n)
        return lambda d: _c.matmul2d_into(*args, d), _c.MatMulMetalResidentSession(m, k, n), "start_into", args
    if op == "attention_forward":
        seq, dim, causal = sizes
        args = (ones(seq, dim),) * 3 + (ones(seq, dim),)
        return lambda d: _c.attention2d_into(*args, bool(causal), d), _c._AttentionSession(seq, dim, bool(causal)), "_run", args
    if op.startswith("conv"):
        b, c, h, w, o, kh, kw, *window = sizes[:11]
        x, weight = ones(b, c, h, w), ones(o, c, kh, kw)
        if op == "conv_attention":
            run, (seq, dim) = _c.lightning_conv_attention_torchstrong_nchw, sizes[11:]
            return lambda d: run(x, weight, None, seq, dim, *window, d), None, "", ()
        session = _c.Conv2dMetalResidentSession(b, c, h, w, o, kh, kw, *window, False)
        out = _c.conv2d_nchw(x, weight, None, *window, "cpu")
        return lambda d: _c.conv2d_nchw_into(x, weight, None, out, *window, d), session, "start_into", (x, weight, None, out)
    (n,) = sizes
    x, out = ones(n), ones(n)
    if op == "vector_add":
        return lambda d: _c.vector_add(x, x, d), _c.VectorAddMetalResidentSession(n), "start_into", (x, x, out)
    return lambda d: _c.matrix_sub(x, x, 1, n, d), _c.MatrixElemwiseMetalResidentSession(1, n), "sub_start_into", (x, x, out)


def _measure_crossover(op, sizes):
    """Where a shape is computed fastest. "metal" is the CPU while this runs (bindings/lightning/device.c)."""
    one_shot, session, start, args = _one_shot_and_session(op, sizes)
    devices = {"cpu": "metal", "device": "cuda"}
    if session is not None:
        session._use("cuda")
        getattr(session, start)(*args, *([SEND] if start == "_run" else []))

    def run(way, count):
        if way == "resident":
            return session._run_cached(count)
        for _ in range(count):
            one_shot(devices[way])

    times = _times(run, ["cpu", "device", *(["resident"] if session is not None else [])])
    if times["device"] <= times["cpu"]:
        return ALWAYS
    return IF_RESIDENT if times.get("resident", times["device"]) <= times["cpu"] else NEVER


_LIMITS = {  # op: (variable, its work, whether every call reads it)
    "vector_add": ("CJ_VECTORADD_CPU_CROSSOVER_N", lambda n: n, "CJ_VECTORADD_CPU_CROSSOVER_DYNAMIC"),
    "conv2d_nchw": (
        "CJ_CONV2D_CPU_CROSSOVER_MACS",
        lambda b, c, h, w, o, kh, kw, sh, sw, ph, pw: (
            b * o * ((h + 2 * ph - kh) // sh + 1) * ((w + 2 * pw - kw) // sw + 1) * c * kh * kw
        ),
        "CJ_CONV2D_CPU_CROSSOVER_DYNAMIC",
    ),
    "attention_forward": ("CJ_ATTN_METAL_ONESHOT_CPU_CROSSOVER_OPS", lambda seq, dim, causal: seq * seq * dim, None),
}


def _by_environment(op, sizes):
    """(verdict, whether it stays) of the variables that set the limit by hand; None if they are not set."""
    variable, work, dynamic = _LIMITS.get(op, ("", None, ""))
    limit = number(variable, None)
    if limit is None or (not limit and dynamic):  # 0 has a meaning for attention alone
        return None
    stays = dynamic is not None and not os.environ.get(dynamic, "").startswith("1")
    return (IF_RESIDENT if work(*sizes) <= limit else ALWAYS), stays


def crossover(op, sizes):
    """Where a shape of "metal" is computed on a machine with a CUDA device, and whether that is kept: called once per shape."""
    with _lock:
        read_profile()
        given = _by_environment(op, sizes)
        if given is not None:
            return given
        if op == "matmul":
            matmul_way(*sizes)  # its row is written, whatever computes it
        crossovers.load()
        if len(sizes) == 1:  # vectors have any length: they are measured per power of two
            sizes = (1 << (sizes[0] - 1).bit_length(),)
        shape = (op, *sizes)
        if shape not in crossovers.rows:
            try:
                verdict = _measure_crossover(op, sizes)
            except (RuntimeError, MemoryError):  # the device cannot compute it
                return NEVER, True
            crossovers.keep(shape, verdict)
        return crossovers.rows[shape], True


def matmul_reset_tuning():
    """Forget the tuned choices, the paths of their files, and what products under a policy and convolutions in phases left on
    an accelerator; the environment is read again at the next use.

    >>> matmul_reset_tuning()
    """
    with _lock:
        for kept in (products, small_products, attentions, crossovers):
            kept.forget()
        _c._forget_choices()
        _c._forget_verdicts()
    from . import _policies, _sessions

    _policies.products.clear(), _sessions.convolutions.clear()
