"""Everything but SavedModels of strings runs without TensorFlow Text, as on Windows."""

import json
import os
import random

import pytest
from processes import PATH, WITHOUT_TEXT, run_python
from sentence_piece_reference import train_model

from albert_tf.tokenizers import load_tokenizer

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TOKENS += list("中文，。！1２Σσéh")
TOKENS += ["ab", "##c", "##2", "##e", "hello", "##😀"]
# Letters, white space, control characters, accents and halves of a surrogate pair.
CHARACTERS = "中文很，。！abcE12２ \t\n\0\x1c\x85\u200b\u3000\ufffdΣσςİßé\u0301\u0323"
CHARACTERS += "한😀\u200d[MASK]\ud83d"

# One process, because it imports TensorFlow for seconds.
HIDDEN = """
import json, sys

import numpy as np
import tensorflow as tf
from small_classifier import small_classifier

import albert_tf
from albert_tf.tokenizers import load_tokenizer

assert sys.modules["tensorflow_text"] is sys.modules["fcntl"] is None
folder, sources, settings, strings = json.load(sys.stdin)
found = []
for source in sources:
    source = source if isinstance(source, list) else bytes.fromhex(source)
    tokenizer = load_tokenizer(source, **settings)
    graph = tf.function(tokenizer.tokenize_with_offsets)
    encoded = [x.encode("utf-8", "albert_tf") for x in strings]
    columns = [x.to_list() for x in graph(tf.constant(encoded))]
    assert tokenizer(strings).to_list() == columns[0]
    found.append(columns)

texts, labels = ["很好", "不好", "好吃", "很"], [1, 0, 1, 0]
model = small_classifier(2, labels=["差评", "好评"])
model.fit(texts, labels, epochs=1, verbose=0)
data = tf.data.Dataset.from_tensor_slices((texts, labels)).batch(2)
model.fit(data, epochs=1, verbose=0)
model.evaluate(data, verbose=0)
expected = model.predict(texts, verbose=0)
np.testing.assert_allclose(model.predict(data, verbose=0), expected, atol=1e-5)
model.save(folder + "/model.keras")
restored = tf.keras.models.load_model(folder + "/model.keras")
np.testing.assert_allclose(restored.predict(texts, verbose=0), expected, atol=1e-5)
albert_tf.export.onnx(model, folder + "/model.onnx")
answers = albert_tf.export.OnnxModel(folder + "/model.onnx").outputs(texts)
np.testing.assert_allclose(answers, expected, atol=1e-4)
try:
    albert_tf.export.saved_model(model, folder + "/serving")
except albert_tf.AlbertError as error:
    print(json.dumps([found, str(error)]))
"""


@pytest.mark.nightly
@pytest.mark.text_ops
@pytest.mark.traced
def test_it_runs_with_the_same_ids_and_offsets_without_it(tmp_path):
    rng, proto = random.Random(0), train_model()
    texts = ["".join(rng.choices(CHARACTERS, k=rng.randrange(20))) for _ in range(1000)]
    settings = {"special_tokens_in_strings": True}
    given = json.dumps([str(tmp_path), [TOKENS, proto.hex()], settings, texts])
    path = os.pathsep.join([WITHOUT_TEXT, PATH])
    found, error = json.loads(run_python(HIDDEN, input=given, PYTHONPATH=path))
    for source, columns in zip((TOKENS, proto), found, strict=True):
        tokenizer = load_tokenizer(source, **settings)
        here = [x.to_list() for x in tokenizer.tokenize_with_offsets(texts)]
        both = (zip(*x, strict=True) for x in (here, columns))
        for text, ours, theirs in zip(texts, *both, strict=True):
            assert ours == theirs, repr(text)
    # The operations of a graph are missing.
    assert "export to ONNX or LiteRT" in error
