"""Records made on a Ray cluster of two nodes, of which a worker is killed."""

import hashlib
import importlib.util
import pathlib
import subprocess
import sys

import pytest

# Not imported here, where it would stay: the test's own process does.
if importlib.util.find_spec("ray") is None:
    pytest.skip("Ray is not installed (extra [ray])", allow_module_level=True)
if not pathlib.Path("/proc/self/cmdline").exists():
    pytest.skip("workers are found in /proc", allow_module_level=True)

from small_corpus import write_corpus, write_vocabulary

import zh
from albert_tf.pretraining import PretrainingData, make_pretraining_data

# In a process of its own, for Ray starts servers and threads in the one that uses it.
SCRIPT = """
import os, pathlib, signal, sys, threading, time
sys.path[:0] = {path!r}
from ray.cluster_utils import Cluster
import zh
from albert_tf.pretraining import PretrainingData, make_pretraining_data

cluster = Cluster(initialize_head=True, head_node_args={{"num_cpus": 1}})
cluster.add_node(num_cpus=1)
cluster.wait_for_nodes()
killed = []

def kill_one():
    while not killed:
        for file in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if file.read_bytes().startswith(b"ray::call_pickled"):
                    os.kill(int(file.parent.name), signal.SIGKILL)
                    killed.append(file)
                    return
            except OSError:
                pass  # It has ended.
        time.sleep(0.01)

threading.Thread(target=kill_one, daemon=True).start()
made = PretrainingData(
    {vocabulary!r}, sequence_length=32, block_bytes=3000, segmenter=zh.Jieba()
)
manifest = make_pretraining_data(
    [{corpus!r}], {output!r}, made, engine="ray", workers=2, address=cluster.address
)
print("killed", len(killed), "shards", len(manifest["shards"]))
cluster.shutdown()
"""


def checksums(folder):
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.glob("*.tfrecord")
    }


@pytest.mark.slow
def test_two_nodes_and_a_killed_worker_make_the_same_records(tmp_path):
    vocabulary = tmp_path / "vocab.txt"
    write_vocabulary(vocabulary)
    corpus = tmp_path / "corpus.txt"
    write_corpus(corpus, documents=300)
    script = SCRIPT.format(
        path=[str(pathlib.Path(zh.__file__).parents[1])],
        vocabulary=str(vocabulary),
        corpus=str(corpus),
        output=str(tmp_path / "ray"),
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "killed 1 shards" in done.stdout
    made = PretrainingData(
        str(vocabulary), sequence_length=32, block_bytes=3000, segmenter=zh.Jieba()
    )
    make_pretraining_data([str(corpus)], tmp_path / "here", made)
    here = checksums(tmp_path / "here")
    assert checksums(tmp_path / "ray") == here and len(here) > 8
    manifests = [tmp_path / name / "manifest.json" for name in ("ray", "here")]
    assert manifests[0].read_text() == manifests[1].read_text()


def test_without_ray_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n我\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text("我。我。\n", encoding="utf-8")
    made = PretrainingData(str(vocabulary))
    with pytest.raises(ImportError, match=r"albert-tf\[ray\]"):
        make_pretraining_data(
            [str(tmp_path / "a.txt")], tmp_path / "out", made, engine="ray"
        )
