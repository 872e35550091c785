#!/usr/bin/env python3
"""Compare ops with PyTorch on every sample of its own op database, in worker processes: a crash or a hang costs one op.

usage: run.py [OP ...] [--jobs N] [--fast] [--reference] [--failures N] [--write-gaps]

Without names: all ops. --fast: at most a few samples per variant and dtype, spread evenly (what CI runs). Ends with status 1
if an op fails that gaps.txt does not name, or passes although gaps.txt names it: that list may only shrink. See
docs/conformance.md. --reference: op_db's wider inputs (extremal values, broadcasting, mixed dtypes), where it has them.
"""

import argparse
import collections
import json
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GAPS = HERE / "gaps.txt"
TIMEOUT = 900  # seconds for one op


def read_gaps():
    lines = [line.split(maxsplit=1) for line in GAPS.read_text().splitlines() if line.strip() and not line.startswith("#")]
    return {line[0]: line[1] if len(line) > 1 else "" for line in lines}


def environment():
    built = ROOT / "build" / "release" / "pkg"
    path = os.environ.get("PYTHONPATH") or str(built)
    return dict(os.environ, PYTHONPATH=os.pathsep.join([path, str(ROOT)]), OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")


def work(fast, reference):
    """A worker: op names on stdin, a JSON line per op on the stdout it was given."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever prints must not mix with the answers
    from tests.compat import forms

    forms.torch.set_num_threads(1)
    forms.lucid.set_num_threads(1)
    answers.write(json.dumps(sorted(forms.OPS)) + "\n")
    for line in sys.stdin:
        start = time.monotonic()
        passed, total, failures = forms.run(line.strip(), fast, reference)
        seconds = time.monotonic() - start
        answers.write(json.dumps({"passed": passed, "total": total, "failures": failures, "seconds": seconds}) + "\n")


class Worker:
    """A process that answers for one op at a time; started again after a crash or a timeout."""

    def __init__(self, *flags):
        self.flags, self.process = flags, None

    def start(self):
        command = [sys.executable, str(HERE / "run.py"), "--worker", *self.flags]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment()
        )
        return json.loads(self.process.stdout.readline() or "[]")

    def ask(self, name):
        if self.process is None:
            self.start()
        hung = threading.Event()
        timer = threading.Timer(TIMEOUT, lambda: (hung.set(), self.process.kill()))
        timer.start()
        try:
            self.process.stdin.write(name + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        timer.cancel()
        if answer:
            return json.loads(answer)
        code = self.process.wait()
        self.process = None
        why = f"no answer in {TIMEOUT} s" if hung.is_set() else f"the process ended with status {code}"
        return {"passed": 0, "total": 1, "failures": [["run", why]], "seconds": 0.0}

    def stop(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


def compare(names, jobs, flags, report=lambda name, answer: None):
    """{op: answer} over worker processes. Unknown names raise LookupError."""
    first = Worker(*flags)
    known = first.start()
    if not known:
        raise SystemExit(f"a worker does not start: {sys.executable} {HERE / 'run.py'} --worker")
    unknown = [n for n in names if n not in known]
    if unknown:
        raise LookupError(f"not an op that is compared: {', '.join(unknown)}")
    todo, answers, lock = queue.Queue(), {}, threading.Lock()
    for name in names or known:
        todo.put(name)

    def loop(worker):
        while True:
            try:
                name = todo.get_nowait()
            except queue.Empty:
                return worker.stop()
            answer = worker.ask(name)
            with lock:
                answers[name] = answer
                report(name, answer)

    threads = [threading.Thread(target=loop, args=(w,)) for w in [first] + [Worker(*flags) for _ in range(jobs - 1)]]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return dict(sorted(answers.items()))


def passes(answer):
    return answer["passed"] == answer["total"]


def again_in_full(answers, gaps, jobs):
    """A known gap that a --fast run does not show is looked for with all samples."""
    unseen = [n for n, a in answers.items() if passes(a) and n in gaps]
    return dict(answers, **compare(unseen, jobs, [])) if unseen else answers


def judge(answers, gaps):
    """Sentences about what contradicts the list of gaps."""
    new = [f"{n} fails and is not in gaps.txt" for n, a in answers.items() if not passes(a) and n not in gaps]
    return new + [f"{n} passes: remove it from gaps.txt" for n, a in answers.items() if passes(a) and n in gaps]


def describe(name, answer, shown):
    """One line, then the first failures of each kind (form and message, whatever the dtype and the sample)."""
    text = f"{name:28} {answer['passed']:6}/{answer['total']:<6} {answer['seconds']:6.1f} s"
    kinds = collections.OrderedDict()
    for case, message in answer["failures"]:
        key = case.rsplit(" ", 2)[0] if "#" in case else case, message.split(":")[0]
        kinds.setdefault(key, []).append((case, message))
    for cases in list(kinds.values())[:shown]:
        text += f"\n    {len(cases):4} x {cases[0][0]}: {cases[0][1][:400]}"
    if len(kinds) > shown:
        text += f"\n    and {len(kinds) - shown} more kinds"
    return text


def write_gaps(answers, gaps):
    """Keep the reasons there are; name what fails now, forget what passes."""
    head = [line for line in GAPS.read_text().splitlines() if line.startswith("#")] if GAPS.exists() else []
    for name, answer in answers.items():
        if passes(answer):
            gaps.pop(name, None)
        else:
            missing = any("does not exist" in m for _, m in answer["failures"])
            gaps.setdefault(name, "not implemented yet" if missing else "differs")
    GAPS.write_text("\n".join(head + [f"{n} {why}" for n, why in sorted(gaps.items())]) + "\n")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("ops", nargs="*")
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--fast", action="store_true")
    options.add_argument("--reference", action="store_true")
    options.add_argument("--failures", type=int, default=6, help="kinds of failures shown per op")
    options.add_argument("--write-gaps", action="store_true")
    options.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.worker:
        return work(chosen.fast, chosen.reference)
    start = time.monotonic()
    flags = ["--fast"] * chosen.fast + ["--reference"] * chosen.reference
    jobs = max(1, min(chosen.jobs, len(chosen.ops) or chosen.jobs))
    try:
        answers = compare(
            chosen.ops, jobs, flags, lambda name, answer: print(describe(name, answer, chosen.failures), flush=True)
        )
    except LookupError as error:
        sys.exit(str(error))
    gaps = read_gaps() if GAPS.exists() else {}
    if chosen.write_gaps:
        write_gaps(answers, gaps)
        return 0
    wrong = judge(again_in_full(answers, gaps, jobs) if chosen.fast else answers, gaps)
    print("\n".join(wrong))
    good = sum(passes(a) for a in answers.values())
    cases, all_cases = sum(a["passed"] for a in answers.values()), sum(a["total"] for a in answers.values())
    print(
        f"compat: {good} of {len(answers)} ops, {cases} of {all_cases} cases in {time.monotonic() - start:.0f} s; "
        f"{len(gaps)} ops in gaps.txt, {len(wrong)} disagree with it"
    )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
