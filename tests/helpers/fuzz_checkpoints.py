"""Load many small checkpoints, each damaged at random, and see what comes of it.

    python tests/fuzz_checkpoints.py --mutations 10000 --seed 0 --workers 4

Each mutation changes the bytes of one file: flips, truncations, insertions,
deletions, doubled, zeroed and swapped ranges. It has to end in one clear error of
this package, or in a model with the numbers that the whole checkpoint holds. The
script ends with status 1 if one ended in other numbers, in an error of a library, in
the end of the process, or not at all.

What is not looked for, as the files do not tell (counted as `no checksum`):

- Other numbers in HDF5 files (a preset's `model.weights.h5`) and in `.safetensors`
  files of other writers: they hold no checksums. Crashes, hangs and unclear errors
  count there, too. In `.keras` files HDF5 is guarded by the CRC32 of the zip, in the
  `.safetensors` files that this package writes each tensor by its CRC32.
- Other numbers of a tensor in such a file whose checksum was lost by the same
  mutation (`"crc32"` became `"crc42"`).
- In configs, another model of the same weights: another number of layers or heads,
  another activation, another rate. No tensor tells. The weights must be the same.
- Other tokens in vocabularies.
"""

import argparse
import collections
import contextlib
import dataclasses
import itertools
import json
import multiprocessing
import os
import pathlib
import queue
import random
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

SECONDS = 20  # For one mutation; it takes 0.02 to 0.3.
MEMORY = 3 * 2**30  # For one mutation, beyond what the process has before.
FULL_LOAD = 20  # One of so many is loaded by `load_checkpoint` as well.


@dataclasses.dataclass(frozen=True)
class Kind:
    """What is damaged.

    Attributes:
        form: string, the checkpoint (see `harm_files.build_forms`).
        file: string, the file in it, or `None` if the checkpoint is one file.
        times: int, how often in comparison with the other kinds.
        guarded: bool. Whether a checksum guards the numbers.
        tokenizer: bool. Whether the tokenizer is read, too.
    """

    form: str
    file: str | None
    times: int = 2
    guarded: bool = True
    tokenizer: bool = False


KINDS = {
    "index": Kind("google", "albert_model.ckpt.index", 4),
    "data": Kind("google", "albert_model.ckpt.data-00000-of-00001", 3),
    "index_zh": Kind("albert_zh", "albert_model.ckpt.index"),
    "module": Kind("hub", "variables/variables.index"),
    "config": Kind("google", "albert_config.json", 3),
    "safetensors": Kind("huggingface", "model.safetensors", 4),
    "hf_config": Kind("huggingface", "config.json"),
    "hf_shard": Kind("sharded", "model-00001-of-00002.safetensors", guarded=False),
    "hf_shards": Kind("sharded", "model.safetensors.index.json"),
    "hf_tokens": Kind("huggingface", "tokenizer_config.json", 1, tokenizer=True),
    "vocab": Kind("huggingface", "vocab.txt", 1, tokenizer=True),
    "pieces": Kind("pieces", "30k-clean.model", 2, tokenizer=True),
    "preset": Kind("kerashub", "config.json", 1),
    "preset_h5": Kind("kerashub", "model.weights.h5", guarded=False),
    "task": Kind("keras", "task.json", 1),
    "keras_file": Kind("keras_file", None),
    "tar_gz": Kind(".tar.gz", None),
    "zip": Kind(".zip", None),
}
ARCHIVED = "huggingface"  # The form that archives are made of.

FINE = ("clear error", "same weights", "no checksum")
FAILURES = ("other numbers", "library error", "crash", "hang")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of one mutation.

    Attributes:
        kind, seed: what it was, so that it can be done again.
        changes: list of strings, what was done to the bytes.
        result: one of `FINE` and `FAILURES`.
        detail: string, the message or where the error came from.
    """

    kind: str
    seed: int
    changes: list
    result: str
    detail: str = ""


# === Mutations ===


def flip_bit(content, chance):
    position = chance.randrange(len(content))
    content[position] ^= 1 << chance.randrange(8)
    return f"flip a bit of byte {position}"


def set_byte(content, chance):
    position, value = chance.randrange(len(content)), chance.choice([0, 1, 127, 255])
    content[position] = value
    return f"set byte {position} to {value}"


def truncate(content, chance):
    length = chance.randrange(len(content))
    del content[length:]
    return f"cut to {length} bytes"


def insert(content, chance):
    position = chance.randrange(len(content) + 1)
    piece = chance.randbytes(chance.choice([1, 2, 8, 100]))
    content[position:position] = piece
    return f"insert {len(piece)} bytes at {position}"


def delete(content, chance):
    start, end = _range(content, chance)
    del content[start:end]
    return f"delete {start} to {end}"


def double(content, chance):
    start, end = _range(content, chance)
    content[end:end] = content[start:end]
    return f"double {start} to {end}"


def zero(content, chance):
    start, end = _range(content, chance)
    content[start:end] = bytes(end - start)
    return f"zero {start} to {end}"


def swap(content, chance):
    size = chance.choice([1, 4, 16, 64, 256])
    if len(content) < 2 * size:
        return "nothing"
    first, second = sorted(chance.randrange(len(content) - size + 1) for _ in range(2))
    if second < first + size:
        return "nothing"
    a, b = content[first : first + size], content[second : second + size]
    content[first : first + size], content[second : second + size] = b, a
    return f"swap {size} bytes of {first} and {second}"


def swap_numbers(content, chance):
    """Another digit where there is one: what text and headers are made of."""
    digits = [i for i, byte in enumerate(content) if 48 <= byte < 58]
    if not digits:
        return "nothing"
    position = chance.choice(digits)
    content[position] = 48 + chance.randrange(10)
    return f"another digit at {position}"


def _range(content, chance):
    start = chance.randrange(len(content))
    return start, min(len(content), start + chance.choice([1, 4, 16, 64, 256, 2048]))


MUTATIONS = (
    *(flip_bit, set_byte, truncate, insert, delete, double, zero),
    *(swap, swap_numbers),
)


def mutate(content, chance):
    """Change bytes once or a few times, and say how."""
    content, changes = bytearray(content), []
    for _ in range(chance.choice([1, 1, 1, 2, 5])):
        if content:
            changes.append(chance.choice(MUTATIONS)(content, chance))
    return bytes(content), changes


# === Workers ===


class Hang(BaseException):
    """No `Exception`, so that nothing takes it for a damaged file."""


def work(connection, forms, scratch):
    """The main function of a worker: answers each (kind, seed) with an `Outcome`."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(os.devnull, "w") as silent:
        os.dup2(silent.fileno(), 2)
    worker = Worker(forms, scratch)
    connection.send("ready")
    while mutation := connection.recv():
        connection.send(worker.run(*mutation))


class Worker:
    """What one process keeps between mutations."""

    def __init__(self, forms, scratch):
        import harm_files

        import albert_tf

        self.harm_files, self.albert_tf = harm_files, albert_tf
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))
        tempfile.tempdir = str(self.folder)
        self.forms = forms
        self.models = {}
        with open("/proc/self/statm") as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
        signal.signal(signal.SIGALRM, self._stop)

    def _stop(self, *_):
        raise Hang

    def model(self, form):
        """A model of the form to fill, and what it has to be filled with."""
        if form not in self.models:
            model = self.albert_tf.load_checkpoint(self.forms[form])
            self.models[form] = model, model.get_weights()
        return self.models[form]

    def run(self, kind, seed):
        """Do one mutation and load what came of it."""
        file, source = KINDS[kind].file, self.forms[KINDS[kind].form]
        path = self.folder / (source.name if file is None else f"{kind}_{seed}")
        damaged = path if file is None else path / file
        shutil.copy(source, path) if file is None else shutil.copytree(source, path)
        chance = random.Random(f"{kind} {seed}")
        content, changes = mutate(damaged.read_bytes(), chance)
        damaged.write_bytes(content)
        try:
            signal.alarm(SECONDS)
            result, detail = self.load(path, KINDS[kind], seed)
        finally:
            signal.alarm(0)
            path.unlink() if file is None else shutil.rmtree(path)
        return Outcome(kind, seed, changes, result, detail)

    def load(self, path, kind, seed):
        model, weights = self.model(kind.form)
        try:
            checkpoint = self.albert_tf.checkpoints.open_checkpoint(path)
            # A config may have become that of another model of the same weights.
            if checkpoint.arguments == self.arguments(kind.form):
                checkpoint.load_into(model)
                loaded = model
            else:
                loaded = self.albert_tf.load_checkpoint(path)
            if kind.tokenizer:
                checkpoint.tokenizer()
            if seed % FULL_LOAD == 0:
                self.albert_tf.inspect_checkpoint(path)
                loaded = self.albert_tf.load_checkpoint(path)
        except Hang:
            return "hang", f"more than {SECONDS} s"
        except Exception as error:
            if faults := self.harm_files.faults(error, path):
                where = traceback.extract_tb(error.__traceback__)[-1]
                message = f"{type(error).__name__}: {str(error)[:200]}"
                return "library error", (
                    f"{message} ({'; '.join(faults)}; {where.name})"
                )
            return "clear error", str(error)
        if same(loaded.get_weights(), weights):
            return "same weights", ""
        is_known = not kind.guarded or lacks_checksums(path)
        return "no checksum" if is_known else "other numbers", ""

    def arguments(self, form):
        if (form, "arguments") not in self.models:
            checkpoint = self.albert_tf.checkpoints.open_checkpoint(self.forms[form])
            self.models[form, "arguments"] = dict(checkpoint.arguments)
        return self.models[form, "arguments"]


def same(found, expected):
    return len(found) == len(expected) and all(
        a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(found, expected, strict=True)
    )


def lacks_checksums(path):
    """Whether a directory's `model.safetensors` has a tensor without checksum."""
    if not (path / "model.safetensors").is_file():
        return False
    content = (path / "model.safetensors").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    checksums = json.loads(header.pop("__metadata__", {}).get("crc32", "{}"))
    return not header.keys() <= checksums.keys()


# === The run ===


def plan(mutations, seed):
    """(kind, seed of the mutation), kinds in turn by how often they are wanted."""
    turns = [name for name, kind in KINDS.items() for _ in range(kind.times)]
    numbers = itertools.count(seed * 10**6)
    return [
        (kind, next(numbers))
        for kind, _ in zip(itertools.cycle(turns), range(mutations), strict=False)
    ]


def build(root):
    """The whole checkpoints, {form: path}."""
    import harm_files

    forms = harm_files.build_forms(root)
    for ending in (".tar.gz", ".zip"):
        forms[ending] = harm_files.pack(forms[ARCHIVED], root / f"model{ending}")
    forms["pieces"] = harm_files.copy(forms["google"], root, "pieces")
    (forms["pieces"] / "vocab.txt").unlink()
    (forms["pieces"] / "30k-clean.model").write_bytes(harm_files.sentence_pieces())
    return forms


def fuzz(mutations, workers, forms, scratch, report):
    """Run mutations in worker processes.

    Args:
        mutations: list of (kind, seed).
        workers: int.
        forms: dict, of `build`.
        scratch: path of a directory for what the workers write.
        report: callable, given each `Outcome` as it comes.
    """
    waiting = queue.SimpleQueue()
    for mutation in mutations:
        waiting.put(mutation)
    threads = [
        threading.Thread(target=supervise, args=(waiting, forms, scratch, report))
        for _ in range(workers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def supervise(waiting, forms, scratch, report):
    """Keep one process at work, and start another when it crashes or hangs."""
    process = None
    with contextlib.suppress(queue.Empty):
        while True:
            mutation = waiting.get_nowait()
            if process is None:
                process, connection = start(forms, scratch)
            outcome = ask(process, connection, mutation)
            report(outcome)
            if outcome.result in ("crash", "hang"):
                process.kill()
                process.join()
                process = None
    if process is not None:
        connection.send(None)
        process.join()


def start(forms, scratch):
    # Spawned, as a fork of TensorFlow may hang by itself.
    context = multiprocessing.get_context("spawn")
    connection, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs, forms, scratch), daemon=True)
    process.start()
    theirs.close()
    connection.recv()  # That it is ready.
    return process, connection


def ask(process, connection, mutation):
    """The outcome of a mutation, whatever becomes of the process."""
    try:
        connection.send(mutation)
        # Native code does not notice the worker's own alarm.
        if connection.poll(SECONDS + 10):
            return connection.recv()
    except (EOFError, OSError):
        process.join()
        detail = f"the process ended with {process.exitcode}"
        return Outcome(*mutation, [], "crash", detail)
    return Outcome(*mutation, [], "hang", "in native code")


def table_of(outcomes):
    """A table of how many of each kind ended how."""
    from rich.table import Table

    counts = collections.Counter((x.kind, x.result) for x in outcomes)
    table = Table("what is damaged", *FINE, *FAILURES)
    for kind in (*KINDS, "all"):
        row = [
            sum(n for (k, r), n in counts.items() if r == result and kind in (k, "all"))
            for result in (*FINE, *FAILURES)
        ]
        table.add_row(kind, *(f"{number:,}" if number else "" for number in row))
    return table


def show_failures(console, outcomes):
    for outcome in outcomes:
        if outcome.result in FAILURES:
            changes = "; ".join(outcome.changes)
            console.print(
                f"{outcome.result}: --only {outcome.kind}:{outcome.seed} ({changes}) "
                f"{outcome.detail}",
                markup=False,
                soft_wrap=True,
            )


def arguments(given=None):
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--only", help="one mutation again, such as index:17")
    return parser.parse_args(given)


def main(given=None):
    """Run, print the table and return the status to exit with."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress

    options, console, outcomes = arguments(given), Console(), []
    mutations = plan(options.mutations, options.seed)
    if options.only:
        kind, seed = options.only.split(":")
        mutations = [(kind, int(seed))]
    started = time.monotonic()
    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    quiet = not sys.stdout.isatty()
    with (
        tempfile.TemporaryDirectory(prefix="fuzz_") as root,
        Progress(*columns, console=console, disable=quiet) as progress,
    ):
        forms = build(pathlib.Path(root))
        task = progress.add_task("Mutations", total=len(mutations))

        def report(outcome):
            outcomes.append(outcome)
            progress.advance(task)

        workers = min(options.workers, len(mutations))
        fuzz(mutations, workers, forms, root, report)
    console.print(table_of(outcomes))
    show_failures(console, outcomes)
    if options.only:
        console.print(outcomes[0], markup=False)
    console.print(
        f"{len(outcomes):,} mutations in {time.monotonic() - started:.0f} s, "
        f"{options.workers} workers, seed {options.seed}"
    )
    return any(outcome.result in FAILURES for outcome in outcomes)


if __name__ == "__main__":
    sys.exit(main())
