"""Texts with `[MASK]` in them, and the tokens that may stand there. Only to predict."""

from albert_tf_cli.task_table.row import Row


def cells(answer):
    # Of several masks a list each.
    masks = answer if isinstance(answer[0], list) else [answer]
    return [
        " ".join(f"{token['token_str']}/{token['score']:.4f}" for token in tokens)
        for tokens in masks
    ]


ROW = Row(
    name="fill-mask",
    takes_top_k=True,
    cells=cells,
    inputs=lambda model, lines: lines,
)
