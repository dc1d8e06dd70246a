"""The scikit-learn estimators for rows: check the input, run a search, keep its path."""

from pauca.estimators.classifier import SparseClassifier
from pauca.estimators.naming import name_features
from pauca.estimators.regressor import SparseRegressor
from pauca.estimators.table_encoder import TableEncoder

__all__ = ["SparseClassifier", "SparseRegressor", "TableEncoder", "name_features"]
