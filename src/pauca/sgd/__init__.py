"""Linear models with few features learned from streams of rows by stochastic gradients."""

from pauca.sgd.classifier import StreamClassifier
from pauca.sgd.epoch_sgd import EpochSGD
from pauca.sgd.regressor import StreamRegressor
from pauca.sgd.stream import StreamProgress

__all__ = ["EpochSGD", "StreamClassifier", "StreamProgress", "StreamRegressor"]
