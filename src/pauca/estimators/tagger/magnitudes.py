"""Columns whose numbers are too large, or too far from zero, to be reckoned with."""

from __future__ import annotations

import numpy as np

from pauca.estimators.checks import listed
from pauca.sequences import Observations

LARGEST = 1e150

# Scores are products with columns as they are, less what the means contribute. Where values are so many times larger
# than the range of their column, fewer digits are left than a fit needs.
FAR_FROM_ZERO = 1e8


def refuse_large(observations: Observations, columns: np.ndarray, names: np.ndarray | None) -> None:
    """Refuse values that cannot be squared; ``columns`` says which columns of the fit those of the matrix are."""
    large = columns[observations.magnitudes() > LARGEST]
    if len(large):
        raise ValueError(
            f"X holds values too large to be squared (beyond about {LARGEST:g}). Found in: {listed(names, large)}. "
            "Rescale them."
        )


def refuse_far_from_zero(observations: Observations, varies: np.ndarray, names: np.ndarray | None) -> None:
    """Refuse columns that vary by little beside what they are."""
    far = np.flatnonzero(varies & (observations.magnitudes() > FAR_FROM_ZERO * observations.ranges()))
    if len(far):
        raise ValueError(
            f"Columns of X vary by less than {1 / FAR_FROM_ZERO:g} of their values, too little for double precision: "
            f"{listed(names, far)}. Subtract a number near their mean, the same one in every sequence."
        )
