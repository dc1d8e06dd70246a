"""The process whose memory is measured: ``python -m benchmarks.memory_probe FOLDER K METHOD`` prints bytes."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.fits import pauca_fit
from benchmarks.memory import load
from benchmarks.problems import Problem
from pauca import SparseRegressor

STATUS = Path("/proc/self/status")


def memory_now() -> int:
    """Memory this process holds, in bytes; where only its peak is known, that."""
    return _from_status("VmRSS") if STATUS.exists() else _peak_from_rusage()


def memory_peak() -> int:
    """Most memory this process has held so far, in bytes.

    On Linux ``ru_maxrss`` starts from the process that launched this one, so the peak is read from its status instead.
    """
    return _from_status("VmHWM") if STATUS.exists() else _peak_from_rusage()


def main(folder: str, k: str, method: str) -> None:
    fit = _fit(load(Path(folder)), k, method)
    before = memory_now()
    fit()
    print(memory_peak() - before)


def _fit(problem: Problem, k: str, method: str) -> Callable[[], object]:
    if "-" not in k:
        return pauca_fit(problem, int(k), method)
    first, last = k.split("-")
    sizes = range(int(first), int(last) + 1)
    return lambda: SparseRegressor(k=sizes, method=method, n_jobs=2).fit(problem.X, problem.y)


def _from_status(field: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1])


def _peak_from_rusage() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main(*sys.argv[1:])
