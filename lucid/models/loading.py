"""From files to modules: reading a folder as the Hub has it, and fitting its keys to a model's, strictly.

Files are mapped, not read: a tensor's values come from the disk when they are first used. Nothing is ever fetched.
"""

import json
import os
import re

from .. import _C, serialization

_NAMES = ("model.safetensors", "pytorch_model.bin")
_LOOKS = (  # whose naming keys look like: a pattern, and who
    (r"^(transformer\.)?h\.\d+\.(attn|mlp)\.c_", "transformers' GPT-2"),
    (r"^(model\.)?layers\.\d+\.self_attn\.", "transformers' Llama, Mistral or Qwen"),
    (r"^(bert\.)?encoder\.layer\.\d+\.attention\.self\.", "transformers' BERT"),
    (r"^layers\.\d+\.attention\.w[qkvo]\.", "Meta's own Llama files"),
    (r"^layer\d\.\d+\.(conv|bn)\d\.", "torchvision's or timm's ResNet"),
    (r"^blocks\.\d+\.attn\.qkv\.", "timm's vision transformers"),
    (r"^encoder\.layers\.encoder_layer_\d+\.", "torchvision's vision transformers"),
    (r"^features\.\d+", "torchvision's convolutional networks"),
    (r"\.lora_[AB]\.", "an adapter's file (lucid.lora)"),
    (r"^module\.", "a model saved inside DataParallel: remove the prefix 'module.'"),
    (r"^_orig_mod\.", "a compiled model: remove the prefix '_orig_mod.'"),
)


class WeightsError(RuntimeError):
    """A file of weights that does not fit: lists missing, unexpected and misshapen keys.

    >>> model = lucid.models.GPT2Model(lucid.models.GPT2Config(vocab_size=11, hidden_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2))
    >>> try:
    ...     model.load_weights({"layer1.0.conv1.weight": lucid.ones(1)})
    ... except lucid.models.WeightsError as error:
    ...     error.unexpected, len(error.missing)
    (['layer1.0.conv1.weight'], 16)
    """

    def __init__(self, source, missing, unexpected, misshapen, wanted):
        self.missing, self.unexpected, self.misshapen = missing, unexpected, misshapen
        lines = [f"{source} does not fit {wanted}:"]
        for what, keys in (("missing", missing), ("unexpected", unexpected), ("of another shape", misshapen)):
            if keys:
                lines.append(f"  {what} ({len(keys)}): {', '.join(keys[:8])}{', ...' if len(keys) > 8 else ''}")
        looks = [who for pattern, who in _LOOKS if any(re.search(pattern, key) for key in unexpected)]
        if looks:
            lines.append(f"  The unexpected keys look like {looks[0]}.")
        super().__init__("\n".join(lines))


def _read_json(path):
    with open(path, encoding="utf-8") as file:
        try:
            value = json.load(file)
        except (ValueError, RecursionError) as error:
            raise serialization.CorruptFileError(f"{path} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise serialization.CorruptFileError(f"{path} is not a JSON object")
    return value


def read_config(path):
    """The fields of config.json of a folder, or of a JSON file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lucid.models.GPT2Config().save(folder)
    ...     lucid.models.loading.read_config(folder)["model_type"]
    'gpt2'
    """
    path = os.fspath(path)
    if not os.path.isdir(path) and not path.endswith(".json"):
        path = os.path.dirname(path)
    return _read_json(os.path.join(path, "config.json") if os.path.isdir(path) else path)


def read_weights(path):
    """The tensors of a file or a folder by name, memory mapped.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lucid.save_safetensors({"a": lucid.ones(2)}, f"{folder}/model.safetensors")
    ...     lucid.models.loading.read_weights(folder)
    {'a': tensor([1., 1.])}
    """
    path = os.fspath(path)
    if not os.path.isdir(path):
        if path.endswith(".index.json"):
            return _read_parts(os.path.dirname(path) or ".", os.path.basename(path))
        return _read_file(path)
    for name in _NAMES:
        if os.path.exists(os.path.join(path, name)):
            return _read_file(os.path.join(path, name))
        if os.path.exists(os.path.join(path, f"{name}.index.json")):
            return _read_parts(path, f"{name}.index.json")
    raise FileNotFoundError(f"{path} has none of {', '.join(_NAMES)}, whole or in parts (*.index.json)")


def _read_file(path):
    if path.endswith(".safetensors"):
        return serialization.load_safetensors(path)
    try:
        state = serialization.load(path, mmap=True)
    except RuntimeError:  # the format before zip files cannot be mapped
        state = serialization.load(path)
    if isinstance(state, dict) and isinstance(state.get("state_dict"), dict):
        state = state["state_dict"]
    if not isinstance(state, dict) or not all(isinstance(value, _C.Tensor) for value in state.values()):
        raise serialization.CorruptFileError(f"{path} is not a state dict")
    return dict(state)


def _read_parts(folder, index):
    if index.endswith(".safetensors.index.json"):
        return serialization.load_sharded(folder, name=index.removesuffix(".safetensors.index.json"))
    where = _read_json(os.path.join(folder, index)).get("weight_map", {})
    found = {}
    for name in sorted(set(where.values())):
        if os.path.basename(name) != name:
            raise serialization.CorruptFileError(f"the index names {name!r}, which is not a file of its own folder")
        found.update(_read_file(os.path.join(folder, name)))
    missing = [key for key in where if key not in found]
    if missing:
        raise serialization.CorruptFileError(f"no part has {missing[0]!r}, which the index promises")
    return {key: found[key] for key in where}


def bytes_of(size):
    """A number of bytes, or a text as "5GB", as a number.

    >>> lucid.models.loading.bytes_of("2KB")
    2000
    """
    return serialization.sharded._bytes(size)


def put_codes(model, folder):
    """Make the layers of a fresh model that a folder keeps in codes such layers, as its config.json says.

    >>> import tempfile
    >>> config = lucid.models.GPT2Config(vocab_size=5, hidden_size=4, num_hidden_layers=1, num_attention_heads=1)
    >>> model = lucid.models.GPT2LMHeadModel(config)
    >>> report = lucid.generation.quantize(model)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save_pretrained(folder)
    ...     type(lucid.models.GPT2LMHeadModel.from_pretrained(folder).lm_head).__name__
    'QuantizedLinear'
    """
    folder = os.fspath(folder)
    path = os.path.join(folder if os.path.isdir(folder) else os.path.dirname(folder), "config.json")
    about = _read_json(path).get("quantization_config") if os.path.exists(path) else None
    if about is None:
        return
    if about.get("quant_method") != "lucid":
        raise ValueError(
            f"{folder}: weights in codes of {about.get('quant_method')!r} are not read, only those of generation.quantize"
        )
    from ..generation.coding import QuantizedLinear

    QuantizedLinear.put_into(model, about["layers"])


def about_codes(model):
    """What config.json says of the layers whose weights are in codes.

    >>> lucid.models.loading.about_codes(lucid.nn.Linear(2, 2))
    {}
    """
    from ..generation.coding import QuantizedLinear

    layers = {n: [m.bits, m.group_size] for n, m in model.named_modules() if isinstance(m, QuantizedLinear)}
    return {"quantization_config": {"quant_method": "lucid", "layers": layers}} if layers else {}


def _named_as_here(model, weights, own):
    """Older spellings, and the prefix of the network inside a model with a head, as this model has them."""
    renamed = {}
    for key, value in weights.items():
        for pattern, replacement in model.renamed_keys:
            key = re.sub(pattern, replacement, key)
        renamed[key] = value
    prefix = f"{model.base_model_prefix}."
    if prefix == "." or any(key in own for key in renamed):
        return renamed
    if any(key.startswith(prefix) for key in renamed):  # a model with a head into the network alone: the head is left out
        return {key[len(prefix) :]: value for key, value in renamed.items() if key.startswith(prefix)}
    if any(prefix + key in own for key in renamed):
        return {prefix + key: value for key, value in renamed.items()}
    return renamed


def fit(model, weights, source):
    """(tensors for the model's keys, keys that start fresh), or WeightsError.

    >>> config = lucid.models.GPT2Config(vocab_size=5, hidden_size=4, num_hidden_layers=0, num_attention_heads=1)
    >>> layer = lucid.models.GPT2Model(config)
    >>> fitted, fresh = lucid.models.loading.fit(layer, layer.state_dict(), "it")
    >>> sorted(fitted), fresh
    (['ln_f.bias', 'ln_f.weight', 'wpe.weight', 'wte.weight'], [])
    """
    own = model.state_dict()
    tied = model.shared_keys()
    found = _named_as_here(model, weights, own)
    for key, source in tied.items():  # a file may keep either of two names
        if key in found:
            found.setdefault(source, found[key])
    fitted, fresh, missing, misshapen = {}, [], [], []
    for key, mine in own.items():
        head = key.startswith(tuple(model.head_keys)) if model.head_keys else False
        if key not in found:
            if key.endswith("num_batches_tracked"):  # files from before the counter, and of frozen normalisation
                fitted[key] = _C.zeros(mine.shape, dtype=mine.dtype, device="cpu" if mine.is_meta else mine.device)
            elif key not in tied:
                (fresh if head else missing).append(key)
        elif tuple(found[key].shape) != tuple(mine.shape):
            if head or key in model.stem_keys:
                fresh.append(key)
            else:
                misshapen.append(f"{key} {tuple(found[key].shape)} for {tuple(mine.shape)}")
        else:
            fitted[key] = found[key]
    ignored = [*model.ignored_keys, *model.headless_keys()]
    unexpected = [key for key in found if key not in own and not any(re.search(pattern, key) for pattern in ignored)]
    if missing or misshapen or unexpected:
        raise WeightsError(source, missing, unexpected, misshapen, type(model).__name__)
    return fitted, fresh


def make_fresh(model, keys):
    """Give the parameters of these keys memory and first values, as the model's own start.

    >>> layer = lucid.nn.Linear(2, 2, device="meta")
    >>> lucid.models.loading.make_fresh(layer, ["weight", "bias"])
    >>> layer.bias
    Parameter containing:
    tensor([0., 0.], requires_grad=True)
    """
    from .. import nn

    for key in keys:
        owner, _, name = key.rpartition(".")
        owner = model.get_submodule(owner)
        old = getattr(owner, name)
        value = _C.zeros(old.shape, dtype=old.dtype, device="cpu" if old.device.type == "meta" else old.device)
        if old.ndim > 1:
            value.normal_(0.0, 0.02)
        setattr(owner, name, nn.Parameter(value))
