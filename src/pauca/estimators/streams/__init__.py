"""Linear models with few features learnt from streams of rows."""

from pauca.estimators.streams.classifier import StreamClassifier
from pauca.estimators.streams.regressor import StreamRegressor

__all__ = ["StreamClassifier", "StreamRegressor"]
