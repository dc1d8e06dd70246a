"""A model kept fitted while units come and go: what changes in a run."""

from pauca.subsets.base import REMOVALS, RULES, OutOfTime, Subset, Swap
from pauca.subsets.factory import start
from pauca.subsets.least_squares import LeastSquaresSubset
from pauca.subsets.smooth import SmoothSubset

__all__ = ["REMOVALS", "RULES", "LeastSquaresSubset", "OutOfTime", "SmoothSubset", "Subset", "Swap", "start"]
