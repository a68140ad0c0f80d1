"""Generated texts and facts of the pages that are not measured: `make figures`."""

import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
RELEASES = ROOT / "albert_tf" / "checkpoints" / "releases.json"
# Published figures that the table of releases shows, as far as a release has them.
PUBLISHED = (("SQuAD 2.0", "F1"), ("MNLI", "accuracy"), ("CMNLI", "accuracy"))
PUBLISHED += (("LCQMC", "accuracy"), ("TNEWS", "accuracy"))


def read_releases():
    return json.loads(RELEASES.read_text("utf-8"))["releases"]


def releases(is_chinese):
    """Return the table of `albert_tf.checkpoints.RELEASES`."""
    header = "release | layers × width, heads | parameters | published, %"
    rows = [f"| {header} | mirror | recognised |"]
    rows.append("|---|---|---|---|---|---|")
    for name, release in read_releases().items():
        size = release["arguments"]
        found = {}
        for task, split, metric, value, *_ in release.get("accuracy", ()):
            if (task, metric) in PUBLISHED:
                found.setdefault(f"{task} {split}".strip(), value)
        published = ", ".join(f"{x} {y}" for x, y in found.items()) or "–"
        mirror = ", ".join(f"`{x}`" for x in release.get("mirrors", ())) or "–"
        layers, width = size["num_layers"], size["hidden_dim"]
        shape = f"{layers} × {width}, {size['num_heads']}"
        known = "yes" if release.get("index_sha256") else "index unknown"
        cells = (f"`{name}`", shape, _parameters(size), published, mirror, known)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _parameters(size):
    """Return the number of weights of the encoder, whose layers share theirs."""
    table, width, inner = (
        size[x] for x in ("embedding_dim", "hidden_dim", "intermediate_dim")
    )
    # albert_zh projects the words before it adds positions and segments.
    is_last = size.get("embedding_projection") == "after_layer_norm"
    added = table if is_last else width
    positions = size.get("max_sequence_length", 512) + 2
    dense = table * width + 5 * width**2 + 2 * width * inner
    vectors = 2 * added + 11 * width + inner
    words = size["vocabulary_size"] * table
    return f"{(words + positions * added + dense + vectors) / 1e6:.1f} M"


def bundled_checkpoints():
    """Return the sizes of the bundled checkpoints, in float32, from their files."""
    found = {}
    for config in ROOT.glob("examples/*/albert_config.json"):
        weights = config.with_name("albert_model.ckpt.data-00000-of-00001")
        values = json.loads(config.read_text("utf-8"))
        if weights.exists():
            size = weights.stat().st_size
            values |= {"parameters": size // 4, "megabytes": size / 1e6}
            values |= {"millions": size / 4e6, "wan": size / 4e4}
            graphs = [x.stat().st_size for x in config.parent.glob("*.onnx")]
            values["graph_kilobytes"] = max(graphs, default=0) / 1e3
            values["million_vectors_gb"] = 4e-3 * values["hidden_size"]
        found[config.parent.name] = values
    return found


def demo_reviews(is_chinese):
    """Return the numbers of reviews in examples/reviews/."""
    columns = ("reviews", "好评", "hotel", "food", "electronics")
    lines = [f"| file | {' | '.join(columns)} |", "|---" * 6 + "|"]
    for part in ("train", "dev", "test"):
        path = ROOT / "examples" / "reviews" / f"{part}.tsv"
        _, *rows = path.read_text("utf-8").rstrip("\n").split("\n")
        cells = [x for row in rows for x in row.split("\t")]
        counts = [len(rows), *(cells.count(x) for x in columns[1:])]
        lines.append(f"| `{part}.tsv` | {' | '.join(f'{x:,}' for x in counts)} |")
    return "\n".join(lines)


def commands(is_chinese):
    """Return the help of each command of `albert-tf`, in English or in Chinese."""
    import typer

    from albert_tf_cli import app
    from albert_tf_cli.shared.chinese_help import ChineseFormatter

    group = typer.main.get_command(app)
    parts = []
    for name, command in group.commands.items():
        with typer.Context(command, info_name=f"albert-tf {name}") as context:
            context.max_content_width = context.terminal_width = 78
            if is_chinese:
                context.formatter_class = ChineseFormatter
            # `get_help` would choose the language by the environment.
            formatter = context.make_formatter()
            command.format_help(context, formatter)
            parts.append(f"## {name}\n\n```text\n{formatter.getvalue()}```")
    return "\n\n".join(parts)


TEXTS = {"releases": releases, "commands": commands, "demo_reviews": demo_reviews}
