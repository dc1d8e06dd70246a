"""Linear models with few features learned from streams of rows by stochastic gradients."""

from pauca.sgd.classifier import StreamClassifier
from pauca.sgd.regressor import StreamRegressor
from pauca.sgd.stream import StreamProgress

__all__ = ["StreamClassifier", "StreamProgress", "StreamRegressor"]
