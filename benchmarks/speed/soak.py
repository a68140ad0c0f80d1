"""Load the HTTP service for an hour while its model is exchanged.

    python -m benchmarks.speed.soak [--minutes 60] [--clients 4] [--pause 0]

Two workers of `examples/service/` answer clients, of whose requests one in ten is
hostile: words of 100,000 characters, megabytes, other types, broken JSON, bodies that
end too early. Every minute an export of another model replaces the file, and after
every fifth the workers are restarted one by one (SIGHUP), so that each lives for five
minutes. It fails if a label is wrong, if a request is neither answered nor refused, or
if a worker grows by more than 15 MB in the second half of its life. In the first half,
it meets its largest request.
"""

import argparse
import collections
import contextlib
import http.client
import itertools
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from benchmarks.lib.paths import EXAMPLES
from benchmarks.speed.service import HOSTILE

SERVICE = EXAMPLES / "service" / "service.py"
HEADS = ("sentiment", "topics")
TEXTS = [
    f"{place}{state}，{end}"
    for place in ("房间", "早餐", "手机屏幕", "国足", "股市", "这本书")
    for state in ("很干净", "太差了", "昨天大涨", "2比1战胜韩国队", "内容丰富")
    for end in ("推荐", "别买", "再也不来", "值得关注")
]
EXCHANGE_SECONDS = 60
EXCHANGES_PER_LIFE = 5
# Memory that a worker may take in the second half of its life.
GROWTH_MB = 15
# A request is answered, or refused: too large, not valid, or too many at the moment.
REFUSED = (400, 413, 422, 503)
ANSWER_SECONDS = 60


class Soak:
    """Clients of a service, and what they have seen.

    Args:
        address: host and port of the service.
        expected: the answers of each model by the text.
    """

    def __init__(self, address: tuple[str, int], expected: list[dict[str, dict]]):
        self.address = address
        self.expected = expected
        self.numbers = itertools.count()
        self.seen: collections.Counter[str] = collections.Counter()
        self.problems: list[str] = []
        self.ended = threading.Event()

    def run_client(self, pause: float) -> None:
        """Send requests until the soak has ended."""
        connection = None
        while not self.ended.wait(pause):
            connection = connection or http.client.HTTPConnection(
                *self.address, timeout=ANSWER_SECONDS
            )
            number = next(self.numbers)
            try:
                if number % 10:
                    self._ask(connection, number)
                else:
                    self._provoke(connection, number)
            except (OSError, http.client.HTTPException) as error:
                self.problems.append(f"request {number} was lost: {error!r}")
            if connection.sock is None or number % 10 == 0:
                # A hostile request may leave a connection with a body half sent.
                connection.close()
                connection = None

    def _ask(self, connection, number):
        texts = random.Random(number).sample(TEXTS, 1 + number % 4)
        status, content = self._post(connection, json.dumps({"inputs": texts}))
        self.seen[f"valid {status}"] += 1
        if status == 503:
            return
        if status != 200:
            self.problems.append(f"request {number}: {status} {content[:200]!r}")
            return
        answers = json.loads(content)["answers"]
        for name, known in zip(HEADS, self.expected, strict=True):
            pairs = zip(answers, (known[x] for x in texts), strict=True)
            if all(_is_same(*pair) for pair in pairs):
                self.seen[f"answers of {name}"] += 1
                return
        self.problems.append(f"request {number}: wrong answers {answers} to {texts}")

    def _post(self, connection, body):
        headers = {"Content-Type": "application/json"}
        try:
            connection.request("POST", "/predict", body, headers)
            response = connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            # The connection was idle, and its worker has been restarted.
            self.seen["sent again"] += 1
            connection.close()
            connection.request("POST", "/predict", body, headers)
            response = connection.getresponse()
        return response.status, response.read()

    def _provoke(self, connection, number):
        draw = random.Random(number)
        kind = draw.choice([*HOSTILE, "broken JSON", "no body", "cut off"])
        if kind == "cut off":
            # The service waits for the rest, and the client goes away.
            with socket.create_connection(self.address, ANSWER_SECONDS) as client:
                head = "POST /predict HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n"
                client.sendall(f"{head}\r\n{{".encode())
            self.seen["hostile, cut off"] += 1
            return
        body = {"broken JSON": "{", "no body": ""}.get(kind)
        if body is None:
            value = HOSTILE[kind](draw)
            if isinstance(value, bytes):
                value = value.decode("latin-1")
            body = json.dumps({"inputs": [value]})
        status, content = self._post(connection, body)
        self.seen[f"hostile, {status}"] += 1
        if status != 200 and status not in REFUSED:
            self.problems.append(f"{kind}: {status} {content[:200]!r}")


def _is_same(answer, known):
    close = abs(answer["score"] - known["score"]) < 1e-3
    return answer["label"] == known["label"] and close


def memory_of(process):
    """Return the megabytes of each worker of a service by its number."""
    found = {}
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    for child in children.read_text("utf-8").split():
        # A worker may have ended meanwhile.
        with contextlib.suppress(OSError):
            text = pathlib.Path(f"/proc/{child}/status").read_text("utf-8")
            command = pathlib.Path(f"/proc/{child}/cmdline").read_text("utf-8")
            resident = re.search(r"VmRSS:\s*(\d+)", text)
            # The other child of the supervisor tracks its resources.
            if resident and "resource_tracker" not in command:
                found[child] = int(resident[1]) / 1e3
    return found


@contextlib.contextmanager
def running_service(model, log):
    """Yield the process and the address of a service of two workers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = free.getsockname()
    settings = {"MODEL": str(model), "PORT": str(address[1]), "WORKERS": "2"}
    process = subprocess.Popen(
        [sys.executable, SERVICE], env={**os.environ, **settings}, stderr=log
    )
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                connection = http.client.HTTPConnection(*address, timeout=60)
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    break
            if process.poll() is not None:
                sys.exit("The service did not start.")
            time.sleep(0.5)
        yield process, address
    finally:
        process.terminate()
        process.wait()


def watch(soak, process, export, minutes):
    """Exchange the model until the time is over; return the memory by worker."""
    memory = collections.defaultdict(list)
    end = time.monotonic() + 60 * minutes
    for exchange in itertools.count(1):
        until = min(end, time.monotonic() + EXCHANGE_SECONDS)
        while time.monotonic() < until:
            time.sleep(min(5, max(0, until - time.monotonic())))
            for worker, megabytes in memory_of(process).items():
                memory[worker].append((time.monotonic(), megabytes))
        if until == end:
            return memory
        export(HEADS[exchange % 2])
        if exchange % EXCHANGES_PER_LIFE == 0:
            process.send_signal(signal.SIGHUP)


def growth(samples):
    """Return the memory of a worker after half of its life, and the maximum then."""
    later = [megabytes for _, megabytes in samples[len(samples) // 2 :]]
    return later[0], max(later)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--pause", type=float, default=0, help="seconds per request")
    arguments = parser.parse_args()

    import albert_tf
    import albert_tf_lite

    models = albert_tf.models.AlbertTextClassifier
    tasks = {x: models.from_checkpoint("albert_micro_zh", head=x) for x in HEADS}
    with tempfile.TemporaryDirectory() as name, open(os.devnull, "wb") as log:
        model = pathlib.Path(name, "model.onnx")

        def export(head):
            albert_tf.export.onnx(tasks[head], model)

        expected = []
        for head in reversed(HEADS):
            export(head)
            answers = albert_tf_lite.pipeline(model)(TEXTS)
            expected.insert(0, dict(zip(TEXTS, answers, strict=True)))
        with running_service(model, log) as (process, address):
            soak = Soak(address, expected)
            clients = [
                threading.Thread(target=soak.run_client, args=(arguments.pause,))
                for _ in range(arguments.clients)
            ]
            for client in clients:
                client.start()
            try:
                memory = watch(soak, process, export, arguments.minutes)
            finally:
                soak.ended.set()
                for client in clients:
                    client.join()
    report(soak, memory)


def report(soak, memory):
    """Print what was seen; end with 1 if something was wrong."""
    for kind, count in sorted(soak.seen.items()):
        print(f"{count:8,} {kind}")
    problems = soak.problems
    for worker, samples in memory.items():
        start, most = growth(samples)
        minutes = (samples[-1][0] - samples[0][0]) / 60
        print(f"worker {worker}: {start:.0f} to {most:.0f} MB, lived {minutes:.1f} min")
        if most > start + GROWTH_MB:
            problems.append(f"worker {worker} grew from {start:.0f} to {most:.0f} MB")
    if problems:
        sys.exit("\n".join([f"{len(problems)} problems", *problems[:20]]))
    print("No wrong label, no lost request, and the memory is flat.")


if __name__ == "__main__":
    main()
