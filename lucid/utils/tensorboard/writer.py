"""SummaryWriter: a folder of event files. TensorBoard's own writer queues events and writes them on a thread."""

import os
import time

from . import summaries

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """One event file.

    >>> from importlib.util import find_spec
    >>> from tempfile import TemporaryDirectory
    >>> if find_spec("tensorboard"):
    ...     with TemporaryDirectory() as folder:
    ...         lucid.utils.tensorboard.FileWriter(folder).close()
    """

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix=""):
        self.event_writer = summaries._messages().EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self):
        """The folder."""
        return self.event_writer.get_logdir()

    def add_event(self, event, step=None, walltime=None):
        """Queue an event, with the time of now unless one is given."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary, global_step=None, walltime=None):
        """Queue an event that holds a summary."""
        self.add_event(summaries._messages().Event(summary=summary), global_step, walltime)

    def flush(self):
        """Write what is queued."""
        self.event_writer.flush()

    def close(self):
        """Write what is queued and close the file."""
        self.event_writer.close()

    def reopen(self):
        """Go on in a new file of the same folder, after close()."""
        self.event_writer.reopen()


def _default_folder(comment):
    import socket
    from datetime import datetime

    return os.path.join("runs", f"{datetime.now():%b%d_%H-%M-%S}_{socket.gethostname()}{comment}")


def _refuse(name, instead):
    def refuse(self, *args, **kwargs):
        raise NotImplementedError(f"SummaryWriter.{name} is not in Lucid: {instead}")

    refuse.__name__ = name
    refuse.__doc__ = f"Absent: {instead}."
    return refuse


class SummaryWriter:
    """Writes what a program logs into a folder that TensorBoard reads: `tensorboard --logdir runs`.

    `log_dir` is the folder, by default runs/TIME_HOST + `comment`. `purge_step` hides what an interrupted run wrote at
    that step and after it. Every method takes the step and, in `walltime`, another time than now.

    >>> from importlib.util import find_spec
    >>> from tempfile import TemporaryDirectory
    >>> if find_spec("tensorboard"):
    ...     with TemporaryDirectory() as folder, lucid.utils.tensorboard.SummaryWriter(folder) as writer:
    ...         for step in range(3):
    ...             writer.add_scalar("loss", 1 / (step + 1), step)
    """

    def __init__(self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""):
        self.log_dir = log_dir or _default_folder(comment)
        self.purge_step, self.max_queue, self.flush_secs = purge_step, max_queue, flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer = self.all_writers = None
        self._get_file_writer()
        self.default_bins = summaries._default_bins()

    def _get_file_writer(self):
        """The writer of the folder: made anew after close()."""
        if self.file_writer is None:
            self.file_writer = self._writer(self.log_dir)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                step, self.purge_step = self.purge_step, None
                messages = summaries._messages()
                started = messages.SessionLog(status=messages.SessionLog.START)
                self.file_writer.add_event(messages.Event(step=step, file_version="brain.Event:2"))
                self.file_writer.add_event(messages.Event(step=step, session_log=started))
        return self.file_writer

    def _writer(self, folder):
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def get_logdir(self):
        """The folder."""
        return self.log_dir

    def _add(self, summary, step, walltime):
        self._get_file_writer().add_summary(summary, step, walltime)

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        """A number; `new_style` stores it as a tensor, and then `double_precision` keeps a double."""
        self._add(summaries._scalar(tag, scalar_value, new_style, double_precision), global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Several numbers in one chart: each goes into a folder of its own, as TensorBoard wants it."""
        walltime = time.time() if walltime is None else walltime
        folder = self._get_file_writer().get_logdir()
        for tag, value in tag_scalar_dict.items():
            path = os.path.join(folder, f"{main_tag.replace('/', '_')}_{tag}")
            if path not in self.all_writers:
                self.all_writers[path] = self._writer(path)
            self.all_writers[path].add_summary(summaries._scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag, tensor, global_step=None, walltime=None):
        """A whole tensor."""
        self._add(summaries._tensor(tag, tensor), global_step, walltime)

    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None):
        """How values are distributed; `bins` may be edges, their number or a rule of numpy.histogram."""
        bins = self.default_bins if isinstance(bins, str) and bins == "tensorflow" else bins
        self._add(summaries._histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self,
        tag,
        min,  # noqa: A002 (PyTorch's names)
        max,  # noqa: A002
        num,
        sum,  # noqa: A002
        sum_squares,
        bucket_limits,
        bucket_counts,
        global_step=None,
        walltime=None,
    ):
        """A histogram that the caller has counted."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        counted = summaries._histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._add(counted, global_step, walltime)

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"):
        """An image: bytes, or floats from 0 to 1."""
        self._add(summaries._image(tag, img_tensor, dataformats), global_step, walltime)

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW"):
        """Several images as a grid."""
        self._add(summaries._image(tag, img_tensor, dataformats), global_step, walltime)

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None):
        """A figure of matplotlib, or a list of them."""
        pixels = summaries._pixels_of_figure(figure, close)
        self.add_image(tag, pixels, global_step, walltime, "NCHW" if isinstance(figure, list) else "CHW")

    def add_audio(self, tag, snd_tensor, global_step=None, sample_rate=44100, walltime=None):
        """A mono sound, floats from -1 to 1."""
        self._add(summaries._audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        """A text in Markdown."""
        self._add(summaries._text(tag, text_string), global_step, walltime)

    def add_pr_curve(self, tag, labels, predictions, global_step=None, num_thresholds=127, weights=None, walltime=None):
        """Precision and recall of predictions from 0 to 1 of labels 0 and 1."""
        labels, predictions = summaries._array(labels), summaries._array(predictions)
        weights = None if weights is None else summaries._array(weights)
        thresholds = min(num_thresholds, 127)
        rows = summaries._curve(labels, predictions, thresholds, weights)
        self._add(summaries._pr_curve(tag, rows, thresholds), global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag,
        true_positive_counts,
        false_positive_counts,
        true_negative_counts,
        false_negative_counts,
        precision,
        recall,
        global_step=None,
        num_thresholds=127,
        weights=None,
        walltime=None,
    ):
        """Precision and recall that the caller has counted, one number per threshold; `weights` belong into the counts."""
        if weights is not None:
            raise ValueError("add_pr_curve_raw: weights are part of the counts; pass None")
        given = (true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts, precision, recall)
        rows = summaries.np.stack([summaries.np.asarray(values) for values in given])
        self._add(summaries._pr_curve(tag, rows, min(num_thresholds, 127)), global_step, walltime)

    def add_custom_scalars(self, layout):
        """Charts of several scalars: {category: {title: ["Multiline" or "Margin", tags]}}."""
        self._add(summaries._custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(self, tags, category="default", title="untitled"):
        """A chart of several scalars."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags, category="default", title="untitled"):
        """A chart of a value between two bounds: three tags."""
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_hparams(self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None):
        """Hyperparameters of a run and what it reached, in a folder `run_name` (default: the time)."""
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        parts = summaries._hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))
        with SummaryWriter(folder) as writer:
            for part in parts:
                writer.file_writer.add_summary(part, global_step)
            for tag, value in metric_dict.items():
                writer.add_scalar(tag, value, global_step)

    add_graph = _refuse("add_graph", "it shows TorchScript; print lucid.fx.symbolic_trace(model).graph")
    add_onnx_graph = _refuse("add_onnx_graph", "ONNX files are not read")
    add_video = _refuse("add_video", "log frames with add_images")
    add_mesh = _refuse("add_mesh", "meshes are not written")
    add_embedding = _refuse("add_embedding", "log an image of the points with add_figure")
    add_image_with_boxes = _refuse("add_image_with_boxes", "draw the boxes into the image")

    def flush(self):
        """Write what is queued."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self):
        """Write what is queued and close the files; a later call opens new ones."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()
