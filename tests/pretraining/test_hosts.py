"""`albert-tf pretrain` on several hosts, two processes on the loopback address."""

import json
import os
import socket
import subprocess
import sys
import time

import pytest
from command_line import as_options
from small_corpus import write_corpus, write_vocabulary

import albert_tf
from albert_tf.pretraining import PretrainingData, make_pretraining_data

# Each test starts processes that compile for a minute.
pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    pytest.importorskip("jax", reason="JAX is not installed (extra [jax])")
    folder = tmp_path_factory.mktemp("hosts")
    vocabulary, text = folder / "vocab.txt", folder / "text.txt"
    write_vocabulary(vocabulary)
    write_corpus(text, documents=80)
    made = PretrainingData(str(vocabulary), sequence_length=32, block_bytes=4000)
    make_pretraining_data([str(text)], folder / "records", made)
    return folder / "records"


def start(records, output, **given):
    """Start two hosts, as processes."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{server.getsockname()[1]}"
    files = as_options(data=records, output=output, config="albert_micro_zh")
    hosts = as_options(coordinator=address, hosts=2)
    training = as_options(batch_tokens=256, **given)
    command = [sys.executable, "-m", "albert_tf_cli", "pretrain"]
    command += [*files, *hosts, *training]
    environment = {
        **os.environ,
        **{"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        # Later processes reuse what was compiled.
        "JAX_COMPILATION_CACHE_DIR": str(records.parent / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    return [
        subprocess.Popen(
            [str(part) for part in (*command, "--host", host)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for host in range(2)
    ]


def test_two_hosts_write_one_checkpoint_and_resume_if_killed(records, tmp_path):
    hosts = start(records, tmp_path / "out", steps=8, interval=2)
    state = tmp_path / "out" / ".training" / "epochs.json"
    while not state.exists() and all(process.poll() is None for process in hosts):
        time.sleep(0.02)
    for process in hosts:
        process.kill()
    errors = [process.communicate(timeout=300)[1] for process in hosts]
    assert state.exists(), errors
    before = json.loads(state.read_text())["history"]["loss"]
    assert 1 <= len(before) < 4
    assert not (tmp_path / "out" / "albert_config.json").exists()

    hosts = start(records, tmp_path / "out", steps=8, interval=2)
    outs = [process.communicate(timeout=300) for process in hosts]
    for process, (_, errors) in zip(hosts, outs, strict=True):
        assert process.returncode == 0, errors[-2000:]
    assert "Checkpoint (albert_zh)" in outs[0][0] and "Checkpoint" not in outs[1][0]
    assert "Epoch 1/4" not in outs[0][0] and "Epoch 4/4" in outs[0][0]
    history = json.loads((tmp_path / "out" / "history.json").read_text())
    loss = history["history"]["loss"]
    assert loss[: len(before)] == before and len(loss) == 4
    tokens = len((records / "vocab.txt").read_text().split())
    assert albert_tf.load_checkpoint(tmp_path / "out").vocabulary_size == tokens
    heads = albert_tf.inspect_checkpoint(tmp_path / "out").heads
    assert heads == ["masked_lm_head", "sop_head"]
