"""The parameters of searching and of choosing a size, checked and parsed once per fit."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pauca.checks import ParameterChecks
from pauca.estimators.raw_tables import check_table_parameters
from pauca.methods import resolve
from pauca.model_selection.grids import AUTO, RidgeGrid, Ridges, Sizes
from pauca.results.choice import FOLD_RULES, Rule
from pauca.runs.progress import ProgressReport, with_progress
from pauca.runs.run import Budget, Goal, Method
from pauca.statistics.criteria import CRITERIA
from pauca.wording import plain

CONSTRAINTS = ("feature_groups", "max_per_group", "always", "never", "costs", "budget", "bounds", "heredity")

PLAIN_TABLE = ("error", "from_dtype")

ALLOWED_SIZES = "an int in the range [1, inf), 'auto', None, or sizes such as range(1, 31)"

ALLOWED_RIDGES = "a float in the range [0, inf), a list of such, 'auto' or None"


@dataclass(frozen=True, eq=False)
class SearchSettings:
    """Parameters that do not depend on the data. Constraints are read against the columns later, and kept as given."""

    owner: str
    """The estimator, for messages."""
    sizes: Sizes
    method: Method
    tol: float
    ridge: Ridges
    search_ridge: Ridges
    standardize: bool
    fit_intercept: bool
    warm_start: bool
    run_budget: Budget
    constraints: Mapping[str, Any]
    cv: Any
    scoring: Any
    selection_rule: Rule
    criterion: str | None
    n_jobs: int | None
    missing: str

    @classmethod
    def parse(cls, owner: str, parameters: Mapping[str, Any], report: ProgressReport | None = None) -> SearchSettings:
        """Settings from the parameters of an estimator; an invalid one raises an error that names the ``owner``.

        The ``report`` is told of the moves of its searches.
        """
        check, given = ParameterChecks(owner), parameters
        sizes = parse_sizes(check, given["k"])
        check_cross_validation(check, given["cv"], given["selection_rule"], given["n_jobs"])
        check_criterion(check, given["criterion"], cv=given["cv"], scoring=given["scoring"])
        ridge, search_ridge = (parse_ridges(check, name, given[name]) for name in ("ridge", "search_ridge"))
        check_ridges(ridge, search_ridge, sizes, given["criterion"])
        check.optional_callable("callback", given["callback"])
        if (given.get("missing", "error"), str(given.get("categorical_features"))) != PLAIN_TABLE:
            check_table_parameters(owner, given)
        check.verbose(given.get("verbose", 0))
        time_limit = check.time_limit(given["time_limit"])
        return cls(
            owner=owner,
            sizes=sizes,
            method=resolve(given["method"]),
            tol=check.number("tol", given["tol"]),
            ridge=ridge,
            search_ridge=search_ridge,
            standardize=check.flag("standardize", given["standardize"]),
            fit_intercept=check.flag("fit_intercept", given["fit_intercept"]),
            warm_start=check.flag("warm_start", given["warm_start"]),
            run_budget=Budget(time_limit, with_progress(report, given["callback"], time_limit)),
            constraints={name: given.get(name) for name in CONSTRAINTS},
            cv=given["cv"],
            scoring=given["scoring"],
            selection_rule=given["selection_rule"],
            criterion=given["criterion"],
            n_jobs=given["n_jobs"],
            missing=given.get("missing", "error"),
        )

    @property
    def chooses_size(self) -> bool:
        """Whether sizes are compared by cross-validation."""
        return not (self.sizes is None or isinstance(self.sizes, int)) and self.criterion is None

    @property
    def uses_folds(self) -> bool:
        """Whether sizes or ridges are compared by cross-validation."""
        ridges = self.ridge, self.search_ridge
        return self.chooses_size or any(isinstance(one, tuple | str) for one in ridges)

    @property
    def given_ridges(self) -> RidgeGrid:
        """The ridges of the search and of the fit, where both are given and none is compared."""
        fit, search = self.ridge or 0.0, self.search_ridge
        assert isinstance(fit, float)
        assert search is None or isinstance(search, float)
        return RidgeGrid((fit if search is None else search,), (fit,))

    def goal(self, size: int | None) -> Goal:
        """What a run to ``size`` aims for."""
        return Goal(size, self.tol)


def parse_sizes(check: ParameterChecks, k: Any) -> Sizes:
    """The parameter ``k``, checked; sizes to compare are in order."""
    if k is None or (isinstance(k, str) and k == AUTO) or (type(k) is int and k >= 1):
        return k
    if isinstance(k, Iterable) and not isinstance(k, Iterator | str):
        sizes = tuple(k)
        if not sizes or any(isinstance(s, bool) or not isinstance(s, numbers.Integral) or s < 0 for s in sizes):
            raise ValueError(check.message("k", ALLOWED_SIZES, k))
        if max(sizes) < 1:
            raise ValueError("'k' must hold a size of at least 1.")
        return tuple(sorted({int(size) for size in sizes}))
    if isinstance(k, str):
        raise ValueError(check.message("k", ALLOWED_SIZES, k))
    if isinstance(k, bool) or not isinstance(k, numbers.Integral):
        raise TypeError(check.message("k", ALLOWED_SIZES, k))
    if k < 1:
        raise ValueError(check.message("k", ALLOWED_SIZES, k))
    return int(k)


def largest_size(sizes: Sizes) -> int | None:
    """The largest requested size; None if there is none."""
    return max(sizes) if isinstance(sizes, tuple) else sizes if isinstance(sizes, int) else None


def check_cross_validation(check: ParameterChecks, cv: Any, selection_rule: Any, n_jobs: Any) -> None:
    """Raise an error if an option of cross-validation is invalid."""
    check_rule(check, selection_rule)
    check_folds(cv)
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral) or not n_jobs):
        raise ValueError(f"n_jobs must be an integer other than 0, or None; got {n_jobs!r}.")


def check_rule(check: ParameterChecks, selection_rule: Any) -> None:
    """Raise an error unless a rule is "1se", "best", or a number of standard errors."""
    if isinstance(selection_rule, str) or selection_rule is None:
        if selection_rule not in FOLD_RULES:
            wanted = f"one of {', '.join(map(repr, FOLD_RULES))}, or a number of standard errors"
            raise ValueError(check.message("selection_rule", wanted, selection_rule))
        return
    check.number("selection_rule", selection_rule, otherwise=", '1se' or 'best'")


def check_folds(cv: Any) -> None:
    """Raise an error unless ``cv`` is a number of folds, a splitter or an iterable of splits."""
    if cv is None:
        return
    is_valid = isinstance(cv, numbers.Integral) or hasattr(cv, "split") or hasattr(cv, "__iter__")
    if isinstance(cv, bool | str) or not is_valid:
        raise TypeError(f"cv must be an integer, a splitter such as KFold, or an iterable of splits; got {cv!r}.")
    if isinstance(cv, numbers.Integral) and cv < 2:
        raise ValueError(f"cv must be at least 2 folds; got {cv!r}.")


def check_class_weight(class_weight: Any) -> None:
    """A dict of finite weights that are not negative, "balanced", or None."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f"'class_weight' must be a dict of weights by class, 'balanced' or None; got {class_weight!r}."
        )
    for label, weight in class_weight.items():
        if not isinstance(weight, numbers.Real) or not 0 <= float(weight) < math.inf:
            raise ValueError(
                f"'class_weight' must hold finite weights that are not negative; that of {plain(label)!r} is "
                f"{plain(weight)!r}."
            )


def check_criterion(check: ParameterChecks, criterion: Any, **of_folds: Any) -> None:
    """Raise an error if an information criterion is unknown, or comes with options of cross-validation."""
    if criterion is None:
        return
    check.one_of("criterion", criterion, tuple(CRITERIA))
    given = [name for name, value in of_folds.items() if value is not None]
    if given:
        raise ValueError(f"'criterion' needs no folds: leave out {' and '.join(given)}, or criterion.")


def parse_ridges(check: ParameterChecks, name: str, value: Any) -> Ridges:
    """A parameter that says which ridges to compare, checked; those of a list in order."""
    if value is None or (isinstance(value, str) and value == AUTO):
        return value
    if isinstance(value, str):
        raise ValueError(check.message(name, ALLOWED_RIDGES, value))
    if isinstance(value, Iterable) and not isinstance(value, Iterator):
        ridges = tuple(value)
        if not ridges:
            raise ValueError(f"{check.message(name, ALLOWED_RIDGES, value)} The list is empty.")
        return tuple(sorted({_number(check, name, ridge) for ridge in ridges}))
    return _number(check, name, value)


def _number(check: ParameterChecks, name: str, value: Any) -> float:
    return check.number(name, value, otherwise=", a list of such, 'auto' or None")


def check_ridges(ridge: Ridges, search_ridge: Ridges, sizes: Sizes, criterion: str | None) -> None:
    """Raise an error where ridges are to be compared and nothing can be."""
    for name, value in (("ridge", ridge), ("search_ridge", search_ridge)):
        if not isinstance(value, tuple | str):
            continue
        if criterion is not None:
            raise ValueError(
                f"'criterion' compares sizes at one ridge: give {name} as a number, or leave out criterion to choose "
                "it by cross-validation."
            )
        if sizes is None:
            raise ValueError(f"k=None cannot be combined with {name}={value!r}: give k, or {name} as a number.")
