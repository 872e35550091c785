"""What a trace relied on outside its inputs, and whether that still holds.

A traced function reads globals, closures, attributes of modules and other objects, and small containers. While it runs,
`sys.setprofile` shows every Python function that is entered; `Watch` notes the plain values that such a function could
read, a superset of what it did read, before it reads them. Afterwards they must be the same: a function that changed one has
a side effect that a plan would not repeat. Calls of functions that look at the outside world (clocks, random numbers of other
libraries, printing, files) break the trace.
"""

import builtins
import functools
import gc
import sys
import types

from .. import _C

_PLAIN = (int, float, complex, str, bytes, bool, type(None))
_IMPURE_MODULES = (
    "time",
    "random",
    "_random",
    "numpy",
    "os",
    "posix",
    "datetime",
    "secrets",
    "socket",
    "_io",
    "io",
    "threading",
    "_thread",
)
_IMPURE = {builtins.print, builtins.input, builtins.open, builtins.exec, builtins.eval}
_LIBRARIES = ("lucid", "builtins", "typing", "abc", "enum", "collections", "functools", "_collections_abc")
_HOUSE = ("lucid.", "functools", "importlib", "_frozen_importlib", "warnings", "linecache", "tokenize")  # may ask the outside
_DEPTH = 4  # how far objects in attributes of objects are followed
_NESTED = 0.25  # a container in a container counts less
_LONG = 4096  # elements of a container that is watched
_UNWATCHED = (("collections", "deque"), ("array", "array"), ("numpy", "ndarray"), ("builtins", "bytearray"))


def is_plain(value):
    """Numbers, strings, None, and tuples of them.

    >>> from lucid._compile.guards import is_plain
    >>> is_plain((1, "a", None)), is_plain([1])
    (True, False)
    """
    return isinstance(value, _PLAIN) or (type(value) is tuple and all(map(is_plain, value)))


class Watch:
    """Collects guards while a function is traced.

    >>> from lucid._compile.guards import Watch
    >>> with Watch() as watch:
    ...     n = len("abc")
    >>> watch.guards().check()
    -1
    """

    def __init__(self, *roots):
        self.found = {}  # id of a dict, list or cell: (where, names or None, values)
        self.described = {}  # the same: for messages
        self.sizes = {}  # of dicts that must not get more names
        self.codes, self.known_codes = set(), set()  # of frames; of functions whose closures are noted, and those inside them
        self.objects = set()
        self.born = {}  # id: an object that the function made: nobody's state but its own
        self.may_call_backward = False
        for root in roots:
            self.note_value(root, 0, "the function")

    # --- what is noted ---
    def note_dict(self, where, names, what, whole=False):
        """whole: the dict must not get more names, either."""
        known = self.found.get(id(where))
        have = dict(zip(known[1], known[2])) if known else {}
        for name in names:
            if name not in have:
                have[name] = where.get(name, ...)
        self.found[id(where)] = (where, tuple(have), tuple(have.values()), whole or bool(known and known[3]))
        if whole:
            self.sizes.setdefault(id(where), len(where))
        self.described.setdefault(id(where), what)

    def note(self, where, values, what, names=None):
        self.found[id(where)] = (where, names, values)
        self.described[id(where)] = what

    def note_value(self, value, depth, what):
        """What is reachable from a value that a name, an attribute or a cell holds."""
        if depth > _DEPTH or is_plain(value) or id(value) in self.found:
            return
        if isinstance(value, types.FunctionType):
            self.note_closure(value, depth)
        elif isinstance(value, types.MethodType):
            self.note_value(value.__self__, depth, what)
            self.note_closure(value.__func__, depth)
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self.note_value(part, depth + _NESTED, what)
        elif isinstance(value, (list, dict, set)):
            self.note_container(value, depth, what)
        elif isinstance(value, tuple):
            for item in value:
                self.note_value(item, depth + _NESTED, what)
        elif (type(value).__module__, type(value).__name__) in _UNWATCHED:
            if depth < 2:
                _C._trace_break(f"{what} is a {type(value).__name__}, whose contents cannot be watched")
        else:
            self.note_object(value, depth)

    def note_container(self, value, depth, what):
        if len(value) > _LONG:
            if depth < 2:
                _C._trace_break(f"{what} is a {type(value).__name__} of more than {_LONG} elements")
            return
        if isinstance(value, set):
            if all(map(is_plain, value)):
                self.note(value, (frozenset(value),), what)
            return
        if isinstance(value, dict):
            self.note_dict(value, list(value), what, whole=True)
        else:
            self.note(value, tuple(value), what)
        for item in list(value.values()) if isinstance(value, dict) else list(value):
            self.note_value(item, depth + _NESTED, what)
        if type(value) not in (list, dict):
            self.note_object(value, depth)

    def note_object(self, o, depth):
        if id(o) in self.objects or depth > _DEPTH or is_plain(o) or isinstance(o, (type, types.ModuleType, _C.Tensor)):
            return
        if type(o).__module__.startswith("lucid._compile"):  # a compiled function: what it was made of
            self.note_value(getattr(o, "_fn", None), depth, "a compiled function")
            return
        if isinstance(o, types.FunctionType):
            return
        self.objects.add(id(o))
        what = f"an attribute of {type(o).__name__}"
        self.note_class(type(o), depth)
        slots = [n for cls in type(o).__mro__ for n in _slots_of(cls) if hasattr(o, n)]
        if slots and id(o) not in self.found:
            self.note(o, tuple(getattr(o, n) for n in slots), what, tuple(slots))
            for name in slots:
                self.note_value(getattr(o, name), depth + 1, what)
        attributes = getattr(o, "__dict__", None)
        if type(attributes) is dict:
            self.note_dict(attributes, list(attributes), what, whole=True)
            for value in list(attributes.values()):
                self.note_value(value, depth + 1, what)

    def note_first_argument(self, code, o):
        """The object whose method runs: made before, or here if it has nothing yet and is being initialised, or is a new node
        of the tape (the ctx of a custom function)."""
        starts = code.co_name == "__init__" or hasattr(type(o), "next_functions")
        if starts and id(o) not in self.objects and getattr(o, "__dict__", None) == {}:
            self.born[id(o)] = o
            self.note_class(type(o), 0)
        elif id(o) not in self.born:
            self.note_object(o, 0)

    def is_born(self, o):
        """Whether the function made this object."""
        return id(o) in self.born

    def note_class(self, cls, depth):
        """Plain values and containers that a class of the user's has as attributes."""
        for c in cls.__mro__:
            if id(c) in self.found or c.__module__.split(".")[0] in _LIBRARIES:
                continue
            kinds = (*_PLAIN, tuple, list, dict, set)
            names = [n for n, v in vars(c).items() if isinstance(v, kinds) and not (n.startswith("__") and n.endswith("__"))]
            if names:
                self.note(c, tuple(vars(c)[n] for n in names), f"an attribute of the class {c.__name__}", tuple(names))
                for name in names:
                    self.note_value(vars(c)[name], depth + 1, f"{c.__name__}.{name}")

    def note_closure(self, function, depth):
        self.know_code(function.__code__)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if id(cell) in self.found:
                continue
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            self.note(cell, (value,), f"the variable {name!r} of an enclosing function")
            self.note_value(value, depth + 1, self.described[id(cell)])
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.note_value(value, depth + 1, "a default argument")

    def know_code(self, code):
        if code not in self.known_codes:
            self.known_codes.add(code)
            for inner in code.co_consts:
                if isinstance(inner, types.CodeType):
                    self.know_code(inner)

    def note_frame(self, frame):
        code = frame.f_code
        names = frame.f_globals
        ours = names.get("__name__", "").startswith("lucid.")
        if ours and names["__name__"].startswith("lucid._compile"):
            return
        if code.co_argcount:
            self.note_first_argument(code, frame.f_locals.get(code.co_varnames[0]))
        if ours:
            return  # globals of this package are nobody's state
        if (code, id(names)) in self.codes:
            return
        self.codes.add((code, id(names)))
        if code.co_freevars and code not in self.known_codes:  # a function that no name led to: the cells must be found
            for function in _functions_of(code, frame):
                self.note_closure(function, 1)
        self.know_code(code)
        used = [name for name in code.co_names if name in names]
        if used:
            self.note_dict(names, used, f"a global of {names.get('__name__', '?')}")
            for name in used:
                value = names[name]
                if not isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType)):
                    self.note_value(value, 1, f"the global {name!r}")
                elif isinstance(value, types.ModuleType) and not value.__name__.startswith("lucid"):
                    plain = [n for n in code.co_names if is_plain(vars(value).get(n, ...))]
                    if plain:
                        self.note_dict(vars(value), plain, f"a name of the module {value.__name__}")

    # --- the trace ---
    def profile(self, frame, event, arg):
        if event == "call":
            self.note_frame(frame)
        elif event == "c_call" and _is_backward(arg) and not self.may_call_backward:
            _C._trace_break(f"backward() writes gradients{_line(frame)}")
        elif event == "c_call" and (arg in _IMPURE or _from_outside(arg)) and not _of_the_house(frame):
            _C._trace_break(f"{getattr(arg, '__qualname__', arg)}() depends on or changes something outside{_line(frame)}")

    def __enter__(self):
        # A collection in between would run finalizers and callbacks that are no part of the function.
        self.before, self.collects = sys.getprofile(), gc.isenabled()
        gc.disable()
        sys.setprofile(self.profile)
        return self

    def __exit__(self, *error):
        sys.setprofile(self.before)
        if self.collects:
            gc.enable()

    def guards(self):
        """The guards; breaks the trace (returns None) if one does not hold any more."""
        listed = list(self.found.values())
        made = _C._Guards(listed)
        broken = made.check()
        grown = (
            [where for where, *_ in listed if id(where) in self.sizes and len(where) != self.sizes[id(where)]]
            if broken < 0
            else []
        )
        if broken < 0 and not grown:
            return made
        self.changed = f"it changes {self.described[id(grown[0] if grown else listed[broken][0])]} while it runs"
        return None


def _functions_of(code, frame):
    """The functions that have this code: a method of the first argument, or whatever the garbage collector knows (slow)."""
    owner = type(frame.f_locals.get(code.co_varnames[0])) if code.co_argcount else object
    methods = [m for m in (vars(c).get(code.co_name) for c in owner.__mro__) if getattr(m, "__code__", None) is code]
    return methods or [f for f in gc.get_referrers(code) if isinstance(f, types.FunctionType) and f.__code__ is code]


def _is_backward(function):
    return getattr(function, "__name__", "") == "backward" and isinstance(getattr(function, "__self__", None), _C.Tensor)


def _slots_of(cls):
    slots = vars(cls).get("__slots__", ()) if cls.__module__.split(".")[0] not in _LIBRARIES else ()
    return [n for n in ((slots,) if isinstance(slots, str) else slots) if n not in ("__dict__", "__weakref__")]


def _of_the_house(frame):
    """This package, and imports, which a first call may make, with all that they call."""
    while frame:
        if frame.f_globals.get("__name__", "").startswith(_HOUSE):
            return True
        if frame.f_code.co_filename.startswith("<frozen") or "/lib/python" in frame.f_code.co_filename:
            frame = frame.f_back  # the standard library, called by whom?
        else:
            return False
    return False


def _from_outside(function):
    module = getattr(function, "__module__", None) or type(getattr(function, "__self__", None)).__module__
    return module.split(".")[0] in _IMPURE_MODULES if isinstance(module, str) else False


def _line(frame):
    return f" ({frame.f_code.co_filename}:{frame.f_lineno})"


def _calling_line():
    """Where the user's code is, for a warning: the innermost line outside this package."""
    frame = sys._getframe()
    while frame and frame.f_globals.get("__name__", "").startswith("lucid"):
        frame = frame.f_back
    return f" ({frame.f_code.co_filename}:{frame.f_lineno})" if frame else ""
