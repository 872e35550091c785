"""`python -m lucid.generate FOLDER "prompt"`: continue a text with the language model of a folder.

>>> from lucid.generate import options
>>> options(["folder", "Once upon", "--max-new-tokens", "5"]).max_new_tokens
5
"""

import argparse
import sys


def options(argv=None):
    """The command line as an object.

    >>> lucid.generate.options(["folder", "text", "--temperature", "0.7"]).temperature
    0.7
    """
    parser = argparse.ArgumentParser(prog="python -m lucid.generate", description="Continue a text with a language model.")
    parser.add_argument("folder", help="config.json, model.safetensors and tokenizer.json, as the Hub has them")
    parser.add_argument("prompt", help="the text to continue; - reads it from standard input")
    parser.add_argument("--max-new-tokens", type=int, default=100)
    parser.add_argument("--temperature", type=float, default=0.0, help="0: the likeliest token each time")
    parser.add_argument("--top-k", type=int, default=50)
    parser.add_argument("--top-p", type=float, default=1.0)
    parser.add_argument("--min-p", type=float)
    parser.add_argument("--repetition-penalty", type=float, default=1.0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--stop", action="append", help="end at this text; may be given several times")
    parser.add_argument("--chat", action="store_true", help="the prompt is a message of a conversation")
    parser.add_argument("--bits", type=int, choices=(4, 8), help="store the weights in so many bits")
    parser.add_argument("--adapter", help="a folder with a LoRA adapter")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--quiet", action="store_true", help="no statistics at the end")
    return parser.parse_args(argv)


def load(folder, bits=None, adapter=None, threads=None):
    """(model, tokenizer) of a folder.

    >>> lucid.generate.load("nowhere")
    Traceback (most recent call last):
    FileNotFoundError: nowhere/config.json
    """
    import lucid
    from lucid import generation, models

    if threads:
        lucid.set_num_threads(threads)
    model = models.AutoModelForCausalLM.from_pretrained(folder)
    if model.dtype != lucid.float32:
        model = model.float()  # products of halves are slower on the CPU
    if adapter:
        model = lucid.lora.PeftModel.from_pretrained(model, adapter).merge_and_unload()
    if bits:
        generation.quantize(model, bits)
    return model.eval(), models.Tokenizer.from_pretrained(folder)


def main(argv=None, out=None):
    from lucid import generation

    chosen, out = options(argv), out or sys.stdout
    try:
        model, tokenizer = load(chosen.folder, chosen.bits, chosen.adapter, chosen.threads)
    except (OSError, ValueError, RuntimeError) as error:
        print(f"cannot load {chosen.folder}: {error}", file=sys.stderr)
        return 1
    text = sys.stdin.read() if chosen.prompt == "-" else chosen.prompt
    if chosen.chat:
        ids = tokenizer.apply_chat_template([{"role": "user", "content": text}], add_generation_prompt=True, tokenize=True)
    else:
        ids = tokenizer.encode(text)
        out.write(text)
    sampling = {"do_sample": True, "temperature": chosen.temperature} if chosen.temperature > 0 else {"do_sample": False}
    try:
        tokens = generation.stream(
            model,
            ids,
            tokenizer=tokenizer,
            max_new_tokens=chosen.max_new_tokens,
            top_k=chosen.top_k,
            top_p=chosen.top_p,
            min_p=chosen.min_p,
            repetition_penalty=chosen.repetition_penalty,
            seed=chosen.seed,
            stop_strings=chosen.stop,
            **sampling,
        )
        for token in tokens:
            out.write(token.text)
            out.flush()
    except (ValueError, NotImplementedError) as error:
        print(f"\n{error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        pass
    out.write("\n")
    if not chosen.quiet:
        print(tokens.statistics, file=sys.stderr)
    return 0
