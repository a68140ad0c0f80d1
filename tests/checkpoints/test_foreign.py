"""Checkpoints as people have them: of own trainings and of other tools."""

import json
import shutil
import warnings

import numpy as np
import pytest
import safetensors.numpy
from checkpoint_files import (
    GOLDEN,
    TOKENS,
    assert_golden,
    assert_same_weights,
    config_of,
    read,
    weights_of,
    write,
)
from tiers import few

from albert_tf import convert_checkpoint, export
from albert_tf.checkpoints import (
    CheckpointError,
    inspect_checkpoint,
    load_checkpoint,
    open_checkpoint,
    save_checkpoint,
)
from albert_tf.models import (
    AlbertMaskedLM,
    AlbertMultiLabelClassifier,
    AlbertPretrainer,
    AlbertTextClassifier,
    AlbertTextRegressor,
    AlbertTokenClassifier,
)
from albert_tf.tokenizers import WordPieceTokenizer
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.onnx_model import OnnxModel

WEIGHTS = "model.safetensors"


def zeros(*names, shape=(2, 3)):
    return {name: np.zeros(shape, "float32") for name in names}


def google(folder, more=(), drop=(), config=None, tokens=TOKENS):
    """Write a golden checkpoint with further tensors, or without some."""
    tensors = {**weights_of("google_v2"), **dict(more)}
    kept = {x: y for x, y in tensors.items() if not x.startswith(tuple(drop))}
    write(folder, kept, {**config_of("google_v2"), **(config or {})})
    (folder / "vocab.txt").write_text("\n".join(tokens), encoding="utf-8")
    return folder


def huggingface(folder, more=(), rows=None, tokens=TOKENS, **files):
    """Write the golden encoder for transformers, with JSON files of these contents."""
    backbone = load_checkpoint(GOLDEN / "google_v2")
    save_checkpoint(backbone, folder, "huggingface")
    tensors = {**safetensors.numpy.load_file(folder / WEIGHTS), **dict(more)}
    if rows is not None:
        name = "albert.embeddings.word_embeddings.weight"
        tensors[name] = np.resize(tensors[name], (rows, tensors[name].shape[1]))
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "vocab_size": rows}))
    safetensors.numpy.save_file(tensors, folder / WEIGHTS, {"format": "pt"})
    (folder / "vocab.txt").write_text("\n".join(tokens), encoding="utf-8")
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def messages_of(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = call()
    return result, [str(x.message) for x in found if x.category is UserWarning]


# === Further tensors ===


def averages():
    names = weights_of("google_v2")
    return {f"{x}/ExponentialMovingAverage": y + 1 for x, y in names.items()}


def gradients():
    return {f"{x}/accum_grad": y for x, y in weights_of("google_v2").items()}


HEADS = {
    "crf": ["crf_loss/transitions", "project/logits/W"],
    "lstm": ["rnn_layer/bidirectional_rnn/fw/lstm_cell/kernel"],
    "dense": ["dense/kernel", "logits/kernel", "bert_1/encoder/kernel"],
}


@pytest.mark.parametrize("name", [*HEADS, "averages", "gradients", "scale"])
def test_the_backbone_loads_and_the_rest_is_listed(name, tmp_path):
    if name in HEADS:
        kind, more = "the weights of other heads", zeros(*HEADS[name])
    elif name == "averages":
        kind, more = "moving averages of the weights", averages()
    else:
        kind = "the state of a training"
        more = zeros("current_loss_scale", "good_steps", shape=())
        more |= zeros("Variable_1", "ema/bert/pooler/dense/kernel")
        more = gradients() if name == "gradients" else more
    folder = google(tmp_path, more)
    backbone, messages = messages_of(lambda: load_checkpoint(folder))
    assert_golden(backbone)
    assert len(messages) == 1 and f"also has {kind}, " in messages[0]
    report = inspect_checkpoint(folder)
    assert report.unused == report.missing == []
    assert (report.other if name in HEADS else report.training_state) == sorted(more)


def test_slots_heads_and_averages_in_place_of_weights_need_no_warning(tmp_path):
    more = {f"{x}/adam_m": y for x, y in weights_of("google_v2").items()}
    heads = (f"{x}output_{y}" for x in ("", "cls/squad/") for y in ("weights", "bias"))
    more |= zeros(*heads, "output_weights/Adam")
    more |= zeros("global_step", "beta1_power", shape=())
    google(tmp_path / "slots", more, drop=["cls/pred"])
    tensors = {x: y - 1 for x, y in averages().items()}
    write(tmp_path / "averages", tensors, config_of("google_v2"))
    for name in ("slots", "averages"):
        backbone, messages = messages_of(lambda: load_checkpoint(tmp_path / name))  # noqa: B023
        assert_golden(backbone)
        assert messages == []


@pytest.mark.parametrize(
    ("more", "drop", "hint"),
    [
        # A second group, for which the config has no place.
        ("bert/encoder/transformer/group_1/inner_group_0/LayerNorm/beta", (), "groups"),
        ("bert/encoder/adapter/kernel", (), "a changed architecture"),
        (None, ["bert/embeddings/LayerNorm/beta"], "lacks .*LayerNorm/beta"),
        (None, ["bert/pooler/dense/bias"], "part of the pooler"),
    ],
)
def test_nothing_is_loaded_from_an_encoder_of_other_parts(more, drop, hint, tmp_path):
    folder = google(tmp_path, zeros(more) if more else (), drop)
    with pytest.raises(CheckpointError, match=hint):
        AlbertTextClassifier.from_checkpoint(folder, num_classes=2)


def test_other_heads_and_prefixes_in_huggingface_folders(tmp_path):
    folder = huggingface(tmp_path, zeros("crf.transitions", "lstm.weight_ih_l0"))
    tensors = safetensors.numpy.load_file(folder / WEIGHTS)
    for prefix in ("albert.", "bert.", "module.bert."):
        renamed = {x.replace("albert.", prefix): y for x, y in tensors.items()}
        safetensors.numpy.save_file(renamed, folder / WEIGHTS, {"format": "pt"})
        backbone, messages = messages_of(lambda: load_checkpoint(folder))
        assert_golden(backbone)
        assert len(messages) == 1 and "['crf.transitions', 'lstm.we" in messages[0]
    safetensors.numpy.save_file(
        {**tensors, **zeros("encoder.adapter.weight")}, folder / WEIGHTS
    )
    with pytest.raises(CheckpointError, match="albert.encoder.adapter.*changed arch"):
        load_checkpoint(folder)


def pretrainer(folder, layout):
    """Write a checkpoint with heads, and return its model and its tensors."""
    model = AlbertPretrainer.from_checkpoint(GOLDEN / "google_v2")
    save_checkpoint(model, folder, layout)
    if layout == "google":
        return model, read(folder / "albert_model.ckpt")
    return model, safetensors.numpy.load_file(folder / WEIGHTS)


def rewrite(folder, tensors):
    if (folder / WEIGHTS).exists():
        safetensors.numpy.save_file(tensors, folder / WEIGHTS)
    else:
        write(folder, tensors, prefix="albert_model.ckpt")
    return folder


# Names of a tensor after training.
WRAPPED = {
    "compiled": lambda name: f"_orig_mod.{name}",
    "parallel": lambda name: f"module._orig_mod.{name}",
    "lightning": lambda name: f"net.model._orig_mod.{name}",
    "compiled encoder": lambda name: name.replace("encoder.", "encoder._orig_mod."),
    "sharded": lambda name: (
        "_fsdp_wrapped_module."
        + name.replace("layers.0.", "layers.0._checkpoint_wrapped_module.", 1)
    ),
    # `self.plm = AlbertModel(...)` with the head beside it.
    "module": lambda name: f"model.{name}".replace("model.albert.", "model.plm."),
    "scope": lambda name: f"tower_0/{name}",
}


def test_the_modules_around_a_model_change_no_number(tmp_path):
    saved = {x: pretrainer(tmp_path / x, x) for x in ("huggingface", "google")}
    for name, rename in WRAPPED.items():
        layout = "google" if name == "scope" else "huggingface"
        _, tensors = saved[layout]
        renamed = {rename(x): y for x, y in tensors.items()}
        opened = open_checkpoint(rewrite(tmp_path / layout, renamed))
        assert opened.heads == ["masked_lm_head", "sop_head"], name
        for x in opened.layout.names(opened.parts, opened.arguments):
            assert np.array_equal(opened.read(x), tensors[x]), (name, x)


@pytest.mark.slow
def test_two_encoders_in_a_file(tmp_path):
    model, tensors = pretrainer(tmp_path, "huggingface")
    ones = {f"model.{x}": y for x, y in tensors.items()}
    others = {f"teacher.{x}": y + 1 for x, y in tensors.items()}
    rewrite(tmp_path, {**ones, **others})
    message = r"holds 2 encoders, below \['model.', 'teacher.'\]"
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(tmp_path)
    # A copy of the model below its own name, as of moving averages.
    copies = {f"ema.model.{x}": y + 1 for x, y in tensors.items()}
    rewrite(tmp_path, {**ones, **copies})
    load = AlbertPretrainer.from_checkpoint
    again, messages = messages_of(lambda: load(tmp_path))
    assert_same_weights(again, model)
    assert len(messages) == 1 and "the state of a training, ['ema.model." in messages[0]


# === Without a pooler ===


def tagger(folder, layout):
    backbone = load_checkpoint(GOLDEN / "google_v2", pooler=False)
    tokenizer = WordPieceTokenizer(TOKENS)
    model = AlbertTokenClassifier.from_backbone(backbone, tokenizer, labels=["PER"])
    save_checkpoint(model, folder, layout)
    return folder


FORMS = {
    "google": lambda folder: google(folder, drop=["bert/pooler", "cls/seq"]),
    "preset": lambda folder: tagger(folder, "keras"),
    "huggingface": lambda folder: tagger(folder, "huggingface"),
}


@pytest.mark.parametrize("form", few(FORMS, ("preset",), pytest.mark.slow))
def test_a_classifier_starts_with_a_new_pooler(form, tmp_path):
    folder = FORMS[form](tmp_path)
    loads = [AlbertTextClassifier.from_checkpoint]
    if form == "preset":
        loads.append(AlbertTextClassifier.from_preset)
    for load in loads:
        model, messages = messages_of(lambda: load(str(folder), num_classes=2))  # noqa: B023
        (message,) = (x for x in messages if "has no pooler" in x)
        assert 'pooling_mode="mean" needs none' in message
        kernels = model.backbone.pooled_dense.kernel, model.output_dense.kernel
        for kernel in kernels:
            assert 0.01 < np.std(kernel) < 1
        given = dict(num_classes=2, pooling_mode="mean")
        mean, messages = messages_of(lambda: load(str(folder), **given))  # noqa: B023
        assert not [x for x in messages if "pooler" in x]
        assert mean.backbone.pooled_dense is None
        encoder = load_checkpoint(GOLDEN / "google_v2", pooler=False)
        assert_same_weights(mean.backbone, encoder)
    # The head of a classifier without a pooler is found again.
    save_checkpoint(mean, tmp_path / "saved", "google")
    again = AlbertTextClassifier.from_checkpoint(tmp_path / "saved")
    assert_same_weights(again, mean)


# === Vocabularies of another size than the table ===


@pytest.mark.filterwarnings("error:The vocabulary of")
def test_rows_without_a_token_are_harmless(tmp_path):
    folder = huggingface(tmp_path / "hf", rows=128)
    tokenizer = open_checkpoint(folder).tokenizer()
    assert tokenizer.get_vocabulary() == TOKENS
    classifier = AlbertTextClassifier.from_checkpoint(folder, num_classes=2)
    classifier.save_to_preset(tmp_path / "preset")
    again = AlbertTextClassifier.from_preset(str(tmp_path / "preset"))
    assert again.predict(["一丁"]).shape == (1, 2)
    masked = AlbertMaskedLM.from_backbone(classifier.backbone, tokenizer)
    bias = np.zeros(128, "float32")
    bias[125] = 9
    masked.masked_lm_head.bias.assign(bias)
    assert len(masked.fill("一[MASK]", top_k=120)) == 120


def test_a_vocabulary_of_another_size_is_named(tmp_path):
    folder = huggingface(tmp_path / "hf", tokens=TOKENS[:-10])
    with pytest.warns(UserWarning, match="vocab.txt has 110 tokens, the model 120"):
        open_checkpoint(folder).tokenizer()
    for tokens, count in ((TOKENS[:-30], 90), ([*TOKENS, "x"], 121)):
        (folder / "vocab.txt").write_text("\n".join(tokens), encoding="utf-8")
        message = f"vocab.txt has {count} tokens, the model 120"
        with pytest.raises(AlbertError, match=message):
            AlbertTextClassifier.from_checkpoint(folder, num_classes=2)


ADDED = {"[E1]": 120, "新冠": 121}
ROW = {"lstrip": False, "rstrip": False, "single_word": False, "special": False}
DECODER = {
    "4": {"content": "[MASK]", "normalized": False, **ROW, "special": True},
    "120": {"content": "[E1]", "normalized": True, **ROW},
    "121": {"content": "新冠", "normalized": True, **ROW},
}


@pytest.mark.parametrize(
    "files",
    [
        {"added_tokens": ADDED},
        {"tokenizer_config": {"added_tokens_decoder": DECODER}},
        {
            "tokenizer": {
                "added_tokens": [{"id": int(i), **x} for i, x in DECODER.items()]
            }
        },
    ],
)
def test_added_tokens_of_transformers(files, tmp_path):
    folder = huggingface(tmp_path / "hf", rows=122, **files)
    tokenizer = open_checkpoint(folder).tokenizer()
    assert tokenizer.get_vocabulary() == [*TOKENS, *ADDED]
    for layout in ("huggingface", "google", "keras"):
        text = "一[e1]新冠丁"
        assert tokenizer(text).numpy().tolist() == [5, 120, 121, 6]
        classifier = AlbertTextClassifier.from_checkpoint(folder, num_classes=2)
        folder = tmp_path / layout
        _, messages = messages_of(lambda: save_checkpoint(classifier, folder, layout))  # noqa: B023
        assert sum("keeps" in x for x in messages) == (layout == "google")
        tokenizer = open_checkpoint(folder).tokenizer()
    assert tokenizer(text).numpy().tolist() == [5, 120, 121, 6]


def test_added_tokens_that_do_not_follow_the_vocabulary(tmp_path):
    folder = huggingface(tmp_path, rows=128, added_tokens={"[E1]": 127})
    with pytest.warns(UserWarning, match=r"\['\[E1\]'\], with ids from 127 on"):
        tokenizer = open_checkpoint(folder).tokenizer()
    assert tokenizer.get_vocabulary() == TOKENS


# === Settings of tokenizers ===


SETTINGS = {
    "lowercase": False,
    "strip_accents": True,
    "tokenize_chinese_chars": False,
    "max_input_chars_per_word": 50,
}


@pytest.mark.parametrize("layout", ["google", "huggingface", "keras"])
def test_settings_of_a_tokenizer_in_each_layout(layout, tmp_path):
    backbone = load_checkpoint(GOLDEN / "google_v2")
    for settings in (SETTINGS, {"max_input_chars_per_word": 200}, {}):
        tokenizer = WordPieceTokenizer(TOKENS, **settings)
        path = tmp_path / str(len(settings))
        _, messages = messages_of(
            lambda: save_checkpoint(backbone, path, layout, tokenizer)  # noqa: B023
        )
        # The original code cuts at 200 characters, transformers at 100.
        longest = tokenizer.max_input_chars_per_word
        others = {"google": settings is SETTINGS, "huggingface": True, "keras": False}
        assert bool(messages) == others[layout]
        assert all(f"max_input_chars_per_word={longest}" in x for x in messages)
        again = open_checkpoint(path).tokenizer()
        assert again.fingerprint == tokenizer.fingerprint


def test_settings_of_transformers(tmp_path):
    folder = huggingface(tmp_path)
    whole = {"model": {"type": "WordPiece", "max_input_chars_per_word": 30}}
    whole["normalizer"] = {"lowercase": False, "handle_chinese_chars": False}
    for files, expected in (
        ({}, (True, None, True, 100)),
        ({"tokenizer_config": {"do_lower_case": False}}, (False, None, True, 100)),
        ({"tokenizer_config": {}, "tokenizer": whole}, (False, None, False, 30)),
        # Its class reads no other file.
        (
            {"tokenizer_config": {"tokenizer_class": "BertTokenizer"}},
            (True, None, True, 30),
        ),
    ):
        for name, content in files.items():
            (folder / f"{name}.json").write_text(json.dumps(content))
        settings = open_checkpoint(folder).tokenizer().get_settings()
        assert tuple(settings[name] for name in SETTINGS) == expected
    (folder / "tokenizer_config.json").write_text('{"strip_accents": "yes"}')
    with pytest.raises(CheckpointError, match="strip_accents='yes'. Expected .* bool"):
        open_checkpoint(folder).tokenizer()


def test_an_exported_file_has_the_settings(tmp_path):
    tokenizer = WordPieceTokenizer(
        [*TOKENS[:-1], "é"], **SETTINGS, added_tokens={TOKENS[8]: True}
    )
    backbone = load_checkpoint(GOLDEN / "google_v2")
    task = AlbertTextClassifier.from_backbone(backbone, tokenizer, 2)
    text = f"é {'é' * 51}一丁 {TOKENS[8]}丁"
    ids = tokenizer(text).numpy().tolist()
    export.onnx(task, tmp_path / "model.onnx")
    model = OnnxModel(tmp_path / "model.onnx")
    assert model.tokenizer.tokenize(text) == ids


# === Pairs ===


@pytest.mark.parametrize(
    ("cls", "layout"),
    [
        pytest.param(AlbertTextClassifier, "google", marks=pytest.mark.nightly),
        (AlbertTextClassifier, "huggingface"),
        pytest.param(
            AlbertMultiLabelClassifier, "huggingface", marks=pytest.mark.nightly
        ),
        (AlbertTextRegressor, "google"),
    ],
)
def test_a_model_of_pairs_comes_back_as_one(cls, layout, tmp_path):
    arguments = {} if cls is AlbertTextRegressor else {"num_classes": 2}
    backbone = load_checkpoint(GOLDEN / "google_v2")
    model = cls(backbone, **arguments, pairs=True)
    save_checkpoint(model, tmp_path / layout, layout, WordPieceTokenizer(TOKENS))
    convert_checkpoint(tmp_path / layout, tmp_path / "back", "google")
    for folder in (layout, "back"):
        again = cls.from_checkpoint(tmp_path / folder)
        assert again.pairs and again.text_inputs == ("text", "text_b")
    shutil.rmtree(tmp_path / "back")
    if cls is AlbertTextClassifier:
        with pytest.warns(UserWarning, match=r"from_checkpoint\(..., pairs=True\)"):
            save_checkpoint(model, tmp_path / "hub", "kerashub")
