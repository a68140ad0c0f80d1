"""Damaged tokenizers and labels, which converting and tasks read."""

import json

import harm_files
import pytest
from harm_files import (
    EITHER,
    TOKENS,
    assert_one_clear_error,
    classifier,
    copied,
    copy,
    cut,
    edit_bytes,
    edit_json,
    ends_well,
    folder_in_place_of,
    moved,
    replace,
)

from albert_tf.conversion import save_checkpoint
from albert_tf.models import AlbertTextClassifier

forms, weights, harm = harm_files.forms, harm_files.weights, harm_files.harm


def tokenizer_json(content):
    def damage(folder):
        (folder / "vocab.txt").unlink()
        (folder / "tokenizer.json").write_text(content)

    return damage


TOKENIZERS = {
    "vocabulary_empty": (replace("vocab.txt", ""), "vocab.txt.* is empty"),
    "vocabulary_blank": (replace("vocab.txt", "\n\n\n"), "vocab.txt.* is empty"),
    "vocabulary_not_utf8": (replace("vocab.txt", b"\xff\xfe"), "vocab.txt.*not UTF-8"),
    "vocabulary_cut": (edit_bytes("vocab.txt", cut(0.1)), "vocab.txt.* lacks"),
    "vocabulary_of_html": (replace("vocab.txt", "<html>"), "vocab.txt.* lacks"),
    "vocabulary_of_special_tokens": (
        replace("vocab.txt", "\n".join(TOKENS[:5])),
        "vocab.txt",
    ),
    "vocabulary_too_long": (
        edit_bytes("vocab.txt", lambda x: x + b"\nzz" * 9),
        "vocab.txt",
    ),
    "vocabulary_a_folder": (folder_in_place_of("vocab.txt"), "vocab.txt"),
    "vocabulary_a_model": (
        moved("vocab.txt", "spiece.model"),
        "spiece.model.* is text",
    ),
    "two_vocabularies": (
        copied("vocab.txt", "vocab_2.txt"),
        "several vocabulary files",
    ),
    "config_cut": (
        edit_bytes("tokenizer_config.json", cut(0.5)),
        "tokenizer_config.json is not a JSON file",
    ),
    "config_a_list": (replace("tokenizer_config.json", "[]"), "tokenizer_config.json"),
    "config_lower_case_a_string": (
        edit_json("tokenizer_config.json", {"do_lower_case": "no"}),
        "do_lower_case",
    ),
    **{
        f"json_{name}": (tokenizer_json(content), "tokenizer.json")
        for name, content in {
            "cut": '{"model": ',
            "a_list": "[]",
            "of_a_model_that_is_null": '{"model": null}',
            "of_a_model_that_is_a_list": '{"model": []}',
            "of_another_type": '{"model": {"type": "BPE", "vocab": {}}}',
            "without_tokens": '{"model": {"type": "WordPiece"}}',
            "with_a_list_of_tokens": '{"model": {"type": "WordPiece", "vocab": ["a"]}}',
            "with_no_tokens": '{"model": {"type": "WordPiece", "vocab": {}}}',
            "with_ids_of_two_kinds": json.dumps(
                {"model": {"type": "WordPiece", "vocab": {"[PAD]": 0, "[UNK]": "1"}}}
            ),
            "with_gaps_between_ids": json.dumps(
                {
                    "model": {
                        "type": "WordPiece",
                        "vocab": {
                            x: 3 * i
                            for i, x in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
                        },
                    }
                }
            ),
        }.items()
    },
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_tokenizers(harm, name):
    damage, error = TOKENIZERS[name]
    harm("huggingface", damage, None, error)


LABELS = {
    "a_list": ["a", "b", "c"],
    "numbers": {"0": 1, "1": 2, "2": 3},
    "null": {"0": None, "1": None, "2": None},
    "too_few": {"0": "a", "1": "b"},
    "too_many": {str(i): f"x{i}" for i in range(9)},
    "twice": {"0": "a", "1": "a", "2": "b"},
    "from_one": {"1": "a", "2": "b", "3": "c"},
}


# The head has the classes 0, 1 and 2, and each needs a name.
REFUSED = ("null", "twice", "too_few", "too_many", "from_one")


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labelled")
    save_checkpoint(classifier(), folder, "huggingface")
    return folder


@pytest.mark.parametrize("name", LABELS)
def test_labels(labelled, tmp_path, name):
    """Loaded with three names of classes or with none, or refused."""
    folder = copy(labelled, tmp_path)
    edit_json("config.json", {"id2label": LABELS[name]})(folder)
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join(TOKENS))

    def load():
        model = AlbertTextClassifier.from_checkpoint(folder, vocabulary=vocabulary)
        names = model.class_names
        assert names is None or (
            len(names) == model.num_classes == 3
            and all(isinstance(x, str) for x in names)
        ), f"class names {names}"

    if name in REFUSED:
        assert_one_clear_error(load, "config.json", folder)
    else:
        ends_well(load, EITHER, folder)
