"""SparseTagger: labels of sequences from few sensors."""

from __future__ import annotations

import numbers
import os
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from pauca.checks import ParameterChecks
from pauca.crf.chain_inference import ChainInference
from pauca.crf.feature_groups import RedundantSensors
from pauca.crf.fit import SENSOR, WEIGHT, TaggerSettings, fit_tagger
from pauca.crf.input import FittedColumns, Sequences, read_sequences
from pauca.crf.labels import encode_labels, label_report, label_table, read_labels
from pauca.crf.observations import Observations, check_magnitudes
from pauca.estimators.fit_warnings import ended_by_time, too_few, unusual_end
from pauca.estimators.fitted_base import PathMixin, check_finite_models, fitting
from pauca.estimators.settings import check_cross_validation, parse_sizes
from pauca.export import register_estimator, save
from pauca.methods import FoBa, Forward, resolve
from pauca.runs.progress import reported, showing
from pauca.runs.run import Budget, Method, Progress
from pauca.warnings import PaucaWarning
from pauca.wording import quoted_columns

# Scores of first and last labels are balanced by transitions. Where these can hardly move, refits stop too early: with
# a ridge of 100 they ended 2e-5 above the optimum, with 10,000 no sensor came in. At 10 transitions are near zero.
LARGEST_RIDGE = 10.0

# Parameters that apply to sensors, and not to single weights.
FOR_SENSORS = ("feature_groups", "always", "never", "costs", "budget")

# Ranking by the size of the gradient is the only rule that needs no passes over the data of its own.
METHODS: dict[str, Method] = {"foba": FoBa(rule="gradient"), "forward": Forward(rule="gradient")}


@register_estimator("SparseTagger", arrays=("classes_", "names_"))
class SparseTagger(PathMixin, BaseEstimator):
    """A label for every position of a sequence, from few sensors: a linear-chain conditional random field.

    Minimises the mean negative log-likelihood of the labels per position,
    ``Q = (1/N) sum -log p(y | x) + (ridge/2) |W|^2 + (ridge_transitions/2) |T|^2``, over models of at most ``k``
    sensors, where ``p(y | x)`` is proportional to ``exp(sum_t (W x_t + b)[y_t] + sum_t T[y_(t-1), y_t])``. Transitions
    T between labels and biases b are in every model and are not counted. The fit keeps the best model of every size it
    passes: see ``path_`` and ``at``. Needs the extra [compiled].

    Parameters
    ----------
    k : int, "auto", iterable of int or None, default="auto"
        Number of sensors. "auto" chooses it by cross-validation, from 0 up to as many as needed; a range or list gives
        the sizes to choose from. None: as many as lower the objective by at least ``tol``.
    unit : {"sensor", "weight"}, default="sensor"
        What is selected and counted: sensors, each with its weights for all labels; or single weights, each of one
        sensor for one label.
    method : str or object, default="foba"
        "foba", "forward", "exchange" or "backward", or an object from ``pauca.methods``. "foba" and "forward" rank
        sensors by the size of their gradient: FoBa-gdt of Liu, Fujimaki and Ye (2014). "exchange" lowers the objective
        further and takes several times as long; the gain is rarely visible on held-out sequences.
    cv : int, splitter, iterable or None, default=None
        Folds of sequences for choosing ``k``: a number (None: 5), a splitter of scikit-learn, or an iterable of splits.
        A sequence that a split names several times, as in a bootstrap, is fitted as if it occurred so often.
    selection_rule : float, "1se" or "best", default="1se"
        The smallest size within so many standard errors ("1se": one) of the best accuracy on held-out sequences, or the
        best itself. The standard error is that of the difference between the two, over the folds.
    n_jobs : int or None, default=None
        Number of threads: over sequences, or over folds where ``k`` is chosen. The result does not depend on it.
    ridge, ridge_transitions : float or None, default=None
        Penalties on the squares of observation weights and of transitions. Weights are those of columns divided by
        their scale: the range of a binary column; the root mean square of departures from its usual value, if a column
        has one value at half of the positions or more; twice the standard deviation of any other. None is one over the
        number of positions: a standard normal prior. With ``ridge_transitions=0``, transitions that never occur go to
        minus infinity; with 10, the largest value allowed, all transitions are near zero.
    tol : float, default=0.0
        The least decrease of Q for which a further sensor is added.
    feature_groups : array-like of shape (n_columns,), dict or callable, default=None
        The sensor of every column, where sensors have several columns; they are selected together. A function is given
        the name of a column (its index, where there are no names) and returns a label. A dict maps names or indices to
        labels; the name of an attribute, such as "word", stands for all its columns "word=..". Columns that the dict
        does not have, or for which the function returns None, are sensors of their own. The squared gradients of a
        sensor's columns are summed to rank it, which favours sensors with many columns.
    always, never : list of column names or indices, default=None
        Sensors that are in every model (and counted), or in none; with ``feature_groups``, labels of groups.
    costs : array-like of shape (n_columns,) or dict, default=None
        Cost of every column, or group. Sensors are ranked by gain per cost.
    budget : float or None, default=None
        The largest total cost.
    fit_biases : bool, default=True
        Whether every label has a bias b, in every model and not counted. Without biases a constant column may be
        chosen in their place.
    standardize : bool, default=True
        Whether weights are those of columns divided by their scale, in ridges and gradients. The predictions of a model
        with given sensors and without a ridge do not depend on it.
    exact_refits : bool, default=False
        Whether models on the way are fitted as closely as those returned. By default they are not, which saves most of
        the time; among nearly equal sensors the choice may differ.
    time_limit : float or None, default=None
        Seconds after which the search stops and the best models so far are kept.
    callback : callable or None, default=None
        Called after every move of the search with a ``pauca.Progress``; returning True ends the search.
    verbose : int, default=0
        1 shows a progress bar on stderr while the fit runs, with what is known of the time left; 0 prints nothing.

    Attributes
    ----------
    sensors_ : ndarray
        The chosen sensors: labels of groups, names of columns, or indices where there are no names.
    classes_ : ndarray of shape (C,)
        The labels, sorted where they have an order.
    coef_ : ndarray of shape (C, n_columns)
        Weights; zero for sensors that were not chosen.
    intercept_ : ndarray of shape (C,)
        Biases of the labels.
    transitions_ : ndarray of shape (C, C)
        Weights of transitions from the label of the row to that of the column.
    support_ : ndarray
        Indices of the columns of chosen sensors, ascending.
    cost_ : float
        Total cost of the chosen sensors; only if ``costs`` is given.
    k_ : int
        Number of sensors, or weights, of the model.
    objective_ : float
        Its objective Q.
    stop_ : Stop
        Why the search ended.
    path_ : Path
        The model of every size, and every move of the search. If the size was chosen by cross-validation,
        ``path_.to_frame()`` has the columns score (accuracy on held-out sequences), error (one minus the score) and
        standard_error.
    n_features_in_ : int
    names_ : ndarray
        Names of the columns; empty where they have none.

    Notes
    -----
    Sequences are read once into one matrix: arrays of truth values, integers or floats, CSR matrices, frames, or lists
    of dicts of attributes as in CRFsuite. Dicts give columns such as ``word=the`` for strings, ``length`` for numbers
    and ``next:length`` for nested dicts; each column is a sensor unless ``feature_groups`` says otherwise.

    Tens of labels are fine. Refits hold a square matrix over all pairs of labels: a hundred labels take minutes and
    gigabytes. A fit that would exceed the memory raises a MemoryError before any work.

    Constant sensors, and copies of chosen ones, are never chosen, and a warning names them. If there are fewer sensors
    than ``k``, the model has all that can be used, and a warning says so.

    Labels that do not occur in the fit count as wrong in ``score``.

    Examples
    --------
    >>> import numpy as np
    >>> from pauca import SparseTagger
    >>> rng = np.random.default_rng(0)
    >>> y = [np.repeat(rng.integers(0, 3, 12), 5) for _ in range(8)]            # each label lasts five steps
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
        selection_rule: float | str = "1se",
        n_jobs: int | None = None,
        ridge: float | None = None,
        ridge_transitions: float | None = None,
        tol: float = 0.0,
        feature_groups: Any = None,
        always: Any = None,
        never: Any = None,
        costs: Any = None,
        budget: float | None = None,
        fit_biases: bool = True,
        standardize: bool = True,
        exact_refits: bool = False,
        time_limit: float | None = None,
        callback: Callable[[Progress], bool | None] | None = None,
        verbose: int = 0,
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
        self.fit_biases = fit_biases
        self.standardize = standardize
        self.exact_refits = exact_refits
        self.time_limit = time_limit
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any, lengths: Any = None) -> Self:
        """Search for the best models of every size up to ``k``, or up to the sizes compared, and choose one.

        Parameters
        ----------
        X : list of tables, or one table with ``lengths``
            A table has a row for every position: an array, a CSR matrix, a frame, or a list of dicts.
        y : list of sequences of labels, or one with ``lengths``
            Any hashable labels but None and NaN.
        lengths : list of int, default=None
            Number of positions of each sequence, if X and y hold all of them one after the other.
        """
        settings = self._check_parameters()
        with showing(self.verbose, self.time_limit), fitting(self):
            sequences = read_sequences(X, lengths)
            classes, codes = encode_labels(read_labels(y, sequences.bounds, lengths))
            shown = replace(settings, budget=replace(settings.budget, callback=reported(self.callback)))
            fit = fit_tagger(shown, sequences, classes, codes)
            check_finite_models(fit.path.models)
            self.classes_ = classes
            self.names_ = np.zeros(0, dtype=object) if sequences.names is None else sequences.names
            self.n_features_in_ = sequences.matrix.shape[1]
            self.path_ = fit.path
            self._set_feature_names()
            self._set_size(fit.size)
        message = " ".join(self._fit_warnings(fit.redundant))
        if message:
            warnings.warn(message, PaucaWarning, stacklevel=2)
        return self

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """The most probable labels of every sequence as a whole (Viterbi's algorithm).

        Parameters
        ----------
        X : list of tables, or one table with ``lengths``
            All columns of the fit; of frames and dicts, those of the chosen sensors are enough.
        lengths : list of int, default=None

        Returns
        -------
        list of ndarray, or ndarray with ``lengths``
            A label for every position.
        """
        sequences, inference, scores = self._scores(X, lengths)
        labels = self.classes_[inference.viterbi(scores, self.transitions_)]
        return labels if lengths is not None else sequences.split(labels)

    def predict_marginals(self, X: Any, lengths: Any = None) -> Any:
        """The probability of every label at every position; X and ``lengths`` as for ``predict``.

        Returns
        -------
        list of ndarray of shape (length, C), or ndarray of shape (n, C) with ``lengths``
            Columns in the order of ``classes_``.
        """
        sequences, inference, scores = self._scores(X, lengths)
        marginals = inference.expectations(scores, self.transitions_, by_position=True).marginals
        return marginals if lengths is not None else sequences.split(marginals)

    def score(self, X: Any, y: Any, lengths: Any = None) -> float:
        """The share of positions whose label is predicted correctly; X, y and ``lengths`` as for ``fit``."""
        truth, predicted = self._true_and_predicted(X, y, lengths)
        return float(np.mean([a == b for a, b in zip(truth, predicted, strict=True)]))

    def label_table(self, X: Any, y: Any, lengths: Any = None) -> list[dict[str, Any]]:
        """How well each label is predicted; X, y and ``lengths`` as for ``fit``.

        Returns
        -------
        list of dict
            With the keys label, precision, recall, f1 and support (the number of positions with that label); NaN where
            a ratio is undefined.
        """
        return label_table(self.classes_, *self._true_and_predicted(X, y, lengths))

    def label_report(self, X: Any, y: Any, lengths: Any = None) -> str:
        """How well each label is predicted, as text; X, y and ``lengths`` as for ``fit``."""
        return label_report(self.label_table(X, y, lengths))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file of plain JSON, for ``pauca.load``; it holds no code."""
        check_is_fitted(self)
        save(self, path)

    def _check_parameters(self) -> TaggerSettings:
        """Check the parameters before any data are read."""
        check = ParameterChecks(type(self).__name__)
        sizes = parse_sizes(check, self.k)
        check.one_of("unit", self.unit, (SENSOR, WEIGHT))
        check_cross_validation(check, self.cv, self.selection_rule, self.n_jobs)
        named = METHODS.get(self.method) if isinstance(self.method, str) else None
        method = named or resolve(self.method)
        ridge, ridge_transitions = (
            None if value is None else check.number(name, value)
            for name, value in (("ridge", self.ridge), ("ridge_transitions", self.ridge_transitions))
        )
        if ridge_transitions is not None and ridge_transitions > LARGEST_RIDGE:
            wanted = f"a float in the range [0, {LARGEST_RIDGE:g}] or None"
            message = check.message("ridge_transitions", wanted, self.ridge_transitions)
            raise ValueError(f"{message} To fit without transitions, make every position a sequence.")
        tol = check.number("tol", self.tol)
        check.optional_callable("callback", self.callback)
        check.verbose(self.verbose)
        budget = Budget(check.time_limit(self.time_limit), self.callback)
        given = [name for name in FOR_SENSORS if getattr(self, name) is not None]
        if self.unit == WEIGHT and given:
            names = ", ".join(map(repr, given))
            raise ValueError(f"{names}: only for sensors, and unit='weight' selects single weights; leave it out.")
        return TaggerSettings(
            sizes=sizes,
            by_weight=self.unit == WEIGHT,
            method=method,
            cv=self.cv,
            selection_rule=self.selection_rule,
            n_jobs=effective_n_jobs(self.n_jobs),
            ridge=ridge,
            ridge_transitions=ridge_transitions,
            tol=tol,
            budget=budget,
            feature_groups=self.feature_groups,
            constraints={"always": self.always, "never": self.never, "costs": self.costs, "budget": self.budget},
            fit_biases=check.flag("fit_biases", self.fit_biases),
            standardize=check.flag("standardize", self.standardize),
            exact_refits=check.flag("exact_refits", self.exact_refits),
        )

    def _scores(self, X: Any, lengths: Any) -> tuple[Sequences, ChainInference, np.ndarray]:
        """The sequences, and the score of every label at every position."""
        check_is_fitted(self)
        names = self.names_ if len(self.names_) else None
        sequences = read_sequences(X, lengths, FittedColumns(self.n_features_in_, names, self.support_))
        # Columns go by position where names are missing on one side: scikit-learn's warnings.
        name = type(self).__name__
        if sequences.named is False and names is not None:
            message = f"X does not have valid feature names, but {name} was fitted with feature names"
            warnings.warn(message, UserWarning, stacklevel=3)
        elif sequences.named and names is None:
            message = f"X has feature names, but {name} was fitted without feature names"
            warnings.warn(message, UserWarning, stacklevel=3)
        data = Observations.from_rows(sequences.matrix, sequences.bounds)
        check_magnitudes(data, self.support_, names)
        scores = data.scores(self.coef_[:, self.support_].T.copy()) + self.intercept_
        return sequences, ChainInference(data, len(self.classes_), effective_n_jobs(self.n_jobs)), scores

    def _true_and_predicted(self, X: Any, y: Any, lengths: Any) -> tuple[list[Hashable], list[Hashable]]:
        """The labels of all positions in y, and those predicted."""
        sequences, inference, scores = self._scores(X, lengths)
        truth = read_labels(y, sequences.bounds, lengths)
        return truth, self.classes_[inference.viterbi(scores, self.transitions_)].tolist()

    def _set_size(self, size: int) -> None:
        """Set the fitted attributes to the model of ``size``."""
        path, model, n = self.path_, self.path_[size], len(self.classes_)
        assert model.free is not None
        self.transitions_ = model.free[: n * n].reshape(n, n)
        if self.unit == WEIGHT:
            weights = np.zeros(self.n_features_in_ * n)
            weights[model.support] = model.coef
            self.coef_ = weights.reshape(-1, n).T.copy()
            self.intercept_ = model.free[n * n :]
            self.support_ = np.unique(model.support // n)
        else:
            self.coef_ = np.zeros((n, self.n_features_in_))
            self.coef_[:, model.support] = model.coef
            self.intercept_ = np.asarray(model.intercept)
            self.support_ = model.support
        self.__dict__.pop("cost_", None)
        if path.prices is not None:
            self.cost_ = path.cost(size)
        if path.group_labels is not None:
            self.sensors_ = path.group_labels[model.units]
        else:
            self.sensors_ = self.names_[self.support_] if len(self.names_) else self.support_
        self.k_ = size
        self.objective_ = model.objective
        self.stop_ = path.stop

    def _set_feature_names(self) -> None:
        self.__dict__.pop("feature_names_in_", None)
        if len(self.names_):
            self.feature_names_in_ = self.names_

    def _fit_warnings(self, redundant: RedundantSensors) -> Iterator[str]:
        """What the user should know of a fit and cannot see from its numbers."""
        path, model = self.path_, self.path_[self.k_]
        by_weight, n_labels = self.unit == WEIGHT, len(self.classes_)
        names = (self.names_ if len(self.names_) else None) if path.group_labels is None else path.group_labels
        chosen = set((model.units // n_labels if by_weight else model.units).tolist())
        copies = sorted(copy for copy, sensor in redundant.copies.items() if sensor in chosen)
        if redundant.constant:
            yield f"Constant sensors were left out: {quoted_columns(names, redundant.constant)}."
        if copies:
            yield f"Sensors that are copies of chosen ones were left out: {quoted_columns(names, copies)}."
        n_units = path.n_features if path.group_labels is None else len(path.group_labels)
        if isinstance(self.k, numbers.Integral):
            constraints = {name: getattr(self, name) for name in FOR_SENSORS}
            yield from too_few(int(self.k), self.k_, path.stop, f"{self.unit}s", n_units, constraints)
            yield from ended_by_time(int(self.k), self.k_, path.stop, f"{self.unit}s")
        if path.choice is not None and path.choice.chosen == 0:
            yield "No sensor helps on held-out sequences: transitions alone predict as well."
        n_redundant = (len(redundant.constant) + len(redundant.copies)) * (n_labels if by_weight else 1)
        yield from unusual_end(path, n_units - n_redundant)
        if not model.converged:
            yield "The solver did not converge: the weights may be inaccurate. Set a larger ridge."

    def _after_loading(self) -> None:
        """Check a model read from a file, and set what the path does not hold."""
        self._check_loaded_parameters()
        n, path = len(self.classes_), replace(self.path_, noun=self.unit)
        self.path_ = path
        if self.feature_groups is None and path.group_labels is not None:
            self.feature_groups = path.group_labels[path.owner]  # the labels that a function returned
        if self.unit == WEIGHT:
            self.n_features_in_ = path.n_features // n
        wanted = n * n + (n if self.unit == WEIGHT else 0)
        for model in path:
            if model.free is None or len(model.free) != wanted:
                raise ValueError(f"the model of size {model.size} must hold {wanted} free parameters")
        if len(self.names_) not in {0, self.n_features_in_}:
            raise ValueError(f"there are {len(self.names_)} names and {self.n_features_in_} columns")
        self._set_feature_names()
