"""A reader of tokenizer.json in plain Python: BPE, WordPiece, Unigram and word lists, with the usual steps around them.

Text passes through normalisers, is cut by pre-tokenisers into words, each of which the model cuts into tokens; a post-processor
adds the tokens that open and close a text. Decoders go the other way. A step that is not known is an error at once.
"""

import functools
import heapq
import math
import re
import sys
import unicodedata


class Encoded:
    """Tokens of a text: ids, and which of two texts each belongs to.

    >>> from lucid.models.text.reader import Encoded
    >>> Encoded([1], [0]).ids
    [1]
    """

    def __init__(self, ids, type_ids):
        self.ids, self.type_ids = ids, type_ids


# ---- characters ----


@functools.cache
def _category(letter):
    """A character class of all characters whose Unicode category starts with a letter, without brackets."""
    ranges, start = [], None
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and unicodedata.category(chr(code))[: len(letter)] == letter
        if inside and start is None:
            start = code
        elif not inside and start is not None:
            ranges.append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start = None
    return "".join(ranges)


def _pattern(text):
    """A regular expression with Unicode categories as Python's re can have it."""
    out, at, inside = [], 0, False
    while at < len(text):
        c = text[at]
        named = re.match(r"\\([pP])\{(\w+)\}|\\([pP])(\w)", text[at:])
        if named:
            body = _category(named[2] or named[4])
            negative = (named[1] or named[3]) == "P"
            if inside and negative:
                raise ValueError(f"a negated category inside a class: {text!r}")
            out.append(body if inside else f"[{'^' if negative else ''}{body}]")
            at += len(named[0])
            continue
        if c == "\\":
            out.append(text[at : at + 2])
            at += 2
            continue
        inside = (inside or c == "[") and c != "]"
        out.append(c)
        at += 1
    return re.compile("".join(out).replace("(?i:", "(?i:"))


def _is_punctuation(c):
    code = ord(c)
    ascii_sign = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return ascii_sign or unicodedata.category(c).startswith("P")


def _is_chinese(c):
    code = ord(c)
    blocks = (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF)
    return any(a <= code <= b for a, b in (*blocks, (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)))


@functools.cache
def _byte_letters():
    """A printable character for every byte, as GPT-2 has them."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table, extra = {b: chr(b) for b in kept}, 0
    for b in range(256):
        if b not in table:
            table[b] = chr(256 + extra)
            extra += 1
    return table


# ---- normalisers: text to text ----


def _bert_normal(about):
    def normal(text):
        if about.get("clean_text", True):
            text = "".join(
                " " if c.isspace() else c
                for c in text
                if not (ord(c) in (0, 0xFFFD) or unicodedata.category(c)[0] == "C" and c not in "\t\n\r")
            )
        if about.get("handle_chinese_chars", True):
            text = "".join(f" {c} " if _is_chinese(c) else c for c in text)
        strip = about.get("strip_accents")
        if strip or (strip is None and about.get("lowercase", True)):
            text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
        return text.lower() if about.get("lowercase", True) else text

    return normal


def _replacement(about):
    pattern = about["pattern"]
    wanted = _pattern(pattern["Regex"]) if "Regex" in pattern else re.compile(re.escape(pattern["String"]))
    return lambda text: wanted.sub(lambda _: about["content"], text)


def _stripped(about):
    def strip(text):
        text = text.lstrip() if about.get("strip_left", True) else text
        return text.rstrip() if about.get("strip_right", True) else text

    return strip


_NORMALISERS = {
    "NFC": lambda a: lambda t: unicodedata.normalize("NFC", t),
    "NFD": lambda a: lambda t: unicodedata.normalize("NFD", t),
    "NFKC": lambda a: lambda t: unicodedata.normalize("NFKC", t),
    "NFKD": lambda a: lambda t: unicodedata.normalize("NFKD", t),
    "Lowercase": lambda a: str.lower,
    "StripAccents": lambda a: lambda t: "".join(c for c in t if unicodedata.category(c) != "Mn"),
    "Prepend": lambda a: lambda t: a["prepend"] + t if t else t,
    "Replace": _replacement,
    "Strip": _stripped,
    "BertNormalizer": _bert_normal,
}

# ---- pre-tokenisers: a word to words ----


def _split(pattern, behavior, invert=False):
    def cut(word):
        pieces, at = [], 0
        for match in pattern.finditer(word):
            if match.start() > at:
                pieces.append((word[at : match.start()], False))
            if match.end() > match.start():
                pieces.append((match[0], True))
            at = match.end()
        if at < len(word):
            pieces.append((word[at:], False))
        pieces = [(text, found != invert) for text, found in pieces]
        if behavior == "Removed":
            return [text for text, found in pieces if not found]
        if behavior == "Isolated":
            return [text for text, _ in pieces]
        out, last = [], None
        for text, found in pieces:
            if behavior == "Contiguous":
                join = last is found
            elif behavior == "MergedWithPrevious":
                join = found and last is False
            else:  # MergedWithNext
                join = last is True and not found
            if join and out:
                out[-1] += text
            else:
                out.append(text)
            last = found
        return out

    return cut


_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def _byte_level(about):
    letters = _byte_letters()
    cut = _split(_pattern(_GPT2), "Isolated") if about.get("use_regex", True) else lambda word: [word]

    def words(word, first=True):
        if about.get("add_prefix_space", True) and first and not word.startswith(" "):
            word = " " + word
        return ["".join(letters[b] for b in piece.encode()) for piece in cut(word)]

    return words


def _metaspace(about):
    sign = about.get("replacement", "\u2581")
    scheme = about.get("prepend_scheme", "always" if about.get("add_prefix_space", True) else "never")

    def words(word, first=True):
        word = word.replace(" ", sign)
        if (scheme == "always" or (scheme == "first" and first)) and not word.startswith(sign):
            word = sign + word
        return [p for p in re.split(f"(?={re.escape(sign)})", word) if p] if about.get("split", True) else [word]

    return words


def _bert_words(word):
    out = []
    for piece in word.split():
        out += [
            p
            for p in re.split("(" + "|".join({re.escape(c) for c in piece if _is_punctuation(c)} or {"(?!)"}) + ")", piece)
            if p
        ]
    return out


def _given_pattern(about):
    pattern = about["pattern"]
    wanted = _pattern(pattern["Regex"]) if "Regex" in pattern else re.compile(re.escape(pattern["String"]))
    return _split(wanted, about["behavior"], about.get("invert", False))


_WORDS = {
    "ByteLevel": _byte_level,
    "Metaspace": _metaspace,
    "Whitespace": lambda a: re.compile(r"\w+|[^\w\s]+").findall,
    "WhitespaceSplit": lambda a: str.split,
    "BertPreTokenizer": lambda a: _bert_words,
    "Punctuation": lambda a: _split(_pattern(r"[!-/:-@\[-`{-~\p{P}]"), a.get("behavior", "Isolated")),
    "Digits": lambda a: _split(_pattern(r"\p{N}" if a.get("individual_digits") else r"\p{N}+"), "Isolated"),
    "Split": _given_pattern,
}

# ---- models: a word to tokens ----


class _BPE:
    def __init__(self, about):
        self.vocab = about["vocab"]
        merges = [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in about["merges"]]
        self.rank = {pair: i for i, pair in enumerate(merges)}
        self.unk, self.bytes = about.get("unk_token"), about.get("byte_fallback")
        self.whole = about.get("ignore_merges")
        self.prefix, self.suffix = about.get("continuing_subword_prefix") or "", about.get("end_of_word_suffix") or ""
        self.fuse = about.get("fuse_unk")
        self.known = {}

    def tokens(self, word):
        found = self.known.get(word)
        if found is None:
            found = self._cut(word)
            if len(self.known) < 10000:
                self.known[word] = found
        return found

    def _cut(self, word):
        if self.whole and word in self.vocab:
            return [self.vocab[word]]
        parts = [c if i == 0 else self.prefix + c for i, c in enumerate(word)]
        if parts:
            parts[-1] += self.suffix
        after = list(range(1, len(parts) + 1))
        before = list(range(-1, len(parts) - 1))
        heap = [(self.rank[p], i) for i, p in enumerate(zip(parts, parts[1:])) if p in self.rank]
        heapq.heapify(heap)
        while heap:
            rank, i = heapq.heappop(heap)
            j = after[i] if parts[i] is not None else len(parts)
            if j >= len(parts) or self.rank.get((parts[i], parts[j])) != rank:
                continue  # one of the two was merged meanwhile
            parts[i] += parts[j][len(self.prefix) :] if self.prefix else parts[j]
            parts[j] = None
            after[i] = after[j]
            if after[i] < len(parts):
                before[after[i]] = i
                heapq.heappush(heap, (self.rank[pair], i)) if (pair := (parts[i], parts[after[i]])) in self.rank else None
            if before[i] >= 0 and (pair := (parts[before[i]], parts[i])) in self.rank:
                heapq.heappush(heap, (self.rank[pair], before[i]))
        return self._ids(p for p in parts if p is not None)

    def _ids(self, parts):
        ids, last_unknown = [], False
        for part in parts:
            unknown = False
            if part in self.vocab:
                ids.append(self.vocab[part])
            elif self.bytes and all(f"<0x{b:02X}>" in self.vocab for b in part.encode()):
                ids += [self.vocab[f"<0x{b:02X}>"] for b in part.encode()]
            elif self.unk is not None:
                unknown = True
                if not (self.fuse and last_unknown):
                    ids.append(self.vocab[self.unk])
            last_unknown = unknown
        return ids


class _WordPiece:
    def __init__(self, about):
        self.vocab, self.unk = about["vocab"], about["unk_token"]
        self.prefix, self.most = about.get("continuing_subword_prefix", "##"), about.get("max_input_chars_per_word", 100)

    def tokens(self, word):
        if len(word) > self.most:
            return [self.vocab[self.unk]]
        ids, at = [], 0
        while at < len(word):
            for end in range(len(word), at, -1):
                piece = (self.prefix if at else "") + word[at:end]
                if piece in self.vocab:
                    break
            else:
                return [self.vocab[self.unk]]
            ids.append(self.vocab[piece])
            at = end
        return ids


class _Unigram:
    def __init__(self, about):
        self.scores = [score for _, score in about["vocab"]]
        self.vocab = {piece: i for i, (piece, _) in enumerate(about["vocab"])}
        self.unk, self.bytes = about.get("unk_id"), about.get("byte_fallback")
        self.longest = max(map(len, self.vocab), default=1)
        self.unknown_score = min(self.scores, default=0.0) - 10.0

    def tokens(self, word):
        """The pieces with the largest sum of scores; runs of unknown characters are one token."""
        best = [(0.0, 0, None)] + [(-math.inf, 0, None)] * len(word)
        for begin in range(len(word)):
            score = best[begin][0]
            if score == -math.inf:
                continue
            whole = False
            for end in range(begin + 1, min(begin + self.longest, len(word)) + 1):
                index = self.vocab.get(word[begin:end])
                if index is not None:
                    whole |= end == begin + 1
                    if score + self.scores[index] > best[end][0]:
                        best[end] = (score + self.scores[index], begin, index)
            if not whole and score + self.unknown_score > best[begin + 1][0]:
                best[begin + 1] = (score + self.unknown_score, begin, None)
        pieces, end = [], len(word)
        while end > 0:
            _, begin, index = best[end]
            pieces.append((word[begin:end], index))
            end = begin
        ids, last_unknown = [], False
        for text, index in reversed(pieces):
            if index is not None:
                ids.append(index)
            elif self.bytes and all(f"<0x{b:02X}>" in self.vocab for b in text.encode()):
                ids += [self.vocab[f"<0x{b:02X}>"] for b in text.encode()]
            elif self.unk is not None and not last_unknown:
                ids.append(self.unk)
            last_unknown = index is None
        return ids


class _WordLevel:
    def __init__(self, about):
        self.vocab, self.unk = about["vocab"], about.get("unk_token")

    def tokens(self, word):
        index = self.vocab.get(word, self.vocab.get(self.unk))
        return [] if index is None else [index]


_MODELS = {"BPE": _BPE, "WordPiece": _WordPiece, "Unigram": _Unigram, "WordLevel": _WordLevel}

# ---- decoders: tokens to tokens; they are joined in the end ----


def _bytes_back(tokens):
    back = {c: b for b, c in _byte_letters().items()}
    data = bytearray()
    for token in tokens:
        data += bytes(back[c] for c in token) if all(c in back for c in token) else token.encode()
    return [data.decode("utf-8", "replace")]


def _word_piece_back(about):
    prefix = about.get("prefix", "##")

    def join(tokens):
        out = []
        for i, token in enumerate(tokens):
            if i:
                token = token[len(prefix) :] if token.startswith(prefix) else f" {token}"
            if about.get("cleanup", True):
                for spaced, tight in (
                    (" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"),
                    (" 'm", "'m"), (" do not", " don't"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"),
                ):  # fmt: skip
                    token = token.replace(spaced, tight)
            out.append(token)
        return out

    return join


def _metaspace_back(about):
    sign = about.get("replacement", "\u2581")
    prepends = about.get("prepend_scheme", "always" if about.get("add_prefix_space", True) else "never") != "never"

    def join(tokens):
        return [t.replace(sign, " ")[1 if i == 0 and prepends and t.startswith(sign) else 0 :] for i, t in enumerate(tokens)]

    return join


def _byte_fallback_back(tokens):
    out, data = [], bytearray()

    def flush():
        if data:
            try:
                out.append(data.decode())
            except UnicodeDecodeError:
                out.extend("\N{REPLACEMENT CHARACTER}" * len(data))
            data.clear()

    for token in tokens:
        if re.fullmatch(r"<0x[0-9A-F]{2}>", token):
            data.append(int(token[3:5], 16))
        else:
            flush()
            out.append(token)
    flush()
    return out


def _ends_stripped(about):
    def strip(tokens):
        out = []
        for token in tokens:
            for _ in range(about.get("start", 0)):
                token = token.removeprefix(about["content"])
            for _ in range(about.get("stop", 0)):
                token = token.removesuffix(about["content"])
            out.append(token)
        return out

    return strip


_DECODERS = {
    "ByteLevel": lambda a: _bytes_back,
    "WordPiece": _word_piece_back,
    "Metaspace": _metaspace_back,
    "ByteFallback": lambda a: _byte_fallback_back,
    "Fuse": lambda a: lambda tokens: ["".join(tokens)],
    "Replace": lambda a: lambda tokens: [_replacement(a)(t) for t in tokens],
    "Strip": _ends_stripped,
    "BPEDecoder": lambda a: (
        lambda tokens: [t.replace(a.get("suffix", "</w>"), "" if i == len(tokens) - 1 else " ") for i, t in enumerate(tokens)]
    ),
}


def _steps(about, table, inner):
    """The functions of a step of the file, which may be a sequence of them."""
    if about is None:
        return []
    if about["type"] == "Sequence":
        return [step for each in about[inner] for step in _steps(each, table, inner)]
    if about["type"] not in table:
        raise ValueError(f"tokenizer.json asks for {about['type']}, which is not implemented (the package tokenizers has it)")
    return [table[about["type"]](about)]


class Reader:
    """A tokenizer from the content of tokenizer.json.

    >>> from lucid.models.text.reader import Reader
    >>> file = {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}
    >>> Reader(file).encode("abba").ids
    [2, 1, 0]
    """

    def __init__(self, file):
        self.normalisers = _steps(file.get("normalizer"), _NORMALISERS, "normalizers")
        self.cutters = _steps(file.get("pre_tokenizer"), _WORDS, "pretokenizers")
        self.decoders = _steps(file.get("decoder"), _DECODERS, "decoders")
        about = file["model"]
        kind = about.get("type") or ("BPE" if "merges" in about else "WordPiece")
        if kind not in _MODELS:
            raise ValueError(f"tokenizer.json has a model of type {kind!r}; known: {', '.join(_MODELS)}")
        self.model = _MODELS[kind](about)
        self.added = {t["content"]: t for t in file.get("added_tokens") or ()}
        self.ids = {**self.model.vocab, **{text: t["id"] for text, t in self.added.items()}}
        self.texts = {index: text for text, index in self.ids.items()}
        self.special = {t["id"] for t in self.added.values() if t.get("special")}
        self.post = file.get("post_processor")
        self._added = {}
        for normal in (False, True):  # those that are looked for before and after normalising
            chosen = [t for t in self.added.values() if bool(t.get("normalized")) is normal]
            chosen.sort(key=lambda t: -len(t["content"]))
            self._added[normal] = chosen and re.compile("|".join(self._added_pattern(t) for t in chosen))

    @staticmethod
    def _added_pattern(token):
        text = re.escape(token["content"])
        if token.get("single_word"):
            text = rf"\b{text}\b"
        return (r"\s*" if token.get("lstrip") else "") + f"({text})" + (r"\s*" if token.get("rstrip") else "")

    def token_to_id(self, token):
        return self.ids.get(token)

    def id_to_token(self, index):
        return self.texts.get(index)

    def get_vocab_size(self):
        return len(self.ids)

    def _pieces(self, text, normal):
        """(text, id of an added token or None)"""
        wanted, at = self._added[normal], 0
        if not wanted:
            yield text, None
            return
        for match in wanted.finditer(text):
            yield text[at : match.start()], None
            content = next(g for g in match.groups() if g is not None)
            yield content, self.added[content]["id"]
            at = match.end()
        yield text[at:], None

    def _text_ids(self, text):
        ids, first = [], True
        for raw, index in self._pieces(text, False):
            if index is not None:
                ids.append(index)
                first = False
                continue
            for step in self.normalisers if raw else ():
                raw = step(raw)
            for piece, index in self._pieces(raw, True):
                if index is not None:
                    ids.append(index)
                elif piece:
                    for word in self._words(piece, first):
                        ids += self.model.tokens(word)
                first = first and not piece
        return ids

    def _words(self, text, first):
        words = [text]
        for cut in self.cutters:
            new = []
            for i, word in enumerate(words):
                spaced = getattr(cut, "__name__", "") == "words"  # those that put a space before the first word
                new += cut(word, first and i == 0 if spaced and _starts_text(cut) else True) if spaced else cut(word)
            words = new
        return [w for w in words if w]

    def encode(self, text, pair=None, add_special_tokens=True):
        texts = [self._text_ids(text)] + ([self._text_ids(pair)] if pair is not None else [])
        if not add_special_tokens or self.post is None:
            ids = [i for t in texts for i in t]
            return Encoded(ids, [n for n, t in enumerate(texts) for _ in t])
        ids, types = self._closed(self.post, texts)
        return Encoded(ids, types)

    def _closed(self, post, texts):
        kind = post["type"]
        if kind == "Sequence":
            for each in post["processors"]:
                if each["type"] != "ByteLevel":
                    return self._closed(each, texts)
            kind = "ByteLevel"
        if kind == "ByteLevel":
            return [i for t in texts for i in t], [n for n, t in enumerate(texts) for _ in t]
        if kind in ("BertProcessing", "RobertaProcessing"):
            opens, closes = post["cls"][1], post["sep"][1]
            between = [closes] if kind == "RobertaProcessing" else []
            ids, types = [opens, *texts[0], closes], [0] * (len(texts[0]) + 2)
            for other in texts[1:]:
                ids += [*between, *other, closes]
                types += [0 if between else 1] * (len(other) + 1 + len(between))
            return ids, types
        if kind != "TemplateProcessing":
            raise ValueError(f"tokenizer.json asks for {kind}, which is not implemented (the package tokenizers has it)")
        ids, types = [], []
        for part in post["pair" if len(texts) > 1 else "single"]:
            if "Sequence" in part:
                new = texts[0 if part["Sequence"]["id"] == "A" else 1]
            else:
                new = post["special_tokens"][part["SpecialToken"]["id"]]["ids"]
            ids += new
            types += [next(iter(part.values()))["type_id"]] * len(new)
        return ids, types

    def decode(self, ids, skip_special_tokens=True):
        tokens = [self.texts[i] for i in ids if i in self.texts and not (skip_special_tokens and i in self.special)]
        for step in self.decoders:
            tokens = step(tokens)
        return "".join(tokens) if self.decoders else " ".join(tokens)


def _starts_text(cut):
    return cut.__qualname__.startswith("_metaspace")
