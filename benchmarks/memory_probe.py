"""The process whose memory is measured: ``python -m benchmarks.memory_probe FOLDER K METHOD`` prints bytes."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from benchmarks.fits import pauca_fit
from benchmarks.memory import load

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
    fit = pauca_fit(load(Path(folder)), int(k), method)
    before = memory_now()
    fit()
    print(memory_peak() - before)


def _from_status(field: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1])


def _peak_from_rusage() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main(*sys.argv[1:])
