"""Jobs in processes or on Ray, and the CPUs that a container may use."""

import concurrent.futures
import multiprocessing
import operator
import os
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from unittest import mock

import pytest

from albert_tf.executors import call_pickled, run_jobs
from albert_tf_lite.cpus import available_cpus


def of_version_1(quota):
    return {"cpu/cpu.cfs_quota_us": quota, "cpu/cpu.cfs_period_us": "100000"}


@pytest.mark.parametrize(
    ("groups", "files", "cpus"),
    [
        ("0::/", {"cpu.max": "150000 100000\n"}, 2),
        ("0::/", {"cpu.max": "max 100000\n"}, 4),
        ("0::/a.slice/b", {"a.slice/cpu.max": "100000 100000"}, 1),
        ("0::/docker/1", {"cpu.max": "1000 100000"}, 1),
        ("5:cpu,cpuacct:/docker/1\n3:memory:/x", of_version_1("300000"), 3),
        ("5:cpu:/", of_version_1("-1"), 4),
        ("", {}, 4),
    ],
)
def test_a_quota_limits_the_workers(groups, files, cpus, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(4), raising=False)
    for name, text in {
        "proc/self/cgroup": groups,
        **{f"sys/fs/cgroup/{x}": y for x, y in files.items()},
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert available_cpus(str(tmp_path)) == cpus
    assert available_cpus(str(tmp_path / "nothing")) == 4


def imported(*names):
    variables = {x: os.environ.get(x) for x in ("ALBERT_TF_LAZY", *names[:1])}
    return variables, {*names} & {*sys.modules}


def test_workers_have_their_own_variables_and_end_alone(monkeypatch):
    """They import no library that their job does not use."""
    monkeypatch.delenv("ALBERT_TF_LAZY", raising=False)
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS", raising=False)
    before, name = dict(os.environ), "TF_ENABLE_ONEDNN_OPTS"
    of_user = multiprocessing.get_context("spawn").Process(
        target=time.sleep, args=(60,)
    )

    def jobs():
        # While the workers run.
        yield 0, (name, "albert_tf", "tensorflow", "pandas")
        of_user.start()
        yield 1, (1,)

    run = run_jobs(imported, jobs(), workers=2)
    variables = {"ALBERT_TF_LAZY": "1", name: "1"}
    assert next(run) == (0, (variables, {"albert_tf"}))
    assert os.environ == before
    with pytest.raises(TypeError):
        next(run)
    of_user.join(0.5)
    assert of_user.exitcode is None
    of_user.terminate()
    of_user.join()


def die(*arguments):
    raise BrokenProcessPool


@pytest.mark.parametrize("engine", ["process", "ray"])
def test_jobs_are_read_as_workers_become_free_and_end_in_order(monkeypatch, engine):
    """Threads stand in for processes and for the tasks of a cluster."""
    threads = concurrent.futures.ThreadPoolExecutor(2)
    monkeypatch.setattr(
        concurrent.futures, "ProcessPoolExecutor", lambda *arguments: threads
    )
    ray = mock.MagicMock()
    ray.is_initialized.return_value = False
    ray.remote.return_value.return_value.remote.side_effect = lambda *arguments: (
        mock.Mock(**{"future.return_value": threads.submit(call_pickled, *arguments)})
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    read = []
    jobs = ((read.append(i) or i, (i, 10)) for i in range(9))
    results = run_jobs(operator.mul, jobs, engine, workers=2)
    assert next(results) == (0, 0) and len(read) == (4 if engine == "process" else 2)
    assert list(results) == [(i, 10 * i) for i in range(1, 9)]
    if engine == "ray":
        ray.init.assert_called_once()
        ray.shutdown.assert_called_once()
        return
    with pytest.raises(ValueError, match="cannot be sent to other processes.*top lev"):
        list(run_jobs(lambda x: x, [(0, (1,))], workers=2))
    threads = concurrent.futures.ThreadPoolExecutor(2)
    with pytest.raises(ChildProcessError, match="fewer workers to resume"):
        list(run_jobs(die, [(0, (1,))], workers=2))
