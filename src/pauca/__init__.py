"""pauca: the best model with few features.

Pauca sed matura: few, but ripe.
"""

from pauca import export, losses, methods
from pauca.estimators import SparseClassifier, SparseRegressor
from pauca.export import ModelFileError, load
from pauca.path import Path, Progress, Stop
from pauca.version import __version__
from pauca.warnings import PaucaWarning

__all__ = [
    "ModelFileError",
    "Path",
    "PaucaWarning",
    "Progress",
    "SparseClassifier",
    "SparseRegressor",
    "Stop",
    "__version__",
    "export",
    "load",
    "losses",
    "methods",
]
