"""pauca: the best model with few features.

Pauca sed matura: few, but ripe.
"""

import importlib
from typing import TYPE_CHECKING, Any

from pauca.version import __version__

if TYPE_CHECKING:
    from pauca import export, losses, methods, projections, theory
    from pauca.estimators import (
        L1Classifier,
        L1Regressor,
        SparseClassifier,
        SparsePrecision,
        SparseRegressor,
        SparseTagger,
        Sparsified,
        StreamClassifier,
        StreamRegressor,
        sparsify,
    )
    from pauca.export import ModelFileError, load
    from pauca.own import select
    from pauca.path import Path, Progress, Stop
    from pauca.warnings import PaucaWarning

__all__ = [
    "L1Classifier",
    "L1Regressor",
    "ModelFileError",
    "Path",
    "PaucaWarning",
    "Progress",
    "SparseClassifier",
    "SparsePrecision",
    "SparseRegressor",
    "SparseTagger",
    "Sparsified",
    "Stop",
    "StreamClassifier",
    "StreamRegressor",
    "__version__",
    "export",
    "load",
    "losses",
    "methods",
    "projections",
    "select",
    "sparsify",
    "theory",
]

# Where each name lives. They are imported when first asked for, since scikit-learn takes a second or more to import:
# too long for a command line that is only asked for its help.
_HOMES = {
    "L1Classifier": "estimators",
    "L1Regressor": "estimators",
    "ModelFileError": "export",
    "Path": "path",
    "PaucaWarning": "warnings",
    "Progress": "path",
    "SparseClassifier": "estimators",
    "SparsePrecision": "estimators",
    "SparseRegressor": "estimators",
    "SparseTagger": "estimators",
    "Sparsified": "estimators",
    "Stop": "path",
    "StreamClassifier": "estimators",
    "StreamRegressor": "estimators",
    "load": "export",
    "select": "own",
    "sparsify": "estimators",
}

_ROOMS = (
    *("ball", "choice", "design", "estimators", "export", "graphs", "losses", "methods", "model", "objectives", "own"),
    *("path", "projections", "refit", "sampling", "sequences", "stream", "subset", "theory", "units", "warnings"),
)


def __getattr__(name: str) -> Any:
    """A public name, imported when it is first asked for."""
    if name not in _HOMES and name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    importlib.import_module("pauca.estimators")  # brings all rooms along, so that `pauca.export.onnx` is there too
    room = importlib.import_module(f"pauca.{_HOMES.get(name, name)}")
    value = getattr(room, name) if name in _HOMES else room
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
