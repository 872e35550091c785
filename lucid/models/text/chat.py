"""Chat templates: a conversation as the text that a model was trained on, by the Jinja program that comes with it.

Templates are written for transformers and see what they see there: messages, tools, documents, the special tokens by
name, raise_exception, strftime_now, a tojson that leaves < and > alone, break and continue in loops, and marks around what the
assistant said.
"""

import datetime
import json


def _refuse(message):
    raise ValueError(message)


def _room():
    try:
        from jinja2 import ext
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise RuntimeError("this model's chat template needs the package jinja2") from None

    class Marks(ext.Extension):  # {% generation %} ... {% endgeneration %}: its content
        tags = {"generation"}

        def parse(self, parser):
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    room = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Marks, ext.loopcontrols])
    room.globals.update(raise_exception=_refuse, strftime_now=lambda form: datetime.datetime.now().strftime(form))
    room.filters["tojson"] = lambda value, **options: json.dumps(value, **{"ensure_ascii": False, **options})
    return room


def chosen(template, name=None):
    """The template of this name, or the default one, of what a file has: one text, or several with names.

    >>> from lucid.models.text.chat import chosen
    >>> chosen([{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}], "tool_use")
    'b'
    """
    if template is None or isinstance(template, str):
        return template
    table = template if isinstance(template, dict) else {each["name"]: each["template"] for each in template}
    if name is not None and name not in table:
        raise ValueError(f"no chat template is named {name!r}; there are {', '.join(table)}")
    return table[name] if name is not None else table.get("default") or next(iter(table.values()))


def render(template, messages, add_generation_prompt, continue_final_message, **names):
    """The text of a conversation.

    >>> from lucid.models.text.chat import render
    >>> render("{% for m in messages %}{{ m.content }};{% endfor %}", [{"role": "user", "content": "a"}], False, False)
    'a;'
    """
    if continue_final_message and add_generation_prompt:
        raise ValueError("add_generation_prompt begins a new message, continue_final_message goes on with the last: give one")
    text = _room().from_string(template).render(messages=messages, add_generation_prompt=add_generation_prompt, **names)
    if continue_final_message:
        last = messages[-1]["content"]
        place = text.rfind(last.strip())
        if not last.strip() or place < 0:
            raise ValueError("continue_final_message: the template does not give the last message as it is")
        kept = last if text[place : place + len(last.lstrip())] == last.lstrip() else last.strip()
        text = text[: place + len(kept.lstrip())]
    return text
