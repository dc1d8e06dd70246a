"""Classification with few features, learned from a stream of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from pauca.estimators.classifier import ClassificationMixin, encode_classes
from pauca.estimators.fitted_base import fitting
from pauca.estimators.input_checks import check_classes
from pauca.estimators.row_values import check_raw_weights
from pauca.estimators.settings import check_class_weight
from pauca.export import register_estimator
from pauca.losses import Loss, resolve
from pauca.losses.compiled_slopes import check_compiled
from pauca.runs.problem import Target
from pauca.runs.progress import showing
from pauca.sgd.base import StreamModel
from pauca.sgd.reservoir import Samples
from pauca.sgd.stream import StreamProgress
from pauca.wording import plain


@register_estimator(
    "StreamClassifier", arrays=("classes_",), numbers=("radius_", "learning_rate_", "first_epoch_", "n_samples_seen_")
)
class StreamClassifier(ClassificationMixin, StreamModel):
    """A linear classifier with few features, learned from rows that are read one after the other.

    For tables of millions of columns and for endless streams, such as words or clicks. The first stage is epoch SGD
    within an l1 ball: the time for a row is proportional to its nonzero entries, whatever the number of columns. The
    second stage keeps ``k`` features and refits them. Li, Yang, Zhang and Jin (2017), with a refit that is not theirs.
    More than two classes are learned one against the rest in the first stage, and share their features in the second.

    Where X fits in memory and has up to some hundred thousand columns, ``SparseClassifier`` finds better models.

    Parameters
    ----------
    k : int or None, default=100
        Number of features. None: all that were learned, without a second stage.
    loss : str or Loss, default="log_loss"
        "log_loss" or "hinge".
    truncation : {"truncate", "systematic", "moments", "magnitude"}, default="truncate"
        How features are chosen in the second stage, as in ``StreamRegressor``.
    refit, ridge, radius, learning_rate, first_epoch, average, passes, shuffle, keep_rows, fit_intercept
        As in ``StreamRegressor``.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, which multiply those of rows; "balanced" only for ``fit``, which has all rows at once.
    time_limit, callback, verbose, random_state
        As in ``StreamRegressor``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) for two classes, else (n_classes, n_features)
        Coefficients; zero for features that were not chosen.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    support_ : ndarray
        Indices of the chosen features, ascending.
    k_, objective_, stop_, path_, average_iterate_, last_iterate_
        As in ``StreamRegressor``.
    radius_, learning_rate_, first_epoch_, n_samples_seen_
        As in ``StreamRegressor``.

    Notes
    -----
    All notes on ``StreamRegressor`` hold. With more than two classes and without a refit, each class has been learned
    against the rest, and probabilities are not reliable.

    Examples
    --------
    >>> import numpy as np
    >>> from pauca import StreamClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((3000, 50))
    >>> y = np.where(3 * X[:, 7] - 2 * X[:, 30] + rng.standard_normal(3000) > 0, "yes", "no")
    >>> StreamClassifier(k=2).fit(X, y).support_
    array([ 7, 30])

    In chunks, of which the first comes with all classes:

    >>> stream = StreamClassifier(k=2)
    >>> for start in range(0, 3000, 500):
    ...     _ = stream.partial_fit(X[start : start + 500], y[start : start + 500], classes=["no", "yes"])
    >>> stream.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        k: int | None = 100,
        *,
        loss: str | Loss = "log_loss",
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
        class_weight: Any = None,
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
        self.class_weight = class_weight
        self.time_limit = time_limit
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, *, feature_names: Any = None
    ) -> StreamClassifier:
        """Learn a chunk of rows that follow those before; then ``finish()``, or predict.

        Only the order of the rows matters, not how they are cut into chunks. A chunk may be empty.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), default=None
            All classes there will be; for the first chunk, where not all of them are in it.
        sample_weight : array-like of shape (n_samples,), default=None
        feature_names : array-like of shape (n_features,), default=None
            Names of the columns, as in ``fit``; they hold from now on, and one chunk with them is enough.
        """
        self._check_parameters()
        if isinstance(self.class_weight, str):
            raise ValueError(
                "class_weight='balanced' needs all rows at once, as fit() has them; for a stream give the weights as a "
                "dict."
            )
        first = self._is_first_chunk()
        if classes is not None and not first and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"`classes={classes}` is not the same as on last call to partial_fit, which was: {self.classes_}."
            )
        with showing(self.verbose), fitting(self):
            samples = self._samples(X, y, sample_weight, reset=first, least=0, classes=classes)
            self._fit_chunk(samples, feature_names)
        return self

    def _learn_chunk(self, X: np.ndarray, y: np.ndarray, weights: np.ndarray, every: np.ndarray) -> None:
        self.partial_fit(X, y, classes=np.unique(every), sample_weight=weights)

    def _samples(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool, least: int = 1, classes: Any = None
    ) -> Samples:
        check_compiled(resolve(self.loss, classes=True))
        X, y = check_classes(self, X, y, reset=reset, ensure_min_samples=least)
        X = self._finite_rows(X)
        weights = check_raw_weights(sample_weight, len(y))
        check_class_weight(self.class_weight)
        if self.class_weight is not None and len(y):
            weights = weights * compute_sample_weight(self.class_weight, y)
        known = self._all_classes(y, classes) if reset else self.classes_
        indices = np.searchsorted(known, y) if len(y) else np.zeros(0, dtype=np.intp)
        unknown = known[np.minimum(indices, len(known) - 1)] != y if len(y) else np.zeros(0, dtype=bool)
        if unknown.any():
            raise ValueError(
                f"y holds the class {plain(y[unknown][0])!r}, and the classes were fixed by the first chunk as "
                f"{[plain(label) for label in known]}. Leave those rows out, or start a new stream with all classes: "
                "partial_fit(X, y, classes=[...])."
            )
        self.classes_ = known
        return Samples(X, indices.astype(np.float64), weights)

    def _all_classes(self, y: np.ndarray, classes: Any) -> np.ndarray:
        known = np.unique(y if classes is None else classes)
        if len(known) < 2:
            only = f"the one class {plain(known[0])!r} alone" if len(known) else "none"
            raise ValueError(
                f"{type(self).__name__} needs at least two classes; y holds {only}. Give all classes with the first "
                "chunk: partial_fit(X, y, classes=[...])."
            )
        return known

    def _first_stage(self) -> tuple[Loss, Callable[[np.ndarray], np.ndarray]]:
        return resolve(self.loss, classes=True), OneVsRestEncoder(len(self.classes_))

    def _target_encoder(self) -> Callable[[np.ndarray], Target]:
        n_classes = len(self.classes_)
        return ClassEncoder(resolve(self.loss, classes=True).for_classes(n_classes), n_classes)


# Objects, so that a stream can be pickled.
@dataclass(frozen=True)
class OneVsRestEncoder:
    """Indices of classes as -1 and 1: a single output for two classes, else one for each class against the rest."""

    n_classes: int

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """Indices of shape (n,) to targets of shape (C, n)."""
        return encode_classes(y, self.n_classes, joint=False)


@dataclass(frozen=True)
class ClassEncoder:
    """Indices of classes as the second stage needs them: all classes jointly, if the loss can."""

    loss: Loss
    n_classes: int

    def __call__(self, y: np.ndarray) -> Target:
        """Indices of shape (n,) to a target."""
        n_outputs = 1 if self.n_classes == 2 else self.n_classes
        return Target(encode_classes(y, self.n_classes, joint=self.loss.joint), self.loss, n_outputs)
