"""`albert-tf demo`: the page of every task, without a browser and in one."""

import html
import importlib.util
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import urllib.request

import pytest
from command_line import refused
from small_classifier import small_classifier
from task_cases import CASES
from tiers import few

import albert_tf
from albert_tf_cli.commands.demo import build_page, launch, open_model, own_examples
from albert_tf_cli.tasks import task_named
from albert_tf_lite.errors import AlbertError

# Not `importorskip`, because importing Gradio takes seconds in each worker.
pytestmark = pytest.mark.skipif(
    not importlib.util.find_spec("gradio"), reason="needs Gradio (extra [demo])"
)
MICRO = pathlib.Path(__file__).parents[2] / "examples" / "albert_micro_zh"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
TEXT = "很好吃，我想你来！太差了！"
# The fields of an example that are not one text, by case.
FIELDS = {
    "question answering": ("吃鸡蛋？", TEXT),
    "multiple choice": (TEXT, "好？", "好\n\n不好\n你"),
    "masked language model": ("很好[MASK]，不吃",),
    **dict.fromkeys(("pair classifier", "regressor", "sentence order"), (TEXT, "不好")),
    "text embedder": (TEXT, "不好"),
}
NAMES = [x for x, case in CASES.items() if task_named(case.cls.name_of_task).page]
# The marked parts of a text, from the answer and the text.
MARKED = {
    "token-classification": lambda found, _: [row["word"] for row in found],
    "question-answering": lambda found, _: list(filter(None, [found["answer"]])),
    "spelling-correction": lambda found, _: [right for _, right, _ in found["errors"]],
    "summarization": lambda found, text: [text[a:b] for a, b, _ in found["sentences"]],
}


# One for each kind of output.
QUICK = ("multi-label classifier", "token classifier", "regressor")
SLOW = ("question answering", "masked language model")


@pytest.mark.parametrize(
    "name",
    [
        *few(SLOW, (), pytest.mark.slow),
        *few([x for x in NAMES if x not in SLOW], QUICK),
    ],
)
def test_a_page_shows_the_answer(name):
    answer = albert_tf.pipeline(path=CASES[name].build())
    texts = FIELDS.get(name, (TEXT,))
    page = build_page(answer, "zh", "title")
    values = page(*texts, api_name="run")
    if "classif" in name and name != "token classifier":
        values, coloured = values
        assert re.sub("<p.*?>|<span.*?>|</.*?>", "", coloured).endswith("".join(texts))
        # The strongest character has the full colour, blue or orange.
        assert re.search("#4285f4|#f59628", coloured)
    kinds = task_named(answer.task).page.outputs
    x = tuple(x.split() if "\n" in x else x for x in texts)
    expected = answer(x if len(x) > 1 else x[0])
    values = values if isinstance(values, list) and len(kinds) > 1 else [values]
    for kind, value in zip(kinds, values, strict=True):
        if kind == "score":
            assert value["label"] == f"{expected['score']:.3f}"
        elif kind == "marked":
            parts = [x["token"] for x in value if x["class_or_confidence"]]
            assert parts == MARKED[answer.task](expected, texts[-1])
        elif answer.task == "multi-label":
            labels = {x["label"] for x in value["confidences"]}
            chosen = {f"✓ {row['label']}" for row in expected}
            assert len(labels) == 3 and {x for x in labels if "✓" in x} == chosen
        else:
            best = expected[0] if isinstance(expected, list) else expected
            names = (best.get(x) for x in ("label", "answer", "token_str"))
            assert value["label"] == next(filter(None, names), "—")
            scores = {x["label"]: x["confidence"] for x in value["confidences"]}
            assert scores[value["label"]] == pytest.approx(best["score"])
    with pytest.warns(UserWarning, match="请填写所有输入框"):
        page(*texts[:-1], " ", api_name="run")


def test_a_checkpoint_fills_one_mask(monkeypatch):
    answer = albert_tf.pipeline(path=CASES["masked language model"].build())
    page = build_page(answer, "en", "title")
    for text in (TEXT, "[MASK]好[MASK]"):
        with pytest.warns(UserWarning, match=r"The text needs one \[MASK\]"):
            assert not page(text, api_name="run")
    with pytest.warns(UserWarning, match="within sequence_length"):
        page("好" * 600 + "[MASK]", api_name="run")
    assert open_model(MICRO).task == "fill-mask"
    monkeypatch.setattr(task_named("fill-mask"), "page", None)
    assert "which has no page. Expected a model for one of" in refused("demo", MICRO)


def test_examples_are_those_of_the_training(tmp_path):
    rows = "".join(f"{label}\t{label}的文本{i}\n" for label in "ab" for i in range(9))
    (tmp_path / "dev.tsv").write_text("label\ttext\n" + rows, "utf-8")
    settings = {"settings": {"dev": str(tmp_path / "dev.tsv"), "train": "x.tsv"}}
    (tmp_path / "metrics.json").write_text(json.dumps(settings), "utf-8")
    answer = albert_tf.pipeline(path=small_classifier(2, labels=["a", "b"]))
    rows = own_examples(tmp_path, answer)
    assert rows[0] == ["a的文本0"] and rows[-1][0].startswith("b") and len(rows) == 5
    (tmp_path / "dev.tsv").unlink()
    assert own_examples(tmp_path, answer) == []


def test_missing_gradio_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gradio", None)
    line = refused("demo", tmp_path)
    assert line.endswith("Run: pip install 'albert-tf[demo]'")


def pressed(url, text):
    """Return the outputs of the page for a text."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    header, data = {"Content-Type": "application/json"}, json.dumps({"data": [text]})
    request = urllib.request.Request(f"{url}gradio_api/call/run", data.encode(), header)
    event = json.load(opener.open(request))["event_id"]
    stream = opener.open(f"{url}gradio_api/call/run/{event}").read().decode()
    return json.loads(stream.rpartition("data: ")[2])


@pytest.mark.nightly
@pytest.mark.skipif(not CHROMIUM, reason="needs chromium")
def test_a_browser_shows_the_first_answer_and_asks_nobody_else(tmp_path, monkeypatch):
    hosts, find = set(), socket.getaddrinfo

    def record(host, *arguments, **options):
        hosts.add(host)
        return find(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", record)
    # A proxy must not be asked about this computer.
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:1")
    monkeypatch.setenv("no_proxy", "")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    answer = albert_tf.pipeline(path=small_classifier(2, labels=["<差>", "好"]))
    page = build_page(answer, "zh", "我的模型", [["好吃<b>吗"]])
    launch(page, port)
    try:
        with pytest.raises(AlbertError, match=f"Port {port} is in use"):
            launch(build_page(answer, "en", "another"), port)
        label, coloured = pressed(page.local_url, "不好")
        assert label["label"] == answer("不好")["label"] and "不" in coloured
        log = tmp_path / "log.json"
        options = ("--headless", "--no-sandbox", "--virtual-time-budget=10000")
        command = [CHROMIUM, *options, "--dump-dom", f"--log-net-log={log}"]
        environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        browser = subprocess.run(
            [*command, page.local_url],
            capture_output=True,
            check=True,
            text=True,
            timeout=120,
            env=environment,
        )
    finally:
        page.close()
    text = html.unescape(re.sub(r"<(script|style).*?</\1>|<[^>]*>", "", browser.stdout))
    for shown in ("我的模型", "各字贡献", "好吃<b>吗", "示例", "%"):
        assert shown in text
    assert hosts <= {"127.0.0.1", "localhost", None}
    urls = [
        event["params"]["url"]
        for event in json.loads(log.read_text("utf-8"))["events"]
        if "127.0.0.1" in event.get("params", {}).get("initiator", "")
    ]
    assert urls and all(url.startswith(page.local_url) for url in urls)
