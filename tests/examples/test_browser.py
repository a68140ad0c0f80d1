"""The page of examples/browser, in headless Chromium: the answers of Keras."""

import contextlib
import functools
import http.server
import json
import pathlib
import queue
import re
import shutil
import subprocess
import threading

import numpy as np
import pytest
from node_packages import NODE, install

import albert_tf
from albert_tf.export.transformers_js_card import LIBRARY

ROOT = pathlib.Path(__file__).parents[2]
BROWSER = ROOT / "examples/browser"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FILES = re.findall(
    r"\$\{(\w+)\}([\w.-]+)`,\s+\"sha384-", (BROWSER / "classify.js").read_text("utf-8")
)
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"]
OPTIONS += ["--no-first-run", "--disable-background-networking"]
OPTIONS += ["--disable-component-update", "--disable-sync"]
# Opens the pages as frames, whose documents it reads, and sends what it found.
SCRIPT = """\
import { load } from "./classify.js";

async function frame(address, selector) {
  const opened = document.createElement("iframe");
  opened.src = address;
  document.body.append(opened);
  for (;;) {
    await new Promise((done) => setTimeout(done, 50));
    const found = opened.contentDocument?.querySelector(selector);
    if (found) return opened.contentDocument;
  }
}

const found = {};
for (const dtype of ["fp32", "q8"]) {
  const classify = await load({ model: "model/", library: "lib/", dtype });
  const texts = await (await fetch("texts.json")).json();
  found[dtype] = [];
  for (const text of texts) found[dtype].push(...await classify([text]));
}
const address = "index.html?local&lang=en&text=" + encodeURI("太差了");
const page = await frame(address, ".row");
found.page = page.body.innerText;
const input = page.querySelector("textarea");
input.value = "很好吃";
input.dispatchEvent(new Event("input"));
const wait = () => new Promise((done) => setTimeout(done, 50));
while (!page.querySelector(".row").textContent.startsWith("好评")) await wait();
const failed = await frame("broken.html", "[role=alert]");
found.failed = failed.body.innerText;
await fetch("/found", { method: "POST", body: JSON.stringify(found) });
"""
TEST_PAGE = """\
<!doctype html>
<meta charset="utf-8">
<body><script type="module" src="test.js"></script></body>
"""

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not (NODE and CHROMIUM), reason="needs node, npm and chromium"),
    pytest.mark.filterwarnings("ignore:.* texts are longer"),
]


@contextlib.contextmanager
def served(folder):
    """Serve a folder; yield its address, what pages send, and requested paths."""
    messages, paths = queue.Queue(), []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_POST(self):
            messages.put(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *arguments):
            paths.append(self.path)

    handler = functools.partial(Handler, directory=folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", messages, paths
    finally:
        server.shutdown()
        server.server_close()


def copy_page(folder, modules):
    """Copy the page, the library that it takes from a CDN, and a page that lacks it."""
    shutil.copytree(BROWSER, folder, ignore=shutil.ignore_patterns("model", "lib"))
    (folder / "lib").mkdir()
    packages = {"TRANSFORMERS": "@huggingface/transformers"}
    for package, name in FILES:
        shutil.copy(
            modules / packages.get(package, "onnxruntime-web") / "dist" / name,
            folder / "lib",
        )
    text = (folder / "index.html").read_text("utf-8")
    text = text.replace("<section ", "<section data-library=no/ ")
    (folder / "broken.html").write_text(text, "utf-8")


def run_page(folder):
    """Open test.html in Chromium and return what it sends."""
    with served(folder / "site") as (address, found, paths):
        command = [CHROMIUM, *OPTIONS, f"--user-data-dir={folder / 'profile'}"]
        command += ["--remote-debugging-port=0", f"{address}/test.html"]
        with open(folder / "log", "wb") as log:
            browser = subprocess.Popen(command, stdout=log, stderr=log)
            try:
                return json.loads(found.get(timeout=180)), paths
            except queue.Empty:
                raise AssertionError((folder / "log").read_text()[-3000:]) from None
            finally:
                browser.kill()
                browser.wait()


def test_a_browser_gives_the_labels_and_scores_of_keras(tmp_path):
    site = tmp_path / "site"
    copy_page(site, install(tmp_path / "npm"))
    classifier = albert_tf.pipeline(path="albert_micro_zh:sentiment").model
    albert_tf.export.transformers_js(classifier, site / "model")
    rows = (ROOT / "examples/reviews/test.tsv").read_text("utf-8").splitlines()[1:]
    rows += (ROOT / "examples/reviews/dev.tsv").read_text("utf-8").splitlines()[1:]
    texts = [row.split("\t")[1] for row in rows][:480]
    # Longer than the model reads.
    texts += ["".join(texts[i : i + 12]) for i in range(20)]
    (site / "texts.json").write_text(json.dumps(texts), "utf-8")
    (site / "test.js").write_text(SCRIPT, "utf-8")
    (site / "test.html").write_text(TEST_PAGE, "utf-8")
    sent, paths = run_page(tmp_path)

    expected = classifier.answers(texts)
    best = [row[0] for row in sent["fp32"]]
    assert len(best) == 500
    assert [x["label"] for x in best] == [x["label"] for x in expected]
    scores = [[x["score"] for x in y] for y in (best, expected)]
    np.testing.assert_allclose(*scores, atol=1e-4)
    pairs = zip(sent["q8"], expected, strict=True)
    assert np.mean([x[0]["label"] == y["label"] for x, y in pairs]) > 0.97

    lines = sent["page"].split("\n")
    assert "差评 (negative)" in lines and re.search(r"\d+\.\d ms", sent["page"])
    assert lines.index("差评 (negative)") < lines.index("好评 (positive)")
    assert "could not be loaded" in sent["failed"]
    assert "Needs JavaScript" in sent["failed"]
    assert "/model/onnx/model_quantized.onnx" in paths


def test_the_page_and_the_card_name_one_version():
    assert len(FILES) == 3
    assert f'"{LIBRARY}/dist/"' in (BROWSER / "classify.js").read_text("utf-8")
