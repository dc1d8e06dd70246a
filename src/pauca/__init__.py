"""pauca: the best model with few features.

Pauca sed matura: few, but ripe.
"""

from pauca import losses, methods
from pauca.estimators import SparseClassifier, SparseRegressor
from pauca.path import Path, Progress, Stop
from pauca.warnings import PaucaWarning

__version__ = "0.1.0"

__all__ = [
    "Path",
    "PaucaWarning",
    "Progress",
    "SparseClassifier",
    "SparseRegressor",
    "Stop",
    "__version__",
    "losses",
    "methods",
]
