"""Files of texts with entities in every form, and tags of tokens."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.data import read_tagged_texts, spans_to_tags, tags_to_spans
from albert_tf.data.labels.tags import tag_names
from albert_tf.data.labels.text_spans import check_spans

SENTENCE = "小明在北京。"
SPANS = [(0, 2, "PER"), (3, 5, "LOC")]


@pytest.fixture
def read(write):
    return lambda content: read_tagged_texts(write(content, "data.txt"))


# === Forms ===


def columns(tags, separator=" ", end="\n"):
    rows = zip(SENTENCE, tags.split(), strict=True)
    return "".join(f"{token}{separator}{tag}{end}" for token, tag in rows)


FORMS = {
    "BIO": "\ufeff" + columns("B-PER I-PER O B-LOC I-LOC O"),
    "BIOES": columns("B-PER E-PER O B-LOC E-LOC O", separator="\t", end="\r\n"),
    "IO": columns("I-PER I-PER O I-LOC I-LOC O"),
    "more columns": "-DOCSTART- -X- O O\n\n"
    + columns("B-PER I-PER O B-LOC I-LOC O", separator=" NN x "),
    "slashes": "小明/PER 在/o 北京/LOC 。/o\n",
}


@pytest.mark.parametrize("content", FORMS.values(), ids=FORMS)
def test_every_form(read, content):
    data = read(content)
    assert (data.x, data.spans) == ([SENTENCE], [SPANS])
    assert data.labels == ["LOC", "PER"]


def test_sentences_and_words_are_joined_as_their_language_is_written(read):
    data = read("\n\n中 B-ORG\n  O\n\u3000 O\n国 B-ORG\n\n\n-DOCSTART- O\n好 O\n")
    assert data.x == ["中 \u3000国", "好"]
    assert data.spans == [[(0, 1, "ORG"), (3, 4, "ORG")], []]
    data = read("小明 B-PER\n在 O\n北京 B-LOC\n工作 O\n")
    assert (data.x, data.spans) == (["小明在北京工作"], [SPANS])
    data = read("John B-PER\nSmith I-PER\nsaw O\nParis B-LOC\n")
    assert data.x == ["John Smith saw Paris"]
    assert data.spans == [[(0, 10, "PER"), (15, 20, "LOC")]]


PKU = (
    "19980101-01-001-001/m  [中国/ns 政府/n]nt 的{de5}/u [[浦东/ns 路/n]ns 1/2/m]nz\n"
    "19980101-01-001-002/m  啊/o [ 北京/ns 大学/n ]nt //w [注]/n ［上海/ns 港/n］/nt\n"
)


def test_lines_of_peoples_daily_are_read_as_announced(read, recwarn):
    data = read(PKU)
    assert data.x == ["中国政府的浦东路1/2", "啊北京大学/[注]上海港"]
    assert data.spans == [
        [(0, 4, "nt"), (4, 5, "u"), (5, 11, "nz")],
        [(0, 1, "o"), (1, 5, "nt"), (5, 6, "w"), (6, 9, "n"), (9, 12, "nt")],
    ]
    messages = " ".join(str(x.message) for x in recwarn)
    assert "2 numbers of lines such as '19980101-01-001-001/m' (Line 1" in messages
    assert "4 brackets such as '[中国政府]nt' (Line 1 of" in messages
    assert "1 marks of pronunciation such as '{de5}' (Line 1 of" in messages
    # As the message about brackets says.
    words = re.sub(r"\[(?!注)|［|[\]］]/?n[tzs]", " ", PKU)
    assert read(words).spans[0][:3] == [(0, 2, "ns"), (2, 4, "n"), (4, 5, "u")]
    # A tag for each character, and English words.
    assert read("小/B-PER 明/I-PER 在/O 北/B-LOC 京/I-LOC 。/O").spans == [SPANS]
    assert read("John/NNP ran/VBD home/NN").x == ["John ran home"]


# The tags of SENTENCE, and what the warnings say.
SPELLINGS = {
    "PER-B PER-I O LOC-B LOC-I O": ["prefix after the label. They are read as B-LOC"],
    "PER_B PER_E O LOC_B LOC_E O": ["They are read as B-LOC"],
    "b-PER i-PER o b-LOC i-LOC o": ["in lower case.*B-LOC", "'o'. are read as O"],
    "B-PER I-PER 0 B-LOC I-LOC Other": ["'0', 'Other'. are read as O"],
    "B_PER L_PER [SEP] B_LOC L_LOC <pad>": ["SEP.*<pad>.*are read as O"],
    "PER PER 0 LOC LOC 0": ["run of equal tags", "'0'. are read as O"],
}


@pytest.mark.parametrize("tags", SPELLINGS)
def test_tags_of_other_spellings_are_read_as_announced(read, tags, recwarn):
    assert read(columns(tags)).spans == [SPANS]
    for found, message in zip(recwarn, SPELLINGS[tags], strict=True):
        assert re.search(message, str(found.message))


def test_marks_of_programs_are_left_out_and_onomatopoeia_kept(read):
    with pytest.warns(UserWarning, match=r"2 tokens such as '\[CLS\]' \(Line 1 of"):
        data = read(f"[CLS] O\n{columns('B-PER I-PER O B-LOC I-LOC O')}<PAD> <PAD>\n")
    assert (data.x, data.spans) == ([SENTENCE], [SPANS])
    assert read("他/r 啊/o 说/v 话/n\n").spans[0][1] == (1, 2, "o")
    with pytest.warns(UserWarning, match="'PER' and 'per' are two classes"):
        read(columns("B-PER I-PER O b-per i-per O"))


# === Tags ===


@st.composite
def any_spans(draw):
    bounds = draw(st.lists(st.integers(0, 20), unique=True, max_size=10))
    bounds = sorted(bounds)[: len(bounds) // 2 * 2]
    labels = st.sampled_from(["PER", "LOC", "B-LOC"])
    pairs = zip(bounds[::2], bounds[1::2], strict=True)
    return [(start, end, draw(labels)) for start, end in pairs]


@pytest.mark.parametrize("scheme", ["BIO", "BIOES"])
@given(spans=any_spans())
def test_tags_stand_for_their_spans(scheme, spans):
    tags = spans_to_tags(spans, 20, scheme)
    assert set(tags) <= set(tag_names(["PER", "LOC", "B-LOC"], scheme))
    assert tags_to_spans(tags) == spans


def test_other_schemes_and_unknown_labels():
    with pytest.raises(ValueError, match="unknown.*PER.*LOC"):
        check_spans([(0, 1, "ORG")], 2, ["PER", "LOC"])
    with pytest.raises(ValueError, match="IOB"):
        tag_names(["PER"], "IOB")
    for tags, spans in (
        # IOB1, as CoNLL-2003 was published: B only between neighbours of one label.
        ("I-A I-A O I-B B-B I-A", [(0, 2, "A"), (3, 4, "B"), (4, 5, "B"), (5, 6, "A")]),
        ("B-A M-A E-A S-B S-B O", [(0, 3, "A"), (3, 4, "B"), (4, 5, "B")]),
        ("B_A L_A U_B O", [(0, 2, "A"), (2, 3, "B")]),
    ):
        assert tags_to_spans(tags.split()) == spans
