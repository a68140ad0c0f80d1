"""Engines that the benchmarks compare: albert-tf and other libraries.

An engine has a `name`, `predict(x, batch_size)` from strings to outputs and, if it can
train, `fit(x, y, batch_size, epochs, rate)`. With a `rate`, every engine trains with
plain AdamW at this learning rate. All engines use the same model size, random weights,
vocabulary and maximum length. Engines that are not installed are skipped.
"""

import importlib.util
import pathlib
import tempfile

import albert_tf
import keras
import keras_hub
import numpy as np
import tensorflow as tf
import zh

from benchmarks.lib.harness import machine
from benchmarks.lib.peers import transformers_config


class Ours:
    """`AlbertTextClassifier` with its defaults."""

    name = "albert-tf"
    dtype = "float32"

    def __init__(self, size, vocabulary, sequence_length=128):
        sizes = {**zh.SIZES[size], "dtype": self.dtype}
        backbone = albert_tf.models.AlbertBackbone(**sizes)
        self.model = albert_tf.models.AlbertTextClassifier.from_backbone(
            backbone, vocabulary, num_classes=2, sequence_length=sequence_length
        )

    def predict(self, x, batch_size):
        # Ignores `batch_size`: by default, batches are sized by their number of tokens.
        return self.model.predict(x, verbose=0)

    def fit(self, x, y, batch_size, epochs=1, rate=None):
        if rate:
            self.model.compile(
                optimizer=keras.optimizers.AdamW(rate),
                loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            )
        self.model.fit(x, y, batch_size=batch_size, epochs=epochs, verbose=0)


class BFloat16(Ours):
    """The same with `precision="bfloat16"`: weights of 32 bits, computed in 16."""

    name = "albert-tf, bfloat16"
    dtype = "mixed_bfloat16"


class KerasHub(Ours):
    """KerasHub as its guide documents it: default `compile`, fixed-length padding.

    Its ALBERT tokenizer supports SentencePiece only, so the BERT preprocessor reads
    the Chinese vocabulary.
    """

    name = "KerasHub"

    def __init__(self, size, vocabulary, sequence_length=128):
        sizes = zh.SIZES[size]
        names = ("num_layers", "num_heads", "embedding_dim", "hidden_dim")
        backbone = keras_hub.models.AlbertBackbone(
            **{name: sizes[name] for name in (*names, "intermediate_dim")},
            vocabulary_size=sizes["vocabulary_size"],
        )
        preprocessor = keras_hub.models.BertTextClassifierPreprocessor(
            keras_hub.models.BertTokenizer(vocabulary=vocabulary, lowercase=True),
            sequence_length=sequence_length,
        )
        self.model = keras_hub.models.AlbertTextClassifier(
            backbone, num_classes=2, preprocessor=preprocessor
        )

    def predict(self, x, batch_size):
        return self.model.predict(x, batch_size=batch_size, verbose=0)


class TrimmedKerasHub(KerasHub):
    """KerasHub with batches cut to their longest text, by a pipeline of one's own."""

    name = "KerasHub, padded to the longest"

    def __init__(self, size, vocabulary, sequence_length=128):
        super().__init__(size, vocabulary, sequence_length)
        self.preprocessor, self.model.preprocessor = self.model.preprocessor, None

    def _batches(self, data, batch_size):
        def trimmed(x, y=None):
            # With defaults, a pair would be read as texts and labels.
            features = self.preprocessor(x, y=None, sample_weight=None)
            lengths = tf.math.count_nonzero(features["padding_mask"], axis=1)
            longest = tf.reduce_max(lengths)
            features = {name: x[:, :longest] for name, x in features.items()}
            return keras.utils.pack_x_y_sample_weight(features, y)

        return data.batch(batch_size).map(trimmed).prefetch(tf.data.AUTOTUNE)

    def predict(self, x, batch_size):
        data = tf.data.Dataset.from_tensor_slices((x,))
        return self.model.predict(self._batches(data, batch_size), verbose=0)

    def fit(self, x, y, batch_size, epochs=1):
        data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(y))
        self.model.fit(self._batches(data, batch_size), epochs=epochs, verbose=0)


class Transformers:
    """PyTorch, batches in input order, padded to the longest text of each batch."""

    name = "transformers"
    sorts = False
    dtype = "float32"

    def __init__(self, size, vocabulary, sequence_length=128):
        import torch
        import transformers

        self.sequence_length = sequence_length
        self.torch = torch
        self.tokenizer = transformers.BertTokenizerFast(vocabulary)
        self.model = transformers.AlbertForSequenceClassification(
            transformers_config(zh.SIZES[size])
        ).to(getattr(torch, self.dtype))

    def _batches(self, x, batch_size, shuffle=None):
        parts = x if isinstance(x, tuple) else (x,)
        order = np.arange(len(parts[0]))
        if shuffle:
            shuffle.shuffle(order)
        elif self.sorts:
            order = np.argsort(np.sum([list(map(len, part)) for part in parts], axis=0))
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            texts = ([part[row] for row in rows] for part in parts)
            yield (
                rows,
                self.tokenizer(
                    *texts,
                    truncation=True,
                    max_length=self.sequence_length,
                    padding="longest",
                    return_tensors="pt",
                ),
            )

    def predict(self, x, batch_size):
        count = len(x[0] if isinstance(x, tuple) else x)
        outputs = np.zeros((count, 2), "float32")
        self.model.eval()
        with self.torch.inference_mode():
            for rows, features in self._batches(x, batch_size):
                outputs[rows] = self.model(**features).logits.float().numpy()
        return outputs

    def fit(self, x, y, batch_size, epochs=1, rate=None):
        optimizer = self.torch.optim.AdamW(self.model.parameters(), rate or 1e-4)
        shuffle = np.random.default_rng(1)
        self.model.train()
        for _ in range(epochs):
            for rows, features in self._batches(x, batch_size, shuffle):
                labels = self.torch.tensor(np.asarray(y)[rows], dtype=self.torch.long)
                optimizer.zero_grad()
                self.model(**features, labels=labels).loss.backward()
                optimizer.step()


class SortedTransformers(Transformers):
    """PyTorch, with texts sorted by length, which suits only prediction."""

    name = "transformers, sorted"
    sorts = True
    fit = None


class BFloat16Transformers(Transformers):
    """PyTorch with all weights in bfloat16."""

    name = "transformers, bfloat16"
    sorts = True
    dtype = "bfloat16"


class OnnxModel:
    """The float32 ONNX export, run by ONNX Runtime, as `albert-tf predict` does."""

    name, precision = "ONNX Runtime float32", "float32"
    write, opens = staticmethod(albert_tf.export.onnx), albert_tf.export.OnnxModel

    def __init__(self, size, vocabulary, sequence_length=128):
        self.path = path = pathlib.Path(tempfile.mkdtemp(), "model")
        model = Ours(size, vocabulary, sequence_length).model
        self.write(model, path, precision=self.precision)
        self.model = self.opens(path)

    def predict(self, x, batch_size):
        # `OnnxModel.predict` batches the texts by length.
        return self.model.predict(x)["probabilities"]


class OnnxInt8(OnnxModel):
    """The int8 ONNX export."""

    name, precision = "ONNX Runtime int8", "int8"


class LiteRTInt8(OnnxInt8):
    """The int8 LiteRT export."""

    name = "LiteRT int8"
    write = staticmethod(albert_tf.export.litert)
    opens = albert_tf.export.LiteRTModel


class OpenVinoInt8(OnnxInt8):
    """The same ONNX file, run by OpenVINO with the tokenizer of albert-tf."""

    name = "OpenVINO int8"

    def __init__(self, size, vocabulary, sequence_length=128):
        super().__init__(size, vocabulary, sequence_length)
        import openvino

        compiled = openvino.Core().compile_model(self.path)
        names = [port.any_name for port in compiled.inputs]

        def call(features):
            outputs = compiled([features[name] for name in names])
            return outputs[compiled.output(0)]

        self.model.call = call


# Modules that each engine requires.
NEEDS = {
    Ours: (),
    BFloat16: (),
    KerasHub: (),
    TrimmedKerasHub: (),
    Transformers: ("torch", "transformers"),
    SortedTransformers: ("torch", "transformers"),
    BFloat16Transformers: ("torch", "transformers"),
    OnnxModel: ("onnx", "onnxruntime"),
    OnnxInt8: ("onnx", "onnxruntime"),
    LiteRTInt8: ("ai_edge_litert",),
    OpenVinoInt8: ("onnx", "openvino"),
}


def installed():
    """Return the installed engines; bfloat16 only if the processor supports it."""
    has_bfloat16 = {"avx512_bf16", "amx_bf16"} & set(machine()["flags"])
    return [
        engine
        for engine, modules in NEEDS.items()
        if all(map(importlib.util.find_spec, modules))
        and (has_bfloat16 or engine not in (BFloat16, BFloat16Transformers))
    ]
