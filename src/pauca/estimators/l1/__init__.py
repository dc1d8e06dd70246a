"""The scikit-learn faces of models in an l1 ball."""

from pauca.estimators.l1.classifier import L1Classifier
from pauca.estimators.l1.regressor import L1Regressor

__all__ = ["L1Classifier", "L1Regressor"]
