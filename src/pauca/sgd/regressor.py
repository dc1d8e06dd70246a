"""Regression with few features, learned from a stream of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pauca.estimators.fitted_base import fitting
from pauca.estimators.input_checks import check_data, check_target
from pauca.estimators.regressor import RegressionMixin
from pauca.estimators.row_values import check_raw_weights
from pauca.export import register_estimator
from pauca.losses import Loss, resolve
from pauca.losses.compiled_slopes import check_compiled
from pauca.runs.problem import Target
from pauca.runs.progress import showing
from pauca.sgd.base import StreamModel
from pauca.sgd.reservoir import Samples


@register_estimator("StreamRegressor", numbers=("radius_", "learning_rate_", "first_epoch_", "n_samples_seen_"))
class StreamRegressor(RegressionMixin, StreamModel):
    """Linear regression with few features, learned from rows that are read one after the other.

    For tables of millions of columns and for endless streams. The first stage is epoch SGD within an l1 ball: the time
    for a row is proportional to its nonzero entries, whatever the number of columns. The second stage keeps ``k``
    features and refits them. Li, Yang, Zhang and Jin (2017), with a refit that is not theirs.

    Where X fits in memory and has up to some hundred thousand columns, ``SparseRegressor`` finds better models.

    Parameters
    ----------
    k : int or None, default=100
        Number of features. None: all that were learned, without a second stage.
    loss : str or Loss, default="squared_error"
        "squared_error", "huber", "absolute_error", "quantile", or an object from ``pauca.losses`` such as
        ``Huber(2.0)``.
    truncation : {"truncate", "systematic", "moments", "magnitude"}, default="truncate"
        How features are chosen in the second stage, as in ``pauca.sparsify``. "truncate" takes those with the largest
        ``|w_j|`` times root mean square; with a refit it takes half as many again, of which the ``k`` most important
        stay: best in practice. The others draw at random, with guarantees; "moments" and "magnitude" make ``k`` draws
        with replacement, so that there may be fewer features.
    refit : bool, default=True
        Whether the coefficients of the chosen features are fitted again.
    ridge : float, default=0.0
        Weight of the squared coefficients in that refit.
    radius : float or None, default=None
        Radius of the l1 ball. None: chosen on rows held out from the first ones.
    learning_rate : float or None, default=None
        Step size of the first epoch; each epoch is twice as long as the one before, and its steps half as large. None:
        chosen.
    first_epoch : int, "all" or None, default=None
        Number of rows of the first epoch. None: chosen. "all": a single epoch without end, which is plain stochastic
        gradient descent in the l1 ball with one step size.
    average : bool, default=True
        Whether the first stage ends with the average of the iterates of an epoch, as in the paper. False: with the last
        iterate, which is sparser and often better.
    passes : int, default=5
        Number of passes of ``fit`` over the rows; ``partial_fit`` learns each once.
    shuffle : bool, default=True
        Whether ``fit`` takes the rows in random order, a new one for each pass.
    keep_rows : int, default=10000
        Number of rows to store: the first ones, on which the settings are chosen before anything is learned, later a
        uniform sample of all. ``finish()`` refits on them.
    fit_intercept : bool, default=True
        Whether to fit an intercept; it is not in the l1 ball and is never counted.
    time_limit : float or None, default=None
        Seconds after which ``fit`` stops learning and runs the second stage.
    callback : callable or None, default=None
        Called every few thousand rows of ``fit``, more often where rows are long, with a
        ``pauca.sgd.StreamProgress``; returning True ends learning.
    verbose : int, default=0
        1 shows a progress bar on stderr while rows are learned, with the time left; 0 prints nothing.
    random_state : int, RandomState or None, default=0
        For the order of rows, the stored sample, and draws.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients; zero for features that were not chosen.
    intercept_ : float
    support_ : ndarray
        Indices of the chosen features, ascending.
    k_ : int
        Number of features of the model.
    average_iterate_, last_iterate_ : tuple of ndarray and float
        Coefficients of all features and intercept after the first stage.
    radius_, learning_rate_, first_epoch_ : float, float, int
        The settings that were given or chosen.
    n_samples_seen_ : int
        Number of rows learned.
    objective_ : float
        Mean loss on the rows of the refit.
    stop_ : Stop
        Why learning ended.
    path_ : Path
        The empty model and the one of ``k_`` features.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only where X has column names.

    Notes
    -----
    Needs the extra ``[compiled]`` (numba); the first call ever compiles for some seconds, later processes load what was
    compiled.

    The entries of rows should be of one size, such as tf-idf or standardised columns: all features share one learning
    rate. A CSR matrix or dense array is read as it is; any other sparse format is converted to CSR once.

    Weights of rows multiply their steps; ``fit`` brings them to a mean of one, ``partial_fit`` takes them as they are.

    A chunk that raises an error (missing values, another width) changes nothing. Pickle an estimator to continue the
    stream later; ``save`` writes the fitted model alone.

    Two baselines of Li, Yang, Zhang and Jin (2017) are settings of this class. Plain SGD: ``first_epoch="all"``. The
    single-stage approach (SpS), which hopes for zeros from a small ball: ``StreamRegressor(k=None, first_epoch="all",
    average=False, radius=..)``, whose ``coef_`` is the last iterate; averages have hardly any zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from pauca import StreamRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((3000, 50))
    >>> y = 3 * X[:, 7] - 2 * X[:, 30] + rng.standard_normal(3000)
    >>> StreamRegressor(k=2).fit(X, y).support_
    array([ 7, 30])

    In chunks of any size:

    >>> stream = StreamRegressor(k=2)
    >>> for start in range(0, 3000, 500):
    ...     _ = stream.partial_fit(X[start : start + 500], y[start : start + 500])
    >>> stream.finish().support_
    array([ 7, 30])
    """

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, *, feature_names: Any = None) -> StreamRegressor:
        """Learn a chunk of rows that follow those before; then ``finish()``, or predict.

        Only the order of the rows matters, not how they are cut into chunks. A chunk may be empty.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
        feature_names : array-like of shape (n_features,), default=None
            Names of the columns, as in ``fit``; they hold from now on, and one chunk with them is enough.
        """
        self._check_parameters()
        with showing(self.verbose), fitting(self):
            samples = self._samples(X, y, sample_weight, reset=self._is_first_chunk(), least=0)
            self._fit_chunk(samples, feature_names)
        return self

    def _samples(self, X: Any, y: Any, sample_weight: Any, *, reset: bool, least: int = 1) -> Samples:
        loss = resolve(self.loss, classes=False)
        check_compiled(loss)
        X, y = check_data(self, X, y, multi_output=False, reset=reset, ensure_min_samples=least)
        X = self._finite_rows(X)
        if len(y):
            check_target(y)
            loss.check_target(y[None])
        self._several_outputs, self._output_names = False, []
        return Samples(X, y, check_raw_weights(sample_weight, len(y)))

    def _first_stage(self) -> tuple[Loss, Callable[[np.ndarray], np.ndarray]]:
        return resolve(self.loss, classes=False), as_single_output

    def _target_encoder(self) -> Callable[[np.ndarray], Target]:
        return NumberEncoder(resolve(self.loss, classes=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags


def as_single_output(y: np.ndarray) -> np.ndarray:
    """Numbers of shape (n,) to shape (1, n)."""
    return y[None]


@dataclass(frozen=True)
class NumberEncoder:
    """Numbers as the second stage needs them; an object, so that a stream can be pickled."""

    loss: Loss

    def __call__(self, y: np.ndarray) -> Target:
        """Numbers of shape (n,) to a target."""
        return Target(as_single_output(y), self.loss, 1)
