"""The process whose memory is measured: ``python -m benchmarks.memory_probe FOLDER K METHOD`` prints bytes."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from benchmarks.fits import pauca_fit
from benchmarks.memory import load

STATUS = Path("/proc/self/status")


def peak() -> int:
    """The most memory this process has held so far, in bytes.

    On Linux the kernel's ``ru_maxrss`` starts from the process that launched this one, so ``VmHWM`` is read instead.
    """
    if STATUS.exists():
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main(folder: str, k: str, method: str) -> None:
    fit = pauca_fit(load(Path(folder)), int(k), method)
    before = peak()
    fit()
    print(peak() - before)


if __name__ == "__main__":
    main(*sys.argv[1:])
