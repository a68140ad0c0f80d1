"""The wheels, built from the source distributions, are complete."""

import json
import os
import pathlib
import runpy
import tarfile
import tomllib
import zipfile

import pytest
from processes import run_python

import albert_tf
import albert_tf_lite

ROOT = pathlib.Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
PACKAGES = ("albert_tf", "albert_tf_cli", "zh")
# Without TensorFlow.
SCRIPT = """
from albert_tf.files import find_bundled
print(*map(find_bundled, sys.argv[1:]), sep="\\n")
"""


def build_wheel(project, tmp_path):
    """Build the source distribution and from it the wheel; return it unpacked."""
    pytest.importorskip("build")
    runpy.run_path(str(ROOT / "scripts/distributions.py"))["build"](project, tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    found = (x.relative_to(installed) for x in installed.rglob("*.*") if x.is_file())
    return installed, {x for x in found if ".dist-info" not in x.parts[0]}


def test_both_distributions_have_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert albert_tf.__version__ == albert_tf_lite.__version__
    assert f"albert-tf-lite=={albert_tf.__version__}" in project["dependencies"]


@pytest.mark.nightly
def test_a_commit_gives_the_same_bytes_and_a_list_of_them(tmp_path, monkeypatch):
    pytest.importorskip("cyclonedx")
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import distributions
    import software_lists

    first = distributions.build_all(tmp_path / "dist")
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    mask = os.umask(0o077)
    try:
        assert distributions.build_all(tmp_path / "again") == first
    finally:
        os.umask(mask)
    assert [x.rpartition(".")[2] for x in first] == ["whl", "gz"] * 2

    lists = software_lists.write_all(
        tmp_path / "dist", tmp_path / "sboms", 1_700_000_000
    )
    for wheel, path in zip(sorted(tmp_path.glob("dist/*.whl")), lists, strict=True):
        components = json.loads(path.read_text("utf-8"))["components"]
        with zipfile.ZipFile(wheel) as archive:
            packed = {x for x in archive.namelist() if not x.endswith("/RECORD")}
        nested = [y for x in components for y in x.get("components", ())]
        files = {x["name"] for x in [*components, *nested] if x["type"] == "file"}
        assert files == packed
        required = {x["name"] for x in components if x.get("scope") == "required"}
        assert "numpy" in required or {"tensorflow", "albert-tf-lite"} <= required


@pytest.mark.nightly
def test_the_wheel_for_exported_files_needs_numpy_alone(tmp_path):
    installed, found = build_wheel(ROOT / "albert_tf_lite", tmp_path)
    package = [x for x in (ROOT / "albert_tf_lite").glob("*.*") if x.is_file()]
    names = {x.name for x in package} - {"pyproject.toml", "README.md"}
    assert {str(x) for x in found} == {f"albert_tf_lite/{name}" for name in names}
    (metadata,) = installed.glob("*.dist-info/METADATA")
    lines = metadata.read_text("utf-8").splitlines()
    needed = [x for x in lines if x.startswith("Requires-Dist:") and "extra" not in x]
    assert len(needed) == 1 and "numpy" in needed[0]


@pytest.mark.nightly
def test_the_wheel_holds_the_packages_and_the_bundled_checkpoints(tmp_path):
    installed, installed_names = build_wheel(ROOT, tmp_path)
    files = [x for top in PACKAGES for x in (ROOT / top).rglob("*.*")]
    expected = {x.relative_to(ROOT): x for x in files if x.suffix != ".pyc"}
    indexes = EXAMPLES.glob("albert_micro_zh*/*.index")
    checkpoints = sorted(index.parent for index in indexes)
    for file in (x for folder in checkpoints for x in folder.rglob("*.*")):
        if file.suffix not in (".png", ".py", ".pyc"):
            name = pathlib.Path("albert_tf/bundled", file.relative_to(EXAMPLES))
            expected[name] = file
    # Nothing else: no tests, no examples, no scripts.
    assert installed_names == set(expected)
    for name, file in expected.items():
        assert (installed / name).read_bytes() == file.read_bytes(), name

    # The tests execute the notebooks and read the pages.
    (source,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        packed = {x.name.partition("/")[2] for x in archive.getmembers()}
    for name in ("docs", "notebooks"):
        pages = [x for x in (ROOT / name).rglob("*.*") if x.suffix != ".pyc"]
        assert {x.relative_to(ROOT).as_posix() for x in pages} <= packed

    names = [folder.name for folder in checkpoints]
    options = {"PYTHONPATH": str(installed), "ALBERT_TF_LAZY": "1"}
    output = run_python(SCRIPT, *names, cwd=tmp_path, **options)
    bundled = [str(installed / "albert_tf/bundled" / name) for name in names]
    assert output.split() == bundled
