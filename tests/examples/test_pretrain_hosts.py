"""The example for several hosts, as two processes on the loopback address."""

import os
import pathlib
import socket
import subprocess
import sys

import pytest

import albert_tf
import zh

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
LINES = [
    "我们今天去公园散步。",
    "天气很好，有很多人。",
    "明天可能下雨！",
    "你想去哪里？",
]


def test_two_hosts_write_one_checkpoint(tmp_path):
    pytest.importorskip("jax", reason="JAX is not installed (extra [jax])")
    tokens = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *sorted(set("".join(LINES))),
    ]
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join(tokens) + "\n", encoding="utf-8")
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(["\n".join(LINES)] * 80), encoding="utf-8")
    made = zh.PretrainingData(str(vocabulary), sequence_length=32, block_bytes=4000)
    zh.make_pretraining_data([str(text)], tmp_path / "records", made)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{server.getsockname()[1]}"
    command = [
        *(sys.executable, EXAMPLES / "pretrain_hosts.py"),
        *("--data", tmp_path / "records", "--output", tmp_path / "out"),
        *("--config", "albert_micro_zh", "--coordinator", address, "--hosts", 2),
        *("--steps", 2, "--batch-size", 4),
    ]
    environment = {**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    hosts = [
        subprocess.Popen(
            [str(part) for part in (*command, "--host", host)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for host in range(2)
    ]
    outs = [process.communicate(timeout=300) for process in hosts]
    for process, (_, errors) in zip(hosts, outs, strict=True):
        assert process.returncode == 0, errors[-2000:]
    assert "Checkpoint (albert_zh) is in" in outs[0][0]
    assert albert_tf.load_checkpoint(tmp_path / "out").vocabulary_size == len(tokens)
    assert albert_tf.inspect_checkpoint(tmp_path / "out").heads == [
        "mlm_head",
        "sop_head",
    ]


def test_another_backend_is_refused():
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "pretrain_hosts.py")],
        env={**os.environ, "KERAS_BACKEND": "tensorflow"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode and "Set KERAS_BACKEND=jax" in done.stderr
