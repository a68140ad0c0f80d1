"""The wheels in empty environments: commands of the pages, the service and `deploy/`.

`make release-check` runs this file, too.
"""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import urllib.request

import pytest
from docker_files import follow
from pages import INSTALLS, NOT_RUN, RELEASES, blocks_of, name_of, serving
from pythons import present, run_in

ROOT = pathlib.Path(__file__).parents[1]
RUNNER = ROOT / "tests/helpers/pages.py"
NAMES = ("README", "docs/install", "docs/quickstart", "docs/guides/service")
NAMES += ("docs/guides/tensorflow_serving",)
PAGES = [ROOT / f"{name}.md" for name in NAMES]
PAGES += [x for x in (ROOT / "docs/tutorials").glob("*.md") if ".zh." not in x.name]
ADDRESS = "https://github.com/albert-tf/albert-tf"
# Installs from sources. They are resolved, but the wheels stay installed.
SOURCES = re.compile(r"(\./albert_tf_lite|git\+https|and-cuda)")
# Reads another index, or `.venv/bin` of a block before it.
ELSEWHERE = re.compile(r"tuna\.tsinghua")
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.name != "posix", reason="follows files with a shell"),
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="builds from a clone"),
]


@pytest.fixture(scope="session")
def wheels(tmp_path_factory):
    """The folder with the wheels of both distributions."""
    if folder := os.environ.get("ALBERT_TF_DIST"):
        return pathlib.Path(folder).resolve()
    pytest.importorskip("build", reason="The extra [release] is not installed")
    folder = tmp_path_factory.mktemp("dist")
    command = (sys.executable, ROOT / "scripts/distributions.py", "--output", folder)
    subprocess.run([*command, "--sboms", folder / "sboms"], check=True)
    return folder


@pytest.fixture
def checkout(tmp_path):
    """A clone of the last commit, in which the commands of a page may write."""
    folder = tmp_path / "albert-tf"
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    for name in RELEASES:
        (folder / name).symlink_to(folder / "examples/albert_micro_zh")
    return folder


@pytest.fixture(scope="session")
def environments(wheels, tmp_path_factory):
    """A function that installs requirements into a new environment of a Python."""

    def install(python, *requirements):
        folder = tmp_path_factory.mktemp("environment")
        subprocess.run([python, "-m", "venv", folder], check=True)
        links = [str(wheels), os.environ.get("PIP_FIND_LINKS", "")]
        changes = {
            "PATH": f"{folder}/bin{os.pathsep}{os.environ['PATH']}",
            "VIRTUAL_ENV": str(folder),
            "PIP_FIND_LINKS": " ".join(links).strip(),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            # Python compiles what is imported; pip would compile all of TensorFlow.
            "PIP_COMPILE": "0",
            # Clones of the address are those of this repository.
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.file://{ROOT}.insteadOf",
            "GIT_CONFIG_VALUE_0": ADDRESS,
        }
        dropped = ("PYTHONPATH", "ALBERT_TF_ASSETS", "ALBERT_TF_LAZY")
        kept = {x: y for x, y in os.environ.items() if x not in dropped}
        environment = {**kept, **changes}
        run_in(environment, "python", "-m", "pip", "install", "-q", *requirements)
        return environment

    return install


@pytest.fixture(scope="session")
def own(environments):
    """An environment of this Python with what the README installs."""
    return environments(sys.executable, "albert-tf[cli,hf]", "albert-tf-lite")


@pytest.mark.parametrize("python", present("3.11", "3.12", "3.13"))
def test_the_wheels_answer_on_every_python(python, environments, tmp_path):
    environment = environments(python, "albert-tf[cli,hf]")
    run = ("albert-tf", "predict", "albert_micro_zh:sentiment", "房间很脏，再也不来")
    assert "差评" in run_in(environment, *run, cwd=tmp_path)
    code = """import albert_tf
answer = albert_tf.pipeline("ner")("王小明昨天从上海飞到了成都。")
print([x["word"] for x in answer])"""
    output = run_in(environment, "python", "-c", code, cwd=tmp_path)
    assert "['王小明', '上海', '成都']" in output
    run_in(environment, "python", "-m", "pip", "check")


@pytest.mark.parametrize("python", present("3.11", "3.12", "3.13", "3.14"))
def test_the_lite_wheel_answers_alone_on_every_python(python, environments):
    environment = environments(python, "albert-tf-lite[onnx]")
    code = """import sys, albert_tf_lite
answer = albert_tf_lite.pipeline(sys.argv[1])("房间很脏，再也不来")
assert not {"tensorflow", "keras"} & {*sys.modules}
print(answer["label"])"""
    model = ROOT / "examples/albert_micro_zh/sentiment.onnx"
    assert "差评" in run_in(environment, "python", "-c", code, model)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_commands_of_a_page_run_from_the_wheels(page, own, checkout):
    run_in(own, "python", RUNNER, page, cwd=checkout)


def installs():
    """Return the blocks of all pages that install."""
    blocks = {}
    for page in PAGES:
        for language, code, _ in blocks_of(page, NOT_RUN):
            if language == "sh" and re.search(INSTALLS, code, re.MULTILINE):
                blocks[code] = name_of(page)
    return [pytest.param(x, id=f"{y}-{i}") for i, (x, y) in enumerate(blocks.items())]


@pytest.mark.parametrize("code", installs())
def test_what_a_page_installs_exists(code, own, checkout, tmp_path):
    if ELSEWHERE.search(code):
        pytest.skip("reads another index")
    # Without a clone in the block, it runs in one.
    folder = tmp_path / "empty" if "git clone" in code else checkout
    folder.mkdir(exist_ok=True)
    if SOURCES.search(code):
        # A variable would keep pip from installing what builds them, too.
        code = code.replace("pip install", "pip install --dry-run")
    code = code.partition("\nMODEL=")[0]
    run_in(own, "bash", "-euo", "pipefail", "-c", code, cwd=folder)


def test_a_shell_can_follow_the_dockerfile_of_the_service(
    own, environments, checkout, tmp_path
):
    service = checkout / "examples/service"
    export = ("albert-tf", "export", "albert_micro_zh:sentiment")
    run_in(own, *export, service / "model.onnx", cwd=checkout)
    empty = environments(sys.executable, "pip")
    image = tmp_path / "image"
    found, folder, variables = follow(service / "Dockerfile", checkout, image, empty)
    command = f"cd {folder} && exec {' '.join(found['CMD'])}"
    with serving(command, {**variables, "HOST": "127.0.0.1", "WORKERS": "1"}):
        run_in(variables, *found["HEALTHCHECK"])
        body = '{"inputs": ["房间很脏，再也不来"]}'.encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request("http://127.0.0.1:8000/predict", body, headers)
        with contextlib.closing(urllib.request.urlopen(request)) as answer:
            assert "差评" in answer.read().decode()


def test_deploy_serves_what_the_tutorial_exports(checkout):
    tutorial = (ROOT / "docs/tutorials/serving.md").read_text("utf-8")
    models = (ROOT / "deploy/models.config").read_text("utf-8")
    (exported,) = re.findall(r"^serving/(\w+/\d+)$", tutorial, re.MULTILINE)
    (name,) = re.findall(r'base_path: "/models/(\w+)"', models)
    versions = re.findall(r"versions: (\d+)", models)
    labels = re.findall(r"value: (\d+)", models)
    assert [f"{name}/{x}" for x in versions] == [exported]
    assert set(labels) <= set(versions)
    compose = (ROOT / "deploy/compose.yaml").read_text("utf-8")
    mounted = re.findall(r"- (\./[^:]+):", compose)
    assert mounted and all((ROOT / "deploy" / x).exists() for x in mounted)
