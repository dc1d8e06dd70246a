"""Learning from reviews as they come: what a pass costs in time and memory, and what the first call costs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.memory import MEGABYTE, ROOT
from benchmarks.problems import Problem
from benchmarks.report import Figure
from benchmarks.reviews import NGRAMS, WORDS, reviews
from benchmarks.timing import Contender, race, read
from pauca.losses import SquaredError
from pauca.sgd.epoch_sgd import EpochSGD

# Radii from one that keeps nearly everything out to one that is never reached, and learning rates and first epochs as
# they are chosen on held-out reviews. The rows have norm one.
SETTINGS = tuple((radius, rate, 1000) for radius in (20.0, 200.0, 2000.0, 20_000.0) for rate in (0.5, 1.0))
QUICK_SETTINGS = ((2000.0, 1.0, 1000),)

READS = {WORDS: 35, NGRAMS: 30}
BYTES_PER_FEATURE = 64
SLACK = 300 * MEGABYTE
FIRST_CALL = 0.4


def stream(quick: bool, data: Path) -> Iterator[Figure]:
    """Epoch SGD with squared loss on 25,000 film reviews, star ratings about their mean, one pass, one thread.

    A read is one ``X.T @ y``. Memory is the peak of a process that makes a learner, learns and computes the average,
    less what it held with X in memory; the limit is 64 bytes per feature and 300 MB, numba itself included. The first
    call is the first in a new process, with the compiled code on disk, the import of numba included.
    """
    for longest in (WORDS,) if quick else (WORDS, NGRAMS):
        problem = _centred(reviews(data, longest))
        name = f"{problem.X.shape[0]} x {problem.X.shape[1]}"
        yield from _passes(name, problem, longest, quick)
        memory, limit = _probe(data, longest, "memory"), BYTES_PER_FEATURE * problem.X.shape[1] + SLACK
        yield Figure(name, "peak above X", memory / MEGABYTE, limit / MEGABYTE, unit=" MB", digits=0)
    beyond = min(_probe(data, WORDS, "first") for _ in range(1 if quick else 5))
    yield Figure(name, "first call above the second, best of 5", beyond, FIRST_CALL, unit=" s")


def learner(problem: Problem, radius: float, rate: float, first_epoch: int) -> EpochSGD:
    """A learner for squared loss."""
    return EpochSGD(problem.X.shape[1], SquaredError(), radius, learning_rate=rate, first_epoch=first_epoch)


def _passes(name: str, problem: Problem, longest: int, quick: bool) -> Iterator[Figure]:
    rounds = 3 if quick or longest == NGRAMS else 7
    settings = QUICK_SETTINGS if quick else SETTINGS
    contenders = {setting: Contender(_one_pass(problem, setting), rounds) for setting in settings}
    timings = race({"read": read(problem, rounds), **{str(key): one for key, one in contenders.items()}})
    unit = timings["read"].seconds
    yield Figure(name, "one read", 1e3 * unit, unit=" ms")
    for radius, rate, first_epoch in settings:
        reads = timings[str((radius, rate, first_epoch))].seconds / unit
        yield Figure(name, f"one pass, radius {radius:g}, rate {rate:g}, reads", reads, READS[longest], digits=1)


def _one_pass(problem: Problem, setting: tuple[float, float, int]) -> Callable[[], object]:
    return lambda: learner(problem, *setting).learn(problem.X, problem.y)


def _centred(problem: Problem) -> Problem:
    return Problem(problem.X, problem.y - problem.y.mean())


def _probe(data: Path, longest: int, what: str) -> float:
    """What ``benchmarks.stream_probe`` prints."""
    command = [sys.executable, "-m", "benchmarks.stream_probe", str(data), str(longest), what]
    return float(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
