"""The parameters of a sparse linear model, checked and parsed once per fit."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from pauca.checks import ParameterChecks
from pauca.estimators.raw_tables import check_table_parameters
from pauca.methods import resolve
from pauca.model_selection.grids import (
    Ridges,
    Sizes,
    check_criterion,
    check_cross_validation,
    check_ridges,
    parse_ridges,
    parse_sizes,
)
from pauca.results.choice import Rule
from pauca.runs.progress import ProgressReport, with_progress
from pauca.runs.run import Budget, Goal, Method

CONSTRAINTS = ("feature_groups", "max_per_group", "always", "never", "costs", "budget", "bounds", "heredity")

PLAIN_TABLE = ("error", "from_dtype")


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
    progress: ProgressReport | None

    @classmethod
    def parse(cls, owner: str, parameters: Mapping[str, Any]) -> SearchSettings:
        """Settings from the parameters of an estimator; an invalid one raises an error that names the ``owner``."""
        check, given = ParameterChecks(owner), parameters
        sizes = parse_sizes(check, given["k"])
        check_cross_validation(check, given["cv"], given["selection_rule"], given["n_jobs"])
        check_criterion(check, given["criterion"], cv=given["cv"], scoring=given["scoring"])
        ridge, search_ridge = (parse_ridges(check, name, given[name]) for name in ("ridge", "search_ridge"))
        check_ridges(ridge, search_ridge, sizes, given["criterion"])
        check.optional_callable("callback", given["callback"])
        if (given.get("missing", "error"), str(given.get("categorical_features"))) != PLAIN_TABLE:
            check_table_parameters(owner, given)
        time_limit, callback, progress = check.time_limit(given["time_limit"]), given["callback"], None
        if check.count("verbose", int(given.get("verbose", 0)), least=0):
            progress = ProgressReport(time_limit=time_limit)
            callback = with_progress(progress, callback)
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
            run_budget=Budget(time_limit, callback),
            constraints={name: given.get(name) for name in CONSTRAINTS},
            cv=given["cv"],
            scoring=given["scoring"],
            selection_rule=given["selection_rule"],
            criterion=given["criterion"],
            n_jobs=given["n_jobs"],
            missing=given.get("missing", "error"),
            progress=progress,
        )

    def shown(self) -> AbstractContextManager[Any]:
        """A context in which progress is shown, if that was asked for."""
        return nullcontext() if self.progress is None else self.progress

    @property
    def chooses_size(self) -> bool:
        """Whether sizes are compared by cross-validation."""
        return not (self.sizes is None or isinstance(self.sizes, int)) and self.criterion is None

    @property
    def uses_folds(self) -> bool:
        """Whether sizes or ridges are compared by cross-validation."""
        ridges = self.ridge, self.search_ridge
        return self.chooses_size or any(isinstance(one, tuple | str) for one in ridges)

    def goal(self, size: int | None) -> Goal:
        """What a run to ``size`` aims for."""
        return Goal(size, self.tol)
