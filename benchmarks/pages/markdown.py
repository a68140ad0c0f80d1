"""Tables in Markdown."""


def table(columns, rows, first=""):
    """Return a table; `first` is the title of the rows."""
    lines = [_line([first, *columns]), "|---" * (len(columns) + 1) + "|"]
    lines += [_line(row) for row in rows]
    return "\n".join(lines)


def _line(cells):
    # An empty cell has one space.
    return "|" + "".join(f" {cell} |" if cell != "" else " |" for cell in cells)
