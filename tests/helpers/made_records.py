"""Records of a made-up language, and small models to train on them."""

import keras
import numpy as np

from albert_tf.pretraining.records.records_directory import (
    Header,
    complete_shard,
    publish,
)
from albert_tf.pretraining.records.segment_pairs import Sentences, cut_sequences

PAD, UNK, CLS, SEP, MASK = range(5)
STEMS, ENDINGS, PHASES = 20, 20, 6
VOCABULARY = 5 + STEMS + ENDINGS + PHASES
LENGTH = 28


def language(documents, seed):
    """A language whose every word is a stem and the ending that belongs to it.

    Knowing one of the two gives the other; nothing else does, so guessing gets one in
    twenty. Each sentence begins with a token that tells how far the document is.
    """
    random = np.random.default_rng(seed)
    tokens, bounds = [], []
    for _ in range(documents):
        bound = [len(tokens)]
        for phase in range(PHASES):
            tokens.append(5 + STEMS + ENDINGS + phase)
            for stem in random.integers(STEMS, size=2):
                tokens += [5 + stem, 5 + STEMS + stem * 7 % ENDINGS]
            bound.append(len(tokens))
        bounds.append(np.array(bound))
    tokens = np.array(tokens, "uint16")
    return Sentences(tokens, np.ones(len(tokens), bool), bounds)


def write(folder, documents=1500, files=2, order="sop", seed=0, masked=False):
    """Records in several shards, with the manifest and the vocabulary."""
    folder.mkdir(parents=True)
    shards = []
    for file in range(files):
        random = np.random.default_rng(seed + file)
        sentences = language(documents, seed + file)
        arrays = cut_sequences(sentences, LENGTH, random, pairs=order != "none")
        arrays |= mask(arrays, random) if masked else {}
        name = f"pretrain-{file:05d}-00-{seed:016x}"
        shards += complete_shard(folder / name, lambda arrays=arrays: arrays)
    rows = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    rows += [chr(0x4E00 + i) for i in range(VOCABULARY - 5)]
    (folder / "vocab.txt").write_text("\n".join(rows) + "\n")
    ids = {"cls": CLS, "sep": SEP, "pad": PAD, "mask": MASK}
    settings = {"order": order, "lowercase": True, "sequence_length": LENGTH}
    tokens = {"size": VOCABULARY, **ids}
    publish(folder, Header(folder / "vocab.txt", tokens, settings), shards)
    return folder


def word_starts(arrays):
    """Where words begin in the tokens of a shard, bool [tokens]."""
    bits = np.unpackbits(arrays["word_starts"], count=len(arrays["token_ids"]))
    return bits.astype(bool)


def mask(arrays, random):
    """Labels and masks of single tokens, as converted TFRecords have them."""
    ids, lengths = arrays["token_ids"], arrays["lengths"].astype(int)
    row = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(ids)) - (np.cumsum(lengths) - lengths)[row]
    # After [CLS], and in the second segment after [SEP].
    place += 1 + (place >= arrays["second_starts"][row])
    chosen = random.random(len(ids)) < 0.15
    counts = np.bincount(row[chosen], minlength=len(lengths))
    return {
        "token_ids": np.where(chosen, MASK, ids).astype(ids.dtype),
        "labels": np.zeros(len(lengths), "uint8"),
        "mask_counts": counts.astype("uint16"),
        "mask_positions": place[chosen].astype("uint16"),
        "mask_ids": ids[chosen],
    }


def model(num_sop_classes=2, layers=2):
    from albert_tf.models import AlbertBackbone, AlbertPretrainer

    keras.utils.set_random_seed(1)
    sizes = {"num_layers": layers, "num_heads": 4, "embedding_dim": 32}
    sizes |= {"hidden_dim": 48, "intermediate_dim": 96, "max_sequence_length": LENGTH}
    backbone = AlbertBackbone(VOCABULARY, **sizes, normalize_first=True)
    return AlbertPretrainer(backbone, num_sop_classes=num_sop_classes)
