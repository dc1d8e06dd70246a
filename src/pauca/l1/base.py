"""What the estimators of models in an l1 ball share: from checked input to a certificate and a path."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import is_classifier

from pauca.checks import ParameterChecks
from pauca.clock import GRACE, deadline_after, limited_until
from pauca.design import Design, make_design
from pauca.estimators.fitted_base import FittedModel, check_finite_models, fitting
from pauca.estimators.input_checks import check_moments
from pauca.estimators.missing_methods import EVALUATE, MissingMethod
from pauca.estimators.row_values import check_row_groups
from pauca.estimators.settings import check_cross_validation
from pauca.l1.certificate import BINDING_FROM, SOLVERS, STEP_RULES, STOPPING, BallCertificate, Search, SearchSettings
from pauca.l1.objective import BallObjective, Iterate
from pauca.l1.radii import STOPPED_EARLY, BallProblem, RadiusSearch, by_folds
from pauca.losses import Loss
from pauca.model_selection.folds import make_folds
from pauca.model_selection.grids import AUTO
from pauca.model_selection.held_out import Measure, RowBlocks
from pauca.model_selection.scoring import scorer_for
from pauca.results.choice import errors_text
from pauca.results.instructions import Instructions
from pauca.runs.parallel import ParallelRuns
from pauca.runs.problem import Target
from pauca.runs.progress import reported, showing
from pauca.runs.run import Budget, Progress, Stop
from pauca.warnings import PaucaWarning
from pauca.wording import quoted_columns

NUMBERS = ("radius_", "lower_bound_", "n_iter_")
"""Fitted numbers that a path does not hold."""
COMPARED = ("radii_", "scores_", "score_errors_")
"""The radii that were compared and their scores, in arrays of one length."""
ARRAYS = (*COMPARED, "norms_")
"""Fitted arrays that a path does not hold."""

# Norms are sums, and those of models on the surface of the ball may exceed the radius by rounding.
NORM_ROUNDING = 1e-9


class L1Model(FittedModel):
    """A linear model in an l1 ball: all that does not depend on what the target is."""

    radius_: float
    lower_bound_: float
    n_iter_: int
    radii_: np.ndarray
    scores_: np.ndarray
    score_errors_: np.ndarray
    norms_: np.ndarray
    _validate: Any
    evaluate: Any = MissingMethod(EVALUATE)

    def __init__(
        self,
        radius: float | str = "auto",
        *,
        loss: str | Loss = "squared_error",
        tol: float = 1e-3,
        k: int | None = None,
        standardize: bool = False,
        solver: str = "corrective",
        step_rule: str = "line",
        smoothness: float | None = None,
        gap_tol: float | None = None,
        stopping: str = "bound",
        cv: Any = None,
        scoring: Any = None,
        selection_rule: float | str = "1se",
        n_jobs: int | None = None,
        ridge: float = 0.0,
        fit_intercept: bool = True,
        max_iter: int = 10_000,
        time_limit: float | None = None,
        callback: Callable[[Progress], bool | None] | None = None,
        verbose: int = 0,
    ) -> None:
        self.radius = radius
        self.loss = loss
        self.tol = tol
        self.k = k
        self.standardize = standardize
        self.solver = solver
        self.step_rule = step_rule
        self.smoothness = smoothness
        self.gap_tol = gap_tol
        self.stopping = stopping
        self.cv = cv
        self.scoring = scoring
        self.selection_rule = selection_rule
        self.n_jobs = n_jobs
        self.ridge = ridge
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Search the ball, or balls of several radii, until the gap is small enough.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Numbers; for a classifier, classes of any kind, at least two, of shape (n_samples,).
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, at least one of them positive.
        groups : array-like of shape (n_samples,), default=None
            Groups of rows that folds keep together, such as the rows of one patient; for choosing ``radius``.
        """
        self._check_parameters()
        with showing(self.verbose, self.time_limit), fitting(self):
            X, y, weights, target = self._validate(X, y, sample_weight)
            self._search(X, y, weights, target, check_row_groups(groups))
        return self

    def _search(self, X: Any, y: np.ndarray, weights: np.ndarray, target: Target, rows: Any) -> None:
        """Search the ball on checked data and set the fitted attributes; ``rows`` are the groups of rows for folds."""
        self._check_step_rule(target.loss)
        names = getattr(self, "feature_names_in_", None)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is named below
            design = make_design(X, weights, center=self.fit_intercept)
        check_moments(type(self).__name__, design, X, names)
        outputs = target.y if target.y.ndim == 2 else target.y[None]
        problem = BallProblem(
            X,
            target,
            target.loss.tuned(outputs, weights),
            float(self.ridge),
            bool(self.fit_intercept),
            bool(self.standardize),
            self._settings(),
        )
        deadline = deadline_after(self._budget().time_limit)
        if self.radius == AUTO:
            search, certificate, best_by_size = self._choose_radius(problem, weights, design, y, rows)
        else:
            search = Search(problem.objective(weights, design), problem.settings)
            certificate = search.run(float(self.radius), self._budget())
            best_by_size = search.best_by_size
            self.radii_ = self.scores_ = self.score_errors_ = np.zeros(0)
        with limited_until(deadline + GRACE):
            certificate = search.polish(certificate)
        self._keep(search, certificate, best_by_size)
        self._warn(certificate, search.objective, design)

    def _settings(self) -> SearchSettings:
        given = None if self.gap_tol is None else float(self.gap_tol)
        smoothness = None if self.smoothness is None else float(self.smoothness)
        search = (self.solver, self.step_rule, float(self.tol), self.k, int(self.max_iter))
        return SearchSettings(*search, given, smoothness, self.stopping)

    def _choose_radius(
        self, problem: BallProblem, weights: np.ndarray, design: Design, y: np.ndarray, rows: Any
    ) -> tuple[Search, BallCertificate, dict[int, tuple[float, Iterate]]]:
        """Choose a radius by scores on held-out rows."""
        folds = make_folds(self.cv, y, rows, weights, classifies=is_classifier(self))
        measure = Measure(problem, scorer_for(self, self.scoring), y, RowBlocks.of(weights, rows, folds))
        weigh = by_folds(self.selection_rule, measure)
        radii = RadiusSearch(problem, weights, folds, design)
        runs = ParallelRuns(self._budget(), effective_n_jobs(self.n_jobs))
        choice = radii.choose(runs, weigh)
        self.radii_ = np.array([radii.whole.certificates[position - 1].radius for position in choice.sizes])
        self.scores_ = choice.mean
        self.score_errors_ = np.zeros(len(choice.mean)) if choice.standard_error is None else choice.standard_error
        whole, early = radii.whole, radii.stopped_early
        found = whole.certificates[choice.chosen - 1]
        found = found if early is None else replace(found, stop=early)
        return whole.search, found, whole.best_by_size[choice.chosen - 1]

    def _keep(
        self, search: Search, certificate: BallCertificate, best_by_size: dict[int, tuple[float, Iterate]]
    ) -> None:
        objective = search.objective
        answer = objective.size(certificate.best)
        kept = {0: objective.null}
        best = objective.null_value
        for size in sorted(best_by_size):
            value, iterate = best_by_size[size]
            # A larger model that is no better than a smaller one is of no use, and one from a larger ball is not in
            # this one.
            if value < best and size < answer and iterate.norm <= certificate.radius * (1 + NORM_ROUNDING):
                kept[size], best = iterate, value
        kept[answer] = certificate.best
        sizes = sorted(kept)
        models = dict(zip(sizes, objective.models([kept[size] for size in sizes]), strict=True))
        check_finite_models(models)
        self.path_ = self._path_of(models, search.moves, certificate.stop)
        self.norms_ = np.array([kept[size].norm for size in sizes])
        self.radius_, self.lower_bound_, self.n_iter_ = certificate.radius, certificate.lower, search.n_iter
        self._set_size(answer)

    def _set_size(self, size: int) -> None:
        super()._set_size(size)
        # Smaller models on the path are in the ball too, and the lower bound holds for all of it.
        self.lower_bound_ = min(self.lower_bound_, *(model.objective for model in self.path_))
        self.gap_ = self.objective_ - self.lower_bound_
        self.norm_ = float(self.norms_[self.path_.sizes.index(size)])
        # What was proven of the answer need not hold for a smaller model, which is chosen by its size.
        required = self._settings().required(self.path_[0].objective)
        if not self._is_answer and self.stop_ is Stop.CERTIFIED and self.gap_ > required:
            self.stop_ = Stop.SIZE

    @property
    def _is_answer(self) -> bool:
        """Whether this is the model that the search ended with, and not a smaller one from its path."""
        return self.k_ == max(self.path_.sizes)

    def summary(self, instructions: Instructions | None = None) -> str:
        """The model as text, to be printed.

        Parameters
        ----------
        instructions : Instructions or None, default=None
            How the text tells readers to get other models: None for calls in Python.

        Returns
        -------
        str
            The features in use with their coefficients and importance, the most important first; the radius of the
            ball and the rule that chose it; and the proven gap.
        """
        return "\n".join([super().summary(instructions), *self._proof()])

    def _proof(self) -> Iterator[str]:
        """The radius, and how far the model may be from the best in the ball."""
        units = ", of coefficients in units of column scale" if self.standardize else ""
        within = f"; the norm of this model is {self.norm_:.6g}" if self.norm_ < BINDING_FROM * self.radius_ else ""
        yield f"radius {self.radius_:.6g}{units}{self._radius_choice() if self._is_answer else ''}{within}"
        yield (
            f"proven: no model in this ball has an objective below {self.lower_bound_:.6g}, and this one has "
            f"{self.objective_:.6g}; the gap is {self.gap_:.3g}"
        )

    def _radius_choice(self) -> str:
        """By what rule the radius was chosen, and what it scores; nothing where it was given."""
        if not len(self.radii_):
            return ""
        if len(self.radii_) == 1:
            return ", the only one that was compared"
        mean, error = self.scores_, self.score_errors_
        chosen, best = int(np.abs(self.radii_ - self.radius_).argmin()), int(mean.argmax())
        score = f"{mean[chosen]:.4g} (± {error[chosen]:.2g}) on held-out rows"
        among = f"of {len(mean)} by cross-validation"
        if chosen == best:
            return f", the best {among}: it scores {score}"
        return (
            f", the smallest within {errors_text(self.selection_rule)} of the best {among}: it scores {score}; "
            f"the best, {self.radii_[best]:.6g}, has {mean[best]:.4g} (± {error[best]:.2g})"
        )

    def _check_parameters(self) -> None:
        """Refuse invalid parameters before any data are read."""
        check = ParameterChecks(type(self).__name__)
        if isinstance(self.radius, str):
            if self.radius != AUTO:
                raise ValueError(check.message("radius", f"a float in the range (0, inf) or {AUTO!r}", self.radius))
        else:
            check.number("radius", self.radius, positive=True, otherwise=f" or {AUTO!r}")
        check.number("tol", self.tol, positive=True)
        if self.k is not None:
            check.count("k", self.k, "or None")
        check.flag("standardize", self.standardize)
        check.one_of("solver", self.solver, SOLVERS)
        check.one_of("step_rule", self.step_rule, STEP_RULES)
        if self.step_rule == "closed" and self.solver != "forward":
            raise ValueError(
                f"step_rule='closed' is a step towards a vertex of the ball and goes with solver='forward'; "
                f"got solver={self.solver!r}."
            )
        self._check_published_options(check)
        check_cross_validation(check, self.cv, self.selection_rule, self.n_jobs)
        scorer_for(self, self.scoring)
        check.number("ridge", self.ridge)
        check.flag("fit_intercept", self.fit_intercept)
        check.count("max_iter", self.max_iter)
        check.time_limit(self.time_limit)
        check.optional_callable("callback", self.callback)
        check.verbose(self.verbose)

    def _check_published_options(self, check: ParameterChecks) -> None:
        for name in ("smoothness", "gap_tol"):
            if getattr(self, name) is not None:
                check.number(name, getattr(self, name), positive=True, otherwise=" or None")
        check.one_of("stopping", self.stopping, STOPPING)
        if self.smoothness is not None and self.step_rule != "closed":
            raise ValueError("smoothness is the constant of step_rule='closed'; got step_rule='line'.")
        if self.stopping == "gap" and self.solver == "corrective":
            raise ValueError(
                "stopping='gap' goes with solver='forward', 'away' or 'pairwise'; got solver='corrective'."
            )

    def _check_step_rule(self, loss: Loss) -> None:
        if self.smoothness is not None:
            return
        if self.step_rule == "closed" and loss.smoothness is None and loss.envelope(1.0) is loss:
            raise ValueError(
                f"step_rule='closed' needs a bound on the curvature of the loss, and {type(loss).__name__} has none; "
                "give smoothness, or use step_rule='line'."
            )

    def _budget(self) -> Budget:
        return Budget(ParameterChecks(type(self).__name__).time_limit(self.time_limit), reported(self.callback))

    def _after_loading(self) -> None:
        super()._after_loading()
        self.n_iter_ = int(self.n_iter_)
        if len({len(getattr(self, name)) for name in COMPARED}) > 1:
            raise ValueError("the radii that were compared and their scores must be equally many")
        if np.shape(self.norms_) != (len(self.path_),):
            raise ValueError("there must be a norm for every model of the path")

    def _warn(self, certificate: BallCertificate, objective: BallObjective, design: Design) -> None:
        """Raise one warning with all there is to warn of."""
        message = " ".join(self._warnings(certificate, objective, design))
        if message:
            warnings.warn(message, PaucaWarning, stacklevel=4)

    def _warnings(self, certificate: BallCertificate, objective: BallObjective, design: Design) -> Iterator[str]:
        constant = np.flatnonzero(~design.usable)
        if len(constant):
            yield f"Constant columns were left out: {quoted_columns(self.path_.column_names, constant)}."
        required = self._settings().required(objective.null_value)
        if certificate.stop in STOPPED_EARLY and self.radius == AUTO:
            yield f"Not all radii that might be better were searched. {certificate.stop.message}"
        elif self.gap_ > required and certificate.stop not in {Stop.SIZE, Stop.CERTIFIED}:
            # More steps or time do not help where the steps came to an end by themselves.
            remedy = "tol" if certificate.stop is Stop.STALLED else "max_iter, time_limit or tol"
            yield (
                f"The gap is {self.gap_:.3g}, above the required {required:.3g}. {certificate.stop.message} "
                f"The model is in the ball, and gap_ is proven; raise {remedy}."
            )
