"""A stream of rows and what was learned from it: the first of the two stages of Li, Yang, Zhang and Jin (2017)."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy import sparse

from pauca.clock import GRACE, deadline_after, limited_until, seconds_left
from pauca.losses import Loss
from pauca.runs.progress import phase
from pauca.runs.run import Stop, asks_to_stop, interrupted_once
from pauca.sgd.epoch_sgd import OneVsRestSGD, SGDSettings
from pauca.sgd.refit import SecondStage
from pauca.sgd.reservoir import Reservoir, Samples
from pauca.sgd.tuning import DIVERGED, GivenSettings, SettingsSearch, choose_settings, initial_learning_rate, row_scale

# Uses of random numbers. None is 0, the seed by itself: that is for the reservoir.
ORDER, DRAWS = 1, 2

# A learning rate that nobody tried, and with which coefficients diverge, is lowered so often by this factor.
LOWERED_BY = 16.0
MOST_LOWERED = 8

# The clock is read between blocks of so many rows, or fewer where rows are long and outputs many; in long tables so
# many times in a pass, for the targets of all rows are checked with every block, which takes as long as learning some
# entries of each.
BLOCK = 4096
ENTRIES_AT_ONCE = 1 << 23
MOST_BLOCKS = 100
ENTRIES_LIKE_A_CHECK = 32


@dataclass(frozen=True)
class StreamProgress:
    """What a callback gets while rows are learned.

    Attributes
    ----------
    n_samples_seen : int
        Number of rows learned so far, in all passes.
    n_samples_total : int
        Number of rows to learn in all passes.
    elapsed : float
        Seconds since the first.
    """

    n_samples_seen: int
    n_samples_total: int
    elapsed: float


@dataclass(frozen=True, eq=False)
class StreamOptions:
    """How a stream is learned."""

    n_features: int
    loss: Loss
    encode: Callable[[np.ndarray], np.ndarray]
    """Targets of shape (n,) to targets of every output, shape (C, n)."""
    given: GivenSettings
    reservoir_size: int
    seed: int
    average: bool
    fit_intercept: bool
    passes: int
    """How often the rows will be learned."""
    second_stage: SecondStage
    """If it refits, settings are chosen by the loss after it; else by the loss of the first stage alone."""

    def random(self, use: int, number: int = 0) -> np.random.Generator:
        """Random numbers for one use, ``ORDER`` or ``DRAWS``: none are used for two of them."""
        return np.random.default_rng([self.seed, use, number])


class Stream:
    """Rows that come one after the other; the first wait in the reservoir until settings have been chosen on them.

    What is learned depends on the order of the rows alone, not on the chunks they come in.
    """

    def __init__(self, options: StreamOptions) -> None:
        self.options = options
        self.reservoir = Reservoir(options.reservoir_size, options.n_features, options.seed)
        self.settings: SGDSettings | None = None
        self._learner: OneVsRestSGD | None = None
        self._without_time = 0  # rows of the reservoir that were not learned since time was up

    @property
    def n_samples_seen(self) -> int:
        """Number of rows so far, but for those that there was no time to learn."""
        return self.reservoir.n_samples_seen - self._without_time

    @property
    def learner(self) -> OneVsRestSGD:
        """What has been learned; the settings must have been chosen."""
        assert self._learner is not None
        return self._learner

    def learn(self, samples: Samples, order: np.ndarray) -> None:
        """Learn further rows, in the order given."""
        if self._learner is None:
            waiting, order = np.split(order, [self.reservoir.n_free])
            self.reservoir.add(samples, waiting)
            if self.reservoir.n_free == 0:
                try:
                    self.tune()
                except BaseException:  # an interrupt, most likely: choosing settings takes time
                    self.reservoir.remove_last(len(waiting))
                    raise
        if self._learner is not None:
            self.reservoir.add(samples, order)
            self._learner.learn(samples, order)

    def repeat(self, samples: Samples, order: np.ndarray) -> None:
        """Learn rows once more, in another pass."""
        self.learner.learn(samples, order)

    def tune(self, *, search: bool = True) -> None:
        """Choose the settings that were not given, on the rows in the reservoir, and learn these.

        Without ``search`` the settings are those that a search would begin with.
        """
        if self._learner is not None:
            return
        options, samples = self.options, self.reservoir.samples()
        encoded = options.encode(samples.y)
        loss = options.loss.tuned(encoded, samples.weights / samples.weights.sum())
        intercepts = _constants(loss, encoded, samples.weights) if options.fit_intercept else np.zeros(len(encoded))
        scale = row_scale(samples)

        def make(settings: SGDSettings) -> OneVsRestSGD:
            return OneVsRestSGD(
                options.n_features,
                loss,
                settings,
                options.encode,
                intercepts,
                average=options.average,
                fit_intercept=options.fit_intercept,
                intercept_scale=scale,
            )

        settings = options.given.complete
        if settings is None:
            trials = SettingsSearch(samples, make, loss, options.passes, self._final_loss)
            start = initial_learning_rate(scale, loss, encoded)
            settings = choose_settings(trials, options.given, start, search=search)
        learner, until = make(settings), time.monotonic() + max(seconds_left(), GRACE / 2)
        learned = _learn_until(until, learner, samples)
        # Where there was no time to try, the learning rate may be too large.
        for _ in range(MOST_LOWERED if options.given.learning_rate is None else 0):
            if learner.norm < DIVERGED:
                break
            settings = replace(settings, learning_rate=settings.learning_rate / LOWERED_BY)
            learner = make(settings)
            learned = _learn_until(until, learner, samples)
        self.settings, self._learner, self._without_time = settings, learner, len(samples) - learned

    def tuned(self) -> Stream:
        """The stream itself, or while its rows still wait, a copy in which they have been learned."""
        if self._learner is not None:
            return self
        other = copy.copy(self)
        other.tune()
        return other

    @property
    def _final_loss(self) -> Callable[[OneVsRestSGD, Samples, Samples], float] | None:
        """The loss by which settings are chosen; None for that of the first stage."""
        stage, seed = self.options.second_stage, self.options.seed
        return partial(stage.held_out_loss, seed=seed) if stage.refits else None


def learn_in_passes(
    stream: Stream,
    samples: Samples,
    order_of_pass: Callable[[int], np.ndarray],
    time_limit: float | None,
    callback: Callable[[StreamProgress], bool | None] | None,
) -> Stop:
    """Learn all rows as often as the options say; what was learned stays when that is cut short."""
    start, done, passes = time.monotonic(), 0, stream.options.passes
    deadline, n_outputs = deadline_after(time_limit), len(stream.options.encode(samples.y[:1]))
    learned = phase("learning rows", passes * int(np.count_nonzero(samples.weights)))

    def learn_pass(number: int) -> Stop:
        nonlocal done
        order, learn = order_of_pass(number), stream.repeat if number else stream.learn
        for block in blocks_of(order, samples, n_outputs):
            with limited_until(deadline):  # for the choice of settings, which ends in time with what it has
                learn(samples, block)
            done += len(block)
            learned(len(block))
            elapsed = time.monotonic() - start
            progress = StreamProgress(done, passes * len(order), elapsed)
            if callback is not None and asks_to_stop(callback, progress):
                return Stop.CALLBACK
            if time_limit is not None and elapsed >= time_limit:
                return Stop.TIME
        with limited_until(deadline):
            stream.tune()
        return Stop.SIZE

    stop = Stop.SIZE
    try:
        for number in range(passes):
            if (stop := learn_pass(number)) is not Stop.SIZE:
                break
    except KeyboardInterrupt:
        if not stream.n_samples_seen:
            raise
        interrupted_once()
        stop = Stop.INTERRUPTED
    # A callback that ends a fit leaves the time for what there is to do; the result is the same every time.
    with limited_until(-math.inf if stop in (Stop.TIME, Stop.INTERRUPTED) else deadline):
        stream.tune(search=stop is Stop.SIZE)
    return stop


def blocks_of(order: np.ndarray, samples: Samples, n_outputs: int) -> Iterator[np.ndarray]:
    """Rows in their order, so many at a time that the clock can be read between them."""
    n_rows, width = samples.X.shape
    entries = samples.X.nnz // max(1, n_rows) if sparse.issparse(samples.X) else width
    most_blocks = MOST_BLOCKS * max(1, entries // ENTRIES_LIKE_A_CHECK)
    size = max(1, min(BLOCK, ENTRIES_AT_ONCE // max(1, entries * n_outputs)), -(-len(order) // most_blocks))
    for first in range(0, len(order), size):
        yield order[first : first + size]


def _learn_until(deadline: float, learner: OneVsRestSGD, samples: Samples) -> int:
    """Learn rows until the deadline, some of them in any case; returns how many."""
    learned = 0
    for block in blocks_of(np.arange(len(samples)), samples, learner.n_outputs):
        learner.learn(samples, block)
        learned += len(block)
        if time.monotonic() >= deadline:
            break
    return learned


def _constants(loss: Loss, encoded: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The best constants; zero where there is no finite one, as for classes that have not come yet."""
    constants = loss.constants(encoded, weights / weights.sum(), len(encoded))
    return np.where(np.isfinite(constants), constants, 0.0)
