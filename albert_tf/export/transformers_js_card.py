"""The README.md of a model for transformers.js, in English and Chinese."""

import json
import pathlib
import re
import string
from collections.abc import Callable
from typing import Any, NamedTuple

from albert_tf.files import write_text
from albert_tf.model_card import INPUTS, MARK

# The releases that the tests run and the page of examples/browser loads.
LIBRARY = "@huggingface/transformers@4.3.1"
_CDN = f"https://cdn.jsdelivr.net/npm/{LIBRARY}"


class _Usage(NamedTuple):
    """A call of a task in transformers.js."""

    tag: str  # The name of the pipeline.
    names: str  # What is imported.
    code: str
    note: tuple[str, str] = ("", "")


_PIPELINE = """\
const run = await pipeline("$tag", "$folder", { dtype: "$dtype" });
console.log(await run($arguments));"""
_DIRECT = """\
const tokenizer = await AutoTokenizer.from_pretrained("$folder");
const model = await $cls.from_pretrained("$folder", { dtype: "$dtype" });
const { $output } = await model(tokenizer($arguments));
console.log($shown);"""
_THRESHOLD = (
    "`top_k: null` returns every label. Choose those whose score is at least {0:g}.",
    "`top_k: null` 返回所有标签，取得分不低于 {0:g} 的。",
)
_THRESHOLDS = (
    "`top_k: null` returns every label. Choose those whose score is at least the "
    "threshold; those of the labels in config.json are {1}.",
    "`top_k: null` 返回所有标签，取得分不低于阈值的。按 config.json 中标签的顺序，阈值"
    "为 {1}。",
)
_TAGS = (
    "Keras decodes the best valid sequence of tags, transformers.js the best tag of "
    "each token. Spans differ where these are not a valid sequence.",
    "Keras 解码最优的合法标签序列，transformers.js 取每个 token 的最优标签；后者不合法"
    "时，实体会有差别。",
)
_ANSWERS = (
    "transformers.js reads one window and always answers: Keras reads all windows of a "
    "long context, limits the length of answers and may give none.",
    "transformers.js 只读一个窗口，且总会给出答案；Keras 会读长文章的所有窗口，限制答案"
    "长度，也可能判定无答案。",
)
_POOLED = (
    "The pooling of this model is `{mode}`, which no pipeline has: read "
    "`sentence_embedding`.",
    "本模型的池化方式是 `{mode}`，流水线没有这种方式，请读取 `sentence_embedding`。",
)

_SCORES = (
    "Pipelines would apply softmax to the score.",
    "流水线会对分数做 softmax，因此直接调用模型。",
)
_CLASSIFIER = "AutoModelForSequenceClassification"

_CARD = """\
---
library_name: transformers.js
pipeline_tag: {tag}
tags: [albert, albert-tf, onnx]
---
{mark}

# {name} for transformers.js

[中文](#中文)

Written by `albert_tf.export.transformers_js`. `onnx/model.onnx` (`dtype: "fp32"`) gives
the numbers of Keras, `onnx/model_quantized.onnx` (`dtype: "q8"`) is a quarter as large.
At most {length} tokens of a text are read. {notes[0]}

In Node, after `npm install {library}`, in the parent directory of this one:

```js
{node}
```

In a page, beside the directory on the same server:

```html
{browser}
```

# 中文

由 `albert_tf.export.transformers_js` 写出。`onnx/model.onnx`（`dtype: "fp32"`）的输出
与 Keras 一致，`onnx/model_quantized.onnx`（`dtype: "q8"`）只有四分之一大。文本最多读
{length} 个 token。{notes[1]}

用法见上面的代码：第一段在本目录的上级目录中用 Node 运行，第二段放在与本目录并列的网
页中。
"""


def write_card(folder: pathlib.Path, task: Any, name: str) -> None:
    """Write the README.md of a directory called `name`, unless a person wrote one."""
    path = folder / "README.md"
    # A file in another encoding was written by a person.
    if path.exists() and MARK not in path.read_text("utf-8", errors="replace"):
        return
    usage = _USAGES[task.name_of_task](task)
    card = _CARD.format(
        tag=usage.tag,
        mark=MARK,
        name=type(task).__name__,
        length=task.preprocessor.sequence_length,
        notes=usage.note,
        library=LIBRARY,
        node=_node(usage, name),
        browser=_browser(usage, name),
    )
    write_text(path, re.sub(" +$", "", card, flags=re.MULTILINE))


def _node(usage, name):
    return f"""\
import {{ env, {usage.names} }} from "@huggingface/transformers";

env.localModelPath = "./";
env.allowRemoteModels = false;
{_filled_in(usage.code, folder=name, dtype="fp32")}"""


def _browser(usage, name):
    return f"""\
<script type="module">
import {{ env, {usage.names} }} from "{_CDN}";

env.allowLocalModels = true;
env.allowRemoteModels = false;
env.localModelPath = "./";
{_filled_in(usage.code, folder=name, dtype="q8")}
</script>"""


def _filled_in(code, **values):
    return string.Template(code).safe_substitute(values)


# === Calls, by task ===


def _examples(task, *names):
    """Return texts to try, as JavaScript."""
    tokens = task.preprocessor.tokenizer.get_vocabulary()
    is_chinese = sum("\u4e00" <= x <= "\u9fff" for x in tokens) > len(tokens) / 10
    return [json.dumps(INPUTS[x][is_chinese], ensure_ascii=False) for x in names]


def _pipeline(tag, *arguments, note=("", "")):
    code = _filled_in(_PIPELINE, tag=tag, arguments=", ".join(arguments))
    return _Usage(tag, "pipeline", code, note)


def _direct(task, cls, output, shown, note=("", ""), tag="text-classification"):
    """Return a call of the model itself, for a text or a pair of texts."""
    first, second = _examples(task, "text", "text_b")
    options = f"text_pair: {second}, " if len(task.text_inputs) > 1 else ""
    arguments = f"{first}, {{ {options}truncation: true }}"
    values = {"cls": cls, "output": output, "arguments": arguments, "shown": shown}
    names = ["AutoTokenizer", cls, *["softmax"] * ("softmax(" in shown)]
    return _Usage(tag, ", ".join(names), _filled_in(_DIRECT, **values), note)


def _classes(task):
    is_multi, note = task.name_of_task == "multi-label", ("", "")
    if is_multi:
        thresholds = task.exported_settings()["thresholds"]
        note = _THRESHOLDS if len({*thresholds}) > 1 else _THRESHOLD
        shown = ", ".join(f"{x:g}" for x in thresholds)
        note = tuple(x.format(thresholds[0], shown) for x in note)
    if len(task.text_inputs) > 1:
        function = "logits.sigmoid().data" if is_multi else "softmax(logits.data)"
        return _direct(
            task, _CLASSIFIER, "logits", f"model.config.id2label, {function}", note
        )
    options = ["{ top_k: null }"] * is_multi
    arguments = _examples(task, "text") + options
    return _pipeline("text-classification", *arguments, note=note)


def _vectors(task):
    mode, normalize = task.pooling_mode, str(task.normalize).lower()
    if mode in ("mean", "cls"):
        options = f'{{ pooling: "{mode}", normalize: {normalize} }}'
        return _pipeline("feature-extraction", *_examples(task, "text"), options)
    note = tuple(x.format(mode=mode) for x in _POOLED)
    names = "AutoModel", "sentence_embedding", "sentence_embedding.tolist()"
    return _direct(task, *names, note, "feature-extraction")


def _masks(task):
    (masked,) = _examples(task, "masked")
    token = task.preprocessor.tokenizer.mask_token
    return _pipeline("fill-mask", masked.replace("[MASK]", token))


_USAGES: dict[str, Callable[[Any], _Usage]] = {
    "text-classification": _classes,
    "multi-label": _classes,
    "regression": lambda task: _direct(
        task, _CLASSIFIER, "logits", "logits.data[0]", _SCORES
    ),
    "token-classification": lambda task: _pipeline(
        "token-classification",
        *_examples(task, "text"),
        '{ aggregation_strategy: "simple" }',
        note=_TAGS,
    ),
    "question-answering": lambda task: _pipeline(
        "question-answering", *_examples(task, "question", "context"), note=_ANSWERS
    ),
    "fill-mask": _masks,
    "text-embedding": _vectors,
}
