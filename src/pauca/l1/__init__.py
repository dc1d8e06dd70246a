"""Linear models inside an l1 ball, each with a proof of how far it is from the best one there."""

from pauca.l1.classifier import L1Classifier
from pauca.l1.regressor import L1Regressor

__all__ = ["L1Classifier", "L1Regressor"]
