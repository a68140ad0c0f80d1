"""Answer HTTP requests with a model of albert-tf-lite, several requests at a time.

    MODEL=reviews.onnx python service.py
    curl -H 'Content-Type: application/json' -d '{"inputs": ["很好"]}' \
        127.0.0.1:8000/predict

It starts one worker process per CPU that the container may use, each with one thread of
the network. The requests that arrive while a batch is answered are the next batch.
SIGTERM lets the workers answer the requests that they have, for 30 seconds. SIGHUP
replaces them one by one, by workers that open the file that MODEL names by then.

The environment sets MODEL (an exported file or a model directory; model.onnx by
default), ABSTAIN (the score below which a classifier or tagger does not answer), HOST,
PORT and WORKERS.
"""

import asyncio
from collections.abc import Callable
import contextlib
import os
import pathlib
import socket
import sys
from typing import Annotated

import albert_tf_lite
from albert_tf_lite.cpus import available_cpus
import fastapi
import pydantic
import uvicorn

# Texts per call of the network. More are not faster on a CPU.
BATCH = 32
# Texts that wait, about a second of work; more requests are refused for now.
WAITING = 1024
# Characters of a text, texts of a request, and bytes of its body.
CHARACTERS, TEXTS, BYTES = 100_000, 256, 1_000_000

Text = Annotated[str, pydantic.Field(max_length=CHARACTERS)]
Example = Text | Annotated[list[Text], pydantic.Field(min_length=2, max_length=2)]


class Examples(pydantic.BaseModel):
    """Body of a request: texts, or for a model of pairs lists of two texts."""

    inputs: Annotated[list[Example], pydantic.Field(max_length=TEXTS)]


class Batcher:
    """Answer examples of several requests by one call.

    Args:
        answer: function of a list of examples that returns a list of answers.
    """

    def __init__(self, answer: Callable[[list], list]):
        self._answer = answer
        self._waiting: list[tuple[list, asyncio.Future]] = []
        self._arrived = asyncio.Event()

    async def __call__(self, examples: list) -> list:
        """Return the answers to the examples of a request.

        Raises:
            asyncio.QueueFull: if too many examples wait.
            albert_tf_lite.AlbertError: if an example is wrong.
        """
        if sum(len(x) for x, _ in self._waiting) + len(examples) > WAITING:
            raise asyncio.QueueFull
        result = asyncio.get_running_loop().create_future()
        self._waiting.append((examples, result))
        self._arrived.set()
        return await result

    async def run(self) -> None:
        """Answer the examples that wait, until this task is cancelled."""
        while True:
            await self._arrived.wait()
            requests = self._next_batch()
            await self._answer_all(requests)

    def _next_batch(self):
        """Return the first requests that wait, together at most a batch."""
        count = size = 0
        for examples, _ in self._waiting:
            size += len(examples)
            if count and size > BATCH:
                break
            count += 1
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        if not self._waiting:
            self._arrived.clear()
        return batch

    async def _answer_all(self, requests):
        examples = [x for given, _ in requests for x in given]
        try:
            answers = iter(await asyncio.to_thread(self._answer, examples))
        except Exception as error:
            if len(requests) > 1:
                # One of them is wrong, and the others are answered.
                for request in requests:
                    await self._answer_all([request])
            elif not requests[0][1].done():
                requests[0][1].set_exception(error)
            return
        for given, result in requests:
            own = [next(answers) for _ in given]
            # A client that has gone has cancelled it.
            if not result.done():
                result.set_result(own)


def create_app(open_model: Callable[[], Callable[[list], list]]) -> fastapi.FastAPI:
    """Return the service of a model, which each worker opens when it starts."""
    batchers: list[Batcher] = []

    @contextlib.asynccontextmanager
    async def lifespan(app):
        batchers.append(Batcher(await asyncio.to_thread(open_model)))
        running = asyncio.create_task(batchers[0].run())
        yield
        running.cancel()

    app = fastapi.FastAPI(title="albert-tf-lite", lifespan=lifespan)

    @app.middleware("http")
    async def check_size(request, call_next):
        size = request.headers.get("content-length", "")
        if request.method == "POST" and not (size.isdigit() and int(size) <= BYTES):
            message = f"The body must have a Content-Length of at most {BYTES} bytes."
            return fastapi.responses.JSONResponse({"detail": message}, 413)
        return await call_next(request)

    # The default one shows the input, and fails if that is not valid JSON.
    @app.exception_handler(fastapi.exceptions.RequestValidationError)
    async def refuse(request, error):
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        message = (
            f"{place}: {first['msg']}. Expected inputs, a list of up to {TEXTS} texts "
            f"or pairs of texts, each of at most {CHARACTERS} characters."
        )
        return fastapi.responses.JSONResponse({"detail": message}, 422)

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.post("/predict")
    async def predict(examples: Examples) -> dict[str, list]:
        # A pair is a tuple for the pipeline.
        rows = [x if isinstance(x, str) else tuple(x) for x in examples.inputs]
        try:
            return {"answers": await batchers[0](rows)}
        except albert_tf_lite.AlbertError as error:
            raise fastapi.HTTPException(422, str(error)) from error
        except asyncio.QueueFull:
            headers = {"Retry-After": "1"}
            raise fastapi.HTTPException(503, "Too many texts wait.", headers) from None

    return app


def open_model() -> Callable[[list], list]:
    """Open the model of the environment."""
    options = {}
    if abstain := os.environ.get("ABSTAIN"):
        options["abstain"] = float(abstain)
    model = os.environ.get("MODEL", "model.onnx")
    return albert_tf_lite.pipeline(model, threads=1, **options)


app = create_app(open_model)


def serve(app: str, folder: str | os.PathLike) -> None:
    """Run an application such as "service:app", of a module in a folder, in workers."""
    address = os.environ.get("HOST", "127.0.0.1"), int(os.environ.get("PORT", "8000"))
    try:
        listening = socket.create_server(address)
    except OSError as error:
        sys.exit(f"HOST and PORT, {address}, cannot be used: {error}")
    with listening:
        # The sockets of uvicorn would hold the body of an answer back until the client
        # has confirmed the headers, for 40 ms.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        uvicorn.run(
            app,
            app_dir=str(folder),
            fd=listening.fileno(),
            workers=int(os.environ.get("WORKERS", "0")) or available_cpus(),
            access_log=False,
            timeout_graceful_shutdown=30,
            # By default, a worker that is not imported after five seconds is killed, so
            # that on a slow machine none ever starts.
            timeout_worker_healthcheck=120,
        )


def main() -> None:
    try:
        # An error before the workers start, instead of in each of them.
        open_model()
    except (albert_tf_lite.AlbertError, OSError) as error:
        sys.exit(str(error))
    serve("service:app", pathlib.Path(__file__).parent)


if __name__ == "__main__":
    main()
