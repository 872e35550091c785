"""TensorBoard's messages (`Summary` protocol buffers) of tensors, arrays and numbers. Images and sums are computed with
NumPy, as the messages are made of its arrays; every function takes tensors, arrays and plain numbers."""

from functools import cache

import numpy as np

from ... import _C

__all__ = []


@cache
def _messages():
    """TensorBoard's classes of messages."""
    from types import SimpleNamespace

    try:
        from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, tensor_shape_pb2
        from tensorboard.summary.writer import event_file_writer
    except ImportError as error:
        raise ImportError("lucid.utils.tensorboard needs the package tensorboard: pip install tensorboard") from error
    modules = (event_pb2, summary_pb2, tensor_pb2, tensor_shape_pb2, event_file_writer)
    return SimpleNamespace(**{name: value for module in modules for name, value in vars(module).items() if name[0] != "_"})


def _array(value):
    """A value as a NumPy array of at least one dimension."""
    if isinstance(value, _C.Tensor):
        value = value.detach().cpu()
        value = value.float() if value.dtype == _C.bfloat16 else value
        return np.atleast_1d(value.numpy())
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, str) or (not np.isscalar(value) and not hasattr(value, "__array__")):
        raise NotImplementedError(f"Got {type(value)}, but numpy array or torch tensor are expected.")
    return np.atleast_1d(np.asarray(value))


def _summary(tag, **content):
    return _messages().Summary(value=[_messages().Summary.Value(tag=tag, **content)])


def _metadata(plugin, content=b""):
    return _messages().SummaryMetadata(plugin_data=_messages().SummaryMetadata.PluginData(plugin_name=plugin, content=content))


def _shape(sizes):
    return _messages().TensorShapeProto(dim=[_messages().TensorShapeProto.Dim(size=size) for size in sizes])


def _scalar(tag, value, new_style=False, double_precision=False):
    """One number; the new style stores it as a tensor, which loads faster, and can keep a double."""
    numbers = _array(value)
    if numbers.size != 1:
        raise AssertionError(f"Tensor should contain one element (0 dimensions). Was given size: {numbers.size}.")
    number = float(numbers.reshape(()))
    if not new_style:
        return _summary(tag, simple_value=number)
    if double_precision:
        tensor = _messages().TensorProto(double_val=[number], dtype="DT_DOUBLE")
    else:
        tensor = _messages().TensorProto(float_val=[number], dtype="DT_FLOAT")
    return _summary(tag, tensor=tensor, metadata=_metadata("scalars"))


_TENSORS = {  # dtype: TensorBoard's name, its field, the type of the field
    _C.float16: ("DT_HALF", "half_val", None),
    _C.bfloat16: ("DT_BFLOAT16", "half_val", None),
    _C.float32: ("DT_FLOAT", "float_val", float),
    _C.float64: ("DT_DOUBLE", "double_val", float),
    _C.int8: ("DT_INT8", "int_val", int),
    _C.uint8: ("DT_UINT8", "int_val", int),
    _C.int16: ("DT_INT16", "int_val", int),
    _C.int32: ("DT_INT32", "int_val", int),
    _C.int64: ("DT_INT64", "int64_val", int),
    _C.bool: ("DT_BOOL", "bool_val", bool),
    _C.complex64: ("DT_COMPLEX64", "scomplex_val", None),
    _C.complex128: ("DT_COMPLEX128", "dcomplex_val", None),
}


def _tensor(tag, values):
    """A whole tensor."""
    if values.dtype not in _TENSORS:
        raise ValueError(f"{tag} has unsupported tensor dtype {values.dtype}")
    if values.numel() * values.element_size() >= 1 << 31:
        raise ValueError("tensor is bigger than protocol buffer's hard limit of 2GB in size")
    kind, field, number = _TENSORS[values.dtype]
    flat = values.detach().cpu().reshape(-1)
    if values.is_complex():
        flat = _C.view_as_real(flat).reshape(-1)
    elif number is None:  # halves are stored by their bits
        flat = flat.view(_C.uint16)
    content = _messages().TensorProto(dtype=kind, tensor_shape=_shape(values.shape), **{field: flat.tolist()})
    return _summary(tag, tensor=content, metadata=_metadata("tensor"))


def _default_bins():
    """Edges of histograms: powers of 1.1 from 1e-12 to 1e20, their negatives, and 0."""
    edges, edge = [], 1e-12
    while edge < 1e20:
        edges.append(edge)
        edge *= 1.1
    return [-e for e in reversed(edges)] + [0] + edges


def _histogram(tag, values, bins, max_bins=None):
    """Counts of values in bins, from the first bin that has some to the last; TensorBoard stores the upper edge of each."""
    values = _array(values).astype(float).reshape(-1)
    if not values.size:
        raise ValueError("The input has no element.")
    counts, edges = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        joined = len(counts) // max_bins  # neighbours that become one bin
        counts = np.add.reduceat(counts, np.arange(0, len(counts), joined))
        edges = np.append(edges[:-1:joined], edges[-1])
    used = np.flatnonzero(counts)
    first, last = (used[0], used[-1] + 1) if used.size else (0, len(counts))
    below = counts[first - 1 : first] if first else [0]  # an empty bin, whose edge is where the first begins
    return _histogram_raw(
        tag,
        values.min(),
        values.max(),
        len(values),
        values.sum(),
        values.dot(values),
        edges[first : last + 1].tolist(),
        [*map(float, below), *map(float, counts[first:last])],
    )


def _histogram_raw(tag, smallest, largest, num, total, total_of_squares, limits, counts):
    """A histogram that the caller has counted."""
    content = _messages().HistogramProto(
        min=smallest, max=largest, num=num, sum=total, sum_squares=total_of_squares, bucket_limit=limits, bucket=counts
    )
    return _summary(tag, histo=content)


def _grid(images, columns=8):
    """(N, C, H, W) as one image of up to 8 columns; gray becomes three channels."""
    if images.shape[1] == 1:
        images = images.repeat(3, 1)
    n, channels, height, width = images.shape
    if channels != 3:
        raise AssertionError("Input should be a 4D numpy array with 3 channels")
    columns = min(n, columns)
    rows = -(-n // columns)
    whole = np.zeros((rows * columns, channels, height, width), images.dtype)
    whole[:n] = images
    whole = whole.reshape(rows, columns, channels, height, width).transpose(2, 0, 3, 1, 4)
    return whole.reshape(channels, rows * height, columns * width)


def _height_width_channels(pixels, order):
    order = order.upper()
    if len(set(order)) != len(order):
        raise AssertionError(f"You can not use the same dimension shorthand twice. input_format: {order}")
    if pixels.ndim != len(order):
        raise AssertionError(
            f"size of input tensor and input format are different. tensor shape: {pixels.shape}, input_format: {order}"
        )
    if len(order) == 4:
        return _grid(pixels.transpose([order.index(c) for c in "NCHW"])).transpose(1, 2, 0)
    if len(order) == 3:
        pixels = pixels.transpose([order.index(c) for c in "HWC"])
        return pixels.repeat(3, 2) if pixels.shape[2] == 1 else pixels
    return np.stack([pixels.transpose([order.index(c) for c in "HW"])] * 3, 2)


def _image(tag, pixels, dataformats="NCHW"):
    """An image: bytes, or floats from 0 to 1; several form a grid."""
    import io

    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("images in TensorBoard need the package pillow: pip install pillow") from error

    pixels = _height_width_channels(_array(pixels), dataformats)
    scale = 1 if pixels.dtype == np.uint8 else 255
    pixels = (pixels.astype(np.float32) * scale).clip(0, 255).astype(np.uint8)
    height, width, channels = pixels.shape
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format="PNG")
    content = _messages().Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=file.getvalue())
    return _summary(tag, image=content)


def _pixels_of_figure(figure, close=True):
    """A matplotlib figure, or a list of them, as (C, H, W) or (N, C, H, W) bytes."""
    from matplotlib import pyplot
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    if isinstance(figure, list):
        return np.stack([_pixels_of_figure(f, close) for f in figure])
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[:, :, :3].transpose(2, 0, 1)
    if close:
        pyplot.close(figure)
    return pixels


def _audio(tag, samples, sample_rate=44100):
    """A mono sound, floats from -1 to 1, as a WAV file of 16 bits."""
    import io
    import wave

    samples = _array(samples).squeeze()
    if samples.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    samples = (samples.clip(-1, 1) * np.iinfo(np.int16).max).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(sample_rate)
        sound.writeframes(samples.tobytes())
    content = _messages().Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=len(samples),
        encoded_audio_string=file.getvalue(),
        content_type="audio/wav",
    )
    return _summary(tag, audio=content)


def _text(tag, words):
    """A text, which TensorBoard reads as Markdown."""
    from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

    content = _messages().TensorProto(dtype="DT_STRING", string_val=[words.encode()], tensor_shape=_shape([1]))
    metadata = _metadata("text", TextPluginData(version=0).SerializeToString())
    return _summary(f"{tag}/text_summary", tensor=content, metadata=metadata)


def _curve(labels, predictions, thresholds, weights=None):
    """True and false positives and negatives, precision and recall, at thresholds from 0 to 1: rows of a matrix."""
    labels, weights = labels.astype(np.float64), 1.0 if weights is None else weights
    at = np.floor(predictions * (thresholds - 1)).astype(np.int32)

    def at_least(weight):
        """The weight of predictions at or above each threshold."""
        counts, _ = np.histogram(at, bins=thresholds, range=(0, thresholds - 1), weights=weight)
        return counts[::-1].cumsum()[::-1]

    tp, fp = at_least(labels * weights), at_least((1 - labels) * weights)
    tn, fn = fp[0] - fp, tp[0] - tp
    least = 1e-7
    return np.stack([tp, fp, tn, fn, tp / np.maximum(least, tp + fp), tp / np.maximum(least, tp + fn)])


def _pr_curve(tag, rows, thresholds):
    """The rows that `curve` gives, for the plugin of precision and recall."""
    from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData

    plugin = PrCurvePluginData(version=0, num_thresholds=thresholds).SerializeToString()
    content = _messages().TensorProto(dtype="DT_FLOAT", float_val=rows.reshape(-1).tolist(), tensor_shape=_shape(rows.shape))
    return _summary(tag, tensor=content, metadata=_metadata("pr_curves", plugin))


def _custom_scalars(layout):
    """Charts that show several scalars: {category: {title: ["Multiline" or "Margin", tags]}}."""
    from tensorboard.plugins.custom_scalar import layout_pb2 as messages

    def chart(title, kind, tags):
        if kind != "Margin":
            return messages.Chart(title=title, multiline=messages.MultilineChartContent(tag=tags))
        if len(tags) != 3:
            raise AssertionError(f"a margin chart has three tags: value, lower, upper; got {len(tags)}")
        series = messages.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
        return messages.Chart(title=title, margin=messages.MarginChartContent(series=[series]))

    categories = [
        messages.Category(title=name, chart=[chart(title, *content) for title, content in charts.items()])
        for name, charts in layout.items()
    ]
    packed = messages.Layout(category=categories).SerializeToString()
    content = _messages().TensorProto(dtype="DT_STRING", string_val=[packed], tensor_shape=_messages().TensorShapeProto())
    return _summary("custom_scalars__config__", tensor=content, metadata=_metadata("custom_scalars"))


def _hparams(values, metrics, domains=None):
    """Three summaries for the plugin of hyperparameters: what the experiment has, the start and the end of a session."""
    from google.protobuf import struct_pb2
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

    for name, given in (("hparam_dict", values), ("metric_dict", metrics), ("hparam_domain_discrete", domains or {})):
        if not isinstance(given, dict):
            raise TypeError(f"parameter: {name} should be a dictionary, nothing logged.")
    for key, domain in (domains or {}).items():
        kind = type(values.get(key))
        if key not in values or not isinstance(domain, list) or not all(isinstance(d, kind) for d in domain):
            raise TypeError(f"parameter: hparam_domain_discrete[{key}] should be a list of same type as hparam_dict[{key}].")

    # bools are numbers, as PyTorch writes them
    kinds = [("number_value", "DATA_TYPE_FLOAT64"), ("string_value", "DATA_TYPE_STRING")]
    start, infos = plugin_data_pb2.SessionStartInfo(), []
    for key, value in values.items():
        if value is None:
            continue
        if isinstance(value, _C.Tensor):
            value = float(_array(value)[0])
        if not isinstance(value, (int, float, str)):
            raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
        field, kind = kinds[isinstance(value, str)]
        setattr(start.hparams[key], field, value)
        domain = None
        if domains and key in domains:
            domain = struct_pb2.ListValue(values=[struct_pb2.Value(**{field: d}) for d in domains[key]])
        infos.append(api_pb2.HParamInfo(name=key, type=api_pb2.DataType.Value(kind), domain_discrete=domain))

    def message(tag, **content):
        data = plugin_data_pb2.HParamsPluginData(version=metadata.PLUGIN_DATA_VERSION, **content).SerializeToString()
        return _summary(tag, metadata=_metadata(metadata.PLUGIN_NAME, data))

    metric_infos = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=key)) for key in metrics]
    end = plugin_data_pb2.SessionEndInfo(status=api_pb2.Status.Value("STATUS_SUCCESS"))
    return (
        message(metadata.EXPERIMENT_TAG, experiment=api_pb2.Experiment(hparam_infos=infos, metric_infos=metric_infos)),
        message(metadata.SESSION_START_INFO_TAG, session_start_info=start),
        message(metadata.SESSION_END_INFO_TAG, session_end_info=end),
    )
