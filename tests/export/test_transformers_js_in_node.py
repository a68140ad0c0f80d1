"""Models for transformers.js, in Node: the answers of Keras."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from lite_tasks import small_task
from node_packages import NODE, install, run_node
from test_transformers_js import NAMES, build

import albert_tf

ROOT = Path(__file__).parents[2]
SETTINGS = """\
import { env, pipeline } from "@huggingface/transformers";
import fs from "fs";

env.localModelPath = "./";
env.allowRemoteModels = false;
const read = (name) => JSON.parse(fs.readFileSync(name, "utf-8"));
"""
CLASSIFY = """\
const found = {};
for (const dtype of ["fp32", "q8"]) {
  const classify = await pipeline("text-classification", "web", { dtype });
  found[dtype] = [];
  for (const text of read("texts.json")) found[dtype].push(...await classify(text));
}
console.log(JSON.stringify(found));
"""

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not NODE, reason="needs node and npm"),
    pytest.mark.filterwarnings("ignore:.* texts are longer"),
]


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    return install(tmp_path_factory.mktemp("npm"))


@pytest.fixture
def folder(tmp_path, modules):
    (tmp_path / "node_modules").symlink_to(modules)
    return tmp_path


def reviews():
    """500 held-out texts, some longer than the model reads."""
    rows = (ROOT / "examples/reviews/test.tsv").read_text("utf-8").splitlines()[1:]
    rows += (ROOT / "examples/reviews/dev.tsv").read_text("utf-8").splitlines()[1:]
    texts = [row.split("\t")[1] for row in rows][:480]
    return texts + ["".join(texts[i : i + 12]) for i in range(20)]


def test_labels_and_scores_of_500_texts(folder):
    classifier = albert_tf.pipeline(path="albert_micro_zh:sentiment").model
    albert_tf.export.transformers_js(classifier, folder / "web")
    texts = reviews()
    assert len(texts) == 500
    (folder / "texts.json").write_text(json.dumps(texts), "utf-8")
    found = json.loads(run_node(folder, SETTINGS + CLASSIFY))
    expected = classifier.answers(texts)
    labels = [x["label"] for x in expected]
    assert [x["label"] for x in found["fp32"]] == labels
    scores = [[x["score"] for x in y] for y in (found["fp32"], expected)]
    np.testing.assert_allclose(*scores, atol=1e-4)
    same = [x["label"] == y for x, y in zip(found["q8"], labels, strict=True)]
    assert np.mean(same) > 0.97


@pytest.mark.parametrize("name", NAMES)
def test_the_code_of_the_card_runs(name, folder):
    task, _ = build(name)
    albert_tf.export.transformers_js(task, folder / "web")
    card = (folder / "web/README.md").read_text("utf-8")
    (code,) = re.findall(r"```js\n(.*?)```", card, re.DOTALL)
    assert run_node(folder, code).strip()


def test_entities_embeddings_masks_and_scores(folder):
    """Pipelines of transformers.js return the numbers of Keras."""
    names = ("embedding", "masked", "multi-label", "tags")
    tasks = {x: build(x)[0] for x in names}
    for name, task in tasks.items():
        albert_tf.export.transformers_js(task, folder / name.replace("-", "_"))
    answers = json.loads(
        run_node(
            folder,
            SETTINGS
            + """\
const run = (tag, name) => pipeline(tag, name, { dtype: "fp32" });
const embed = await run("feature-extraction", "embedding");
const fill = await run("fill-mask", "masked");
const choose = await run("text-classification", "multi_label");
const tag = await run("token-classification", "tags");
console.log(JSON.stringify({
  embedding: (await embed("很好", { pooling: "mean", normalize: true })).tolist()[0],
  masked: await fill("很[MASK]吃", { top_k: 3 }),
  choose: await choose(["很好", "差"], { top_k: null }),
  tags: await tag("很好吃我", { aggregation_strategy: "simple" }),
}));
""",
        )
    )
    vector = tasks["embedding"].encode_text(["很好"], verbose=0)[0]
    np.testing.assert_allclose(answers["embedding"], vector, atol=1e-4)
    filled = tasks["masked"].fill("很[MASK]吃", top_k=3)
    assert [x["token"] for x in answers["masked"]] == [x["token"] for x in filled]
    scores = [[x["score"] for x in y] for y in (answers["masked"], filled)]
    np.testing.assert_allclose(*scores, atol=1e-4)
    expected = tasks["multi-label"].answers(["很好", "差"], top_k=None)
    for given, row in zip(answers["choose"], expected, strict=True):
        given = {x["label"]: x["score"] for x in given}
        assert given == pytest.approx({x["label"]: x["score"] for x in row}, abs=1e-4)
    for row in answers["tags"]:
        assert row["entity_group"] in ("PER", "LOC") and row["word"] in "很好吃我"


def test_questions(folder):
    task, _ = small_task("questions")
    albert_tf.export.transformers_js(task, folder / "web")
    # Unknown tokens are never in an answer of transformers.js.
    question, context = "吃鸡蛋？", "我想吃鸡蛋，你来吧"
    code = f"""\
const answer = await pipeline("question-answering", "web", {{ dtype: "fp32" }});
console.log(JSON.stringify(await answer("{question}", "{context}", {{ top_k: 40 }})));
"""
    found = json.loads(run_node(folder, SETTINGS + code))
    expected = task.predict_n_best(([question], [context]), 3, None)[0]
    found = {x["answer"]: x["score"] for x in found}
    for row in expected:
        assert found[row["answer"]] == pytest.approx(row["score"], abs=1e-4)
