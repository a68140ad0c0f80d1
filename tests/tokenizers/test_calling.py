"""What both tokenizers share: the forms of input, graphs, SavedModels, types."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from reference_tokenizer import tokenize
from sentence_piece_reference import Reference, train_model

from albert_tf.tokenizers import SentencePieceTokenizer, WordPieceTokenizer

TOKENS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "我",
    "想",
    "hello",
    "cafe",
    ",",
    "！",
    "on",
    "3",
    "may",
    "river",
    "##s",
]
TEXTS = ["Hello我想 on 3 May, the river", "", " \t\u3000", "Cafés！ stoñes!"]


@pytest.fixture(scope="module", params=["WordPiece", "SentencePiece"])
def case(request):
    """A tokenizer, its class and argument, and the ids of the texts."""
    if request.param == "WordPiece":
        ids = {token: i for i, token in enumerate(TOKENS)}
        expected = [[ids[p] for p in tokenize(text, ids)] for text in TEXTS]
        return WordPieceTokenizer(TOKENS), TOKENS, expected
    proto = train_model()
    expected = [Reference(proto).ids(text) for text in TEXTS]
    return SentencePieceTokenizer(proto), proto, expected


@pytest.fixture
def tokenizer(case):
    return case[0]


@pytest.fixture
def expected(case):
    return case[2]


def test_batch(tokenizer, expected):
    for texts in (TEXTS, np.array(TEXTS), tf.constant(TEXTS), np.array(TEXTS, object)):
        ids = tokenizer(texts)
        assert isinstance(ids, tf.RaggedTensor)
        assert ids.dtype == tf.int32
        assert ids.shape.as_list() == [4, None]
        assert ids.to_list() == expected


def test_single_string(tokenizer, expected):
    converts = (str, str.encode, np.array, tf.constant)
    for text, row, convert in zip(TEXTS, expected, converts, strict=True):
        ids = tokenizer(convert(text))
        assert isinstance(ids, tf.Tensor)
        assert ids.dtype == tf.int32
        assert ids.numpy().tolist() == row


def test_empty_batch(tokenizer):
    for empty in ([], np.array([]), tf.zeros([0], tf.string)):
        for ragged in (tokenizer(empty), *tokenizer.tokenize_with_offsets(empty)):
            assert ragged.shape.as_list() == [0, None]
            assert ragged.to_list() == []


def test_higher_ranks(tokenizer, expected):
    nested = [TEXTS[:2], TEXTS[2:]]
    assert tokenizer(nested).to_list() == [expected[:2], expected[2:]]
    ragged = tf.ragged.constant([TEXTS[:1], TEXTS[1:]])
    for ids in (tokenizer(ragged), tokenizer.tokenize_with_offsets(ragged)[0]):
        assert ids.to_list() == [expected[:1], expected[1:]]


def test_function_and_dataset(tokenizer, expected):
    signature = [tf.TensorSpec([None], tf.string)]
    function = tf.function(tokenizer, input_signature=signature)
    assert function(tf.constant(TEXTS)).to_list() == expected
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS)
    assert [ids.numpy().tolist() for ids in dataset.map(tokenizer)] == expected
    batches = dataset.batch(2).map(tokenizer, num_parallel_calls=2)
    assert [row for batch in batches for row in batch.to_list()] == expected


@pytest.mark.slow
def test_saved_model_holds_no_table(tokenizer, tmp_path):
    module = tf.Module()
    module.serve = tf.function(
        lambda texts: {"ids": tokenizer(texts).to_tensor()},
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    tf.saved_model.save(module, tmp_path, signatures=module.serve)
    serve = tf.saved_model.load(tmp_path).signatures["serving_default"]
    ids = serve(tf.constant(TEXTS))["ids"].numpy()
    assert ids.tolist() == tokenizer(TEXTS).to_tensor().numpy().tolist()
    graph = module.serve.get_concrete_function().graph
    operations = {operation.type for operation in graph.get_operations()}
    assert not any("Table" in op or "PyFunc" in op for op in operations)


def test_dtypes(case):
    tokenizer, source, expected = case
    output = tokenizer(keras.Input((), dtype="string"))
    assert (output.shape, output.dtype) == ((None, None), "int32")
    ids = type(tokenizer)(source, dtype="int64")(TEXTS)
    assert (ids.dtype, ids.to_list()) == (tf.int64, expected)
    with pytest.raises(ValueError, match="`dtype` must be 'int32'.*float32"):
        type(tokenizer)(source, dtype="float32")


def test_inputs_that_are_no_strings(tokenizer):
    for inputs in ([1, 2], tf.constant([[1]])):
        with pytest.raises(ValueError, match="expects strings.*Received: dtype="):
            tokenizer.tokenize(inputs)


def test_lookups(tokenizer):
    tokens = tokenizer.get_vocabulary()
    assert tokenizer.vocabulary_size() == len(tokens)
    assert [tokenizer.token_to_id(token) for token in tokens] == [*range(len(tokens))]
    assert tokenizer.id_to_token(2) == "[CLS]"
    for i in (-1, len(tokens)):
        with pytest.raises(ValueError, match=rf"must be in \[0, .*id={i}"):
            tokenizer.id_to_token(i)
    with pytest.raises(ValueError, match="'nothing' is not in the vocabulary"):
        tokenizer.token_to_id("nothing")
