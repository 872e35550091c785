"""Event files for TensorBoard, by PyTorch's SummaryWriter; the package `tensorboard` writes them (`pip install tensorboard`).

    from lucid.utils.tensorboard import SummaryWriter

    with SummaryWriter("runs/first") as writer:
        for step, loss in enumerate(losses):
            writer.add_scalar("loss", loss, step)
        writer.add_histogram("weight", model.weight, step)

`writer.py` keeps the files, `summaries.py` turns values into TensorBoard's messages. Graphs of models, videos, meshes and
embeddings are refused. Without the package `tensorboard` the names of this module raise an ImportError that says so.
"""

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]  # noqa: F822 (made by __getattr__)


def __getattr__(name):
    if name == "summary":  # PyTorch's name of the module
        from importlib import import_module

        return import_module(f"{__name__}.summary")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import summaries, writer

    summaries._messages()
    if name != "RecordWriter":
        return getattr(writer, name)
    from tensorboard.summary.writer.record_writer import RecordWriter

    return RecordWriter
