"""Several devices and nodes: the same weights and records as on one."""

import importlib.util
import pathlib

import pytest
from made_records import write
from processes import run_python
from small_corpus import write_corpus, write_vocabulary

import zh
from albert_tf.pretraining import PretrainingData, make_pretraining_data

# In a separate process, since devices are chosen at the start.
MIRRORED = """
import numpy as np
import tensorflow as tf

# Before an import that makes a tensor.
cpu = tf.config.list_physical_devices("CPU")[0]
devices = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(cpu, devices)

import keras
from small_classifier import LABELS, TEXTS, small_classifier

def train():
    classifier = small_classifier(dropout=0.0)
    classifier.compile(keras.optimizers.SGD(0.1))
    options = {"batch_size": 2, "epochs": 4, "shuffle": False, "verbose": 0}
    classifier.fit(TEXTS[:6], LABELS[:6], **options)
    return classifier.get_weights()

keras.utils.set_random_seed(1)
one = train()
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
assert strategy.num_replicas_in_sync == 2
keras.utils.set_random_seed(1)
with strategy.scope():
    two = train()
assert len(one) == len(two) > 10
assert max(np.abs(x - y).max() for x, y in zip(one, two)) < 1e-6
"""
PARALLEL = """
import sys
import keras
import numpy as np
from made_records import LENGTH, model
from albert_tf.pretraining import PretrainingRecords, Run, pretrain
from albert_tf.training import scheduled_optimizer

records = PretrainingRecords(sys.argv[1])

def train(output):
    network = model()
    network.compile(scheduled_optimizer("lamb", 1e-3))
    run = Run(
        steps=20, batch_tokens=16 * LENGTH, interval=20, learning_rate=1e-3,
        steps_per_call=2,
    )
    pretrain(network, records, output, run, verbose=0)
    return network.get_weights()

one = train(sys.argv[2])
devices = keras.distribution.list_devices()
assert len(devices) == 2
keras.distribution.set_distribution(keras.distribution.DataParallel(devices=devices))
two = train(sys.argv[3])
assert max(np.abs(x - y).max() for x, y in zip(one, two)) < 1e-5
"""


@pytest.mark.nightly
def test_two_devices_fine_tune_the_weights_of_one():
    run_python(MIRRORED)


@pytest.mark.nightly
def test_two_devices_pretrain_the_weights_of_one(tmp_path):
    pytest.importorskip("jax")
    records = write(tmp_path / "records", documents=300)
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    arguments = records, tmp_path / "one", tmp_path / "two"
    run_python(PARALLEL, *arguments, KERAS_BACKEND="jax", **flags)


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

os.environ["RAY_ADDRESS"] = cluster.address
threading.Thread(target=kill_one, daemon=True).start()
made = PretrainingData(
    vocabulary, sequence_length=32, block_bytes=3000, segmenter=zh.Jieba()
)
manifest = make_pretraining_data(
    [corpus], output, made, engine="ray", workers=2
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
    vocabulary, corpus = str(tmp_path / "vocab.txt"), tmp_path / "corpus.txt"
    write_vocabulary(tmp_path / "vocab.txt")
    write_corpus(corpus, documents=300)
    assert "killed 1 " in run_python(RAY, vocabulary, corpus, tmp_path / "ray")
    made = PretrainingData(
        vocabulary, sequence_length=32, block_bytes=3000, segmenter=zh.Jieba()
    )
    make_pretraining_data([str(corpus)], tmp_path / "here", made)
    ray, here = (
        {
            str(file.relative_to(tmp_path / name)): file.read_bytes()
            for pattern in ("pretrain-*/*", "manifest.json")
            for file in (tmp_path / name).glob(pattern)
        }
        for name in ("ray", "here")
    )
    assert ray == here and len(here) > 9
