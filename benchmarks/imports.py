"""What ``import pauca`` costs a program that uses scikit-learn's linear models anyway."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.report import Figure

PROGRAM = """
import sklearn.linear_model
from time import perf_counter
start = perf_counter()
import pauca
print(perf_counter() - start)
"""


def import_time(quick: bool) -> Iterator[Figure]:
    """Fresh processes, the best of several."""
    runs = 3 if quick else 10
    seconds = min(_seconds() for _ in range(runs))
    yield Figure("import pauca", "time beyond import sklearn.linear_model", seconds, 0.1, unit=" s", digits=3)


def _seconds() -> float:
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    return float(done.stdout)
