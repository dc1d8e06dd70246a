"""Classes in an order: proportional odds with few features."""

from pauca.ordinal.estimator import SparseOrdinalClassifier

__all__ = ["SparseOrdinalClassifier"]
