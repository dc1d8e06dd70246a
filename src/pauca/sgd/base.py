"""What the estimators of streams share: rows to learners, learners to few features, those to a path."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from pauca.checks import ParameterChecks
from pauca.estimators.fitted import FittedModel
from pauca.estimators.validation import check_finite
from pauca.losses import Loss
from pauca.results.path import Path
from pauca.search.problem import Target
from pauca.search.stop import Stop
from pauca.sgd.one_vs_rest import ANSWERS
from pauca.sgd.passes import StreamProgress, learn_in_passes
from pauca.sgd.refit import FewJudge, as_learnt, few_refitted, refitted
from pauca.sgd.reservoir import Rows
from pauca.sgd.stream import DRAWS, ORDER, Plan, Stream
from pauca.sgd.truncation import few_of
from pauca.sgd.tuning import Wanted
from pauca.sparsification.draws import METHODS
from pauca.warnings import PaucaWarning
from pauca.wording import quoted_columns

# Set by finish(); rows that are learnt later make them out of date.
CONCLUSIONS = (
    *("path_", "coef_", "intercept_", "support_", "k_", "objective_", "stop_"),
    *("bound_", "step_", "first_epoch_"),
)


class StreamModel(FittedModel):
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
        """From what was learnt to few features: the second stage.

        More rows may follow, and ``finish`` may be called again. What comes later does not depend on whether it was.
        Whoever asks for a prediction or a fitted attribute without it has it done on the rows that were kept.

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
        stream = self._learnt()
        if (X is None) != (y is None) or (X is None and sample_weight is not None):
            raise ValueError(
                "X, y and sample_weight belong together: give finish() X and y, with or without weights, or nothing to "
                "use the rows that were kept."
            )
        rows = stream.kept.rows() if X is None else self._rows(X, y, sample_weight, reset=False)
        if not rows.weights.any():
            raise ValueError("All values in `sample_weight` are zero; at least one row must count.")
        self._conclude(stream, rows, Stop.SIZE)
        return self

    @property
    def average_(self) -> tuple[np.ndarray, Any]:
        """Coefficients and intercept of the averaged iterate: the answer of the first stage, over all features."""
        return self._of_all_features(*self._learnt().learners.average())

    @property
    def last_(self) -> tuple[np.ndarray, Any]:
        """Coefficients and intercept of the last iterate: sparser than the average, and often better."""
        return self._of_all_features(*self._learnt().learners.last())

    @property
    def n_seen_(self) -> int:
        """Number of rows seen so far; those without weight do not count."""
        return self._stream.n_seen if "_stream" in self.__dict__ else self._n_seen

    @n_seen_.setter
    def n_seen_(self, count: float) -> None:
        self._n_seen = int(count)

    def __getattr__(self, name: str) -> Any:
        # Asked for what is not there. After rows that nothing has been concluded from, it is concluded now.
        if name in {"average_", "last_", "n_seen_"}:
            check_is_fitted(self)  # what the property has said already, in the error that got it here
        if name in CONCLUSIONS and "_stream" in self.__dict__ and self._stream.n_seen:
            return getattr(self.finish(), name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return "path_" in self.__dict__ or "_stream" in self.__dict__

    @abstractmethod
    def _rows(self, X: Any, y: Any, sample_weight: Any, *, reset: bool, least: int = 1) -> Rows:
        """Checked rows with their targets and weights; the estimator is left as it was if they are refused."""

    @abstractmethod
    def _stage_one(self) -> tuple[Loss, Callable[[np.ndarray], np.ndarray]]:
        """The loss of the first stage, and how targets are coded for it."""

    @abstractmethod
    def _targets(self) -> Callable[[np.ndarray], Target]:
        """How targets become what the second stage wants."""

    @contextmanager
    def _as_it_was_if_refused(self) -> Iterator[None]:
        """Rows that are refused while the estimator reads them leave nothing of themselves in it."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _learn_all(self, rows: Rows) -> None:
        """All rows of a table, in as many passes as were asked for, and the second stage on them."""
        order = np.flatnonzero(rows.weights)
        if not len(order):
            raise ValueError("All values in `sample_weight` are zero; at least one row must count.")
        rows = replace(rows, weights=rows.weights / rows.weights[order].mean())
        stream = Stream(self._plan(rows.X.shape[1], int(self.passes)))

        def orders(number: int) -> np.ndarray:
            return stream.plan.random(ORDER, number).permutation(order) if self.shuffle else order

        stop = learn_in_passes(stream, rows, orders, self.time_limit, self.callback)
        self._stream = stream
        self._conclude(stream, rows, stop)
        if stop is Stop.INTERRUPTED:
            remark = f"Learning was interrupted; what was learnt from {stream.n_seen} rows was kept."
            warnings.warn(remark, PaucaWarning, stacklevel=3)

    def _learn_chunk(self, rows: Rows) -> None:
        """Rows that follow those before, once each."""
        if "_stream" not in self.__dict__:
            self._stream = Stream(self._plan(rows.X.shape[1], 1))
        order = np.flatnonzero(rows.weights)
        self._stream.learn(rows, order)
        for name in CONCLUSIONS if len(order) else ():
            self.__dict__.pop(name, None)

    def _is_first_chunk(self) -> bool:
        """Whether nothing has been learnt yet; a model from a file is refused, for it has no stream to go on with."""
        if "_stream" not in self.__dict__ and "path_" in self.__dict__:
            raise ValueError(
                "This model was loaded from a file or taken by at(), which hold its coefficients but not the stream; "
                "pickle the estimator to go on with it later."
            )
        return "_stream" not in self.__dict__

    def _conclude(self, stream: Stream, rows: Rows, stop: Stop) -> None:
        """The second stage, and what follows from it."""
        learners, target = stream.learners, self._targets()(rows.y)
        weights, ridge = rows.weights / rows.weights.sum(), float(self.ridge)
        rng, center = stream.plan.random(DRAWS), bool(self.fit_intercept)
        if self.refit and self.k is not None:
            null, model, left_out = few_refitted(
                rows.X, target, weights, learners, self.k, self.method, rng, ridge, center=center
            )
        else:
            moments = learners.moments
            few = few_of(*learners.answer(), moments, self.k, self.method, rng)
            left_out = few.support[:0]
            null, _ = refitted(rows.X, target, weights, left_out, ridge, center=center)
            model = as_learnt(rows.X, target, weights, few, moments[few.support], ridge)
        if len(left_out) and stop is Stop.SIZE:
            stop = Stop.EXHAUSTED
        names = getattr(self, "feature_names_in_", None)
        self.path_ = Path(
            {0: null, model.size: model},
            [("add", int(j)) for j in model.support],
            stop,
            rows.X.shape[1],
            names,
            None,
            None,
            *self._words(),
        )
        settings = stream.settings
        assert settings is not None
        self.bound_, self.step_, self.first_epoch_ = settings.bound, settings.step, settings.first_epoch
        self._choose(model.size)
        if len(left_out):
            warnings.warn(
                f"Chosen features that are constant or linear combinations of others in the rows of the refit were "
                f"left out: {quoted_columns(names, left_out)}. More rows, or a ridge, may tell them apart.",
                PaucaWarning,
                stacklevel=4,
            )

    def _learnt(self) -> Stream:
        """The stream with all its rows learnt."""
        check_is_fitted(self)
        self._is_first_chunk()
        if not self._stream.n_seen:
            raise ValueError("No row with weight has been seen yet, so there is nothing to conclude.")
        return self._stream.settled()

    def _plan(self, n_features: int, passes: int) -> Plan:
        wanted = Wanted(self.bound, self.step, self.first_epoch)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        judge = None
        if self.refit and self.k is not None:
            judge = FewJudge(self._targets(), self.k, self.method, float(self.ridge), self.fit_intercept, seed)
        stage_one, kept, how = self._stage_one(), self.keep_rows, (self.iterate, self.fit_intercept)
        return Plan(n_features, *stage_one, wanted, kept, seed, *how, passes, judge)

    def _of_all_features(self, coef: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, Any]:
        single = len(coef) == 1
        return self._shaped(coef[0] if single else coef, float(intercept[0]) if single else intercept)

    def _twin(self) -> Self:
        # Another size has nothing to go on with: its stream is that of the model it was taken from.
        other = super()._twin()
        other.n_seen_ = self.n_seen_
        other.__dict__.pop("_stream", None)
        return other

    def _restored(self) -> None:
        super()._restored()
        self.first_epoch_ = int(self.first_epoch_)

    def _check_options(self) -> None:
        """Refuse options that cannot be meant, before any data are looked at."""
        for name in ("k", "first_epoch"):
            if getattr(self, name) is not None:
                ParameterChecks(type(self).__name__).count(name, getattr(self, name), "or None")
        for name in ("passes", "keep_rows"):
            ParameterChecks(type(self).__name__).count(name, getattr(self, name))
        for name in ("bound", "step", "time_limit"):
            if getattr(self, name) is not None:
                ParameterChecks(type(self).__name__).number(name, getattr(self, name), positive=True)
        ParameterChecks(type(self).__name__).number("ridge", self.ridge)
        ParameterChecks(type(self).__name__).one_of("method", self.method, METHODS)
        ParameterChecks(type(self).__name__).one_of("iterate", self.iterate, ANSWERS)
        for name in ("refit", "shuffle", "fit_intercept"):
            ParameterChecks(type(self).__name__).flag(name, getattr(self, name))
        ParameterChecks(type(self).__name__).optional_callable("callback", self.callback)

    def _as_rows(self, X: Any) -> Any:
        """X as the learners read it: dense, or CSR, all of it finite."""
        check_finite(self, X, getattr(self, "feature_names_in_", None))
        return X.tocsr() if sparse.issparse(X) else X
