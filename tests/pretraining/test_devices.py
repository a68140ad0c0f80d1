"""Several devices and hosts: the same weights as on one."""

import os
import pathlib
import socket
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.slow

HERE = str(pathlib.Path(__file__).parents[1] / "helpers")

# In processes of their own, for devices and Keras' backend are chosen at the start.
COMMON = """
import sys
sys.path.insert(0, {here!r})
import numpy as np
from made_records import *
from albert_tf.pretraining import *
from albert_tf.training import *
{first}

def train(batches, steps):
    pretrainer = model()
    # Keras would clip the gradients of each device by themselves.
    optimizer = pretraining_optimizer("lamb", 1e-3, steps, global_clipnorm=None)
    pretrainer.compile(optimizer)
    # With an end: of an endless dataset Keras looks at one batch and loses it.
    pretrainer.fit(batches.take(steps), verbose=0, shuffle=False)
    return pretrainer

def save(out, pretrainer):
    arrays = map(keras.ops.convert_to_numpy, pretrainer.weights)
    np.savez(out, *arrays)

STEPS = 20
records = PretrainingRecords({data!r})
"""

# Before TensorFlow does anything.
LOGICAL_DEVICES = """
devices = {devices}
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * devices
)
"""
MIRRORED = """
batches = records.dataset(16, seed=5)
save({one!r}, train(batches, STEPS))
strategy = tf.distribute.MirroredStrategy([f"CPU:{{i}}" for i in range(devices)])
assert strategy.num_replicas_in_sync == devices
with strategy.scope():
    save({several!r}, train(batches, STEPS))
"""

# Each process reads its own files; a step is over the batches of all.
JAX = """
import jax
processes, number = {processes}, {number}
if processes > 1:
    keras.distribution.initialize("127.0.0.1:{port}", processes, number)
    assert jax.process_count() == processes
    # Each feeds its own part of the records.
    keras.distribution.set_distribution(
        keras.distribution.DataParallel(auto_shard_dataset=False)
    )

# `initialize` draws a seed for all, which is another in each run.
keras.utils.set_random_seed(7)

def local(shard):
    return records.dataset(8, seed=5, num_shards=2, shard=shard)

if processes > 1:
    batches = local(number)
else:
    both = [local(shard).take(STEPS) for shard in range(2)]
    batches = tf.data.Dataset.zip(*both).map(
        lambda *parts: tf.nest.map_structure(lambda *x: tf.concat(x, 0), *parts)
    )
pretrainer = train(batches, STEPS)
if number == 0:
    save({out!r}, pretrainer)
"""


def command(code, data, first="", **values):
    values = {"here": HERE, "data": str(data), **values}
    text = (COMMON + code).format(first=first.format(**values), **values)
    return [sys.executable, "-c", text]


def finished(processes):
    for process in processes:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors[-2000:]


def start(code, data, environment=None, **values):
    return subprocess.Popen(
        command(code, data, **values),
        env={**os.environ, **(environment or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def largest_difference(first, second):
    first, second = np.load(first), np.load(second)
    assert first.files == second.files and len(first.files) > 10
    return max(np.abs(first[name] - second[name]).max() for name in first.files)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    from made_records import write

    return write(tmp_path_factory.mktemp("data") / "records", documents=300)


def test_two_devices_of_one_machine(data, tmp_path):
    outs = {name: str(tmp_path / f"{name}.npz") for name in ("one", "several")}
    finished([start(MIRRORED, data, first=LOGICAL_DEVICES, devices=2, **outs)])
    assert largest_difference(*outs.values()) < 1e-5


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def test_two_hosts_on_the_jax_backend(data, tmp_path):
    pytest.importorskip("jax", reason="JAX is not installed (extra [jax])")
    environment = {
        **{"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
        # To optimize takes longer than what is optimized.
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    }
    port = free_port()
    one, two = str(tmp_path / "one.npz"), str(tmp_path / "two.npz")
    values = {"data": data, "environment": environment, "port": port}
    hosts = [
        start(JAX, processes=2, number=number, out=two, **values) for number in range(2)
    ]
    finished([*hosts, start(JAX, processes=1, number=0, out=one, **values)])
    assert largest_difference(one, two) < 1e-5
