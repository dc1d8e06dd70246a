"""Numbers foretold by few features, learnt from a stream of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pauca.estimators.regression import RegressionMixin
from pauca.estimators.validation import check_data, check_raw_weights, check_target
from pauca.export import register_kind
from pauca.losses import Loss, resolve
from pauca.losses.compiled import check_compiled
from pauca.search.problem import Target
from pauca.sgd.base import StreamModel
from pauca.sgd.passes import StreamProgress
from pauca.sgd.reservoir import Rows
from pauca.sgd.target_encoding import Numbers, one_output


@register_kind("StreamRegressor", numbers=("bound_", "step_", "first_epoch_", "n_seen_"))
class StreamRegressor(RegressionMixin, StreamModel):
    """A linear model of numbers with few features, learnt from rows that are read one after the other.

    For tables of millions of columns and streams without end. The first stage is epoch SGD within an l1 ball: every row
    costs time in proportion to its entries that are not zero, whatever the number of columns. The second stage keeps
    ``k`` features and refits them. Li, Yang, Zhang and Jin (2017), with a refit that is not theirs.

    Where X fits in memory and has up to some hundred thousand columns, ``SparseRegressor`` finds better models.

    Parameters
    ----------
    k : int or None, default=100
        Number of features. None: all that were learnt, without a second stage.
    loss : str or Loss, default="squared_error"
        "squared_error", "huber", "absolute_error", "quantile", or an object from ``pauca.losses`` such as
        ``Huber(2.0)``.
    method : {"truncate", "systematic", "moments", "magnitude"}, default="truncate"
        How features are chosen in the second stage. "truncate" takes those with the largest ``|w_j|`` times root mean
        square, with a refit half as many again, of which the ``k`` that are then worth most stay: best in practice.
        The others are the random draws of ``pauca.sparsify``, for
        which there are guarantees. "moments" and "magnitude" make ``k`` draws, so that some features come up several
        times and there are fewer.
    refit : bool, default=True
        Whether the coefficients of the chosen features are fitted anew.
    ridge : float, default=0.0
        Weight of the squared coefficients in that refit.
    bound : float or None, default=None
        Radius of the l1 ball. None: found on rows held out from the first ones.
    step : float or None, default=None
        Step of the first epoch; each epoch is twice as long as the one before, and its step half as large. None: found.
    first_epoch : int or None, default=None
        Number of rows of the first epoch. None: found.
    iterate : {"average", "last"}, default="average"
        What the first stage hands on: the average of the iterates of an epoch, as in the paper, or the last iterate,
        which is sparser and often better.
    passes : int, default=5
        How often ``fit`` goes over the rows; ``partial_fit`` sees each once.
    shuffle : bool, default=True
        Whether ``fit`` takes the rows in random order, a new one for each pass.
    keep_rows : int, default=10000
        How many rows are kept: the first ones, on which the settings are found before anything is learnt, later a
        fair sample of all. ``finish()`` refits on them.
    fit_intercept : bool, default=True
        Whether to fit an intercept; it lies outside the ball and is never counted.
    time_limit : float or None, default=None
        Seconds after which ``fit`` stops learning and concludes from what it has.
    callback : callable or None, default=None
        Called every few thousand rows of ``fit``, a hundred times a pass at most, with a
        ``pauca.sgd.passes.StreamProgress``; returning True ends learning.
    random_state : int, RandomState or None, default=0
        For the order of rows, the sample that is kept, and draws.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients; zero for features that were not chosen.
    intercept_ : float
    support_ : ndarray
        Indices of the chosen features, ascending.
    k_ : int
        Number of features of the model.
    average_, last_ : tuple of ndarray and float
        Coefficients of all features and intercept after the first stage.
    bound_, step_, first_epoch_ : float, float, int
        The settings that were given or found.
    n_seen_ : int
        Number of rows seen.
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

    Rows are best when their entries are of one size, such as tf-idf or standardised columns: all features share one
    step. A CSR matrix or dense array is read as it is; any other sparse format is converted to CSR once.

    Weights of rows multiply their steps; ``fit`` brings them to a mean of one, ``partial_fit`` takes them as they are.

    A chunk that is refused (missing values, another width) leaves everything as it was. Pickle an estimator to go on
    with the stream later; ``save`` writes the conclusion alone.

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

    def __init__(
        self,
        k: int | None = 100,
        *,
        loss: str | Loss = "squared_error",
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
        super().__init__(
            k,
            loss=loss,
            method=method,
            refit=refit,
            ridge=ridge,
            bound=bound,
            step=step,
            first_epoch=first_epoch,
            iterate=iterate,
            passes=passes,
            shuffle=shuffle,
            keep_rows=keep_rows,
            fit_intercept=fit_intercept,
            time_limit=time_limit,
            callback=callback,
            random_state=random_state,
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> StreamRegressor:
        """Learn the rows of a table in several passes, and conclude.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, at least one of them positive.

        Returns
        -------
        self
        """
        self._check_options()
        with self._as_it_was_if_refused():
            self._learn_all(self._rows(X, y, sample_weight, reset=True))
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> StreamRegressor:
        """Learn a chunk of rows that follow those before; then ``finish()``, or predict.

        How the rows are cut into chunks does not matter, only their order. A chunk may be empty.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        self._check_options()
        with self._as_it_was_if_refused():
            self._learn_chunk(self._rows(X, y, sample_weight, reset=self._is_first_chunk(), least=0))
        return self

    def _rows(self, X: Any, y: Any, sample_weight: Any, *, reset: bool, least: int = 1) -> Rows:
        loss = resolve(self.loss, classes=False)
        check_compiled(loss)
        X, y = check_data(self, X, y, multi_output=False, reset=reset, ensure_min_samples=least)
        X = self._as_rows(X)
        if len(y):
            check_target(y)
            loss.check_target(y[None])
        self._several_outputs, self._output_names = False, []
        return Rows(X, y, check_raw_weights(sample_weight, len(y)))

    def _stage_one(self) -> tuple[Loss, Callable[[np.ndarray], np.ndarray]]:
        return resolve(self.loss, classes=False), one_output

    def _targets(self) -> Callable[[np.ndarray], Target]:
        return Numbers(resolve(self.loss, classes=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags
