"""Text files to records: their content, workers, and resuming after a kill."""

import hashlib
import itertools
import pathlib
import shutil

import numpy as np
import pytest
from full_disk import full_disk
from made_records import word_starts
from processes import kill_when, start_python

import zh
from albert_tf.locks import only_writer
from albert_tf.pretraining import (
    PretrainingData,
    PretrainingRecords,
    make_pretraining_data,
)
from albert_tf.pretraining.records.corpus import Corpus
from albert_tf.pretraining.records.records_directory import read_manifest
from albert_tf.pretraining.records.shard_files import read_shard
from albert_tf.tokenizers import WordPieceTokenizer

TEXT = """\
我想吃鸡蛋炒饭，但是家里没有鸡蛋了。于是我去了附近的超级市场！那里的人很多。
中华人民共和国成立于1949年。北京是首都，人口超过两千万人。天安门广场很大。
他说：“今天天气真好，我们去公园散步吧。”她回答：“好的，我马上就来。”

TensorFlow是一个开源的机器学习框架，由Google Brain团队开发。它支持Python语言。
深度学习在自然语言处理中的应用越来越广泛。预训练模型改变了这个领域的研究方法。
"""


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    letters = [chr(code) for code in range(0x21, 0x7F) if not chr(code).isupper()]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters]
    tokens += [f"##{x}" for x in letters if x.isalnum()]
    tokens += sorted({x for x in TEXT.lower() if x > "\x7f"})
    tokens += [f"##{x}" for x in "蛋饭级市场民共和国"]
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    path.write_text("\n".join(tokens) + "\n", encoding="utf-8")
    return str(path)


# Loads its dictionary once for all tests of this process.
JIEBA = zh.Jieba()


@pytest.fixture
def make(vocabulary, tmp_path):
    """A function that makes the records of a corpus of six files."""
    (tmp_path / "corpus").mkdir()
    for number in range(6):
        (tmp_path / "corpus" / f"{number}.txt").write_text(TEXT * 3, encoding="utf-8")

    def make(output, files="corpus/*.txt", workers=1, progress=None, **settings):
        settings = {
            "vocabulary": vocabulary,
            **{"sequence_length": 48, "block_bytes": 2000, "segmenter": JIEBA},
            **{"split_sentences": zh.split_sentences, **settings},
        }
        data, files = PretrainingData(**settings), [str(tmp_path / files)]
        output = tmp_path / output
        return make_pretraining_data(
            files, output, data, workers=workers, progress=progress
        )

    return make


def read(folder):
    """The arrays of all shards, each concatenated."""
    names = [x["name"] for x in read_manifest(folder)["shards"]]
    parts = [read_shard(folder / name) for name in names]
    parts = [{**x, "word_starts": word_starts(x)} for x in parts]
    return {key: np.concatenate([x[key] for x in parts]) for key in parts[0]}


def files_of(folder):
    return {str(x.relative_to(folder)): x for x in folder.glob("pretrain-*/*")}


def checksums(folder):
    return {
        name: hashlib.sha256(file.read_bytes()).hexdigest()
        for name, file in files_of(folder).items()
    }


def stamps(folder):
    return {name: x.stat().st_mtime_ns for name, x in files_of(folder).items()}


def test_records_hold_the_text_and_its_words(make, vocabulary, tmp_path):
    manifest = make("out")
    arrays = read(tmp_path / "out")
    sizes = {"sequences": len(arrays["lengths"]), "tokens": len(arrays["token_ids"])}
    assert sizes.items() <= manifest["counts"].items()
    assert manifest == read_manifest(tmp_path / "out")
    tokenizer = WordPieceTokenizer(vocabulary)
    special = {"cls": 2, "sep": 3, "pad": 0, "mask": 4}
    assert manifest["tokens"] == {"size": tokenizer.vocabulary_size(), **special}
    assert arrays["token_ids"].dtype == "uint16" and arrays["token_ids"].min() > 4
    text = "".join(x for x in TEXT.lower() if not x.isspace())
    known = {word.lower() for line in TEXT.split("\n") for word in JIEBA(line)}
    ends = np.cumsum(arrays["lengths"], dtype=int)
    middles = ends - arrays["lengths"] + arrays["second_starts"]
    seen = set()
    for begin, end in itertools.pairwise([0, *np.stack([middles, ends], 1).flat]):
        starts = begin + np.flatnonzero(arrays["word_starts"][begin:end])
        words = [
            "".join(
                tokenizer.id_to_token(int(x)).removeprefix("##")
                for x in arrays["token_ids"][a:b]
            )
            for a, b in itertools.pairwise([*starts, end])
        ]
        assert starts[0] == begin and "".join(words) in text * 2
        # The first and last may be cut off.
        assert set(words[1:-1]) <= known
        seen |= set(words[1:-1])
    assert {"鸡蛋", "中华人民共和国", "google", "1949", "。", "越来越"} <= seen


def test_each_row_of_the_vocabulary_has_one_label(make, vocabulary, tmp_path):
    # Characters at which `str.splitlines` splits. The released vocabularies have some.
    rows = pathlib.Path(vocabulary).read_text("utf-8").split("\n")[:-1]
    separators = [*"\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e", "##\u2028"]
    tokens = [*rows[:5], *separators, *rows[5:]]
    path = tmp_path / "separators.txt"
    for number, end in enumerate(("\n", "\r\n", "\r")):
        path.write_bytes(end.join([*tokens, ""]).encode())
        make(f"records_{number}", vocabulary=str(path))
        records = PretrainingRecords(tmp_path / f"records_{number}")
        labels = records.masks(marked_labels=True).inner_label_ids
        tokenizer = WordPieceTokenizer(path)
        assert tokenizer.get_vocabulary() == tokens
        assert len(labels) == len(tokens) == records.tokens["size"]
        assert labels[tokens.index("蛋")] == tokens.index("##蛋")
        assert labels[tokens.index("我")] == tokens.index("我")
        assert labels[tokens.index("\u2028")] == -1


def test_records_depend_on_seed_and_duplicate_only(make, tmp_path):
    sums = []
    for seed in (0, 1):
        make(str(seed), duplicates=2, segmenter=None, seed=seed)
        found = checksums(tmp_path / str(seed))
        sums += [x for name, x in found.items() if "token_ids" in name]
    assert len(set(sums)) == len(sums) > 3
    # Without a segmenter each token is a word.
    arrays = read(tmp_path / "0")
    assert arrays["word_starts"].all()
    # In any process. Increase `FORMAT` where this changes.
    digest = hashlib.sha256(arrays["token_ids"].astype("<u2").tobytes()).hexdigest()
    assert digest.startswith("52b4563c8f7f1417")


# === Workers and resuming ===


COMMAND = """
import sys, zh
from albert_tf.pretraining import make_pretraining_data
from albert_tf.pretraining import PretrainingData
made = PretrainingData(
    sys.argv[1], sequence_length=48, block_bytes=2000,
    segmenter=zh.Jieba(), split_sentences=zh.split_sentences,
)
make_pretraining_data([sys.argv[2]], sys.argv[3], made)
"""


@pytest.mark.nightly
def test_a_killed_run_is_resumed_by_two_workers(make, vocabulary, tmp_path):
    output, corpus = tmp_path / "out", str(tmp_path / "corpus" / "*.txt")
    process = start_python(COMMAND, vocabulary, corpus, output)
    kill_when(process, lambda: stamps(output))
    assert "shards" not in read_manifest(output)
    before = stamps(output)
    manifest = make("out", workers=2)
    after = stamps(output)
    assert before and all(after[name] == x for name, x in before.items())
    # One worker makes the same records.
    assert manifest == make("whole")
    assert checksums(output) == checksums(tmp_path / "whole")
    names = {x["name"] for x in manifest["shards"]}
    assert names == {x.name for x in output.glob("pretrain-*")}


def test_an_interrupted_run_is_resumed(make, tmp_path):
    def interrupt(done, total):
        if done > total / 2:
            raise KeyboardInterrupt

    output = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        make("out", progress=interrupt)
    assert "shards" not in read_manifest(output)
    before = stamps(output)
    # A killed process may also leave this directory.
    (output / ".pretrain-00001-00-0123456789abcdef.1a2b3c4d.part").mkdir()
    assert make("out") == make("whole")
    assert checksums(output) == checksums(tmp_path / "whole")
    assert not list(output.glob(".*"))
    # Complete files are not written again.
    after = stamps(output)
    assert before and all(after[name] == x for name, x in before.items())
    assert len(before) < len(after)


def test_missing_damaged_and_outdated_records_are_rebuilt(make, tmp_path):
    output, first = tmp_path / "out", make("out", duplicates=2)
    sums, before = checksums(output), stamps(output)
    # A complete run is left as it is.
    assert make("out", duplicates=2) == first
    assert stamps(output) == before
    names = [x["name"] for x in first["shards"]]
    (output / names[2] / "lengths.npy").unlink()
    damaged = output / names[5] / "token_ids.npy"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    shutil.rmtree(output / names[6])
    assert make("out", duplicates=2) == first
    assert checksums(output) == sums
    changed = {x.split("/")[0] for x, y in stamps(output).items() if y != before[x]}
    assert changed == {names[i] for i in (2, 5, 6)}
    # Changed text is noticed, here so short that there are fewer shards.
    (tmp_path / "corpus" / "3.txt").write_text("北京。上海。", encoding="utf-8")
    assert make("out", duplicates=2) == make("whole", duplicates=2)
    after = checksums(output)
    assert after == checksums(tmp_path / "whole")
    assert 0 < len(after.items() & sums.items()) < len(sums)


def test_unknown_tokens_of_a_corpus_are_named_once(make, tmp_path):
    for number in range(3):
        lines = "我想吃鸡蛋這個們。\n" * 200
        (tmp_path / f"{number}.txt").write_text(lines, "utf-8")
    # Workers send their warnings, as for `predict` in tests/cli/test_streaming.py.
    with pytest.warns(UserWarning, match="33.3% of the .* 這, 個, 們") as found:
        make("out", files="?.txt", workers=1)
    assert len(found) == 1


# === Refused, and left alone ===


def test_documents_of_one_sentence_are_left_out_and_counted(make, tmp_path):
    lines = ["他说。她回答。", "北京是首都。", "天安门广场很大。", "好的。我马上来。"]
    (tmp_path / "lines.txt").write_text("\n".join(lines), "utf-8")
    one = make("one", "lines.txt")
    assert one["counts"]["documents"] == 1 and one["counts"]["left_out"] == 0
    (warning,) = one["warnings"]
    assert "it is one document of 4 lines" in warning
    each = make("each", "lines.txt", document_per_line=True, duplicates=2)
    assert each["counts"]["documents"] == 4 and each["counts"]["left_out"] == 2
    (warning,) = each["warnings"]
    assert warning.startswith("2 of 4 documents have one sentence, which makes no pair")
    assert make("each", "lines.txt", document_per_line=True, duplicates=2) == each
    kept = make("kept", "lines.txt", document_per_line=True, keep_unpaired=True)
    assert kept["counts"]["sequences"] == 4 and not kept["warnings"]


def test_other_settings_are_refused(make, tmp_path):
    make("out")
    before = stamps(tmp_path / "out")
    with pytest.raises(ValueError, match="order: 'sop', now 'nsp'; seed: 0, now 5"):
        make("out", seed=5, order="nsp")
    with pytest.raises(ValueError, match="file..*0.txt: 'given', now none.*Choose"):
        make("out", files="corpus/1.txt")
    assert stamps(tmp_path / "out") == before
    for settings, message in (
        ({"order": "mlm"}, "Unknown order 'mlm'. Known: .*'sop'"),
        ({"sequence_length": 7}, "at least 8 and at most 65535: 7"),
    ):
        with pytest.raises(ValueError, match=message):
            make("other", **settings)
    (tmp_path / "one.txt").write_text("好", "utf-8")
    (tmp_path / "two.txt").write_bytes(b"\xff")
    with pytest.raises(ValueError, match="from 1 documents.*order='none'.*not in its"):
        make("other", files="???.txt")


def test_files_of_others_are_left_alone(make, tmp_path):
    for name in ("manifest.json", "vocab.txt"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text("mine")
        with pytest.raises(ValueError, match=f"{name} .*another directory"):
            make(name)
        assert [file.name for file in (tmp_path / name).iterdir()] == [name]
        assert (tmp_path / name / name).read_text() == "mine"
    with (
        only_writer(tmp_path),
        pytest.raises(BlockingIOError, match="Another process is writing to"),
    ):
        make("")


def test_patterns_leave_out_records(make, tmp_path):
    make("out")
    found = Corpus(tmp_path / "**" / "*").files
    assert [x.parent.name for x in found] == 6 * ["corpus"]


def test_a_full_disk_is_named(make, tmp_path):
    (tmp_path / "long.txt").write_text(TEXT * 100, "utf-8")
    message = "cannot be written: .*File too large.*Complete shards are kept"
    with full_disk(20_000), pytest.raises(OSError, match=message):
        make("full", files="long.txt", block_bytes=10**6)
    assert not files_of(tmp_path / "full")
