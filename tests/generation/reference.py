"""What transformers generates for the cases of tests/models: `python reference.py FILE` writes tokens per case and options."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "models"))
import cases  # noqa: E402
import reference as models  # noqa: E402

OPTIONS = {
    "greedy": {},
    "repetition": {"repetition_penalty": 1.7},
    "ngrams": {"no_repeat_ngram_size": 2},
    "end": {"eos_token_id": [20, 3, 9, 14]},
    "least": {"eos_token_id": [20, 3, 9, 14], "min_new_tokens": 4},
    "length": {"eos_token_id": [20, 3, 9, 14], "min_length": 9},
    "bad words": {"bad_words_ids": [[9], [31, 2], [17]], "eos_token_id": [17]},
    "suppressed": {"suppress_tokens": [1, 2, 3, 4], "begin_suppress_tokens": [5, 6, 7, 8, 9, 10]},
    "bias": {"sequence_bias": {(4,): 1.0, (6, 7): -3.0, (9, 10, 11): 5.0, (17, 20): 2.0}},
    "last": {"forced_eos_token_id": 3},
    "drawn": {"do_sample": True, "temperature": 1.3, "top_k": 12, "top_p": 0.9, "min_p": 0.02, "typical_p": 0.8},
    "drawn plainly": {"do_sample": True, "top_k": 0},
    "beams": {"num_beams": 3, "eos_token_id": [20, 3, 9, 14], "pad_token_id": 33},
    "long beams": {"num_beams": 4, "eos_token_id": [20, 3], "length_penalty": 2.0, "early_stopping": True, "pad_token_id": 33},
    "short beams": {"num_beams": 2, "eos_token_id": [9], "length_penalty": -1.0, "early_stopping": "never", "pad_token_id": 33},
    "ruled beams": {
        "num_beams": 3,
        "num_return_sequences": 2,
        "bad_words_ids": [[9]],
        "min_new_tokens": 3,
        "eos_token_id": [20, 3],
        "pad_token_id": 33,  # transformers takes 0 for none here
    },  # fmt: skip
}
NAMES = ("gpt2", "llama", "mistral", "qwen2", "gemma")
PROMPTS = [[5, 9, 31, 2, 17], [0, 0, 12, 30, 4]]
MASK = [[1] * 5, [0, 0, 1, 1, 1]]
SCORES = [[1.5, -0.3, 0.2, 2.2, -1.0, 0.9, 0.1, 1.9]]
WARPERS = {
    "TemperatureLogitsWarper": [0.7],
    "TopKLogitsWarper": [3],
    "TopPLogitsWarper": [0.8],
    "MinPLogitsWarper": [0.2],
    "RepetitionPenaltyLogitsProcessor": [1.3],
    "NoRepeatNGramLogitsProcessor": [2],
    "TypicalLogitsWarper": [0.5],
    "SuppressTokensLogitsProcessor": [[1, 5]],
}

if __name__ == "__main__":
    import torch
    import transformers

    ids, mask = torch.tensor(PROMPTS), torch.tensor(MASK)
    found = {"warpers": {}}
    for name, args in WARPERS.items():
        scores = getattr(transformers, name)(*args)(torch.tensor([[3, 1, 3]]), torch.tensor(SCORES))
        found["warpers"][name] = [None if v == float("-inf") else round(v, 6) for v in scores[0].tolist()]
    for name in NAMES:
        kind, fields = cases.CASES[name]
        model, _ = models.build(kind, fields)
        for label, options in OPTIONS.items():
            options = {"eos_token_id": None, "pad_token_id": 0, **options}
            model.generation_config.eos_token_id = options["eos_token_id"]
            options = {"max_new_tokens": 8, "do_sample": False, **options}
            torch.manual_seed(3)
            one = model.generate(ids[:1], **options)
            both = model.generate(ids, attention_mask=mask, **options)
            found[f"{name} {label}"] = {"one": one.tolist(), "both": both.tolist()}
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in found.items())
    pathlib.Path(sys.argv[1]).write_text("{\n" + lines + "\n}\n")
