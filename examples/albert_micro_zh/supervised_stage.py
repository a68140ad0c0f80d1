"""Train a pretrained ALBERT on many labelled data sets at once, a head for each.

    python examples/albert_micro_zh/supervised_stage.py CHECKPOINT LABELLED OUTPUT

LABELLED has sentiment.tsv.gz, topics.tsv.gz, pairs.tsv.gz and entities.jsonl.gz. Each
batch mixes the data sets, drawn by the square root of their sizes, and predicts masked
tokens in a quarter of its rows. OUTPUT gets a checkpoint with the sentiment head, to
predict reviews or to fine-tune from. The same command resumes after an interruption.

Reference: [Muppet](https://arxiv.org/abs/2101.11038), whose losses are divided by the
logarithm of the number of classes.
"""

import argparse
import collections
import csv
import dataclasses
import functools
import gzip
import json
import math
import pathlib

import keras
import numpy as np
from keras import ops

import albert_tf
from albert_tf.files import BACKUP, remove_directory
from albert_tf.models.pooling import pool_states
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.training import scheduled_optimizer
from albert_tf.training.run_state import TrainingState, hold_state, plot_history

SEQUENCE_LENGTH, ROWS, POOL = 128, 64, 16
MASKED_ROWS, MASK_RATE = 0.25, 0.15
# The weakest labels, and a mixture with rows of LCQMC, on which the model is measured.
LEFT_OUT = {"shop_nlpcc2014", "simclue_train_1w", "qbqtc_dev"}
# Data sets with the same classes share a head.
SAME_CLASSES = {"toutiao_titles": "tnews_train"}
SENTIMENT, SENTIMENT_LABELS = "sentiment", ("差评", "好评")
# Stored with the checkpoint; chosen on the dev set of ChnSentiCorp.
FINE_TUNING = {"pooling_mode": "mean", "learning_rate": 1e-4}
IGNORED = -1


@dataclasses.dataclass
class DataSet:
    """Texts as ids, with classes of texts or of tokens."""

    head: str
    tokens: list  # int arrays, one per text.
    first_lengths: np.ndarray  # Tokens up to the first [SEP].
    labels: list  # Names, or int arrays of the tags of each token.
    is_tagged: bool = False
    # Set by `number_classes`, among the classes of all heads of texts or of tokens:
    classes: list | None = None  # Numbers, or int arrays of those of each token.
    range: tuple[int, int] = (0, 0)  # The first and the last of the head, exclusive.


# === Reading ===


def read_data(folder, checkpoint, preprocessor):
    """Return the data sets of the four files."""
    sets = []
    for file, source, columns in (
        ("sentiment", "domain", ["text"]),
        ("topics", "source", ["text"]),
        ("pairs", "source", ["text_a", "text_b"]),
    ):
        groups = collections.defaultdict(list)
        with gzip.open(folder / f"{file}.tsv.gz", "rt", encoding="utf-8") as lines:
            for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
                groups[row[source]].append(row)
        for name, rows in groups.items():
            if name in LEFT_OUT:
                continue
            head = SENTIMENT if file == SENTIMENT else SAME_CLASSES.get(name, name)
            texts = tuple([row[column] for row in rows] for column in columns)
            packed = preprocessor.pack_texts(texts if len(texts) > 1 else texts[0])
            labels = [row["label"] for row in rows]
            sets.append(DataSet(head, *as_arrays(packed), labels))
    return [*sets, *read_entities(folder / "entities.jsonl.gz", checkpoint)]


def read_entities(path, checkpoint):
    """Yield the data sets of tagged texts."""
    groups = collections.defaultdict(list)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            groups[row["source"]].append((row["text"], row["spans"]))
    for name, rows in groups.items():
        texts, spans = map(list, zip(*rows, strict=True))
        labels = sorted({label for row in spans for *_, label in row})
        tagger = albert_tf.models.AlbertTokenClassifier.from_checkpoint(
            checkpoint, labels=labels, sequence_length=SEQUENCE_LENGTH
        )
        packed = tagger.preprocessor.pack_texts(texts)
        tags = tagger.targets(texts, spans, packed)
        tags = np.split(tags.values.numpy(), tags.row_splits.numpy()[1:-1])
        yield DataSet(name, *as_arrays(packed), tags, is_tagged=True)


def as_arrays(packed):
    tokens = packed.tokens
    values = tokens.values.numpy().astype("uint16")
    rows = np.split(values, tokens.row_splits.numpy()[1:-1])
    return rows, packed.first_lengths.numpy()


def number_classes(sets):
    """Number the classes of the heads one after another, and return their count."""
    first = 0
    for head in dict.fromkeys(data.head for data in sets):
        group = [data for data in sets if data.head == head]
        if group[0].is_tagged:
            count = 1 + max(int(max(tags)) for data in group for tags in data.labels)
            for data in group:
                # [CLS] and [SEP] have no tag.
                data.classes = [
                    np.where(tags == IGNORED, IGNORED, first + tags)
                    for tags in data.labels
                ]
        else:
            names = sorted({label for data in group for label in data.labels})
            numbers, count = {x: first + i for i, x in enumerate(names)}, len(names)
            for data in group:
                data.classes = [numbers[label] for label in data.labels]
        for data in group:
            data.range = first, first + count
        first += count
    return first


# === Batches ===


def draw_order(sets, count, seed):
    """Return the set and the row of each example of the training, int arrays.

    The examples of a set are repeated only when all were drawn. Both labels of a
    sentiment set are equally frequent, and its size is twice that of the rarer one.
    """
    generator = np.random.default_rng(seed)
    groups = []
    for data in sets:
        rows = np.arange(len(data.tokens))
        if data.head != SENTIMENT:
            groups.append([rows])
            continue
        is_positive = np.array(data.labels) == "1"
        groups.append([rows[is_positive], rows[~is_positive]])
    sizes = np.sqrt([len(group) * min(map(len, group)) for group in groups])
    owners, drawn = [], []
    for index, share in enumerate(sizes / sizes.sum()):
        for rows in groups[index]:
            wanted = round(count * share / len(groups[index]))
            if wanted:
                passes = math.ceil(wanted / len(rows))
                repeated = [generator.permutation(rows) for _ in range(passes)]
                drawn.append(np.concatenate(repeated)[:wanted])
                owners.append(np.full(wanted, index))
    owners, drawn = map(np.concatenate, (owners, drawn))
    order = generator.permutation(len(owners))
    return owners[order], drawn[order]


class Batches(keras.utils.PyDataset):
    """Batches of similar lengths; a batch depends on its number and the seed alone."""

    def __init__(self, sets, tokenizer, steps, seed, skip=0):
        super().__init__(workers=1, use_multiprocessing=False)
        self.sets, self.tokenizer = sets, tokenizer
        self.steps, self.seed, self.skip = steps, seed, skip
        self.special = np.array(tokenizer.special_token_ids)
        owners, rows = draw_order(sets, (steps + POOL) * ROWS, seed)
        lengths = np.array(
            [len(sets[x].tokens[y]) for x, y in zip(owners, rows, strict=True)]
        )
        generator = np.random.default_rng([seed, 1])
        self.batches = []
        for start in range(0, steps * ROWS, POOL * ROWS):
            pool = start + np.argsort(lengths[start : start + POOL * ROWS])
            pool = [pool[x : x + ROWS] for x in range(0, len(pool), ROWS)]
            self.batches += [pool[x] for x in generator.permutation(len(pool))]
        self.owners, self.rows = owners, rows

    def __len__(self):
        return self.steps - self.skip

    def __getitem__(self, index):
        index += self.skip
        generator = np.random.default_rng([self.seed, 2, index])
        batch = generator.permutation(self.batches[index])
        examples = [(self.sets[self.owners[x]], self.rows[x]) for x in batch]
        longest = max(len(data.tokens[row]) for data, row in examples)
        count, shape = len(batch), (len(batch), -(-longest // 8) * 8)
        x = {
            "token_ids": np.full(shape, self.tokenizer.pad_token_id, "int32"),
            "segment_ids": np.zeros(shape, "int32"),
            "padding_mask": np.zeros(shape, "int32"),
        }
        y = {
            "text_ranges": np.zeros((count, 2), "int32"),
            "text_labels": np.full(count, IGNORED, "int32"),
            "tag_ranges": np.zeros((count, 2), "int32"),
            "tag_labels": np.full(shape, IGNORED, "int32"),
        }
        masked_rows = round(MASKED_ROWS * count)
        for i, (data, row) in enumerate(examples):
            length = len(data.tokens[row])
            x["token_ids"][i, :length] = data.tokens[row]
            x["padding_mask"][i, :length] = 1
            x["segment_ids"][i, data.first_lengths[row] : length] = 1
            kind = "tag" if data.is_tagged else "text"
            y[f"{kind}_ranges"][i] = data.range
            if i >= masked_rows:
                where = (i, slice(length)) if data.is_tagged else i
                y[f"{kind}_labels"][where] = data.classes[row]
        positions, y["mask_labels"] = self.mask(x["token_ids"], masked_rows, generator)
        x["mask_positions"] = positions[np.newaxis]
        return x, y

    def mask(self, token_ids, rows, generator):
        """Mask tokens of the first rows; return positions in the batch, and labels."""
        ids = token_ids[:rows].reshape(-1)
        can_be_masked = ~np.isin(ids, self.special)
        chosen = np.flatnonzero(
            can_be_masked & (generator.random(len(ids)) < MASK_RATE)
        )
        # As many predictions in each batch of a length, for frameworks that compile.
        count = math.ceil(MASK_RATE * len(ids))
        chosen = generator.permutation(chosen)[:count]
        labels = np.full(count, IGNORED, "int32")
        labels[: len(chosen)] = ids[chosen]
        draw = generator.random(len(chosen))
        ids[chosen[draw < 0.8]] = self.tokenizer.mask_token_id
        random = chosen[draw >= 0.9]
        ids[random] = generator.integers(
            self.tokenizer.vocabulary_size(), size=len(random)
        )
        token_ids[:rows] = ids.reshape(rows, -1)
        return np.pad(chosen, (0, count - len(chosen))).astype("int32"), labels


# === The model ===


def cross_entropy(logits, labels, ranges=None):
    """Return the mean loss and accuracy where a label is not ignored.

    `ranges` [rows, 2] limit the classes of a row. A loss is divided by the logarithm
    of the number of its classes, that of a guess.
    """
    counts = logits.shape[-1]
    if ranges is not None:
        classes = ops.arange(logits.shape[-1])
        inside = (classes >= ranges[:, :1]) & (classes < ranges[:, 1:])
        counts = ranges[:, 1] - ranges[:, 0]
        if len(logits.shape) == 3:
            inside, counts = inside[:, None], counts[:, None]
        logits = ops.where(inside, logits, -1e9)
    weights = ops.cast(labels != IGNORED, "float32")
    safe = ops.maximum(labels, 0)
    losses = keras.losses.sparse_categorical_crossentropy(
        safe, logits, from_logits=True
    )
    losses = losses / ops.log(ops.cast(ops.maximum(counts, 2), "float32"))
    right = ops.cast(ops.argmax(logits, -1), "int32") == safe
    total = ops.maximum(ops.sum(weights), 1)
    accuracy = ops.sum(weights * ops.cast(right, "float32")) / total
    return ops.sum(weights * losses) / total, accuracy


class MultiTask(keras.Model):
    """A shared encoder with the heads of all data sets side by side."""

    def __init__(self, masked_lm, classes):
        backbone = masked_lm.backbone
        layers = backbone.with_intermediates().output["hidden_states"]
        mask = backbone.input["padding_mask"]
        hidden, pooled = layers[-1], pool_states(backbone, "mean", layers, mask)
        pooled = keras.layers.Dropout(0.1)(pooled)
        positions = keras.Input(
            batch_shape=(1, None), dtype="int32", name="mask_positions"
        )
        states = ops.reshape(hidden, (1, -1, hidden.shape[-1]))
        super().__init__(
            inputs={**backbone.input, "mask_positions": positions},
            outputs={
                "text": keras.layers.Dense(classes["text"], name="text")(pooled),
                "tags": keras.layers.Dense(classes["tags"], name="tags")(hidden),
                "masked": masked_lm.masked_lm_head(states, positions),
            },
        )
        self.backbone = backbone
        self.parts = ("text", "tags", "masked")
        self.means = {
            f"{part}_{kind}": keras.metrics.Mean(f"{part}_{kind}")
            for part in self.parts
            for kind in ("loss", "accuracy")
        }

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, **kwargs):
        found = {
            "text": cross_entropy(y_pred["text"], y["text_labels"], y["text_ranges"]),
            "tags": cross_entropy(y_pred["tags"], y["tag_labels"], y["tag_ranges"]),
            "masked": cross_entropy(y_pred["masked"][0], y["mask_labels"]),
        }
        for part, values in found.items():
            for kind, value in zip(("loss", "accuracy"), values, strict=True):
                self.means[f"{part}_{kind}"].update_state(value)
        return sum(found[part][0] for part in self.parts)

    def sentiment_classifier(self, first, end, preprocessor):
        """Return the encoder with the head of the reviews, classes `first` to `end`."""
        classifier = albert_tf.models.AlbertTextClassifier(
            self.backbone,
            len(SENTIMENT_LABELS),
            preprocessor,
            labels=list(SENTIMENT_LABELS),
            pooling_mode="mean",
        )
        self.backbone.fine_tuning = FINE_TUNING
        kernel, bias = self.get_layer("text").get_weights()
        classifier.output_dense.set_weights([kernel[:, first:end], bias[first:end]])
        return classifier


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("checkpoint", "labelled", "output"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=6_000)
    parser.add_argument("--interval", type=int, default=500)
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    keras.utils.set_random_seed(arguments.seed)

    masked_lm = albert_tf.models.AlbertMaskedLM.from_checkpoint(arguments.checkpoint)
    tokenizer = masked_lm.preprocessor.tokenizer
    preprocessor = AlbertTextClassifierPreprocessor(
        tokenizer, sequence_length=SEQUENCE_LENGTH
    )
    sets = read_data(arguments.labelled, arguments.checkpoint, preprocessor)
    classes = {
        "text": number_classes([data for data in sets if not data.is_tagged]),
        "tags": number_classes([data for data in sets if data.is_tagged]),
    }
    model = MultiTask(masked_lm, classes)
    # XLA would compile the step for each length.
    model.compile(
        scheduled_optimizer("adamw", arguments.learning_rate, arguments.steps, 0.05),
        jit_compile=False,
    )
    steps, interval = arguments.steps, arguments.interval
    identity = {name: str(value) for name, value in vars(arguments).items()}
    del identity["labelled"], identity["output"]
    backup = arguments.output / BACKUP
    with hold_state(backup, identity):
        state = TrainingState(backup, interval=interval)
        if state.steps == steps:
            state.load(model)
        batches = functools.partial(Batches, sets, tokenizer, steps, arguments.seed)
        state.fit(model, batches, steps, callbacks=[state], verbose=2)
    shown = ("text_accuracy", "tags_accuracy", "masked_accuracy")
    plot_history(
        state.history, shown, arguments.output / "curves.png", interval, "step"
    )
    first, end = next(data.range for data in sets if data.head == SENTIMENT)
    classifier = model.sentiment_classifier(first, end, preprocessor)
    albert_tf.save_checkpoint(classifier, arguments.output, layout="albert_zh")
    remove_directory(backup)


if __name__ == "__main__":
    main()
