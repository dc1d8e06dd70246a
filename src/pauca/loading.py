"""``pauca.load``. Importing this module makes every kind of model known that a file may hold."""

from pauca import crf, custom, estimators, graphical, l1, ordinal, sgd, sparsification, survival  # noqa: F401 - for their kinds
from pauca.export import load

__all__ = ["load"]
