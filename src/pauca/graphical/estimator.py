"""Which columns depend on each other directly: a Gaussian graph with few edges, as a scikit-learn estimator."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import issparse
from sklearn.covariance import EmpiricalCovariance, log_likelihood
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from pauca.checks import ParameterChecks
from pauca.clock import GRACE, deadline_after, limited_until
from pauca.design import Design, make_design
from pauca.estimators.fitted_base import PathMixin, check_finite_models, fitting
from pauca.estimators.input_checks import check_moments, check_rows, check_table
from pauca.estimators.missing_methods import LIKELIHOOD, REPORT, MissingMethod
from pauca.estimators.row_values import check_weights
from pauca.estimators.settings import check_criterion, check_cross_validation, parse_sizes
from pauca.export import register_estimator, save
from pauca.graphical.covariance import (
    NoMaximumError,
    check_spreads,
    checked_safe_edges,
    complete_value,
    distinct_rows,
    moments_about,
)
from pauca.graphical.edges import EdgeNames, Edges, edge_limits
from pauca.graphical.model_selection import GraphProblem, by_criterion, by_likelihood, fit_warnings, size_range_for
from pauca.graphical.path import GraphPath
from pauca.graphical.subset import GraphSubset
from pauca.methods import Backward, resolve
from pauca.model_selection.folds import Fold, make_folds
from pauca.model_selection.grids import Sizes
from pauca.model_selection.size_selection import Selection, choose_size
from pauca.results.choice import Choice
from pauca.results.path import Path
from pauca.runs.parallel import ParallelRuns
from pauca.runs.progress import reported, showing
from pauca.runs.run import Budget, Goal, Method, Progress, SearchRun
from pauca.warnings import PaucaWarning
from pauca.wording import quoted_columns

# Distances are found for so many numbers of X at a time.
NUMBERS_AT_A_TIME = 1 << 19


@register_estimator("SparsePrecision", arrays=("location_", "_nodes"))
class SparsePrecision(PathMixin, EmpiricalCovariance):
    """The most likely Gaussian graph with few edges: a precision matrix with few entries.

    Minimises ``Q(Theta) = -logdet Theta + tr(S Theta)`` over precision matrices with at most ``k`` entries above the
    diagonal that are not zero: twice the negative log-likelihood per row, up to a constant. An entry that is zero says
    that two columns are independent given all others (Dempster 1972). The fit keeps the graph of every number of edges
    up to ``k``: see ``path_`` and ``at``.

    Parameters
    ----------
    k : int, "auto", iterable of int or None, default="auto"
        Number of edges. "auto" finds it by cross-validation, from 0 up to as many as it takes, at most four for each
        column; a range or list holds the numbers to choose from. None: as many as lower Q by at least ``tol``.
    method : str or object, default="foba"
        "foba", "forward" (fastest), "exchange" (slow, at times better), "backward" (for few columns), or an object from
        ``pauca.methods`` such as ``FoBa(rule="refit")``.
    shrinkage : float, default=0.0
        A share by which all correlations are shrunk towards zero first, from 0 up to but not including 1: S becomes
        ``(1 - shrinkage) S + shrinkage diag(S)``. It does not depend on the units of the columns. Of use where there
        are few rows, or columns that depend on others.
    cv : int, splitter, iterable or None, default=None
        Folds for choosing ``k``: a number (None: 5), a splitter of scikit-learn, or an iterable of splits.
    selection_rule : float, "1se" or "best", default="1se"
        The smallest number of edges within so many standard errors ("1se": one) of the best likelihood of rows held
        out, or the best itself. The standard error is that of the difference between the two, over the folds.
    criterion : {"aic", "bic", "ebic"} or None, default=None
        Choose ``k`` by an information criterion on all rows, without folds. It counts the rows that have weight, not
        the sum of their weights.
    n_jobs : int or None, default=None
        How many folds run at a time, in threads that share X.
    tol : float, default=0.0
        The least decrease of Q that a further edge must bring.
    always, never : list of pairs of columns, default=None
        Edges that are in every graph (and counted), or in none; columns by name or index, such as
        ``[("bmi", "sugar")]``.
    assume_centered : bool, default=False
        Whether the columns are known to have mean zero; means are not estimated then.
    time_limit : float or None, default=None
        Seconds after which the search stops and the best found so far is kept.
    callback : callable or None, default=None
        Called after every move of the search with a ``pauca.Progress``; returning True ends the search.
    verbose : int, default=0
        1 shows a progress bar on stderr while the fit runs, with what is known of the time left; 0 prints nothing.

    Attributes
    ----------
    precision_ : ndarray of shape (n_features, n_features)
        The precision matrix, with two entries that are not zero for every edge.
    covariance_ : ndarray of shape (n_features, n_features)
        Its inverse; on the diagonal and at the edges equal to the covariance of the data, shrunk if there is shrinkage.
    location_ : ndarray of shape (n_features,)
        Means of the columns.
    edges_ : list of tuple
        Pairs of columns: names where X has names, else indices.
    k_ : int
        Number of edges.
    objective_ : float
        Q.
    path_ : GraphPath
        The graph of every size, and every move of the search; ``path_.choice`` has how the size was chosen.
    stop_ : Stop
        Why the search ended; ``stop_.message`` explains it.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only where X has column names.

    Notes
    -----
    The units of the columns do not matter for the choice of edges: the search works on correlations. X is read in
    place.

    Without shrinkage the likelihood of a graph may be unbounded where columns are linear combinations of others, or
    where rows are few. The first is refused with the names of such columns. With n rows, n - 1 once the means are
    subtracted, all graphs of fewer than ``(n - 1) n / 2`` edges have a maximum for almost all data (Gross and Sullivant
    2018), and no more are searched for.

    Edges on no cycle have a closed form, and each cycle is fitted with the nodes it runs through and no others: that
    makes graphs of hundreds of columns quick as long as they are sparse.

    References
    ----------
    Dempster (1972), Covariance selection. Liu, Fujimaki and Ye (2014), Forward-backward greedy algorithms for general
    convex smooth functions over a cardinality constraint. Lauritzen (1996), Graphical models.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from pauca import SparsePrecision
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> graph = SparsePrecision(k=3).fit(X)
    >>> graph.edges_
    [('s1', 's2'), ('s2', 's4'), ('s3', 's4')]
    """

    evaluate: Any = MissingMethod(LIKELIHOOD)
    report: Any = MissingMethod(REPORT)

    def __init__(
        self,
        k: int | str | Iterable[int] | None = "auto",
        *,
        method: str | Method = "foba",
        shrinkage: float = 0.0,
        cv: Any = None,
        selection_rule: float | str = "1se",
        criterion: str | None = None,
        n_jobs: int | None = None,
        tol: float = 0.0,
        always: Any = None,
        never: Any = None,
        assume_centered: bool = False,
        time_limit: float | None = None,
        callback: Callable[[Progress], bool | None] | None = None,
        verbose: int = 0,
    ) -> None:
        self.k = k
        self.method = method
        self.shrinkage = shrinkage
        self.cv = cv
        self.selection_rule = selection_rule
        self.criterion = criterion
        self.n_jobs = n_jobs
        self.tol = tol
        self.always = always
        self.never = never
        self.assume_centered = assume_centered
        self.time_limit = time_limit
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SparsePrecision:
        """Find the graphs of every size up to ``k``, or up to the sizes compared, and choose one.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
        y : Ignored
            Present for scikit-learn's pipelines.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, at least one of them positive.
        """
        self._check_parameters()
        with showing(self.verbose, self.time_limit), fitting(self):
            self._fit(X, sample_weight)
        message = " ".join(fit_warnings(self._sizes(), self.path_, self.k_))
        if message:
            warnings.warn(message, PaucaWarning, stacklevel=2)
        return self

    def _fit(self, X: Any, sample_weight: Any) -> None:
        deadline = deadline_after(self.time_limit)
        X = np.asarray(check_table(self, X, accept_sparse=False, ensure_min_samples=2))
        weights = check_weights(sample_weight, len(X))
        names = getattr(self, "feature_names_in_", None)
        limits = edge_limits(self.always, self.never, Edges(X.shape[1]), names, self._sizes())
        problem = GraphProblem(X, names, resolve(self.method), limits, float(self.shrinkage), not self.assume_centered)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is named below
            design = problem.design(weights)
        check_moments(type(self).__name__, design, X, names)
        check_spreads(design, names)
        try:
            found = self._search(problem, weights, design)
            with limited_until(deadline + GRACE):
                self._keep(*found, names)
        except NoMaximumError as error:
            starts_full = isinstance(problem.method, Backward)
            first = "Backward search starts from all edges: choose another method" if starts_full else "Lower k"
            raise ValueError(
                f"The likelihood has no maximum: {quoted_columns(names, error.nodes)} are linearly dependent, up to "
                f"rounding, on the rows of the fit or of a fold. {first}, leave out columns, or set shrinkage, such as "
                "shrinkage=0.1."
            ) from error

    def get_precision(self) -> np.ndarray:
        """The precision matrix.

        Returns
        -------
        ndarray of shape (n_features, n_features)
        """
        check_is_fitted(self)
        return self.precision_

    def partial_correlations(self) -> np.ndarray:
        """Correlations of every two columns given all others: ``-Theta_ij / sqrt(Theta_ii Theta_jj)``.

        Returns
        -------
        ndarray of shape (n_features, n_features)
            With a diagonal of ones.
        """
        check_is_fitted(self)
        scale = np.sqrt(np.diagonal(self.precision_))
        found = -self.precision_ / scale / scale[:, None]
        np.fill_diagonal(found, 1.0)
        return found

    def score(self, X_test: Any, y: Any = None) -> float:
        """The mean log-likelihood of rows.

        Parameters
        ----------
        X_test : array-like or frame of shape (n_samples, n_features)
            A frame is read by name where the fit had names, and may hold further columns.
        y : Ignored
            Present for scikit-learn's pipelines.
        """
        rows = self._rows(X_test)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is named below
            design = make_design(rows, np.full(len(rows), 1.0 / len(rows)), center=True)
        check_moments(type(self).__name__, design, rows, getattr(self, "feature_names_in_", None))
        return float(log_likelihood(moments_about(design, self.location_), self.precision_))

    def mahalanobis(self, X: Any) -> np.ndarray:
        """Squared Mahalanobis distances of rows from the means.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            As for ``score``.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        rows = self._rows(X)
        found = np.empty(len(rows))
        step = max(1, NUMBERS_AT_A_TIME // rows.shape[1])
        for begin in range(0, len(rows), step):
            away = rows[begin : begin + step] - self.location_
            found[begin : begin + step] = np.einsum("ij,ij->i", away @ self.precision_, away)
        return found

    def error_norm(self, comp_cov: Any, norm: str = "frobenius", scaling: bool = True, squared: bool = True) -> float:
        """How far a covariance is from the fitted one; see scikit-learn's ``EmpiricalCovariance``.

        Parameters
        ----------
        comp_cov : array-like of shape (n_features, n_features)
        norm : {"frobenius", "spectral"}, default="frobenius"
        scaling : bool, default=True
            Whether to divide the squared norm by the number of columns.
        squared : bool, default=True
            Whether the norm is squared.
        """
        check_is_fitted(self)
        other, p = check_array(comp_cov, input_name="comp_cov"), self.n_features_in_
        if other.shape != (p, p):
            raise ValueError(
                f"'comp_cov' must be the covariance of the {p} columns of the fit; its shape is {other.shape}."
            )
        return float(super().error_norm(other, norm, scaling, squared))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted graph to a file of plain JSON, for ``pauca.load``.

        The file holds the settings, the names and the whole path, and no code. ``callback`` is left out. A file that is
        there already is replaced in one step, once the new one is complete.
        """
        check_is_fitted(self)
        written: Any = copy.copy(self)
        written._nodes = np.array(getattr(self, "feature_names_in_", []), dtype=str)
        written.path_ = replace(self.path_, column_names=None)  # names of edges follow from these
        save(written, path)

    def _sizes(self) -> Sizes:
        return parse_sizes(ParameterChecks(type(self).__name__), self.k)

    def _check_parameters(self) -> None:
        check = ParameterChecks(type(self).__name__)
        self._sizes()
        check_cross_validation(check, self.cv, self.selection_rule, self.n_jobs)
        check_criterion(check, self.criterion, cv=self.cv)
        check.number("tol", self.tol)
        check.number("shrinkage", self.shrinkage, below=1)
        check.time_limit(self.time_limit)
        resolve(self.method)
        check.flag("assume_centered", self.assume_centered)
        check.optional_callable("callback", self.callback)
        check.verbose(self.verbose)

    def _budget(self) -> Budget:
        return Budget(ParameterChecks(type(self).__name__).time_limit(self.time_limit), reported(self.callback))

    def _search(
        self, problem: GraphProblem, weights: np.ndarray, design: Design
    ) -> tuple[SearchRun, int, Choice | None]:
        """Run the method; the finished run, the size that answers, and how it was chosen."""
        sizes = self._sizes()
        folds: list[Fold] = []
        to_choose = not (sizes is None or isinstance(sizes, int))
        if to_choose and self.criterion is None:
            folds = make_folds(self.cv, np.zeros(len(weights)), None, weights, classifies=False)
        labels = distinct_rows(design)
        n_rows = min(len(np.unique(labels[one > 0])) for one in (weights, *(fold.weights for fold in folds)))
        moments, is_shrunk = problem.covariance(design), self.shrinkage > 0
        safe = checked_safe_edges(moments, n_rows - problem.center, problem.names, is_shrunk=is_shrunk)
        rows = f"{n_rows} different row{'' if n_rows == 1 else 's'}{' of the smallest fold' if folds else ''}"
        largest = _largest_size(sizes, safe, design.n_features, rows)
        if sizes is None or isinstance(sizes, int):
            run, goal = problem.begin(weights, design), Goal(sizes, float(self.tol))
            return run, problem.method.answer(run.advance(goal, self._budget()), goal), None
        selection = Selection(problem, weights, folds, float(self.tol))
        weigh = by_likelihood(self.selection_rule) if self.criterion is None else by_criterion(self.criterion)
        runs = ParallelRuns(self._budget(), effective_n_jobs(self.n_jobs))
        choice = choose_size(selection, size_range_for(sizes, design.n_features, largest), runs, design, weigh)
        return selection.noted_whole(), choice.chosen, choice

    def _keep(self, run: SearchRun, answer: int, choice: Choice | None, names: np.ndarray | None) -> None:
        history, subset = run.history, run.subset
        assert history is not None
        assert history.stop is not None
        assert isinstance(subset, GraphSubset)
        edges, least = subset.graph.edges, complete_value(subset.graph.correlation)
        models = run.models(answer)
        check_finite_models(models)
        self.path_ = GraphPath(
            models,
            history.moves,
            history.stop,
            len(edges),
            EdgeNames(edges.n_nodes, names),
            choice=choice,
            floor=None if least is None else least + subset.graph.shift,
            noun="edge",
            n_nodes=edges.n_nodes,
        )
        self.location_ = run.design.mean.copy()
        self._set_size(answer)

    def _set_size(self, size: int) -> None:
        """Put the graph of ``size`` into the fitted attributes."""
        names = getattr(self, "feature_names_in_", None)
        pairs = self.path_.pairs(size)
        self.edges_ = pairs if names is None else [(names[i], names[j]) for i, j in pairs]
        self.precision_ = self.path_.precision(size)
        self.covariance_ = self.path_.covariance(size)
        self.objective_ = self.path_[size].objective
        self.stop_ = self.path_.stop
        self.k_ = self.path_[size].size

    def _after_loading(self) -> None:
        """Called when a file has been read: refuse what is inconsistent, and set what the path does not hold."""
        p, path, names = len(self.location_), self.path_, self.__dict__.pop("_nodes")
        if path.n_features != p * (p - 1) // 2:
            raise ValueError(f"{p} columns have {p * (p - 1) // 2} edges, and the path chooses from {path.n_features}")
        if not all(model.free is not None and len(model.free) == p and np.all(model.free > 0) for model in path):
            raise ValueError(f"every graph must have {p} positive diagonal entries")
        if len(names) not in (0, p):
            raise ValueError(f"there must be names of all {p} columns or of none")
        if path.column_names is not None:
            raise ValueError("edges have no names but those of their columns")
        kept = {field.name: getattr(path, field.name) for field in fields(Path)}
        self.path_ = GraphPath(**kept | {"column_names": EdgeNames(p, names if len(names) else None)}, n_nodes=p)
        self.n_features_in_ = p
        if len(names):
            self.feature_names_in_ = names.astype(object)
        self._check_loaded_parameters()

    def _rows(self, X: Any) -> np.ndarray:
        """Rows with all columns of the fit, in the order of the fit."""
        check_is_fitted(self)
        if issparse(X):
            raise TypeError("Sparse data was passed for X, but dense data is required. Use '.toarray()' to convert it.")
        return np.asarray(check_rows(self, X, np.arange(self.n_features_in_)))


def _largest_size(sizes: Any, safe: int | None, p: int, rows: str) -> int:
    """The largest number of edges to search for; a ``k`` beyond what is safe is refused."""
    n_edges = p * (p - 1) // 2
    if safe is None or safe >= n_edges:
        return n_edges
    if safe == 0:
        raise ValueError(
            f"With {rows} to fit, any two columns are the same up to their units, and edges cannot be estimated. "
            "Use more rows, or set shrinkage, such as shrinkage=0.1."
        )
    largest = max(sizes) if isinstance(sizes, tuple) else n_edges if sizes is None else sizes
    if isinstance(largest, int) and min(largest, n_edges) > safe:
        raise ValueError(
            f"With {rows} to fit {p} columns, the likelihood of a graph with more than {safe} edges need not have "
            f"a maximum. Use at most k={safe}, or set shrinkage, such as shrinkage=0.1."
        )
    return safe
