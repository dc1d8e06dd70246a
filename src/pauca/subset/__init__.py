"""A model kept fitted while units come and go: what changes in a run."""

from pauca.subset.base import REMOVALS, RULES, OutOfTime, Subset, Swap
from pauca.subset.least_squares import LeastSquaresSubset
from pauca.subset.smooth import SmoothSubset
from pauca.subset.start import start

__all__ = ["REMOVALS", "RULES", "LeastSquaresSubset", "OutOfTime", "SmoothSubset", "Subset", "Swap", "start"]
