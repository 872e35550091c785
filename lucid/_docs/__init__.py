"""Documentation of ops, made when somebody asks for it (`help`, `__doc__`, `inspect.signature`, the site).

Three sources, each with one kind of knowledge: the op's block has signatures and a sentence, `arguments.txt` says what an
argument means (once for all ops that have it), `examples/*.txt` has a program per op. Nothing of it is read before it is
asked for, and nothing of it is written a second time: the reference pages of `tools/gendocs.py` are made of the same entries.

>>> print(lucid._docs.text("", "diag").splitlines()[0])
diag(input: Tensor, diagonal: int = 0) -> Tensor
"""

import ast
import functools
import inspect
import pathlib
import re
from dataclasses import dataclass

from .. import _C

FOLDER = pathlib.Path(__file__).parent
GROUPS = {
    "bool": ("bool",),
    "integers": ("uint8", "int8", "int16", "int32", "int64"),
    "wide unsigned": ("uint16", "uint32", "uint64"),
    "halves": ("float16", "bfloat16"),
    "floats": ("float32", "float64"),
    "complex32": ("complex32",),
    "complex": ("complex64", "complex128"),
}
KINDS = {"view": "a view of its input", "elementwise": "elementwise", "reduction": "a reduction", "move": "moves values"}
TYPES = {
    "Number": "number", "truth": "bool", "Literal[True]": "bool", "Literal[False]": "bool", "list[int]": "int or tuple of ints",
    "list[float]": "float or tuple of floats", "list[Tensor]": "sequence of Tensors", "tuple[int, ...]": "tuple of ints",
    "list[Tensor | None]": "sequence of Tensors", "Generator": "lucid.Generator", "dtype": "lucid.dtype",
    "device": "lucid.device or str", "memory_format": "lucid.memory_format",
}  # fmt: skip
OUT = ("out", "Tensor", "None")
FACTORY = [("layout", "lucid.layout", "None"), ("requires_grad", "bool", "False"), ("pin_memory", "bool", "False")]
DERIVED = re.compile(r"Another name of (\w+)\.$")


@dataclass
class Argument:
    """A parameter as its overloads together declare it.

    >>> lucid._docs.entry("", "sum").arguments[2]
    Argument(name='keepdim', types='bool', default='False', words='whether reduced dimensions stay, with size 1', keyword=False)
    """

    name: str
    types: str
    default: str | None
    words: str
    keyword: bool

    def head(self):
        return f"{self.name} ({self.types}{', optional' if self.default == 'None' else ''})"

    def rest(self):
        return self.words + (f". Default: {self.default}" if self.default not in (None, "None") else "")


@dataclass
class Entry:
    """All that is known about a public name of the op table.

    >>> entry = lucid._docs.entry("linalg", "qr")
    >>> entry.returns
    'named tuple of Tensors (Q, R)'
    >>> [a.name for a in entry.arguments]
    ['A', 'mode', 'out']
    """

    name: str
    signatures: list
    summary: list
    arguments: list
    returns: str
    notes: list
    facts: list
    example: str

    def told(self):
        """A sentence per overload; one for all that share it."""
        single = len(set(self.summary)) == 1
        return self.summary[:1] if single else [f"{n}. {words}" for n, words in enumerate(self.summary, 1)]

    def text(self):
        """The docstring."""
        parts = ["\n".join(self.signatures), "\n".join(self.told())]
        for title, keyword in (("Args", False), ("Keyword args", True)):
            rows = [f"    {a.head()}: {a.rest()}" for a in self.arguments if a.keyword == keyword]
            if rows:
                parts.append("\n".join([f"{title}:", *rows]))
        parts.append(f"Returns:\n    {self.returns}")
        parts += [f"Differs from PyTorch: {note}" for note in self.notes]
        parts.append("\n".join(f"{title}: {words}" for title, words in self.facts))
        return "\n\n".join(part for part in [*parts, self.example] if part)


@functools.cache
def overloads():
    """{(namespace, public name): rows of the op table}.

    >>> len(lucid._docs.overloads()["", "max"])
    3
    """
    found = {}
    for row in _C._op_table():
        found.setdefault((row["space"], row["public"]), []).append(row)
    return found


@functools.cache
def words():
    """{argument or op.argument: what it means}, of arguments.txt.

    >>> lucid._docs.words()["linear.input"]
    '(*, in features)'
    """
    found = {}
    for line in (FOLDER / "arguments.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            head, _, meaning = line.partition(": ")
            ops, _, name = head.rpartition(".")
            for op in ops.split(","):
                found[f"{op}.{name}" if op else name] = meaning
    return found


@functools.cache
def examples():
    """{op with its namespace: program and output}, of examples/*.txt: blocks that begin with the op's name.

    >>> print(lucid._docs.examples()["t"].splitlines()[-1])
            [2, 4]])
    """
    found = {}
    for path in sorted((FOLDER / "examples").glob("*.txt")):
        for block in path.read_text().strip().split("\n\n"):
            name, _, program = block.partition("\n")
            found[name] = program
    return found


def parameters(row):
    """(name, annotation, default, keyword only) of an overload's parameters, in order; texts, None without a default.

    >>> list(lucid._docs.parameters(lucid._docs.overloads()["", "diag"][0]))[1]
    ('diagonal', 'int', '0', False)
    """
    args = ast.parse(f"def {row['signature'].rsplit(' -> ', 1)[0]}: ...").body[0].args
    defaults = [None] * (len(args.args) - len(args.defaults)) + args.defaults
    listed = [(a, d, False) for a, d in zip(args.args, defaults)]
    listed += [(args.vararg, None, False)] if args.vararg else []
    listed += [(a, d, True) for a, d in zip(args.kwonlyargs, args.kw_defaults)]
    for arg, default, keyword in listed:
        name = ("*" if arg is args.vararg else "") + arg.arg
        yield name, ast.unparse(arg.annotation), None if default is None else ast.unparse(default), keyword
    if row["out"]:
        yield *OUT[:2], OUT[2], True
    if row["factory"]:
        for name, types, default in FACTORY:
            yield name, types, default, True


def type_words(annotations):
    """What a caller may pass, in words: of 'list[int] | None' and 'str' it is 'int or tuple of ints or str'.

    >>> lucid._docs.type_words(['list[int] | None', 'str'])
    'int or tuple of ints or str'
    """
    kinds = []
    for annotation in annotations:
        for kind in re.findall(r"(?:[^|\[]|\[[^\]]*\])+", annotation):
            kind = kind.strip()
            fixed = re.fullmatch(r"tuple\[(\w+)((?:, \w+)*)\]", kind)
            kind = f"{fixed[1]} or tuple of {1 + fixed[2].count(',')}" if fixed else TYPES.get(kind, kind)
            kinds += [k for k in kind.split(" or ") if k != "None"]
    return " or ".join(dict.fromkeys(kinds))


def meaning(op, name, types=""):
    """What an argument of an op means; `dim[]` stands for a dim that may be several.

    >>> lucid._docs.meaning("conv2d", "input")
    'images (N, C, H, W), or one (C, H, W)'
    """
    known, name = words(), name.lstrip("*")
    several = known.get(f"{name}[]") if "tuple" in types else None
    return known.get(f"{op}.{name}") or several or known.get(name, "")


def arguments(op, rows):
    """Arguments of all overloads, in the order of the longest; those that it lacks are keywords.

    >>> [a.name for a in lucid._docs.arguments("max", lucid._docs.overloads()["", "max"]) if a.keyword]
    ['out', 'other']
    """
    merged, counts = {}, {}
    for number, row in enumerate(sorted(rows, key=lambda r: -len(list(parameters(r))))):
        for name, annotation, default, keyword in parameters(row):
            entry = merged.setdefault(name, [[], default, keyword or number > 0])
            entry[0].append(annotation)
            entry[1] = entry[1] if entry[1] is not None else default
            counts[name] = counts.get(name, 0) + 1
    for name, (annotations, default, keyword) in merged.items():
        if default is None and counts[name] < len(rows):
            default = "None"
        default = default and {"()": "None"}.get(default, default)
        types = type_words(annotations)
        yield Argument(name, types, default, meaning(op, name, types), keyword)


def returned(rows):
    """What a call gives, in words.

    >>> lucid._docs.returned(lucid._docs.overloads()["", "t"])
    "Tensor that shares input's memory"
    """
    told = meaning(rows[0]["inplace_of"] or rows[0]["public"], "return")
    if rows[0]["inplace_of"] or rows[0]["public"].endswith("_") and rows[0]["method"]:
        return "the input itself, changed"
    if told:
        return told
    kinds = []
    for row in rows:
        result = row["signature"].rsplit(" -> ", 1)[1]
        names = re.findall(r"(\w+): Tensor", result)
        view = " that shares input's memory" if row["kind"] == "view" else ""
        kind = {"list[Tensor]": "tuple of Tensors", "Tensor": f"Tensor{view}"}.get(
            result, result.replace("list[Tensor]", "tuple")
        )
        kinds.append(f"named tuple of Tensors ({', '.join(names)})" if names else kind)
    return " or ".join(dict.fromkeys(kinds))


def dtype_names(dtypes):
    """Dtypes in words, by groups: 'integers, floats'.

    >>> lucid._docs.dtype_names(["float32", "float64", "bool", "uint16"])
    'bool, floats, uint16'
    """
    if not dtypes:
        return "those of the ops it is made of"
    whole = [g for g, members in GROUPS.items() if set(members) <= set(dtypes)]
    if len(whole) == len(GROUPS):
        return "all"
    inside = {m for g in whole for m in GROUPS[g]}
    return ", ".join(whole + [d for d in dtypes if d not in inside])


def forms(rows, inplace):
    """How an op can be called: as a function, a method, in place, with out=.

    >>> lucid._docs.forms(lucid._docs.overloads()["", "add"], inplace=True)
    ['lucid.add', 'method', 'add_', 'out=']
    """
    place = f"lucid.{rows[0]['space'] + '.' if rows[0]['space'] else ''}{rows[0]['public']}"
    shown = [place] if rows[0]["function"] else []
    shown += ["method"] * any(r["method"] for r in rows)
    shown += [f"{rows[0]['public']}_"] * inplace
    return shown + ["out="] * any(r["out"] for r in rows)


def gradient(rows):
    """Where an op's gradient comes from.

    >>> lucid._docs.gradient(lucid._docs.overloads()["", "argmax"])
    'no'
    """
    if any(r["gradient"] for r in rows):
        return "formula"
    return "through its parts" if any(r["kind"] == "composite" for r in rows) else "no"


def kind_words(rows):
    """What is special about an op.

    >>> lucid._docs.kind_words(lucid._docs.overloads()["", "rand"])
    ['random']
    """
    kinds = {r["kind"] for r in rows}
    shown = [KINDS[kinds.pop()]] if len(kinds) == 1 and kinds <= KINDS.keys() else []
    shown += ["random"] * any(r["random"] for r in rows)
    return shown + ["reads values"] * any(r["reads_values"] for r in rows)


def example_of(space, public, rows):
    """The program of an op: its block's own, that of examples/, or that of the op it is another name of.

    >>> lucid._docs.example_of("", "concat", lucid._docs.overloads()["", "concat"]).splitlines()[-1]
    'tensor([1, 2, 3])'
    """
    for row in rows:
        if ">>>" in row["doc"]:
            return ">>>" + row["doc"].partition(">>>")[2].rstrip()
    place = f"{space}.{public}" if space else public
    if place in examples():
        return examples()[place]
    alias = DERIVED.match(rows[0]["doc"])
    of = alias[1] if alias else public.removesuffix("_copy")
    if rows[0]["inplace_of"] or of == public or (space, of) not in overloads():
        return ""
    program = example_of(space, of, overloads()[space, of])
    return re.sub(rf"\b{of}\(", f"{public}(", program) if rows[0]["function"] or f"lucid.{of}(" not in program else program


@functools.cache
def entry(space, public):
    """What is known about a name; None if the op table has no such name.

    >>> lucid._docs.entry("nn.functional", "relu6").returns
    'Tensor'
    """
    rows = overloads().get((space, public))
    if not rows:
        return None
    inplace = (space, public + "_") in overloads() and bool(overloads()[space, public + "_"][0]["inplace_of"])
    op = rows[0]["inplace_of"] or public
    facts = [("Dtypes", dtype_names(max((r["dtypes"] for r in rows), key=len))), ("Gradient", gradient(rows))]
    facts += [("Forms", ", ".join([*forms(rows, inplace), *kind_words(rows)]))]
    return Entry(
        name=public,
        signatures=[r["public"] + r["signature"][len(r["name"]) :] for r in rows],
        summary=[r["doc"].partition("\n\n>>>")[0] for r in rows],
        arguments=list(arguments(op, rows)),
        returns=returned(rows),
        notes=[note for note in [meaning(op, "note")] if note],
        facts=facts,
        example=example_of(space, public, rows),
    )


def text(space, public):
    """The docstring of an op; None if the op table has no such name.

    >>> lucid._docs.text("", "nothing")
    """
    found = entry(space, public)
    return found and found.text()


def signature(space, public):
    """`inspect.signature` of an op: the parameters of all overloads together, out= and the keywords of factories with them.

    >>> inspect.signature(lucid.zeros)  # doctest: +ELLIPSIS
    <Signature (size, *, dtype=None, ..., requires_grad=False, pin_memory=False)>
    """
    found = entry(space, public)
    if not found:
        return None
    made, kind = [], inspect.Parameter
    later = False  # after a parameter with a default every one has one, or is a keyword
    for a in sorted(found.arguments, key=lambda a: (a.keyword and a.name[0] != "*", a.name[0] == "*")):
        default = kind.empty if a.default is None else value_of(a.default)
        place = (
            kind.VAR_POSITIONAL if a.name.startswith("*") else kind.KEYWORD_ONLY if a.keyword else kind.POSITIONAL_OR_KEYWORD
        )
        if place is kind.POSITIONAL_OR_KEYWORD:
            default = None if later and default is kind.empty else default
            later = later or default is not kind.empty
        made.append(kind(a.name.lstrip("*"), place, default=kind.empty if place is kind.VAR_POSITIONAL else default))
    return inspect.Signature(made)


def keyword_defaults(space, public):
    """`__kwdefaults__` of an op, as functions have it: the defaults of the arguments that are given by name.

    >>> lucid.meshgrid.__kwdefaults__
    {'indexing': None}
    """
    found = signature(space, public)
    parameters = found.parameters.values() if found else ()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is not p.empty} or None


def value_of(text):
    """A default's value; its text if that is a name.

    >>> lucid._docs.value_of("1e-05"), lucid._docs.value_of("preserve_format")
    (1e-05, 'preserve_format')
    """
    try:
        return ast.literal_eval(text)
    except ValueError:
        return text
