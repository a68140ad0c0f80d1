"""Send requests to a service, several at a time, and time the answers.

    python load.py 127.0.0.1:8000 texts.txt [--requests 2000] [--at-a-time 8]

The file has one text per line; each request has one text.
"""

import argparse
import concurrent.futures
import http.client
import itertools
import json
import pathlib
import statistics
import threading
import time

_local = threading.local()


def ask(address: str, text: str) -> tuple[float, list]:
    """Return the seconds of a request and the answers; raise if it fails."""
    if not hasattr(_local, "connection"):
        # Kept open, one per thread.
        _local.connection = http.client.HTTPConnection(address, timeout=60)
    body = json.dumps({"inputs": [text]})
    start = time.perf_counter()
    try:
        response = _post(_local.connection, body)
    except http.client.RemoteDisconnected:
        # The service closes connections that were idle for some seconds.
        _local.connection.close()
        response = _post(_local.connection, body)
    content = response.read()
    seconds = time.perf_counter() - start
    if response.status != 200:
        raise OSError(f"{response.status} {content.decode()}")
    return seconds, json.loads(content)["answers"]


def _post(
    connection: http.client.HTTPConnection, body: str
) -> http.client.HTTPResponse:
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/predict", body, headers)
    return connection.getresponse()


def run(
    address: str, texts: list[str], requests: int = 2000, at_a_time: int = 8
) -> tuple[list[float], list, float]:
    """Return the seconds of each request, the answers, and the seconds of all."""
    start = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(at_a_time) as threads:
        given = itertools.islice(itertools.cycle(texts), requests)
        found = list(threads.map(lambda text: ask(address, text), given))
    seconds, answers = zip(*found, strict=True)
    return list(seconds), list(answers), time.perf_counter() - start


def summary(seconds: list[float], total: float) -> dict[str, float]:
    """Return the median and the 99th percentile in milliseconds, and requests/s."""
    return {
        "median, ms": 1e3 * statistics.median(seconds),
        "99 %, ms": 1e3 * statistics.quantiles(seconds, n=100)[-1],
        "requests/s": len(seconds) / total,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address")
    parser.add_argument("file")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--at-a-time", type=int, default=8)
    given = parser.parse_args()
    texts = pathlib.Path(given.file).read_text("utf-8").rstrip("\n").split("\n")
    seconds, _, total = run(given.address, texts, given.requests, given.at_a_time)
    for name, value in summary(seconds, total).items():
        print(f"{name:<12}{value:8.1f}")


if __name__ == "__main__":
    main()
