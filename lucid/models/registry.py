"""Models by name: families declare a config, classes and a table of sizes; factories and the Auto classes follow from it."""

import fnmatch
import os

from . import loading

_ENTRIES = {}  # name: (factory, task, family)
_CONFIGS = {}  # model_type: config class
PUBLISHED = {}  # a factory's name: the name that the table of weights has it under
_CLASSES = {}  # (task, model_type): class


def family(config_class, classes, sizes, plain=None, more=()):
    """Make and register a factory for every class and size; returns them by name.

    classes: {suffix: (class, task)}; sizes: {name: fields of the config}; plain: (class, {name: name of a size}), factories
    under the names of another library; more: {task: class}, for the Auto classes alone.

    >>> sorted(n for n in lucid.models.list_models(family="gpt2") if n.endswith("_lm"))
    ['gpt2_large_lm', 'gpt2_medium_lm', 'gpt2_small_lm', 'gpt2_xlarge_lm']
    """
    made = {}
    _CONFIGS[config_class.model_type] = config_class
    for task in more:
        _CLASSES[task, config_class.model_type] = more[task]
    for suffix, (model_class, task) in classes.items():
        _CLASSES[task, config_class.model_type] = model_class
        for size, fields in sizes.items():
            made[size + suffix] = _register(size + suffix, model_class, config_class, fields, task)
    plain_class, names = plain or (None, {})
    for size, fields in sizes.items():
        theirs = next((name for name, meant in names.items() if sizes[meant] == fields), None)
        PUBLISHED.update((size + suffix, theirs) for suffix in classes if theirs)
    for name, size in names.items():
        made[name] = _register(name, plain_class, config_class, sizes[size], "plain-tensors")
    return made


def _register(name, model_class, config_class, fields, task):
    factory = _factory(name, model_class, config_class, fields)
    return register_model(task=task, family=config_class.model_type)(factory)


def _factory(name, model_class, config_class, fields):
    def factory(pretrained=False, *, weights=None, **overrides):
        if pretrained is True and weights is None:
            from .weights import weights_of

            if not weights_of(name):
                raise ValueError(f"{name}: no weights come with the package; give a folder, a file or a state dict as weights=")
            weights = "DEFAULT"
        elif pretrained not in (False, True, None) and weights is not None:
            raise ValueError(f"{name}: pretrained= and weights= are two names of one argument")
        weights = weights if weights is not None else pretrained or None
        if weights is None:
            return model_class(config_class(**fields).replace(**overrides))
        weights, fixed = _located(name, weights)
        config = config_class(**fields).replace(**{**fixed, **overrides})
        if isinstance(weights, dict):
            return model_class(config).load_weights(weights)
        return model_class.from_pretrained(weights, config=config)

    factory.__name__ = factory.__qualname__ = name
    factory.__module__ = model_class.__module__
    shown = ", ".join(f"{field}={value!r}" for field, value in fields.items()) or "the defaults"
    factory.__doc__ = (
        f"{model_class.__name__} with {shown}; other fields of {config_class.__name__} by keyword.\n\n"
        "    weights: a folder, a file, a state dict or a tag.\n\n"
        f"    >>> lucid.models.is_model({name!r})\n    True\n    "
    )
    return factory


def _located(name, weights):
    """What weights= says as a path or a state dict, and the fields of the config that a tag fixes."""
    if isinstance(weights, (dict, os.PathLike)):
        return weights, {}
    if not isinstance(weights, str):
        if type(weights).__module__.split(".")[0] != "torchvision":  # its enumerations of weights name tags
            raise TypeError(f"{name}: weights= is a folder, a file, a state dict or a tag, not {type(weights).__name__}")
        weights = weights.name
    if os.path.exists(weights):
        return weights, {}
    from .weights import find, find_repository, tag_of

    if "/" in weights:
        folder = find_repository(weights) if weights.count("/") == 1 else None
        if folder is None:
            raise FileNotFoundError(f"{name}: {weights} is no file or folder, nor in the cache of the Hugging Face hub")
        return folder, {}
    row = tag_of(name, weights)
    return find(row), row.fields()


def register_model(function=None, *, name=None, task=None, family=None):
    """Enter a factory under its name, so that create_model and list_models find it; a decorator.

    >>> @lucid.models.register_model(task="toy", family="toys")
    ... def one_layer(width=2):
    ...     return lucid.nn.Linear(width, 1)
    >>> lucid.models.create_model("one_layer", width=3).in_features
    3
    >>> lucid.models.list_models(task="toy")
    ['one_layer']
    """

    def enter(function):
        key = name or function.__name__
        if key in _ENTRIES and _ENTRIES[key][0].__module__ != function.__module__:
            raise ValueError(f"a model named {key!r} is already registered by {_ENTRIES[key][0].__module__}")
        _ENTRIES[key] = (function, task, family)
        return function

    return enter if function is None else enter(function)


def _load_all():
    from importlib import import_module

    from . import _FAMILIES

    for module in _FAMILIES:
        import_module(f"lucid.models.{module}")


def list_models(pattern=None, *, task=None, family=None):
    """Names of models in alphabetical order; pattern as in a shell.

    >>> lucid.models.list_models("gpt2_small*")
    ['gpt2_small', 'gpt2_small_cls', 'gpt2_small_lm']
    """
    _load_all()
    chosen = (n for n, (_, t, f) in _ENTRIES.items() if task in (None, t) and family in (None, f))
    return sorted(name for name in chosen if pattern is None or fnmatch.fnmatchcase(name, pattern))


def is_model(name):
    """Whether a model of this name is registered.

    >>> lucid.models.is_model("gpt2_small_lm"), lucid.models.is_model("gpt2_tiny")
    (True, False)
    """
    from . import _HOME

    if name in _HOME:
        from importlib import import_module

        import_module(f"lucid.models.{_HOME[name]}")
    return name in _ENTRIES


def model_entrypoint(name):
    """The factory of a name.

    >>> lucid.models.model_entrypoint("gpt2_small").__name__
    'gpt2_small'
    """
    if not is_model(name):
        import difflib

        _load_all()
        near = difflib.get_close_matches(name, _ENTRIES, 3)
        raise ValueError(f"no model is named {name!r}" + (f"; near: {', '.join(near)}" if near else ""))
    return _ENTRIES[name][0]


def create_model(name, **overrides):
    """A model by name; keywords as its factory takes them.

    >>> model = lucid.models.create_model("gpt2_small_lm", num_hidden_layers=1, hidden_size=8, num_attention_heads=2)
    >>> model.config.num_hidden_layers
    1
    """
    return model_entrypoint(name)(**overrides)


class AutoConfig:
    """The config of a folder, of the class that its model_type names.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lucid.models.GPT2Config(num_hidden_layers=3).save(folder)
    ...     lucid.models.AutoConfig.from_pretrained(folder).num_hidden_layers
    3
    """

    @classmethod
    def from_pretrained(cls, folder):
        values = loading.read_config(folder)
        _load_all()
        kind = values.get("model_type")
        if kind not in _CONFIGS:
            raise ValueError(f"{folder}: no model of type {kind!r}; known: {', '.join(sorted(_CONFIGS))}")
        return _CONFIGS[kind].from_dict(values, strict=False)


class AutoModel:
    """The model of a folder, of the class that its model_type names; from_config makes a fresh one.

    >>> config = lucid.models.GPT2Config(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> type(lucid.models.AutoModel.from_config(config)).__name__
    'GPT2Model'
    >>> type(lucid.models.AutoModelForCausalLM.from_config(config)).__name__
    'GPT2LMHeadModel'
    """

    task = "base"

    @classmethod
    def _class_for(cls, config):
        found = cls.find(config)
        if found is None:
            known = sorted(kind for task, kind in _CLASSES if task == cls.task)
            raise ValueError(f"{cls.__name__}: none for {config.model_type!r}; there are {', '.join(known) or 'none at all'}")
        return found

    @classmethod
    def find(cls, config):
        """The class for a config, or None."""
        _load_all()
        return _CLASSES.get((cls.task, config.model_type))

    @classmethod
    def from_config(cls, config):
        return cls._class_for(config)(config)

    @classmethod
    def from_pretrained(cls, folder, **options):
        config = options.pop("config", None) or AutoConfig.from_pretrained(folder)
        return cls._class_for(config).from_pretrained(folder, config=config, **options)


def _auto(name, task):
    return type(name, (AutoModel,), {"task": task, "__module__": __name__, "__doc__": AutoModel.__doc__})


AutoModelForCausalLM = _auto("AutoModelForCausalLM", "causal-lm")
AutoModelForImageClassification = _auto("AutoModelForImageClassification", "image-classification")
AutoModelForImageGeneration = _auto("AutoModelForImageGeneration", "image-generation")
AutoModelForMaskedLM = _auto("AutoModelForMaskedLM", "masked-lm")
AutoModelForObjectDetection = _auto("AutoModelForObjectDetection", "object-detection")
AutoModelForQuestionAnswering = _auto("AutoModelForQuestionAnswering", "question-answering")
AutoModelForSemanticSegmentation = _auto("AutoModelForSemanticSegmentation", "semantic-segmentation")
AutoModelForSeq2SeqLM = _auto("AutoModelForSeq2SeqLM", "seq2seq-lm")
AutoModelForSequenceClassification = _auto("AutoModelForSequenceClassification", "sequence-classification")
AutoModelForTokenClassification = _auto("AutoModelForTokenClassification", "token-classification")
