"""Best times of contenders that take turns, so that a busy moment of the machine strikes all of them alike."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

from benchmarks.problems import Problem

# A read is short: it is timed this often in every round.
READS_PER_ROUND = 5


class Contender(NamedTuple):
    """Something to be timed, and in how many rounds."""

    run: Callable[[], Any]
    rounds: int
    per_round: int = 1


class Timing(NamedTuple):
    """All times in seconds, and what the last run returned."""

    times: list[float]
    result: Any

    @property
    def seconds(self) -> float:
        """The best time."""
        return min(self.times)

    @property
    def unrest(self) -> float:
        """The median time over the best: far above one on a machine that is busy with something else."""
        return median(self.times) / min(self.times)


def race(contenders: dict[str, Contender]) -> dict[str, Timing]:
    """Time all contenders in rounds, one after the other within a round."""
    found: dict[str, Timing] = {}
    for round_number in range(max(contender.rounds for contender in contenders.values())):
        for name, contender in contenders.items():
            if round_number < contender.rounds:
                earlier = found[name].times if name in found else []
                found[name] = _timed(contender, earlier)
    return found


def read(problem: Problem, rounds: int) -> Contender:
    """Read X once, by one product ``X.T @ y``: the unit of all times."""
    return Contender(lambda: problem.X.T @ problem.y, rounds, READS_PER_ROUND)


def _timed(contender: Contender, earlier: list[float]) -> Timing:
    """One round of a contender, appended to the times it had before."""
    times = list(earlier)
    result = None
    for _ in range(contender.per_round):
        start = perf_counter()
        result = contender.run()
        times.append(perf_counter() - start)
    return Timing(times, result)
