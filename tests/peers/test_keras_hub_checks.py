"""KerasHub's own checks of a backbone, of tasks, preprocessors and tokenizers.

Left out, because they differ by design: Grain, tasks whose labels are no tensor, and
random masks.
"""

import sys
import unittest.mock

import keras
import pytest
from sentence_piece_reference import train_model
from small_classifier import VOCABULARY, small_backbone
from task_cases import CASES, tensor

from albert_tf.models import AlbertBackbone
from albert_tf.tokenizers import SentencePieceTokenizer, WordPieceTokenizer

# The helpers import it, but no check here uses it.
with unittest.mock.patch.dict(sys.modules, {"grain": unittest.mock.MagicMock()}):
    helpers = pytest.importorskip("keras_hub.src.tests.test_case")

pytestmark = [pytest.mark.peers, pytest.mark.traced]
PREPROCESSING = {"sequence_length": 21, "padding": "max_length"}
TASKS = ("pair classifier", "multi-label classifier", "regressor", "multiple choice")
PREPROCESSORS = ("pair classifier", "token classifier", "question answering")


class Checks(helpers.TestCase):
    __test__ = False  # Has no tests of its own.

    def runTest(self):
        pass

    def run_grain_preprocessing_test(self, *args):
        pass


@pytest.fixture
def checks():
    checks = Checks()
    checks.setUp()
    yield checks
    checks.tearDown()


def test_backbone(checks):
    features = ("token_ids", "segment_ids", "padding_mask")
    config = small_backbone().get_config()
    checks.run_backbone_test(
        AlbertBackbone,
        {x: config[x] for x in config.keys() - {"name", "trainable", "dtype"}},
        {name: keras.ops.ones((2, 5), "int32") for name in features},
        {"sequence_output": (2, 5, 12), "pooled_output": (2, 12)},
    )


@pytest.mark.parametrize("name", TASKS)
def test_tasks(checks, name):
    case = CASES[name]
    tokenizer = WordPieceTokenizer(VOCABULARY)
    settings = {
        "backbone": small_backbone(**case.sizes),
        "preprocessor": case.cls.preprocessor_cls(tokenizer, **PREPROCESSING),
    }
    x = tuple(map(tensor, case.x)) if isinstance(case.x, tuple) else case.x
    checks.run_task_test(case.cls, {**settings, **case.init_kwargs}, (x, case.y))


@pytest.mark.parametrize("name", PREPROCESSORS)
def test_preprocessors(checks, name):
    case = CASES[name]
    settings = {"tokenizer": WordPieceTokenizer(VOCABULARY), **PREPROCESSING}
    x = (tuple(map(tensor, case.x)),) if isinstance(case.x, tuple) else case.x
    cls = case.cls.preprocessor_cls
    checks.run_preprocessing_layer_test(cls, settings, x)


@pytest.mark.parametrize(
    ("cls", "source", "texts"),
    [
        (WordPieceTokenizer, VOCABULARY, ["很好吃", "", "he"]),
        (SentencePieceTokenizer, train_model(), ["river on", "hello", ""]),
    ],
)
def test_tokenizers(checks, cls, source, texts):
    checks.run_preprocessing_layer_test(cls, {cls.source_argument: source}, texts)
