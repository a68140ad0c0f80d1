"""The page of all results: `benchmarks/results/README.md`."""

from benchmarks.lib.cells import shown
from benchmarks.pages.markdown import table

LEGEND = """\
`ratio` is the median speed over the rounds, relative to the row with ratio 1, with the
smallest and the largest. `cpu_ratio` is the same by processor time. `share` is the rate
of operations relative to that of a matrix product, measured just before and after.
`of KerasHub` is the time relative to KerasHub, and `90%` the 90th percentile."""


def all_results(results, chinese):
    """Return the rows of every file."""
    parts = [LEGEND]
    for name, file in sorted(results.items()):
        if "jobs" in file:
            for job, part in file["jobs"].items():
                parts += _section(f"{name} {job}", file, part)
        else:
            parts += _section(name, file, file)
    return "\n\n".join(parts)


def _section(title, file, part):
    """Return the title, the machine and the table of a part of a file."""
    rows = part.get("rows")
    if rows is None:
        # The values of the file itself.
        rows = {
            name: {"value": value}
            for name, value in part.items()
            if isinstance(value, float) and name != "load"
        }
    columns = []
    for row in rows.values():
        columns += [name for name in row if name not in columns]
    lines = []
    for name, row in rows.items():
        cells = [shown(row.get(column)) for column in columns]
        lines.append([name, *cells])
    return f"## {title}", _machine(file, part), table(columns, lines)


def _machine(file, part):
    if "recorded" in file:
        return " ".join(f"{x}: {y}." for x, y in file["recorded"].items())
    if "machine" not in file:
        return "The machine was not recorded."
    machine = file["machine"]
    text = f"{machine['processor']}, {machine['cores']} cores, load {file['load']:.1f}"
    if "matrix_gflops" in part:
        text += f", matrix product at {part['matrix_gflops']:.0f} GFLOP/s"
    return f"{text}."
