"""Random tables, written by pandas from known rows, are read as such or refused."""

import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.data.sets.labelled_texts import read_labelled_texts
from albert_tf_lite.errors import AlbertError

# Parts of texts: words, and what separates and quotes cells.
WORDS = ["房间很干净", "早餐一般", "不会再来", "屏幕太暗了", "很好", "物流慢"]
WORDS += ["老板热情", "good", "3 天", "，", "。", "！", ",", ";", "|", " ", "\t", "\n"]
WORDS += ["\r\n", '"', '""', "'", "#", "2024-01-05", "5分", "\\", "{", "[1]", "<br>"]
WORDS += ["\u3000", "", "é", "😀"]
NAMES = {
    "text": ["text", "sentence", "content", "评论", "文本", " Text ", "标题"],
    "text_b": ["text_b", "sentence2", "文本2"],
    "label": ["label", "类别", "标签", "sentiment", "LABEL"],
    "id": ["id", "编号", "date", ""],
    "note": ["note", "备注"],
}
ENCODINGS = ("utf-8", "utf-8-sig", "gb18030", "utf-16", "big5", "utf-16-le")
LABELS = (
    [0, 1],
    [1, 2, 3],
    [0.5, 1.0, 2.5],
    [True, False],
    ["好评", "差评"],
    ["体育", "财经", "房产"],
    ["0", "1", ""],
    ["A", "B"],
)
# Columns that are read without a header.
FORMS = (["text", "label"], ["label", "text"])
IDS = (
    lambda i: 1000 + i,
    lambda i: f"2024-01-{i % 28 + 1:02}",
    lambda i: f"R{i:05}",
    lambda i: f"{i}.5",
    lambda i: f"https://a.b/{i}",
)


@st.composite
def tables(draw):
    """Return a frame, the names of its roles and the arguments of a writer."""
    count = draw(st.integers(3, 40))
    text = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map("".join)
    # Mostly texts that differ, as those of people do.
    texts = draw(st.lists(text, min_size=count, max_size=count))
    if draw(st.booleans()):
        texts = [f"{x}第{i}次" for i, x in enumerate(texts)]
    labels = draw(st.sampled_from(LABELS))
    columns = {
        "text": texts,
        "label": [labels[draw(st.integers(0, len(labels) - 1))] for _ in texts],
    }
    if draw(st.booleans()):
        columns["id"] = list(map(draw(st.sampled_from(IDS)), range(count)))
    if draw(st.integers(0, 3)) == 0:
        columns["text_b"] = draw(st.lists(text, min_size=count, max_size=count))
    if draw(st.integers(0, 5)) == 0:
        columns["note"] = ["" if i % 3 else "是" for i in range(count)]
    order = draw(st.permutations(list(columns)))
    # The first of two texts is the first of the pair.
    if "text_b" in columns and order.index("text") > order.index("text_b"):
        i, j = order.index("text"), order.index("text_b")
        order[i], order[j] = order[j], order[i]
    has_header = draw(st.booleans())
    names = {x: draw(st.sampled_from(NAMES[x])) if has_header else x for x in order}
    frame = pandas.DataFrame({x: columns[x] for x in order}, dtype=object)
    kinds = ("csv", "csv", "csv", "tsv", "txt", "jsonl", "xlsx", "parquet")
    kind = draw(st.sampled_from(kinds))
    style = {
        "has_header": has_header or kind in ("jsonl", "parquet"),
        "encoding": draw(st.sampled_from(ENCODINGS)),
        "separator": draw(st.sampled_from(",,;\t|")) if kind == "csv" else "\t",
        "line_end": draw(st.sampled_from(["\n", "\r\n", "\r"])),
        "quoting": draw(st.sampled_from([0, 0, 1, 2])),
    }
    return frame, names, kind, style


def write(path, frame, names, kind, style):
    """Write a frame; in UTF-8 if the encoding lacks a character of it."""
    named = frame.rename(columns=names)
    if kind == "xlsx":
        named.to_excel(path, index=False, header=style["has_header"])
        return
    if kind == "parquet":
        named.to_parquet(path)
        return
    if kind == "jsonl":
        text = named.to_json(orient="records", lines=True, force_ascii=False)
    else:
        # Python before 3.13 does not quote a cell with the line end of other systems.
        has_lines = any("\n" in str(x) for x in frame.to_numpy().ravel())
        text = named.to_csv(
            index=False,
            header=style["has_header"],
            sep=style["separator"],
            lineterminator="\n" if has_lines else style["line_end"],
            quoting=style["quoting"],
        )
    encoding = style["encoding"]
    if text.encode(encoding, "replace").decode(encoding) != text:
        encoding = "utf-8"
    path.write_bytes(text.encode(encoding))


def is_read(path, table):
    """Return whether a table is read, and not refused; it must be read as written."""
    frame, _, kind, style = table
    path = path.with_suffix(f".{kind}")
    write(path, *table)
    if not style["has_header"] and frame["text"].nunique() < frame["label"].nunique():
        # Then the warning that tells the columns apart has the texts as labels.
        return False
    try:
        found = read_labelled_texts(path)
    except AlbertError:
        return False
    columns = [*found.x] if found.pairs else [found.x]
    roles = ["text", "text_b"][: 1 + ("text_b" in frame)]
    # The classes 1.0 and 1 are the same.
    labels = [x.removesuffix(".0") for x in found.labels]
    assert labels == [shown(x, kind).removesuffix(".0") for x in frame["label"]]
    assert columns == [[shown(x, kind) for x in frame[role]] for role in roles]
    return True


def shown(value, kind):
    """Return a cell as its format keeps it."""
    text = str(value)
    if kind != "xlsx":
        return text
    # Excel has no 1.0, and XML no carriage returns.
    text = text.upper() if isinstance(value, bool) else text.removesuffix(".0")
    return text.replace("\r\n", "\n")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("count", [40, pytest.param(2000, marks=pytest.mark.nightly)])
def test_a_table_is_read_as_it_was_written_or_refused(tmp_path, count):
    without_header = []

    @settings(max_examples=count, deadline=None, derandomize=count < 1000)
    @given(tables())
    def check_one(table):
        frame, _, _, style = table
        can_be_read = is_read(tmp_path / "table", table)
        # A table with a header is never refused.
        assert can_be_read or not style["has_header"]
        if not style["has_header"] and list(frame) in FORMS:
            without_header.append(can_be_read)

    check_one()
    # Few rows may have as many texts as labels.
    assert sum(without_header) > len(without_header) / 2
