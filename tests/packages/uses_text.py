"""Uses of packages for text and attention. `uses.py` says how they are written."""

import os
import tempfile

import torch
from torch import nn

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] a b c d e f g h i j the cat dog sat on mat ran far"


def _sentence_model():
    from sentence_transformers import SentenceTransformer, models
    from transformers import BertConfig, BertModel, BertTokenizerFast

    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = BertConfig(
        vocab_size=len(WORDS.split()), **sizes, attention_probs_dropout_prob=0, hidden_dropout_prob=0, initializer_range=0.3
    )
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = os.path.join(folder, "vocab.txt")
        with open(vocabulary, "w") as file:
            file.write(WORDS.replace(" ", "\n"))
        BertTokenizerFast(vocab_file=vocabulary).save_pretrained(folder)
        BertModel(config).save_pretrained(folder)
        word = models.Transformer(folder, max_seq_length=16)
    return SentenceTransformer(modules=[word, models.Pooling(32), models.Normalize()], device="cpu")


def sentence_transformers__encode():
    from sentence_transformers import SentenceTransformer, util

    model, texts = _sentence_model(), ["the cat sat on the mat", "a dog ran far", "the dog sat"]
    vectors = model.encode(texts, convert_to_tensor=True)
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder)
        again = SentenceTransformer(folder, device="cpu").encode(texts)
    nearest = util.semantic_search(vectors[:1], vectors, top_k=2)[0]
    return [vectors, torch.tensor(again), model.similarity(vectors, vectors), [hit["corpus_id"] for hit in nearest]]


def sentence_transformers__losses():
    from sentence_transformers import losses

    model = _sentence_model()
    a, b, c = ["the cat sat", "a dog ran far"], ["cat on mat", "the dog ran"], ["far far", "e f"]
    optimizer, found = torch.optim.SGD(model.parameters(), lr=1e-3), []
    for kind, labels, texts in (
        (losses.MultipleNegativesRankingLoss, None, (a, b)),
        (losses.CosineSimilarityLoss, [0.2, 0.9], (a, b)),
        (losses.ContrastiveLoss, [0, 1], (a, b)),
        (losses.TripletLoss, None, (a, b, c)),
        (losses.CoSENTLoss, [0.1, 0.7], (a, b)),
    ):
        loss = kind(model)([dict(model.tokenize(text)) for text in texts], None if labels is None else torch.tensor(labels))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss)
    return [*found, model.encode(a, convert_to_tensor=True)]


def vector_quantize_pytorch__quantize():
    from vector_quantize_pytorch import FSQ, ResidualVQ, VectorQuantize

    x = torch.randn(2, 20, 8, requires_grad=True)
    y, indices, loss = VectorQuantize(dim=8, codebook_size=16, decay=0.8, kmeans_init=True, kmeans_iters=3)(x)
    (y.sum() + loss.sum()).backward()
    others = ResidualVQ(dim=8, num_quantizers=2, codebook_size=16)(torch.randn(2, 20, 8))
    return [y, indices, loss, x.grad, *others, *FSQ([4, 4, 4])(torch.randn(2, 20, 3))]


def rotary_embedding_torch__rotate():
    from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb

    q, k = torch.randn(1, 2, 10, 16), torch.randn(1, 2, 10, 16)
    both = RotaryEmbedding(dim=16, use_xpos=True).rotate_queries_and_keys(q, k)
    axes = RotaryEmbedding(dim=8, freqs_for="pixel", max_freq=16).get_axial_freqs(4, 4)
    return [*both, apply_rotary_emb(axes, torch.randn(1, 4, 4, 16)), RotaryEmbedding(dim=16).rotate_queries_or_keys(q)]


def local_attention__transformer():
    from local_attention import LocalTransformer

    model = LocalTransformer(
        num_tokens=32, dim=16, depth=2, max_seq_len=32, causal=True, local_attn_window_size=8, dim_head=8, heads=2
    )
    loss = model(torch.randint(0, 32, (2, 32)), return_loss=True)
    loss.backward()
    return [loss, [p.grad for p in model.parameters() if p.grad is not None]]


def performer_pytorch__language():
    from performer_pytorch import PerformerLM

    model = PerformerLM(num_tokens=32, max_seq_len=32, dim=32, depth=2, heads=2, causal=False, nb_features=16)
    y = model(torch.randint(0, 32, (2, 32)))
    y.square().mean().backward()
    return [y, sum(p.grad.abs().sum() for p in model.parameters() if p.grad is not None)]


def ema_pytorch__update():
    from ema_pytorch import EMA

    model = nn.Linear(3, 2)
    average = EMA(model, beta=0.9, update_after_step=0, update_every=1)
    for _ in range(4):
        with torch.no_grad():
            model.weight.add_(torch.randn(2, 3))
        average.update()
    return [average(torch.ones(1, 3)), list(average.ema_model.parameters())]
