"""pauca: the best model with few features.

Pauca sed matura: few, but ripe.
"""

import importlib
from typing import TYPE_CHECKING, Any

from pauca.version import __version__

if TYPE_CHECKING:
    from pauca import export, losses, methods, projections, theory
    from pauca.crf import SparseTagger
    from pauca.custom import select
    from pauca.design.chunks import scan
    from pauca.estimators import SparseClassifier, SparseRegressor, TableEncoder, name_features
    from pauca.export import ModelFileError
    from pauca.graphical import SparsePrecision
    from pauca.l1 import L1Classifier, L1Regressor
    from pauca.loading import load
    from pauca.ordinal import SparseOrdinalClassifier
    from pauca.results.path import Path
    from pauca.runs.run import Progress, Stop
    from pauca.sgd import StreamClassifier, StreamRegressor
    from pauca.sparsification import Sparsified, sparsify
    from pauca.survival import SparseCox
    from pauca.warnings import PaucaWarning

__all__ = [
    "L1Classifier",
    "L1Regressor",
    "ModelFileError",
    "Path",
    "PaucaWarning",
    "Progress",
    "SparseClassifier",
    "SparseCox",
    "SparseOrdinalClassifier",
    "SparsePrecision",
    "SparseRegressor",
    "SparseTagger",
    "Sparsified",
    "Stop",
    "StreamClassifier",
    "StreamRegressor",
    "TableEncoder",
    "__version__",
    "export",
    "load",
    "losses",
    "methods",
    "name_features",
    "projections",
    "scan",
    "select",
    "sparsify",
    "theory",
]

# Where each name is defined. They are imported when first needed, since scikit-learn takes a second or more to
# import: too long for a command line that only prints its help.
_HOMES = {
    "L1Classifier": "l1",
    "L1Regressor": "l1",
    "ModelFileError": "export",
    "Path": "results.path",
    "PaucaWarning": "warnings",
    "Progress": "runs.run",
    "SparseClassifier": "estimators",
    "SparseCox": "survival",
    "SparseOrdinalClassifier": "ordinal",
    "SparsePrecision": "graphical",
    "SparseRegressor": "estimators",
    "SparseTagger": "crf",
    "Sparsified": "sparsification",
    "Stop": "runs.run",
    "StreamClassifier": "sgd",
    "StreamRegressor": "sgd",
    "TableEncoder": "estimators",
    "load": "loading",
    "name_features": "estimators",
    "scan": "design.chunks",
    "select": "custom",
    "sparsify": "sparsification",
}

_PACKAGES = (
    *("constraints", "crf", "custom", "design", "estimators", "export", "graphical", "l1", "losses", "methods"),
    *(
        "model_selection",
        "objectives",
        "ordinal",
        "projections",
        "results",
        "runs",
        "sgd",
        "solvers",
        "sparsification",
    ),
    *("subsets", "survival", "tables", "theory", "warnings"),
)


def __getattr__(name: str) -> Any:
    """A public name, imported when it is first needed."""
    if name not in _HOMES and name not in _PACKAGES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"pauca.{_HOMES.get(name, name)}")
    value = getattr(module, name) if name in _HOMES else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
