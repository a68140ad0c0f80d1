"""The CPUs that a process may use, also in containers."""

import contextlib
import os
import pathlib

from albert_tf_lite.lines import split_lines


def available_cpus(root: str = "/") -> int:
    """Return the number of CPUs of this process: its affinity, or less by a quota.

    Containers and services of systemd have quotas of CPU time, in control groups of
    version 1 or 2. `root` is the root of the file system.
    """
    has_affinity = hasattr(os, "sched_getaffinity")
    cpus = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    for folder in _control_groups(pathlib.Path(root)):
        with contextlib.suppress(OSError, ValueError):
            quota, period = map(int, (folder / "cpu.max").read_text("utf-8").split())
            cpus = min(cpus, -(-quota // period))
        with contextlib.suppress(OSError, ValueError):
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            quota, period = (int((folder / name).read_text("utf-8")) for name in names)
            cpus = min(cpus, -(-quota // period) if quota > 0 else cpus)
    return max(cpus, 1)


def _control_groups(root: pathlib.Path) -> list[pathlib.Path]:
    """Return the folders that may limit the CPUs of this process."""
    try:
        lines = split_lines((root / "proc/self/cgroup").read_text("utf-8"))
    except OSError:
        return []
    folders = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        groups = root / "sys/fs/cgroup" / ("cpu" if controllers else "")
        # In a container, the path may be that of the host, and the root its own.
        below = pathlib.PurePosixPath(path.lstrip("/"))
        folders += [groups / x for x in (below, *below.parents)]
    return folders
