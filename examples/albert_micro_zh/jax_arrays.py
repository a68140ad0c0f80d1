"""Prepare arrays for `jax_pretrain.py`, and convert the weights that it writes.

    python examples/albert_micro_zh/jax_arrays.py arrays RECORDS ARRAYS \\
        --config albert_tiny_zh
    python examples/albert_micro_zh/jax_arrays.py checkpoint OUTPUT CHECKPOINT \\
        --vocab ARRAYS/vocab.txt

Both need TensorFlow, unlike `jax_pretrain.py`. RECORDS is a directory of `albert-tf
pretrain-data` (without --masked). ARRAYS gets the token ids without padding as 2-byte
numbers in compressed .npz files, which `np.load` reads: 0.8 bytes per token of Chinese
text. OUTPUT is the directory that `jax_pretrain.py` wrote.
"""

import argparse
import json
import pathlib
import shutil
import sys
import zipfile

import numpy as np
import tensorflow as tf

import albert_tf
import zh
from albert_tf.checkpoints import config_arguments
from albert_tf.files import complete_directory, write_json
from albert_tf.models import AlbertBackbone, AlbertPretrainer
from albert_tf.pretraining import PretrainingRecords
from albert_tf.pretraining.records import parse_records

# About 16 MB compressed, so that a few files can be moved at a time.
TOKENS_PER_FILE = 20_000_000


def write_arrays(records, folder, size):
    """Write the sequences of records, their vocabulary and the size of the model."""
    tokenizer = records.tokenizer
    if tokenizer is None or records.is_masked or records.order_classes != 2:
        raise albert_tf.AlbertError(
            f"{records.folder} must hold unmasked records with sentence order and one "
            "vocabulary, as `albert-tf pretrain-data --order sop` writes them."
        )
    settings = array_settings(tokenizer, size, records.sequence_length)
    with complete_directory(folder) as temporary:
        parts = []
        for file in records.counts:
            parts += _sequences(file, records.lengths)
            if sum(len(part["tokens"]) for part in parts) >= TOKENS_PER_FILE:
                write_part(temporary, joined(parts))
                parts = []
        if parts:
            write_part(temporary, joined(parts))
        write_json(temporary / "arrays.json", settings)
        vocabulary = records.manifest.get("vocabulary", "vocab.txt")
        shutil.copy(records.folder / vocabulary, temporary)


def array_settings(tokenizer, size, sequence_length):
    """Return the content of arrays.json."""
    vocabulary_size = tokenizer.vocabulary_size()
    if vocabulary_size > 2**16:
        raise albert_tf.AlbertError(
            f"The vocabulary has {vocabulary_size} tokens. At most {2**16} fit into 2 "
            "bytes."
        )
    names = ("cls", "sep", "pad", "mask")
    return {
        "size": {**size, "vocabulary_size": vocabulary_size},
        "special_ids": {x: getattr(tokenizer, f"{x}_token_id") for x in names},
        "sequence_length": sequence_length,
    }


def _sequences(file, lengths):
    """Yield the arrays of batches of a file of records."""
    batches = tf.data.TFRecordDataset(str(file)).batch(4096)
    for batch in batches.map(lambda x: parse_records(x, lengths)):
        is_token = batch["padding_mask"].numpy() > 0
        yield {
            "tokens": batch["token_ids"].numpy()[is_token].astype("uint16"),
            "lengths": is_token.sum(axis=1).astype("uint16"),
            # Tokens of the second segment; 0 without one.
            "seconds": batch["segment_ids"].numpy().sum(axis=1).astype("uint16"),
            "labels": batch["labels"].numpy().astype("uint8"),
        }


def joined(parts):
    return {x: np.concatenate([part[x] for part in parts]) for x in parts[0]}


def write_part(folder, arrays):
    """Write a file of arrays, a dict by name."""
    number = len(list(folder.glob("*.npz")))
    # LZMA takes a quarter less space than the zlib of `np.savez_compressed`.
    with zipfile.ZipFile(
        folder / f"arrays-{number:03}.npz", "w", zipfile.ZIP_LZMA
    ) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array)


def read_pretrainer(folder):
    """Return the `AlbertPretrainer` with the weights of a `jax_pretrain.py` output."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    model = AlbertPretrainer(AlbertBackbone(**config))
    with np.load(folder / "weights.npz") as weights:
        paths = {variable.path for variable in model.weights}
        if differ := paths ^ set(weights.files):
            raise albert_tf.AlbertError(
                f"{folder / 'weights.npz'} does not fit {folder / 'config.json'}: "
                f"{sorted(differ)}. Copy both files of one training."
            )
        for variable in model.weights:
            variable.assign(weights[variable.path])
    return model


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    arrays = commands.add_parser("arrays", help="records to arrays")
    arrays.add_argument("records", type=pathlib.Path)
    arrays.add_argument("arrays", type=pathlib.Path)
    arrays.add_argument(
        "--config", required=True, help="name of a model size, or a config file"
    )
    checkpoint = commands.add_parser("checkpoint", help="weights to a checkpoint")
    checkpoint.add_argument("output", type=pathlib.Path)
    checkpoint.add_argument("checkpoint", type=pathlib.Path)
    checkpoint.add_argument("--vocab", required=True, help="the vocab.txt of ARRAYS")
    given = parser.parse_args(arguments)
    if given.command == "arrays":
        size = zh.SIZES.get(given.config) or config_arguments(given.config)
        write_arrays(PretrainingRecords(given.records), given.arrays, size)
    else:
        model = read_pretrainer(given.output)
        albert_tf.save_checkpoint(model, given.checkpoint, "albert_zh", given.vocab)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"Error: {error}")
