"""Several devices, hosts and nodes: the same weights and records as on one."""

import hashlib
import importlib.util
import os
import pathlib
import socket
import subprocess
import sys

import numpy as np
import pytest
from made_records import write
from small_corpus import write_corpus, write_vocabulary

import zh
from albert_tf.pretraining import PretrainingData, make_pretraining_data

ROOT = pathlib.Path(__file__).parents[2]

# In separate processes, since devices and Keras' backend are chosen at the start.
COMMON = """
import sys
import numpy as np
from made_records import *
from albert_tf.pretraining import *
from albert_tf.training import scheduled_optimizer

def train(batches, steps=20):
    pretrainer = model()
    # Keras would clip the gradients of each device by themselves.
    optimizer = scheduled_optimizer("lamb", 1e-3, steps, global_clipnorm=None)
    pretrainer.compile(optimizer)
    # With an end: of an endless dataset Keras looks at one batch and loses it.
    pretrainer.fit(batches.take(steps), verbose=0, shuffle=False)
    return pretrainer

def save(out, pretrainer):
    np.savez(out, *map(keras.ops.convert_to_numpy, pretrainer.weights))

folder, data, *options = sys.argv[1:]
"""
MIRRORED = """
cpu = tf.config.list_physical_devices("CPU")[0]
devices = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(cpu, devices)
batches = PretrainingRecords(data).dataset(16, seed=5)
save(f"{folder}/one.npz", train(batches))
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
assert strategy.num_replicas_in_sync == 2
with strategy.scope():
    save(f"{folder}/two.npz", train(batches))
"""
# Each process reads its own files; a step is over the batches of all.
JAX = """
import jax
processes, number, port = map(int, options)
if processes > 1:
    keras.distribution.initialize(f"127.0.0.1:{port}", processes, number)
    assert jax.process_count() == processes
    # Each feeds its own part of the records.
    keras.distribution.set_distribution(
        keras.distribution.DataParallel(auto_shard_dataset=False)
    )
# `initialize` draws a seed for all, which is another in each run.
keras.utils.set_random_seed(7)
records = PretrainingRecords(data)
parts = [records.dataset(8, seed=5, num_shards=2, shard=shard) for shard in range(2)]
batches = parts[number]
if processes == 1:
    batches = tf.data.Dataset.zip(*(x.take(20) for x in parts)).map(
        lambda *parts: tf.nest.map_structure(lambda *x: tf.concat(x, 0), *parts)
    )
pretrainer = train(batches)
if number == 0:
    save(f"{folder}/{['one', 'two'][processes - 1]}.npz", pretrainer)
"""


def start(code, *arguments, **environment):
    path = f"{ROOT}:{ROOT / 'tests' / 'helpers'}"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors[-2000:]
    return output


def assert_same_weights(folder):
    one, two = (np.load(folder / f"{name}.npz") for name in ("one", "two"))
    assert one.files == two.files and len(one.files) > 10
    assert max(np.abs(one[name] - two[name]).max() for name in one.files) < 1e-5


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write(tmp_path_factory.mktemp("data") / "records", documents=300)


@pytest.mark.nightly
def test_two_devices_train_the_weights_of_one(data, tmp_path):
    finish(start(COMMON + MIRRORED, tmp_path, data))
    assert_same_weights(tmp_path)


@pytest.mark.nightly
def test_two_hosts_on_jax_train_the_weights_of_one(data, tmp_path):
    pytest.importorskip("jax", reason="JAX is not installed (extra [jax])")
    environment = {
        **{"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
        # To optimize takes longer than what is optimized.
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    }
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
    hosts = [
        start(COMMON + JAX, tmp_path, data, *options, port, **environment)
        for options in ((2, 0), (2, 1), (1, 0))
    ]
    for host in hosts:
        finish(host)
    assert_same_weights(tmp_path)


# === Records made on Ray ===

RAY = """
import os, pathlib, signal, sys, threading, time
from ray.cluster_utils import Cluster
import zh
from albert_tf.pretraining import PretrainingData, make_pretraining_data

vocabulary, corpus, output = sys.argv[1:]
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
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
    vocabulary, sequence_length=32, block_bytes=3000, segmenter=zh.Jieba()
)
manifest = make_pretraining_data(
    [corpus], output, made, engine="ray", workers=2, address=cluster.address
)
print("killed", len(killed), "shards", len(manifest["shards"]))
cluster.shutdown()
"""


@pytest.mark.nightly
@pytest.mark.skipif(
    not importlib.util.find_spec("ray") or not pathlib.Path("/proc/self").exists(),
    reason="needs Ray (extra [ray]), whose workers are found in /proc",
)
def test_two_nodes_and_a_killed_worker_make_the_same_records(tmp_path):
    vocabulary, corpus = tmp_path / "vocab.txt", tmp_path / "corpus.txt"
    write_vocabulary(vocabulary)
    write_corpus(corpus, documents=300)
    assert "killed 1 " in finish(start(RAY, vocabulary, corpus, tmp_path / "ray"))
    made = PretrainingData(
        str(vocabulary), sequence_length=32, block_bytes=3000, segmenter=zh.Jieba()
    )
    make_pretraining_data([str(corpus)], tmp_path / "here", made)
    ray, here = (
        {
            file.name: hashlib.sha256(file.read_bytes()).hexdigest()
            for file in (tmp_path / name).iterdir()
            if file.suffix == ".tfrecord" or file.name == "manifest.json"
        }
        for name in ("ray", "here")
    )
    assert ray == here and len(here) > 9


def test_missing_ray_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    write_vocabulary(tmp_path / "vocab.txt")
    write_corpus(tmp_path / "a.txt", documents=1)
    made, files = (
        PretrainingData(str(tmp_path / "vocab.txt")),
        [str(tmp_path / "a.txt")],
    )
    with pytest.raises(ImportError, match=r"albert-tf\[ray\]"):
        make_pretraining_data(files, tmp_path / "out", made, engine="ray")
