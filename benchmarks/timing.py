"""Best times of contenders that take turns, so that a busy moment of the machine strikes all of them alike."""

from __future__ import annotations

from collections.abc import Callable
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
    """The best time in seconds, and what the last run returned."""

    seconds: float
    result: Any


def race(contenders: dict[str, Contender]) -> dict[str, Timing]:
    """Time all contenders in rounds, one after the other within a round."""
    best: dict[str, Timing] = {}
    for round_number in range(max(contender.rounds for contender in contenders.values())):
        for name, contender in contenders.items():
            if round_number < contender.rounds:
                best[name] = _better(best.get(name), contender)
    return best


def read(problem: Problem, rounds: int) -> Contender:
    """The unit of all times: one product ``X.T @ y``."""
    return Contender(lambda: problem.X.T @ problem.y, rounds, READS_PER_ROUND)


def _better(best: Timing | None, contender: Contender) -> Timing:
    seconds = float("inf") if best is None else best.seconds
    result = None
    for _ in range(contender.per_round):
        start = perf_counter()
        result = contender.run()
        seconds = min(seconds, perf_counter() - start)
    return Timing(seconds, result)
