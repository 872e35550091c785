"""GraphIR: tensors and nodes, and the questions one may ask of them. Adding accepts what it can describe; what does not fit
together is reported by validation, and refused by planning and execution."""

from lucid import _C

from .._kept import Lock
from . import execute, plan, validate
from .schemas import known_op

_c = _C._lightning()


def sizes(values, name):
    """A list of ints that are not negative."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name} must be a list of ints, not {type(values).__name__}")
    found = []
    for value in values:
        if isinstance(value, bool) or not hasattr(value, "__index__") or value < 0:
            raise TypeError(f"{name} must hold non-negative ints, not {value!r}")
        found.append(int(value))
    return found


def _one_of(value, name, known):
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {type(value).__name__}")
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, not {value!r}")
    return value


class GraphIR:
    """A graph of operators on dense tensors. Nodes run in the order in which they were added.

    >>> graph = GraphIR()
    >>> a, b, c = (graph.add_tensor([2, 2], name=name) for name in "abc")
    >>> graph.add_node("matmul", [a, b], [c])
    0
    >>> graph.validate_report()["ok"]
    True
    >>> result = graph.execute_f32({a: [[1, 2], [3, 4]], b: [[1, 0], [0, 1]]}, preferred_device="cpu")
    >>> result["values"][c].tolist()
    [1.0, 2.0, 3.0, 4.0]
    """

    def __init__(self):
        self._tensors, self._nodes, self._lock = [], [], Lock()
        self._changed()

    def _changed(self):
        self._cache = plan.PlanCache() if not hasattr(self, "_cache") else self._cache
        self._cache.forget()
        self._report, self._program = None, None

    def add_tensor(self, shape, dtype="float32", layout="contiguous", name="", constant=False):
        """Describes a tensor; its id.

        >>> GraphIR().add_tensor([2, 3], dtype="float64")
        0
        """
        row = {
            "id": len(self._tensors),
            "tensor_id": len(self._tensors),
            "shape": sizes(shape, "shape"),
            "dtype": _one_of(dtype, "dtype", ("float32", "float64")),
            "layout": _one_of(layout, "layout", ("contiguous", "strided")),
            "name": str(name),
            "constant": bool(constant),
        }
        self._tensors.append(row)
        self._changed()
        return row["id"]

    def add_node(self, op, inputs, outputs, control_deps=(), name="", attributes=None):
        """Adds an operator on tensors by their ids; its id.

        >>> graph = GraphIR()
        >>> x, y = graph.add_tensor([3]), graph.add_tensor([3])
        >>> graph.add_node("relu", [x], [y])
        0
        """
        known = dict(attributes or {})
        for key, value in known.items():
            if not isinstance(key, str) or not hasattr(value, "__index__"):
                raise TypeError(f"attributes must be a dict of ints by name, not {key!r}: {value!r}")
        row = {
            "id": len(self._nodes),
            "node_id": len(self._nodes),
            "op": known_op(op),
            "inputs": sizes(inputs, "inputs"),
            "outputs": sizes(outputs, "outputs"),
            "control_deps": sizes(control_deps, "control_deps"),
            "name": str(name),
            "attributes": {key: int(value) for key, value in known.items()},
        }
        self._nodes.append(row)
        self._changed()
        return row["id"]

    def num_tensors(self):
        """How many tensors there are.

        >>> GraphIR().num_tensors()
        0
        """
        return len(self._tensors)

    def num_nodes(self):
        """How many nodes there are.

        >>> GraphIR().num_nodes()
        0
        """
        return len(self._nodes)

    def tensors(self):
        """The tensors as dicts.

        >>> GraphIR().tensors()
        []
        """
        return [{**t, "shape": list(t["shape"])} for t in self._tensors]

    def nodes(self):
        """The nodes as dicts.

        >>> GraphIR().nodes()
        []
        """
        lists = ("inputs", "outputs", "control_deps")
        return [{**n, **{k: list(n[k]) for k in lists}, "attributes": dict(n["attributes"])} for n in self._nodes]

    def validate_report(self):
        """What is wrong: {ok, status, issues}, each issue with the pass that found it and a reason code.

        >>> graph = GraphIR()
        >>> _ = graph.add_node("relu", [], [])
        >>> [issue["reason_code"] for issue in graph.validate_report()["issues"]]
        ['arity_mismatch', 'arity_mismatch']
        """
        if self._report is None:
            self._report = validate.report(self._tensors, self._nodes)
        return {**self._report, "issues": [dict(i) for i in self._report["issues"]]}

    def validate(self):
        """None, or RuntimeError if something is wrong.

        >>> GraphIR().validate()
        """
        if self._report is None:
            self._report = validate.report(self._tensors, self._nodes)
        if not self._report["ok"]:
            raise RuntimeError(self._report["status"])

    def plan(self, preferred_device="metal"):
        """Where each node runs.

        >>> GraphIR().plan()
        []
        """
        self.validate()
        return plan.steps_of(self._nodes, plan.check_device(preferred_device))

    def _planned(self, named, more):
        self.validate()
        options = plan.read_options(named, more)
        with self._lock:
            return self._cache.get(self._tensors, self._nodes, options)

    def plan_groups(
        self,
        preferred_device="metal",
        sync_mode="auto",
        trace_sync_boundary=False,
        separate_fallback_segments=True,
        insert_sync_on_device_change=True,
        **options,
    ):
        """Nodes grouped by where they run: {groups, steps, summary}.

        >>> GraphIR().plan_groups()["groups"]
        []
        """
        named = (
            preferred_device,
            sync_mode,
            trace_sync_boundary,
            separate_fallback_segments,
            insert_sync_on_device_change,
        )
        return plan.copied(self._planned(named, options))

    def plan_summary(self, *named, **options):
        """The totals of a plan: nodes, groups, dispatches, estimated cost, the plan cache.

        >>> GraphIR().plan_summary()["total_nodes"]
        0
        """
        return plan.copied(self._planned(named, options))["summary"]

    def fusion_report(self, *named, **options):
        """The chains that are dispatched as one, and what that is estimated to save.

        >>> GraphIR().fusion_report()
        []
        """
        return [dict(row) for row in self._planned(named, options)["fusion"]]

    def clear_plan_cache(self):
        """Forget all plans and the counts of the cache.

        >>> GraphIR().clear_plan_cache()
        """
        with self._lock:
            self._cache.clear()

    def plan_cache_stats(self):
        """How often a plan was found, and how often it was made.

        >>> GraphIR().plan_cache_stats()["hits_total"]
        0
        """
        with self._lock:
            return self._cache.stats()

    def _execute(self, dtype, feeds, named, options):
        found = self._planned(named, options)
        if self._program is None or self._program.dtype != dtype:
            self._program = execute.Program(self._tensors, self._nodes, dtype)
        result = plan.copied(found)
        values = self._program.run(feeds, found)
        return {"values": values, "groups": result["groups"], "steps": result["steps"], "summary": result["summary"]}

    def execute_f32(self, feeds, *named, **options):
        """Computes all tensors from those in feeds, {id: array}: {values: {id: flat array}, groups, steps, summary}.

        >>> graph = GraphIR()
        >>> x, y = graph.add_tensor([3]), graph.add_tensor([3])
        >>> _ = graph.add_node("relu", [x], [y])
        >>> graph.execute_f32({x: [-1, 0, 2]})["values"][y].tolist()
        [0.0, 0.0, 2.0]
        """
        return self._execute("float32", feeds, named, options)

    def execute_f64(self, feeds, *named, **options):
        """`execute_f32` for a graph of float64 tensors.

        >>> graph = GraphIR()
        >>> x, y = graph.add_tensor([1], "float64"), graph.add_tensor([1], "float64")
        >>> _ = graph.add_node("vector_add", [x, x], [y])
        >>> graph.execute_f64({x: [0.1]})["values"][y].tolist()
        [0.2]
        """
        return self._execute("float64", feeds, named, options)
