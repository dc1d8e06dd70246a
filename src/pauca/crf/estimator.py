"""Labels of sequences from few sensors, as an estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np

from pauca.crf.fitted import FittedTagger
from pauca.crf.fitting import check_options, fit_tagger, tag_remarks
from pauca.crf.input import read_sequences
from pauca.crf.labels import make_classes, read_labels
from pauca.crf.tables import Wanted
from pauca.export import register_kind
from pauca.search.driver import Method, Progress
from pauca.warnings import PaucaWarning


@register_kind("SparseTagger", arrays=("classes_", "names_"))
class SparseTagger(FittedTagger):
    """Labels for every position of a sequence, from few sensors: a conditional random field on a chain.

    Minimises the mean negative log-likelihood of the labels per position,
    ``Q = (1/N) sum -log p(y | x) + (ridge/2) |W|^2 + (ridge_transitions/2) |T|^2``, over models of at most ``k``
    sensors, where ``p(y | x)`` is proportional to ``exp(sum_t (W x_t + b)[y_t] + sum_t T[y_(t-1), y_t])``. Transitions
    T between labels and biases b are in every model and are not counted. The fit keeps the model of every size on the
    way: see ``path_`` and ``at``. Needs the extra [compiled].

    Parameters
    ----------
    k : int, "auto", iterable of int or None, default="auto"
        Number of sensors. "auto" finds it on sequences held out, from 0 up to as many as it takes; a range or list
        names the sizes to choose from. None: as many as lower the objective by at least ``tol``.
    unit : {"sensor", "weight"}, default="sensor"
        What is chosen and counted: a sensor with its weights for all labels, since a sensor that is bought serves every
        label; or single weights, each of one sensor for one label.
    method : str or object, default="foba"
        "foba", "forward", "exchange" or "backward", or an object from ``pauca.methods``. "foba" and "forward" rank
        sensors by the size of their gradient: FoBa-gdt of Liu, Fujimaki and Ye (2014). "exchange" lowers the objective
        further and takes several times as long; what it gains there seldom shows on sequences held out.
    cv : int, splitter, iterable or None, default=None
        Folds of sequences for choosing ``k``: a number (None: 5), a splitter of scikit-learn, or an iterable of splits.
        A sequence that a split names several times, as bootstraps do, is fitted as if it occurred so often.
    selection_rule : {"1se", "best"}, default="1se"
        The smallest size within one standard error of the best accuracy on sequences held out, or the best itself.
    n_jobs : int or None, default=None
        Number of threads: over sequences, or over folds where ``k`` is chosen. They do not change the result.
    ridge, ridge_transitions : float or None, default=None
        Weights of the squares of observation weights, those of columns divided by how much they move (binary ones stay
        as they are, others move by twice their standard deviation or, from where they rest, by their departures), and
        of transitions. None is one over the number of positions: a standard normal prior. With 0, transitions that
        never occur go to minus infinity; with 10, the most there may be, they are all near zero.
    tol : float, default=0.0
        The least decrease of Q that is worth a further sensor.
    feature_groups : array-like of shape (n_columns,), dict or callable, default=None
        Label of every column's sensor, where a sensor has several columns; they are chosen together. A function is
        given the name of a column (its index, where there are no names) and returns the label. A dict has labels by
        name or index; the name of an attribute, such as "word", stands for all its columns "word=..". Columns that the
        dict does not have, or for which the function returns None, are sensors of their own. The squares of the
        gradients of a sensor's columns are summed to rank it, so that those with many columns are ahead.
    always, never : list of column names or indices, default=None
        Sensors that are in every model (and counted), or in none; with ``feature_groups``, labels of groups.
    costs : array-like of shape (n_columns,) or dict, default=None
        Price of every column, or group. Sensors are ranked by gain per price.
    budget : float or None, default=None
        The largest total price.
    time_limit : float or None, default=None
        Seconds after which the search stops and the best found so far is kept.
    callback : callable or None, default=None
        Called after every move of the search with a ``pauca.Progress``; returning True ends the search.

    Attributes
    ----------
    sensors_ : ndarray
        The chosen sensors: labels of groups, names of columns, or indices where there are no names.
    classes_ : ndarray of shape (C,)
        The labels, in order where they have one.
    coef_ : ndarray of shape (C, n_columns)
        Weights; zero for sensors that were not chosen.
    intercept_ : ndarray of shape (C,)
        Biases of the labels.
    transitions_ : ndarray of shape (C, C)
        Weight of the step from the label of the row to that of the column.
    support_ : ndarray
        Indices of the columns of chosen sensors, ascending.
    cost_ : float
        What the chosen sensors, or weights, cost in all, where there are ``costs``.
    k_ : int
        Number of sensors, or weights, of the model.
    objective_ : float
        Its objective Q.
    stop_ : Stop
        Why the search ended.
    path_ : Path
        The model of every size, and every move. Where the size was chosen, ``path_.to_frame()`` has the columns score
        and error, the accuracy of every size on sequences held out and one less it, and standard_error.
    n_features_in_ : int
    names_ : ndarray
        Names of the columns; empty where they have none.

    Notes
    -----
    Sequences are read once into one matrix: arrays of truth values, integers or floats, CSR matrices, frames, or dicts
    of attributes as users of CRFsuite have them. Dicts give columns such as ``word=the`` for strings, ``length`` for
    numbers and ``next:length`` for a dict within; each column is a sensor unless ``feature_groups`` says otherwise.

    Tens of labels are fine. Refits hold a square matrix over all pairs of labels: a hundred of them take minutes and
    gigabytes, and where memory would not hold it, the fit is refused.

    Sensors that do not vary, and copies of chosen ones, are never chosen, and a warning names them. Where there are
    fewer sensors than ``k``, the model has all that can be used, and a warning says so.

    A label that a prediction meets and the fit has not seen counts as wrong in ``score``.

    Examples
    --------
    >>> import numpy as np
    >>> from pauca import SparseTagger
    >>> rng = np.random.default_rng(0)
    >>> y = [np.repeat(rng.integers(0, 3, 12), 5) for _ in range(8)]            # labels stay for five steps
    >>> X = [np.c_[np.eye(3)[one], np.zeros((60, 5))] > 0 for one in y]         # three sensors fire with them
    >>> X = [one ^ (rng.random(one.shape) < 0.1) for one in X]                  # now and then by mistake
    >>> model = SparseTagger(k=3).fit(X[:6], y[:6])
    >>> model.sensors_
    array([0, 1, 2])
    >>> model.score(X[6:], y[6:]) > 0.9
    True
    """

    def __init__(
        self,
        k: int | str | Iterable[int] | None = "auto",
        *,
        unit: str = "sensor",
        method: str | Method = "foba",
        cv: Any = None,
        selection_rule: str = "1se",
        n_jobs: int | None = None,
        ridge: float | None = None,
        ridge_transitions: float | None = None,
        tol: float = 0.0,
        feature_groups: Any = None,
        always: Any = None,
        never: Any = None,
        costs: Any = None,
        budget: float | None = None,
        time_limit: float | None = None,
        callback: Callable[[Progress], bool | None] | None = None,
    ) -> None:
        self.k = k
        self.unit = unit
        self.method = method
        self.cv = cv
        self.selection_rule = selection_rule
        self.n_jobs = n_jobs
        self.ridge = ridge
        self.ridge_transitions = ridge_transitions
        self.tol = tol
        self.feature_groups = feature_groups
        self.always = always
        self.never = never
        self.costs = costs
        self.budget = budget
        self.time_limit = time_limit
        self.callback = callback

    def fit(self, X: Any, y: Any, lengths: Any = None) -> Self:
        """Find the models of every size up to ``k``, or up to the sizes compared, and choose one.

        Parameters
        ----------
        X : list of tables, or one table with ``lengths``
            A table has a row for every position: an array, a CSR matrix, a frame, or a list of dicts.
        y : list of sequences of labels, or one with ``lengths``
            Any hashable labels; None and NaN of any kind are none.
        lengths : list of int, default=None
            How many positions each sequence has, where X and y hold all of them one after the other.

        Returns
        -------
        self
        """
        check_options(self)
        read = read_sequences(X, lengths, Wanted(None, None, None))
        classes, codes = make_classes(read_labels(y, read.bounds, lengths))
        found = fit_tagger(self, read, classes, codes)
        self.classes_ = classes
        self.names_ = np.zeros(0, dtype=object) if read.names is None else read.names
        self.n_features_in_ = read.matrix.shape[1]
        self.path_ = found.path
        self._name_columns()
        self._choose(found.answer)
        noteworthy = " ".join(tag_remarks(self, found.idle))
        if noteworthy:
            warnings.warn(noteworthy, PaucaWarning, stacklevel=2)
        return self
