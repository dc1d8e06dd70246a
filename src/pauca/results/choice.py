"""Why a size was chosen: the score of every size, and the rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

EXPLAINED = "explained"
"""The default score: the share of the constant model's loss that is gone on held-out rows."""

ACCURACY = "accuracy"
"""The share of right answers, of which one less is the error."""

FOLD_RULES = ("1se", "best")
"""Rules that weigh scores of folds."""

CRITERIA = {"aic": "AIC", "bic": "BIC", "ebic": "extended BIC"}
"""Information criteria, and their names in messages."""


@dataclass(frozen=True, eq=False)
class Choice:
    """How the sizes of a path compare.

    Attributes
    ----------
    rule : str
        "1se" or "best" for cross-validation, or the information criterion "aic", "bic" or "ebic".
    scoring : str
        What is scored: "explained", the name of a scorer, or the criterion once more.
    sizes : ndarray of shape (m,)
        The sizes that were compared, ascending.
    mean : ndarray of shape (m,)
        The mean score of each over the folds, higher being better; or the criterion, lower being better.
    standard_error : ndarray of shape (m,) or None
        The standard error of that mean.
    fold_scores : ndarray of shape (folds, m) or None
        The scores of every fold.
    chosen : int
        The size the rule chose.
    """

    rule: str
    scoring: str
    sizes: np.ndarray
    mean: np.ndarray
    standard_error: np.ndarray | None
    fold_scores: np.ndarray | None
    chosen: int

    @property
    def by_folds(self) -> bool:
        """Whether this is cross-validation."""
        return self.fold_scores is not None

    @property
    def criterion_name(self) -> str:
        """The name of the criterion in messages; for cross-validation, the name of the score."""
        return CRITERIA.get(self.rule, self.scoring)

    @property
    def best(self) -> int:
        """The size with the best mean score, or the lowest criterion."""
        position = np.argmax(self.mean) if self.by_folds else np.argmin(self.mean)
        return int(self.sizes[position])

    def position(self, size: int) -> int | None:
        """Position of a size in the arrays; None if it was not compared."""
        found = np.flatnonzero(self.sizes == size)
        return int(found[0]) if len(found) else None

    def record(self, size: int) -> dict[str, float]:
        """The columns of a table for one size."""
        position = self.position(size)
        mean = np.nan if position is None else float(self.mean[position])
        if self.standard_error is None:
            return {self.rule: mean}
        spread = np.nan if position is None else float(self.standard_error[position])
        return {"score": mean, **({"error": 1.0 - mean} if self.scoring == ACCURACY else {}), "standard_error": spread}

    @property
    def message(self) -> str:
        """The choice in words."""
        if self.fold_scores is None or self.standard_error is None:
            return f"{self.chosen} has the lowest {self.criterion_name} of the sizes tried."
        folds = f"{len(self.fold_scores)}-fold cross-validation"
        if self.chosen == 0 and self.scoring == EXPLAINED:
            return f"No feature helps on rows held out ({folds}): a constant predicts as well."
        score = self._scored(self.chosen)
        if self.chosen == self.best:
            return f"{self.chosen} is best by {folds}: {score}."
        return (
            f"{self.chosen} is the smallest size within one standard error of the best by {folds}: {score}; "
            f"the best, {self.best}, has {self._number(self.best)}."
        )

    def _scored(self, size: int) -> str:
        number = self._number(size)
        return f"{number} explained on rows held out" if self.scoring == EXPLAINED else f"{self.scoring} {number}"

    def _number(self, size: int) -> str:
        position = self.position(size)
        assert position is not None
        assert self.standard_error is not None
        mean, error = self.mean[position], self.standard_error[position]
        return (
            f"{100 * mean:.2f} % (± {100 * error:.2f})" if self.scoring == EXPLAINED else f"{mean:.6g} (± {error:.2g})"
        )
