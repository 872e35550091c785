"""`profile`: records the calls of a program, step by step if a schedule says so."""

import os
import time
from enum import Enum, IntEnum

from ..autograd import profiler as _recorder

__all__ = ["ProfilerAction", "ProfilerActivity", "profile", "schedule", "supported_activities", "tensorboard_trace_handler"]


class ProfilerActivity(IntEnum):
    """What can be profiled: CPU, and CUDA where there is a GPU.

    >>> lucid.profiler.ProfilerActivity.CPU in lucid.profiler.supported_activities()
    True
    """

    CPU, XPU, CUDA, HPU, MTIA, PrivateUse1 = range(6)


class ProfilerAction(Enum):
    """What a schedule says about a step.

    >>> lucid.profiler.schedule(wait=1, warmup=0, active=1)(0) is lucid.profiler.ProfilerAction.NONE
    True
    """

    NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)


def supported_activities():
    """What `profile(activities=...)` records here. CUDA also needs NVIDIA's CUPTI (pip install nvidia-cuda-cupti): it is asked
    for when a recording starts.

    >>> lucid.profiler.ProfilerActivity.CPU in lucid.profiler.supported_activities()
    True
    """
    from .. import cuda

    return {ProfilerActivity.CPU} | ({ProfilerActivity.CUDA} if cuda.is_available() else set())


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """A schedule: skips `skip_first` steps; then in turn waits, warms up and records, `repeat` times (0: for ever).
    `skip_first_wait`: the first turn does not wait.

    >>> plan = lucid.profiler.schedule(wait=1, warmup=1, active=2)
    >>> [plan(step).name for step in range(4)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE']
    """
    if not (wait >= 0 and warmup >= 0 and active > 0 and repeat >= 0 and skip_first >= 0):
        raise AssertionError("Invalid profiler schedule arguments")

    def action(step):
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        turn = wait + warmup + active
        if repeat > 0 and step // turn >= repeat:
            return ProfilerAction.NONE
        at = step % turn
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < turn - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def _default_schedule_fn(step):
    return ProfilerAction.RECORD


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """An `on_trace_ready` that writes traces where TensorBoard's profiler plug-in looks for them.

    >>> import tempfile, os
    >>> folder = tempfile.mkdtemp()
    >>> with lucid.profiler.profile(on_trace_ready=lucid.profiler.tensorboard_trace_handler(folder, "w")):
    ...     x = lucid.ones(2)
    >>> os.listdir(folder)[0].endswith(".pt.trace.json")
    True
    """
    import socket

    def handle(prof):
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handle


def _recorded(activities, use_cuda):
    wanted = set(activities) if activities else supported_activities()
    if use_cuda:
        wanted.add(ProfilerActivity.CUDA)
    usable = supported_activities()
    for activity in sorted(wanted - usable):
        import warnings

        name = ProfilerActivity(activity).name
        warnings.warn(f"{name} is not available, disabling {name} profiling", stacklevel=4)
    return wanted & usable


class profile:  # noqa: N801 (PyTorch's name)
    """Records calls: names, times, and on demand input shapes, memory, the lines of the program and FLOPs. With the activity
    CUDA (the default where there is a GPU) also the kernels, copies and fills that they started there.

    `step()` tells a schedule that a step of training ends; `on_trace_ready` is called with the profiler after each turn of
    the schedule, and at the end. The calls of the thread that started it are recorded.

    >>> model = lucid.nn.Linear(4, 2)
    >>> with lucid.profiler.profile(record_shapes=True) as prof:
    ...     loss = model(lucid.ones(3, 4)).sum()
    >>> print([(k.key, k.input_shapes) for k in prof.key_averages(group_by_input_shape=True) if "linear" in k.key])
    [('aten::linear', [[3, 4], [2, 4], [2]])]
    """

    def __init__(
        self,
        *,
        activities=None,
        schedule=None,
        on_trace_ready=None,
        record_shapes=False,
        profile_memory=False,
        with_stack=False,
        with_flops=False,
        with_modules=False,
        experimental_config=None,
        execution_trace_observer=None,
        acc_events=False,
        use_cuda=None,
        custom_trace_id_callback=None,
    ):
        if execution_trace_observer is not None:
            raise NotImplementedError("profiler: execution_trace_observer is not supported")
        self.activities = _recorded(activities, use_cuda)
        self.profiler = _recorder.profile(
            bool(self.activities),
            use_cpu=ProfilerActivity.CPU in self.activities,
            use_device="cuda" if ProfilerActivity.CUDA in self.activities else None,
            record_shapes=record_shapes,
            with_flops=with_flops,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_modules=with_modules,
            experimental_config=experimental_config,
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
        )
        self.record_shapes, self.with_flops, self.profile_memory = record_shapes, with_flops, profile_memory
        self.with_stack, self.acc_events, self.on_trace_ready = with_stack, acc_events, on_trace_ready
        self.schedule, self.record_steps = schedule or _default_schedule_fn, schedule is not None
        self.step_num, self.current_action = 0, self.schedule(0)
        self._recording, self._step_range, self._metadata = False, None, {}

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exception):
        self.stop()

    def start(self):
        """Begin, with the action of step 0."""
        self._turn(None)
        self._open_step()

    def stop(self):
        """End; what was recorded is handed to `on_trace_ready`."""
        self._close_step()
        if self._recording:
            self._end_trace()

    def step(self):
        """The next step of the schedule begins."""
        self._close_step()
        before, self.step_num = self.current_action, self.step_num + 1
        self.current_action = self.schedule(self.step_num)
        self._turn(before)
        self._open_step()

    _ON = (ProfilerAction.WARMUP, ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)

    def _turn(self, before):
        """From one action to the next. Warming up records too, and throws it away: the first recorded step then finds
        everything in place."""
        now = self.current_action
        if before is ProfilerAction.RECORD_AND_SAVE and self._recording:
            self._end_trace()
        if self._recording and (now is ProfilerAction.NONE or before is ProfilerAction.WARMUP and now is not before):
            self._drop()
        if not self._recording and now in self._ON:
            self.profiler._start() if self.profiler.enabled else None
            self._recording = True

    def _drop(self):
        from .. import _C

        if self.profiler.enabled:
            _C._profile_stop()
        self._recording = False

    def _end_trace(self):
        self._recording = False
        if self.profiler.enabled:
            self.profiler._stop()
        if self.on_trace_ready:
            self.on_trace_ready(self)

    def _open_step(self):
        if self.record_steps:
            self._step_range = _recorder.record_function(f"ProfilerStep#{self.step_num}")
            self._step_range.__enter__()

    def _close_step(self):
        if self._step_range is not None:
            self._step_range.__exit__(None, None, None)
            self._step_range = None

    def events(self):
        """All events of the last trace: calls in the order in which they began, then what ran on devices in such order."""
        return self.profiler._checked()

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        """Averages per name; `.table(sort_by=...)` prints them."""
        return self.profiler.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path):
        """Write a file that Perfetto and chrome://tracing open; `.json.gz` is compressed."""
        from ._trace import write_trace

        options = {"record_shapes": int(self.record_shapes), "with_flops": int(self.with_flops)}
        options |= {"profile_memory": int(self.profile_memory), "with_stack": int(self.with_stack)}
        write_trace(path, self.events(), {"trace_id": self.get_trace_id(), **options, **self._metadata})

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write what flame graph tools read; needs `with_stack=True`."""
        return self.profiler.export_stacks(path, metric)

    def add_metadata(self, key, value):
        """Text that goes into the trace."""
        self._metadata[key] = value

    def add_metadata_json(self, key, value):
        """The same of a text in JSON."""
        import json

        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def get_trace_id(self):
        """What names the trace: of `custom_trace_id_callback`, or a random one."""
        return self.profiler.trace_id

    def export_memory_timeline(self, path, device=None):
        """Refused: memory is recorded per call; see `profile_memory=True`."""
        raise NotImplementedError(
            "export_memory_timeline is not supported; profile_memory=True records the bytes of every call"
        )
