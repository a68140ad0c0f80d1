"""The words of model cards, in English and Chinese."""

from collections.abc import Sequence
from typing import Any, NamedTuple

Parts = Sequence[Any]


class Kind(NamedTuple):
    """Words about the models of a task; pairs are in English and Chinese.

    Attributes:
        pipeline_tag: task on the Hugging Face Hub; `None` if it has no such task.
        titles, summaries: `{each}` stands for "text" or "pair of texts".
        examples: inputs to try, a tuple of parts each.
        reads_windows: True if texts longer than the model are not truncated.
    """

    pipeline_tag: str | None
    titles: tuple[str, str]
    summaries: tuple[str, str]
    examples: tuple[Parts, Parts] = (
        ("The room was clean.", "The rooms were tidy."),
        ("房间很干净，服务员也热情。", "房间整洁，服务周到。"),
    )
    reads_windows: bool = False


# By the name of the task, or of the class if the task has no name.
KINDS = {
    "text-classification": Kind(
        "text-classification",
        ("ALBERT text classifier", "ALBERT 文本分类模型"),
        (
            "The model assigns one class to each {each}.",
            "模型为每{each}给出一个类别。",
        ),
    ),
    "multi-label": Kind(
        "text-classification",
        ("ALBERT multi-label classifier", "ALBERT 多标签分类模型"),
        (
            "The model assigns any number of classes to each {each}.",
            "模型为每{each}给出任意多个类别。",
        ),
    ),
    "regression": Kind(
        "text-classification",
        ("ALBERT text regressor", "ALBERT 文本打分模型"),
        ("The model predicts a score for each {each}.", "模型为每{each}预测一个分数。"),
    ),
    "token-classification": Kind(
        "token-classification",
        ("ALBERT entity recognizer", "ALBERT 命名实体识别模型"),
        (
            "The model finds the entities in a text, with their labels and positions.",
            "模型找出文本中的实体，并给出标签和位置。",
        ),
        (("Mary moved to Berlin.",), ("小明昨天去了北京。",)),
        reads_windows=True,
    ),
    "question-answering": Kind(
        "question-answering",
        ("ALBERT for question answering", "ALBERT 抽取式阅读理解模型"),
        (
            "The model finds the answer to a question in a given text.",
            "模型从给定的文本中抽取问题的答案。",
        ),
        (
            ("Where did Mary move?", "Mary moved to Berlin."),
            ("小明去了哪里？", "小明昨天去了北京。"),
        ),
        reads_windows=True,
    ),
    "multiple-choice": Kind(
        "multiple-choice",
        ("ALBERT for multiple choice", "ALBERT 多项选择模型"),
        (
            "The model reads a text and a question, and chooses one of the given "
            "answers.",
            "模型阅读文本和问题，从候选答案中选出一个。",
        ),
        (
            ("Mary moved to Berlin.", "Where did Mary move?", ["Berlin", "Paris"]),
            ("小明昨天去了北京。", "小明去了哪里？", ["北京", "上海"]),
        ),
    ),
    "text-embedding": Kind(
        "feature-extraction",
        ("ALBERT text embedder", "ALBERT 文本向量模型"),
        (
            "The model maps texts to vectors. Similar texts have similar vectors.",
            "模型把文本映射为向量，含义相近的文本，其向量也相近。",
        ),
    ),
    "spelling-correction": Kind(
        "text2text-generation",
        ("ALBERT spelling corrector", "ALBERT 拼写纠错模型"),
        (
            "The model replaces wrong characters in a text. The length stays the same.",
            "模型纠正文本中的错别字，字数不变。",
        ),
        (("I am hapy today.",), ("我今天很高性。",)),
    ),
    "summarization": Kind(
        "summarization",
        ("ALBERT summarizer", "ALBERT 抽取式摘要模型"),
        (
            "The model summarizes a text by extracting its most important sentences.",
            "模型抽取文本中最重要的句子作为摘要。",
        ),
        (
            ("It rained all day. The match is postponed. Tickets remain valid.",),
            ("今天下了一天雨。运动会推迟到周五举行。家长不用到校。",),
        ),
        reads_windows=True,
    ),
    "fill-mask": Kind(
        "fill-mask",
        ("ALBERT masked language model", "ALBERT 掩码语言模型"),
        (
            "The model predicts the tokens at `[MASK]`.",
            "模型预测 `[MASK]` 处的 token。",
        ),
        (("The weather is [MASK] today.",), ("今天[MASK]气很好。",)),
    ),
    "sentence-order": Kind(
        "text-classification",
        ("ALBERT for sentence order", "ALBERT 句序判断模型"),
        (
            "The model predicts whether two neighbouring sentences are in order or "
            "swapped.",
            "模型判断两个相邻句子的顺序是否被颠倒。",
        ),
        (
            ("He entered the room.", "Then he closed the door."),
            ("他走进房间。", "然后关上了门。"),
        ),
    ),
    "AlbertPretrainer": Kind(
        "fill-mask",
        ("Pretrained ALBERT", "ALBERT 预训练模型"),
        (
            "This checkpoint is a starting point for fine-tuning: `albert-tf finetune "
            "--checkpoint`. It has the output layers of pretraining, which predict "
            "masked words and the order of sentences.",
            "本检查点用作微调的起点（`albert-tf finetune --checkpoint`），带有预训练的"
            "输出层：预测被掩盖的词和句子顺序。",
        ),
        (("The weather is [MASK] today.",), ("今天[MASK]气很好。",)),
    ),
    "AlbertBackbone": Kind(
        "feature-extraction",
        ("ALBERT encoder", "ALBERT 编码器"),
        (
            "This encoder maps each token to a vector. It is a starting point for "
            "fine-tuning, and has no output layer of a task.",
            "本编码器把每个 token 映射为向量，用作微调的起点，不含任务输出层。",
        ),
    ),
}
# Tasks of others.
OTHER = Kind(
    None,
    ("ALBERT model", "ALBERT 模型"),
    ("**Fill in**: the task.", "**待补充**：任务说明。"),
)

# English and Chinese.
TEXTS = {
    "title": ("# {0}\n\n[中文](#中文)", "# 中文\n\n**{0}**"),
    "one text": ("text", "条文本"),
    "pair": ("pair of texts", "对文本"),
    "to fill in": ("**Fill in**: ", "**待补充**："),
    "sentence end": (" ", ""),
    "property": ("property", "项目"),
    "value": ("value", "内容"),
    "encoder": ("encoder", "编码器"),
    "shape": (
        "{0.num_layers} layers, hidden size {0.hidden_dim}, {0.num_heads} heads, "
        "embedding size {0.embedding_dim}, {0.vocabulary_size:,} tokens",
        "{0.num_layers} 层，隐藏维度 {0.hidden_dim}，{0.num_heads} 个注意力头，"
        "词向量维度 {0.embedding_dim}，词表 {0.vocabulary_size:,} 个 token",
    ),
    "parameters": ("parameters", "参数量"),
    "size": ("{count:,} ({size:.1f} MB)", "{count:,}（{size:.1f} MB）"),
    "longest": ("maximum length", "最大长度"),
    "tokens": ("{0} tokens", "{0} 个 token"),
    "truncated": (
        "{0} tokens; longer texts are truncated",
        "{0} 个 token，超出部分截断",
    ),
    "windows": (
        "{0} tokens; longer texts are read in windows",
        "{0} 个 token，更长的文本按窗口读取",
    ),
    "labels": ("Labels", "标签"),
    "label": ("label", "标签"),
    "example": ("example from the training data", "训练数据中的例子"),
    "more": ("and {0} more", "另有 {0} 个"),
    "use": ("Use", "使用"),
    "run": (
        "Run this in the folder of this file. It needs the package albert-tf.",
        "在本文件所在目录下运行，需要安装 albert-tf。",
    ),
    "training": ("Training", "训练"),
    "checkpoint": (
        "Training started from the checkpoint `{0}`.",
        "训练从检查点 `{0}` 开始。",
    ),
    "config": (
        "Training started from random weights of the size `{0}`.",
        "训练从随机权重开始，模型规模为 `{0}`。",
    ),
    "no start": ("the checkpoint that training started from.", "训练的起始检查点。"),
    "epochs": (
        "It took {epochs} epochs with batches of {batch_size} examples. Epoch "
        "{best_epoch} had the best {monitor} on dev and was kept.",
        "共训练 {epochs} 个 epoch，批大小 {batch_size}，保留 dev 上 {monitor} 最高的"
        "第 {best_epoch} 个 epoch。",
    ),
    "steps": (
        "It took {steps:,} steps with batches of {batch_size} sequences.",
        "共训练 {steps:,} 步，批大小 {batch_size}。",
    ),
    "data": ("data", "数据"),
    "file": ("file", "文件"),
    "count": ("examples", "样本数"),
    "whole": ("{0}", "{0}"),
    "split": ("{0} (a tenth, held back)", "{0}（留出十分之一）"),
    "no data": ("the training data.", "训练数据。"),
    "licence": (
        "the licence of the data, and whether it allows publishing the model.",
        "数据的许可证，以及是否允许发布用其训练的模型。",
    ),
    "scores": ("Scores", "得分"),
    "score": ("score", "指标"),
    "of examples": ("{0} ({1:,} examples)", "{0}（{1:,} 条）"),
    "scores of dev": (
        "The dev examples chose the epoch, so scores on other texts may be lower.",
        "dev 样本用于选择 epoch，因此在其他文本上的得分可能更低。",
    ),
    "scores of test": (
        "The dev examples chose the epoch. The test examples "
        "were used for this score only.",
        "dev 样本用于选择 epoch，test 样本只用于计算该得分。",
    ),
    "scores of train": (
        "The scores of train are means over the last steps of training.",
        "train 的得分是训练最后若干步的平均值。",
    ),
    "no scores": (
        "scores, and the data they were measured on.",
        "得分及所用的评测数据。",
    ),
    "limits": ("Limits", "局限"),
    "no limits": (
        "the texts for which the model was made, known mistakes, and uses that are "
        "not intended.",
        "适用的文本、已知的错误，以及不适用的场景。",
    ),
}
