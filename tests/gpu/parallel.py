"""The tests of this folder in several processes on one GPU, with pytest alone: a machine with a GPU need not have pytest-xdist.

    python -m tests.gpu.parallel [--processes N] [--under COMMAND] [--hangs SECONDS] [arguments of pytest]

Every process collects all tests and draws groups of them from a common counter, so none waits for another: the samples of one
op are a group, since they share kernels that are compiled once. A process that dies, hangs or loses its device costs the test
that it ran, which counts as failed; another one takes over what it had drawn. In the end every collected test has an outcome,
or the run failed. The same file is the plugin of these processes (`-p tests.gpu.parallel`).
"""

import argparse
import fcntl
import itertools
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

FOLDER = "LUCID_TEST_SHARE"  # of the environment: where the processes of a run meet; its absence turns the plugin off
LOST = 86  # exit status of a process whose device answers no more
FIRST = ("test_emulated", "test_planted", "test_op_db")  # their tests take longest
MOST_IN_FULL = 30  # failures printed in full; all are in the log


# --- the plugin: one of the processes ---
def group_of(item, sizes):
    """What is drawn together: the samples of an op, tests that say so, a function of few cases, or a single case."""
    mark = item.get_closest_marker("xdist_group")
    if mark:
        return f"{item.nodeid.split('::')[0]}[{mark.args[0]}]"
    function = item.nodeid.split("[")[0]
    sample = getattr(item, "callspec", None) and item.callspec.params.get("sample")
    if hasattr(sample, "op"):
        return f"{function}[{sample.op}]"
    return function if sizes[function] < 20 else item.nodeid


def groups_of(items):
    """Lists of places in `items`, the long ones first; the same in every process."""
    sizes, groups = {}, {}
    for item in items:
        function = item.nodeid.split("[")[0]
        sizes[function] = sizes.get(function, 0) + 1
    for place, item in enumerate(items):
        groups.setdefault(group_of(item, sizes), []).append(place)

    def order(name):
        return next((k for k, file in enumerate(FIRST) if file in name), len(FIRST))

    return [groups[name] for name in sorted(groups, key=order)]


class Part:
    def __init__(self, folder):
        self.folder, self.outcomes = folder, {}
        self.left = json.loads(os.environ.get("LUCID_TEST_LEFT", "[]"))  # drawn by a process that is no more
        self.log = open(os.environ["LUCID_TEST_LOG"], "a", buffering=1)  # noqa: SIM115  until this process ends

    def say(self, **line):
        self.log.write(json.dumps(line) + "\n")

    def drawn(self):
        with open(self.folder / "counter", "a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            number = int(file.read() or 0)
            file.truncate(0)
            file.write(str(number + 1))
        return number

    def items(self, items):
        groups = groups_of(items)
        while True:
            places = self.left
            if not places:
                number = self.drawn()
                if number >= len(groups):
                    return
                places = groups[number]
            self.say(drawn=places)
            self.left = []
            for place in places:
                yield place, items[place]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            raise session.Interrupted(f"{session.testsfailed} errors while collecting")
        if session.config.option.collectonly:
            return None
        self.say(collected=[item.nodeid for item in session.items])
        todo = self.items(session.items)
        here = next(todo, None)
        while here:
            following = next(todo, None)
            place, item = here
            self.say(started=place)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following and following[1])
            outcome, text = self.outcomes.pop(item.nodeid, ("failed", "pytest reported nothing"))
            self.say(done=place, outcome=outcome, text=text)
            if outcome == "failed" and not device_answers():
                self.say(lost=place)
                self.log.close()
                os._exit(LOST)  # every later test would fail
            if session.shouldfail or session.shouldstop:
                self.say(stopped=True)
                raise session.Failed(session.shouldfail or session.shouldstop)
            here = following
        return True

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report):
        outcome, text = self.outcomes.get(report.nodeid, ("passed", ""))
        if report.outcome != "passed" and outcome != "failed":
            outcome = report.outcome
        if report.failed:
            text += report.longreprtext + "".join(f"\n{head}: {body}" for head, body in report.sections)
        self.outcomes[report.nodeid] = outcome, text

    def pytest_collectreport(self, report):
        if report.failed:
            self.say(broken=report.nodeid, text=report.longreprtext)


def device_answers():
    import lucid

    if not lucid.cuda.is_available():
        return True
    try:
        for _ in range(2):  # the first may raise what an earlier kernel noticed
            try:
                return lucid.ones(1, device="cuda").item() == 1
            except IndexError:
                pass
        return True
    except Exception:  # noqa: BLE001  whatever it says
        return False


def pytest_configure(config):
    if FOLDER in os.environ and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Part(pathlib.Path(os.environ[FOLDER])))


# --- the run ---
class Process:
    def __init__(self, run, left=()):
        self.run, self.started, self.drawn, self.done, self.read = run, None, list(left), set(), 0
        self.path = run.folder / f"{next(run.numbers)}.jsonl"
        self.output = tempfile.TemporaryFile()  # noqa: SIM115  until this object goes
        environment = os.environ | {
            FOLDER: str(run.folder), "LUCID_TEST_LOG": str(self.path), "LUCID_TEST_LEFT": json.dumps(self.drawn),
            "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        command = [*run.under, sys.executable, "-X", "faulthandler", "-m", "pytest", "-p", "tests.gpu.parallel"]
        command += ["-p", "no:xdist", "-p", "no:cacheprovider", "--no-header", "--tb=short", *run.arguments]
        command += ["-v"] if run.under else ["-q"]  # its reports stand below the name of the test that ran
        self.process = subprocess.Popen(
            command, env=environment, stdout=self.output, stderr=subprocess.STDOUT, start_new_session=True
        )
        self.heard = time.monotonic()

    def lines(self):
        """What the process has said since the last time."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self.read)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self.read += len(whole)
        for line in whole.splitlines():
            self.heard = time.monotonic()
            yield json.loads(line)

    def tail(self, size=3000):
        self.output.seek(0, os.SEEK_END)
        self.output.seek(max(0, self.output.tell() - size))
        return self.output.read().decode(errors="replace")

    def reports(self, most=60):
        """What a sanitizer said, each part below the test that ran then."""
        self.output.seek(0)
        found, test = [], ""
        for line in self.output.read().decode(errors="replace").splitlines():
            if "::" in line:
                test = line
            if line.startswith("========= ") and " Host Frame" not in line:
                found += [test] * (test not in found) + [line]
        return "\n".join(found[:most])

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


class Run:
    def __init__(self, given, arguments, folder):
        self.arguments, self.folder, self.hangs, self.under = arguments, folder, given.hangs, shlex.split(given.under)
        self.numbers, self.ids, self.outcomes, self.failures, self.errors = itertools.count(), None, {}, [], []
        self.stopped, self.restarts = False, 0
        self.log = open(given.log, "w", buffering=1)  # noqa: SIM115  until the run ends

    def note(self, name, text):
        self.failures.append((name, text))
        said = f"\n=== FAILED {name}\n{text}\n"
        self.log.write(said)
        if len(self.failures) <= MOST_IN_FULL:
            print(said if len(said) < 4000 else said[:1500] + "\n...\n" + said[-2300:], end="", flush=True)

    def hear(self, process):
        for line in process.lines():
            if "collected" in line:
                if self.ids not in (None, line["collected"]):
                    self.errors.append("the processes collected different tests")
                self.ids = line["collected"]
            elif "drawn" in line:
                process.drawn = [p for p in process.drawn if p not in line["drawn"]] + line["drawn"]
            elif "started" in line:
                process.started = line["started"]
            elif "done" in line:
                process.started = None
                process.done.add(line["done"])
                self.outcomes[line["done"]] = line["outcome"]
                if line["outcome"] == "failed":
                    self.note(self.ids[line["done"]], line["text"])
            elif "broken" in line and line["broken"] not in [name for name, _ in self.failures]:
                self.note(line["broken"], line["text"])
            elif "stopped" in line:
                self.stopped = True

    def over(self, process, why):
        """A process has ended; another one if there is work that it had drawn."""
        self.hear(process)
        code = process.process.returncode
        if self.stopped or (why is None and process.started is None and code in (0, 1, 5)):
            return None
        why = why or (f"died by signal {-code}" if code < 0 else f"ended with status {code}")
        if process.started is not None:
            self.outcomes[process.started] = "failed"
            process.done.add(process.started)
            self.note(
                self.ids[process.started], f"the process {why}\n{process.tail(1500)}\n{self.alone_command(process.started)}"
            )
        elif code != LOST:
            self.errors.append(f"a process {why}\n{process.reports() if self.under else process.tail()}")
            if not process.done:  # not even one test: the next would end alike
                return None
        left = [p for p in process.drawn if p not in process.done]
        if self.under and not left and process.started is None:  # it ran to its end, and the sanitizer found something
            return None
        self.restarts += 1
        if self.restarts > 200:
            self.errors.append("200 processes died: the rest is not run")
            return None
        return Process(self, left)

    def alone_command(self, place):
        words = f"PYTHONPATH={os.environ.get('PYTHONPATH', '')}", sys.executable, "-m", "pytest", self.ids[place]
        return "to run it alone: " + " ".join(map(shlex.quote, words))

    def go(self, count):
        running, last = [Process(self) for _ in range(count)], time.monotonic()
        try:
            while running:
                time.sleep(0.1)
                for process in list(running):
                    self.hear(process)
                    why = None
                    if process.process.poll() is None:
                        if time.monotonic() - process.heard < self.hangs:
                            continue
                        why = f"said nothing for {self.hangs:.0f} s"
                        process.end()
                    running.remove(process)
                    another = self.over(process, why)
                    if another:
                        running.append(another)
                if self.stopped:
                    break
                if time.monotonic() - last > 20:
                    last = time.monotonic()
                    print(f"{len(self.outcomes)} of {len(self.ids or [])}", flush=True)
        except KeyboardInterrupt:  # Ctrl-C, or `timeout -s INT`: what ran is told, and the run has failed
            self.stopped = True
            self.errors.append("interrupted")
        finally:
            for process in running:
                process.end()
                self.hear(process)


def summary(run, seconds, count):
    total = {kind: list(run.outcomes.values()).count(kind) for kind in ("passed", "failed", "skipped")}
    names = dict.fromkeys(name for name, _ in run.failures)
    missing = [name for place, name in enumerate(run.ids or []) if place not in run.outcomes]
    if missing and not run.stopped:
        run.errors.append(f"{len(missing)} tests did not run, {missing[0]} among them")
    for name in list(names)[:100]:
        print(f"FAILED {name}")
    if len(names) > 100:
        print(f"... and {len(names) - 100} more: {run.log.name}")
    for error in run.errors:
        print(f"ERROR {error}")
    stopped = f", {len(missing)} not run" if missing else ""
    words = ", ".join(f"{n} {kind}" for kind, n in total.items())
    print(f"tests/gpu: {words}{stopped} in {seconds:.0f} s with {count} processes")
    return bool(names or run.errors or total["failed"] or not run.outcomes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--processes", type=int, default=max(1, min(8, len(os.sched_getaffinity(0)) // 2)))
    parser.add_argument("--under", default="", help="a command before each process, such as compute-sanitizer")
    parser.add_argument("--hangs", type=float, default=1800, help="seconds after which a silent process is ended")
    parser.add_argument("--log", default="build/test-gpu.log", help="where failures are written in full")
    given, arguments = parser.parse_known_args()
    os.makedirs(os.path.dirname(given.log) or ".", exist_ok=True)
    folder, start = pathlib.Path(tempfile.mkdtemp(prefix="lucid-test-gpu-")), time.monotonic()
    try:
        run = Run(given, arguments, folder)
        run.go(given.processes)
        return summary(run, time.monotonic() - start, given.processes)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
