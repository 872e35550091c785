"""What models return: values by name, by place, or unpacked; what a model was not asked for is left out."""


class ModelOutput:
    """Values by attribute, by name, by place (those that are None do not count), and by unpacking.

    >>> out = lucid.models.CausalLMOutput(logits=lucid.ones(2))
    >>> out.logits is out["logits"] is out[0], out.loss is None, out.keys()
    (True, True, ['logits'])
    """

    fields = ()

    def __init__(self, **values):
        unknown = set(values) - set(self.fields)
        if unknown:
            raise TypeError(
                f"{type(self).__name__} has no field {sorted(unknown)[0]!r}; its fields are {', '.join(self.fields)}"
            )
        for name in self.fields:
            setattr(self, name, values.get(name))

    def keys(self):
        return [name for name in self.fields if getattr(self, name) is not None]

    def values(self):
        return [getattr(self, name) for name in self.keys()]

    def items(self):
        return list(zip(self.keys(), self.values()))

    def to_tuple(self):
        return tuple(self.values())

    def __getitem__(self, key):
        if isinstance(key, str):
            if key not in self.keys():
                raise KeyError(key)
            return getattr(self, key)
        return self.to_tuple()[key]

    def __iter__(self):
        return iter(self.values())

    def __len__(self):
        return len(self.keys())

    def __contains__(self, key):
        return key in self.keys()

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.items())})"


def _output(name, about, *fields):
    first = fields[0]
    doc = f"{about}: {', '.join(fields)}.\n\n    >>> lucid.models.{name}({first}=1).{first}\n    1\n    "
    return type(name, (ModelOutput,), {"fields": fields, "__doc__": doc, "__module__": __name__})


_DEEP = ("hidden_states", "attentions")
BaseModelOutput = _output(
    "BaseModelOutput", "What a network without a head returns", "last_hidden_state", "past_key_values", *_DEEP
)
BaseModelOutputWithPooling = _output(
    "BaseModelOutputWithPooling", "The same with a vector for the whole text", "last_hidden_state", "pooler_output", *_DEEP
)
CausalLMOutput = _output("CausalLMOutput", "What a language model returns", "loss", "logits", "past_key_values", *_DEEP)
MaskedLMOutput = _output("MaskedLMOutput", "What a model of masked words returns", "loss", "logits", *_DEEP)
SequenceClassifierOutput = _output(
    "SequenceClassifierOutput", "What a classifier of texts returns", "loss", "logits", "past_key_values", *_DEEP
)
TokenClassifierOutput = _output("TokenClassifierOutput", "What a classifier of words returns", "loss", "logits", *_DEEP)
QuestionAnsweringModelOutput = _output(
    "QuestionAnsweringModelOutput", "Where an answer begins and ends", "loss", "start_logits", "end_logits", *_DEEP
)
GenerationOutput = _output(
    "GenerationOutput", "Images that were made, and what they were after each step", "samples", "intermediates"
)
ImageClassificationOutput = _output(
    "ImageClassificationOutput", "What a classifier of images returns", "loss", "logits", *_DEEP
)
