"""pauca: the best model with few features.

Pauca sed matura: few, but ripe.
"""

from pauca import methods
from pauca.estimators import SparseRegressor
from pauca.path import Path, Progress, Stop
from pauca.warnings import PaucaWarning

__version__ = "0.1.0"

__all__ = ["Path", "PaucaWarning", "Progress", "SparseRegressor", "Stop", "__version__", "methods"]
