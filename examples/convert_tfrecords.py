"""Convert TFRecords of google-research/albert or albert_zh into records to pretrain on.

    python examples/convert_tfrecords.py --input 'old/*.tfrecord' --vocab vocab.txt \\
        --output records

Labels, masks and the sequence length are kept. Words are known where the files have
`token_boundary`, as those of Google; elsewhere each token is a word. The same command
resumes after an interruption.
"""

import argparse
import glob
import os

import albert_tf
import numpy as np
import tensorflow as tf

NEEDED = {"input_ids", "input_mask", "segment_ids", "next_sentence_labels"}
MASKS = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
SHARD_TOKENS = 1_000_000

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--input", required=True, nargs="+", help="files or patterns")
parser.add_argument("--vocab", required=True, help="vocab.txt or SentencePiece model")
parser.add_argument("--output", required=True, help="directory for the records")
parser.add_argument("--order", default="sop", help="sop, nsp, three_way or none")
parser.add_argument("--cased", action="store_true", help="text was not lower-cased")
arguments = parser.parse_args()

tokenizer = albert_tf.tokenizers.load_tokenizer(arguments.vocab, not arguments.cased)
matches = [y for x in arguments.input for y in glob.glob(x, recursive=True)]
files = sorted({x for x in matches if os.path.isfile(x) and os.path.getsize(x)})
if not files:
    parser.error(f"no file with content matches {arguments.input}")

# Every record has the features and lengths of the first one.
first = next(tf.data.TFRecordDataset(files[0]).as_numpy_iterator())
features = tf.train.Example.FromString(first).features.feature
if missing := NEEDED - {*features}:
    parser.error(f"{files[0]} lacks {sorted(missing)}")
kinds = {}
for name in {*NEEDED, *MASKS, "token_boundary"} & {*features}:
    dtype = tf.float32 if name == "masked_lm_weights" else tf.int64
    count = len(features[name].int64_list.value or features[name].float_list.value)
    kinds[name] = tf.io.FixedLenFeature([count], dtype)
length = kinds["input_ids"].shape[0]


def sequences(records):
    """Return the arrays of records, whose form is [CLS] text [SEP] text [SEP]."""
    ids, used = records["input_ids"], records["input_mask"] > 0
    second = (records["segment_ids"] > 0) & used
    ends = used.sum(1, keepdims=True)
    # The length of [CLS] first [SEP].
    starts = ends - second.sum(1, keepdims=True)
    place = np.arange(length)
    is_sep = (place == starts - 1) | (place == ends - 1)
    is_text = used & ~is_sep & (place > 0)
    is_second = (place >= starts) & used
    is_right = (used == (place < ends)) & (second == is_second)
    is_right &= ~is_sep | (ids == tokenizer.sep_token_id)
    is_right &= (place > 0) | (ids == tokenizer.cls_token_id)
    if not is_right.all() or starts.min() < 2:
        raise ValueError("other sequences than [CLS] text [SEP] text [SEP]")
    is_start = (place == 1) | (place == starts)
    is_start = is_start | (records.get("token_boundary", np.ones_like(ids)) > 0)
    arrays = {"token_ids": ids[is_text], "word_starts": is_start[is_text]}
    arrays |= {"lengths": is_text.sum(1), "second_starts": starts[:, 0] - 2}
    if arguments.order != "none":
        arrays["labels"] = records["next_sentence_labels"][:, 0]
    if MASKS[0] in records:
        positions, labels, weights = (records[name] for name in MASKS)
        arrays["mask_counts"] = (weights > 0).sum(1)
        arrays["mask_positions"] = positions[weights > 0]
        arrays["mask_ids"] = labels[weights > 0]
    return arrays


def parts():
    """Yield the arrays of each shard."""
    for file in files:
        size = 0
        try:
            for batch in tf.data.TFRecordDataset(file).batch(SHARD_TOKENS // length):
                records = tf.io.parse_example(batch, kinds)
                yield sequences({name: x.numpy() for name, x in records.items()})
                # A length and two checksums are beside each record.
                size += sum(16 + len(x) for x in batch.numpy())
        except (ValueError, tf.errors.OpError) as error:
            raise SystemExit(f"{file} cannot be converted: {error}") from error
        # TensorFlow ignores a file that is cut off within a length.
        if size != os.path.getsize(file):
            raise SystemExit(f"{file} is cut off. Copy it again.")


manifest = albert_tf.pretraining.write_records(
    parts(),
    arguments.output,
    arguments.vocab,
    sequence_length=length,
    order=arguments.order,
    lowercase=not arguments.cased,
    sources=files,
)
print(f"{manifest['counts']['sequences']:,} sequences in {arguments.output}")
