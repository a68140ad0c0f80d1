"""The command `albert-tf demo`: a local page to try a model."""

import dataclasses
import html
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from albert_tf.extras import import_extra
from albert_tf_cli.shared.chinese_help import is_chinese
from albert_tf_cli.shared.colours import coloured_html, strongest_of
from albert_tf_cli.shared.column_options import ColumnOptions
from albert_tf_cli.shared.console import console
from albert_tf_cli.shared.early_checks import check_checkpoint, read_metrics
from albert_tf_cli.shared.importing import import_tensorflow
from albert_tf_cli.shared.options import output_option, takes_options
from albert_tf_cli.tasks import TASKS, Task, task_named
from albert_tf_cli.tasks.pages import COMPONENTS, WORDS
from albert_tf_cli.tasks.reading import checked_reader, read_remembered
from albert_tf_cli.tasks.task import as_columns
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.lines import split_lines

if TYPE_CHECKING:
    from albert_tf.pipelines import TaskPipeline

HOST = "127.0.0.1"
# Fonts of the system, with Chinese characters. Gradio's own ones have none.
FONTS = ("system-ui", "PingFang SC", "Noto Sans CJK SC", "Microsoft YaHei")
NUM_EXAMPLES = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """The options of `albert-tf demo`."""

    model: Annotated[
        str, typer.Argument(help="Directory written by `finetune`, or any checkpoint.")
    ]
    port: Annotated[int, output_option(f"Port on {HOST}.", min=1, max=65535)] = 7860
    language: Annotated[
        Literal["en", "zh"] | None,
        output_option("Language of the page. Default: that of `--help`."),
    ] = None


@takes_options
def demo(context: typer.Context, options: DemoOptions) -> None:
    """Serve a page to try a model, for browsers on this computer only.

    The page suits the task of the model. A checkpoint without a fine-tuned head fills
    masks. The page loads nothing from the network. Needs gradio.

    \b
    Examples:
      albert-tf demo my_model
      albert-tf demo albert_tiny_zh --language zh --port 8000
    """
    model = options.model
    check_checkpoint(model)
    import_extra("gradio")
    import_tensorflow()
    answer = open_model(model)
    if not task_named(answer.task).page:
        names = [name for name, task in TASKS.items() if task.page]
        raise AlbertError(
            f"{model} is a model for {answer.task}, which has no page. Expected a "
            f"model for one of {', '.join(names)}."
        )
    language = options.language or ("zh" if is_chinese() else "en")
    name = pathlib.Path(model).resolve().name
    page = build_page(answer, language, name, own_examples(model, answer))
    launch(page, options.port)
    message = f"The page is at {page.local_url}. Stop it with Ctrl-C."
    console.print(message, soft_wrap=True)
    page.block_thread()


def open_model(model: str) -> "TaskPipeline":
    """Return the pipeline of a model; that of fill-mask without a fine-tuned head."""
    from albert_tf import pipeline
    from albert_tf.checkpoints import open_checkpoint
    from albert_tf.models.task_of_checkpoint import task_class

    checkpoint: Any = open_checkpoint(model)
    name = getattr(checkpoint.model, "name_of_task", None)
    is_trained = name is not None or task_class(checkpoint) is not None
    return pipeline(None if is_trained else "fill-mask", checkpoint)


def own_examples(model: str, answer: "TaskPipeline") -> list[list[str]]:
    """Return examples of the file that `finetune` read, if it still exists."""
    settings = read_metrics(model).get("settings", {})
    file = settings.get("dev") or settings.get("train")
    if not file:
        return []
    read = checked_reader(task_named(answer.task))
    config = answer.model.get_config()
    columns = ColumnOptions(
        encoding=settings.get("encoding"), sheet=settings.get("sheet")
    )
    try:
        examples = read_remembered(model, columns, lambda x: read(file, x, config))
    except (AlbertError, OSError):
        return []
    step = max(len(examples) // NUM_EXAMPLES, 1)
    places = range(0, len(examples), step)[:NUM_EXAMPLES]
    columns_of_texts = as_columns(examples.select(places).x)
    rows = []
    for parts in zip(*columns_of_texts, strict=True):
        row = [_as_text(part) for part in parts]
        if all(text.strip() for text in row):
            rows.append(row)
    return rows


def _as_text(part: str | Sequence[str]) -> str:
    """Return a text, or choices, one per line."""
    return part if isinstance(part, str) else "\n".join(part)


def build_page(
    answer: "TaskPipeline",
    language: str,
    title: str,
    examples: Sequence[Sequence[str]] = (),
) -> Any:
    """Return the page of a pipeline as Gradio's `Blocks`.

    It shows the answer to the first of the examples, or of those of the task.
    """
    gradio = import_extra("gradio")
    words = {name: texts[language] for name, texts in WORDS.items()}
    task = task_named(answer.task)
    page: Any = task.page
    fields = task.fields(answer.model)
    shown = [list(x) for x in examples or page.examples if len(x) == len(fields)]
    names = list(page.outputs)
    if task.explain:
        names.append("characters")
    respond = responder(answer, task, fields, words)

    def run(*texts):
        try:
            values = respond(texts)
        except AlbertError as error:
            gradio.Warning(html.escape(str(error)))
            values = [None] * len(names)
        return values if len(names) > 1 else values[0]

    with gradio.Blocks(title=title, analytics_enabled=False) as blocks:
        gradio.Markdown(f"# {html.escape(title)}")
        with gradio.Row():
            with gradio.Column():
                inputs = [
                    gradio.Textbox(value, label=words[name], lines=2, max_lines=12)
                    for name, value in zip(fields, shown[0], strict=True)
                ]
                button = gradio.Button(words["run"], variant="primary")
            with gradio.Column():
                outputs = []
                for name, value in zip(names, respond(shown[0]), strict=True):
                    component, settings = COMPONENTS[name]
                    make = getattr(gradio, component)
                    outputs.append(make(value, label=words[name], **settings))
        gradio.Examples(
            shown,
            inputs,
            outputs,
            run,
            cache_examples=False,
            label=words["examples"],
            run_on_click=True,
        )
        starts = [button.click, *(x.submit for x in inputs)]
        gradio.on(starts, run, inputs, outputs)
    return blocks


def responder(
    answer: "TaskPipeline", task: Task, fields: Sequence[str], words: dict[str, str]
) -> Callable[[Sequence[str]], list]:
    """Return the function of a page from texts to the values of its outputs."""
    page: Any = task.page
    explain = task.explain(answer.model) if task.explain else None

    def respond(texts):
        if not all(isinstance(text, str) and text.strip() for text in texts):
            raise AlbertError(words["empty"])
        if page.required and texts[0].count(page.required) != 1:
            raise AlbertError(words["required"].format(page.required))
        example = dict(zip(fields, texts, strict=True))
        if "choices" in example:
            lines = split_lines(example["choices"])
            example["choices"] = [line for line in lines if line.strip()]
        values = page.answer(answer, example)
        if explain is None:
            return values
        return [*values, _coloured(explain(tuple(texts)))]

    return respond


def _coloured(attributions):
    """Return attributions as HTML, on a common scale for both texts of a pair."""
    strongest = strongest_of(attributions.values)
    lines = [f"<b>{html.escape(attributions.label)}</b> {attributions.output:.2f}"]
    for text, values in zip(attributions.texts, attributions.values, strict=True):
        lines.append(coloured_html(text, values, strongest))
    style = "white-space:pre-wrap; margin-top:1em; line-height:1.8"
    return "".join(f'<p style="{style}">{line}</p>' for line in lines)


def launch(page: Any, port: int) -> None:
    """Serve a page on this computer until `page.close()`."""
    themes = import_extra("gradio.themes")
    # No telemetry, and no record of the texts in the browser.
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    os.environ["GRADIO_RUN_HISTORY"] = "False"
    # Gradio asks its own server whether it runs, and a proxy cannot.
    skipped = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
    os.environ["no_proxy"] = ",".join(filter(None, [skipped, HOST]))
    theme = themes.Default(primary_hue="indigo", font=FONTS, font_mono=FONTS)
    address = {"server_name": HOST, "server_port": port, "share": False}
    options = {"quiet": True, "prevent_thread_lock": True, "footer_links": []}
    try:
        page.launch(**address, **options, theme=theme)
    except OSError as error:
        raise AlbertError(
            f"Port {port} is in use on {HOST}. Choose another --port."
        ) from error
