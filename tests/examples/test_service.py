"""The HTTP service of `examples/service/`."""

import asyncio
import contextlib
import http.client
import json
import os
import pathlib
import re
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from lite_tasks import near, needs_onnx, small_task

import albert_tf
import albert_tf_lite

pytest.importorskip("fastapi", reason="of the extra [demo]")
SERVICE = pathlib.Path(__file__).parents[2] / "examples/service"
load = runpy.run_path(str(SERVICE / "load.py"))


def test_requests_that_arrive_meanwhile_are_one_batch(monkeypatch):
    monkeypatch.setenv("MODEL", "not opened")
    service = runpy.run_path(str(SERVICE / "service.py"))
    calls, started, release = [], threading.Event(), threading.Event()

    def answer(examples):
        calls.append(examples)
        started.set()
        assert release.wait(30)
        if "wrong" in examples:
            raise albert_tf_lite.AlbertError("This is wrong.")
        return [x.upper() for x in examples]

    async def ask():
        batcher = service["Batcher"](answer)
        running = asyncio.create_task(batcher.run())
        requests = [asyncio.create_task(batcher(["first"]))]
        await asyncio.to_thread(started.wait, 30)
        for examples in (["a", "b"], ["wrong"], [], ["gone"], ["c"] * 30, ["d"]):
            requests.append(asyncio.create_task(batcher(examples)))
        await asyncio.sleep(0)
        requests[4].cancel()
        with pytest.raises(asyncio.QueueFull):
            await batcher(["too many"] * 1000)
        release.set()
        found = await asyncio.gather(*requests, return_exceptions=True)
        running.cancel()
        return found

    first, two, wrong, nothing, gone, thirty, last = asyncio.run(ask())
    assert (first, two, nothing, last) == (["FIRST"], ["A", "B"], [], ["D"])
    assert str(wrong) == "This is wrong." and thirty == ["C"] * 30
    assert isinstance(gone, asyncio.CancelledError)
    assert calls[:2] == [["first"], ["a", "b", "wrong", "gone"]]


@contextlib.contextmanager
def running_service(model, workers):
    """Yield the process of a service that answers, and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"MODEL": str(model), "PORT": str(port), "WORKERS": str(workers)}
    log = model.with_name("log")
    # In a group of its own: the workers would outlive the process that started them.
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, SERVICE / "service.py"],
            env={**os.environ, **settings},
            stderr=stderr,
            start_new_session=True,
        )
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                if status(f"127.0.0.1:{port}", "GET", "/health")[0] == 200:
                    break
            assert process.poll() is None, log.read_text("utf-8")
            time.sleep(0.1)
        yield process, f"127.0.0.1:{port}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)


def status(address, method, path, body=None, **headers):
    """Return the status of a request and what it says."""
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request(method, path, body, headers)
    return answer_to(connection)


def answer_to(connection):
    response = connection.getresponse()
    return response.status, response.read().decode()


def megabytes(process):
    """Return the memory of the workers of a service."""
    children = f"/proc/{process.pid}/task/{process.pid}/children"
    found = 0.0
    for child in pathlib.Path(children).read_text("utf-8").split():
        text = pathlib.Path(f"/proc/{child}/status").read_text("utf-8")
        found += int(re.search(r"VmRSS:\s*(\d+)", text)[1]) / 1e3
    return found


@pytest.mark.slow
@needs_onnx
def test_a_service_answers_without_errors_in_constant_memory(tmp_path):
    task, texts = small_task("labels")
    albert_tf.export.onnx(task, tmp_path / "model.onnx")
    expected = albert_tf_lite.pipeline(tmp_path / "model.onnx")(texts)
    with running_service(tmp_path / "model.onnx", workers=2) as (process, address):
        load["run"](address, texts, requests=500)
        before = megabytes(process)
        _, answers, _ = load["run"](address, texts, requests=2000)
        assert [x for (x,) in answers[: len(texts)]] == near(expected)
        assert len(answers) == 2000 and megabytes(process) < before + 15

        ask = {"Content-Type": "application/json"}
        for body, code, message in (
            ({"inputs": [["好", "坏"]] * 2 + ["好"]}, 422, "has 1 of the fields"),
            ({"inputs": "好"}, 422, "list"),
            ({"inputs": [float("nan")]}, 422, "Expected inputs, a list"),
            ({"inputs": ["\ud800好"]}, 422, "Expected inputs, a list"),
            ({"inputs": ["好" * 100_001]}, 422, "100000"),
        ):
            found = status(address, "POST", "/predict", json.dumps(body), **ask)
            assert found[0] == code and message in found[1], found
        assert status(address, "POST", "/predict", b"{", **ask)[0] == 422
        # Refused before the body is sent.
        connection = http.client.HTTPConnection(address, timeout=60)
        connection.putrequest("POST", "/predict")
        connection.putheader("Content-Length", "1000001")
        connection.endheaders()
        code, message = answer_to(connection)
        assert code == 413 and "at most 1000000 bytes" in message

        # Requests that have arrived are answered; of others the connection ends.
        body = json.dumps({"inputs": texts * 20})
        connections = [http.client.HTTPConnection(address, timeout=60) for _ in "1234"]
        for connection in connections:
            connection.request("POST", "/predict", body, ask)
        time.sleep(0.02)
        os.kill(process.pid, signal.SIGTERM)
        found = []
        for connection in connections:
            with contextlib.suppress(ConnectionError):
                found.append(answer_to(connection)[0])
        assert found and {*found} == {200}
        assert process.wait(60) == 0


@needs_onnx
def test_a_service_without_a_model_says_so_and_ends(tmp_path):
    command = [sys.executable, SERVICE / "service.py"]
    environment = {**os.environ, "MODEL": str(tmp_path / "nothing.onnx")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    message = f"[Errno 2] No such file or directory: '{environment['MODEL']}'\n"
    assert done.stderr == message
