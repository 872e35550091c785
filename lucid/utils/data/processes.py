"""Batches made by worker processes.

Each worker has its own channel and a fixed number of batches to make ahead. The loader waits on all channels and on the
processes themselves at once, so a worker that dies is noticed when it dies, not after a timeout. Batches are handed out in
order.
"""

import contextlib
import itertools
import multiprocessing
import os
import select
import socket
import time
import weakref
from multiprocessing import connection

from . import worker as workers
from .dataloader import Batches


class _Worker:
    """A process, the channel to it, and its number of outstanding batches."""

    def __init__(self, process, channel):
        self.process, self.channel = process, channel
        self.owed, self.active, self.arenas = 0, True, workers.Arenas()

    def fileno(self):
        return self.channel.fileno()

    def send(self, kind, task, keys):
        workers.send(self.channel, (kind, task, keys, self.arenas.freed()))


class Workers(Batches):
    """Batches made by processes.

    >>> loader = lucid.utils.data.DataLoader([1, 2], num_workers=1, multiprocessing_context="fork")
    >>> [batch.tolist() for batch in Workers(loader)]
    [[1], [2]]
    """

    def __init__(self, loader):
        super().__init__(loader)
        loader = self.loader
        context = loader.multiprocessing_context or multiprocessing.get_context()
        forks = context.get_start_method() == "fork"
        self.closed, self.workers = False, []
        self.finalizer = weakref.finalize(self, _end, self.workers, os.getpid())
        try:
            for number in range(loader.num_workers):
                here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                inherited = [w.fileno() for w in self.workers] + [here.fileno()] if forks else []
                arguments = (loader.dataset, loader._batched, loader.collate_fn, loader.drop_last)
                about = (self.seed, number, loader.num_workers, loader.worker_init_fn, os.getpid())
                process = context.Process(target=workers.run, args=(there, inherited, *arguments, *about), daemon=True)
                try:
                    process.start()
                except BaseException:
                    here.close()
                    raise
                finally:
                    there.close()
                self.workers.append(_Worker(process, here))
        except BaseException:
            self.close()
            raise
        self.start()

    def start(self):
        """The first batches of an epoch."""
        self.next_task = self.next_out = 0
        self.tasks, self.arrived, self.backlog = {}, {}, []
        self.turn = itertools.cycle(self.workers)
        self.exhausted = False
        for _ in range(max(1, self.loader.prefetch_factor) * len(self.workers)):
            self.ask()

    def begin_again(self, loader):
        """The next epoch with the same processes."""
        self.loader = loader._seen()
        for worker, _, _ in self.backlog:  # what was never sent
            worker.owed -= 1
        self.settle()  # what was still on its way is of the last epoch
        for worker in self.workers:
            try:
                worker.send(workers.RESUME, -1, None)
            except (BrokenPipeError, ConnectionResetError):
                self.lost(worker)
            worker.owed, worker.active = worker.owed + 1, True
        self.settle()
        self.keys, self.count = loader._keys(), 0
        self.start()

    def settle(self):
        """Receive and discard all outstanding batches."""
        end = self.deadline()
        while any(worker.owed for worker in self.workers):
            for worker in self.heard(end):
                self.take(worker)

    def deadline(self):
        """The moment at which a wait that begins now has been too long."""
        return time.monotonic() + self.loader.timeout if self.loader.timeout else None

    def ask(self):
        """Send the next keys to the next worker that is not exhausted."""
        worker = next((w for w in itertools.islice(self.turn, len(self.workers)) if w.active), None)
        if worker is None or self.exhausted:
            return
        try:
            keys = next(self.keys)
        except StopIteration:
            self.exhausted = True
            return
        self.tasks[self.next_task] = worker
        worker.owed += 1
        self.backlog.append((worker, self.next_task, keys))
        self.next_task += 1
        self.post()

    def post(self):
        """Send without blocking: waiting for a worker that waits for us to read would be a deadlock."""
        waiting = []
        for worker, task, keys in self.backlog:
            writable = select.poll()  # not select(), which ends at descriptor 1023
            writable.register(worker.channel, select.POLLOUT)
            if writable.poll(0):
                try:
                    worker.send(workers.FETCH, task, keys)
                except (BrokenPipeError, ConnectionResetError):
                    self.lost(worker)
            else:
                waiting.append((worker, task, keys))
        self.backlog = waiting

    def take(self, worker):
        """Receive one answer of a worker."""
        try:
            kind, task, value = workers.receive(worker.channel, worker.arenas)
        except EOFError:
            self.lost(worker)
        worker.owed -= 1
        return kind, task, value

    def lost(self, worker):
        """Raise for a worker that ended unexpectedly."""
        worker.process.join(5)
        code, pid = worker.process.exitcode, worker.process.pid
        how = f"killed by signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        self.close()
        raise RuntimeError(
            f"DataLoader worker (pid(s) {pid}) exited unexpectedly ({how}). It may have run out of memory, or crashed in the "
            "dataset's code: num_workers=0 shows the error here"
        )

    def __next__(self):
        if self.closed:
            raise StopIteration
        loader, end = self.loader, self.deadline()
        while True:
            if loader.in_order:
                while self.next_out < self.next_task and self.next_out not in self.tasks and self.next_out not in self.arrived:
                    self.next_out += 1  # asked of a worker that had come to its end
                ready = self.next_out if self.next_out in self.arrived else None
            else:
                ready = next(iter(self.arrived), None)
            if ready is not None:
                value = self.arrived.pop(ready)
                self.next_out = max(self.next_out, ready + 1) if loader.in_order else self.next_out
                self.ask()
                if isinstance(value, workers.Failure):
                    self.close_unless_persistent()
                    value.throw()
                return self.handed_out(value)
            if not self.tasks:
                self.close_unless_persistent()
                raise StopIteration
            self.wait(end)

    def heard(self, end):
        """The workers that have answered, at least one. Raises on timeout, or if a worker with outstanding batches ends."""
        owing = [w for w in self.workers if w.owed]
        watched = [*owing, *(w.process.sentinel for w in owing)]
        left = None if end is None else max(0.0, end - time.monotonic())
        ready = connection.wait(watched, left)
        if not ready:
            self.close()
            raise RuntimeError(f"DataLoader timed out after {self.loader.timeout} seconds")
        heard = [w for w in owing if w in ready]
        if not heard:  # only ends of processes
            self.lost(next(w for w in owing if w.process.sentinel in ready))
        return heard

    def wait(self, end):
        """Take what has arrived; at least one answer, unless it is time."""
        for worker in self.heard(end):
            kind, task, value = self.take(worker)
            del self.tasks[task]
            if kind == workers.EXHAUSTED:
                worker.active = False
                self.ask()
            else:
                self.arrived[task] = value
        self.post()

    def close_unless_persistent(self):
        if not self.loader.persistent_workers:
            self.close()

    def close(self):
        self.closed = True
        self.finalizer()


def _end(ended, owner):
    """Stop processes: the end of a channel ends the worker behind it; one that hangs is killed."""
    if os.getpid() != owner:  # a copy of the loader in a forked process: a worker of another loader, perhaps
        for worker in ended:
            worker.channel.close()
        return
    for worker in ended:
        with contextlib.suppress(OSError):
            worker.channel.shutdown(socket.SHUT_RDWR)  # also where a forked process has a copy of this end
        worker.channel.close()
    end = time.monotonic() + 5
    for worker in ended:
        worker.process.join(max(0.1, end - time.monotonic()))
        if worker.process.is_alive():
            worker.process.terminate()
            worker.process.join(1)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        worker.process.close()
    ended.clear()
