"""Reading pickles without running them.

A pickle is a program for a small stack machine, and Python's own machine calls whatever the program names. This one knows
the opcodes that data needs, and calls only functions of a table it is given: rebuilding a tensor, an ordered dict, a set.
Everything else, every unknown name and opcode, is an error before anything happened. Work and memory are bounded by the
length of the pickle: lengths are checked against what is there, and no opcode can ask for more than it brings.
"""

import struct
from collections import OrderedDict

from .errors import CorruptFileError, MissingDeviceError, UnpicklingError

_SIMPLE_KEYS = (str, int, float, bool, bytes, complex, type(None))
_KEY_DEPTH = 8  # depth of nested tuples as keys: hashing recurses


class _Mark:
    pass


MARK = _Mark()


def described(value):
    """A value for an error message. Never by its repr: lists in lists that share parts have one of any length.

    >>> described(len), described([1]), described("x" * 200)
    ('len', 'a list', "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...")
    """
    if isinstance(value, str):
        return repr(value) if len(value) <= 40 else repr(value[:40])[:-2] + "..."
    name = getattr(value, "__qualname__", None)
    return name if isinstance(name, str) else f"a {type(value).__name__}"


class Machine:
    """One pickle after the other from a buffer.

    callables: what a pickle may call, by "module name"; values: what else it may name (dtypes, storage types).
    allowed: what the user allows it to name and to call, by "module.name"; persistent: what stands for a persistent id.

    >>> import pickle
    >>> Machine(pickle.dumps([1, {"a": 2.5}]), {}, {}, {}, None).load()
    [1, {'a': 2.5}]
    """

    def __init__(self, data, callables, values, allowed, persistent, position=0):
        self.data, self.at, self.end = data, position, len(data)
        self.callables, self.values, self.allowed, self.persistent = callables, values, allowed, persistent
        self.callable_ids = {id(f) for f in callables.values()} | {id(f) for f in allowed.values()}
        self.classes = tuple(f for f in allowed.values() if isinstance(f, type))
        self.parts = 16 * len(data)  # budget of key elements: tuples with shared parts can have any number

    def load(self):
        """The next object; `at` is behind it afterwards."""
        self.stack, self.memo = [], {}
        start = self.at
        try:
            while True:
                code = self.data[self.at]
                self.at += 1
                if code == 0x2E:  # STOP
                    return self.pop()
                step = _STEPS.get(code)
                if step is None:
                    raise UnpicklingError(f"unsupported opcode {code:#04x}: not a pickle of plain data (weights_only=True)")
                step(self)
        except (UnpicklingError, CorruptFileError, MissingDeviceError):
            raise
        except (
            IndexError,
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
            OverflowError,
            struct.error,
            RuntimeError,
        ) as error:
            kind, text = type(error).__name__, "" if isinstance(error, KeyError) else f" {error}"
            raise UnpicklingError(f"a damaged pickle: {kind}{text} at byte {self.at - start}") from error

    def pop(self):
        value = self.stack.pop()
        if value is MARK:
            raise UnpicklingError("a damaged pickle: a mark where a value should be")
        return value

    def take(self, count):
        begin, self.at = self.at, self.at + count
        if self.at > self.end:
            raise UnpicklingError(f"the pickle ends in the middle: {self.at - self.end} bytes are missing")
        return self.data[begin : self.at]

    def number(self, form, size):
        return struct.unpack(form, self.take(size))[0]

    def line(self):
        end = self.data.find(b"\n", self.at)
        if end < 0:
            raise UnpicklingError("the pickle ends in the middle of a name")
        text = self.data[self.at : end].decode("utf-8")
        self.at = end + 1
        return text

    def since_mark(self):
        stack = self.stack
        for i in range(len(stack) - 1, -1, -1):
            if stack[i] is MARK:
                items = stack[i + 1 :]
                del stack[i:]
                return items
        raise UnpicklingError("a damaged pickle: no mark")

    def named(self, module, name):
        full, dotted = f"{module} {name}", f"{module}.{name}"
        for table, key in ((self.callables, full), (self.values, full), (self.allowed, dotted)):
            if key in table:
                return table[key]
        raise UnpicklingError(
            f"the file names {module[:100]}.{name[:100]}, which is not among what a file of weights may name. If you trust "
            "where the file comes from: lucid.serialization.add_safe_globals([...]) allows single names, and "
            "lucid.load(..., weights_only=False) runs whatever the file says"
        )

    def check_key(self, key, depth=0):
        self.parts -= 1
        if self.parts < 0:
            raise UnpicklingError("keys that are far longer than the pickle")
        if isinstance(key, tuple) and depth < _KEY_DEPTH:
            for part in key:
                self.check_key(part, depth + 1)
        elif type(key) not in _SIMPLE_KEYS and id(key) not in {id(v) for v in self.values.values()}:
            raise UnpicklingError(f"a key of type {type(key).__name__} is not allowed in a file of weights")

    def set_items(self, items):
        target = self.stack[-1]
        if not isinstance(target, dict) or len(items) % 2:
            raise UnpicklingError("a damaged pickle: items for what is not a dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            self.check_key(key)
            target[key] = value

    def append_items(self, items):
        target = self.stack[-1]
        if type(target) is set:
            for item in items:
                self.check_key(item)
            target.update(items)
        elif type(target) is list or type(target) in self.classes:
            target.extend(items)
        else:
            raise UnpicklingError(f"a damaged pickle: elements for a {type(target).__name__}")


def _push(make):
    return lambda m: m.stack.append(make(m))


def _popped_tuple(count):
    def step(m):
        if len(m.stack) < count or any(item is MARK for item in m.stack[-count:]):
            raise UnpicklingError("a damaged pickle: a tuple of what is not there")
        m.stack[-count:] = [tuple(m.stack[-count:])]

    return step


def _put(index):
    def step(m):
        if m.stack[-1] is MARK:
            raise UnpicklingError("a damaged pickle: a mark where a value should be")
        m.memo[index(m)] = m.stack[-1]

    return step


def _get(index):
    return lambda m: m.stack.append(m.memo[index(m)])


def _bytes(form, size, convert):
    return lambda m: m.stack.append(convert(m.take(m.number(form, size))))


def _text(data):
    return str(data, "utf-8", "surrogatepass")


def _long(data):
    return int.from_bytes(data, "little", signed=True)


def _proto(m):
    version = m.take(1)[0]
    if version > 5:
        raise UnpicklingError(f"a pickle of protocol {version}, which is not known")


def _stack_global(m):
    name, module = m.pop(), m.pop()
    if type(name) is not str or type(module) is not str:
        raise UnpicklingError("a damaged pickle: a name that is not text")
    m.stack.append(m.named(module, name))


def _global(m):
    m.stack.append(m.named(m.line(), m.line()))


def _reduce(m):
    args, function = m.pop(), m.pop()
    if id(function) not in m.callable_ids or type(args) is not tuple:
        raise UnpicklingError(f"the file calls {described(function)}, which a file of weights may not call")
    m.stack.append(function(*args))


def _newobj(m):
    args, cls = m.pop(), m.pop()
    if not any(cls is c for c in m.classes):
        raise UnpicklingError(f"the file makes {described(cls)}, which a file of weights may not make")
    m.stack.append(cls.__new__(cls, *args))


def _build(m):
    state, target = m.pop(), m.stack[-1]
    if type(target) is OrderedDict:
        if type(state) is not dict or not all(type(key) is str for key in state):
            raise UnpicklingError("a damaged pickle: attributes that are not a dict")
        target.__dict__.update(state)
    elif type(target) in m.classes:
        if hasattr(target, "__setstate__"):
            target.__setstate__(state)
        else:
            target.__dict__.update(state)
    else:
        raise UnpicklingError(f"the file gives a state to a {type(target).__name__}")


def _pop(m):
    m.stack.pop()


def _dup(m):
    m.stack.append(m.stack[-1])


def _pop_mark(m):
    m.since_mark()


def _dict(m):
    items = m.since_mark()
    m.stack.append({})
    m.set_items(items)


def _setitem(m):
    value, key = m.pop(), m.pop()
    m.set_items([key, value])


def _frozenset(m):
    items = m.since_mark()
    for item in items:
        m.check_key(item)
    m.stack.append(frozenset(items))


_STEPS = {
    0x80: _proto,
    0x95: lambda m: m.take(8),  # FRAME
    0x28: _push(lambda m: MARK),
    0x30: _pop,
    0x31: _pop_mark,
    0x32: _dup,
    0x4E: _push(lambda m: None),
    0x88: _push(lambda m: True),
    0x89: _push(lambda m: False),
    0x4B: _push(lambda m: m.take(1)[0]),
    0x4D: _push(lambda m: m.number("<H", 2)),
    0x4A: _push(lambda m: m.number("<i", 4)),
    0x8A: _bytes("<B", 1, _long),
    0x8B: _bytes("<I", 4, _long),
    0x47: _push(lambda m: m.number(">d", 8)),
    0x8C: _bytes("<B", 1, _text),
    0x58: _bytes("<I", 4, _text),
    0x8D: _bytes("<Q", 8, _text),
    0x43: _bytes("<B", 1, bytes),
    0x42: _bytes("<I", 4, bytes),
    0x8E: _bytes("<Q", 8, bytes),
    0x96: _bytes("<Q", 8, bytearray),
    0x55: _bytes("<B", 1, lambda data: str(data, "latin1")),  # text of Python 2
    0x54: _bytes("<I", 4, lambda data: str(data, "latin1")),
    0x29: _push(lambda m: ()),
    0x85: _popped_tuple(1),
    0x86: _popped_tuple(2),
    0x87: _popped_tuple(3),
    0x74: _push(lambda m: tuple(m.since_mark())),
    0x5D: _push(lambda m: []),
    0x6C: _push(lambda m: m.since_mark()),
    0x61: lambda m: m.append_items([m.pop()]),
    0x65: lambda m: m.append_items(m.since_mark()),
    0x7D: _push(lambda m: {}),
    0x64: _dict,
    0x73: _setitem,
    0x75: lambda m: m.set_items(m.since_mark()),
    0x8F: _push(lambda m: set()),
    0x90: lambda m: m.append_items(m.since_mark()),
    0x91: _frozenset,
    0x71: _put(lambda m: m.take(1)[0]),
    0x72: _put(lambda m: m.number("<I", 4)),
    0x94: _put(lambda m: len(m.memo)),
    0x68: _get(lambda m: m.take(1)[0]),
    0x6A: _get(lambda m: m.number("<I", 4)),
    0x63: _global,
    0x93: _stack_global,
    0x52: _reduce,
    0x81: _newobj,
    0x62: _build,
    0x51: _push(lambda m: m.persistent(m.pop())),
}
