"""A corpus of four sentences, and a vocabulary of its characters."""

LINES = [
    "我们今天去公园散步。",
    "天气很好，有很多人。",
    "明天可能下雨！",
    "你想去哪里？",
]
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(set("".join(LINES)))]


def write_corpus(file, documents):
    """Documents of these sentences, each from another one on."""
    texts = ["\n".join(LINES[i % 4 :] + LINES[: i % 4]) for i in range(documents)]
    file.write_text("\n\n".join(texts) + "\n", encoding="utf-8")


def write_vocabulary(file, size=0):
    """The vocabulary, filled up to `size` if that is more."""
    unused = [f"[unused{i}]" for i in range(size - len(TOKENS))]
    file.write_text("\n".join(TOKENS + unused) + "\n", encoding="utf-8")
