"""A model with adapters: what is trained, which are active, and their files."""

import contextlib
import copy
import dataclasses
import os
import warnings

from .. import nn
from ..autograd import no_grad
from ..generation.coding import QuantizedLinear
from . import files
from .config import LoraConfig
from .layers import Conv1D, LoraLayer, ModulesToSave, layer_for


class _Wrapped(nn.Module):
    """Holds the model under the name that peft's keys have: base_model.model."""

    def __init__(self, model):
        super().__init__()
        self.model = model


class PeftModel(nn.Module):
    """A model whose layers carry adapters; it is called, trained and generates as before.

    >>> model = lucid.nn.Sequential(lucid.nn.Linear(4, 4), lucid.nn.ReLU(), lucid.nn.Linear(4, 2))
    >>> model = lucid.lora.get_peft_model(model, lucid.lora.LoraConfig(r=2, target_modules=["0", "2"]))
    >>> [name for name, p in model.named_parameters() if p.requires_grad][:2]
    ['base_model.model.0.lora_A.default.weight', 'base_model.model.0.lora_B.default.weight']
    >>> with model.disable_adapter():
    ...     tuple(model(lucid.ones(1, 4)).shape)
    (1, 2)
    """

    def __init__(self, model, peft_config, adapter_name="default", autocast_adapter_dtype=True):
        super().__init__()
        self.base_model = _Wrapped(model)
        self.training = self.base_model.training = model.training
        self.peft_config, self._active = {}, []
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        self.add_adapter(adapter_name, peft_config, autocast_adapter_dtype)
        self.set_adapter(adapter_name)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "base_model":
                raise
            return getattr(self.base_model.model, name)

    def forward(self, *args, **options):
        return self.base_model.model(*args, **options)

    def get_base_model(self):
        return self.base_model.model

    # ---- adapters ----

    def lora_layers(self):
        """(path, layer) of all layers with adapters."""
        return [(name, m) for name, m in self.base_model.model.named_modules() if isinstance(m, LoraLayer)]

    def _kept_whole(self):
        return [(name, m) for name, m in self.base_model.model.named_modules() if isinstance(m, ModulesToSave)]

    def add_adapter(self, adapter_name, peft_config, autocast_adapter_dtype=True):
        """Make another adapter, not active yet (the first one is).

        autocast_adapter_dtype: in float32 if the model's weights are halves, so that small steps are not rounded away.
        """
        if adapter_name in self.peft_config:
            raise ValueError(f"there is an adapter {adapter_name!r} already")
        if peft_config.bias != "none" and any(c.bias != "none" for c in self.peft_config.values()):
            raise ValueError("only one adapter can train biases: they belong to the model")
        config = peft_config.with_heads(self.base_model.model)
        found = self._targets(config)
        for path, module in found:
            if not isinstance(module, LoraLayer):
                layer = layer_for(module)
                if layer is None:
                    raise ValueError(
                        f"{path} is a {type(module).__name__}; adapters exist for Linear, Conv1D, Embedding and Conv2d"
                    )
                self._replace(path, layer)
                module = layer
            if isinstance(module.base_layer, Conv1D):
                config.fan_in_fan_out = True
            module.add_adapter(adapter_name, config, path, autocast_adapter_dtype)
        self._keep_whole(adapter_name, config)
        self.peft_config[adapter_name] = config
        if self._active:
            self.set_adapter(self._active)

    def _targets(self, config):
        model = self.base_model.model
        kind = getattr(getattr(model, "config", None), "model_type", None)
        if config.target_modules == "all-linear":
            head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
            inner = [
                (n, m)
                for n, m in model.named_modules()
                if isinstance(m, (nn.Linear, Conv1D, QuantizedLinear)) and m is not head and ".lora_" not in f".{n}"
            ]
            names = sorted(
                {n.rpartition(".")[2] if n.rpartition(".")[2] != "base_layer" else n.split(".")[-2] for n, _ in inner}
            )
            config.target_modules = [n for n in names if not n.isdigit()] or [n for n, _ in inner]
        found = []
        for name, module in model.named_modules():
            inside = any(name.startswith(f"{path}.") for path, m in found if isinstance(m, LoraLayer))
            if name and not inside and config.targets(name, kind):
                found.append((name, module))
        if not found:
            raise ValueError(f"target_modules {config.target_modules!r} are in no path of the model")
        return found

    def _replace(self, path, module):
        owner, _, name = path.rpartition(".")
        module.train(self.base_model.model.get_submodule(path).training)
        setattr(self.base_model.model.get_submodule(owner), name, module)

    def _keep_whole(self, adapter_name, config):
        model = self.base_model.model
        for wanted in config.modules_to_save or ():
            paths = [
                n
                for n, _ in model.named_modules()
                if (n == wanted or n.endswith(f".{wanted}")) and ".modules_to_save." not in n
            ]
            if not paths:
                raise ValueError(f"modules_to_save: no module {wanted!r}")
            for path in paths:
                module = model.get_submodule(path)
                if not isinstance(module, ModulesToSave):
                    module = ModulesToSave(module)
                    self._replace(path, module)
                module.add_adapter(adapter_name)

    def set_adapter(self, adapter_name):
        """Make one adapter, or several, the active ones: they alone are added, and trained."""
        names = [adapter_name] if isinstance(adapter_name, str) else list(adapter_name)
        for name in names:
            if name not in self.peft_config:
                raise ValueError(f"no adapter {name!r}; there are {', '.join(self.peft_config)}")
        self._active = names
        for _, module in [*self.lora_layers(), *self._kept_whole()]:
            if isinstance(module, LoraLayer) and module.merged_adapters:
                module.unmerge()
            module.active_adapters = list(names)
        self._choose_trained()

    def _choose_trained(self):
        for _, layer in self.lora_layers():
            for name in layer.adapters:
                for parameter in layer.parameters_of(name):
                    parameter.requires_grad_(name in self._active and not self.peft_config[name].inference_mode)
        for _, module in self._kept_whole():
            for name, copied in module.modules_to_save.items():
                for parameter in copied.parameters():
                    parameter.requires_grad_(name in self._active and not self.peft_config[name].inference_mode)
        for key, parameter in self._biases("all").items():
            parameter.requires_grad_(False)
            for name in self._active:
                config = self.peft_config[name]
                if not config.inference_mode and key in self._biases(config.bias):
                    parameter.requires_grad_(True)

    def _biases(self, which):
        """Biases of the model's own layers that bias="all" or "lora_only" means, by key."""
        if which == "none":
            return {}
        chosen = {}
        for key, parameter in self.base_model.model.named_parameters():
            own = ".lora_" not in f".{key}" and ".modules_to_save." not in key and ".original_module." not in key
            if own and key.rpartition(".")[2] == "bias" and (which == "all" or ".base_layer." in f".{key}"):
                chosen[f"base_model.model.{key}"] = parameter
        return chosen

    @property
    def active_adapters(self):
        return list(self._active)

    @property
    def active_adapter(self):
        return self._active[0] if len(self._active) == 1 else list(self._active)

    def delete_adapter(self, adapter_name):
        """Forget an adapter."""
        if adapter_name not in self.peft_config:
            raise ValueError(f"no adapter {adapter_name!r}")
        for _, module in [*self.lora_layers(), *self._kept_whole()]:
            if adapter_name in (module.adapters if isinstance(module, LoraLayer) else module.modules_to_save):
                module.delete_adapter(adapter_name)
        del self.peft_config[adapter_name]
        self._active = [n for n in self._active if n != adapter_name] or list(self.peft_config)[:1]
        if self._active:
            self.set_adapter(self._active)

    @contextlib.contextmanager
    def disable_adapter(self):
        """The model as it was, inside a with block."""
        everyone = [m for _, m in [*self.lora_layers(), *self._kept_whole()]]
        before = [m.disabled for m in everyone]
        for module in everyone:
            module.disabled = True
        try:
            yield
        finally:
            for module, was in zip(everyone, before):
                module.disabled = was

    def add_weighted_adapter(self, adapters, weights, adapter_name, combination_type="svd", svd_rank=None):
        """Make an adapter of several: their corrections, each times its weight, in sum.

        combination_type: "svd" (the best of rank svd_rank, unless given the largest of theirs), "cat" (exact; the sum of
        their ranks), "linear" (their matrices are summed, which needs one rank, and is not the sum of the corrections).
        """
        if combination_type not in ("svd", "cat", "linear"):
            raise ValueError(f"combination_type is svd, cat or linear, not {combination_type!r}")
        if adapter_name in self.peft_config:
            raise ValueError(f"there is an adapter {adapter_name!r} already")
        unknown = [name for name in adapters if name not in self.peft_config]
        if unknown or not adapters or len(adapters) != len(weights):
            raise ValueError(
                f"no adapter {unknown[0]!r}" if unknown else f"{len(adapters)} adapters with {len(weights)} weights"
            )
        configs = [self.peft_config[name] for name in adapters]
        if any(c.use_dora or c.lora_bias or c.modules_to_save for c in configs):
            raise ValueError("adapters with magnitudes, own biases or whole modules cannot be summed")
        if any(isinstance(c.target_modules, str) for c in configs):
            raise ValueError("target_modules of adapters that are summed are lists")
        ranks = [c.r for c in configs]
        if combination_type == "linear" and len(set(ranks)) > 1:
            raise ValueError(f"linear needs adapters of one rank, not {', '.join(map(str, ranks))}")
        rank = {"cat": sum(ranks), "svd": svd_rank or max(ranks), "linear": ranks[0]}[combination_type]
        targets = sorted({t for c in configs for t in c.target_modules or ()}) or None
        made = dataclasses.replace(
            configs[0], r=rank, lora_alpha=rank, target_modules=targets, rank_pattern={}, alpha_pattern={}, use_rslora=False,
            layers_to_transform=None, layers_pattern=None, bias="none",
        )  # fmt: skip
        for path, layer in self.lora_layers():
            parts = [(name, weight) for name, weight in zip(adapters, weights) if name in layer.scaling]
            if not parts:
                continue
            width = sum(layer.rank_of(n) for n, _ in parts) if combination_type == "cat" else rank
            if width != rank:
                made.rank_pattern[path] = made.alpha_pattern[path] = width
            layer.add_adapter(adapter_name, made, path)
            with no_grad():
                layer.combine(adapter_name, parts, combination_type)
        made.inference_mode = True
        self.peft_config[adapter_name] = made
        self.set_adapter(self._active)

    def merge_adapter(self, adapter_names=None, safe_merge=False):
        """Put the active adapters, or those named, into the weights: no more work per call.

        safe_merge: an adapter whose result is not finite is an error, and its layer stays as it is.
        """
        owners = {}
        for name, parameter in self.base_model.model.named_parameters(remove_duplicate=False):
            owners.setdefault(id(parameter), []).append(name.removesuffix(".weight").removesuffix(".base_layer"))
        for path, layer in self.lora_layers():
            others = [owner for owner in owners.get(id(layer.weight), ()) if owner != path]
            if others:
                warnings.warn(f"{path} shares its weight with {', '.join(others)}: merging changes both", stacklevel=2)
            layer.merge(adapter_names, safe_merge)

    def unmerge_adapter(self):
        """Take merged adapters out of the weights again."""
        for _, layer in self.lora_layers():
            layer.unmerge()

    def merge_and_unload(self, *, safe_merge=False, adapter_names=None):
        """The model itself, with the adapters in its weights and no trace of them besides."""
        self.merge_adapter(adapter_names, safe_merge)
        return self._bare()

    def unload(self):
        """The model itself, without the adapters."""
        self.unmerge_adapter()
        for _, module in self._kept_whole():
            module.disabled = True
        return self._bare()

    def _bare(self):
        for path, layer in self.lora_layers():
            self._replace(path, layer.base_layer)
        for path, module in self._kept_whole():
            self._replace(path, module.active_module())
        return self.base_model.model

    # ---- counts and files ----

    def get_nb_trainable_parameters(self):
        """(trained parameters, all of them)."""
        counts = [(p.numel(), p.requires_grad) for p in self.parameters()]
        return sum(n for n, trained in counts if trained), sum(n for n, _ in counts)

    def print_trainable_parameters(self):
        trained, every = self.get_nb_trainable_parameters()
        print(f"trainable params: {trained:,d} || all params: {every:,d} || trainable%: {100 * trained / every:.4f}")

    def save_pretrained(self, folder, safe_serialization=True, selected_adapters=None):
        """Write adapter_config.json and adapter_model.safetensors (else adapter_model.bin), as peft does.

        Adapters other than "default" go into folders of their names.
        """
        for name in selected_adapters or self.peft_config:
            files.save(self, name, folder if name == "default" else os.path.join(folder, name), safe_serialization)

    def load_adapter(self, folder, adapter_name, is_trainable=False, autocast_adapter_dtype=True):
        """Read an adapter that save_pretrained or peft wrote; it is not active yet."""
        config = LoraConfig.from_pretrained(folder)
        config.inference_mode = not is_trainable
        self.add_adapter(adapter_name, config, autocast_adapter_dtype)
        try:
            files.load(self, adapter_name, folder)
        except Exception:
            self.delete_adapter(adapter_name)
            raise

    @classmethod
    def from_pretrained(
        cls, model, folder, adapter_name="default", is_trainable=False, config=None, autocast_adapter_dtype=True
    ):
        """A model with the adapter of a folder."""
        config = copy.copy(config) if config is not None else LoraConfig.from_pretrained(folder)
        config.inference_mode = not is_trainable
        made = cls(model, config, adapter_name, autocast_adapter_dtype)
        files.load(made, adapter_name, folder)
        return made.train(model.training)


def get_peft_model(model, peft_config, adapter_name="default", *, autocast_adapter_dtype=True):
    """Put an adapter into a model: its layers are replaced in place, its weights frozen, the adapter is what is trained.

    autocast_adapter_dtype: the adapter is float32 even if the model's weights are halves.

    >>> config = lucid.models.GPT2Config(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> model = lucid.lora.get_peft_model(lucid.models.GPT2LMHeadModel(config), lucid.lora.LoraConfig(r=2))
    >>> tuple(model.generate(lucid.tensor([[1, 2]]), max_new_tokens=2).shape)
    (1, 4)
    """
    return PeftModel(model, peft_config, adapter_name, autocast_adapter_dtype)
