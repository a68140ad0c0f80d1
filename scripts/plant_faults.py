"""Plant faults in the source, one at a time, and list the tests that catch each.

Each fault breaks one promise to users. It is planted in a copy of the tracked files,
and pytest runs there: first tests that should catch it, by default those of the same
folder, and all tests if none of them fails. The exit status is 1 if a fault is missed.

Example: python scripts/plant_faults.py --stop-at-first
Example: python scripts/plant_faults.py group_index sop_inverted
"""

import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]

# Name | folder or file, perhaps arguments of pytest | the promise that is broken.
# Then the text to replace, which must occur there exactly once, and the new text.
TABLE = r"""
query_key_swapped | albert_tf/checkpoints -k golden | query and key are not mixed up
- for x in ("query", "key", "value"))
+ for x in ("key", "query", "value"))
epsilon_1e_5 | albert_tf/layers | the epsilon of LayerNorm is that of the original
- LAYER_NORM_EPSILON = 1e-12
+ LAYER_NORM_EPSILON = 1e-5
padding_attended | albert_tf/backbone tests/models -k depend | padding changes no output
- states.append(block(states[-1], padding_mask=mask))
+ states.append(block(states[-1]))
activation_ignored | albert_tf/layers | `hidden_act` of a config is obeyed
- return self.activation(x)
+ return gelu_approximate(x)
group_index | albert_tf/backbone | each layer has the weights of its own group
- return int(layer / (num_layers / num_groups))
+ return layer % num_groups
pre_ln_ignored | albert_tf/checkpoints -k golden | a pre-LN checkpoint is run as pre-LN
- "preln": True
+ "preln": False
hf_not_transposed | albert_tf/checkpoints | kernels of Hugging Face are transposed
- kernel = transposed(f"{name}.weight")
+ kernel = f"{name}.weight"
weight_left_random | albert_tf/checkpoints -k golden | every weight is loaded
- weight.assign(tensors.to_weight([self.read(x) for x in tensors.names]))
+ weight.assign(weight)
overwritten | albert_tf/checkpoints | saving overwrites no other model
- if not folder.is_dir() or (folder / BACKUP).exists():
+ if True:
half_file | albert_tf/files.py -k test_files | an interrupted write changes nothing
-         yield folder / path.name
-         os.replace(folder / path.name, path)
+         yield path
lowercase_always | albert_tf/tokenizers -k "not sentence" | cased text stays cased
- return tf.strings.lower(cleaned) if self.lowercase else cleaned
+ return tf.strings.lower(cleaned)
fullwidth_to_ascii | albert_tf/tokenizers -k "not sentence" | full-width forms stay
- text = tf_text.normalize_utf8(text, "NFD")
+ text = tf_text.normalize_utf8(text, "NFKD")
accents_kept | albert_tf/tokenizers -k sentence | SentencePiece clean-up drops accents
- text = tf.strings.regex_replace(text, f"{combining_marks()}+", "")
+ combining_marks()
offset_off_by_one | albert_tf/tokenizers | `text[start:end]` is the token
- ends.with_values(limit - row_start)
+ ends.with_values(limit - row_start - 1)
offsets_not_mapped | albert_tf/tokenizers | offsets count in the user's own string
- sizes = tf.strings.length(self.cleaned)
+ sizes = tf.strings.length(self.unique)
truncation_of_shorter | albert_tf/preprocessing | the longer text of a pair is truncated
- tf.maximum(room - second_length, half)
+ tf.maximum(room - second_length, 0)
window_merge_shifted | albert_tf/preprocessing | a token in a window has its own output
- shift = row_starts + 1 - self.starts
+ shift = row_starts - self.starts
separator_masked | albert_tf/layers tests/preprocessing | [SEP] is never masked
-                 tokenizer.sep_token_id,
+
ngrams_uniform | albert_tf/layers -k mask | n-grams are 6/11, 3/11 and 2/11
- weights = 1 / np.arange(1, ngram + 1)
+ weights = np.ones(ngram)
always_mask_token | albert_tf/layers -k mask | 80 % [MASK], 10 % random
- what < self.mask_token_rate,
+ what < 1.0,
words_masked_in_part | albert_tf/layers -k mask | words are masked whole
- starts = selectable & (after_a_gap | word_starts)
+ starts = selectable
order_not_restored | albert_tf/trainers tests/models -k depend | outputs in input order
- row_of_example = np.argsort(self.order)
+ row_of_example = self.order
last_batch_dropped | albert_tf/trainers -k batching | no text is lost
- return np.array([*bounds, len(lengths)])
+ return np.array(bounds if len(bounds) > 1 else [0, len(lengths)])
labels_not_moved | albert_tf/trainers -k datasets | labels stay with texts
- return self.pad(*features)
+ x = features[:2]
+         y = self.features[2:]
+         y = tf.nest.map_structure(lambda y: tf.gather(y, tf.sort(rows)), y)
+         return self.pad(*x, *y)
words_shifted | albert_tf_lite tests/preprocessing | words begin where they were cut
- (len(text) + 1 for text in texts[:-1])
+ (len(text) for text in texts[:-1])
jieba_words_shifted | albert_tf_lite tests/preprocessing tests/zh | so do words of zh
- return np.cumsum([0, *lengths[:-1]], dtype=np.int64)[:-1]
+ return np.cumsum(lengths[:-1], dtype=np.int64)
sop_inverted | albert_tf/pretraining -k "pairs or make" | label 0 is "in order"
- "sop": ("next", "previous")
+ "sop": ("previous", "next")
seed_by_process | albert_tf/pretraining -k make | records are the same for any `workers`
- default_rng([settings.seed, index, duplicate])
+ default_rng([settings.seed, __import__("os").getpid(), duplicate])
sequences_lost | albert_tf/pretraining -k batches | dev has each sequence once
- for start in range(0, len(rows), size):
+ for start in range(0, len(rows) - size, size):
resume_from_start | albert_tf/pretraining -k training | a resumed run repeats no batch
- training_data(batches, state.steps, calls - state.steps)
+ training_data(batches, 0, calls - state.steps)
rate_not_decayed | albert_tf/training -k optimizers | the learning rate falls to 0
- ops.minimum(warmup, decay)
+ warmup
no_trust_ratio | albert_tf/training -k lamb | LAMB scales updates by the trust ratio
- update = _times_trust_ratio(update, w, self._parts[index])
+ pass
sample_weight_ignored | albert_tf/trainers -k datasets | weights count
- weights = packed.of_rows(weights)
+ weights = packed.of_rows(weights * 0 + 1)
entities_merged | albert_tf_lite tests/lite -k tagging | adjacent entities stay two
- second[0] in "IE"
+ second[0] in "BIE"
answer_too_long | albert_tf/models -k question | an answer ends at its last token
- side="left") - 1
+ side="left")
null_threshold_ignored | albert_tf_lite/spans.py tests/models -k question | it counts
- null - float(threshold or 0.0)
+ null
temperature_ignored | albert_tf_lite/answers.py tests/export -k engines | it counts
- outputs / settings.get("temperature", 1.0)
+ outputs
threshold_exclusive | albert_tf/models -k multi | at its threshold a class is given
- chosen = probabilities >= tf.cast
+ chosen = probabilities > tf.cast
exit_of_layer_before | albert_tf/tools -k exit | answers are of the exit layer
- outputs = task.classify_states([hidden], state.mask)
-         labels
+ outputs = task.classify_states([state.hidden], state.mask)
+         labels
onnx_without_mask | albert_tf/export -k engines | an ONNX file ignores padding
- scores = self.node("Add", scores, self.key_bias)
+ pass
saved_model_without_mask | albert_tf/export -k saved_model | so does a SavedModel
- inputs = dict(zip(task.input, values, strict=True))
+ inputs = dict(zip(task.input, values, strict=True))
+         inputs["padding_mask"] = tf.ones_like(inputs["padding_mask"])
labels_sorted | albert_tf/models tests/export -k engines | labels keep their order
- "labels": self.class_names,
-             # The
+ "labels": sorted(self.class_names),
+             # The
int8_of_nothing | albert_tf/export -k engines | an int8 file has a quarter of the size
- self._weights.get(node.input[place]) if place is not None else None
+ None
lite_lowercase_off | albert_tf_lite tests/export -k engines | files lower-case
- self.tokenizer = WordPieceTokenizer(vocabulary, **tokenizer)
+ self.tokenizer = WordPieceTokenizer(vocabulary, False)
exit_status_0 | albert_tf_cli | a command that fails exits with 1
- sys.exit(1)
+ sys.exit(0)
answers_beside_others | albert_tf_cli -k predict | an answer is beside its own text
- zip(_examples(x), block, strict=True)
+ zip(_examples(x), block[::-1], strict=True)
answers_of_another_run | albert_tf_cli -k streaming | only the same command resumes
- before != header and lines.peek(1)
+ False
"""


class Fault(NamedTuple):
    name: str
    promise: str
    place: str  # The folder or file with the text.
    arguments: list  # Of pytest, for the tests to run first.
    old: str
    new: str

    def find(self):
        """Return the path of the one file that holds the old text."""
        files = [ROOT / self.place, *sorted((ROOT / self.place).rglob("*.py"))]
        counts = {x: x.read_text("utf-8").count(self.old) for x in files if x.is_file()}
        found = [file.relative_to(ROOT) for file in counts if counts[file]]
        if sum(counts.values()) != 1:
            raise ValueError(
                f"{self.name}: this text should occur once in {self.place}, but is in "
                f"{[str(file) for file in found]}. Mend the table.\n{self.old}"
            )
        return found[0]

    def first_tests(self):
        """Return the arguments of pytest for the tests that are run first."""
        folder = "tests/" + re.sub("^albert_tf[_/]", "", self.place)
        if any(x.startswith("tests") for x in self.arguments):
            return self.arguments
        return [folder if (ROOT / folder).is_dir() else "tests", *self.arguments]


def read_faults(table):
    """Return the faults of a table by name, a dict."""
    faults = {}
    for block in re.split(r"\n(?=\w)", table.strip()):
        head, *lines = block.split("\n")
        name, place, promise = head.split(" | ")
        place, *arguments = shlex.split(place)
        old, new = ("\n".join(x[2:] for x in lines if x[0] == sign) for sign in "-+")
        faults[name] = Fault(name, promise, place, arguments, old, new)
    return faults


def find_failing(fault, options):
    """Return the ids of the tests that fail with a fault, a list."""
    with tempfile.TemporaryDirectory(prefix="fault-") as folder:
        tree = pathlib.Path(folder)
        listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
        for name in listed.split("\0"):
            if (ROOT / name).is_file():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, tree / name)
        file = tree / fault.find()
        text = file.read_text("utf-8").replace(fault.old, fault.new)
        file.write_text(text, "utf-8")
        return run_pytest(tree, fault.first_tests(), options) or run_pytest(
            tree, ["tests"], options
        )


def run_pytest(tree, tests, options):
    """Run tests in a folder and return the ids of those that fail, a list."""
    command = [sys.executable, "-m", "pytest", f"-n{options.workers}", "--tb=line"]
    command += ["--dist=loadfile", "-pno:cacheprovider", "-rfE", "-m", options.m]
    command += [*tests, *["-x"] * options.stop_at_first]
    # PYTHONPATH for the processes that tests start, in whatever folder.
    threads = {f"TF_NUM_{kind}_THREADS": "1" for kind in ("INTRAOP", "INTEROP")}
    done = subprocess.run(
        command,
        cwd=tree,
        env={**threads, **os.environ, "PYTHONPATH": str(tree)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    # 5: no tests were selected.
    if done.returncode in (0, 5):
        return []
    if done.returncode == 4:
        raise RuntimeError(f"pytest cannot run {tests}: {done.stdout[-2000:]}")
    failing = re.findall(r"^(?:FAILED|ERROR) (tests/\S+)", done.stdout, re.MULTILINE)
    return failing or [f"pytest ended with status {done.returncode}"]


def main():
    faults = read_faults(TABLE)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="faults to plant; by default all")
    add("-m", metavar="MARKERS", help="by default that of `make test`")
    add("--stop-at-first", action="store_true", help="stop at the first failing test")
    add("--workers", type=int, default=0, help="processes of pytest-xdist")
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(faults)):
        parser.error(f"unknown faults: {unknown}. Known: {', '.join(faults)}")
    if options.m is None:
        makefile = (ROOT / "Makefile").read_text("utf-8")
        options.m = re.search(r"(?ms)^test:.*?-m '([^']*)'", makefile)[1]
    chosen = [faults[name] for name in options.names or faults]
    for fault in chosen:
        fault.find()
    caught = 0
    for fault in chosen:
        start = time.monotonic()
        failing = find_failing(fault, options)
        caught += bool(failing)
        seconds, first = time.monotonic() - start, (failing or ["NOT CAUGHT"])[0]
        row = f"{fault.name:24} {len(failing):4} {seconds:6.1f} s  {first}"
        print(row, flush=True)
    print(f"caught {caught} of {len(chosen)}")
    sys.exit(caught < len(chosen))


if __name__ == "__main__":
    main()
