"""The common part of the estimators of streams: from rows to learned coefficients to a path with few features."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from pauca.checks import ParameterChecks
from pauca.clock import GRACE, deadline_after, limited_until
from pauca.design import Chunks
from pauca.design.chunks import as_chunks
from pauca.design.chunks.chunk_sums import take
from pauca.estimators.fitted_base import FittedModel, check_finite_models, fitting
from pauca.estimators.input_checks import check_finite
from pauca.estimators.missing_methods import EVALUATE, MissingMethod
from pauca.estimators.raw_tables import display_names
from pauca.estimators.row_values import check_raw_weights, in_memory
from pauca.losses import Loss
from pauca.model import Model
from pauca.results.path import Path
from pauca.runs.problem import Target
from pauca.runs.progress import phase, showing
from pauca.runs.run import Move, Stop, asks_to_stop, ended_early
from pauca.sgd.epoch_sgd import compile_kernels
from pauca.sgd.refit import SecondStage
from pauca.sgd.reservoir import Samples
from pauca.sgd.stream import DRAWS, ORDER, Stream, StreamOptions, StreamProgress, learn_in_passes
from pauca.sgd.tuning import GivenSettings, parse_first_epoch
from pauca.sparsification.draws import TRUNCATIONS
from pauca.warnings import PaucaWarning
from pauca.wording import quoted_columns

# Set by finish(); rows that are learned later make them out of date.
SET_BY_FINISH = (
    *("path_", "coef_", "intercept_", "support_", "k_", "objective_", "stop_"),
    *("radius_", "learning_rate_", "first_epoch_"),
)

LARGEST_IN_STREAM = 1e50

NO_WEIGHT = "All values in `sample_weight` are zero; at least one row must count."


class StreamModel(FittedModel):
    """A linear model with few features learned from rows that come one after the other.

    An estimator derives from it, sets its own parameters, and says how rows and targets are read: ``_samples``,
    ``_first_stage`` and ``_target_encoder``.
    """

    _stream: Stream
    evaluate: Any = MissingMethod(EVALUATE)

    def __init__(
        self,
        k: int | None = 100,
        *,
        loss: str | Loss = "squared_error",
        truncation: str = "truncate",
        refit: bool = True,
        ridge: float = 0.0,
        radius: float | None = None,
        learning_rate: float | None = None,
        first_epoch: int | str | None = None,
        average: bool = True,
        passes: int = 5,
        shuffle: bool = True,
        keep_rows: int = 10_000,
        fit_intercept: bool = True,
        time_limit: float | None = None,
        callback: Callable[[StreamProgress], bool | None] | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.k = k
        self.loss = loss
        self.truncation = truncation
        self.refit = refit
        self.ridge = ridge
        self.radius = radius
        self.learning_rate = learning_rate
        self.first_epoch = first_epoch
        self.average = average
        self.passes = passes
        self.shuffle = shuffle
        self.keep_rows = keep_rows
        self.fit_intercept = fit_intercept
        self.time_limit = time_limit
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, feature_names: Any = None) -> Self:
        """Learn the rows of a table in several passes, then choose and refit few features.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, or table in chunks, of shape (n_samples, n_features)
            The rows of a table in chunks are learned in their order, chunk by chunk, as by ``partial_fit``.
        y : array-like of shape (n_samples,)
            Numbers; for a classifier, classes of any kind, at least two.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, at least one of them positive.
        feature_names : array-like of shape (n_features,), default=None
            Names of the columns of an array or a sparse matrix, such as those of a vectoriser: for summaries, reports
            and exports. ``feature_names_in_`` is not set by it.
        """
        self._check_parameters()
        if self.time_limit is not None:
            compile_kernels()
        chunks = as_chunks(X)
        if chunks is not None:
            return self._fit_chunks(chunks, in_memory(y), sample_weight, feature_names)
        with showing(self.verbose, self.time_limit), fitting(self):
            samples = self._samples(X, y, sample_weight, reset=True)
            self._shown_names = self._names_for(feature_names, samples)
            self._fit_table(samples)
        return self

    def finish(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Self:
        """Run the second stage: choose few features and refit them.

        More rows may follow, and ``finish`` may be called again. What comes later does not depend on whether it was.
        Predictions and fitted attributes call it, on the stored rows, where that has not been done.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features), default=None
            Rows to refit the chosen features on. None: the stored rows, a uniform sample of at most ``keep_rows``.
        y : array-like of shape (n_samples,), default=None
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
        """
        self._check_parameters()
        with showing(self.verbose):
            stream = self._tuned_stream()
        if (X is None) != (y is None) or (X is None and sample_weight is not None):
            raise ValueError(
                "X, y and sample_weight belong together: give finish() X and y, with or without weights, or nothing to "
                "use the stored rows."
            )
        samples = stream.reservoir.samples() if X is None else self._samples(X, y, sample_weight, reset=False)
        if not samples.weights.any():
            raise ValueError(NO_WEIGHT)
        with showing(self.verbose), fitting(self):
            self._run_second_stage(stream, samples, Stop.SIZE)
        return self

    @property
    def average_iterate_(self) -> tuple[np.ndarray, Any]:
        """Coefficients and intercept of the averaged iterate of the first stage, over all features."""
        return self._over_all_features(*self._tuned_stream().learner.average())

    @property
    def last_iterate_(self) -> tuple[np.ndarray, Any]:
        """Coefficients and intercept of the last iterate: sparser than the average, and often better."""
        return self._over_all_features(*self._tuned_stream().learner.last())

    @property
    def n_samples_seen_(self) -> int:
        """Number of rows learned so far; those of weight zero do not count."""
        return self._stream.n_samples_seen if "_stream" in self.__dict__ else self._n_samples_seen

    @n_samples_seen_.setter
    def n_samples_seen_(self, count: float) -> None:
        self._n_samples_seen = int(count)

    def __getattr__(self, name: str) -> Any:
        # Called for attributes that are missing. Those of the second stage are computed now if rows were learned.
        if name in {"average_iterate_", "last_iterate_", "n_samples_seen_"}:
            check_is_fitted(self)  # raises again the error of the property, which led here
        if name == "evaluate":
            getattr(type(self), name)  # likewise: the error says what there is instead
        if name in SET_BY_FINISH and "_stream" in self.__dict__ and self._stream.n_samples_seen:
            return getattr(self.finish(), name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return "path_" in self.__dict__ or "_stream" in self.__dict__

    @abstractmethod
    def _samples(self, X: Any, y: Any, sample_weight: Any, *, reset: bool, least: int = 1) -> Samples:
        """Checked rows, at least ``least``, with their targets and weights."""

    @abstractmethod
    def _first_stage(self) -> tuple[Loss, Callable[[np.ndarray], np.ndarray]]:
        """The loss of the first stage, and the encoder of its targets: shape (n,) to shape (C, n)."""

    @abstractmethod
    def _target_encoder(self) -> Callable[[np.ndarray], Target]:
        """The encoder of targets for the second stage."""

    def _fit_table(self, samples: Samples) -> None:
        """Learn all rows of a table, in several passes, and run the second stage on them."""
        if not samples.weights.any():
            raise ValueError(NO_WEIGHT)
        samples = replace(samples, weights=_of_mean_one(samples.weights))
        rows = np.flatnonzero(samples.weights)  # beside others a weight may be nothing
        stream = Stream(self._stream_options(samples.X.shape[1], int(self.passes)))

        def order_of_pass(number: int) -> np.ndarray:
            return stream.options.random(ORDER, number).permutation(rows) if self.shuffle else rows

        deadline = deadline_after(self.time_limit)
        stop = learn_in_passes(stream, samples, order_of_pass, self.time_limit, self.callback)
        self._stream = stream
        self._run_second_stage(stream, samples, stop, deadline)
        self._warn_of_interrupt(stop)

    def _warn_of_interrupt(self, stop: Stop) -> None:
        if stop is Stop.INTERRUPTED:
            rows = self._stream.n_samples_seen
            message = f"Learning was interrupted; what was learned from {rows} rows was kept."
            warnings.warn(message, PaucaWarning, stacklevel=4)

    def _names_for(self, feature_names: Any, samples: Samples) -> np.ndarray | None:
        """Names that a user gives for the columns of a table that has none."""
        return display_names(feature_names, samples.X.shape[1], getattr(self, "feature_names_in_", None))

    def _fit_chunk(self, samples: Samples, feature_names: Any = None) -> None:
        """Learn rows that follow those before, once each."""
        if feature_names is not None:
            self._shown_names = self._names_for(feature_names, samples)
        if "_stream" not in self.__dict__:
            self._stream = Stream(self._stream_options(samples.X.shape[1], 1))
        rows = np.flatnonzero(samples.weights)
        self._stream.learn(samples, rows)
        for name in SET_BY_FINISH if len(rows) else ():
            self.__dict__.pop(name, None)

    def _fit_chunks(self, X: Chunks, y: Any, sample_weight: Any, feature_names: Any) -> Self:
        """Learn a table in chunks, as often as there are passes, and run the second stage on the stored rows."""
        y = np.asarray(y)
        weights = check_raw_weights(sample_weight, X.n_rows)
        if len(y) != X.n_rows:
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[X.n_rows, len(y)]}")
        if not weights.any():
            raise ValueError(NO_WEIGHT)
        own = None if X.names is None else np.array(X.names, dtype=object)
        shown = display_names(feature_names, X.shape[1], own)
        with showing(self.verbose, self.time_limit), fitting(self):
            for name in ("_stream", "path_", "feature_names_in_"):
                self.__dict__.pop(name, None)
            self._shown_names = shown
            deadline = deadline_after(self.time_limit)
            stop = self._learn_chunks(X, y, _of_mean_one(weights), deadline)
            if own is not None:
                self.feature_names_in_ = own
            with limited_until(deadline if stop is Stop.SIZE else -np.inf):
                stream = self._tuned_stream()
            self._run_second_stage(stream, stream.reservoir.samples(), stop, deadline)
            self._warn_of_interrupt(stop)
        return self

    def _learn_chunks(self, X: Chunks, y: np.ndarray, weights: np.ndarray, deadline: float) -> Stop:
        """Learn all chunks in several passes, and say what has ended that."""
        start, done, total = time.monotonic(), 0, int(self.passes) * X.n_rows
        stops, learned = list[Stop](), phase("learning rows", total)
        with ended_early(stops.append):
            for _ in range(int(self.passes)):
                for rows, block in X.map(take):
                    with limited_until(deadline):
                        self._learn_chunk(block, y[rows], weights[rows], y)
                    learned(len(block))
                    done, elapsed = done + len(block), time.monotonic() - start
                    progress = StreamProgress(done, total, elapsed)
                    if self.callback is not None and asks_to_stop(self.callback, progress):
                        return Stop.CALLBACK
                    if time.monotonic() >= deadline:
                        return Stop.TIME
        if "_stream" not in self.__dict__:
            raise KeyboardInterrupt  # nothing was learned yet
        return stops[0] if stops else Stop.SIZE

    def _learn_chunk(self, X: np.ndarray, y: np.ndarray, weights: np.ndarray, every: np.ndarray) -> None:
        """Learn a chunk; ``every`` target there will be defines the classes."""
        self.partial_fit(X, y, sample_weight=weights)

    def _is_first_chunk(self) -> bool:
        """Whether nothing has been learned yet; a model from a file raises an error, for it has no stream."""
        if "_stream" not in self.__dict__ and "path_" in self.__dict__:
            raise ValueError(
                "This model was loaded from a file or returned by at(), which hold its coefficients but not the "
                "stream; pickle the estimator to continue the stream later."
            )
        return "_stream" not in self.__dict__

    def _run_second_stage(self, stream: Stream, samples: Samples, stop: Stop, deadline: float = np.inf) -> None:
        """Choose features, refit them, and set the attributes that follow."""
        phase("choosing features")
        stage, stops, found = self._second_stage(), list[Stop](), None
        with ended_early(stops.append), limited_until(max(deadline, time.monotonic()) + GRACE):
            found = stage.run(stream.learner, samples, stream.options.random(DRAWS))
        if found is None:
            stop, found = stops[0], stage.run_without_refit(stream.learner, samples, stream.options.random(DRAWS))
            message = f"{stop.message} The chosen features have the coefficients of the stream: there was no refit."
            warnings.warn(message, PaucaWarning, stacklevel=5)
        null, model, left_out = found
        if self.learning_rate is not None and not (np.all(np.isfinite(model.coef)) and np.isfinite(model.objective)):
            raise ValueError(
                f"The steps of the stream diverge with learning_rate={self.learning_rate!r}. Set a smaller one, or "
                "leave it to be found (learning_rate=None)."
            )
        check_finite_models({0: null, 1: model})
        if len(left_out) and stop is Stop.SIZE:
            stop = Stop.EXHAUSTED
        models = {0: null, model.size: model}
        self.path_ = self._path_of(models, [("add", int(j)) for j in model.support], stop)
        settings = stream.settings
        assert settings is not None
        self.radius_, self.learning_rate_ = settings.radius, settings.learning_rate
        self.first_epoch_ = settings.first_epoch
        self._set_size(model.size)
        if len(left_out):
            warnings.warn(
                f"Chosen features that are constant or linear combinations of others in the rows of the refit were "
                f"left out: {quoted_columns(self.path_.column_names, left_out)}. Refit on more rows, or set a ridge.",
                PaucaWarning,
                stacklevel=4,
            )

    def _tuned_stream(self) -> Stream:
        """The stream with all its rows learned."""
        check_is_fitted(self)
        self._is_first_chunk()
        if not self._stream.n_samples_seen:
            raise ValueError("No row with weight has been learned yet; call partial_fit() with some first.")
        return self._stream.tuned()

    def _stream_options(self, n_features: int, passes: int) -> StreamOptions:
        loss, encode = self._first_stage()
        return StreamOptions(
            n_features=n_features,
            loss=loss,
            encode=encode,
            given=GivenSettings(self.radius, self.learning_rate, parse_first_epoch(self.first_epoch)),
            reservoir_size=self.keep_rows,
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            average=self.average,
            fit_intercept=self.fit_intercept,
            passes=passes,
            second_stage=self._second_stage(),
        )

    def _second_stage(self) -> SecondStage:
        encoder, center = self._target_encoder(), bool(self.fit_intercept)
        return SecondStage(encoder, self.k, self.truncation, self.refit, float(self.ridge), center)

    def _over_all_features(self, coef: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, Any]:
        single = len(coef) == 1
        return self._reshape(coef[0] if single else coef, float(intercept[0]) if single else intercept)

    def _path_of(self, models: dict[int, Model], moves: list[Move], stop: Stop) -> Path:
        found, names = super()._path_of(models, moves, stop), self.__dict__.get("_shown_names")
        return found if names is None else replace(found, column_names=names)

    def _copy(self) -> Self:
        # A model of another size has no stream to continue: that belongs to the model it was taken from.
        other = super()._copy()
        other.n_samples_seen_ = self.n_samples_seen_
        other.__dict__.pop("_stream", None)
        return other

    def _after_loading(self) -> None:
        super()._after_loading()
        self.first_epoch_ = int(self.first_epoch_)

    def _check_parameters(self) -> None:
        """Check the parameters, before any data are read."""
        check = ParameterChecks(type(self).__name__)
        if self.k is not None:
            check.count("k", self.k, "or None")
        if isinstance(self.first_epoch, str):
            check.one_of("first_epoch", self.first_epoch, ("all",))
        elif self.first_epoch is not None:
            check.count("first_epoch", self.first_epoch, "or 'all' or None")
        for name in ("passes", "keep_rows"):
            check.count(name, getattr(self, name))
        for name in ("radius", "learning_rate"):
            if getattr(self, name) is not None:
                check.number(name, getattr(self, name), positive=True)
        check.time_limit(self.time_limit)
        check.number("ridge", self.ridge)
        check.one_of("truncation", self.truncation, TRUNCATIONS)
        for name in ("average", "refit", "shuffle", "fit_intercept"):
            check.flag(name, getattr(self, name))
        check.optional_callable("callback", self.callback)
        check.verbose(self.verbose)

    def _finite_rows(self, X: Any) -> Any:
        """X as dense rows or CSR, with finite values of moderate size: steps multiply squares of rows with targets."""
        check_finite(type(self).__name__, X, getattr(self, "feature_names_in_", None), largest=LARGEST_IN_STREAM)
        return X.tocsr() if sparse.issparse(X) else X


def _of_mean_one(weights: np.ndarray) -> np.ndarray:
    """Weights whose mean over the rows that have some is one; their sum may be beyond the largest float."""
    weights = weights / weights.max()
    return np.asarray(weights / weights[weights > 0].mean())
