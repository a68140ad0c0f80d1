"""`from_preset` and `load_checkpoint` by a name on the Hub or of a release."""

import fnmatch
import pathlib
import shutil

import pytest
from checkpoint_files import GOLDEN, TOKENS, assert_golden
from tiers import few

import albert_tf
from albert_tf import convert_checkpoint
from albert_tf.checkpoints import download
from albert_tf.models import (
    AlbertBackbone,
    AlbertPretrainer,
    AlbertTextClassifier,
    AlbertTextRegressor,
)
from albert_tf.tokenizers import WordPieceTokenizer

huggingface_hub = pytest.importorskip("huggingface_hub")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The Hub: `folder(name)` to write to, and the requests in `asked`."""
    asked = []

    def snapshot_download(name, revision=None, allow_patterns=None):
        asked.append((name, revision, allow_patterns))
        source, cache = tmp_path / "hub" / name, tmp_path / "cache" / name
        cache.mkdir(parents=True, exist_ok=True)
        for file in [x for x in source.rglob("*") if x.is_file()]:
            name = file.relative_to(source).as_posix()
            if any(fnmatch.fnmatch(name, pattern) for pattern in allow_patterns):
                (cache / name).parent.mkdir(parents=True, exist_ok=True)
                # The cache of the Hub holds links to files without an ending.
                blob = cache.with_name(
                    f"{cache.name}-{len(asked)}-{name}".replace("/", "-")
                )
                shutil.copy(file, blob)
                (cache / name).unlink(missing_ok=True)
                (cache / name).symlink_to(blob)
        return str(cache)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    snapshot_download.folder = lambda name: tmp_path / "hub" / name
    snapshot_download.asked = asked
    return snapshot_download


def test_weights_on_the_hub_may_lie_in_a_folder(hub):
    """As in older repositories of sentence-transformers."""
    folder = hub.folder("me/golden") / "0_Transformer"
    convert_checkpoint(GOLDEN / "google_v2", folder, "huggingface")
    assert_golden(albert_tf.load_checkpoint("hf://me/golden"))
    assert len(hub.asked) == 1


@pytest.mark.parametrize(
    "layout",
    few(
        ("huggingface", "kerashub", "google", "keras"),
        ("huggingface", "keras"),
        pytest.mark.slow,
    ),
)
def test_every_form_on_the_hub(hub, layout):
    convert_checkpoint(GOLDEN / "google_v2", hub.folder("me/tiny"), layout)
    for unread in ("tf_model.h5", "flax_model.msgpack", "onnx/model.onnx"):
        (hub.folder("me/tiny") / unread).parent.mkdir(exist_ok=True)
        (hub.folder("me/tiny") / unread).write_bytes(b"")
    assert_golden(albert_tf.load_checkpoint("hf://me/tiny"))
    assert_golden(albert_tf.load_checkpoint("hf://me/tiny@v1"))
    assert [x[:2] for x in hub.asked] == [("me/tiny", None), ("me/tiny", "v1")]
    cached = hub("me/tiny", allow_patterns=[])
    assert not list(pathlib.Path(cached).glob("**/*model.[homf]*"))


def test_a_folder_is_a_preset_of_a_task(tmp_path):
    folder = str(GOLDEN / "google_v2")
    model = AlbertPretrainer.from_preset(folder, num_sop_classes=0)
    assert model.sop_head is None
    assert_golden(model.backbone)
    for name in ("albert_tiny_zh", folder, str(tmp_path), "hf://a/b"):
        with pytest.raises(ValueError, match="is not a preset.*load_checkpoint"):
            AlbertBackbone.from_preset(name)
    with pytest.raises(ValueError, match="Build a task with random weights on"):
        AlbertPretrainer.from_preset(folder, load_weights=False)


def test_a_preset_of_an_encoder_begins_a_task(tmp_path):
    """The preprocessor takes no more tokens than the encoder has positions."""
    backbone = albert_tf.load_checkpoint(GOLDEN / "google_v2", dtype="mixed_bfloat16")
    backbone.save_to_preset(str(tmp_path))
    WordPieceTokenizer(TOKENS).save_to_preset(str(tmp_path))
    model = AlbertTextClassifier.from_preset(str(tmp_path), num_classes=2)
    with pytest.raises(TypeError, match="`num_clases`. Did you mean `num_classes`"):
        AlbertTextClassifier.from_preset(str(tmp_path), num_clases=2)
    assert model.preprocessor.sequence_length == backbone.max_sequence_length == 64
    assert_golden(model.backbone)
    model.save_to_preset(str(tmp_path / "task"))
    other = AlbertTextRegressor.from_preset(str(tmp_path / "task"))
    assert type(other) is AlbertTextRegressor
    assert_golden(other.backbone)
    model.preprocessor.sequence_length = 65
    with pytest.raises(ValueError, match="=65 is more than the 64 positions"):
        AlbertTextClassifier(model.backbone, 2, model.preprocessor)


def test_weights_of_pytorch_are_fetched_if_there_are_no_others(hub):
    hub.folder("me/old").mkdir(parents=True)
    for name in ("config.json", "pytorch_model.bin"):
        (hub.folder("me/old") / name).touch()
    assert len(list(download.fetch_from_hub("hf://me/old").iterdir())) == 2
    assert len(hub.asked) == 2
