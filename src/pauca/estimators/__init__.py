"""The scikit-learn faces: check what the user brings, run a method, hand back what came of it."""

from pauca.estimators.classifier import SparseClassifier
from pauca.estimators.l1 import L1Classifier, L1Regressor
from pauca.estimators.precision import SparsePrecision
from pauca.estimators.regressor import SparseRegressor
from pauca.estimators.sparsified import Sparsified
from pauca.estimators.sparsifying import sparsify
from pauca.estimators.streams import StreamClassifier, StreamRegressor
from pauca.estimators.tagger import SparseTagger

__all__ = [
    "L1Classifier",
    "L1Regressor",
    "SparseClassifier",
    "SparsePrecision",
    "SparseRegressor",
    "SparseTagger",
    "Sparsified",
    "StreamClassifier",
    "StreamRegressor",
    "sparsify",
]
