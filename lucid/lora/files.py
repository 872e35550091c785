"""Files of adapters: peft's (adapter_config.json and adapter_model.safetensors), and metal-candle's checkpoints are read."""

import json
import os
import re

from .. import serialization


def _state(model, name):
    """The tensors of an adapter by the keys of peft's files: those of the model, without the adapter's name."""
    kept = {}
    for key, value in model.state_dict().items():
        if f".modules_to_save.{name}." in key:
            kept[key.replace(f".modules_to_save.{name}.", ".")] = (key, value)
        elif f".lora_magnitude_vector.{name}.weight" in key:
            kept[key.replace(f".{name}.weight", "")] = (key, value)
        elif ".lora_" in key and (f".{name}." in key or key.endswith(f".{name}")):
            kept[re.sub(rf"\.{re.escape(name)}(?=\.|$)", "", key)] = (key, value)
    for key, parameter in model._biases(model.peft_config[name].bias).items():
        kept[key] = (key, parameter.detach())
    return kept


def get_peft_model_state_dict(model, adapter_name="default"):
    """The tensors of an adapter by the keys of peft's files.

    >>> config = lucid.lora.LoraConfig(r=1, target_modules=["0"])
    >>> model = lucid.lora.get_peft_model(lucid.nn.Sequential(lucid.nn.Linear(2, 2)), config)
    >>> sorted(lucid.lora.get_peft_model_state_dict(model))
    ['base_model.model.0.lora_A.weight', 'base_model.model.0.lora_B.weight']
    """
    return {key: value for key, (_, value) in _state(model, adapter_name).items()}


def set_peft_model_state_dict(model, state, adapter_name="default"):
    """Give an adapter the tensors of such a dict; every key must fit.

    >>> config = lucid.lora.LoraConfig(r=1, target_modules=["0"])
    >>> model = lucid.lora.get_peft_model(lucid.nn.Sequential(lucid.nn.Linear(2, 2)), config)
    >>> lucid.lora.set_peft_model_state_dict(model, lucid.lora.get_peft_model_state_dict(model))
    """
    _fill(model, {key: own for key, (own, _) in _state(model, adapter_name).items()}, dict(state), "the state dict")


def save(model, name, folder, safe_serialization=True):
    """Write one adapter; safe_serialization=False: as adapter_model.bin, in PyTorch's format.

    >>> import tempfile
    >>> config = lucid.lora.LoraConfig(r=1, target_modules=["0"])
    >>> model = lucid.lora.get_peft_model(lucid.nn.Sequential(lucid.nn.Linear(2, 2)), config)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lucid.lora.files.save(model, "default", folder)
    ...     sorted(lucid.load_safetensors(folder + "/adapter_model.safetensors"))
    ['base_model.model.0.lora_A.weight', 'base_model.model.0.lora_B.weight']
    """
    import copy

    config = copy.copy(model.peft_config[name])
    config.inference_mode = True
    config.save_pretrained(folder)
    tensors = {key: value.contiguous() for key, value in get_peft_model_state_dict(model, name).items()}
    if safe_serialization:
        serialization.save_safetensors(tensors, os.path.join(folder, "adapter_model.safetensors"), metadata={"format": "pt"})
    else:
        serialization.save(tensors, os.path.join(folder, "adapter_model.bin"))


def load(model, name, folder):
    """Read one adapter into a model that has its layers; every key must fit.

    >>> import tempfile
    >>> config = lucid.lora.LoraConfig(r=1, target_modules=["0"], init_lora_weights=False)
    >>> model = lucid.lora.get_peft_model(lucid.nn.Sequential(lucid.nn.Linear(2, 2)), config)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save_pretrained(folder)
    ...     lucid.lora.files.load(model, "default", folder)
    """
    path = os.path.join(folder, "adapter_model.safetensors")
    if os.path.exists(path):
        found = serialization.load_safetensors(path)
    elif os.path.exists(os.path.join(folder, "adapter_model.bin")):
        found = serialization.load(os.path.join(folder, "adapter_model.bin"))
    else:
        raise FileNotFoundError(f"{folder} has neither adapter_model.safetensors nor adapter_model.bin")
    keys, own = {key: place for key, (place, _) in _state(model, name).items()}, model.state_dict()
    for key in found:  # peft adds the embeddings that are adapted, or that have another size
        if key not in keys and key.endswith(".weight"):
            places = (key, key.replace(".weight", ".base_layer.weight"))
            place = next((place for place in places if place in own and ".lora_" not in place), None)
            keys.update({} if place is None else {key: place})
    _fill(model, keys, found, path)


def _fill(model, keys, found, source):
    from ..models.loading import WeightsError

    own = model.state_dict()
    missing, unexpected = [k for k in keys if k not in found], [k for k in found if k not in keys]
    misshapen = [
        f"{k} {tuple(found[k].shape)} for {tuple(own[keys[k]].shape)}"
        for k in keys
        if k in found and found[k].shape != own[keys[k]].shape
    ]
    if missing or unexpected or misshapen:
        raise WeightsError(source, missing, unexpected, misshapen, "the adapter")
    for key, tensor in found.items():
        own[keys[key]].copy_(tensor)


def load_checkpoint(model, path, adapter_name="default"):
    """Read a checkpoint of metal-candle into an adapter of the same rank; returns its metadata (step, loss, ...), or None.

    Its keys are layers.{i}.{module}.lora_a (in, rank) and lora_b (rank, out).

    >>> import tempfile
    >>> small = dict(vocab_size=7, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> model = lucid.models.LlamaForCausalLM(lucid.models.LlamaConfig(**small))
    >>> model = lucid.lora.get_peft_model(model, lucid.lora.LoraConfig(r=2, target_modules=["q_proj"]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tensors = {"layers.0.q_proj.lora_a": lucid.ones(8, 2), "layers.0.q_proj.lora_b": lucid.ones(2, 8)}
    ...     lucid.save_safetensors(tensors, f"{folder}/a.safetensors", metadata={"checkpoint_metadata": '{"global_step": 3}'})
    ...     lucid.lora.load_checkpoint(model, f"{folder}/a.safetensors")
    {'global_step': 3}
    """
    keys = {}
    for name, layer in model.lora_layers():
        match = re.search(r"\blayers\.(\d+)\..*?(\w+)$", name)
        if match and adapter_name in layer.lora_A:
            for short, long in (("a", "A"), ("b", "B")):
                place = f"layers.{match[1]}.{match[2]}.lora_{short}"
                keys[place] = f"base_model.model.{name}.lora_{long}.{adapter_name}.weight"
    found = {key: value.t() for key, value in serialization.load_safetensors(path).items()}
    _fill(model, keys, found, path)
    text = serialization.safetensors_metadata(path).get("checkpoint_metadata")
    return None if text is None else json.loads(text)
