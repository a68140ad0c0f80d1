"""Saving models in every layout."""

import os
import pathlib
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import keras
import keras_hub
import numpy as np

from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.checkpoints.config import (
    file_config,
    layout_differences,
    tokenizer_config,
)
from albert_tf.checkpoints.formats import bundle, huggingface, torch_files
from albert_tf.checkpoints.heads import HEADS, label_fields, write_head
from albert_tf.checkpoints.layout import (
    ENCODER_PARTS,
    CheckpointError,
    Tensors,
    float32_of,
)
from albert_tf.checkpoints.layouts import HUGGINGFACE, KERASHUB, LAYOUTS, own_layout
from albert_tf.checkpoints.named_heads import FIELD, PARTS, check_name, head_prefix
from albert_tf.checkpoints.opening import open_checkpoint
from albert_tf.checkpoints.plan import plan_weights, without_initializing
from albert_tf.files import BACKUP, check_space, complete_directory, write_json
from albert_tf.tokenizers import SentencePieceTokenizer
from albert_tf.tokenizers.text_tokenizer import TextTokenizer
from albert_tf_lite.errors import AlbertError, first_line, listed

PREFIX = "albert_model.ckpt"
_CONFIG = "albert_config.json"
# Files of a checkpoint, and those that a newer one of the same layout replaces. A
# preset has too many.
_FILES = (
    "*.index",
    "*.index.json",
    "*.safetensors",
    "*.bin",
    "*.keras",
    "*.h5",
    "*config*.json",
)
# Arguments of a backbone that need not be those of its heads.
_MAY_DIFFER = ("pooler", "fine_tuning", "hidden_dropout", "attention_dropout")
_VOCABULARIES = ("vocab*.txt", "*.model", "tokenizer.json")
_REPLACED = {
    "google": {f"{PREFIX}.index", _CONFIG},
    "albert_zh": {f"{PREFIX}.index", _CONFIG},
    "huggingface": {torch_files.WEIGHTS, "config.json", "tokenizer_config.json"},
}


def save_checkpoint(
    model: keras.Model,
    path: str | os.PathLike,
    layout: str = "google",
    tokenizer: TextTokenizer | str | os.PathLike | None = None,
    *,
    heads: Mapping[str, keras.Model] | None = None,
) -> None:
    """Write a model in a layout that other tools read.

    | layout | files | read by |
    |---|---|---|
    | `"google"`, `"albert_zh"` | `albert_config.json`, `albert_model.ckpt.*` | the original TensorFlow 1 code |
    | `"huggingface"` | `config.json`, `model.safetensors`, `tokenizer_config.json` | `transformers.AutoModel` |
    | `"kerashub"` | a preset | `keras_hub.models.AlbertBackbone.from_preset` |
    | `"keras"` | a preset | `albert_tf.models.AlbertBackbone.from_preset` |

    The vocabulary is written beside it, as `vocab.txt` or `spiece.model`.

    Args:
        model: an `AlbertBackbone`, or a task on one, which is saved with its heads.
        path: string, the directory to write into. The files appear when all are
            written.
        layout: string, as above.
        tokenizer: optional tokenizer, or path of a vocabulary, to write. By default
            the model's own, if it has one.
        heads: optional dict of tasks by name, whose heads are written beside those of
            `model`, for `from_checkpoint(path, head=name)`. Their backbones must have
            the weights of `model`. Presets hold no such heads.

    Raises:
        TypeError: if `model` or one of `heads` is not a Keras model.
        AlbertError: if the layout is unknown, or a name or task cannot be that of a
            named head.
        CheckpointError: if the layout cannot hold the model, with every difference, or
            the backbone of a task in `heads` differs.
        FileExistsError: if the directory holds files of another layout. A checkpoint of
            the same layout is replaced.

    Example:
    ```python
    backbone = albert_tf.load_checkpoint("albert_micro_zh")
    albert_tf.save_checkpoint(backbone, "tf1_model", layout="albert_zh")

    tasks = albert_tf.models
    heads = {
        "sentiment": tasks.AlbertTextClassifier(backbone, 2, labels=["差评", "好评"]),
        "entities": tasks.AlbertTokenClassifier(backbone, labels=["PER", "LOC"]),
    }
    albert_tf.save_checkpoint(backbone, "my_heads", "albert_zh", heads=heads)
    ```
    """  # noqa: E501 (a table)
    with_heads(model, path, layout, tokenizer, heads or {}).write()


def _opened(model: keras.Model) -> Checkpoint:
    """Open a model of albert_tf as a checkpoint."""
    opened = open_checkpoint(model)
    if opened.model is not model:
        raise TypeError(
            "`model` must be an AlbertBackbone of albert_tf or a task on one. "
            f"`convert_checkpoint` takes others and files. Received: {model!r}"
        )
    return opened


def _check_backbone(model: Checkpoint, task: Checkpoint, name: str) -> None:
    """Raise unless a task has the backbone of a model."""
    differ = [
        name
        for name, value in model.layout.fixed.items()
        if name not in _MAY_DIFFER and value != task.layout.fixed[name]
    ]
    if not differ:
        parts = (*ENCODER_PARTS, "pooler")
        for tensor in model.layout.names(parts, model.arguments):
            # One of them may have no pooler.
            if tensor not in model.shapes or tensor not in task.shapes:
                continue
            if not np.array_equal(model.read(tensor), task.read(tensor)):
                differ.append(tensor)
    if differ:
        raise CheckpointError(
            f"The backbone of the head {name} differs from that of the model in "
            f"{listed(differ)}. Heads of one checkpoint share the backbone: train them "
            "together, or with a frozen encoder."
        )


class HeadRow(NamedTuple):
    """The tensors that hold a weight of a named head, in two layouts."""

    read: Tensors
    written: Tensors


class Saving:
    """A model in the terms of a layout, which `write` writes into a directory.

    `heads` are checkpoints by name, each with one head, on the same backbone. Raises
    the errors of `save_checkpoint`; with `partly`, `left_out` lists the parts and
    settings without a place in the layout instead.
    """

    def __init__(
        self,
        model: keras.Model,
        path: str | os.PathLike,
        layout: str,
        tokenizer: TextTokenizer | str | os.PathLike | None,
        partly: bool = False,
        heads: Mapping[str, Checkpoint] | None = None,
    ) -> None:
        if layout not in (*LAYOUTS, "keras"):
            raise AlbertError(
                f"Unknown layout {layout!r}. Known: {[*LAYOUTS, 'keras']}"
            )
        self.checkpoint = _opened(model)
        self.model = model
        self.folder = pathlib.Path(path)
        arguments = self.checkpoint.arguments
        self.layout = LAYOUTS.get(layout) or own_layout(arguments)
        if differ := layout_differences(self.layout, arguments):
            fit = [
                x for x, y in LAYOUTS.items() if not layout_differences(y, arguments)
            ]
            raise CheckpointError(
                f'The "{layout}" layout cannot hold this model: {"; ".join(differ)}. '
                f"Layouts that can: {', '.join([*fit, 'keras'])}."
            )
        self.tokenizer = self.checkpoint.tokenizer(vocabulary=tokenizer)
        self._choose_parts()
        self._choose_heads(heads or {}, partly)
        if self.left_out and not partly:
            raise CheckpointError(
                f'The "{layout}" layout has no place for {", ".join(self.left_out)} of '
                "this model. Save `model.backbone`, or choose another layout."
            )
        self.plan = plan_weights(self.layout, model, self.parts)
        self._check_folder()

    def _choose_parts(self) -> None:
        """Set `parts` and `left_out`."""
        self.parts: list[str] = []
        self.left_out: list[str] = []
        for part in self.checkpoint.parts:
            head = self.checkpoint.head_config(part) if part in HEADS else {}
            pooling = head.get("pooling_mode", "cls")
            # Other code would silently pool by the first token.
            if pooling != "cls" and self.layout in (HUGGINGFACE, KERASHUB):
                self.left_out.append(f'{part} with pooling_mode="{pooling}"')
            elif part not in self.layout.weights:
                self.left_out.append(part)
            else:
                self.parts.append(part)
                if self.layout is KERASHUB:
                    self.left_out += _without_place_in_kerashub(head)
        tokenizer = self.tokenizer
        if self.layout is KERASHUB and isinstance(tokenizer, SentencePieceTokenizer):
            self.left_out += [] if tokenizer.lowercase else ["lowercase=False"]

    def _choose_heads(self, heads: Mapping[str, Checkpoint], partly: bool) -> None:
        """Set `heads`, and add those without a place to `left_out`."""
        for name, source in heads.items():
            self._check_head(name, source)
        self.heads: dict[str, Checkpoint] = {}
        if self.layout.separator is None and heads and not partly:
            raise CheckpointError(
                f'The "{self.layout.name}" layout has no place for named heads. Choose '
                f"one of {', '.join(heads)}, or one of the layouts google, albert_zh "
                "and huggingface."
            )
        for name, source in heads.items():
            places = self.layout.weights if self.layout.separator else ()
            if source.heads[0] in places:
                self.heads[name] = source
            else:
                self.left_out.append(f"the head {name}")

    def _check_head(self, name: str, source: Checkpoint) -> None:
        """Raise unless a checkpoint has one head that can be named."""
        check_name(name)
        if len(source.heads) != 1 or source.heads[0] not in PARTS:
            raise AlbertError(
                f"The head {name} must be one of {', '.join(PARTS)}. Received: "
                f"{', '.join(source.heads) or 'a model without a head'}"
            )
        (part,) = source.heads
        mode = source.head_config(part).get("pooling_mode")
        if HEADS[part].reads_pooler(mode) and "pooler" not in self.parts:
            raise CheckpointError(
                f"The head {name} reads the pooler, which the model lacks. Save it "
                "with a model that has the pooler."
            )

    def _check_folder(self) -> None:
        """Raise if files of two checkpoints would be mixed in the directory."""
        folder, patterns = self.folder, [*_FILES]
        # In the directory of an unfinished training they are its own.
        if not folder.is_dir() or (folder / BACKUP).exists():
            return
        replaced = set(_REPLACED.get(self.layout.name, ()))
        if self.tokenizer is not None:
            patterns += _VOCABULARIES
            replaced.add(str(self.tokenizer.original_file_name))
        names = {file.name for pattern in patterns for file in folder.glob(pattern)}
        if others := sorted(names - replaced):
            raise FileExistsError(
                f"{folder} holds files of another checkpoint: {listed(others)}. "
                "Choose another directory."
            )

    # === Writing ===

    def write(self) -> None:
        """Write the files, which appear when all are written."""
        with complete_directory(self.folder) as directory:
            self.write_into(directory)

    def write_into(self, directory: pathlib.Path) -> None:
        """Write the files into a new directory."""
        check_space(directory, self.model.variables)
        if self.layout.name in _REPLACED:
            self._write_files(directory)
        else:
            self._write_preset(directory)

    def head_plan(self, name: str) -> list[HeadRow]:
        """Return the tensors of each weight of a named head, without its prefix."""
        source = self.heads[name]
        written = {row.attribute: row for row in self.layout.rows(source.heads, {})}
        return [
            HeadRow(read=row.tensors, written=written[row.attribute].tensors)
            for row in source.layout.rows(source.heads, {})
        ]

    def _tensors(self) -> Iterator[tuple[str, Any]]:
        """Yield pairs of name and array."""
        for weight, tensors in self.plan:
            value = keras.ops.convert_to_tensor(weight)
            value = float32_of(value, tensors.names[0], self.checkpoint.path)
            yield from zip(tensors.names, tensors.from_weight(value), strict=True)
        for name, source in self.heads.items():
            prefix = head_prefix(self.layout, name)
            for row in self.head_plan(name):
                weight = row.read.to_weight([source.read(x) for x in row.read.names])
                values = row.written.from_weight(weight)
                for tensor, value in zip(row.written.names, values, strict=True):
                    yield prefix + tensor, value

    def _config(self) -> dict[str, Any]:
        """Return the fields of the config file."""
        fields = file_config(self.layout, self.checkpoint.arguments)
        heads = {x: self.checkpoint.num_classes(x) for x in self.parts if x in HEADS}
        if self.layout is HUGGINGFACE:
            # The sentence-order head of transformers has `num_labels` classes, too.
            classes = [count for count in heads.values() if count]
            fields.update(label_fields(classes[-1] if classes else 2))
            fields["classifier_dropout_prob"] = 0.1
        # Pretrained checkpoints in the original form are later used for other tasks.
        if self.layout is HUGGINGFACE or set(heads) - {"masked_lm_head", "sop_head"}:
            names = [HEADS[part].architectures[0] for part in heads]
            fields["architectures"] = names[-1:] or ["AlbertModel"]
        for part in heads:
            fields.update(_head_fields(self.checkpoint, part))
        if self.heads:
            fields[FIELD] = {
                name: _named_fields(source) for name, source in self.heads.items()
            }
        return fields

    def _warn_of_settings(self, tokenizer: TextTokenizer) -> None:
        """Warn of settings of the tokenizer that other readers of the layout ignore."""
        if self.layout is HUGGINGFACE:
            reader = "transformers"
            fields = huggingface.ignored_fields(tokenizer)
        else:
            reader, fields = "The original code", tokenizer_config(tokenizer)
        fields.pop("do_lower_case", None)
        if fields:
            shown = ", ".join(f"{name}={value}" for name, value in fields.items())
            warnings.warn(
                f"{self.folder} keeps {shown} for albert_tf. {reader} ignores it, so "
                "that the ids of some texts differ there.",
                # The caller of `save_checkpoint`.
                stacklevel=6,
            )

    def _write_files(self, directory: pathlib.Path) -> None:
        config = self._config()
        tokenizer = self.tokenizer
        if tokenizer is not None:
            self._warn_of_settings(tokenizer)
        if self.layout is HUGGINGFACE:
            if tokenizer is not None:
                length = self.checkpoint.arguments["max_sequence_length"]
                config.update(huggingface.write_tokenizer(directory, tokenizer, length))
            huggingface.write_model(directory, self._tensors(), config)
            write_json(directory / "config.json", config)
        else:
            if tokenizer is not None:
                tokenizer.save_original(directory)
                config.update(tokenizer_config(tokenizer))
            bundle.write_tensors(directory / PREFIX, self._tensors())
            write_json(directory / _CONFIG, config)

    def _write_preset(self, directory: pathlib.Path) -> None:
        model = self.model
        tokenizer: keras.layers.Layer | None = self.tokenizer
        if self.layout is KERASHUB:
            # KerasHub's ALBERT has no WordPiece, and its BERT changes Chinese text.
            if isinstance(tokenizer, SentencePieceTokenizer):
                tokenizer = keras_hub.tokenizers.AlbertTokenizer(tokenizer.proto)
            model = self._build_keras_hub(tokenizer)
        model.save_to_preset(str(directory))
        if tokenizer is not None and getattr(model, "preprocessor", None) is None:
            tokenizer.save_to_preset(str(directory))

    def _build_keras_hub(self, tokenizer: keras.layers.Layer | None) -> keras.Model:
        """Return the model as KerasHub's, with the weights."""
        arguments = self.checkpoint.arguments
        try:
            with without_initializing():
                model = keras_hub.models.AlbertBackbone(
                    **file_config(KERASHUB, arguments)
                )
        except ValueError as error:
            raise CheckpointError(
                f'The "kerashub" layout cannot hold this model: {first_line(error)}'
            ) from error
        if "classifier" in self.parts:
            head = self.checkpoint.head_config("classifier")
            if head["pairs"]:
                warnings.warn(
                    "KerasHub's classifiers do not keep that they take pairs. Load it "
                    "by from_checkpoint(..., pairs=True).",
                    stacklevel=7,
                )
            preprocessor = None
            if isinstance(tokenizer, keras_hub.tokenizers.AlbertTokenizer):
                preprocessor = keras_hub.models.AlbertTextClassifierPreprocessor(
                    tokenizer, sequence_length=arguments["max_sequence_length"]
                )
            model = keras_hub.models.AlbertTextClassifier(
                model,
                self.checkpoint.num_classes("classifier"),
                preprocessor=preprocessor,
                dropout=head["dropout"],
                activation=head["activation"],
            )
        weights = {weight.path: weight for weight in model.weights}
        for name, value in self._tensors():
            weights[name].assign(value)
        return model


def with_heads(
    model: keras.Model,
    path: str | os.PathLike,
    layout: str,
    tokenizer: TextTokenizer | str | os.PathLike | None,
    heads: Mapping[str, keras.Model],
) -> Saving:
    """Return what writes a model with named heads, those of tasks on its backbone."""
    opened = {name: _opened(task) for name, task in heads.items()}
    saving = Saving(model, path, layout, tokenizer, heads=opened)
    for name, task in opened.items():
        _check_backbone(saving.checkpoint, task, name)
    return saving


def _without_place_in_kerashub(head: dict[str, Any]) -> list[str]:
    """Return the settings of a head that KerasHub's classifiers do not keep."""
    names = ("labels", "problem_type", "thresholds", "temperature")
    plain = (None, "single_label_classification", 1.0)
    return [f"{name}={head[name]}" for name in names if head.get(name) not in plain]


def _named_fields(source: Checkpoint) -> dict[str, Any]:
    """Return the config fields of a named head."""
    (part,) = source.heads
    architectures = list(HEADS[part].architectures[:1])
    return {"architectures": architectures, **_head_fields(source, part)}


def _head_fields(checkpoint: Checkpoint, part: str) -> dict[str, Any]:
    """Return the config fields of a head of a checkpoint."""
    if not HEADS[part].fields:
        return {}
    count = checkpoint.num_classes(part)
    return write_head(part, count, checkpoint.head_config(part))
