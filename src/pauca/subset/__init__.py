"""The model fitted on the current subset of features, and what each move would do to it."""

from pauca.subset.base import REMOVALS, RULES, Subset, Swap
from pauca.subset.least_squares import LeastSquaresSubset

__all__ = ["REMOVALS", "RULES", "LeastSquaresSubset", "Subset", "Swap"]
