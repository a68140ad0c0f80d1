"""Run one function on many jobs, in processes or as tasks of a Ray cluster."""

import collections
import concurrent.futures
import contextlib
import functools
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Iterable
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, NamedTuple

from albert_tf.extras import import_extra
from albert_tf.quiet_import import import_variables
from albert_tf_lite.cpus import available_cpus
from albert_tf_lite.environment import environment
from albert_tf_lite.errors import AlbertError, Process, silent_stderr
from albert_tf_lite.unknown import OWN_WARNINGS

# Workers import TensorFlow only if their job uses it.
_LAZY = {"ALBERT_TF_LAZY": "1"}


def run_jobs(
    function: Callable,
    jobs: Iterable[tuple[Any, tuple]],
    engine: str = "process",
    workers: int | None = None,
) -> Generator[tuple[Any, Any], None, None]:
    """Yield `(key, function(*arguments))` for each job `(key, arguments)`, in order.

    Jobs are read as workers become free, because each may hold much text. A single
    worker runs in this process. Others need a function that can be pickled. The engine
    "ray" uses the cluster in `RAY_ADDRESS`, or a new one on this machine.
    """
    processes = workers or available_cpus()
    if sys.platform == "win32":
        # More than 61 processes cannot be waited for.
        processes = min(processes, 61)
    if engine == "process" and processes == 1:
        for key, arguments in jobs:
            yield key, function(*arguments)
        return
    pickled = _pickled(function)
    context = _Workers()
    with contextlib.ExitStack() as stack:
        if engine == "ray":
            pool = _ray_pool(stack, workers)
        else:
            pool = _process_pool(stack, processes, context)
        running: collections.deque = collections.deque()
        try:
            for key, arguments in jobs:
                running.append((key, pool.submit(pickled, *arguments)))
                if len(running) >= pool.limit:
                    key, future = running.popleft()
                    yield key, future.result()
            for key, future in running:
                yield key, future.result()
        except concurrent.futures.BrokenExecutor as error:
            raise ChildProcessError(
                "A worker process died, perhaps for lack of memory. Run the same "
                "command with fewer workers to resume. A script that uses workers "
                'needs the line `if __name__ == "__main__":` before its own work.'
            ) from error
        except BaseException:
            # Do not wait for jobs whose results are not read: `_stop` ends them.
            context.stop()
            raise


class _Pool(NamedTuple):
    """Workers that call pickled functions."""

    submit: Callable[..., concurrent.futures.Future]
    limit: int  # The most jobs that run or wait at a time.


def _process_pool(
    stack: contextlib.ExitStack, processes: int, context: "_Workers"
) -> _Pool:
    """Return processes of this machine, which end with the stack."""
    # TensorFlow's threads do not survive a fork.
    executor = concurrent.futures.ProcessPoolExecutor(
        processes, context, _prepare_worker
    )
    stack.callback(executor.shutdown, cancel_futures=True)

    def submit(*arguments: Any) -> concurrent.futures.Future:
        return executor.submit(call_pickled, *arguments)

    return _Pool(submit, limit=2 * processes)


def _ray_pool(stack: contextlib.ExitStack, workers: int | None) -> _Pool:
    """Return the cluster of Ray in `RAY_ADDRESS`, or a new one on this machine."""
    ray = import_extra("ray")
    if not ray.is_initialized():
        ray.init(log_to_driver=False)
        stack.callback(ray.shutdown)
    # Jobs of a machine that fails run again on another.
    variables = _worker_variables()
    options = {"max_retries": 10, "runtime_env": {"env_vars": variables}}
    task = ray.remote(num_cpus=1, **options)(call_pickled)

    def submit(*arguments: Any) -> concurrent.futures.Future:
        return task.remote(*arguments).future()

    # Jobs beyond the number of CPUs wait in the cluster for the next free one.
    return _Pool(submit, limit=workers or 2 * int(ray.cluster_resources()["CPU"]))


def _pickled(function: Callable) -> bytes:
    """Return a function as bytes; raise if other processes could not import it."""
    try:
        return pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise AlbertError(
            f"The settings cannot be sent to other processes: {error}. Use a segmenter "
            "that is a function at the top level of a module, or a single worker."
        ) from error


class _Worker(SpawnProcess):
    """Worker process, which imports little when it starts."""

    def start(self) -> None:
        # The process of the user has these variables no longer than this call.
        with environment(_worker_variables()):
            super().start()


class _Workers(SpawnContext):
    """Context of an executor, which remembers the processes that it starts."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[_Worker] = []

    def Process(self, *args: Any, **kwargs: Any) -> _Worker:  # type: ignore[override]
        worker = _Worker(*args, **kwargs)
        self.started.append(worker)
        return worker

    def stop(self) -> None:
        """Let each worker stop its job, by `_stop`."""
        for worker in self.started:
            if worker.is_alive():
                worker.terminate()


def _worker_variables() -> dict[str, str]:
    """Return environment variables of workers, which import TensorFlow when needed."""
    return {**_LAZY, **import_variables()}


def _prepare_worker() -> None:
    """Run TensorFlow on one thread, stop at SIGTERM, and end with the parent."""

    def end_with_parent():
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    # Ctrl-C reaches all processes of a terminal; the parent ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    os.environ.update(TF_NUM_INTRAOP_THREADS="1", TF_NUM_INTEROP_THREADS="1")
    Process.is_ours = True


class _Job:
    """State of a worker process."""

    is_running = is_stopped = False


def _stop(*_: Any) -> None:
    """End the job of this worker, and those that follow.

    A worker that died while it sends a result would block the parent process.
    """
    _Job.is_stopped = True
    if _Job.is_running:
        raise KeyboardInterrupt


def with_warnings(
    function: Callable, *arguments: Any
) -> tuple[Any, list[Warning | str]]:
    """Return the result of a call and its warnings, which a worker would print."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*arguments)
    messages: list[Warning | str] = []
    for warning in caught:
        if isinstance(warning.message, OWN_WARNINGS):
            messages.append(warning.message)
        elif issubclass(warning.category, UserWarning):
            # Warnings of other packages may not be pickled.
            messages.append(str(warning.message))
    return result, messages


def call_pickled(pickled: bytes, *arguments: Any) -> Any:
    """Call a pickled function, unpickled once per process."""
    if _Job.is_stopped:
        raise KeyboardInterrupt
    _Job.is_running = True
    try:
        return _unpickled(pickled)(*arguments)
    finally:
        _Job.is_running = False


@functools.lru_cache(maxsize=1)
def _unpickled(pickled: bytes) -> Callable:
    # It may import TensorFlow.
    with silent_stderr():
        return pickle.loads(pickled)
