"""What ``k`` asks for: a size, several to choose from, or to find one."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator
from typing import Any

from sklearn.metrics import check_scoring, get_scorer_names

from pauca.choice import Reach
from pauca.estimators.folds import check_folds
from pauca.estimators.options import one_of, refusal
from pauca.path import CRITERIA, FOLD_RULES

AUTO = "auto"
WANTED = "an int in the range [1, inf), 'auto', None, or sizes such as range(1, 31)"


def asked_sizes(estimator: Any) -> int | tuple[int, ...] | str | None:
    """A size, sizes to compare, "auto", or None for as many features as help."""
    k = estimator.k
    if isinstance(k, str):
        if k != AUTO:
            raise ValueError(refusal(estimator, "k", WANTED, k))
        return AUTO
    if isinstance(k, Iterable) and not isinstance(k, Iterator):
        sizes = tuple(k)
        if not sizes or any(isinstance(s, bool) or not isinstance(s, numbers.Integral) or s < 0 for s in sizes):
            raise ValueError(refusal(estimator, "k", WANTED, k))
        if max(sizes) < 1:
            raise ValueError("'k' must hold a size of at least 1.")
        return tuple(sorted({int(size) for size in sizes}))
    if k is None:
        return None
    if isinstance(k, bool) or not isinstance(k, numbers.Integral):
        raise TypeError(refusal(estimator, "k", WANTED, k))
    if k < 1:
        raise ValueError(refusal(estimator, "k", WANTED, k))
    return int(k)


def reach_for(asked: tuple[int, ...] | str, n_units: int) -> Reach:
    """How far to look for a size."""
    return Reach.open(n_units) if isinstance(asked, str) else Reach.given(asked)


def check_choice(estimator: Any) -> None:
    """Refuse options of choosing a size that cannot be meant, or that do not go together."""
    check_fold_choice(estimator)
    if estimator.criterion is not None:
        one_of(estimator, "criterion", estimator.criterion, tuple(CRITERIA))
        given = [name for name in ("cv", "scoring") if getattr(estimator, name) is not None]
        if given:
            raise ValueError(f"'criterion' needs no folds: leave out {' and '.join(given)}, or criterion.")


def check_fold_choice(estimator: Any) -> None:
    """Refuse options of cross-validation that cannot be meant."""
    one_of(estimator, "choose", estimator.choose, FOLD_RULES)
    check_folds(estimator.cv)
    if isinstance(estimator.scoring, str) and estimator.scoring not in get_scorer_names():
        raise ValueError(
            f"scoring={estimator.scoring!r} is not a scorer that scikit-learn knows; "
            "sklearn.metrics.get_scorer_names() lists them."
        )
    if estimator.scoring is not None:
        check_scoring(estimator, estimator.scoring)
    check_jobs(estimator.n_jobs)


def check_jobs(n_jobs: Any) -> None:
    """Refuse what is no number of threads."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral) or not n_jobs):
        raise ValueError(f"n_jobs must be an integer other than 0, or None; got {n_jobs!r}.")


def scorer_name(scoring: Any) -> str:
    """What a scorer is called in tables and plots."""
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", type(scoring).__name__)
