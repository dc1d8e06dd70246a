"""A process that learns: ``python -m benchmarks.stream_probe DATA LONGEST WHAT`` prints bytes or seconds."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter

from benchmarks.memory_probe import memory_now, memory_peak
from benchmarks.reviews import reviews
from benchmarks.stream import learner

SETTING = (2000.0, 1.0, 1000)
FEW = 100


def main(data: str, longest: str, what: str) -> None:
    problem = reviews(Path(data), int(longest))
    if what == "memory":
        before = memory_now()
        one = learner(problem, *SETTING)
        one.learn(problem.X, problem.y - problem.y.mean())
        coef, _ = one.average
        assert coef.any()
        print(memory_peak() - before)
    else:
        times = []
        for _ in range(3):
            start = perf_counter()
            learner(problem, *SETTING).learn(problem.X[:FEW], problem.y[:FEW])
            times.append(perf_counter() - start)
        print(times[0] - min(times[1:]))


if __name__ == "__main__":
    main(*sys.argv[1:])
