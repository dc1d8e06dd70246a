"""How far a search for a size looks."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sklearn.metrics import check_scoring, get_scorer_names

from pauca.checks import ParameterChecks
from pauca.model_selection.folds import check_folds
from pauca.results.choice import CRITERIA, FOLD_RULES

# Without sizes to compare, so many are looked at first, twice as many while the best is not well within them, but never
# more than this.
FIRST_LOOK = 10
MOST_SIZES = 100
WELL_WITHIN = 0.7


@dataclass(frozen=True)
class SizeRange:
    """The sizes to compare: those that were given, or as many as it takes.

    Attributes
    ----------
    largest : int
        The largest size to go to now.
    sizes : tuple of int or None
        The sizes to compare; None for all up to the largest.
    most : int
        The largest size to ever go to.
    """

    largest: int
    sizes: tuple[int, ...] | None
    most: int

    @classmethod
    def given(cls, sizes: tuple[int, ...]) -> SizeRange:
        """These sizes and no others."""
        return cls(max(sizes), sizes, max(sizes))

    @classmethod
    def open(cls, n_units: int) -> SizeRange:
        """As many sizes as it takes."""
        most = max(1, min(n_units, MOST_SIZES))
        return cls(min(FIRST_LOOK, most), None, most)

    def further(self, best: int, reached: int) -> SizeRange | None:
        """Where to look next, with the best so far and the largest size that could be reached; None if not further."""
        if self.largest >= self.most or reached < self.largest or best <= WELL_WITHIN * self.largest:
            return None
        return SizeRange(min(2 * self.largest, self.most), self.sizes, self.most)

    def compared(self, size: int) -> bool:
        """Whether a size is among those to compare."""
        return size <= self.largest and (self.sizes is None or size in self.sizes)


AUTO = "auto"
WANTED = "an int in the range [1, inf), 'auto', None, or sizes such as range(1, 31)"


def parse_sizes(estimator: Any) -> int | tuple[int, ...] | str | None:
    """A size, sizes to compare, "auto", or None for as many features as help."""
    k = estimator.k
    if isinstance(k, str):
        if k != AUTO:
            raise ValueError(ParameterChecks(type(estimator).__name__).message("k", WANTED, k))
        return AUTO
    if isinstance(k, Iterable) and not isinstance(k, Iterator):
        sizes = tuple(k)
        if not sizes or any(isinstance(s, bool) or not isinstance(s, numbers.Integral) or s < 0 for s in sizes):
            raise ValueError(ParameterChecks(type(estimator).__name__).message("k", WANTED, k))
        if max(sizes) < 1:
            raise ValueError("'k' must hold a size of at least 1.")
        return tuple(sorted({int(size) for size in sizes}))
    if k is None:
        return None
    if isinstance(k, bool) or not isinstance(k, numbers.Integral):
        raise TypeError(ParameterChecks(type(estimator).__name__).message("k", WANTED, k))
    if k < 1:
        raise ValueError(ParameterChecks(type(estimator).__name__).message("k", WANTED, k))
    return int(k)


def size_range_for(asked: tuple[int, ...] | str, n_units: int) -> SizeRange:
    """How far to look for a size."""
    return SizeRange.open(n_units) if isinstance(asked, str) else SizeRange.given(asked)


def check_choice(estimator: Any) -> None:
    """Refuse options of choosing a size that cannot be meant, or that do not go together."""
    check_fold_choice(estimator)
    if estimator.criterion is not None:
        ParameterChecks(type(estimator).__name__).one_of("criterion", estimator.criterion, tuple(CRITERIA))
        given = [name for name in ("cv", "scoring") if getattr(estimator, name) is not None]
        if given:
            raise ValueError(f"'criterion' needs no folds: leave out {' and '.join(given)}, or criterion.")


def check_fold_choice(estimator: Any) -> None:
    """Refuse options of cross-validation that cannot be meant."""
    ParameterChecks(type(estimator).__name__).one_of("selection_rule", estimator.selection_rule, FOLD_RULES)
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
