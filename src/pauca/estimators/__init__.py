"""The scikit-learn faces: check what the user brings, run a method, hand back what came of it."""

from pauca.estimators.classifier import SparseClassifier
from pauca.estimators.precision import SparsePrecision
from pauca.estimators.regressor import SparseRegressor

__all__ = ["SparseClassifier", "SparsePrecision", "SparseRegressor"]
