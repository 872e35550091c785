"""Which way a shape is computed: measured once, kept in a file.

Calls for device "metal" ask here once per shape (bindings/lightning/choose.c). The ways on the CPU are

    ALL     the engine's blocked kernel with all threads
    SERIAL  the same on the calling thread: medium sizes, where waking others costs more than it brings
    DIRECT  a plain loop, or attention's kernel for few rows: small sizes

A product's row is `m,k,n,best_tile,use_mps,use_vec2`. The columns are those of the original's files; here use_mps 1 means ALL,
and with 0 best_tile says 16 for SERIAL and 8 for DIRECT. Files are merged and replaced under a lock on their folder, so
processes that tune at once keep each other's rows and a reader never sees half a file. What cannot be read or written is
ignored: the choice is then made again.
"""

import contextlib
import os
import threading
import time

from lucid import _C

_c = _C._lightning()
ALL, SERIAL, DIRECT = range(3)
VERSION = 2
_SPLIT, _TINY, _SLOW = 1 << 18, 1 << 15, 5e-3  # work that the engine splits, that a loop may win; seconds: measured once
_lock = threading.RLock()


def _new_lock():
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_new_lock)


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

    def __init__(self, kind, columns, path, parse):
        self.kind, self.columns, self.find_path, self.parse = kind, columns, path, parse
        self.forget()

    def forget(self):
        self.path, self.rows = None, {}

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

    def keep(self, shape, values, line):
        """Enters one row, in memory and in the file."""
        self.rows[shape] = values
        with contextlib.suppress(OSError), _locked(os.path.dirname(os.path.abspath(self.path))):
            rows = self.read() | {shape: values}
            lines = [
                f"#lc_tune_cache,{self.kind},{VERSION}",
                f"#columns,{self.columns}",
                *(line(s, v) for s, v in rows.items()),
            ]
            fresh = f"{self.path}.{os.getpid()}.tmp"
            try:
                with open(fresh, "w") as file:
                    file.write("\n".join(lines) + "\n")
                os.replace(fresh, self.path)
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(fresh)


@contextlib.contextmanager
def _locked(folder):
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
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
    if words[0] != "F":
        if words[0] == "T" and len(words) == 8:
            return tuple(words[:-1]), words[-1]  # of training: kept for programs that read it
        raise ValueError("F or T")
    if len(words) != 7:
        raise ValueError("7 columns")
    numbers = [int(w) for w in words[1:]]
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
)
small_products = TuneFile("matmul_small", "m,k,n,use_small", _small_path, _parse_small)
attentions = TuneFile(
    "attention",
    "kind,seq,dim,causal,resident,sync,mode",
    lambda: os.environ.get("CJ_ATTN_TUNE_CACHE_FILE") or ".lightning_core_attn_tune_cache.csv",
    _parse_attention,
)


# ---- measuring ----
def _fastest(run, ways, preferred, allowance):
    """The fastest way; the preferred one if it is slower by no more than the allowance, in percent.

    The ways take turns, five samples each after a first call, and the best sample counts: a disturbance hits all of them. A way
    whose first call is slow is called once more.
    """
    if len(ways) == 1:
        return ways[0]
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
        small_products.keep(shape, way != ALL, _small_line)
    return kernel if small_products.rows[shape] else ALL


def matmul_way(m, k, n):
    """The way of a product (m, k) x (k, n) for device "metal"."""
    with _lock:
        read_profile()
        products.load()
        shape = (m, k, n)
        if shape not in products.rows:
            products.keep(shape, _choose_product(m, k, n), _matmul_line)
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
            attentions.keep(shape, _fastest(run, ways, ALL, 0), _attention_line)
        return attentions.rows[shape]


def matmul_reset_tuning():
    """Forget the tuned choices and the paths of their files; the environment is read again at the next use.

    >>> matmul_reset_tuning()
    """
    with _lock:
        for kept in (products, small_products, attentions):
            kept.forget()
        _c._forget_choices()
