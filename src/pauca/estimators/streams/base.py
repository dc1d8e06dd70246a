"""What the estimators of streams share: rows to learners, learners to few features, those to a path."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from pauca.estimators.checks import check_callable, check_flag, check_number, one_of, refusal
from pauca.estimators.fitted import FittedPath
from pauca.estimators.streams.conclusion import conclude
from pauca.losses import Loss
from pauca.path import Path, Stop
from pauca.sampling.draws import METHODS
from pauca.stream.kept import Rows
from pauca.stream.learners import ANSWERS
from pauca.stream.passes import StreamProgress, learn_in_passes
from pauca.stream.second_stage import few_of
from pauca.stream.stream import Plan, Stream
from pauca.stream.tuning import Wanted
from pauca.warnings import PaucaWarning

# Set by finish(); rows that are learnt later make them out of date.
CONCLUSIONS = ("path_", "coef_", "intercept_", "support_", "k_", "objective_", "stop_")


class StreamModel(FittedPath):
    """A linear model with few features learnt from rows that are seen one after the other."""

    def __init__(
        self,
        k: int | None = 100,
        *,
        loss: str | Loss,
        method: str = "truncate",
        refit: bool = True,
        ridge: float = 0.0,
        bound: float | None = None,
        step: float | None = None,
        first_epoch: int | None = None,
        iterate: str = "average",
        passes: int = 5,
        shuffle: bool = True,
        keep_rows: int = 10_000,
        fit_intercept: bool = True,
        time_limit: float | None = None,
        callback: Callable[[StreamProgress], bool | None] | None = None,
        random_state: Any = 0,
    ) -> None:
        self.k = k
        self.loss = loss
        self.method = method
        self.refit = refit
        self.ridge = ridge
        self.bound = bound
        self.step = step
        self.first_epoch = first_epoch
        self.iterate = iterate
        self.passes = passes
        self.shuffle = shuffle
        self.keep_rows = keep_rows
        self.fit_intercept = fit_intercept
        self.time_limit = time_limit
        self.callback = callback
        self.random_state = random_state

    def finish(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Self:
        """From what was learnt to few features: the second stage. More rows may follow, and ``finish`` be called again.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features), default=None
            Rows to refit the chosen features on. None: those that were kept, a fair sample of at most ``keep_rows``.
        y : array-like of shape (n_samples,), default=None
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        self._check_options()
        stream = self._stream_or_refuse().settled()
        if (X is None) != (y is None):
            raise ValueError("X and y belong together: give finish() both, or neither to use the rows that were kept.")
        rows = stream.kept.rows() if X is None else self._rows(X, y, sample_weight, reset=False)
        self._conclude(stream, rows, self._rows_with_weight(rows), Stop.SIZE)
        return self

    @property
    def average_(self) -> tuple[np.ndarray, Any]:
        """Coefficients and intercept of the averaged iterate: the answer of the first stage, over all features."""
        return self._as_shaped(self._stream_or_refuse().settled().learners.average())

    @property
    def last_(self) -> tuple[np.ndarray, Any]:
        """Coefficients and intercept of the last iterate: sparser than the average, and often better."""
        return self._as_shaped(self._stream_or_refuse().settled().learners.last())

    def __getattr__(self, name: str) -> Any:
        if name in CONCLUSIONS and "_stream" in self.__dict__:
            raise AttributeError(
                f"Rows were learnt since {type(self).__name__} last came to a conclusion; call finish() for {name!r}."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return "path_" in self.__dict__ or "_stream" in self.__dict__

    def _learn_all(self, rows: Rows) -> None:
        """All rows of a table, in as many passes as were asked for, and the second stage on them."""
        order = self._rows_with_weight(rows)
        stream = Stream(self._plan(rows, int(self.passes)))
        seed = stream.plan.seed

        def orders(number: int) -> np.ndarray:
            return np.random.default_rng([seed, number]).permutation(order) if self.shuffle else order

        stop = learn_in_passes(stream, rows, orders, self.time_limit, self.callback)
        self._stream = stream
        self._conclude(stream, rows, order, stop)
        if stop is Stop.INTERRUPTED:
            warnings.warn(
                f"Learning was interrupted; what was learnt from {stream.n_seen} rows was kept.",
                PaucaWarning,
                stacklevel=3,
            )

    def _learn_chunk(self, rows: Rows) -> None:
        """Rows that follow those before, once each."""
        if "_stream" not in self.__dict__:
            self._stream = Stream(self._plan(rows, 1))
        self._stream.learn(rows, self._rows_with_weight(rows))
        for name in CONCLUSIONS:
            self.__dict__.pop(name, None)

    def _conclude(self, stream: Stream, rows: Rows, order: np.ndarray, stop: Stop) -> None:
        coef, intercept = stream.learners.answer()
        rng = np.random.default_rng([stream.plan.seed, 1])
        few = few_of(coef, intercept, stream.learners.moments, self.k, self.method, rng)
        models = conclude(self, rows, order, few, self._target, refit=self.refit and self.k is not None)
        names = getattr(self, "feature_names_in_", None)
        events = [("add", int(j)) for j in models[-1].support]
        found = {model.size: model for model in models}
        self.path_ = Path(found, events, stop, self.n_features_in_, names, None, None, *self._words())
        assert stream.settings is not None
        self.bound_, self.step_, self.first_epoch_ = (
            stream.settings.bound,
            stream.settings.step,
            stream.settings.first_epoch,
        )
        self.n_seen_ = stream.n_seen
        self._choose(models[-1].size)

    def _plan(self, rows: Rows, passes: int) -> Plan:
        wanted = Wanted(self.bound, self.step, self.first_epoch)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        loss, code = self._stage_one()
        return Plan(
            rows.X.shape[1], loss, code, wanted, self.keep_rows, seed, self.iterate, bool(self.fit_intercept), passes
        )
