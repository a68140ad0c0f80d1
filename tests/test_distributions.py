"""The wheel, built from the source distribution, is complete."""

import pathlib
import subprocess
import sys
import zipfile

import pytest
from processes import run_python

ROOT = pathlib.Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
PACKAGES = ("albert_tf", "albert_tf_cli", "albert_tf_lite", "zh")
# Without TensorFlow.
SCRIPT = """
import sys
from albert_tf.files import find_bundled
print(*map(find_bundled, sys.argv[1:]), sep="\\n")
"""


@pytest.mark.nightly
def test_the_wheel_holds_the_packages_and_the_bundled_checkpoints(tmp_path):
    pytest.importorskip("build")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path]
    subprocess.run([*command, ROOT], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)

    files = [x for top in PACKAGES for x in (ROOT / top).rglob("*.*")]
    expected = {x.relative_to(ROOT): x for x in files if x.suffix != ".pyc"}
    indexes = EXAMPLES.glob("albert_micro_zh*/*.index")
    checkpoints = sorted(index.parent for index in indexes)
    for file in (x for folder in checkpoints for x in folder.rglob("*.*")):
        if file.suffix not in (".md", ".png", ".py", ".pyc"):
            name = pathlib.Path("albert_tf/bundled", file.relative_to(EXAMPLES))
            expected[name] = file
    found = {x.relative_to(installed) for x in installed.rglob("*.*") if x.is_file()}
    # Nothing else: no tests, no examples, no scripts.
    assert {x for x in found if ".dist-info" not in x.parts[0]} == set(expected)
    for name, file in expected.items():
        assert (installed / name).read_bytes() == file.read_bytes(), name

    names = [folder.name for folder in checkpoints]
    options = {"PYTHONPATH": str(installed), "ALBERT_TF_LAZY": "1"}
    output = run_python(SCRIPT, *names, cwd=tmp_path, **options)
    bundled = [str(installed / "albert_tf/bundled" / name) for name in names]
    assert output.split() == bundled
