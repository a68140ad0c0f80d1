"""The checkpoints ALBERT was released in, as one table.

What is not certain is said beside it. Sources:

- google-research/albert `README.md` (addresses, English figures), and the
  `config.json` of the Hugging Face mirrors, as PaddleNLP's `albert/configuration.py`
  lists them;
- brightmart/albert_zh `README.md` (addresses, Chinese figures, mirrors) and
  `albert_config/`;
- CLUEbenchmark/CLUE `README.md`.
"""

import dataclasses
import functools
import inspect
import json
import pathlib

from albert_tf.backbone import SIZES, AlbertBackbone
from albert_tf.backbone.sizes import albert_size
from albert_tf.checkpoints.config import file_config
from albert_tf.checkpoints.layouts import ALBERT_ZH, GOOGLE

GOOGLE_README = "https://github.com/google-research/albert#readme"
ALBERT_ZH_README = "https://github.com/brightmart/albert_zh#readme"
CLUE_README = "https://github.com/CLUEbenchmark/CLUE#readme"
AISPACE_README = "https://github.com/yingyuankai/AiSpace#examples"

_GOOGLE_FILES = "https://storage.googleapis.com/albert_models"
_ALBERT_ZH_FILES = "https://storage.googleapis.com/albert_zh"

_LAYOUTS = {layout.name: layout for layout in (GOOGLE, ALBERT_ZH)}


@dataclasses.dataclass(frozen=True)
class Score:
    """A published figure.

    Attributes:
        task: string, the data set.
        split: string, such as `"dev"`, or `""` if the source does not say.
        metric: string.
        value: float, in percent.
        source: string, address of the page that publishes it.
        note: string, what to know before comparing.
    """

    task: str
    split: str
    metric: str
    value: float
    source: str
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Release:
    """A released checkpoint.

    Attributes:
        name: string.
        language: string, `"en"` or `"zh"`.
        layout: string, `"google"` or `"albert_zh"`.
        arguments: dict of `AlbertBackbone` arguments.
        vocabulary: string, name of the file in the archive, or `None`.
        lowercase: bool, whether text is lower-cased before it is cut into pieces.
        url: string, address of the archive, or `None` if no public one is known.
        mirrors: tuple of the Hugging Face names that hold the same weights.
        tf_hub: tuple of TF-Hub addresses, the oldest version first.
        accuracy: tuple of `Score`.
        confused_with: tuple of the releases whose checksums may be this one's, and
            the other way round.
        note: string, what else there is to know.
    """

    name: str
    language: str
    layout: str
    arguments: dict
    vocabulary: str | None
    lowercase: bool
    url: str | None
    mirrors: tuple = ()
    tf_hub: tuple = ()
    accuracy: tuple = ()
    confused_with: tuple = ()
    note: str = ""

    @property
    def checksums(self):
        """Dict of tensor name to CRC32C (masked, as in the index), or empty."""
        tensors = _checksums().get(self.name, {})
        return {tensor: crc32c for tensor, (crc32c, _) in tensors.items()}

    @property
    def shapes(self):
        """Dict of tensor name to shape, or empty where no index is known."""
        tensors = _checksums().get(self.name, {})
        return {tensor: tuple(shape) for tensor, (_, shape) in tensors.items()}

    @property
    def config(self):
        """The fields of the config file that belongs to the checkpoint."""
        parameters = inspect.signature(AlbertBackbone).parameters.values()
        defaults = {x.name: x.default for x in parameters}
        layout = _LAYOUTS[self.layout]
        return file_config(layout, {**defaults, **layout.fixed, **self.arguments})


@functools.cache
def _checksums():
    """`release_checksums.json`: {release: {tensor: [crc32c, shape]}}.

    From the `.index` files of the releases; weights only. A tensor's CRC32C stands
    there as TensorFlow stores it, masked.
    """
    path = pathlib.Path(__file__).with_name("release_checksums.json")
    return json.loads(path.read_text(encoding="utf-8"))


def identify(checksums):
    """Find the release a checkpoint is, or was made from, by its checksums.

    Args:
        checksums: dict of tensor name to CRC32C, as in the checkpoint's index.

    Returns:
        `(release, differences)`: a `Release` that more than half of whose tensors
        are in the checkpoint unchanged, and a list of short texts that say which
        are not, empty for the complete release. `(None, [])` if there is none.
        Optimizer slots and the step counter do not count.
    """
    tensors = {
        name: crc32c
        for name, crc32c in checksums.items()
        if _is_weight(name, checksums)
    }
    release = max(
        (RELEASES[name] for name in _checksums() if name in RELEASES),
        key=lambda release: _num_equal(release.checksums, tensors),
        default=None,
    )
    if release is None:
        return None, []
    if 2 * _num_equal(release.checksums, tensors) <= len(release.checksums):
        return None, []
    return release, _differences(release.checksums, tensors)


def _is_weight(name, names):
    # An optimizer slot is named after its variable: "VARIABLE/adam_m".
    return name != "global_step" and name.rpartition("/")[0] not in names


def _num_equal(released, found):
    return sum(found.get(name) == crc32c for name, crc32c in released.items())


def _differences(released, found):
    return [
        *(
            f"{name} has other values"
            for name, crc32c in released.items()
            if name in found and found[name] != crc32c
        ),
        *(f"{name} is missing" for name in released if name not in found),
        *(f"{name} is not in the release" for name in found if name not in released),
    ]


# === Google's English releases ===

# google-research/albert's table, and what its columns are: the figures of xxlarge v1
# stand in two more tables of the same page, which name the splits.
_ENGLISH_COLUMNS = (
    ("SQuAD 1.1", "dev", "F1"),
    ("SQuAD 1.1", "dev", "exact match"),
    ("SQuAD 2.0", "dev", "F1"),
    ("SQuAD 2.0", "dev", "exact match"),
    ("MNLI", "dev", "accuracy"),
    ("SST-2", "dev", "accuracy"),
    ("RACE", "test", "accuracy"),
)
_ENGLISH_FIGURES = {
    "albert_base_v1": (89.3, 82.3, 80.0, 77.1, 81.6, 90.3, 64.0),
    "albert_large_v1": (90.6, 83.9, 82.3, 79.4, 83.5, 91.7, 68.5),
    "albert_xlarge_v1": (92.5, 86.1, 86.1, 83.1, 86.4, 92.4, 74.8),
    "albert_xxlarge_v1": (94.8, 89.3, 90.2, 87.4, 90.8, 96.9, 86.5),
    "albert_base_v2": (90.2, 83.2, 82.1, 79.3, 84.6, 92.9, 66.8),
    "albert_large_v2": (91.8, 85.2, 84.9, 81.8, 86.5, 94.9, 75.2),
    "albert_xlarge_v2": (92.9, 86.4, 87.9, 84.1, 87.9, 95.4, 80.7),
    "albert_xxlarge_v2": (94.6, 89.1, 89.8, 86.9, 90.6, 96.8, 86.8),
}


def _google_english(size, version, dropout=0.0, note=""):
    name = f"albert_{size}_v{version}"
    # Version 3 came when an operation TF 1.15 could not run was taken out of the graph
    # of version 2. That the weights stayed the same is likely, and not said.
    hub = (1,) if version == 1 else (2, 3)
    return Release(
        name=name,
        language="en",
        layout="google",
        arguments={
            **SIZES[f"albert_{size}_en"],
            "hidden_dropout": dropout,
            "attention_dropout": dropout,
        },
        vocabulary="30k-clean.model",
        lowercase=True,
        url=f"{_GOOGLE_FILES}/{name}.tar.gz",
        mirrors=(f"albert/albert-{size}-v{version}",),
        tf_hub=tuple(f"https://tfhub.dev/google/albert_{size}/{n}" for n in hub),
        accuracy=tuple(
            Score(*column, value, GOOGLE_README)
            for column, value in zip(
                _ENGLISH_COLUMNS, _ENGLISH_FIGURES[name], strict=True
            )
        ),
        note=note,
    )


# The Hugging Face mirrors have 16 heads in both versions, as the page of the TF-Hub
# module says. Its `albert_config.json` was reported to say 32, which no tensor's
# shape can tell: google-research/albert issue 180, open.
_HEADS_OF_XLARGE = (
    "Sources differ on the attention heads: 16 in the mirrors, 32 in the config of "
    "the TF-Hub module (google-research/albert issue 180)."
)

# Dropout: v2 was trained without, and v1 xxlarge too, by the configs of the mirrors.
_GOOGLE_ENGLISH = (
    _google_english("base", 1, dropout=0.1),
    _google_english("large", 1, dropout=0.1),
    _google_english("xlarge", 1, dropout=0.1, note=_HEADS_OF_XLARGE),
    _google_english("xxlarge", 1),
    _google_english("base", 2),
    _google_english("large", 2),
    _google_english("xlarge", 2, note=_HEADS_OF_XLARGE),
    _google_english("xxlarge", 2),
)

# === Google's Chinese releases ===

# The page names the split for CMRC 2018 only: CLUE's own test set.
_CLUE_TASKS = {
    "AFQMC": "accuracy",
    "TNEWS": "accuracy",
    "IFLYTEK": "accuracy",
    "CMNLI": "accuracy",
    "CSL": "accuracy",
    "CMRC 2018": "exact match",
    "ChID": "accuracy",
    "C3": "accuracy",
}
_CLUE_FIGURES = {
    "base": (72.55, 55.06, 56.58, 77.58, 78.5, 72.90, 71.77, 59.58),
    "large": (74.0, 55.16, 57.00, 78.77, 80.30, 75.95, 74.18, 64.41),
    "xlarge": (69.96, 57.36, 59.50, 81.13, 81.20, 76.30, 80.57, 70.32),
    "xxlarge": (75.6, 59.46, 62.89, 83.14, 83.63, 75.15, 83.15, 73.28),
}
_CHINESE_VOCABULARY_SIZE = 21128


def _chinese(name, layout, size, **other):
    """A Chinese release: `size` is layers, hidden width, heads."""
    activation = other.pop("activation", None)
    projection = {"google": "after_layer_norm", "albert_zh": "before_layer_norm"}
    return Release(
        name=name,
        language="zh",
        layout=layout,
        arguments=albert_size(
            *size,
            vocabulary_size=_CHINESE_VOCABULARY_SIZE,
            embedding_projection=projection[layout],
            **({"activation": activation} if activation else {}),
        ),
        **{"vocabulary": "vocab.txt", "lowercase": True, **other},
    )


def _google_chinese(size, *arguments):
    return _chinese(
        f"albert_{size}_zh_google",
        "google",
        arguments,
        # Google used ReLU for its Chinese models, by the configs and issue 154.
        activation="relu",
        vocabulary="vocab_chinese.txt",
        url=f"{_GOOGLE_FILES}/albert_{size}_zh.tar.gz",
        mirrors=(f"voidful/albert_chinese_{size}",),
        accuracy=tuple(
            Score(
                task,
                "test" if task == "CMRC 2018" else "",
                metric,
                value,
                CLUE_README,
                "CLUE leaderboard",
            )
            for (task, metric), value in zip(
                _CLUE_TASKS.items(), _CLUE_FIGURES[size], strict=True
            )
        ),
    )


# The mirrors of the Chinese releases: brightmart/albert_zh's README says from which
# archive each was converted.
_GOOGLE_CHINESE = (
    _google_chinese("base", 12, 768, 12),
    _google_chinese("large", 24, 1024, 16),
    # 16 heads of 128, and of 256, on purpose: google-research/albert issue 153.
    _google_chinese("xlarge", 24, 2048, 16),
    _google_chinese("xxlarge", 12, 4096, 16),
)

# === brightmart/albert_zh ===

_UNTUNED = "hyper-parameters not tuned; split not said"


def _lcqmc(test, dev=None, note=""):
    dev_score = Score("LCQMC", "dev", "accuracy", dev, ALBERT_ZH_README, note)
    test_score = Score("LCQMC", "test", "accuracy", test, ALBERT_ZH_README, note)
    return (test_score,) if dev is None else (dev_score, test_score)


def _xnli(dev, test):
    return (
        Score("XNLI (zh)", "dev", "accuracy", dev, ALBERT_ZH_README),
        Score("XNLI (zh)", "test", "accuracy", test, ALBERT_ZH_README),
    )


def _tnews(value):
    return (Score("TNEWS", "", "accuracy", value, AISPACE_README, _UNTUNED),)


def _archive(name):
    return f"{_ALBERT_ZH_FILES}/{name}.zip"


_XLARGE_SCORE = _lcqmc(
    test=87.7, dev=87.3, note="one run; not said whether of 177k or 183k steps"
)

# The public indexes of the two trainings of tiny do not say which they are of.
_TWO_TRAININGS = (
    "Two trainings of albert_tiny_zh were released. Their checksums are known, but "
    "not which are whose: a checkpoint identified as albert_tiny_zh may be "
    "albert_tiny_zh_489k, and the other way round."
)

_ALBERT_ZH = (
    _chinese(
        "albert_tiny_zh",
        "albert_zh",
        (4, 312, 12),
        url=_archive("albert_tiny"),
        accuracy=_lcqmc(test=85.4) + _tnews(60.11),
        confused_with=("albert_tiny_zh_489k",),
        note=_TWO_TRAININGS,
    ),
    _chinese(
        "albert_tiny_zh_489k",
        "albert_zh",
        (4, 312, 12),
        url=_archive("albert_tiny_489k"),
        accuracy=_tnews(61.13),
        confused_with=("albert_tiny_zh",),
        note=f"Trained for longer, on 2 billion examples. {_TWO_TRAININGS}",
    ),
    _chinese(
        "albert_tiny_zh_google",
        "google",
        (4, 312, 12),
        url=_archive("albert_tiny_zh_google"),
        mirrors=("voidful/albert_chinese_tiny",),
        accuracy=_tnews(60.86),
        note="The config in the archive says 1 layer; the model has 4.",
    ),
    _chinese(
        "albert_small_zh_google",
        "google",
        (6, 384, 12),
        url=_archive("albert_small_zh_google"),
        mirrors=("voidful/albert_chinese_small",),
        accuracy=_lcqmc(test=86.0) + _tnews(62.62),
    ),
    _chinese(
        "albert_base_zh",
        "albert_zh",
        (12, 768, 12),
        url=_archive("albert_base_zh"),
        accuracy=_lcqmc(test=86.3, dev=87.2) + _xnli(77.0, 77.1) + _tnews(62.16),
    ),
    _chinese(
        "albert_base_zh_additional_36k_steps",
        "albert_zh",
        (12, 768, 12),
        url=_archive("albert_base_zh_additional_36k_steps"),
        accuracy=_lcqmc(test=86.3, dev=87.8) + _tnews(61.76),
    ),
    _chinese(
        "albert_large_zh",
        "albert_zh",
        (24, 1024, 16),
        url=_archive("albert_large_zh"),
        accuracy=_lcqmc(test=87.1, dev=88.7) + _xnli(78.0, 77.5) + _tnews(61.83),
    ),
    _chinese(
        "albert_xlarge_zh_177k",
        "albert_zh",
        (24, 2048, 32),
        url=_archive("albert_xlarge_zh_177k"),
        accuracy=_XLARGE_SCORE + _tnews(63.38),
    ),
    _chinese(
        "albert_xlarge_zh_183k",
        "albert_zh",
        (24, 2048, 32),
        url=_archive("albert_xlarge_zh_183k"),
        accuracy=_XLARGE_SCORE + _tnews(63.21),
        note="The one its author says to try first.",
    ),
    _chinese(
        "albert_tiny_google_finetuned_lcqmc",
        "google",
        (4, 312, 12),
        url=None,
        vocabulary=None,
        note="Fine-tuned on LCQMC (149,228 steps); the encoder alone. No public "
        "address is known.",
    ),
)

RELEASES = {
    release.name: release
    for release in (*_GOOGLE_ENGLISH, *_GOOGLE_CHINESE, *_ALBERT_ZH)
}
