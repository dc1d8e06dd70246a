"""Several runs at a time under one clock, one callback and one Ctrl-C."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from threading import Lock

import numpy as np

from pauca.runs.run import Budget, Progress, asks_to_stop, interrupted_once
from pauca.threads import blas_threads

# Searches that their share of a time limit has cut off go on as long as this share of it is left.
WORTHWHILE = 0.1


class ParallelRuns:
    """What ends all runs of a fit together: the time limit, the callback, or an interrupt."""

    def __init__(self, budget: Budget, n_jobs: int) -> None:
        self._limit = budget.time_limit
        self._deadline = None if budget.time_limit is None else time.monotonic() + budget.time_limit
        self._callback = budget.callback
        self._n_jobs = n_jobs
        self._lock = Lock()
        self._n_folds = 0
        self.ended = False
        """Whether the callback or an interrupt has ended the runs."""
        self.interrupted = False
        """Whether that was an interrupt."""

    @property
    def deadline(self) -> float:
        """When the time is up; infinity without a limit."""
        return math.inf if self._deadline is None else self._deadline

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the time limit; None without one."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    @property
    def much_is_left(self) -> bool:
        """Whether the time limit leaves enough to go on with what its shares have cut off."""
        return self._limit is not None and self.deadline - time.monotonic() > WORTHWHILE * self._limit

    def run(
        self,
        jobs: Mapping[int, Callable[[Budget], None]],
        n_folds: int,
        *,
        has_end: bool = True,
        may_grow: bool = False,
    ) -> None:
        """Run all jobs by their numbers, some at a time: 0 is the fit on all rows, the others those of the folds.

        ``has_end``: whether they are most of what there is to do; if not, nothing is said of what is left.
        ``may_grow``: whether another round to larger sizes may follow.
        """
        self._n_folds = n_folds
        at_once = min(self._n_jobs, len(jobs))
        if has_end:
            self._tell("runs_begin", len(jobs), self._n_folds, at_once, may_grow)
        # NumPy lets go of Python's lock while it multiplies, so several runs fill the cores with one thread each.
        with blas_threads.single():
            self._run(jobs, at_once)

    def _run(self, jobs: Mapping[int, Callable[[Budget], None]], n_jobs: int) -> None:
        waiting = [(job, number, len(jobs) - place, n_jobs) for place, (number, job) in enumerate(jobs.items())]
        if n_jobs == 1:
            for one in waiting:
                self._start(*one)
            return
        with ThreadPoolExecutor(n_jobs) as pool:
            running = [pool.submit(self._start, *one) for one in waiting]
            try:
                wait(running)
            except KeyboardInterrupt:
                self.ended = self.interrupted = True
                interrupted_once()
        for future in running:
            future.result()

    def _start(self, job: Callable[[Budget], None], number: int, jobs_left: int, at_once: int) -> None:
        with np.errstate(all="ignore"):  # a thread does not have those of the one that started it
            # With one job nothing but its own callback ends a run.
            alone = at_once == 1 and self._callback is None
            job(Budget(self._share(jobs_left, at_once), None if alone else self._listener(number, self._n_folds)))
        self._tell("run_ended", number)

    def _tell(self, what: str, *about: int) -> None:
        """Tell the report of the fit's progress, if the callback is one, what its moves do not say."""
        listener = getattr(self._callback, what, None)
        if listener is not None:
            with self._lock:
                listener(*about)

    def _share(self, jobs_left: int, at_once: int) -> float | None:
        """Seconds for one of the jobs that are left."""
        if self._deadline is None:
            return None
        left = max(0.0, self._deadline - time.monotonic())
        return left * min(1.0, at_once / jobs_left)

    def _listener(self, number: int, n_folds: int) -> Callable[[Progress], bool]:
        def listen(progress: Progress) -> bool:
            if self._callback is not None and not self.ended:
                with self._lock:
                    fold = number - 1 if number else None
                    reported = replace(progress, fold=fold, n_folds=n_folds)
                    self.ended = asks_to_stop(self._callback, reported) or self.ended
            return self.ended

        return listen
