"""Start several processes of one function and wait for them; an exception in one ends the others and is raised here.

>>> issubclass(lucid.multiprocessing.ProcessRaisedException, lucid.multiprocessing.ProcessException)
True
"""

import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import traceback

__all__ = ["ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "spawn", "start_processes"]


class ProcessException(Exception):
    """A process that was started did not end well.

    >>> lucid.multiprocessing.ProcessException("no", 1, 2).pid
    2
    """

    def __init__(self, msg, error_index, pid):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """It raised.

    >>> lucid.multiprocessing.ProcessRaisedException("no", 1, 2).error_index
    1
    """


class ProcessExitedException(ProcessException):
    """It exited by itself or by a signal.

    >>> lucid.multiprocessing.ProcessExitedException("no", 1, 2, 3).exit_code
    3
    """

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _wrapped(fn, number, args, error_file):
    try:
        fn(number, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


class ProcessContext:
    """Processes that `start_processes` started.

    >>> lucid.multiprocessing.ProcessContext([], []).join()
    True
    """

    def __init__(self, processes, error_files):
        self.processes, self.error_files = processes, error_files
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self):
        """The numbers of the processes."""
        return [process.pid for process in self.processes]

    def join(self, timeout=None, grace_period=None):
        """Wait until one has ended; True if all have. Raises if one failed, after ending the others."""
        if not self.sentinels:
            return True
        failed = None
        for sentinel in multiprocessing.connection.wait(list(self.sentinels), timeout=timeout):
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join()
        self._raise(failed)
        return False

    def _raise(self, index):
        process, path = self.processes[index], self.error_files[index]
        if os.path.exists(path) and os.path.getsize(path):
            with open(path, "rb") as file:
                text = pickle.load(file)
            head = f"\n\n-- Process {index} terminated with the following error:\n"
            raise ProcessRaisedException(head + text, index, process.pid)
        if process.exitcode < 0:
            name = signal.Signals(-process.exitcode).name
            raise ProcessExitedException(
                f"process {index} terminated with signal {name}", index, process.pid, process.exitcode, name
            )
        raise ProcessExitedException(
            f"process {index} terminated with exit code {process.exitcode}", index, process.pid, process.exitcode
        )


SpawnContext = ProcessContext


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Start fn(number, *args) in nprocs processes; wait for them, or give a `ProcessContext`.

    >>> lucid.multiprocessing.start_processes(print, nprocs=0)
    """
    context = multiprocessing.get_context(start_method)
    processes, files = [], []
    for number in range(nprocs):
        handle, path = tempfile.mkstemp(prefix="lucid-errorfile-", suffix=".pickle")
        os.close(handle)
        os.unlink(path)
        process = context.Process(target=_wrapped, args=(fn, number, args, path), daemon=daemon)
        process.start()
        processes.append(process)
        files.append(path)
    started = ProcessContext(processes, files)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """`start_processes` with fresh processes.

    >>> lucid.multiprocessing.spawn(print, nprocs=0)
    """
    return start_processes(fn, args, nprocs, join, daemon, start_method)
