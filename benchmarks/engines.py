"""Us and peers as the benchmarks run them: strings in, outputs out.

An engine has `name`, `predict(x, batch_size)` and, if it trains, `fit(x, y, batch_size,
epochs, rate)`; with a `rate` all train by plain AdamW at it. All have the same shape,
random weights and vocabulary, and read as many tokens of a text. What is not installed
is left out.
"""

import functools
import importlib.util
import pathlib
import tempfile

import keras
import keras_hub
import numpy as np
from harness import machine

import albert_tf
import zh


class Ours:
    """`AlbertTextClassifier`, by its defaults."""

    name = "albert-tf"

    def __init__(self, size, vocabulary, sequence_length=128):
        backbone = albert_tf.models.AlbertBackbone(**zh.SIZES[size])
        self.model = albert_tf.models.AlbertTextClassifier.from_backbone(
            backbone, vocabulary, num_classes=2, sequence_length=sequence_length
        )

    def predict(self, x, batch_size):
        # By default as many tokens a batch as so many texts of full length.
        return self.model.predict(x, verbose=0)

    def fit(self, x, y, batch_size, epochs=1, rate=None):
        if rate:
            self.model.compile(
                optimizer=keras.optimizers.AdamW(rate),
                loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            )
        self.model.fit(x, y, batch_size=batch_size, epochs=epochs, verbose=0)


class KerasHub(Ours):
    """As its guide documents it: default `compile`, texts padded to a fixed length.

    Its ALBERT tokenizer reads SentencePiece only; its BERT preprocessor is what reads
    a Chinese vocabulary.
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


class Transformers:
    """PyTorch: padded to the longest of each batch, in the order of the texts."""

    name = "transformers"
    sorts = False
    dtype = "float32"

    def __init__(self, size, vocabulary, sequence_length=128):
        import torch
        import transformers

        self.sequence_length = sequence_length
        self.torch, sizes = torch, zh.SIZES[size]
        self.tokenizer = transformers.BertTokenizerFast(vocabulary)
        self.model = transformers.AlbertForSequenceClassification(
            transformers.AlbertConfig(
                vocab_size=sizes["vocabulary_size"],
                hidden_size=sizes["hidden_dim"],
                num_hidden_layers=sizes["num_layers"],
                num_attention_heads=sizes["num_heads"],
                intermediate_size=sizes["intermediate_dim"],
                embedding_size=sizes["embedding_dim"],
                hidden_act="gelu_new",
            )
        ).to(getattr(torch, self.dtype))

    def _batches(self, x, batch_size, shuffle=None):
        parts = x if isinstance(x, tuple) else (x,)
        order = np.arange(len(parts[0]))
        if shuffle:
            shuffle.shuffle(order)
        if self.sorts:
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
    """The same, in the order of their lengths."""

    name = "transformers, sorted"
    sorts = True


class BFloat16Transformers(SortedTransformers):
    name = "transformers, sorted, bfloat16"
    dtype = "bfloat16"


class OnnxInt8:
    """Our own ONNX file in 8 bits, by ONNX Runtime."""

    name = "ONNX Runtime int8"
    write, opens = staticmethod(albert_tf.export.onnx), albert_tf.export.OnnxModel

    def __init__(self, size, vocabulary, sequence_length=128):
        self.path = path = pathlib.Path(tempfile.mkdtemp(), "model")
        model = Ours(size, vocabulary, sequence_length).model
        self.write(model, path, precision="int8")
        self.model = self.opens(path)

    def predict(self, x, batch_size):
        # Which batches them by length.
        return self.model.predict(x)["probabilities"]


class LiteRTInt8(OnnxInt8):
    """Our own LiteRT file in 8 bits, a text at a time, of the next length it has."""

    name = "LiteRT int8"
    write = functools.partial(albert_tf.export.litert, lengths=(32, 64, 128, 256, 512))
    opens = albert_tf.export.LiteRTModel


class OpenVinoInt8(OnnxInt8):
    """The same file by OpenVINO; the tokens are ours."""

    name = "OpenVINO int8"

    def __init__(self, size, vocabulary, sequence_length=128):
        super().__init__(size, vocabulary, sequence_length)
        import openvino

        compiled = openvino.Core().compile_model(self.path)
        names = [port.any_name for port in compiled.inputs]
        self.model.call = lambda features: next(
            iter(compiled([features[name] for name in names]).values())
        )


# An engine to the modules that it needs.
NEEDS = {
    Ours: (),
    KerasHub: (),
    Transformers: ("torch", "transformers"),
    SortedTransformers: ("torch", "transformers"),
    BFloat16Transformers: ("torch", "transformers"),
    OnnxInt8: ("onnx", "onnxruntime"),
    LiteRTInt8: ("ai_edge_litert",),
    OpenVinoInt8: ("onnx", "openvino"),
}


def installed():
    """The engines that can run here, and fast: bfloat16 where the processor has it."""
    has_bfloat16 = {"avx512_bf16", "amx_bf16"} & set(machine()["flags"])
    return [
        engine
        for engine, modules in NEEDS.items()
        if all(map(importlib.util.find_spec, modules))
        and (has_bfloat16 or engine is not BFloat16Transformers)
    ]
