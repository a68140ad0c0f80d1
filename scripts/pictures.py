"""Draw the pictures of the guides: `python scripts/pictures.py`.

They show the bundled checkpoint: the confusion matrix and the reliability plot of
`albert-tf evaluate --report` on the demo's reviews, a map of sentence embeddings, and
`history.png` of the training in `notebooks/csv_classifier.ipynb`. SVG, because a viewer
has the fonts for Chinese.
"""

import html
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "albert_tf_lite")]
GUIDES = ROOT / "docs" / "guides"
TEST = ROOT / "examples" / "reviews" / "test.tsv"
QUESTIONS = ROOT / "examples" / "data" / "intents" / "questions.tsv"
NOTEBOOK = ROOT / "notebooks" / "csv_classifier.ipynb"
# Kinds of questions on the map, which has room for a few.
KINDS = 6
COLOURS = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860")
NUMBER = r"(\d+\.\d+)"
NAMES = ("accuracy", "loss", "val_accuracy", "val_loss")
EPOCH = re.compile(" - ".join(f"{name}: {NUMBER}" for name in NAMES))


def svg(width, height, parts):
    """Return an SVG on a white background."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="13">'
        f'<rect width="{width}" height="{height}" fill="white"/>'
    )
    return "\n".join([head, *parts, "</svg>", ""])


def text(x, y, words, **style):
    """Return a text; `anchor` and `fill` are those of SVG."""
    anchor, fill = style.get("anchor", "start"), style.get("fill", "#222")
    words = html.escape(str(words))
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{fill}">{words}</text>'


def report_of(model, file):
    """Return the values and the page of an error report."""
    with tempfile.TemporaryDirectory() as folder:
        command = (sys.executable, "-m", "albert_tf_cli", "evaluate", model, str(file))
        path = pathlib.Path(folder, "report")
        subprocess.run([*command, "--report", str(path)], check=True, cwd=ROOT)
        values = json.loads((path / "report.json").read_text("utf-8"))
        return values["scores"], (path / "report.html").read_text("utf-8")


def in_chinese(plot):
    """Return a reliability plot with the words of its axes in Chinese."""
    return plot.replace(">score<", ">得分<").replace(">accuracy<", ">准确率<")


def confusion(scores):
    """Return the confusion matrix as an SVG."""
    numbers = np.array(scores["confusion_matrix"])
    # The scores of the classes come first.
    labels = list(scores)[: len(numbers)]
    side, left, top = 84, 110, 60
    parts = [text(left + side * len(labels) / 2, 24, "predicted", anchor="middle")]
    parts.append(text(12, top + side * len(labels) / 2, "true"))
    for i, label in enumerate(labels):
        parts.append(text(left + side * (i + 0.5), top - 10, label, anchor="middle"))
        middle = top + side * (i + 0.5) + 5
        parts.append(text(left - 10, middle, label, anchor="end"))
        for j, count in enumerate(numbers[i]):
            share = count / max(numbers[i].sum(), 1)
            x, y = left + side * j, top + side * i
            parts.append(
                f'<rect x="{x}" y="{y}" width="{side}" height="{side}" '
                f'fill="#4c72b0" fill-opacity="{share:.2f}" stroke="#ccc"/>'
            )
            fill = "white" if share > 0.5 else "#222"
            parts.append(text(x + side / 2, middle, count, anchor="middle", fill=fill))
    size = side * len(labels)
    return svg(left + size + 20, top + size + 20, parts)


def embedding_map():
    """Return a map of questions to a shop, by the two main components."""
    import albert_tf
    from albert_tf.data import read_labelled_texts

    data = read_labelled_texts(QUESTIONS)
    labels = np.array(data.labels)
    kinds = list(dict.fromkeys(data.labels))[:KINDS]
    texts = [x for x, y in zip(data.x, labels, strict=True) if y in kinds]
    kind_of = [y for y in labels if y in kinds]
    embedder = albert_tf.models.AlbertTextEmbedder.from_checkpoint("albert_micro_zh")
    vectors = embedder.encode_text(texts, verbose=0)
    centred = vectors - vectors.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    points = centred @ axes[:2].T
    points = (points - points.min(axis=0)) / np.ptp(points, axis=0)
    parts = []
    for i, kind in enumerate(kinds):
        y = 30 + 22 * i
        parts += [f'<circle cx="512" cy="{y - 4}" r="5" fill="{COLOURS[i]}"/>']
        parts.append(text(524, y, kind))
    for words, kind, (x, y) in zip(texts, kind_of, points, strict=True):
        colour = COLOURS[kinds.index(kind)]
        parts.append(
            f'<circle cx="{20 + 470 * x:.1f}" cy="{20 + 340 * y:.1f}" r="5" '
            f'fill="{colour}" fill-opacity="0.8"><title>{html.escape(words)}</title>'
            "</circle>"
        )
    return svg(640, 380, parts)


def draw_history():
    """Draw the history of the notebook's training as `finetune` does."""
    from albert_tf.training.history_plot import plot_history

    rows = EPOCH.findall(NOTEBOOK.read_text("utf-8"))
    columns = [list(map(float, x)) for x in zip(*rows, strict=True)]
    history = dict(zip(NAMES, columns, strict=True))
    plot_history(history, ("loss", "accuracy"), GUIDES / "history.png")


def main():
    draw_history()
    scores, page = report_of("albert_micro_zh:sentiment", TEST)
    (plot,) = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    # Its lines have the colour of the page, which a picture lacks.
    plot = plot.replace(">", '><rect width="100%" height="100%" fill="white"/>', 1)
    written = {
        "reliability.svg": plot + "\n",
        "reliability.zh.svg": in_chinese(plot) + "\n",
        "confusion.svg": confusion(scores),
        "embedding_map.svg": embedding_map(),
    }
    for name, picture in written.items():
        (GUIDES / name).write_text(picture, "utf-8")
        print(f"{name}: {len(picture.encode()) / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
