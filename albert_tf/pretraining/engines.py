"""Running one function on many jobs: in processes of this machine, or on Ray."""

import concurrent.futures
import functools
import multiprocessing
import os
import pickle

import tensorflow as tf

from albert_tf_lite.errors import AlbertError, MissingPackageError


def in_processes(function, jobs, workers=None):
    """Call a function with each job's arguments, in processes of this machine.

    Jobs are `(key, arguments)`, read as they are needed. Yields `(key, result)` in the
    order in which they are done. By default there is a worker for each CPU that this
    process may use; a single one runs in this process.
    """
    workers = workers or _cpus()
    if workers == 1:
        yield from ((key, function(*arguments)) for key, arguments in jobs)
        return
    pickled = _pickled(function)
    # Not forked: TensorFlow's threads do not survive that.
    context = multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(
        workers, mp_context=context, initializer=one_thread
    )
    try:
        # Reading is much faster than what the workers do.
        submit = functools.partial(pool.submit, call_pickled, pickled)
        yield from _as_done(submit, _next_of_pool, jobs, workers + 2)
    except concurrent.futures.process.BrokenProcessPool as error:
        raise ChildProcessError(
            "A worker has ended. Perhaps there was not memory enough: what is done "
            "stays, run the same command with fewer workers to resume. A script that "
            'uses workers needs the line `if __name__ == "__main__":` before its own '
            "work."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _cpus():
    # Of a container or a batch system these may be fewer than the machine has.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _as_done(submit, wait, jobs, most):
    """Submit no more jobs at a time than `most`, for each holds its text."""
    running = {}
    for key, arguments in jobs:
        running[submit(*arguments)] = key
        if len(running) >= most:
            yield from ((running.pop(x), result) for x, result in wait(list(running)))
    while running:
        yield from ((running.pop(x), result) for x, result in wait(list(running)))


def _next_of_pool(futures):
    done, _ = concurrent.futures.wait(
        futures, return_when=concurrent.futures.FIRST_COMPLETED
    )
    # Those that failed last, so that nothing that was done is lost.
    for future in sorted(done, key=lambda future: future.exception() is not None):
        yield future, future.result()


def one_thread():
    """TensorFlow on one thread: there is a process for each core."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def _pickled(function):
    try:
        return pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise AlbertError(
            f"This cannot be sent to other processes: {error}. Let the segmenter be a "
            "function at the top level of a module, or take one worker."
        ) from error


def call_pickled(pickled, *arguments):
    return _loaded(pickled)(*arguments)


# A process loads vocabulary and dictionary once.
_loaded = functools.lru_cache(maxsize=1)(pickle.loads)


def on_ray(function, jobs, workers=None, address=None):
    """As `in_processes`, on a Ray cluster.

    What a machine that fails was doing is done again. Without an `address` it is the
    cluster that `RAY_ADDRESS` names, or one of this machine alone.
    """
    try:
        import ray
    except ImportError as error:
        raise MissingPackageError(
            "The engine 'ray' needs Ray. Run: pip install 'albert-tf[ray]'"
        ) from error
    pickled = _pickled(function)
    started = not ray.is_initialized()
    if started:
        ray.init(address=address, log_to_driver=False)
    # The same job writes the same file: it can be run again.
    task = ray.remote(num_cpus=1, max_retries=10)(call_pickled)

    def wait(references):
        for reference in ray.wait(references, num_returns=1)[0]:
            yield reference, ray.get(reference)

    try:
        # More than there are CPUs wait there for the next that is free.
        most = workers or 2 * int(ray.cluster_resources()["CPU"])
        yield from _as_done(functools.partial(task.remote, pickled), wait, jobs, most)
    finally:
        if started:
            ray.shutdown()


ENGINES = {"process": in_processes, "ray": on_ray}
