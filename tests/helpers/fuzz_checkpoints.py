"""Load many small checkpoints, each damaged at random, and count the outcomes.

    python tests/helpers/fuzz_checkpoints.py --mutations 10000 --seed 0

Each mutation changes the bytes of one file. Loading must end in one clear error of
this package or in the numbers of the whole checkpoint. The exit status is 1 if one
ended in other numbers, an error of a library, the end of the process, or not at all.

Not detected, because nothing in the files shows it (counted as `no checksum`):

- other numbers in HDF5 files, in `.safetensors` files of other writers, and in a
  tensor whose checksum was lost by the same mutation;
- a config with other layers, heads, activation or dropout for the same weights.

Errors of Keras and h5py on their own files (`library` of a kind) are theirs.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import itertools
import json
import multiprocessing
import os
import pathlib
import random
import resource
import shutil
import signal
import sys
import tempfile
from concurrent.futures.process import BrokenProcessPool

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

SECONDS = 20  # For one mutation; it takes 0.02 to 0.3.
MEMORY = 3 * 2**30  # For one mutation, beyond what the process has before.


@dataclasses.dataclass(frozen=True)
class Kind:
    """A file to damage.

    Attributes:
        form: string, the checkpoint (see `damaged_files.build_forms`).
        file: string, the file in it, or `None` if the checkpoint is one file.
        guarded: bool. If true, a checksum guards the numbers.
        tokenizer: bool. If true, the tokenizer is read, too.
        library: bool. If true, errors may be those of a library.
    """

    form: str
    file: str | None
    guarded: bool = True
    tokenizer: bool = False
    library: bool = False


KINDS = {
    "index": Kind("google", "albert_model.ckpt.index"),
    "data": Kind("google", "albert_model.ckpt.data-00000-of-00001"),
    "module": Kind("hub", "variables/variables.index"),
    "config": Kind("google", "albert_config.json"),
    "safetensors": Kind("huggingface", "model.safetensors"),
    "hf_config": Kind("huggingface", "config.json"),
    "hf_shard": Kind("sharded", "model-00001-of-00002.safetensors", guarded=False),
    "hf_shards": Kind("sharded", "model.safetensors.index.json"),
    "hf_tokens": Kind("huggingface", "tokenizer_config.json", tokenizer=True),
    "vocab": Kind("huggingface", "vocab.txt", tokenizer=True),
    "preset_h5": Kind("kerashub", "model.weights.h5", guarded=False, library=True),
    "keras_file": Kind("keras_file", None, guarded=False, library=True),
    "tar_gz": Kind(".tar.gz", None),
    "zip": Kind(".zip", None),
}
FAILURES = ("other numbers", "library error", "crash", "hang")
Outcome = collections.namedtuple("Outcome", "kind seed changes result detail")


# === Mutations ===


def mutate(content, chance):
    """Change bytes once or a few times and return them with a list of the changes."""
    content, changes = bytearray(content), []
    for _ in range(chance.choice([1, 1, 1, 2, 5])):
        if not content:
            break
        start = chance.randrange(len(content))
        size = chance.choice([1, 4, 16, 64, 256, 2048])
        kind = chance.choice(["flip", "truncate", "insert", "delete", "zero", "digit"])
        # Text and headers consist of digits.
        digits = [i for i, byte in enumerate(content) if 48 <= byte < 58]
        if kind == "flip":
            content[start] ^= 1 << chance.randrange(8)
        elif kind == "truncate":
            del content[start:]
        elif kind == "insert":
            content[start:start] = chance.randbytes(min(size, 256))
        elif kind == "delete":
            del content[start : start + min(size, 256)]
        elif kind == "zero":
            content[start : start + size] = bytes(len(content[start : start + size]))
        elif digits:
            content[chance.choice(digits)] = 48 + chance.randrange(10)
        changes.append(f"{kind} {size} at {start}")
    return bytes(content), changes


# === The process that loads ===


class Hang(BaseException):
    """Too slow; no `Exception`, so that nothing takes it for a damaged file."""


def start(forms, scratch):
    """Prepare a worker: load the whole checkpoints and limit its memory."""
    global _forms, _weights, _scratch
    import albert_tf

    _forms, _scratch = forms, pathlib.Path(scratch)
    _weights = {
        form: albert_tf.load_checkpoint(path).get_weights()
        for form, path in forms.items()
    }
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    size = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
    limit = size * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    def stop(*_):
        raise Hang

    signal.signal(signal.SIGALRM, stop)


def run(name, seed):
    """Mutate a copy, load it and return an `Outcome`."""
    kind = KINDS[name]
    source = _forms[kind.form]
    path = _scratch / (source.name if kind.file is None else f"{name}_{seed}")
    damaged = path if kind.file is None else path / kind.file
    shutil.copy(source, path) if kind.file is None else shutil.copytree(source, path)
    content, changes = mutate(damaged.read_bytes(), random.Random(f"{name} {seed}"))
    damaged.write_bytes(content)
    signal.alarm(SECONDS)
    try:
        result, detail = load(path, kind)
    except Hang:
        result, detail = "hang", f"more than {SECONDS} s"
    finally:
        signal.alarm(0)
        path.unlink() if kind.file is None else shutil.rmtree(path)
    return Outcome(name, seed, changes, result, detail)


def load(path, kind):
    import damaged_files

    import albert_tf

    try:
        loaded = albert_tf.load_checkpoint(path).get_weights()
        albert_tf.inspect_checkpoint(path)
        if kind.tokenizer:
            albert_tf.checkpoints.open_checkpoint(path).tokenizer()
    except Exception as error:
        found = [] if kind.library else damaged_files.faults(error, path)
        detail = f"{type(error).__name__}: {str(error)[:200]} {'; '.join(found)}"
        return ("library error" if found else "clear error"), detail
    expected = _weights[kind.form]
    if len(loaded) == len(expected) and all(
        a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(loaded, expected, strict=True)
    ):
        return "same weights", ""
    is_known = not kind.guarded or lacks_checksums(path)
    return ("no checksum" if is_known else "other numbers"), ""


def lacks_checksums(path):
    """Return whether a `model.safetensors` has a tensor without checksum."""
    if not (path / "model.safetensors").is_file():
        return False
    content = (path / "model.safetensors").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    checksums = json.loads(header.pop("__metadata__", {}).get("crc32", "{}"))
    return not header.keys() <= checksums.keys()


# === The run ===


def build(root):
    """Write the whole checkpoints and return {form: path}."""
    import damaged_files

    forms = damaged_files.build_forms(root)
    for ending, kind in ((".tar.gz", "gztar"), (".zip", "zip")):
        path = shutil.make_archive(root / "model", kind, forms["huggingface"])
        forms[ending] = pathlib.Path(path)
    return {kind.form: forms[kind.form] for kind in KINDS.values()}


def fuzz(mutations, forms, scratch):
    """Run pairs of kind and seed in a process, and in a new one if that ends."""
    outcomes = []
    # Spawned, because a fork of TensorFlow may hang.
    context = multiprocessing.get_context("spawn")
    while waiting := mutations[len(outcomes) :]:
        with concurrent.futures.ProcessPoolExecutor(
            1, context, initializer=start, initargs=(forms, str(scratch))
        ) as pool:
            futures = [pool.submit(run, *mutation) for mutation in waiting]
            try:
                outcomes += (future.result() for future in futures)
            except BrokenProcessPool:
                failed = Outcome(*mutations[len(outcomes)], [], "crash", "")
                outcomes.append(failed)
    return outcomes


def main(given=None):
    """Run, print the outcomes of each kind, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one mutation again, such as index:17")
    options = parser.parse_args(given)
    numbers = itertools.count(options.seed * 10**6)
    kinds = itertools.islice(itertools.cycle(KINDS), options.mutations)
    mutations = [(kind, next(numbers)) for kind in kinds]
    if options.only:
        kind, seed = options.only.split(":")
        mutations = [(kind, int(seed))]
    with tempfile.TemporaryDirectory(prefix="fuzz_") as root:
        scratch = pathlib.Path(root) / "scratch"
        scratch.mkdir()
        outcomes = fuzz(mutations, build(pathlib.Path(root)), scratch)
    counts = collections.Counter((x.kind, x.result) for x in outcomes)
    for (kind, result), count in sorted(counts.items()):
        print(f"{kind:12} {result:14} {count}")
    for x in outcomes:
        if x.result in FAILURES or options.only:
            changes = "; ".join(x.changes)
            print(f"{x.result}: --only {x.kind}:{x.seed} ({changes}) {x.detail}")
    return any(x.result in FAILURES for x in outcomes)


if __name__ == "__main__":
    sys.exit(main())
