"""The scikit-learn estimators for rows: check the input, run a search, keep its path."""

from pauca.estimators.classifier import SparseClassifier
from pauca.estimators.regressor import SparseRegressor

__all__ = ["SparseClassifier", "SparseRegressor"]
