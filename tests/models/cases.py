"""Tiny configurations of text models, with weights that both libraries compute from the keys' names."""

import math
import zlib

TEXT = dict(vocab_size=37, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24)
NO_DROPOUT = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
LLAMA = dict(TEXT, num_key_value_heads=2, max_position_embeddings=64)
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
LONG = {"rope_type": "longrope", "factor": 4.0, "short_factor": [1.0, 1.25], "long_factor": [2.0, 3.5]}
GPT2 = dict(vocab_size=37, n_embd=16, n_layer=2, n_head=4, n_positions=32, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
BERT = dict(TEXT, max_position_embeddings=32, **NO_DROPOUT)
OURS = {"BertLMHeadModel": "BertForCausalLM", "OpenAIGPTDoubleHeadsModel": "GPTDoubleHeadsModel"}
# name: class (the same in both libraries but for OURS), fields of its config by the Hub's names
CASES = {
    "gpt2": ("GPT2LMHeadModel", GPT2),
    "gpt2 scaled by layer": ("GPT2LMHeadModel", dict(GPT2, scale_attn_by_inverse_layer_idx=True, n_inner=40)),
    "gpt2 classifier": ("GPT2ForSequenceClassification", dict(GPT2, num_labels=3, pad_token_id=0)),
    "gpt2 base": ("GPT2Model", GPT2),
    "llama": ("LlamaForCausalLM", LLAMA),
    "llama tied, biased, theta": (
        "LlamaForCausalLM",
        dict(LLAMA, tie_word_embeddings=True, attention_bias=True, mlp_bias=True, rope_theta=500.0),
    ),
    "llama linear": ("LlamaForCausalLM", dict(LLAMA, rope_scaling={"rope_type": "linear", "factor": 4.0})),
    "llama dynamic": (
        "LlamaForCausalLM",
        dict(LLAMA, rope_scaling={"rope_type": "dynamic", "factor": 2.0}, max_position_embeddings=8),
    ),
    "llama llama3": ("LlamaForCausalLM", dict(LLAMA, rope_scaling=LLAMA3)),
    "llama yarn": (
        "LlamaForCausalLM",
        dict(LLAMA, rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}),
    ),
    "llama longrope": (  # longer than it was trained on, and not
        "LlamaForCausalLM",
        dict(LLAMA, rope_scaling=dict(LONG, original_max_position_embeddings=8)),
    ),
    "llama longrope, short": ("LlamaForCausalLM", dict(LLAMA, rope_scaling=dict(LONG, original_max_position_embeddings=32))),
    "mistral": ("MistralForCausalLM", dict(LLAMA, sliding_window=4)),
    "mistral wide head": ("MistralForCausalLM", dict(LLAMA, sliding_window=None, head_dim=12)),
    "qwen2": ("Qwen2ForCausalLM", dict(LLAMA, tie_word_embeddings=True)),
    "qwen2 window": ("Qwen2ForCausalLM", dict(LLAMA, use_sliding_window=True, sliding_window=3, max_window_layers=1)),
    "qwen3": ("Qwen3ForCausalLM", dict(LLAMA, head_dim=8)),
    "gemma": ("GemmaForCausalLM", dict(LLAMA, head_dim=8)),
    "bert": ("BertModel", BERT),
    "bert masked words": ("BertForMaskedLM", BERT),
    "bert classifier": ("BertForSequenceClassification", dict(BERT, num_labels=3)),
    "bert tokens": ("BertForTokenClassification", dict(BERT, num_labels=3)),
    "bert answers": ("BertForQuestionAnswering", BERT),
    "bert pretraining": ("BertForPreTraining", BERT),
    "bert next sentence": ("BertForNextSentencePrediction", BERT),
    "bert causal": ("BertLMHeadModel", BERT),
    "gpt2 double heads": ("GPT2DoubleHeadsModel", dict(GPT2, summary_first_dropout=0.0)),
    "gpt double heads": ("OpenAIGPTDoubleHeadsModel", dict(GPT2, summary_first_dropout=0.0)),
}
IDS = [[5, 9, 31, 2, 17, 8, 3, 11, 24, 6], [7, 1, 12, 30, 4, 22, 35, 13, 0, 0]]
MASK = [[1] * 10, [1] * 8 + [0] * 2]


FIELDS = (
    *("logits", "last_hidden_state", "pooler_output", "start_logits", "end_logits"),
    *("prediction_logits", "seq_relationship_logits", "mc_logits", "mc_loss"),
)


def values(key, count):
    """count numbers that depend on the key, about as large as trained weights."""
    seed = zlib.crc32(key.encode()) % 1000
    center = 1.0 if "norm" in key.lower() and key.endswith("weight") or ".ln_" in f".{key}" and key.endswith("weight") else 0.0
    return [center + 0.2 * math.sin(seed + 1.7 * i + 0.3 * (i % 7)) for i in range(count)]


def labels_for(kind):
    """The arguments that make a model of this class compute a loss."""
    if "SequenceClassification" in kind:
        return {"labels": [2, 0]}
    if "QuestionAnswering" in kind:
        return {"start_positions": [1, 3], "end_positions": [4, 20]}
    if "TokenClassification" in kind:
        return {"labels": [[i % 3 for i in row] for row in IDS]}
    if "NextSentence" in kind:
        return {"labels": [1, 0]}
    if "DoubleHeads" in kind:
        return {"labels": IDS, "mc_labels": [1]}
    if "PreTraining" in kind:
        return {"labels": IDS, "next_sentence_label": [1, 0]}
    if "LM" in kind:
        return {"labels": [[-100 if i % 4 == 0 else i for i in row] for row in IDS]}
    return {}
