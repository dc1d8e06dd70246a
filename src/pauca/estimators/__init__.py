"""The scikit-learn faces: the only room that fits with scikit-learn."""

from pauca.estimators.classifier import SparseClassifier
from pauca.estimators.regressor import SparseRegressor
from pauca.estimators.streams import StreamClassifier, StreamRegressor

__all__ = ["SparseClassifier", "SparseRegressor", "StreamClassifier", "StreamRegressor"]
