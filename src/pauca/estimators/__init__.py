"""The scikit-learn faces: check what the user brings, run a method, hand back what came of it."""

from pauca.estimators.classifier import SparseClassifier
from pauca.estimators.regressor import SparseRegressor
from pauca.estimators.tagger import SparseTagger

__all__ = ["SparseClassifier", "SparseRegressor", "SparseTagger"]
