"""Running one function on many jobs: in processes of this machine, or on Ray."""

import concurrent.futures
import multiprocessing


def in_processes(function, jobs, workers, address=None):
    """Run jobs in processes of this machine; one worker runs in this process.

    Args:
        function: what to call with the arguments of each job; picklable.
        jobs: iterable of `(key, arguments)`, read as they are needed.
        workers: int.
        address: not used.

    Yields:
        `(key, result)`, in the order in which they are done.

    Raises:
        ChildProcessError: if a process was killed, which the system does where memory
            ends.
    """
    if workers == 1:
        yield from ((key, function(*arguments)) for key, arguments in jobs)
        return
    # Not forked: TensorFlow's threads do not survive that.
    context = multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(
        workers, mp_context=context, initializer=one_thread
    )
    try:
        # Reading is much faster than what the workers do.
        yield from _as_done(pool, function, jobs, workers + 2)
    except concurrent.futures.process.BrokenProcessPool as error:
        raise ChildProcessError(
            "A worker was killed; perhaps there was not memory enough. What is done "
            "stays: run the same command with fewer workers to go on."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _as_done(pool, function, jobs, most):
    """Submit no more jobs at a time than `most`, for each holds its text."""
    running = {}
    for key, arguments in jobs:
        running[pool.submit(function, *arguments)] = key
        if len(running) >= most:
            yield from _next(running)
    while running:
        yield from _next(running)


def _next(running):
    done, _ = concurrent.futures.wait(
        running, return_when=concurrent.futures.FIRST_COMPLETED
    )
    for future in done:
        yield running.pop(future), future.result()


def one_thread():
    """TensorFlow on one thread: there is a process for each core."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def on_ray(function, jobs, workers, address=None):
    """Run jobs on a Ray cluster; what a machine that fails was doing is done again.

    Args:
        function, jobs: as for `in_processes`.
        workers: int. Most tasks at once, each on one CPU.
        address: optional string, of a running cluster. By default the one that
            `RAY_ADDRESS` names, or one of this machine alone.

    Yields:
        `(key, result)`, in the order in which they are done.

    Raises:
        ImportError: if Ray is not installed.
    """
    try:
        import ray
    except ImportError as error:
        raise ImportError(
            "The engine 'ray' needs Ray. Run: pip install 'albert-tf[ray]'"
        ) from error
    started = not ray.is_initialized()
    if started:
        ray.init(address=address, log_to_driver=False)
    # The same job writes the same file: it can be run again.
    task = ray.remote(num_cpus=1, max_retries=10)(function)
    running = {}
    try:
        for key, arguments in jobs:
            running[task.remote(*arguments)] = key
            if len(running) >= 2 * workers:
                yield _next_on_ray(ray, running)
        while running:
            yield _next_on_ray(ray, running)
    finally:
        if started:
            ray.shutdown()


def _next_on_ray(ray, running):
    (reference,), _ = ray.wait(list(running), num_returns=1)
    return running.pop(reference), ray.get(reference)


ENGINES = {"process": in_processes, "ray": on_ray}
