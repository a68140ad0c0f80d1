"""Records of a made-up language, and small models to train on them."""

import keras
import numpy as np

from albert_tf.models import AlbertBackbone, AlbertPretrainer
from albert_tf.preprocessing import WholeWordMaskGenerator
from albert_tf.pretraining.records import write_records
from albert_tf.pretraining.segment_pairs import Sentences, draw_sequences

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
    tokens = np.array(tokens, "int32")
    return Sentences(tokens, np.ones(len(tokens), bool), bounds)


def write(folder, documents=1500, files=2, order="sop", seed=0, masked=False):
    """Files of records and their vocabulary, without a manifest."""
    folder.mkdir(parents=True)
    masks = WholeWordMaskGenerator(
        VOCABULARY, 0.15, MASK, 6, unselectable_token_ids=[PAD, CLS, SEP], ngram=1
    )
    for file in range(files):
        sentences = language(documents, seed + file)
        random = np.random.default_rng(seed + file)
        arrays = draw_sequences(sentences, LENGTH, random, (CLS, SEP, PAD), order)
        if masked:
            ids, starts = arrays["token_ids"], arrays["word_starts"]
            arrays.update(masks(ids, starts, seed=[seed, file]))
        write_records(folder / f"{file}.tfrecord", arrays)
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens += [chr(0x4E00 + i) for i in range(VOCABULARY - 5)]
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
    return folder


def model(num_sop_classes=2, layers=2):
    keras.utils.set_random_seed(1)
    sizes = {"num_layers": layers, "num_heads": 4, "embedding_dim": 32}
    sizes |= {"hidden_dim": 48, "intermediate_dim": 96, "max_sequence_length": LENGTH}
    backbone = AlbertBackbone(VOCABULARY, **sizes, normalize_first=True)
    return AlbertPretrainer(backbone, num_sop_classes=num_sop_classes)
