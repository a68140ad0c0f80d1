"""Build both distributions, the same bytes from the same commit: `make dist`.

    python scripts/distributions.py [--output dist] [--sboms sboms]

The times in the files are those of SOURCE_DATE_EPOCH, by default of the last commit.
Only files that git tracks are packed. The folder of `--sboms` gets a CycloneDX list of
what is in each wheel (`software_lists.py`); it is another one, because all files of
`dist/` are uploaded. The bytes also depend on the version of setuptools, which the
wheel names.
"""

import argparse
import gzip
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROJECTS = (ROOT, ROOT / "albert_tf_lite")


def run(*command, **options):
    """Run a command and return its output; exit with its errors if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def last_commit_time():
    """Return the seconds since 1970 of SOURCE_DATE_EPOCH or of the last commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return int(given or run("git", "log", "-1", "--format=%ct", cwd=ROOT))


def copy_tracked(project, folder):
    """Copy the tracked files of a project, as they are in the working tree."""
    for name in run("git", "ls-files", "-z", cwd=project).split("\0"):
        source = project / name
        if source.is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


def repack(archive, target, seconds):
    """Write an archive again without what depends on the machine or the hour."""

    def plain(member):
        is_executable = member.isdir() or member.mode & 0o100
        member.mode = 0o755 if is_executable else 0o644
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = seconds
        member.pax_headers = {}
        return member

    with (
        tarfile.open(archive) as packed,
        open(target, "wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=seconds) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as made,
    ):
        for member in sorted(packed.getmembers(), key=lambda x: x.name):
            content = packed.extractfile(member) if member.isfile() else None
            made.addfile(plain(member), content)


def build(project, output):
    """Build the source distribution of a project, and from it the wheel."""
    seconds = last_commit_time()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(seconds), "LC_ALL": "C"}
    command = (sys.executable, "-m", "build", "--no-isolation")
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        copy_tracked(project, scratch / "tree")
        places = ("--outdir", scratch, scratch / "tree")
        run(*command, "--sdist", *places, env=environment, umask=0o022)
        (made,) = scratch.glob("*.tar.gz")
        source = output / made.name
        repack(made, source, seconds)
        with tarfile.open(source) as archive:
            archive.extractall(scratch / "source", filter="data")
        (unpacked,) = (scratch / "source").iterdir()
        places = ("--outdir", output, unpacked)
        run(*command, "--wheel", *places, env=environment, umask=0o022)


def build_all(output):
    """Build both distributions into an empty folder; return the hashes by file."""
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    for project in PROJECTS:
        build(project, output)
    return {x.name: digest(x) for x in sorted(output.iterdir())}


def digest(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "dist")
    parser.add_argument("--sboms", type=pathlib.Path, default=ROOT / "sboms")
    given = parser.parse_args()
    for name, found in build_all(given.output).items():
        print(found, name)

    import software_lists

    for file in software_lists.write_all(given.output, given.sboms, last_commit_time()):
        print(digest(file), file.name)


if __name__ == "__main__":
    main()
