"""Times to an event: proportional hazards with few features."""

from pauca.statistics.concordance import concordance_index
from pauca.survival.estimator import SparseCox

__all__ = ["SparseCox", "concordance_index"]
