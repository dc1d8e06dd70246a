"""What estimators in an l1 ball share: from checked input to a certificate and a path."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import cpu_count, effective_n_jobs
from sklearn.base import is_classifier

from pauca.checks import ParameterChecks
from pauca.design import Design, make_design
from pauca.estimators.fitted import FittedModel
from pauca.estimators.validation import check_moments
from pauca.l1.objective import BallObjective, Iterate
from pauca.l1.radii import EARLY, BallProblem, Radii, by_folds
from pauca.l1.search import METHODS, STEPS, Certificate, Search, Settings
from pauca.losses import Loss
from pauca.losses.checks import check_loss
from pauca.model_selection.folds import make_folds
from pauca.model_selection.scoring import scorer_for
from pauca.model_selection.sizes import AUTO, check_cross_validation
from pauca.results.path import Path
from pauca.search.driver import Budget, Progress
from pauca.search.history import Stop
from pauca.search.parallel import Watch
from pauca.search.problem import Target
from pauca.warnings import PaucaWarning
from pauca.wording import quoted_columns

COLUMNS = "columns"

NUMBERS = ("bound_", "lower_bound_", "n_iter_")
"""Fitted numbers that a path does not hold."""
COMPARED = ("bounds_", "scores_", "score_errors_")
"""What the radii that were compared have come to, in arrays of one length."""
ARRAYS = (*COMPARED, "norms_")
"""Fitted arrays that a path does not hold."""


class L1Model(FittedModel):
    """A linear model in an l1 ball: all that does not depend on what the target is."""

    bound_: float
    lower_bound_: float
    n_iter_: int
    bounds_: np.ndarray
    scores_: np.ndarray
    score_errors_: np.ndarray
    norms_: np.ndarray

    def __init__(
        self,
        bound: float | str = AUTO,
        *,
        loss: str | Loss,
        tol: float = 1e-3,
        k: int | None = None,
        scale: str | None = None,
        method: str = "corrective",
        step: str = "line",
        cv: Any = None,
        scoring: Any = None,
        selection_rule: str = "1se",
        n_jobs: int | None = None,
        ridge: float = 0.0,
        fit_intercept: bool = True,
        max_iter: int = 10_000,
        time_limit: float | None = None,
        callback: Callable[[Progress], bool | None] | None = None,
    ) -> None:
        self.bound = bound
        self.loss = loss
        self.tol = tol
        self.k = k
        self.scale = scale
        self.method = method
        self.step = step
        self.cv = cv
        self.scoring = scoring
        self.selection_rule = selection_rule
        self.n_jobs = n_jobs
        self.ridge = ridge
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.callback = callback

    def _search(self, X: Any, y: np.ndarray, weights: np.ndarray, target: Target, rows: Any) -> None:
        """Search the ball on checked data and keep what came of it; ``rows`` are the groups of rows for folds."""
        check_loss(target.loss, target.y, weights, target.n_outputs)
        self._check_step(target.loss)
        names = getattr(self, "feature_names_in_", None)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is named below
            design = make_design(X, weights, center=self.fit_intercept)
        check_moments(self, design, X, names)
        outputs = target.y if target.y.ndim == 2 else target.y[None]
        problem = BallProblem(
            X,
            target,
            target.loss.tuned(outputs, weights),
            float(self.ridge),
            bool(self.fit_intercept),
            self.scale == COLUMNS,
            Settings(self.method, self.step, float(self.tol), self.k, int(self.max_iter)),
        )
        if self.bound == AUTO:
            search, certificate, met = self._to_choice(problem, weights, design, y, rows)
        else:
            search = Search(problem.objective(weights, design), problem.settings)
            certificate = search.go(float(self.bound), self._budget())
            met = search.met
            self.bounds_ = self.scores_ = self.score_errors_ = np.zeros(0)
        certificate = search.polished(certificate)
        self._keep(search, certificate, met, names)
        self._warn(certificate, search.objective, design)

    def _to_choice(
        self, problem: BallProblem, weights: np.ndarray, design: Design, y: np.ndarray, rows: Any
    ) -> tuple[Search, Certificate, dict[int, tuple[float, Iterate]]]:
        """The search for a radius."""
        folds = make_folds(self.cv, y, rows, weights, classifies=is_classifier(self))
        weigh = by_folds(self.selection_rule, scorer_for(self, self.scoring), y)
        radii = Radii(problem, weights, folds, design)
        watch = Watch(self._budget(), effective_n_jobs(self.n_jobs), cpu_count())
        choice = radii.choose(watch, weigh)
        self.bounds_ = np.array([radii.whole.certificates[place - 1].bound for place in choice.sizes])
        self.scores_ = choice.mean
        self.score_errors_ = np.zeros(len(choice.mean)) if choice.standard_error is None else choice.standard_error
        whole, early = radii.whole, radii.stopped_early
        found = whole.certificates[choice.chosen - 1]
        found = found if early is None else replace(found, stop=early)
        return whole.search, found, whole.met[choice.chosen - 1]

    def _keep(
        self,
        search: Search,
        certificate: Certificate,
        met: dict[int, tuple[float, Iterate]],
        names: np.ndarray | None,
    ) -> None:
        objective = search.objective
        answer = objective.size(certificate.best)
        kept = {0: objective.null}
        best = objective.null_value
        for size in sorted(met):
            value, at = met[size]
            # A larger model that is no better than a smaller one is of no use to anybody; one from a larger ball is not
            # what is asked for.
            if value < best and size < answer and at.norm <= certificate.bound * (1 + 1e-9):
                kept[size], best = at, value
        kept[answer] = certificate.best
        sizes = sorted(kept)
        models = dict(zip(sizes, objective.finish([kept[size] for size in sizes]), strict=True))
        self.path_ = Path(
            models,
            search.moves,
            certificate.stop,
            objective.design.n_features,
            names,
            None,
            None,
            *self._words(),
        )
        self.norms_ = np.array([kept[size].norm for size in sizes])
        self.bound_, self.lower_bound_, self.n_iter_ = certificate.bound, certificate.lower, search.n_iter
        self.__dict__.pop("raw_table_", None)  # what a table of an earlier fit was like
        self._choose(answer)

    def _choose(self, size: int) -> None:
        super()._choose(size)
        # Smaller models on the path are in the ball too, and the bound from below is one for all of it.
        self.gap_ = max(0.0, self.objective_ - self.lower_bound_)
        self.norm_ = float(self.norms_[self.path_.sizes.index(size)])
        # What was proven of the answer need not be true of a smaller model, which was asked for by its size.
        if not self._is_answer and self.stop_ is Stop.CERTIFIED and self.gap_ > self.tol * self.path_[0].objective:
            self.stop_ = Stop.SIZE

    @property
    def _is_answer(self) -> bool:
        """Whether this is the model that the search ended with, and not a smaller one that it met on the way."""
        return self.k_ == max(self.path_.sizes)

    def summary(self) -> str:
        """The model as text, to be printed.

        Returns
        -------
        str
            The features in use with their coefficients and what each is worth, the most valuable first; which ball it
            is, and by what rule it was chosen; and what is proven of it.
        """
        return "\n".join([super().summary(), *self._proof()])

    def _proof(self) -> Iterator[str]:
        """What is known of the ball and of the model's place in it."""
        units = ", of coefficients in units of column scale" if self.scale == COLUMNS else ""
        within = f"; the norm of this model is {self.norm_:.6g}" if self.norm_ < (1 - 1e-6) * self.bound_ else ""
        yield f"bound {self.bound_:.6g}{units}{self._chosen_bound() if self._is_answer else ''}{within}"
        yield (
            f"proven: no model in this ball has an objective below {self.lower_bound_:.6g}, and this one has "
            f"{self.objective_:.6g}; the gap is {self.gap_:.3g}"
        )

    def _chosen_bound(self) -> str:
        """By what rule the bound was chosen, and what it scores; nothing where it was given."""
        if not len(self.bounds_):
            return ""
        if len(self.bounds_) == 1:
            return ", the only one that was looked at"
        mean, error = self.scores_, self.score_errors_
        chosen, best = int(np.abs(self.bounds_ - self.bound_).argmin()), int(mean.argmax())
        score = f"{mean[chosen]:.4g} (± {error[chosen]:.2g}) on rows held out"
        among = f"of {len(mean)} by cross-validation"
        if chosen == best:
            return f", the best {among}: it scores {score}"
        return (
            f", the smallest within one standard error of the best {among}: it scores {score}; "
            f"the best, {self.bounds_[best]:.6g}, has {mean[best]:.4g} (± {error[best]:.2g})"
        )

    def _check_options(self) -> None:
        """Refuse options that cannot be meant, before any data are looked at."""
        if isinstance(self.bound, str):
            if self.bound != AUTO:
                raise ValueError(
                    ParameterChecks(type(self).__name__).message(
                        "bound", "a float in the range (0, inf) or 'auto'", self.bound
                    )
                )
        else:
            ParameterChecks(type(self).__name__).number("bound", self.bound, positive=True, otherwise=f" or {AUTO!r}")
        ParameterChecks(type(self).__name__).number("tol", self.tol, positive=True)
        if self.k is not None:
            ParameterChecks(type(self).__name__).count("k", self.k, "or None")
        if self.scale is not None:
            ParameterChecks(type(self).__name__).one_of("scale", self.scale, (COLUMNS,))
        ParameterChecks(type(self).__name__).one_of("method", self.method, METHODS)
        ParameterChecks(type(self).__name__).one_of("step", self.step, STEPS)
        if self.step == "closed" and self.method != "forward":
            raise ValueError(
                f"step='closed' is a step towards a vertex of the ball and goes with method='forward'; "
                f"got method={self.method!r}."
            )
        check_cross_validation(ParameterChecks(type(self).__name__), self.cv, self.selection_rule, self.n_jobs)
        scorer_for(self, self.scoring)
        ParameterChecks(type(self).__name__).number("ridge", self.ridge)
        ParameterChecks(type(self).__name__).flag("fit_intercept", self.fit_intercept)
        ParameterChecks(type(self).__name__).count("max_iter", self.max_iter)
        self._budget()
        ParameterChecks(type(self).__name__).optional_callable("callback", self.callback)

    def _check_step(self, loss: Loss) -> None:
        if self.step == "closed" and loss.smoothness is None and loss.envelope(1.0) is loss:
            raise ValueError(
                f"step='closed' needs a bound on the curvature of the loss, and {type(loss).__name__} has none; "
                "use step='line'."
            )

    def _budget(self) -> Budget:
        limit = (
            None
            if self.time_limit is None
            else ParameterChecks(type(self).__name__).number("time_limit", self.time_limit, positive=True)
        )
        return Budget(limit, self.callback)

    def _restored(self) -> None:
        super()._restored()
        self.n_iter_ = int(self.n_iter_)
        if len({len(getattr(self, name)) for name in COMPARED}) > 1:
            raise ValueError("the bounds that were compared and their scores must be equally many")
        if np.shape(self.norms_) != (len(self.path_),):
            raise ValueError("there must be a norm for every model of the path")

    def _warn(self, certificate: Certificate, objective: BallObjective, design: Design) -> None:
        """One warning for all that was noteworthy."""
        noteworthy = " ".join(self._remarks(certificate, objective, design))
        if noteworthy:
            warnings.warn(noteworthy, PaucaWarning, stacklevel=4)

    def _remarks(self, certificate: Certificate, objective: BallObjective, design: Design) -> Iterator[str]:
        constant = np.flatnonzero(~design.usable)
        if len(constant):
            yield f"Constant columns were left out: {quoted_columns(self.path_.column_names, constant)}."
        wanted = self.tol * objective.null_value
        if certificate.stop in EARLY and self.bound == AUTO:
            yield f"Not all radii that might be better were looked at. {certificate.stop.message}"
        elif certificate.gap > wanted and certificate.stop is not Stop.SIZE:
            yield (
                f"The gap is {certificate.gap:.3g}, and {wanted:.3g} was asked for. {certificate.stop.message} "
                "What was found is in the ball, and gap_ is proven; raise max_iter, time_limit or tol."
            )
