"""A stream of rows and what has been learnt from it: the first of the two stages of Li, Yang, Zhang and Jin (2017)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pauca.losses import Loss
from pauca.sgd.one_vs_rest import Learners, Settings
from pauca.sgd.reservoir import Kept, Rows
from pauca.sgd.tuning import Judge, Trials, Wanted, choose, first_step, row_size

# What random numbers are for. None is 0, the seed by itself: that is for the rows that are kept.
ORDER, DRAWS = 1, 2


@dataclass(frozen=True, eq=False)
class Plan:
    """How a stream is to be learnt."""

    n_features: int
    loss: Loss
    code: Callable[[np.ndarray], np.ndarray]
    """Targets as they came, shape (n,), to targets of every output, shape (C, n)."""
    wanted: Wanted
    keep: int
    """How many rows are kept at most."""
    seed: int
    answer: str
    fit_intercept: bool
    passes: int = 1
    """How often the rows will be learnt."""
    judge: Judge | None = None
    """What settings are found by; None: by the loss of all that is learnt."""

    def random(self, purpose: int, number: int = 0) -> np.random.Generator:
        """Random numbers for a purpose, ``ORDER`` or ``DRAWS``: none are used for two of them."""
        return np.random.default_rng([self.seed, purpose, number])


class Stream:
    """Rows that come one after the other; those before ``keep`` wait until the settings have been chosen on them.

    What is learnt depends on the order of the rows alone, not on how they came in chunks.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.kept = Kept(plan.keep, plan.n_features, plan.seed)
        self.settings: Settings | None = None
        self._learners: Learners | None = None

    @property
    def n_seen(self) -> int:
        """Number of rows so far."""
        return self.kept.n_seen

    @property
    def learners(self) -> Learners:
        """What has been learnt; the stream must be settled."""
        assert self._learners is not None
        return self._learners

    def learn(self, rows: Rows, order: np.ndarray) -> None:
        """Learn further rows, in the order given."""
        if self._learners is None:
            waiting, order = np.split(order, [self.kept.room])
            self.kept.add(rows, waiting)
            if self.kept.room == 0:
                try:
                    self.settle()
                except BaseException:  # an interrupt, most likely: settings take their time
                    self.kept.forget(len(waiting))
                    raise
        if self._learners is not None:
            self.kept.add(rows, order)
            self._learners.learn(rows, order)

    def repeat(self, rows: Rows, order: np.ndarray) -> None:
        """Learn rows once more that have been seen before."""
        self.learners.learn(rows, order)

    def settle(self) -> None:
        """Choose what was not given, on the rows kept so far, and learn these."""
        if self._learners is not None:
            return
        plan, rows = self.plan, self.kept.rows()
        coded = plan.code(rows.y)
        loss = plan.loss.tuned(coded, rows.weights / rows.weights.sum())
        start = _start(loss, coded, rows.weights) if plan.fit_intercept else np.zeros(len(coded))

        size = row_size(rows)

        def make(settings: Settings) -> Learners:
            return Learners(
                plan.n_features,
                loss,
                settings,
                plan.code,
                plan.answer,
                start,
                fit_intercept=plan.fit_intercept,
                intercept_scale=size,
            )

        settings = plan.wanted.settings
        if settings is None:
            trials = Trials(rows, make, loss, plan.passes, plan.judge)
            settings = choose(trials, plan.wanted, first_step(size, loss, coded))
        learners = make(settings)
        learners.learn(rows)
        self.settings, self._learners = settings, learners

    def settled(self) -> Stream:
        """The stream itself, or while its rows still wait, another one in which they have been learnt."""
        if self._learners is not None:
            return self
        twin = copy.copy(self)
        twin.settle()
        return twin


def _start(loss: Loss, coded: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The best constants; zero where there is no finite one, as for classes that have not been seen yet."""
    constants = loss.constants(coded, weights / weights.sum(), len(coded))
    return np.where(np.isfinite(constants), constants, 0.0)
