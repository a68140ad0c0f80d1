"""Print what is missing to publish a version: `make release-check`.

    python scripts/release_check.py [--quick]

It ends with 1 if something is missing that can be mended in the repository. What needs
a person or the network is listed last. `--quick` leaves out the tests of the wheels
(`tests/test_shipped.py`), which install TensorFlow once per Python.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable

import distributions
import software_lists

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests/helpers"))

import pythons  # noqa: E402

SUPPORTED = ("3.11", "3.12", "3.13")
PINNED = re.compile(r"uses: (\./|[\w./-]+@[0-9a-f]{40} # v[\d.]+$)")
FOR_A_PERSON = (
    "Decide on the date, and write it in CHANGELOG.md: ## {version}, YYYY-MM-DD.",
    "Make the project `albert-tf` and `albert-tf-lite` known to PyPI as trusted "
    "publishers of .github/workflows/release.yml (environment `pypi`).",
    "See the jobs for Windows and macOS pass in .github/workflows/test.yml.",
    "Tag the commit v{version} and push the tag, which publishes the wheels.",
)


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def version() -> str:
    return re.findall(r'__version__ = "(.+)"', text_of("albert_tf/__init__.py"))[0]


def versions() -> list[str]:
    """Find versions that differ from that of the package."""
    expected = version()
    required = tomllib.loads(text_of("pyproject.toml"))["project"]["dependencies"]
    lite = r'__version__ = "(.+)"'
    found = {
        "albert_tf_lite/__init__.py": re.findall(
            lite, text_of("albert_tf_lite/__init__.py")
        ),
        "pyproject.toml (albert-tf-lite)": [
            x.partition("==")[2] for x in required if x.startswith("albert-tf-lite")
        ],
        "README.md": re.findall(r"version (\d[\w.]*\w)", text_of("README.md"))[:1],
        "CITATION.cff": re.findall(r"^version: (.+)$", text_of("CITATION.cff"), re.M),
        "CHANGELOG.md": re.findall(r"^## ([\d.]+)", text_of("CHANGELOG.md"), re.M)[:1],
    }
    problems = [
        f"{x} has {y}, not {expected}" for x, y in found.items() if y != [expected]
    ]
    if not re.fullmatch(r"\d+\.\d+\.\d+", expected):
        problems.append(f"{expected} is a version of a development")
    return problems


def actions() -> list[str]:
    """Find actions of workflows that are not pinned by a commit."""
    problems = []
    for file in sorted(ROOT.glob(".github/workflows/*.yml")):
        lines = [x.strip() for x in file.read_text("utf-8").splitlines()]
        used = [x.removeprefix("- ") for x in lines if "uses: " in x]
        problems += [f"{file.name}: {x}" for x in used if not PINNED.match(x)]
    return problems


def commits() -> list[str]:
    """Find changes that no commit has."""
    changed = distributions.run("git", "status", "--porcelain", cwd=ROOT).splitlines()
    return [f"not committed: {x}" for x in changed]


def figures() -> list[str]:
    """Find pages whose figures are not those of the results."""
    command = [sys.executable, ROOT / "scripts/figures.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    return [] if done.returncode == 0 else (done.stdout + done.stderr).splitlines()


def builds(folder: pathlib.Path) -> list[str]:
    """Build twice into folders, with other settings; find files that differ."""
    first = distributions.build_all(folder / "dist")
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["TZ"] = "Asia/Shanghai"
        second = distributions.build_all(pathlib.Path(scratch, "dist"))
    problems = [
        f"{x} differs in a second build" for x in first if first[x] != second[x]
    ]
    files = [folder / "dist" / x for x in first]
    command = [sys.executable, "-m", "twine", "check", "--strict", *files]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        problems.append(done.stdout.strip())
    seconds = distributions.last_commit_time()
    software_lists.write_all(folder / "dist", folder / "sboms", seconds)
    for name, found in first.items():
        print(f"    {found} {name}")
    return problems


def shipped(wheels: pathlib.Path) -> list[str]:
    """Run the tests of the wheels in empty environments; return those that fail."""
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "tests/test_shipped.py"]
    # Installing TensorFlow may take longer on a busy machine.
    command += ["-o", "faulthandler_timeout=0"]
    environment = {**os.environ, "ALBERT_TF_DIST": str(wheels)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True
    )
    print("    " + done.stdout.strip().rpartition("\n")[2])
    failed = re.findall(r"^(?:FAILED|ERROR) (.+)$", done.stdout, re.M)
    return failed or ([done.stdout + done.stderr] if done.returncode else [])


def dated() -> bool:
    heading = rf"^## {re.escape(version())}, \d{{4}}-\d{{2}}-\d{{2}}$"
    return bool(re.search(heading, text_of("CHANGELOG.md"), re.M))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out the wheels")
    given = parser.parse_args()
    missing = 0

    def report(name: str, check: Callable[[], list[str]]) -> None:
        nonlocal missing
        print(f"{name} ...", flush=True)
        problems = check()
        missing += len(problems)
        for problem in problems:
            print(f"    MISSING: {problem}")

    report("versions", versions)
    report("actions pinned by commit", actions)
    report("everything committed", commits)
    report("figures of the pages", figures)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        report("two builds with equal hashes", lambda: builds(folder))
        if not given.quick:
            found = [x for x in SUPPORTED if pythons.find(x)]
            report(
                f"wheels and commands in empty environments, Python {', '.join(found)}",
                lambda: shipped(folder / "dist"),
            )
            if absent := sorted({*SUPPORTED} - {*found}):
                print(f"    not present here: Python {', '.join(absent)}")
    print("\nFor a person, or with the network:")
    for line in FOR_A_PERSON[dated() :]:
        print(f"- {line.format(version=version())}")
    if missing:
        sys.exit(f"\n{missing} things are missing.")
    print("\nNothing else is missing.")


if __name__ == "__main__":
    main()
