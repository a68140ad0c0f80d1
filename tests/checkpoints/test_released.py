"""Releases with their real weights, as `make test-released` runs them.

ALBERT_TF_RELEASED is `download`, or a folder that has one folder per release.
"""

import os
import pathlib
import shutil
import warnings

import keras
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import albert_tf
import zh
from albert_tf.checkpoints import RELEASES, open_checkpoint
from albert_tf.checkpoints.download import download_release, fetch_from_hub
from albert_tf.checkpoints.releases import Release
from albert_tf.files import HUB, file_digest
from albert_tf.models import AlbertMaskedLM, AlbertTextClassifier
from albert_tf.published import compare_with_published

ROOT = pathlib.Path(__file__).parents[2]
SENTENCES = {
    "zh": {
        "北[MASK]是中国的首都。": "京",
        "这家酒店的房间很干[MASK]。": "净",
        "今天天[MASK]很好，适合出门。": "气",
        "我们下个星[MASK]再见面。": "期",
        "他每天早上七点起[MASK]。": "床",
        "学生们在教[MASK]里上课。": "室",
        "老师让大家打开课[MASK]。": "本",
        "医[MASK]说他的病已经好了。": "生",
        "祝你生日快[MASK]！": "乐",
        "请给我一杯[MASK]啡。": "咖",
    },
    "en": {
        "The capital of France is [MASK].": "paris",
        "The opposite of hot is [MASK].": "cold",
        "She drinks a cup of [MASK] every morning.": "coffee",
        "The sun rises in the [MASK].": "east",
        "Two plus two equals [MASK].": "four",
        "He opened the [MASK] and walked into the room.": "door",
        "The dog barked at the [MASK].": "cat",
        "I brush my [MASK] before going to bed.": "teeth",
        "A week has seven [MASK].": "days",
        "Water freezes at zero [MASK].": "degrees",
    },
}


# Known outputs of a conversion that is no release.
OTHERS = ("hf://uer/albert-base-chinese-cluecorpussmall",)


def folder_of(name):
    """Return the folder of a release, or skip the test."""
    place = os.environ.get("ALBERT_TF_RELEASED")
    if place is None:
        pytest.skip("ALBERT_TF_RELEASED is neither a folder nor `download`")
    if place != "download":
        folder = pathlib.Path(place, name.removeprefix(HUB))
        if not folder.is_dir():
            pytest.skip(f"{place} does not hold {name}")
        return folder
    if name.startswith(HUB):
        return fetch_from_hub(name)
    if RELEASES[name].url is None:
        pytest.skip(f"no address of {name} is known")
    return download_release(name)


def check_release(release, folder):
    """Assert that a checkpoint is a complete release that fills in masks."""
    report = albert_tf.inspect_checkpoint(folder)
    assert report.missing == report.damaged == report.unused == []
    assert release.arguments.items() <= open_checkpoint(folder).arguments.items()
    # A mirror has the layout of Hugging Face, and no index.
    if report.layout == release.layout and release.index_sha256:
        assert report.release in (release.name, *release.confused_with)
    elif report.layout == release.layout:
        digest = file_digest(f"{report.path}.index")
        warnings.warn(f"releases.json lacks index_sha256 {digest}", stacklevel=2)
    # Only the encoder of the fine-tuned one was released.
    if release.vocabulary is None:
        return
    sentences = SENTENCES[release.language]
    answers = AlbertMaskedLM.from_checkpoint(folder).fill(list(sentences), top_k=5)
    found = [[token["token_str"] for token in answer] for answer in answers]
    right = [x in tokens for x, tokens in zip(sentences.values(), found, strict=True)]
    # A wrong weight anywhere fills in none.
    assert sum(right) >= 3, found


@pytest.mark.released
@pytest.mark.parametrize("name", [*RELEASES, *OTHERS])
def test_a_release_is_as_it_was_published(name):
    comparison = compare_with_published(name, folder_of(name))
    print(*comparison.lines(), sep="\n")
    assert comparison.problems == []


@pytest.mark.released
@pytest.mark.parametrize("name", RELEASES)
def test_a_release_is_complete_and_fills_in_masks(name):
    check_release(RELEASES[name], folder_of(name))


def test_the_check_runs_on_the_bundled_checkpoint(monkeypatch, tmp_path):
    """The real weights cannot be downloaded everywhere."""
    name = "albert_micro_zh"
    shutil.copytree(ROOT / "examples" / name, tmp_path / name)
    monkeypatch.setenv("ALBERT_TF_RELEASED", str(tmp_path))
    sizes = dict(zh.SIZES[name])
    release = Release(name, "zh", "albert_zh", sizes, "vocab.txt", True, None)
    with pytest.warns(UserWarning, match="lacks index_sha256"):
        check_release(release, folder_of(name))
    with pytest.raises(AssertionError):
        layers = {"num_layers": sizes["num_layers"] + 1}
        wrong = Release(name, "zh", "albert_zh", layers, None, True, None)
        check_release(wrong, folder_of(name))


@pytest.mark.released
@pytest.mark.filterwarnings("ignore")
def test_published_outputs_of_the_real_weights():
    """Printed for voidful/albert_chinese_tiny, which has the same weights."""
    backbone = albert_tf.load_checkpoint(folder_of("albert_tiny_zh_google"))
    ids = np.array([[101, 2769, 2682, 1391, 7883, 6028, 511, 102]])
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    outputs = backbone.with_intermediates()(inputs)
    hidden = outputs["sequence_output"][0, 0]
    for found, published in (
        (hidden[:3], [0.2187, 0.1725, -0.1285]),
        (hidden[-3:], [0.4073, 0.2446, -0.4724]),
        (outputs["pooled_output"][0, :4], [0.99983, 0.86759, 0.10276, 0.99794]),
        (outputs["hidden_states"][0][0, 0, :3], [-0.5849, -0.3868, 0.0435]),
    ):
        # As many decimals as were printed.
        assert np.abs(found - np.array(published)).max() < 1e-4


@pytest.mark.released
def test_the_encoder_fine_tuned_on_lcqmc_separates_its_pairs(assets):
    """Fit a linear classifier, because the release lacks its own."""
    pairs = albert_tf.data.read_labelled_texts(assets / "data" / "lcqmc" / "dev.tsv")
    model = AlbertTextClassifier.from_checkpoint(
        folder_of("albert_tiny_google_finetuned_lcqmc"),
        vocabulary=assets / "released" / "vocab" / "vocab_zh_21128.txt",
        num_classes=2,
        pairs=True,
    )
    encoder = keras.Model(model.input, model.output_dense.input)
    features = encoder.predict(model.preprocessor(pairs.x), verbose=0)
    half = len(pairs) // 2
    classifier = LogisticRegression(max_iter=1000)
    classifier.fit(features[:half], pairs.labels[:half])
    assert classifier.score(features[half:], pairs.labels[half:]) > 0.8
